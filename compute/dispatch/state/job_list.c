/*
 * job_list.c: jobs in a row.
 */
#include "compute/dispatch/state/job_list.h"

void job_list_push(struct job_list *list, struct job *job) {
    job->next = NULL;
    job->previous = list->tail;
    *(list->tail != NULL ? &list->tail->next : &list->head) = job;
    list->tail = job;
    list->count++;
}

void job_list_remove(struct job_list *list, struct job *job) {
    *(job->previous != NULL ? &job->previous->next : &list->head) = job->next;
    *(job->next != NULL ? &job->next->previous : &list->tail) = job->previous;
    job->next = job->previous = NULL;
    list->count--;
}

void job_list_insert(struct job_list *list, struct job *job) {
    struct job *before = list->head;
    while (before != NULL && before->number < job->number) {
        before = before->next;
    }
    if (before == NULL) {
        job_list_push(list, job);
        return;
    }
    job->next = before;
    job->previous = before->previous;
    *(before->previous != NULL ? &before->previous->next : &list->head) = job;
    before->previous = job;
    list->count++;
}

struct job_list job_list_take(struct job_list *list) {
    struct job_list taken = *list;
    *list = (struct job_list){0};
    return taken;
}
