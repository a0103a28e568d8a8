/*
 * result_reuse.h: no job is run whose result is here already or on its way.
 *
 * What a request may have: a kept result (cache.h), a share in a job that runs (single_flight.h),
 * or a job of its own, by its Cache-Control: `no-cache` wants a new run, `no-store` wants one that
 * is not kept either, `max-age` limits the age of what it takes. All formats are reused; JSON tells
 * the timing of the run that made it.
 *
 * Deadlines: a job ends at the deadline of the request that brought it. Those who share it and have
 * time left then start over with one of them in front; all other ends of a job are shared.
 *
 * Threads: the listener's and the loader's; the ends of jobs come on the dispatcher's.
 */
#ifndef KILN_SERVER_JOBS_RESULT_REUSE_H
#define KILN_SERVER_JOBS_RESULT_REUSE_H

#include "server/cache/cache.h"
#include "server/cache/etag.h"
#include "server/http/request.h"

#define REUSE_MOVING 8

struct result_reuse {
    struct cache *cache;
    struct single_flight flights;
    uint8_t secret[ETAG_SECRET_SIZE];
    _Atomic uint64_t hits, misses, shared, refused;
    _Atomic uint64_t moving; /* bytes of results that wait for the loader in blocks of jobs */
};

/** `bytes` for kept results; 0: every request runs its own job, and `*reuse` is NULL. */
enum kiln_status result_reuse_create(uint64_t bytes, struct result_reuse **reuse);
/** No request may be left. NULL is allowed. */
void result_reuse_destroy(struct result_reuse *reuse);

/** Reads what the request wishes. Before the other calls. */
void result_reuse_begin(struct http_request *request);
/** A GET whose address this thread has seen before: fills in digest, ETag and format; else false.
 */
bool result_reuse_recall(struct http_request *request);
/** Remembers the address that result_reuse_recall did not know, on the same thread. */
void result_reuse_remember(const struct http_request *request);
/** True if there is a kept result, which the request holds now. */
bool result_reuse_find(struct http_request *request);
/** Submits the request's job, or lets it wait for one like it. The request is suspended, and is
    resumed with job.status and, where that is KILN_OK, its result. Within service_enter … leave.
    Nothing may touch the request afterwards. */
void result_reuse_submit(struct http_request *request, struct dispatch *dispatch);
/** The request ends: its result is kept, or dropped. A large one is moved by the loader, as long
   as what waits for that takes no more than 1/REUSE_MOVING of the arena from jobs; more is not
   kept. */
void result_reuse_end(struct http_request *request);

#endif
