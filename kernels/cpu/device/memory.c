/*
 * memory.c: chunks in a list, newest first; only the newest is cut from.
 */
#include "kernels/cpu/device/memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>

#define ALIGNMENT ((size_t)256)
#define PAGE      ((size_t)4096)
#define CHUNK_MIN ((size_t)1 << 20)
#define HUGE_PAGE ((size_t)2 << 20)

/* The header occupies the first ALIGNMENT bytes of its chunk. */
struct memory_chunk {
    struct memory_chunk *next;
    size_t size, used; /* bytes, the header included */
};

static bool round_up(size_t size, size_t to, size_t *rounded) {
    if (__builtin_add_overflow(size, to - 1, rounded)) {
        return false;
    }
    *rounded -= *rounded % to;
    return true;
}

static bool account_charge(struct memory_account *account, size_t size) {
    uint64_t before = atomic_fetch_add_explicit(&account->held, size, memory_order_relaxed);
    if (!account->limit || (before <= account->limit && size <= account->limit - before)) {
        return true;
    }
    atomic_fetch_sub_explicit(&account->held, size, memory_order_relaxed);
    return false;
}

static bool chunk_add(struct memory *memory, size_t size) {
    size_t align = size >= 2 * HUGE_PAGE ? HUGE_PAGE : PAGE;
    if (!round_up(size < CHUNK_MIN ? CHUNK_MIN : size, align, &size) || size > PTRDIFF_MAX ||
        !account_charge(memory->account, size)) {
        return false;
    }
    struct memory_chunk *chunk = aligned_alloc(align, size);
    if (chunk == NULL) {
        atomic_fetch_sub_explicit(&memory->account->held, size, memory_order_relaxed);
        return false;
    }
    if (align == HUGE_PAGE) {
        (void)madvise(chunk, size, MADV_HUGEPAGE); /* a hint: failure changes nothing but speed */
    }
    chunk->next = memory->newest;
    chunk->size = size;
    chunk->used = ALIGNMENT;
    memory->newest = chunk;
    memory->held += size;
    return true;
}

void memory_init(struct memory *memory, struct memory_account *account) {
    memory->account = account;
    memory->newest = NULL;
    memory->held = 0;
}

void memory_finish(struct memory *memory) {
    if (memory == NULL) {
        return;
    }
    while (memory->newest != NULL) {
        struct memory_chunk *chunk = memory->newest;
        memory->newest = chunk->next;
        atomic_fetch_sub_explicit(&memory->account->held, chunk->size, memory_order_relaxed);
        free(chunk);
    }
    memory->held = 0;
}

void *memory_take(struct memory *memory, size_t size) {
    size_t needed;
    if (!round_up(size ? size : 1, ALIGNMENT, &size) ||
        __builtin_add_overflow(size, ALIGNMENT, &needed)) {
        return NULL;
    }
    struct memory_chunk *chunk = memory->newest;
    if (chunk == NULL || chunk->size - chunk->used < size) {
        if (!chunk_add(memory, needed)) {
            return NULL;
        }
        chunk = memory->newest;
    }
    void *piece = (char *)chunk + chunk->used;
    chunk->used += size;
    return piece;
}

void memory_reset(struct memory *memory) {
    if (memory->newest == NULL) {
        return;
    }
    bool one = memory->newest->next == NULL;
    size_t held = memory->held;
    if (one && held <= MEMORY_KEEP) {
        memory->newest->used = ALIGNMENT;
        return;
    }
    memory_finish(memory);
    if (held <= MEMORY_KEEP) {
        (void)chunk_add(memory, held); /* without it the next take asks again */
    }
}

struct memory_mark memory_mark(const struct memory *memory) {
    struct memory_chunk *chunk = memory->newest;
    return (struct memory_mark){chunk, chunk != NULL ? chunk->used : 0};
}

/* Chunks that were added since stay; the newest is the one that is cut from. */
void memory_release(struct memory *memory, struct memory_mark mark) {
    if (memory->newest != NULL) {
        memory->newest->used = memory->newest == mark.chunk ? mark.used : ALIGNMENT;
    }
}
