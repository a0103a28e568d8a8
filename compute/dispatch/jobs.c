/*
 * jobs.c: unfinished jobs as others see them, and cancelling one.
 *
 * Views are copied under the lock and shown without it. A waiting job that is cancelled ends at
 * once, but its done() is the dispatcher's thread's to call: it goes through the list `ended`.
 *
 * Threads: any.
 */
#include "compute/dispatch/dispatch.h"

#include "compute/dispatch/dispatcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static double seconds_since(uint64_t then, uint64_t now) {
    return now > then ? (double)(now - then) * 1e-9 : 0;
}

static void view_fill(const struct job *job, const char *device, uint64_t now,
                      struct job_view *view) {
    *view = (struct job_view){
        .id = job->id,
        .type = job->type->name,
        .owner = job->owner,
        .attempt = job->attempt,
        .age_s = seconds_since(job->submitted_ns, now),
        .cost = job->plan.cost,
    };
    snprintf(view->device, sizeof view->device, "%s", device);
    memcpy(view->request_id, job->request_id, sizeof view->request_id);
}

static void running_view(const struct supervisor *supervisor, int place, uint64_t now,
                         struct job_view *view) {
    const struct job *job = supervisor->flight.place[place].job;
    /* Another process writes it: it need not make sense. */
    uint32_t progress =
        atomic_load_explicit(&supervisor->flight.control[place].progress, memory_order_relaxed);
    view_fill(job, supervisor->name, now, view);
    view->running = true;
    view->running_s = seconds_since(job->started_ns, now);
    view->progress = (double)(progress < CONTROL_FULL ? progress : CONTROL_FULL) / CONTROL_FULL;
}

/* The slot's job, unless there is none or it is the canary. */
static struct job *place_job(struct supervisor *supervisor, int place) {
    struct job *job = supervisor->flight.place[place].job;
    return job != &supervisor->canary ? job : NULL;
}

static bool request_matches(const struct job *job, const struct job_filter *filter) {
    bool own = (filter->owner == 0 || job->owner == filter->owner) &&
               strcmp(job->request_id, filter->request_id) == 0;
    return own || (job->shared != NULL && job->shared(job, filter->request_id, filter->owner));
}

static bool filter_passes(const struct job_filter *filter, const struct job *job, bool running) {
    return (filter->state == JOBS_ALL || filter->state == (running ? JOBS_RUNNING : JOBS_QUEUED)) &&
           (filter->type == NULL || job->type == filter->type) &&
           (filter->request_id == NULL || request_matches(job, filter));
}

/* Copies up to `capacity` views; returns how many jobs there are. */
static size_t views_fill_locked(struct run_queue *queue, const struct job_filter *filter,
                                struct job_view *views, size_t capacity) {
    uint64_t now = clock_ns();
    size_t count = 0;
    for (int i = 0; i < queue->count; i++) {
        struct supervisor *supervisor = &queue->supervisors[i];
        for (int place = 0; place < PLACES_MAX; place++) {
            struct job *job = place_job(supervisor, place);
            if (job == NULL || !filter_passes(filter, job, true)) {
                continue;
            }
            if (count < capacity) {
                running_view(supervisor, place, now, &views[count]);
            }
            count++;
        }
    }
    for (struct job *job = queue->waiting.head; job != NULL; job = job->next) {
        if (!filter_passes(filter, job, false)) {
            continue;
        }
        if (count < capacity) {
            view_fill(job, job->device, now, &views[count]);
        }
        count++;
    }
    return count;
}

enum kiln_status dispatch_jobs(struct dispatch *dispatch, const struct job_filter *filter,
                               void (*each)(const struct job_view *view, void *context),
                               void *context, size_t *total) {
    struct run_queue *queue = &dispatch->queue;
    struct job_view *views = calloc(DISPATCH_JOBS_MAX, sizeof *views);
    if (views == NULL) {
        return KILN_NO_MEMORY;
    }
    run_queue_lock(queue);
    *total = views_fill_locked(queue, filter, views, DISPATCH_JOBS_MAX);
    run_queue_unlock(queue);
    for (size_t i = 0; i < *total && i < DISPATCH_JOBS_MAX; i++) {
        each(&views[i], context);
    }
    free(views);
    return KILN_OK;
}

/* Where an unfinished job is: at a worker, or (supervisor NULL) in the queue. */
struct whereabouts {
    struct job *job;
    struct supervisor *supervisor;
    int place;
};

static bool find_locked(struct run_queue *queue, const struct job_id *id,
                        struct whereabouts *found) {
    for (int i = 0; i < queue->count; i++) {
        struct supervisor *supervisor = &queue->supervisors[i];
        for (int place = 0; place < PLACES_MAX; place++) {
            struct job *job = place_job(supervisor, place);
            if (job != NULL && job_id_equal(&job->id, id)) {
                *found = (struct whereabouts){job, supervisor, place};
                return true;
            }
        }
    }
    for (struct job *job = queue->waiting.head; job != NULL; job = job->next) {
        if (job_id_equal(&job->id, id)) {
            *found = (struct whereabouts){job, NULL, -1};
            return true;
        }
    }
    return false;
}

bool dispatch_job(struct dispatch *dispatch, const struct job_id *id, struct job_view *view) {
    struct run_queue *queue = &dispatch->queue;
    struct whereabouts at;
    run_queue_lock(queue);
    bool found = find_locked(queue, id, &at);
    if (found && at.supervisor != NULL) {
        running_view(at.supervisor, at.place, clock_ns(), view);
    } else if (found) {
        view_fill(at.job, at.job->device, clock_ns(), view);
    }
    run_queue_unlock(queue);
    return found;
}

enum kiln_status dispatch_cancel(struct dispatch *dispatch, const struct job_id *id) {
    struct run_queue *queue = &dispatch->queue;
    struct whereabouts at;
    run_queue_lock(queue);
    bool found = find_locked(queue, id, &at);
    bool waiting = found && at.supervisor == NULL;
    if (found) {
        at.job->revoked = true;
    }
    if (waiting) {
        job_list_remove(&queue->waiting, at.job);
        run_queue_end(queue, at.job, KILN_CANCELLED, NULL, &queue->ended);
        run_queue_hurry(queue, clock_ns());
    } else if (found && at.job->state == JOB_RUNNING) {
        in_flight_cancel(&at.supervisor->flight, at.place, JOB_CANCELLING);
    }
    run_queue_unlock(queue);
    if (waiting) {
        run_queue_wake(queue);
    }
    return found ? KILN_OK : KILN_NOT_FOUND;
}
