/*
 * memory.h: what fits where: results in the arena, arrays in the devices' memory.
 *
 * Threads: under the queue's lock.
 */
#ifndef KILN_COMPUTE_DISPATCH_QUEUE_MEMORY_H
#define KILN_COMPUTE_DISPATCH_QUEUE_MEMORY_H

#include "compute/dispatch/state/run_queue.h"

/** False where no device that the job may run on could ever hold it; writes its detail. */
bool memory_possible(const struct run_queue *queue, struct job *job);
/** Takes a job's result block, within its client's share of the arena. Errors as arena_take_for;
   the log is told. */
enum kiln_status memory_take_result(struct run_queue *queue, struct job *job);
/** The result block of a new job with an input, where there is one; KILN_OK also where it may wait.
    Writes the job's detail. */
enum kiln_status memory_reserve(struct run_queue *queue, struct job *job);
/** KILN_JOB_TOO_LARGE where input and result could never lie in the arena together, however empty
    it is; KILN_NO_MEMORY where they cannot for where the input lies. Writes the job's detail. */
enum kiln_status memory_admit(const struct run_queue *queue, struct job *job);
/** Puts a job back that ran out of device memory; false if it has been tried often enough. */
bool memory_retry(struct run_queue *queue, struct supervisor *supervisor, struct job *job);
/** Where the queue is full and more than half of it waits for room, the youngest of those gives way
    (true): what clients do not take off our hands does not keep others from waiting. */
bool memory_displace(struct run_queue *queue);
/** When jobs wait for each other's inputs, the youngest gives way. */
void memory_unlock(struct run_queue *queue, uint64_t now, struct job_list *finished);

#endif
