/*
 * answer.h: what a worker answers, judged.
 *
 * Threads: the dispatcher's, under the queue's lock.
 */
#ifndef KILN_COMPUTE_DISPATCH_WORKERS_ANSWER_H
#define KILN_COMPUTE_DISPATCH_WORKERS_ANSWER_H

#include "compute/dispatch/workers/workers.h"
#include "compute/worker/command.h"

/** Takes one answer; false if it makes no sense. */
bool answer_take_locked(struct workers *workers, struct supervisor *supervisor,
                        const struct answer *answer, struct job_list *finished);

#endif
