/*
 * arena.h: the shared memory that inputs and results live in.
 *
 * A memfd mapped by the front (which alone allocates) and by every worker (which reads inputs and
 * writes results). The allocator's own records lie in the front's private heap, so a worker that
 * goes wild cannot corrupt them. Blocks are multiples of ARENA_PAGE, best fit, coalesced on return.
 *
 * Ownership: a block has one owner; giving or moving it zeroes the source. A block handed to a
 * worker comes back to the allocator only with its answer or after the worker's death is certain.
 * Threads: take and give from any thread of the front.
 */
#ifndef KILN_COMPUTE_ARENA_H
#define KILN_COMPUTE_ARENA_H

#include "compute/status.h"

#include <stddef.h>
#include <stdint.h>

#define ARENA_PAGE 4096u

struct arena;

/** A part of the arena; size 0 means none. */
struct block {
    uint64_t offset;
    uint64_t size; /* bytes, a multiple of ARENA_PAGE */
};

struct arena_stats {
    uint64_t size, used, peak; /* bytes */
    uint64_t blocks;           /* taken now */
    uint64_t failures;         /* takes refused so far */
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
/** Returns the tail past `size` bytes to the allocator. */
void arena_trim(struct arena *arena, struct block *block, uint64_t size);
/** Gives a block back and zeroes it; an empty block is allowed. */
void arena_give(struct arena *arena, struct block *block);
void arena_stats(struct arena *arena, struct arena_stats *stats);

/** Maps an existing arena in a worker: returns the base address or NULL. */
void *arena_attach(int fd, size_t size);

#endif
