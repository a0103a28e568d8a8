/*
 * run_queue.c: the dispatcher's state, and jobs moved about in it.
 */
#include "compute/dispatch/state/run_queue.h"

#include <errno.h>
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
    if (queue->supervisors == NULL || packets_init(&queue->packets) != KILN_OK) {
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
    packets_finish(&queue->packets);
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

/* Ends or returns a job that was on its way in a packet which could not be sent. */
static void unsent_settle(struct run_queue *queue, struct supervisor *supervisor,
                          struct place *place, struct job *job) {
    job->worker = place->before;
    if (supervisor_canary(supervisor, job)) {
        supervisor_canary_clear(supervisor);
    } else if (job->state == JOB_RUNNING) {
        run_queue_return(queue, job);
    } else {
        bool cancelled = job->state == JOB_CANCELLING;
        run_queue_end(queue, job, cancelled ? KILN_CANCELLED : KILN_DEADLINE,
                      cancelled ? NULL : "the job was stopped at its deadline", &queue->ended);
    }
}

/* The socket has not taken a packet: for now, or (`error`) never again. */
static void packet_return(struct run_queue *queue, const struct packet_target *target, int error) {
    struct supervisor *supervisor = target->supervisor;
    run_queue_lock(queue);
    for (int i = 0; supervisor->process == target->process && i < PLACES_MAX; i++) {
        struct place *place = &supervisor->flight.place[i];
        if (place->job != NULL && place->slot == target->slot) {
            unsent_settle(queue, supervisor, place, in_flight_clear(&supervisor->flight, i));
        }
    }
    if (supervisor->process == target->process && error != EAGAIN && error != ENOBUFS &&
        error != EINTR) {
        supervisor_kill(supervisor, "its socket is closed");
    }
    queue->starved = true;
    run_queue_hurry(queue, clock_ns() + 10 * MS);
    run_queue_unlock(queue);
    run_queue_wake(queue);
}

void run_queue_unlock(struct run_queue *queue) {
    struct packet *packet = packets_take(&queue->packets), *next;
    pthread_mutex_unlock(&queue->lock);
    for (; packet != NULL; packet = next) {
        struct packet_target target = packet->target;
        next = packet->next;
        int error = packet_send(&queue->packets, packet);
        if (error != 0) {
            packet_return(queue, &target, error);
        }
    }
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
