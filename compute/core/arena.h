/*
 * arena.h: the shared memory that inputs and results live in.
 *
 * A memfd mapped by the front (which alone allocates) and by every worker (which reads inputs and
 * writes results). The allocator's own records lie in the front's private heap, so a worker that
 * goes wild cannot corrupt them. Blocks are multiples of ARENA_PAGE, best fit, coalesced on return.
 *
 * Shares: a block that is taken for a holder (a client) counts as the holder's until it is given
 * back, wherever it goes meanwhile (account.h).
 *
 * Small blocks lie in a part of their own, the reserve, as long as it has room: those that stay for
 * long would else leave no piece between them that is long enough for a large one.
 *
 * Ownership: a block has one owner; giving or moving it zeroes the source. A block handed to a
 * worker comes back to the allocator only with its answer or after the worker's death is certain.
 * Threads: take and give from any thread of the front.
 */
#ifndef KILN_COMPUTE_CORE_ARENA_H
#define KILN_COMPUTE_CORE_ARENA_H

#include "compute/core/account.h"
#include "compute/core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ARENA_PAGE  4096u
#define ARENA_SMALL (16 * ARENA_PAGE) /* blocks up to this size have that part to themselves */

struct arena;

/** A part of the arena; size 0 means none. */
struct block {
    uint64_t offset;
    uint64_t size; /* bytes, a multiple of ARENA_PAGE */
};

struct arena_stats {
    uint64_t size, used, peak; /* bytes */
    uint64_t largest;          /* bytes of the longest free extent */
    uint64_t blocks;           /* taken now */
    uint64_t failures;         /* takes refused so far */
    uint64_t over_share;       /* of them, those for which there would have been room */
    uint64_t holders;          /* that have blocks now */
};

/** Creates the memfd (sealed against resizing) and maps it. `size` is rounded up to pages.
    Errors: KILN_NO_MEMORY, KILN_INTERNAL. */
enum kiln_status arena_create(size_t size, struct arena **arena);
/** The same allocator over memory that no other process can see: arena_fd is -1. */
enum kiln_status arena_create_private(size_t size, struct arena **arena);
/** Unmaps and closes. All blocks must have been given back. NULL is allowed. */
void arena_destroy(struct arena *arena);

int arena_fd(const struct arena *arena);
size_t arena_size(const struct arena *arena);
/** Address of byte `offset` in this process. */
void *arena_at(const struct arena *arena, uint64_t offset);

/** Takes a block of at least `size` bytes (0 counts as 1). KILN_NO_MEMORY if none is free now,
    KILN_JOB_TOO_LARGE if it could never be. Contents are undefined. */
enum kiln_status arena_take(struct arena *arena, uint64_t size, struct block *block);
/** The same for a holder, within its share. `own` is the block that belongs to the new one (a job's
    input, what is to be moved; NULL or empty: none): a holder that has nothing else may exceed its
    share. JOB_TOO_LARGE: more than arena_most(), with `own`. */
enum kiln_status arena_take_for(struct arena *arena, const struct holder *holder, uint64_t size,
                                const struct block *own, struct block *block);
/** What arena_take_for would answer, but for fragmentation; takes nothing. */
enum kiln_status arena_probe(struct arena *arena, const struct holder *holder, uint64_t size);
/** Makes a block longer where it lies, to `size` bytes at least; false where what follows is taken
    or its holder's share is used up. */
bool arena_extend(struct arena *arena, struct block *block, uint64_t size);
/** Counts how often something was given back: a take that was refused will be again as long as it
    stays the same. Any thread, without the lock. */
uint64_t arena_gives(const struct arena *arena);
/** Where the part begins that large blocks lie in; what is before it is for small ones alone. */
uint64_t arena_large_from(const struct arena *arena);
/** The most that one holder can ever have. */
uint64_t arena_most(const struct arena *arena);
/** Returns the tail past `size` bytes to the allocator. */
void arena_trim(struct arena *arena, struct block *block, uint64_t size);
/** Gives a block back and zeroes it; an empty block is allowed. */
void arena_give(struct arena *arena, struct block *block);
void arena_stats(struct arena *arena, struct arena_stats *stats);
/** The `count` holders that have most, in falling order; returns how many were written. */
size_t arena_holders(struct arena *arena, struct holding *holdings, size_t count);

/** Maps an existing arena in a worker: returns the base address or NULL. */
void *arena_attach(int fd, size_t size);

#endif
