/*
 * engine.h: threads with connections that send a scenario's requests.
 *
 * Closed loop (rate 0): every connection has one request under way. Open loop: requests are due at
 * a constant or Poisson rate whatever the answers do, and a late one counts from when it was due,
 * so that a stalled server is not spared the requests that it kept from being sent (coordinated
 * omission). Requests that are due wait in the schedule itself, in no queue.
 *
 * The measuring thread cuts the run into windows: engine_window ends one, each client thread hands
 * over what it counted and goes on with the next. Threads: all calls from one thread.
 */
#ifndef KILN_BENCH_LOAD_ENGINE_H
#define KILN_BENCH_LOAD_ENGINE_H

#include "bench/load/scenario.h"
#include "bench/load/tally.h"

#include <stdatomic.h>

#define CONNECTIONS_MAX 8192
#define THREADS_MAX     64

struct load {
    const struct target *target;
    const struct scenario *scenario; /* prepared */
    size_t connections, threads;     /* 1 to their limits, threads <= connections */
    double rate;                     /* requests a second; 0: closed loop */
    bool poisson;
    uint64_t count;      /* send exactly so many; 0: until the end */
    uint64_t timeout_ns; /* of one request */
    uint64_t spin_ns;    /* open loop: awake so long before a request is due */
    uint64_t seed;
    atomic_uint_least64_t *number; /* of the next request: ${i} */
};

struct engine;

/** Starts the threads. NULL with a sentence in `why`. */
struct engine *engine_create(const struct load *load, char *why, size_t why_size);

/** Ends a window: what was counted since the last call is added to `tally` (NULL: dropped), and the
    time that it covers to `seconds`. */
void engine_window(struct engine *engine, struct tally *tally, double *seconds);

/** Requests that ended so far, rightly or not. */
uint64_t engine_outcomes(const struct engine *engine);

/** True once `count` requests have an outcome. */
bool engine_finished(const struct engine *engine);

/** Sends nothing any more, waits for what is under way and adds it to `tally`; in open loop also
   what was due and not sent. */
void engine_drain(struct engine *engine, struct tally *tally);

/** Drains if need be, closes the connections, ends the threads. NULL is fine. */
void engine_destroy(struct engine *engine);

/** CLOCK_MONOTONIC in nanoseconds. */
uint64_t load_clock_ns(void);

#endif
