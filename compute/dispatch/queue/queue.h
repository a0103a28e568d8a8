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
/** Could a device run a job that wants `wanted`, now or after starting? Otherwise says why not. */
bool queue_has_device(const struct run_queue *queue, const char *wanted, char *why,
                      size_t why_size);
/** Ends waiting jobs that no device will ever run. */
void queue_reject(struct run_queue *queue, struct job_list *finished);

#endif
