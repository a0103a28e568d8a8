/*
 * canary.h: the job that asks a device whether it still answers.
 *
 * Threads: the dispatcher's, under the queue's lock.
 */
#ifndef KILN_COMPUTE_DISPATCH_WORKERS_CANARY_H
#define KILN_COMPUTE_DISPATCH_WORKERS_CANARY_H

#include "compute/dispatch/workers/workers.h"

/** Sends a canary; where that cannot be now, it is tried again. Kinds without one count as good. */
void canary_send_locked(struct workers *workers, struct supervisor *supervisor, uint64_t now);
/** The canary's answer is in. */
void canary_end_locked(struct workers *workers, struct supervisor *supervisor,
                       enum kiln_status status);
/** Takes what a worker's canaries need, once. Errors as arena_take. */
enum kiln_status canary_reserve_locked(struct workers *workers, struct supervisor *supervisor);

#endif
