/*
 * cache.c: a table of entries and two queues (cache.h). Any thread.
 */
#include "server/cache/cache.h"

#include <stdlib.h>
#include <string.h>

#define ENTRIES_MAX  (UINT64_C(1) << 20)
#define ENTRY_ROOM   8192u /* bytes of room for each: with its answers an entry takes up to 2 KiB */
#define GHOSTS       (1u << 14) /* keys remembered after their results were dropped */
#define SMALL_SHARE  10
#define ASKED_MAX    3  /* rounds that an entry can have saved up */
#define EVICT_STEPS  64 /* looks at entries while the lock is held */
#define EVICT_BATCH  16
#define EVICT_FACTOR 4 /* times its own size is what a result may drop for itself */

enum queue_name { QUEUE_SMALL, QUEUE_MAIN, QUEUES };

struct entry {
    struct digest key;
    struct entry *chain;         /* in its bucket */
    struct entry *newer, *older; /* in its queue */
    struct result *result;
    uint64_t bytes;
    uint8_t queue, asked;
};

struct queue {
    struct entry *newest, *oldest;
    uint64_t bytes;
};

struct cache {
    struct arena *arena;
    pthread_mutex_t lock;
    struct queue queues[QUEUES];
    struct entry **buckets;
    uint64_t mask, entries_max;
    uint64_t ghosts[GHOSTS];
    struct cache_stats stats;
};

static struct entry **place_of(struct cache *cache, const struct digest *key) {
    struct entry **place = &cache->buckets[key->low & cache->mask];
    while (*place != NULL && !digest_equal(&(*place)->key, key)) {
        place = &(*place)->chain;
    }
    return place;
}

static void queue_push(struct cache *cache, enum queue_name name, struct entry *entry) {
    struct queue *queue = &cache->queues[name];
    entry->queue = (uint8_t)name;
    entry->newer = NULL;
    entry->older = queue->newest;
    *(queue->newest != NULL ? &queue->newest->newer : &queue->oldest) = entry;
    queue->newest = entry;
    queue->bytes += entry->bytes;
}

static void queue_remove(struct cache *cache, struct entry *entry) {
    struct queue *queue = &cache->queues[entry->queue];
    *(entry->newer != NULL ? &entry->newer->older : &queue->newest) = entry->older;
    *(entry->older != NULL ? &entry->older->newer : &queue->oldest) = entry->newer;
    queue->bytes -= entry->bytes;
}

/* ---- dropped keys ---- */

static uint64_t *ghost_of(struct cache *cache, const struct digest *key) {
    return &cache->ghosts[(key->low >> 20) % GHOSTS];
}

static void ghost_add(struct cache *cache, const struct digest *key) {
    *ghost_of(cache, key) = key->high;
}

static bool ghost_take(struct cache *cache, const struct digest *key) {
    uint64_t *ghost = ghost_of(cache, key);
    bool found = *ghost == key->high;
    *ghost = found ? 0 : *ghost;
    return found;
}

/* ---- dropping ---- */

/* Out of table and queue; the entry is the caller's. */
static void entry_unlink(struct cache *cache, struct entry *entry) {
    *place_of(cache, &entry->key) = entry->chain;
    queue_remove(cache, entry);
    cache->stats.entries--;
    cache->stats.evicted++;
}

static void entry_free(struct entry *entry) {
    if (entry != NULL) {
        result_drop(entry->result);
        free(entry);
    }
}

/* Looks at the oldest entry of the queue whose turn it is: moves it on, or unlinks it. */
static struct entry *step_locked(struct cache *cache) {
    struct queue *small = &cache->queues[QUEUE_SMALL], *main = &cache->queues[QUEUE_MAIN];
    bool turn = main->oldest == NULL ||
                (small->oldest != NULL && small->bytes >= cache->stats.capacity / SMALL_SHARE);
    struct entry *entry = turn ? small->oldest : main->oldest;
    if (entry != NULL && entry->asked > 0) {
        queue_remove(cache, entry);
        entry->asked = turn ? 0 : (uint8_t)(entry->asked - 1);
        queue_push(cache, QUEUE_MAIN, entry);
        return NULL;
    }
    if (entry != NULL) {
        if (turn) {
            ghost_add(cache, &entry->key);
        }
        entry_unlink(cache, entry);
    }
    return entry;
}

/* Drops a few entries; returns their bytes, 0 if there is none left. */
static uint64_t evict(struct cache *cache) {
    struct entry *victims[EVICT_BATCH];
    uint64_t bytes = 0;
    size_t count = 0;
    pthread_mutex_lock(&cache->lock);
    for (int i = 0; cache->stats.entries > 0 && count < EVICT_BATCH; i++) {
        /* each look that drops nothing uses up a round of someone's */
        victims[count] = step_locked(cache);
        bytes += victims[count] != NULL ? victims[count]->bytes : 0;
        count += victims[count] != NULL;
        if (count > 0 && i >= EVICT_STEPS) {
            break;
        }
    }
    pthread_mutex_unlock(&cache->lock);
    for (size_t i = 0; i < count; i++) {
        entry_free(victims[i]);
    }
    return bytes;
}

/* ---- public ---- */

enum kiln_status cache_create(uint64_t bytes, struct cache **out) {
    enum kiln_status status = KILN_NO_MEMORY;
    struct cache *cache = calloc(1, sizeof *cache);
    if (cache == NULL) {
        return KILN_NO_MEMORY;
    }
    pthread_mutex_init(&cache->lock, NULL);
    cache->stats.capacity = bytes;
    cache->entries_max = bytes / ENTRY_ROOM < ENTRIES_MAX ? bytes / ENTRY_ROOM + 1 : ENTRIES_MAX;
    cache->mask = 1;
    while (cache->mask < cache->entries_max) {
        cache->mask *= 2;
    }
    cache->buckets = calloc(cache->mask, sizeof *cache->buckets);
    cache->mask--;
    if (cache->buckets != NULL) {
        status = arena_create_private((size_t)bytes, &cache->arena);
    }
    if (status == KILN_OK) {
        *out = cache;
    } else {
        cache_destroy(cache);
    }
    return status;
}

void cache_destroy(struct cache *cache) {
    if (cache == NULL) {
        return;
    }
    while (cache->buckets != NULL && evict(cache) > 0) {
    }
    arena_destroy(cache->arena);
    free(cache->buckets);
    pthread_mutex_destroy(&cache->lock);
    free(cache);
}

struct result *cache_find(struct cache *cache, const struct digest *key, uint64_t now_ns,
                          uint64_t age_ns) {
    struct result *result = NULL;
    struct entry *old = NULL;
    pthread_mutex_lock(&cache->lock);
    struct entry *entry = *place_of(cache, key);
    uint64_t age =
        entry != NULL && now_ns > entry->result->made_ns ? now_ns - entry->result->made_ns : 0;
    if (entry != NULL && age >= CACHE_LIFE_NS) {
        old = entry;
        entry_unlink(cache, entry);
    } else if (entry != NULL && age <= age_ns) {
        entry->asked = entry->asked < ASKED_MAX ? entry->asked + 1 : ASKED_MAX;
        result = result_hold(entry->result);
    }
    pthread_mutex_unlock(&cache->lock);
    entry_free(old);
    return result;
}

/* Whether a result is worth keeping; `*known` if it was asked for before. One that nobody may ever
   ask for again shall cost no copy and displace nothing: where there is no room left, or it is
   large, only its key is noted. */
static bool admit_locked(struct cache *cache, const struct digest *key, uint64_t bytes,
                         bool *known) {
    *known = ghost_take(cache, key);
    if (bytes > cache->stats.capacity / CACHE_SHARE) {
        return false;
    }
    uint64_t taken = cache->queues[QUEUE_SMALL].bytes + cache->queues[QUEUE_MAIN].bytes;
    bool room = taken + bytes <= cache->stats.capacity && cache->stats.entries < cache->entries_max;
    if ((bytes > CACHE_EAGER || !room) && !*known) {
        ghost_add(cache, key);
        return false;
    }
    return true;
}

bool cache_add(struct cache *cache, const struct digest *key, struct result *result) {
    struct entry *fresh = malloc(sizeof *fresh);
    struct result *replaced = NULL;
    bool known, stored = false;
    uint64_t bytes = (result->size / ARENA_PAGE + 1) * ARENA_PAGE;
    if (fresh == NULL) {
        return false;
    }
    pthread_mutex_lock(&cache->lock);
    struct entry **place = place_of(cache, key);
    if (*place != NULL) {
        replaced = (*place)->result;
        (*place)->result = result_hold(result);
        cache->queues[(*place)->queue].bytes += bytes - (*place)->bytes;
        (*place)->bytes = bytes;
        stored = true;
    } else if (admit_locked(cache, key, bytes, &known)) {
        *fresh = (struct entry){.key = *key, .result = result_hold(result), .bytes = bytes};
        *place = fresh;
        queue_push(cache, known ? QUEUE_MAIN : QUEUE_SMALL, fresh);
        cache->stats.entries++;
        fresh = NULL;
        stored = true;
    }
    *(stored ? &cache->stats.stored : &cache->stats.declined) += 1;
    bool full = cache->stats.entries > cache->entries_max;
    pthread_mutex_unlock(&cache->lock);
    free(fresh);
    result_drop(replaced);
    if (full) {
        evict(cache);
    }
    return stored;
}

/* A copy in the cache's own memory, or NULL. What is being sent to slow clients stays taken, so a
   result must not drop everything in the hope for room. */
static struct result *settled(struct cache *cache, const struct result *result) {
    struct block block = {0, 0};
    uint64_t dropped = 0, bytes = 1;
    while (arena_take(cache->arena, result->size, &block) != KILN_OK) {
        bytes = dropped < EVICT_FACTOR * result->size + ARENA_PAGE ? evict(cache) : 0;
        if (bytes == 0) {
            return NULL;
        }
        dropped += bytes;
    }
    memcpy(arena_at(cache->arena, block.offset), result_bytes(result), (size_t)result->size);
    struct result *copy = result_copy(result, cache->arena, &block);
    arena_give(cache->arena, &block);
    return copy;
}

/* Puts `copy` in the result's place, which it takes; NULL drops it. */
static void result_replace(struct cache *cache, const struct digest *key,
                           const struct result *result, struct result *copy) {
    struct entry *gone = NULL;
    struct result *unused = copy;
    pthread_mutex_lock(&cache->lock);
    struct entry *entry = *place_of(cache, key);
    if (entry != NULL && entry->result == result) {
        if (copy != NULL) {
            unused = entry->result; /* the entry's reference */
            entry->result = copy;
        } else {
            gone = entry;
            entry_unlink(cache, entry);
        }
    }
    pthread_mutex_unlock(&cache->lock);
    result_drop(unused);
    entry_free(gone);
}

void cache_settle(struct cache *cache, const struct digest *key, struct result *result) {
    result_replace(cache, key, result, settled(cache, result));
}

void cache_forget(struct cache *cache, const struct digest *key, const struct result *result) {
    result_replace(cache, key, result, NULL);
}

void cache_stats(struct cache *cache, struct cache_stats *stats) {
    struct arena_stats arena;
    arena_stats(cache->arena, &arena);
    pthread_mutex_lock(&cache->lock);
    *stats = cache->stats;
    pthread_mutex_unlock(&cache->lock);
    stats->used = arena.used;
}
