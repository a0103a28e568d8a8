/*
 * match.h: which devices can run a job at all.
 *
 * Threads: any, under the queue's lock.
 */
#ifndef KILN_COMPUTE_DISPATCH_QUEUE_MATCH_H
#define KILN_COMPUTE_DISPATCH_QUEUE_MATCH_H

#include "compute/dispatch/state/run_queue.h"

/** KILN_OK where a device could run the job, now or after starting. KILN_NO_DEVICE: none can now.
    KILN_INCAPABLE: nor ever will, as the daemon was started. Says why not. */
enum kiln_status match_admit(const struct run_queue *queue, const struct job *job, char *why,
                             size_t why_size);

#endif
