/*
 * result.h: the bytes of one finished job, shared by all who want them.
 *
 * A result lies in a block of an arena: the daemon's, as the worker wrote it, or the cache's own.
 * Its bytes and facts never change. Whoever sends it holds a reference until the last byte has
 * left, so that it can be dropped from the cache at any time.
 *
 * Threads: any; references are counted atomically. Ownership: the last reference gives the block
 * back.
 */
#ifndef KILN_SERVER_CACHE_RESULT_H
#define KILN_SERVER_CACHE_RESULT_H

#include "compute/jobs/job.h"

#include <pthread.h>
#include <stdatomic.h>

#define RESULT_ETAG_MAX      48
#define RESULT_PRECISION_MAX 48

struct MHD_Response;

/** What names a result: a hash of all that it depends on, with a secret of this process, so that
    nobody can make another request with the same one. All zero: none. */
struct digest {
    uint64_t high, low;
};

struct result {
    _Atomic unsigned refs;
    struct arena *arena;
    struct block block;
    uint64_t size; /* bytes */

    /* of the run that made it */
    uint64_t made_ns; /* clock_ns */
    struct job_id job;
    enum format format;
    struct remarks remarks;
    char device[24];
    char precision[RESULT_PRECISION_MAX]; /* header Kiln-Precision; "": none */
    char etag[RESULT_ETAG_MAX];

    /* answers that are ready to be sent: plain, and negotiated (with Vary) */
    pthread_mutex_t lock;
    struct MHD_Response *answers[2];
    uint64_t ages[2]; /* seconds, as they say */
    void (*forget)(struct MHD_Response *answer);
};

bool digest_equal(const struct digest *one, const struct digest *other);
bool digest_empty(const struct digest *digest);

/** A result with one reference, from a block that moves to it. NULL if memory ran out: the block
    stays the caller's then. Facts are the caller's to fill in before others see it. */
struct result *result_create(struct arena *arena, struct block *block, uint64_t size);
/** A copy of the facts over another block, which moves; answers are not copied. */
struct result *result_copy(const struct result *result, struct arena *arena, struct block *block);
struct result *result_hold(struct result *result);
/** Drops a reference. NULL is allowed. */
void result_drop(struct result *result);
const void *result_bytes(const struct result *result);

#endif
