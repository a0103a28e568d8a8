/*
 * attempt.h: how a run of a job ends, and when it is retried.
 *
 * Threads: under the queue's lock, on the dispatcher's thread.
 */
#ifndef KILN_COMPUTE_DISPATCH_QUEUE_ATTEMPT_H
#define KILN_COMPUTE_DISPATCH_QUEUE_ATTEMPT_H

#include "compute/dispatch/state/run_queue.h"

/** The worker has answered: the job ends as `status`, or waits again for device memory. `gathered`
    jobs have shared the device's phases. */
void attempt_end(struct run_queue *queue, struct supervisor *supervisor, struct job *job,
                 enum kiln_status status, uint32_t gathered, struct job_list *finished);
/** The worker is certainly dead: its jobs wait again or end. `how` tells its death. */
void attempts_lose(struct run_queue *queue, struct supervisor *supervisor, const char *how,
                   struct job_list *finished);
/** Its end is not certain: completes those of its jobs whose deadline passed at `expired_ns` or
    before (UINT64_MAX: all of them), but keeps their blocks. */
void attempts_orphan(struct run_queue *queue, struct supervisor *supervisor, uint64_t expired_ns,
                     struct job_list *finished);

#endif
