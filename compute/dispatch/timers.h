/*
 * timers.h: what happens because time has passed.
 *
 * Thread: the dispatcher's, without the queue's lock.
 */
#ifndef KILN_COMPUTE_DISPATCH_TIMERS_H
#define KILN_COMPUTE_DISPATCH_TIMERS_H

#include "compute/dispatch/workers/workers.h"

#include <poll.h>

struct timers {
    struct run_queue *queue;
    struct workers *workers;
    uint64_t hangup_ns; /* when clients are looked at next */
    uint64_t awake_ns;  /* last time the loop turned */

    struct pollfd *watched; /* room for every job there can be */
    struct job **watched_jobs;
    size_t watched_max;
};

/** `timers` is zeroed but for queue and workers. KILN_NO_MEMORY. */
enum kiln_status timers_init(struct timers *timers);
void timers_finish(struct timers *timers);
/** Does all that is due; sets the queue's sweep_ns. */
void timers_sweep(struct timers *timers, uint64_t now);

#endif
