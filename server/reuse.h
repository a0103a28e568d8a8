/*
 * reuse.h: no job is run whose result is here already or on its way.
 *
 * What a request may have: a kept result (cache.h), a share in a job that runs (flight.h), or a job
 * of its own, by its Cache-Control: `no-cache` wants a new run, `no-store` wants one that is not
 * kept either, `max-age` limits the age of what it takes. All formats are reused; JSON tells the
 * timing of the run that made it.
 *
 * Deadlines: a job ends at the deadline of the request that brought it. Those who share it and have
 * time left then start over with one of them in front; all other ends of a job are shared.
 *
 * Threads: the listener's and the loader's; the ends of jobs come on the dispatcher's.
 */
#ifndef KILN_SERVER_REUSE_H
#define KILN_SERVER_REUSE_H

#include "server/cache.h"
#include "server/etag.h"
#include "server/exchange.h"

#define REUSE_MOVING 8

struct reuse {
    struct cache *cache;
    struct flights flights;
    uint8_t secret[ETAG_SECRET_SIZE];
    _Atomic uint64_t hits, misses, shared, refused;
    _Atomic uint64_t moving; /* bytes of results that wait for the loader in blocks of jobs */
};

/** `bytes` for kept results; 0: every request runs its own job, and `*reuse` is NULL. */
enum kiln_status reuse_create(uint64_t bytes, struct reuse **reuse);
/** No exchange may be left. NULL is allowed. */
void reuse_destroy(struct reuse *reuse);

/** Reads what the request wishes. Before the other calls. */
void reuse_begin(struct exchange *exchange);
/** A GET whose address this thread has seen before: fills in digest, ETag and format; else false.
 */
bool reuse_recall(struct exchange *exchange);
/** Remembers the address that reuse_recall did not know, on the same thread. */
void reuse_remember(const struct exchange *exchange);
/** True if there is a kept result, which the exchange holds now. */
bool reuse_find(struct exchange *exchange);
/** Submits the exchange's job, or lets it wait for one like it. The exchange is suspended, and is
    resumed with job.status and, where that is KILN_OK, its result. Within service_enter … leave.
    Nothing may touch the exchange afterwards. */
void reuse_submit(struct exchange *exchange, struct dispatch *dispatch);
/** The exchange ends: its result is kept, or dropped. A large one is moved by the loader, as long
   as what waits for that takes no more than 1/REUSE_MOVING of the arena from jobs; more is not
   kept. */
void reuse_end(struct exchange *exchange);

#endif
