/*
 * cache.h: results that are kept for the next one who asks.
 *
 * Memory: an arena of its own, so what is kept never takes room from jobs, and never more than was
 * set. A new result is found at once, still in the job's block; once it has been sent, its bytes
 * move here (cache_settle), so that nobody waits for the copy.
 *
 * What stays (S3-FIFO with a doorkeeper): as long as there is room, every result is kept. A full
 * cache takes only those whose key it remembers: from a first asking, when just the key was noted,
 * or from being dropped. So results that nobody asks for twice cost no copy and displace nothing.
 * What was kept at first sight waits in one queue, and is dropped at its end unless it was asked
 * for again; the rest is in the main queue, where each asking buys another round. Results above
 * CACHE_EAGER bytes are kept from the second time on only.
 *
 * Threads: any. One lock, held for a few pointers' time; copying, and freeing what was dropped, are
 * done without it.
 */
#ifndef KILN_SERVER_CACHE_CACHE_H
#define KILN_SERVER_CACHE_CACHE_H

#include "server/cache/result.h"

#define CACHE_EAGER   (UINT64_C(1) << 20)        /* bytes that are kept at first sight */
#define CACHE_SHARE   8                          /* a result may fill 1/8 of the room */
#define CACHE_LIFE_NS (UINT64_C(86400000000000)) /* a day, as answers say in max-age */

struct cache;

struct cache_stats {
    uint64_t capacity, used;   /* bytes; used includes what was dropped and is being sent */
    uint64_t entries;          /* kept now */
    uint64_t stored, declined; /* of cache_add */
    uint64_t evicted;          /* entries dropped for others or for their age */
};

/** `bytes`: all that results may take. Errors: KILN_NO_MEMORY, KILN_INTERNAL. */
enum kiln_status cache_create(uint64_t bytes, struct cache **cache);
/** Nobody may hold a result of it any more. NULL is allowed. */
void cache_destroy(struct cache *cache);

/** The result of this key with a reference for the caller, or NULL; older ones than `age_ns` at
    `now_ns` count as missing. */
struct result *cache_find(struct cache *cache, const struct digest *key, uint64_t now_ns,
                          uint64_t age_ns);
/** Lets others find the result; in place of an older one of this key. True if it was taken: then
    call cache_settle, or cache_forget, with it later, holding a reference; on any thread, and it
   may have been replaced or dropped by then. */
bool cache_add(struct cache *cache, const struct digest *key, struct result *result);
/** Moves the bytes of a result that was added into the cache's own memory, dropping others for it;
    where there is no room, it is not kept. */
void cache_settle(struct cache *cache, const struct digest *key, struct result *result);
/** Lets a result go again that was added and is not to be settled. */
void cache_forget(struct cache *cache, const struct digest *key, const struct result *result);
void cache_stats(struct cache *cache, struct cache_stats *stats);

#endif
