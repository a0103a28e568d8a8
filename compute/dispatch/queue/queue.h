/*
 * queue.h: which job runs next, and where.
 *
 * Threads: under the queue's lock.
 */
#ifndef KILN_COMPUTE_DISPATCH_QUEUE_QUEUE_H
#define KILN_COMPUTE_DISPATCH_QUEUE_QUEUE_H

#include "compute/dispatch/state/run_queue.h"

/** Takes a new job: sends it at once or lets it wait. KILN_BUSY leaves it the caller's. */
enum kiln_status queue_take(struct run_queue *queue, struct job *job);
/** Sends whatever can be sent now. */
void queue_pump(struct run_queue *queue);
/** Ends waiting jobs that no device will ever run. */
void queue_reject(struct run_queue *queue, struct job_list *finished);

#endif
