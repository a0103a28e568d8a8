/*
 * job_list.h: jobs in a row, linked by their own next and previous.
 *
 * A job is in one list at most. Threads: as the list's owner says.
 */
#ifndef KILN_COMPUTE_DISPATCH_STATE_JOB_LIST_H
#define KILN_COMPUTE_DISPATCH_STATE_JOB_LIST_H

#include "compute/jobs/job.h"

struct job_list {
    struct job *head, *tail;
    size_t count;
};

void job_list_push(struct job_list *list, struct job *job);
void job_list_remove(struct job_list *list, struct job *job);
/** Puts the job in front of those that were submitted after it, in a list in that order. */
void job_list_insert(struct job_list *list, struct job *job);
/** All that is in the list, which is empty afterwards. */
struct job_list job_list_take(struct job_list *list);

#endif
