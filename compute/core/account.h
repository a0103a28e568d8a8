/*
 * account.h: how much of the arena each holder (a client) has, and may have.
 *
 * A holder may have ARENA_SHARE times what is left free then (the dynamic threshold of packet
 * switches): alone two thirds of the arena, two of them two fifths each, and so on, so that there
 * is always room for one more who has little. To take one thing that is larger, such as a job's
 * result, it must hold nothing else, and leave the reserve.
 *
 * Threads: the arena's, under its lock.
 */
#ifndef KILN_COMPUTE_CORE_ACCOUNT_H
#define KILN_COMPUTE_CORE_ACCOUNT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARENA_SHARE   2  /* a holder's bytes to free ones, at most */
#define ARENA_RESERVE 16 /* such a part is left by single large blocks */

#define ARENA_HOLDERS_MAX 65535 /* at a time */
#define ARENA_NAME_MAX    48

/** Who a block is for: what is equal in `words` is one holder. All zero: the daemon itself, which
   is not limited. */
struct holder {
    uint64_t words[2];
    const char *name; /* for the log, copied when needed; NULL: "" */
};

/** What one holder has. */
struct holding {
    char name[ARENA_NAME_MAX];
    uint64_t bytes;
    uint32_t blocks;
};

struct accounts;

/** NULL: no memory. Destroying allows NULL. */
struct accounts *accounts_create(void);
void accounts_destroy(struct accounts *accounts);

bool holder_is_daemon(const struct holder *holder);
/** Number of the holder's account; 0 where it has none (or is the daemon). */
uint16_t accounts_find(struct accounts *accounts, const struct holder *holder);
/** The same, which is opened where it has none; 0 if there are too many: one too many counts as the
    daemon's. Something is to be booked at once. */
uint16_t accounts_open(struct accounts *accounts, const struct holder *holder);
/** So many more bytes and blocks, or less. Without a block left, the account is closed. */
void accounts_book(struct accounts *accounts, uint16_t number, int64_t bytes, int blocks);
/** Blocks of an account; of number 0 none. */
uint32_t accounts_blocks(const struct accounts *accounts, uint16_t number);
/** Whether a holder may have `more` bytes of `unused` ones in an arena of `size`; number 0: one who
    has none. `alone`: all that it has belongs to the new block. */
bool accounts_allow(const struct accounts *accounts, uint16_t number, bool alone, uint64_t more,
                    uint64_t unused, uint64_t size);
/** Holders that have something. */
size_t accounts_count(const struct accounts *accounts);
/** The `count` holders that have most, in falling order; returns how many were written. */
size_t accounts_largest(const struct accounts *accounts, struct holding *holdings, size_t count);

#endif
