/*
 * supervise.h: one device's worker process: its start, its signs of life, its end.
 *
 * Threads: the dispatcher's, without the queue's lock.
 */
#ifndef KILN_COMPUTE_DISPATCH_WORKERS_SUPERVISE_H
#define KILN_COMPUTE_DISPATCH_WORKERS_SUPERVISE_H

#include "compute/dispatch/workers/workers.h"

/** Starts the process (WAITING → WARMING). */
void supervise_start(struct workers *workers, struct supervisor *supervisor);
/** Events of the worker's descriptors. Harmless when nothing has happened. */
void supervise_on_jobs(struct workers *workers, struct supervisor *supervisor);
void supervise_on_control(struct workers *workers, struct supervisor *supervisor);
void supervise_on_death(struct workers *workers, struct supervisor *supervisor);
/** The spawner is lost, and all workers with it: the spawner's call-back, with the workers. */
void supervise_spawner_gone(void *workers);
/** Ends all workers: asks, waits at most a second, kills, reaps. */
void supervise_stop(struct workers *workers);

#endif
