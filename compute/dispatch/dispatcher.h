/*
 * dispatcher.h: the dispatcher's parts together, for the files that implement dispatch.h.
 */
#ifndef KILN_COMPUTE_DISPATCH_DISPATCHER_H
#define KILN_COMPUTE_DISPATCH_DISPATCHER_H

#include "compute/dispatch/loop.h"
#include "compute/dispatch/timers.h"
#include "compute/dispatch/workers/workers.h"

struct dispatch {
    struct run_queue queue;
    struct workers workers;
    struct timers timers;
    struct loop loop;
    struct spawned store; /* its process; pid 0: none was started */
    uint64_t deadline_ns; /* length */
    bool driven;          /* no thread: the caller turns the loop */
    void (*lost)(void *context);
    void *lost_context;
};

#endif
