/*
 * rate_limit.h: how much one key may ask for: a token bucket, and a count of requests in hand.
 *
 * The bucket is one atomic number, the moment at which it will be full again: a request moves that
 * moment on by the time in which one token flows in, and is refused where it would come to lie
 * further ahead than the whole bucket takes to fill. So event loops share buckets without a lock,
 * and the caller's clock is the only one (tests bring their own).
 *
 * Threads: any. Times are clock_ns().
 */
#ifndef KILN_SERVER_AUTH_RATE_LIMIT_H
#define KILN_SERVER_AUTH_RATE_LIMIT_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define RATE_MIN  0.001 /* requests a second */
#define RATE_MAX  1e6
#define BURST_MAX 1000000 /* so that burst / rate is at most 10^9 seconds */

struct bucket {
    _Atomic uint64_t full_ns; /* 0 to begin with: full */
};

/** What a request found. */
struct quota {
    uint64_t left;   /* requests that would be taken now, after this one */
    uint64_t full_s; /* seconds until the bucket is full, rounded up */
    uint64_t wait_s; /* refused: seconds until one would be taken, at least 1; else 0 */
};

/** Nanoseconds in which one token flows in. `rate` from RATE_MIN to RATE_MAX. */
uint64_t bucket_step(double rate);
/** Takes one token of at most `burst`; false, and nothing taken, if there is none. */
bool bucket_take(struct bucket *bucket, uint64_t step_ns, uint64_t burst, uint64_t now_ns,
                 struct quota *quota);

/** Requests in hand; false, and not counted, where there are `limit` already. */
bool running_enter(_Atomic uint64_t *running, uint64_t limit);
void running_leave(_Atomic uint64_t *running);

#endif
