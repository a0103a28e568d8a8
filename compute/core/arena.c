/*
 * arena.c: the shared memory and its allocator.
 *
 * The arena is a row of extents, each free or taken, each a whole number of pages. The length of an
 * extent stands in `span` at its first and its last page, so that a block coming back finds both
 * neighbours at once. Free extents also hang in a treap ordered by (length, page): the first one
 * that is long enough is the best fit, and among equals the lowest. Blocks are cut from an extent's
 * low end. Both rules together keep the arena's low pages in use again and again, so that they are
 * warm and the high ones need never exist. Small blocks have the lowest pages to themselves, with a
 * treap of their own; no extent reaches from there into the rest.
 *
 * Who holds a block stands in `owner` at its first page, as the number of an account (account.h).
 *
 * All records are private to this process. Take, trim and give are O(log n) in the number of free
 * extents. Threads: any; one mutex.
 */
#include "compute/core/arena.h"

#include "compute/core/account.h"

#include <assert.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define NONE      UINT32_MAX
#define SPAN_FREE (UINT32_C(1) << 31) /* bit of a span: the extent is free */
#define PAGES_MAX (SPAN_FREE - 1)

struct node {
    uint32_t left, right;
};

struct arena {
    int fd;
    uint8_t *base;
    size_t size;
    uint32_t pages;
    uint32_t *span;     /* per page: length of the extent that starts or ends here, and SPAN_FREE */
    struct node *nodes; /* per page: the treap's links of the free extent that starts here */
    uint32_t low;       /* pages before this one are for small blocks; 0: no such part */
    uint32_t roots[2];  /* of that part's free extents, and of the others */
    uint16_t *owner;    /* per page: account of the block that starts here */
    struct accounts *accounts;
    _Atomic uint64_t gives;
    pthread_mutex_t lock;
    struct arena_stats stats;
};

/* A treap's priorities may be any fixed scramble of the key (this is Murmur3's last step). */
static uint32_t priority(uint32_t page) {
    page ^= page >> 16;
    page *= UINT32_C(0x85ebca6b);
    page ^= page >> 13;
    page *= UINT32_C(0xc2b2ae35);
    return page ^ page >> 16;
}

static uint32_t length_at(const struct arena *arena, uint32_t page) {
    return arena->span[page] & ~SPAN_FREE;
}

/* Order of the treap: is the extent at `page` before (length, first)? */
static bool before(const struct arena *arena, uint32_t page, uint32_t length, uint32_t first) {
    uint32_t own = length_at(arena, page);
    return own != length ? own < length : page < first;
}

/* Which part a page lies in. */
static int part_of(const struct arena *arena, uint32_t page) {
    return page >= arena->low;
}

/* Writes the tags of an extent. */
static void mark(struct arena *arena, uint32_t first, uint32_t length, uint32_t flag) {
    arena->span[first] = length | flag;
    arena->span[first + length - 1] = length | flag;
}

/* Makes a free extent of these pages and hangs it into the treap. */
static void insert(struct arena *arena, uint32_t first, uint32_t length) {
    mark(arena, first, length, SPAN_FREE);
    uint32_t *link = &arena->roots[part_of(arena, first)];
    while (*link != NONE && priority(*link) >= priority(first)) {
        struct node *node = &arena->nodes[*link];
        link = before(arena, *link, length, first) ? &node->right : &node->left;
    }
    /* What hung here is split by the new key into the new node's two sides. */
    uint32_t rest = *link;
    *link = first;
    uint32_t *left = &arena->nodes[first].left, *right = &arena->nodes[first].right;
    while (rest != NONE) {
        if (before(arena, rest, length, first)) {
            *left = rest;
            left = &arena->nodes[rest].right;
            rest = *left;
        } else {
            *right = rest;
            right = &arena->nodes[rest].left;
            rest = *right;
        }
    }
    *left = *right = NONE;
}

/* Takes the free extent that starts at `first` out of the treap. */
static void erase(struct arena *arena, uint32_t first) {
    uint32_t length = length_at(arena, first);
    uint32_t *link = &arena->roots[part_of(arena, first)];
    while (*link != first) {
        assert(*link != NONE);
        struct node *node = &arena->nodes[*link];
        link = before(arena, *link, length, first) ? &node->right : &node->left;
    }
    uint32_t left = arena->nodes[first].left, right = arena->nodes[first].right;
    while (left != NONE && right != NONE) {
        if (priority(left) >= priority(right)) {
            *link = left;
            link = &arena->nodes[left].right;
            left = *link;
        } else {
            *link = right;
            link = &arena->nodes[right].left;
            right = *link;
        }
    }
    *link = left != NONE ? left : right;
}

/* First page of the shortest free extent of a part with at least `length` pages, or NONE. */
static uint32_t find_in(const struct arena *arena, int part, uint32_t length) {
    uint32_t best = NONE;
    for (uint32_t page = arena->roots[part]; page != NONE;) {
        if (before(arena, page, length, 0)) {
            page = arena->nodes[page].right;
        } else {
            best = page;
            page = arena->nodes[page].left;
        }
    }
    return best;
}

/* The same where such a block belongs; small ones may lie among the others. */
static uint32_t find(const struct arena *arena, uint32_t length) {
    uint32_t first = NONE;
    if (length <= ARENA_SMALL / ARENA_PAGE) {
        first = find_in(arena, 0, length);
    }
    return first != NONE ? first : find_in(arena, 1, length);
}

/* Makes pages free, joined with free neighbours of the same part. */
static void release(struct arena *arena, uint32_t first, uint32_t length) {
    if (first > 0 && first != arena->low && (arena->span[first - 1] & SPAN_FREE)) {
        uint32_t before_us = length_at(arena, first - 1);
        first -= before_us;
        length += before_us;
        erase(arena, first);
    }
    uint32_t next = first + length;
    if (next < arena->pages && next != arena->low && (arena->span[next] & SPAN_FREE)) {
        erase(arena, next);
        length += length_at(arena, next);
    }
    insert(arena, first, length);
}

uint64_t arena_gives(const struct arena *arena) {
    return atomic_load_explicit(&arena->gives, memory_order_relaxed);
}

uint64_t arena_large_from(const struct arena *arena) {
    return (uint64_t)arena->low * ARENA_PAGE;
}

uint64_t arena_most(const struct arena *arena) {
    return arena->size - arena->size / ARENA_RESERVE;
}

/* ---- making it ---- */

/* The sealed memfd, mapped; false on failure. */
static bool map(struct arena *arena, size_t size) {
    arena->fd = memfd_create("kiln-arena", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    if (arena->fd < 0 || ftruncate(arena->fd, (off_t)size) != 0 ||
        fcntl(arena->fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
        return false;
    }
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, arena->fd, 0);
    if (base == MAP_FAILED) {
        return false;
    }
    arena->base = base;
    arena->size = size;
    /* Gigabytes of pictures help nobody in a core file. */
    madvise(base, size, MADV_DONTDUMP);
    return true;
}

/* Memory of this process alone, in large pages where the system has them: filling it costs few
   page faults. */
static bool map_private(struct arena *arena, size_t size) {
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) {
        return false;
    }
    arena->base = base;
    arena->size = size;
    madvise(base, size, MADV_HUGEPAGE);
    madvise(base, size, MADV_DONTDUMP);
    return true;
}

static enum kiln_status create(size_t size, bool (*map_pages)(struct arena *arena, size_t size),
                               struct arena **out) {
    enum kiln_status status = KILN_NO_MEMORY;
    bool shared = map_pages == map;
    *out = NULL;
    if (size > (size_t)PAGES_MAX * ARENA_PAGE) {
        return KILN_NO_MEMORY;
    }
    size = size == 0 ? ARENA_PAGE : (size + ARENA_PAGE - 1) / ARENA_PAGE * ARENA_PAGE;
    struct arena *arena = calloc(1, sizeof *arena);
    if (arena == NULL) {
        return KILN_NO_MEMORY;
    }
    arena->fd = -1;
    arena->pages = (uint32_t)(size / ARENA_PAGE);
    pthread_mutex_init(&arena->lock, NULL);
    /* Untouched pages of these do not exist: most of a page's records are never written. */
    arena->span = calloc(arena->pages, sizeof *arena->span);
    arena->nodes = calloc(arena->pages, sizeof *arena->nodes);
    arena->owner = calloc(arena->pages, sizeof *arena->owner);
    arena->accounts = accounts_create();
    if (arena->span == NULL || arena->nodes == NULL || arena->owner == NULL ||
        arena->accounts == NULL) {
        goto out;
    }
    status = KILN_INTERNAL;
    if (!map_pages(arena, size)) {
        goto out;
    }
    arena->stats.size = size;
    arena->roots[0] = arena->roots[1] = NONE;
    if (shared && size / ARENA_RESERVE >= ARENA_SMALL) {
        arena->low = arena->pages / ARENA_RESERVE;
        insert(arena, 0, arena->low);
    }
    insert(arena, arena->low, arena->pages - arena->low);
    *out = arena;
    arena = NULL;
    status = KILN_OK;
out:
    if (arena != NULL) {
        arena->stats.used = 0;
        arena_destroy(arena);
    }
    return status;
}

enum kiln_status arena_create(size_t size, struct arena **arena) {
    return create(size, map, arena);
}

enum kiln_status arena_create_private(size_t size, struct arena **arena) {
    return create(size, map_private, arena);
}

void arena_destroy(struct arena *arena) {
    if (arena == NULL) {
        return;
    }
    assert(arena->stats.used == 0);
    if (arena->base != NULL) {
        munmap(arena->base, arena->size);
    }
    if (arena->fd >= 0) {
        close(arena->fd);
    }
    accounts_destroy(arena->accounts);
    free(arena->owner);
    free(arena->nodes);
    free(arena->span);
    pthread_mutex_destroy(&arena->lock);
    free(arena);
}

int arena_fd(const struct arena *arena) {
    return arena->fd;
}

size_t arena_size(const struct arena *arena) {
    return arena->size;
}

void *arena_at(const struct arena *arena, uint64_t offset) {
    assert(offset < arena->size);
    return arena->base + offset;
}

/* Pages that hold `size` bytes; the size fits the arena. */
static uint32_t pages_of(uint64_t size) {
    return size == 0 ? 1 : (uint32_t)((size - 1) / ARENA_PAGE + 1);
}

/* `bytes` more of the arena, or less, and `blocks`, in the hand of this account. */
static void count_used(struct arena *arena, uint16_t account, int64_t bytes, int blocks) {
    accounts_book(arena->accounts, account, bytes, blocks);
    arena->stats.blocks += (uint64_t)blocks;
    if (bytes < 0) {
        atomic_fetch_add_explicit(&arena->gives, 1, memory_order_relaxed);
    }
    arena->stats.used += (uint64_t)bytes;
    if (arena->stats.used > arena->stats.peak) {
        arena->stats.peak = arena->stats.used;
    }
}

/* Cuts the block from a free extent. */
static enum kiln_status cut(struct arena *arena, uint64_t size, struct block *block) {
    if (size > arena->size - arena_large_from(arena)) {
        return KILN_JOB_TOO_LARGE;
    }
    uint32_t length = pages_of(size);
    uint32_t first = find(arena, length);
    if (first == NONE) {
        return KILN_NO_MEMORY;
    }
    uint32_t whole = length_at(arena, first);
    erase(arena, first);
    if (whole > length) {
        insert(arena, first + length, whole - length);
    }
    mark(arena, first, length, 0);
    block->offset = (uint64_t)first * ARENA_PAGE;
    block->size = (uint64_t)length * ARENA_PAGE;
    return KILN_OK;
}

/* Books a block that was cut. */
static void book(struct arena *arena, const struct block *block, uint16_t account) {
    arena->owner[block->offset / ARENA_PAGE] = account;
    count_used(arena, account, (int64_t)block->size, 1);
}

enum kiln_status arena_take(struct arena *arena, uint64_t size, struct block *block) {
    *block = (struct block){0};
    pthread_mutex_lock(&arena->lock);
    enum kiln_status status = cut(arena, size, block);
    if (status == KILN_OK) {
        book(arena, block, 0);
    }
    arena->stats.failures += status != KILN_OK;
    pthread_mutex_unlock(&arena->lock);
    return status;
}

/* What the share says; `rounded` bytes. */
static enum kiln_status share_check(const struct arena *arena, const struct holder *holder,
                                    uint64_t rounded, const struct block *own) {
    uint16_t number = accounts_find(arena->accounts, holder);
    uint64_t owned = own != NULL ? own->size : 0;
    if (holder_is_daemon(holder)) {
        return KILN_OK;
    }
    if (rounded > arena_most(arena) || owned > arena_most(arena) - rounded) {
        return KILN_JOB_TOO_LARGE;
    }
    bool alone = accounts_blocks(arena->accounts, number) == (owned > 0) &&
                 (owned == 0 || arena->owner[own->offset / ARENA_PAGE] == number);
    return accounts_allow(arena->accounts, number, alone, rounded, arena->size - arena->stats.used,
                          arena->size)
               ? KILN_OK
               : KILN_NO_MEMORY;
}

enum kiln_status arena_take_for(struct arena *arena, const struct holder *holder, uint64_t size,
                                const struct block *own, struct block *block) {
    *block = (struct block){0};
    pthread_mutex_lock(&arena->lock);
    enum kiln_status status = KILN_JOB_TOO_LARGE;
    if (size <= arena->size) {
        uint64_t rounded = (uint64_t)pages_of(size) * ARENA_PAGE;
        status = share_check(arena, holder, rounded, own);
        arena->stats.over_share += status == KILN_NO_MEMORY && find(arena, pages_of(size)) != NONE;
    }
    if (status == KILN_OK) {
        status = cut(arena, size, block);
        if (status == KILN_OK) {
            book(arena, block, accounts_open(arena->accounts, holder));
        }
    }
    arena->stats.failures += status != KILN_OK;
    pthread_mutex_unlock(&arena->lock);
    return status;
}

enum kiln_status arena_probe(struct arena *arena, const struct holder *holder, uint64_t size) {
    if (size > arena->size) {
        return KILN_JOB_TOO_LARGE;
    }
    pthread_mutex_lock(&arena->lock);
    enum kiln_status status =
        share_check(arena, holder, (uint64_t)pages_of(size) * ARENA_PAGE, NULL);
    arena->stats.failures += status != KILN_OK;
    arena->stats.over_share += status == KILN_NO_MEMORY && size <= arena->size - arena->stats.used;
    pthread_mutex_unlock(&arena->lock);
    return status;
}

/* Is this a block that was taken and not given back? Our own records decide. */
static bool is_taken(const struct arena *arena, const struct block *block) {
    return block->offset % ARENA_PAGE == 0 && block->size % ARENA_PAGE == 0 &&
           block->offset < arena->size &&
           arena->span[block->offset / ARENA_PAGE] == block->size / ARENA_PAGE;
}

void arena_trim(struct arena *arena, struct block *block, uint64_t size) {
    if (size >= block->size || pages_of(size) == block->size / ARENA_PAGE) {
        return; /* nothing to return, and so no lock */
    }
    pthread_mutex_lock(&arena->lock);
    assert(is_taken(arena, block));
    uint32_t first = (uint32_t)(block->offset / ARENA_PAGE);
    uint32_t whole = (uint32_t)(block->size / ARENA_PAGE);
    uint32_t length = pages_of(size);
    mark(arena, first, length, 0);
    release(arena, first + length, whole - length);
    block->size = (uint64_t)length * ARENA_PAGE;
    count_used(arena, arena->owner[first], -(int64_t)(whole - length) * ARENA_PAGE, 0);
    pthread_mutex_unlock(&arena->lock);
}

bool arena_extend(struct arena *arena, struct block *block, uint64_t size) {
    bool good = false;
    pthread_mutex_lock(&arena->lock);
    assert(is_taken(arena, block));
    if (size <= block->size || size > arena->size) {
        good = size <= block->size;
        goto out;
    }
    uint32_t first = (uint32_t)(block->offset / ARENA_PAGE);
    uint32_t whole = (uint32_t)(block->size / ARENA_PAGE);
    uint32_t length = pages_of(size), more = length - whole, next = first + whole;
    uint16_t number = arena->owner[first];
    bool apart = next == arena->low || (first < arena->low && size > ARENA_SMALL);
    if (apart || next >= arena->pages || !(arena->span[next] & SPAN_FREE) ||
        length_at(arena, next) < more ||
        (number != 0 &&
         !accounts_allow(arena->accounts, number, accounts_blocks(arena->accounts, number) == 1,
                         (uint64_t)more * ARENA_PAGE, arena->size - arena->stats.used,
                         arena->size))) {
        goto out;
    }
    uint32_t found = length_at(arena, next);
    erase(arena, next);
    if (found > more) {
        insert(arena, next + more, found - more);
    }
    mark(arena, first, length, 0);
    block->size = (uint64_t)length * ARENA_PAGE;
    count_used(arena, number, (int64_t)more * ARENA_PAGE, 0);
    good = true;
out:
    pthread_mutex_unlock(&arena->lock);
    return good;
}

void arena_give(struct arena *arena, struct block *block) {
    if (block->size == 0) {
        return;
    }
    pthread_mutex_lock(&arena->lock);
    assert(is_taken(arena, block));
    uint16_t account = arena->owner[block->offset / ARENA_PAGE];
    release(arena, (uint32_t)(block->offset / ARENA_PAGE), (uint32_t)(block->size / ARENA_PAGE));
    count_used(arena, account, -(int64_t)block->size, -1);
    pthread_mutex_unlock(&arena->lock);
    *block = (struct block){0};
}

void arena_stats(struct arena *arena, struct arena_stats *stats) {
    pthread_mutex_lock(&arena->lock);
    *stats = arena->stats;
    stats->holders = accounts_count(arena->accounts);
    for (uint32_t page = arena->roots[1]; page != NONE; page = arena->nodes[page].right) {
        stats->largest = (uint64_t)length_at(arena, page) * ARENA_PAGE;
    }
    pthread_mutex_unlock(&arena->lock);
}

size_t arena_holders(struct arena *arena, struct holding *holdings, size_t count) {
    pthread_mutex_lock(&arena->lock);
    size_t found = accounts_largest(arena->accounts, holdings, count);
    pthread_mutex_unlock(&arena->lock);
    return found;
}

void *arena_attach(int fd, size_t size) {
    struct stat facts;
    /* A mapping past the file's end would answer with SIGBUS. */
    if (size == 0 || fstat(fd, &facts) != 0 || (uint64_t)facts.st_size < size) {
        return NULL;
    }
    void *base = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (base == MAP_FAILED) {
        return NULL;
    }
    madvise(base, size, MADV_DONTDUMP);
    return base;
}
