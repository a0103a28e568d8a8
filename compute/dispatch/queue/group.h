/*
 * group.h: which waiting jobs run together.
 *
 * Threads: under the queue's lock.
 */
#ifndef KILN_COMPUTE_DISPATCH_QUEUE_GROUP_H
#define KILN_COMPUTE_DISPATCH_QUEUE_GROUP_H

#include "compute/dispatch/state/run_queue.h"

/** Fills `group` with the waiting job and those behind it that may run with it on this worker now,
    and returns how many they are: no more than the job's share of what waits. */
int group_find(const struct run_queue *queue, const struct supervisor *supervisor, struct job *job,
               struct job *group[GROUP_MAX]);

#endif
