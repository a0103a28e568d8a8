/*
 * result_reuse.h: no job is run whose result is here already or on its way.
 *
 * What a record may have: a kept result (cache.h), a share in a job that runs (single_flight.h), or
 * a job of its own, as its order wishes: `find`, `keep`, `age_ns`. All formats are reused; JSON
 * tells the timing of the run that made it.
 *
 * Deadlines: a job ends at the deadline of the record that brought it. Those who share it and have
 * time left then start over with one of them in front; all other ends of a job are shared.
 *
 * Threads: the makers' and the offload's; the ends of jobs come on the executor's.
 */
#ifndef KILN_SERVER_JOBS_RESULT_REUSE_H
#define KILN_SERVER_JOBS_RESULT_REUSE_H

#include "server/cache/cache.h"
#include "server/cache/etag.h"
#include "server/jobs/record.h"

#define REUSE_MOVING 8

struct result_reuse {
    struct cache *cache;
    struct single_flight flights;
    uint8_t secret[ETAG_SECRET_SIZE];
    _Atomic uint64_t hits, misses, shared, refused;
    _Atomic uint64_t moving; /* bytes of results that wait to be copied in blocks of jobs */
};

/** `bytes` for kept results; 0: every record runs its own job, and `*reuse` is NULL. */
enum kiln_status result_reuse_create(uint64_t bytes, struct result_reuse **reuse);
/** No record may be left. NULL is allowed. */
void result_reuse_destroy(struct result_reuse *reuse);

/** Notes what stands for a record's result before it is read; `address` NULL: nothing does. */
void result_reuse_address(struct job_record *record, const char *address);
/** An address that this thread has seen before: fills in digest, ETag and format; else false. */
bool result_reuse_recall(struct job_record *record);
/** Remembers the address that result_reuse_recall did not know, on the same thread. */
void result_reuse_remember(const struct job_record *record);
/** True if there is a kept result, which the record holds now. */
bool result_reuse_find(struct job_record *record);
/** Submits the record's job, or lets it wait for one like it. It ends with job.status and, where
    that is KILN_OK, its result. Within jobs_enter … leave. Nothing may touch the record afterwards.
 */
void result_reuse_submit(struct job_record *record);
/** The record goes: its result is kept, or dropped. A large one is moved by an offload's thread, as
    long as what waits for that takes no more than 1/REUSE_MOVING of the arena from jobs; more is
    not kept. */
void result_reuse_end(struct job_record *record);

#endif
