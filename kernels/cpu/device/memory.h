/*
 * memory.h: a bump allocator that keeps what it has grown to.
 *
 * memory_take cuts 256-byte aligned pieces off the newest chunk and adds a chunk when it is full.
 * memory_reset makes everything free again: what a job needed in several chunks becomes one chunk,
 * so that the next job like it asks the system for nothing. Above MEMORY_KEEP bytes the chunks go
 * back to the system instead.
 *
 * Ownership: what memory_take gives is valid until the next reset. Threads: one owner at a time;
 * the account may be shared by several.
 */
#ifndef KILN_KERNELS_CPU_DEVICE_MEMORY_H
#define KILN_KERNELS_CPU_DEVICE_MEMORY_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define MEMORY_KEEP ((size_t)512 << 20) /* of a stream, from one job to the next */
#define MEMORY_IDLE ((size_t)16 << 20)  /* of a stream that has had no job for a while */
#define MEMORY_SHARE                                                                               \
    4 /* streams that have this part of the limit together keep no more than that */

/** Bytes held by all pools of a device together. */
struct memory_account {
    _Atomic uint64_t held;
    uint64_t limit; /* 0: none */
};

struct memory_chunk;

struct memory {
    struct memory_account *account;
    struct memory_chunk *newest;
    size_t held; /* bytes of all chunks */
};

void memory_init(struct memory *memory, struct memory_account *account);
void memory_finish(struct memory *memory);
/** NULL where memory or the account's limit ran out. Contents are undefined. */
void *memory_take(struct memory *memory, size_t size);
void memory_reset(struct memory *memory);

/** A place to come back to: what is taken after it can be given back at once. */
struct memory_mark {
    struct memory_chunk *chunk;
    size_t used;
};
struct memory_mark memory_mark(const struct memory *memory);
/** Makes what was taken since `mark` free again, for what is taken next. */
void memory_release(struct memory *memory, struct memory_mark mark);

#endif
