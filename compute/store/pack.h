/*
 * pack.h: bytes of packets between the front and the store: numbers of 64 bits in the machine's own
 * order, texts with their length before and a NUL behind them.
 *
 * Reading never goes past the end: what is cut off or makes no sense sets `bad`, and all that is
 * read from then on is 0 or "".
 *
 * Threads: one owner at a time. Texts and bytes that are read point into the packet.
 */
#ifndef KILN_COMPUTE_STORE_PACK_H
#define KILN_COMPUTE_STORE_PACK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pack {
    uint8_t *data;
    size_t size, capacity;
    bool full; /* something did not fit */
};

struct unpack {
    const uint8_t *data;
    size_t size, at;
    bool bad;
};

void pack_number(struct pack *pack, int64_t value);
void pack_real(struct pack *pack, double value);
void pack_bytes(struct pack *pack, const void *bytes, size_t size);
void pack_text(struct pack *pack, const char *text);

int64_t unpack_number(struct unpack *unpack);
/** A number from `low` to `high`, else bad and `low`. */
int64_t unpack_range(struct unpack *unpack, int64_t low, int64_t high);
/** Finite, else bad. */
double unpack_real(struct unpack *unpack);
void unpack_bytes(struct unpack *unpack, void *bytes, size_t size);
/** A text of at most `max` bytes without NUL. */
const char *unpack_text(struct unpack *unpack, size_t max);
/** All was read, and was good. */
bool unpack_done(const struct unpack *unpack);

#endif
