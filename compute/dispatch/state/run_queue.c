/*
 * run_queue.c: the dispatcher's state, and jobs moved about in it.
 */
#include "compute/dispatch/state/run_queue.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum kiln_status run_queue_init(struct run_queue *queue) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&queue->lock, NULL);
    pthread_cond_init(&queue->idle, &attributes);
    pthread_condattr_destroy(&attributes);
    queue->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    queue->supervisors = calloc(DEVICES_MAX, sizeof *queue->supervisors);
    if (queue->supervisors == NULL) {
        return KILN_NO_MEMORY;
    }
    return queue->wake_fd >= 0 && job_ids_init(&queue->ids) ? KILN_OK : KILN_INTERNAL;
}

void run_queue_finish(struct run_queue *queue) {
    for (int i = 0; i < queue->count; i++) {
        arena_give(queue->arena, &queue->supervisors[i].control);
        arena_give(queue->arena, &queue->supervisors[i].reserve);
        free(queue->supervisors[i].description);
    }
    free(queue->supervisors);
    if (queue->wake_fd >= 0) {
        close(queue->wake_fd);
    }
    pthread_cond_destroy(&queue->idle);
    pthread_mutex_destroy(&queue->lock);
}

void run_queue_lock(struct run_queue *queue) {
    pthread_mutex_lock(&queue->lock);
}

void run_queue_unlock(struct run_queue *queue) {
    pthread_mutex_unlock(&queue->lock);
}

void run_queue_hurry(struct run_queue *queue, uint64_t when) {
    if (when < atomic_load_explicit(&queue->sweep_ns, memory_order_relaxed)) {
        atomic_store_explicit(&queue->sweep_ns, when, memory_order_relaxed);
    }
}

void run_queue_wake(struct run_queue *queue) {
    uint64_t one = 1;
    ssize_t written = write(queue->wake_fd, &one, sizeof one);
    (void)written; /* full means that a wake-up is on its way already */
}

int run_queue_running(const struct run_queue *queue) {
    int running = 0;
    for (int i = 0; i < queue->count; i++) {
        const struct supervisor *one = &queue->supervisors[i];
        running += one->flight.running - one->canary_running;
    }
    return running;
}

void run_queue_return(struct run_queue *queue, struct job *job) {
    job->state = JOB_QUEUED;
    job_list_insert(&queue->waiting, job);
}

void run_queue_end(struct run_queue *queue, struct job *job, enum kiln_status status,
                   const char *detail, struct job_list *finished) {
    struct run_counts *counts = &queue->counts;
    if (status == KILN_CANCELLED && job->revoked) {
        status = KILN_REVOKED;
        detail = "another request cancelled the job";
    }
    job->status = status;
    job->state = JOB_FREE;
    job->timing.total = (double)(clock_ns() - job->submitted_ns) * 1e-6;
    if (status == KILN_OK) {
        counts->completed++;
        arena_trim(queue->arena, &job->result, job->result_size);
    } else {
        job->result_size = 0;
        arena_give(queue->arena, &job->result);
        *(status_cancelled(status) ? &counts->cancelled : &counts->failed) += 1;
        if (detail != job->detail) {
            snprintf(job->detail, sizeof job->detail, "%s", detail != NULL ? detail : "");
        }
    }
    job_list_push(finished, job);
}

void run_queue_complete(struct run_queue *queue, struct job_list *finished) {
    size_t count = finished->count;
    if (count == 0) {
        return;
    }
    struct job *next;
    for (struct job *job = finished->head; job != NULL; job = next) {
        next = job->next;
        job->next = job->previous = NULL;
        job->done(job); /* the job is its owner's from here on */
    }
    *finished = (struct job_list){0};
    run_queue_lock(queue);
    queue->outstanding -= count;
    if (queue->outstanding == 0) {
        pthread_cond_broadcast(&queue->idle);
    }
    run_queue_unlock(queue);
}
