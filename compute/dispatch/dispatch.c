/*
 * dispatch.c: the dispatcher's public calls, its thread and its event loop.
 *
 * A submitted job goes to a worker from the submitter's own thread when a slot is free; only its
 * answer passes through the dispatcher's thread: its own, or the caller's event loop (`driven`),
 * which saves a change of threads. One epoll set holds every worker's job socket, control socket
 * and pidfd and one eventfd; an answer costs one receive. Moments (deadlines, back-off, signs of
 * life) are kept as the one nearest, `sweep_ns`, which is the timeout of the wait.
 *
 * The other parts are listed in private.h.
 */
#include "compute/core/log.h"
#include "compute/dispatch/private.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <time.h>
#include <unistd.h>

#define EVENTS_MAX 32
#define READY_AGE  (15 * SECOND)

/* What a descriptor in the epoll set is: the kind in the low bits, the device above. */
enum { EVENT_JOBS, EVENT_CONTROL, EVENT_DEATH, EVENT_WAKE, EVENT_SPAWNER, EVENT_KINDS };

/* ---- the thread ---- */

void dispatch_hurry_locked(struct dispatch *dispatch, uint64_t when) {
    if (when < dispatch->sweep_ns) {
        dispatch->sweep_ns = when;
    }
}

void dispatch_wake(struct dispatch *dispatch) {
    uint64_t one = 1;
    ssize_t written = write(dispatch->wake_fd, &one, sizeof one);
    (void)written; /* full means that a wake-up is on its way already */
}

static bool listen_to(struct dispatch *dispatch, int fd, uint64_t device, uint64_t kind) {
    struct epoll_event event = {.events = EPOLLIN, .data.u64 = device * EVENT_KINDS + kind};
    return epoll_ctl(dispatch->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

enum kiln_status dispatch_listen(struct dispatch *dispatch, const struct supervisor *supervisor) {
    uint64_t device = (uint64_t)(supervisor - dispatch->supervisors);
    return listen_to(dispatch, supervisor->job_fd, device, EVENT_JOBS) &&
                   listen_to(dispatch, supervisor->control_fd, device, EVENT_CONTROL) &&
                   listen_to(dispatch, supervisor->pidfd, device, EVENT_DEATH)
               ? KILN_OK
               : KILN_INTERNAL;
}

void dispatch_complete(struct dispatch *dispatch, struct job_list *finished) {
    size_t count = finished->count;
    if (count == 0) {
        return;
    }
    struct job *next;
    for (struct job *job = finished->head; job; job = next) {
        next = job->next;
        job->next = job->previous = NULL;
        job->done(job); /* the job is its owner's from here on */
    }
    *finished = (struct job_list){0};
    pthread_mutex_lock(&dispatch->lock);
    dispatch->outstanding -= count;
    if (dispatch->outstanding == 0) {
        pthread_cond_broadcast(&dispatch->idle);
    }
    pthread_mutex_unlock(&dispatch->lock);
}

static void event_take(struct dispatch *dispatch, uint64_t data) {
    struct supervisor *supervisor = &dispatch->supervisors[data / EVENT_KINDS];
    uint64_t count;
    ssize_t size;
    switch (data % EVENT_KINDS) {
    case EVENT_JOBS:
        supervisor_on_jobs(dispatch, supervisor);
        break;
    case EVENT_CONTROL:
        supervisor_on_control(dispatch, supervisor);
        break;
    case EVENT_DEATH:
        supervisor_on_death(dispatch, supervisor);
        break;
    case EVENT_SPAWNER:
        spawner_on_event(dispatch);
        break;
    default:
        size = read(dispatch->wake_fd, &count, sizeof count);
        (void)size;
    }
}

int dispatch_timeout(struct dispatch *dispatch) {
    pthread_mutex_lock(&dispatch->lock);
    uint64_t now = clock_ns();
    uint64_t left = dispatch->sweep_ns > now ? dispatch->sweep_ns - now : 0;
    bool stop = dispatch->stopping;
    pthread_mutex_unlock(&dispatch->lock);
    return stop ? -1 : (int)((left + MS - 1) / MS); /* rounded up */
}

static bool sweep_due(struct dispatch *dispatch, uint64_t now) {
    pthread_mutex_lock(&dispatch->lock);
    bool due = now >= dispatch->sweep_ns;
    pthread_mutex_unlock(&dispatch->lock);
    return due;
}

/* Completes what still waits when the dispatcher ends. */
static void reject_all(struct dispatch *dispatch) {
    pthread_mutex_lock(&dispatch->lock);
    struct job_list finished = dispatch->ended;
    dispatch->ended = (struct job_list){0};
    while (dispatch->queue.head) {
        struct job *job = dispatch->queue.head;
        job_list_remove(&dispatch->queue, job);
        queue_end_locked(dispatch, job, KILN_DRAINING, NULL, &finished);
    }
    pthread_mutex_unlock(&dispatch->lock);
    dispatch_complete(dispatch, &finished);
}

/* Takes what has happened, waiting at most `timeout` ms for the first of it. */
static bool turn(struct dispatch *dispatch, int timeout) {
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(dispatch->epoll_fd, events, EVENTS_MAX, timeout);
    for (int i = 0; i < count; i++) {
        event_take(dispatch, events[i].data.u64);
    }
    uint64_t now = clock_ns();
    if (sweep_due(dispatch, now)) {
        dispatch_sweep(dispatch, now);
    }
    dispatch->awake_ns = clock_ns();
    return count > 0;
}

static void *dispatcher(void *argument) {
    struct dispatch *dispatch = argument;
    int timeout;
    while ((timeout = dispatch_timeout(dispatch)) >= 0) {
        turn(dispatch, timeout);
    }
    return NULL;
}

int dispatch_fd(const struct dispatch *dispatch) {
    return dispatch->epoll_fd;
}

bool dispatch_turn(struct dispatch *dispatch) {
    return turn(dispatch, 0);
}

/* ---- creating and destroying ---- */

/* Signals are the main thread's: the dispatcher's thread blocks all of them. */
static bool thread_start(struct dispatch *dispatch) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&dispatch->thread, NULL, dispatcher, dispatch);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        pthread_setname_np(dispatch->thread, "dispatcher");
    }
    return error == 0;
}

static void locks_init(struct dispatch *dispatch) {
    pthread_condattr_t attributes;
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&dispatch->lock, NULL);
    pthread_cond_init(&dispatch->idle, &attributes);
    pthread_condattr_destroy(&attributes);
}

static enum kiln_status descriptors_create(struct dispatch *dispatch) {
    dispatch->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    dispatch->wake_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (dispatch->epoll_fd < 0 || dispatch->wake_fd < 0 ||
        !listen_to(dispatch, dispatch->wake_fd, 0, EVENT_WAKE)) {
        return KILN_INTERNAL;
    }
    return KILN_OK;
}

/* Frees everything but running threads. */
static void release(struct dispatch *dispatch) {
    devices_destroy(dispatch);
    spawner_stop(dispatch);
    if (dispatch->wake_fd >= 0) {
        close(dispatch->wake_fd);
    }
    if (dispatch->epoll_fd >= 0) {
        close(dispatch->epoll_fd);
    }
    pthread_cond_destroy(&dispatch->idle);
    pthread_mutex_destroy(&dispatch->lock);
    free(dispatch->watched_jobs);
    free(dispatch->watched);
    free(dispatch);
}

enum kiln_status dispatch_create(const struct dispatch_options *options, struct dispatch **out) {
    enum kiln_status status = KILN_NO_MEMORY;
    struct dispatch *dispatch = calloc(1, sizeof *dispatch);
    *out = NULL;
    if (!dispatch) {
        return KILN_NO_MEMORY;
    }
    dispatch->epoll_fd = dispatch->wake_fd = -1;
    dispatch->spawner = (struct spawner){.socket = -1, .pidfd = -1};
    locks_init(dispatch);
    dispatch->arena = options->arena;
    dispatch->slots = options->slots;
    dispatch->gather = options->gather;
    dispatch->threads = options->threads;
    dispatch->queue_max = options->queue > 0 ? (size_t)options->queue : 0;
    /* Bounded, so that adding it to a clock never wraps. */
    double deadline_s = options->deadline_s > 0 ? options->deadline_s : 0;
    dispatch->device_bytes = options->device_bytes;
    dispatch->deadline_ns = (uint64_t)((deadline_s < 1e8 ? deadline_s : 1e8) * 1e9);
    dispatch->lost = options->lost;
    dispatch->lost_context = options->lost_context;
    /* Jobs of dead workers come back to the queue on top of its own bound. */
    dispatch->watched_max = dispatch->queue_max + 2 * (size_t)DEVICES_MAX * PLACES_MAX;
    dispatch->watched = calloc(dispatch->watched_max, sizeof *dispatch->watched);
    dispatch->watched_jobs = calloc(dispatch->watched_max, sizeof *dispatch->watched_jobs);
    if (!dispatch->watched || !dispatch->watched_jobs) {
        goto out;
    }
    status = job_ids_init(&dispatch->ids) ? descriptors_create(dispatch) : KILN_INTERNAL;
    if (status == KILN_OK) {
        status = spawner_start(dispatch, options->program);
    }
    if (status == KILN_OK) {
        status = devices_create(dispatch, options->devices);
    }
    if (status == KILN_OK && !listen_to(dispatch, dispatch->spawner.socket, 0, EVENT_SPAWNER)) {
        status = KILN_INTERNAL;
    }
    dispatch->awake_ns = clock_ns();
    dispatch->driven = options->driven;
    if (status == KILN_OK && !dispatch->driven && !thread_start(dispatch)) {
        status = KILN_NO_MEMORY;
    }
    if (status == KILN_OK) {
        *out = dispatch;
        dispatch = NULL;
    }
out:
    if (dispatch) {
        release(dispatch);
    }
    return status;
}

void dispatch_drain(struct dispatch *dispatch) {
    pthread_mutex_lock(&dispatch->lock);
    dispatch->draining = true;
    pthread_mutex_unlock(&dispatch->lock);
}

bool dispatch_wait_idle(struct dispatch *dispatch, double timeout_s) {
    uint64_t until_ns = clock_ns() + (uint64_t)((timeout_s < 1e8 ? timeout_s : 1e8) * 1e9);
    struct timespec until = {.tv_sec = (time_t)(until_ns / SECOND),
                             .tv_nsec = (long)(until_ns % SECOND)};
    int error = 0;
    pthread_mutex_lock(&dispatch->lock);
    while (dispatch->outstanding > 0 && error == 0) {
        error = pthread_cond_timedwait(&dispatch->idle, &dispatch->lock, &until);
    }
    bool idle = dispatch->outstanding == 0;
    pthread_mutex_unlock(&dispatch->lock);
    return idle;
}

void dispatch_destroy(struct dispatch *dispatch) {
    if (!dispatch) {
        return;
    }
    pthread_mutex_lock(&dispatch->lock);
    dispatch->draining = dispatch->stopping = true;
    pthread_mutex_unlock(&dispatch->lock);
    if (!dispatch->driven) {
        dispatch_wake(dispatch);
        pthread_join(dispatch->thread, NULL);
    }
    reject_all(dispatch);
    supervisors_stop(dispatch);
    reject_all(dispatch);
    assert(dispatch->outstanding == 0);
    release(dispatch);
}

/* ---- submitting ---- */

static void job_reset(struct dispatch *dispatch, struct job *job) {
    job->submitted_ns = clock_ns();
    job->deadline_ns =
        (job->since_ns > 0 ? job->since_ns : job->submitted_ns) + dispatch->deadline_ns;
    job->started_ns = 0;
    job->status = KILN_OK;
    job->state = JOB_FREE;
    job->detail[0] = job->device_name[0] = '\0';
    job->result = (struct block){0};
    job->result_size = 0;
    job->timing = (struct timing){0};
    job->remarks = (struct remarks){0};
    job->next = job->previous = NULL;
    job->attempt = job->shortages = 0;
    job->retry_ns = 0;
    job->joules = 0;
    job->worker = -1;
    job->revoked = job->starved = false;
}

/* Everything that speaks against the job before it is taken. Writes the job's detail. */
static enum kiln_status admit_locked(struct dispatch *dispatch, struct job *job) {
    if (dispatch->draining) {
        return KILN_DRAINING;
    }
    enum kiln_status status = memory_admit_locked(dispatch, job);
    if (status != KILN_OK) {
        return status;
    }
    status = device_admit_locked(dispatch, job, job->detail, sizeof job->detail);
    if (status != KILN_OK) {
        return status;
    }
    if (!memory_possible_locked(dispatch, job)) {
        return KILN_JOB_TOO_LARGE;
    }
    return memory_reserve_locked(dispatch, job);
}

struct job_id dispatch_id(struct dispatch *dispatch) {
    pthread_mutex_lock(&dispatch->lock);
    struct job_id id = job_ids_next(&dispatch->ids, job_ids_now());
    pthread_mutex_unlock(&dispatch->lock);
    return id;
}

enum kiln_status dispatch_submit(struct dispatch *dispatch, struct job *job) {
    assert(job->type && job->done);
    job_reset(dispatch, job);
    pthread_mutex_lock(&dispatch->lock);
    enum kiln_status status = admit_locked(dispatch, job);
    if (status == KILN_OK) {
        if (job_id_empty(&job->id)) {
            job->id = job_ids_next(&dispatch->ids, job_ids_now());
        }
        job->number = ++dispatch->numbers;
        dispatch->outstanding++;
        status = queue_take_locked(dispatch, job);
        dispatch->outstanding -= status != KILN_OK;
    }
    if (status == KILN_BUSY) {
        snprintf(job->detail, sizeof job->detail, "%zu jobs are waiting already",
                 dispatch->queue.count);
    }
    if (status != KILN_OK) {
        job->id = (struct job_id){{0}}; /* it never was */
        arena_give(dispatch->arena, &job->result);
    }
    *(status == KILN_OK ? &dispatch->stats.submitted : &dispatch->stats.refused) += 1;
    /* Rare: deadlines are longer than the thread sleeps. */
    bool early = dispatch->starved || (status == KILN_OK && job->deadline_ns < dispatch->sweep_ns);
    if (early) {
        dispatch_hurry_locked(dispatch, job->deadline_ns);
    }
    pthread_mutex_unlock(&dispatch->lock);
    if (early) {
        dispatch_wake(dispatch);
    }
    return status;
}
