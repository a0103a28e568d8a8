/*
 * client.h: one thread of an engine: its connections, its share of the schedule, what it counts.
 *
 * Shared with the engine's own thread are the atomics of `struct common`, and the sum under its
 * lock.
 */
#ifndef KILN_BENCH_LOAD_CLIENT_H
#define KILN_BENCH_LOAD_CLIENT_H

#include "bench/load/engine.h"

#include <pthread.h>

enum stage { STAGE_RUN, STAGE_DRAIN, STAGE_STOP };

struct common {
    struct load load;
    atomic_int stage;
    atomic_uint window;             /* a client hands over when it changes */
    atomic_uint handed;             /* clients that have */
    atomic_int_least64_t budget;    /* of requests still to be sent, with `count` */
    atomic_uint_least64_t outcomes; /* requests that ended, rightly or not */
    atomic_uint_least64_t end_ns;   /* when the last window ended */
    pthread_mutex_t lock;
    struct tally *sum; /* under the lock */
};

struct load_client;

/** `connections` of its own; client `index` of all. NULL with a sentence in `why`. */
struct load_client *client_create(struct common *common, size_t index, size_t connections,
                                  char *why, size_t why_size);
bool client_start(struct load_client *client);
/** Makes it look at the stage and the window now. */
void client_poke(struct load_client *client);
/** Joins the thread if it was started. */
void client_destroy(struct load_client *client);

#endif
