/*
 * workers.h: the worker processes of all devices, and what they tell those above.
 *
 * This room keeps one process a device alive and takes what comes on its sockets. Jobs it only
 * finds and hands up: what becomes of them, and what runs next, is decided by those who made the
 * table of call-backs. So nothing here knows who waits.
 *
 * Threads: the dispatcher's. Call-backs come on it, under the queue's lock unless said otherwise.
 */
#ifndef KILN_COMPUTE_DISPATCH_WORKERS_WORKERS_H
#define KILN_COMPUTE_DISPATCH_WORKERS_WORKERS_H

#include "compute/dispatch/state/run_queue.h"
#include "compute/dispatch/workers/spawn.h"

/** All are given. Jobs that end go to `finished`, whose done() is called afterwards. */
struct worker_events {
    /** A process is there, not ready yet: its descriptors are to be watched. False: they cannot be.
     */
    bool (*started)(void *context, const struct supervisor *supervisor);
    /** Nothing more comes on this descriptor. */
    void (*closed)(void *context, int fd);
    /** The first canary is back: the worker takes jobs from now on. */
    void (*ready)(void *context, struct supervisor *supervisor);
    /** The run of a job (not the canary) that is in its place no more has ended as `status`. */
    void (*answered)(void *context, struct supervisor *supervisor, struct job *job,
                     enum kiln_status status, uint32_t gathered, struct job_list *finished);
    /** All answers of one reading are in: there may be room. */
    void (*read)(void *context);
    /** The process is certainly gone, in this way: its jobs are still in their places. */
    void (*lost)(void *context, struct supervisor *supervisor, const char *how,
                 struct job_list *finished);
    /** Not even SIGKILL ends it: likewise, but its blocks stay taken. Only while stopping. */
    void (*stuck)(void *context, struct supervisor *supervisor, struct job_list *finished);
    /** Some device has become unavailable. */
    void (*unavailable)(void *context, struct job_list *finished);
    /** No worker can be started any more. Without the lock. */
    void (*spawner_lost)(void *context);
};

struct workers {
    struct run_queue *queue;
    struct spawner spawner;
    const struct worker_events *events;
    void *context;      /* of events */
    int slots, threads; /* as in dispatch_options */
    int gather;
    uint64_t device_bytes; /* limit of ours, 0: none */
};

#endif
