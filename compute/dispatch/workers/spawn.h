/*
 * spawn.h: child processes, as the front has them: through the spawner (compute/worker/spawner.h).
 *
 * Threads: the dispatcher's, and that of dispatch_create and dispatch_destroy while there is none;
 * without the queue's lock.
 */
#ifndef KILN_COMPUTE_DISPATCH_WORKERS_SPAWN_H
#define KILN_COMPUTE_DISPATCH_WORKERS_SPAWN_H

#include "compute/core/status.h"
#include "compute/worker/spawner.h"

#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

/** The process that starts the workers. */
struct spawner {
    pid_t pid;
    int pidfd, socket;           /* -1: none */
    bool lost;                   /* ended or silent: nothing can be started any more */
    void (*gone)(void *context); /* called once when it is lost */
    void *context;
};

/** A child; descriptors that it has not are -1. */
struct spawned {
    pid_t pid;
    int pidfd, job_fd, control_fd;
};

/** Starts `program spawner`, and ends it. `gone` is set before. Errors: KILN_INTERNAL, logged. */
enum kiln_status spawner_start(struct spawner *spawner, const char *program);
void spawner_stop(struct spawner *spawner);
/** Its socket has something to say, which is its end. */
void spawner_on_event(struct spawner *spawner);
/** Starts the worker that the request describes (device, slots, threads, arena_size,
    device_bytes). Errors: KILN_INTERNAL with the reason in `why`. */
enum kiln_status spawn_worker(struct spawner *spawner, struct spawner_request request, int arena_fd,
                              struct spawned *spawned, char *why, size_t why_size);
/** Ends the store that `spawned` has been given before, if any, and starts one by the request
   (boot, store_bytes, store_jobs, arena_size); its socket is in `job_fd`, the caller's. Errors:
    KILN_INTERNAL, logged. */
enum kiln_status spawn_store(struct spawner *spawner, struct spawner_request request, int arena_fd,
                             struct spawned *spawned);
/** Reaps a worker that has ended and tells how; false if it lives. */
bool spawn_ended(struct spawner *spawner, const struct spawned *spawned, char *how, size_t size);
/** Runs the probe for at most `timeout_ms` and collects its output, NUL-terminated. */
enum kiln_status spawn_probe(struct spawner *spawner, int timeout_ms, char *output, size_t capacity,
                             size_t *size);

#endif
