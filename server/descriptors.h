/*
 * descriptors.h: how many connections the limit of open files allows.
 *
 * A connection is a descriptor, and so is everything else: sockets and pidfds of workers, event
 * loops, files that are read now and then. What those need, and what it takes to start a worker
 * anew, is kept back, so that no flood of connections can stand in the way.
 *
 * Threads: the main thread, at the start.
 */
#ifndef KILN_SERVER_DESCRIPTORS_H
#define KILN_SERVER_DESCRIPTORS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What descriptors are for. */
struct descriptors {
    uint64_t limit; /* of open files, RLIMIT_NOFILE */
    uint64_t kept;  /* for all but connections and those that linger */
    uint64_t connections, lingers;
};

/** Raises the soft limit as far as `connections` want it and the hard one lets it; returns it. */
uint64_t descriptors_raise(uint64_t connections);
/** Shares out `limit` descriptors: `open` are in use, `loops` event loops are to come, and
   `devices` may each have a worker. At most `connections`; false where not even a few are left. */
bool descriptors_plan(uint64_t limit, uint64_t open, uint64_t loops, uint64_t devices,
                      uint64_t connections, struct descriptors *plan);
/** How many are open now. */
uint64_t descriptors_open(void);

#endif
