/*
 * dispatch.c: the dispatcher's public calls, and its parts put together.
 *
 * A submitted job goes to a worker from the submitter's own thread when a slot is free; only its
 * answer passes through the dispatcher's thread: its own, or the caller's event loop (`driven`),
 * which saves a change of threads.
 *
 *   state/    what there is: jobs that wait, devices, what these have in flight
 *   queue/    what runs next, and how a run ends
 *   workers/  the processes: they tell by call-backs what has happened, wired to queue/ here
 *   loop, timers        what happens when
 *   dispatch, jobs, view  the calls of dispatch.h
 */
#include "compute/dispatch/dispatch.h"

#include "compute/dispatch/dispatcher.h"
#include "compute/dispatch/queue/attempt.h"
#include "compute/dispatch/queue/match.h"
#include "compute/dispatch/queue/memory.h"
#include "compute/dispatch/queue/queue.h"
#include "compute/dispatch/workers/devices.h"
#include "compute/dispatch/workers/supervise.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

/* ---- what workers tell ---- */

static bool on_started(void *context, const struct supervisor *supervisor) {
    struct dispatch *dispatch = context;
    return loop_watch(&dispatch->loop, supervisor);
}

static void on_closed(void *context, int fd) {
    struct dispatch *dispatch = context;
    loop_unwatch(&dispatch->loop, fd);
}

static void on_ready(void *context, struct supervisor *supervisor) {
    struct dispatch *dispatch = context;
    (void)supervisor;
    queue_pump(&dispatch->queue);
}

static void on_answered(void *context, struct supervisor *supervisor, struct job *job,
                        enum kiln_status status, uint32_t gathered, struct job_list *finished) {
    struct dispatch *dispatch = context;
    attempt_end(&dispatch->queue, supervisor, job, status, gathered, finished);
}

static void on_read(void *context) {
    struct dispatch *dispatch = context;
    queue_pump(&dispatch->queue);
}

static void on_lost(void *context, struct supervisor *supervisor, const char *how,
                    struct job_list *finished) {
    struct dispatch *dispatch = context;
    attempts_lose(&dispatch->queue, supervisor, how, finished);
    queue_reject(&dispatch->queue, finished);
    queue_pump(&dispatch->queue);
}

static void on_stuck(void *context, struct supervisor *supervisor, struct job_list *finished) {
    struct dispatch *dispatch = context;
    attempts_orphan(&dispatch->queue, supervisor, UINT64_MAX, finished);
    attempts_lose(&dispatch->queue, supervisor, "cannot be ended", finished);
}

static void on_unavailable(void *context, struct job_list *finished) {
    struct dispatch *dispatch = context;
    queue_reject(&dispatch->queue, finished);
}

static void on_spawner_lost(void *context) {
    struct dispatch *dispatch = context;
    if (dispatch->lost != NULL && !dispatch->queue.stopping) {
        dispatch->lost(dispatch->lost_context);
    }
}

static const struct worker_events worker_events = {
    .started = on_started,
    .closed = on_closed,
    .ready = on_ready,
    .answered = on_answered,
    .read = on_read,
    .lost = on_lost,
    .stuck = on_stuck,
    .unavailable = on_unavailable,
    .spawner_lost = on_spawner_lost,
};

/* ---- for who drives the loop ---- */

int dispatch_fd(const struct dispatch *dispatch) {
    return dispatch->loop.epoll_fd;
}

int dispatch_timeout(struct dispatch *dispatch) {
    return loop_timeout(&dispatch->loop);
}

bool dispatch_turn(struct dispatch *dispatch) {
    return loop_turn(&dispatch->loop, 0);
}

enum kiln_status dispatch_store(struct dispatch *dispatch, int64_t boot, int64_t bytes,
                                int64_t jobs, int *socket) {
    struct arena *arena = dispatch->queue.arena;
    const struct spawner_request request = {
        .arena_size = arena_size(arena), .boot = boot, .store_bytes = bytes, .store_jobs = jobs};
    enum kiln_status status =
        spawn_store(&dispatch->workers.spawner, request, arena_fd(arena), &dispatch->store);
    *socket = dispatch->store.job_fd;
    return status;
}

/* ---- creating and destroying ---- */

/* Completes what still waits when the dispatcher ends. */
static void reject_all(struct run_queue *queue) {
    run_queue_lock(queue);
    struct job_list finished = job_list_take(&queue->ended);
    while (queue->waiting.head != NULL) {
        struct job *job = queue->waiting.head;
        job_list_remove(&queue->waiting, job);
        run_queue_end(queue, job, KILN_DRAINING, NULL, &finished);
    }
    run_queue_unlock(queue);
    run_queue_complete(queue, &finished);
}

/* Frees everything but running threads. */
static void release(struct dispatch *dispatch) {
    spawner_stop(&dispatch->workers.spawner);
    if (dispatch->store.pidfd >= 0) {
        close(dispatch->store.pidfd);
    }
    loop_finish(&dispatch->loop);
    timers_finish(&dispatch->timers);
    run_queue_finish(&dispatch->queue);
    free(dispatch);
}

/* The parts as the options want them, each with those that it stands on; nothing is started. */
static void parts_fill(struct dispatch *dispatch, const struct dispatch_options *options) {
    struct run_queue *queue = &dispatch->queue;
    struct workers *workers = &dispatch->workers;
    dispatch->store = (struct spawned){.pidfd = -1};
    queue->arena = options->arena;
    queue->waiting_max = options->queue > 0 ? (size_t)options->queue : 0;
    *workers = (struct workers){
        .queue = queue,
        .spawner = {.socket = -1, .pidfd = -1, .gone = supervise_spawner_gone, .context = workers},
        .events = &worker_events,
        .context = dispatch,
        .slots = options->slots,
        .threads = options->threads,
        .gather = options->gather,
        .device_bytes = options->device_bytes,
    };
    dispatch->timers = (struct timers){.queue = queue, .workers = workers};
    dispatch->loop = (struct loop){
        .queue = queue, .workers = workers, .timers = &dispatch->timers, .epoll_fd = -1};
    /* Bounded, so that adding it to a clock never wraps. */
    double deadline_s = options->deadline_s > 0 ? options->deadline_s : 0;
    dispatch->deadline_ns = (uint64_t)((deadline_s < 1e8 ? deadline_s : 1e8) * 1e9);
    dispatch->lost = options->lost;
    dispatch->lost_context = options->lost_context;
    dispatch->driven = options->driven;
}

enum kiln_status dispatch_create(const struct dispatch_options *options, struct dispatch **out) {
    struct dispatch *dispatch = calloc(1, sizeof *dispatch);
    *out = NULL;
    if (dispatch == NULL) {
        return KILN_NO_MEMORY;
    }
    parts_fill(dispatch, options);
    enum kiln_status status = run_queue_init(&dispatch->queue);
    if (status == KILN_OK) {
        status = timers_init(&dispatch->timers);
    }
    if (status == KILN_OK) {
        status = spawner_start(&dispatch->workers.spawner, options->program);
    }
    if (status == KILN_OK) {
        status = devices_find(&dispatch->workers, options->devices);
    }
    if (status == KILN_OK) {
        status = loop_init(&dispatch->loop);
    }
    if (status == KILN_OK && !dispatch->driven && !loop_start(&dispatch->loop)) {
        status = KILN_NO_MEMORY;
    }
    if (status != KILN_OK) {
        release(dispatch);
        return status;
    }
    *out = dispatch;
    return KILN_OK;
}

void dispatch_drain(struct dispatch *dispatch) {
    run_queue_lock(&dispatch->queue);
    dispatch->queue.draining = true;
    run_queue_unlock(&dispatch->queue);
}

bool dispatch_wait_idle(struct dispatch *dispatch, double timeout_s) {
    uint64_t until_ns = clock_ns() + (uint64_t)((timeout_s < 1e8 ? timeout_s : 1e8) * 1e9);
    struct timespec until = {.tv_sec = (time_t)(until_ns / SECOND),
                             .tv_nsec = (long)(until_ns % SECOND)};
    struct run_queue *queue = &dispatch->queue;
    int error = 0;
    run_queue_lock(queue);
    while (queue->outstanding > 0 && error == 0) {
        error = pthread_cond_timedwait(&queue->idle, &queue->lock, &until);
    }
    bool idle = queue->outstanding == 0;
    run_queue_unlock(queue);
    return idle;
}

void dispatch_destroy(struct dispatch *dispatch) {
    if (dispatch == NULL) {
        return;
    }
    struct run_queue *queue = &dispatch->queue;
    run_queue_lock(queue);
    queue->draining = queue->stopping = true;
    run_queue_unlock(queue);
    if (!dispatch->driven) {
        loop_join(&dispatch->loop);
    }
    reject_all(queue);
    supervise_stop(&dispatch->workers);
    reject_all(queue);
    assert(queue->outstanding == 0);
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
static enum kiln_status admit_locked(struct run_queue *queue, struct job *job) {
    if (queue->draining) {
        return KILN_DRAINING;
    }
    enum kiln_status status = memory_admit(queue, job);
    if (status != KILN_OK) {
        return status;
    }
    status = match_admit(queue, job, job->detail, sizeof job->detail);
    if (status != KILN_OK) {
        return status;
    }
    if (!memory_possible(queue, job)) {
        return KILN_JOB_TOO_LARGE;
    }
    return memory_reserve(queue, job);
}

struct job_id dispatch_id(struct dispatch *dispatch) {
    run_queue_lock(&dispatch->queue);
    struct job_id id = job_ids_next(&dispatch->queue.ids, job_ids_now());
    run_queue_unlock(&dispatch->queue);
    return id;
}

enum kiln_status dispatch_submit(struct dispatch *dispatch, struct job *job) {
    struct run_queue *queue = &dispatch->queue;
    assert(job->type != NULL && job->done != NULL);
    job_reset(dispatch, job);
    run_queue_lock(queue);
    enum kiln_status status = admit_locked(queue, job);
    if (status == KILN_OK) {
        if (job_id_empty(&job->id)) {
            job->id = job_ids_next(&queue->ids, job_ids_now());
        }
        job->number = ++queue->numbers;
        queue->outstanding++;
        status = queue_take(queue, job);
        queue->outstanding -= status != KILN_OK;
    }
    if (status == KILN_BUSY) {
        snprintf(job->detail, sizeof job->detail, "%zu jobs are waiting already",
                 queue->waiting.count);
    }
    if (status != KILN_OK) {
        job->id = (struct job_id){{0}}; /* it never was */
        arena_give(queue->arena, &job->result);
    }
    *(status == KILN_OK ? &queue->counts.submitted : &queue->counts.refused) += 1;
    /* Rare: deadlines are longer than the thread sleeps. */
    bool early = queue->starved || (status == KILN_OK && job->deadline_ns < queue->sweep_ns);
    if (early) {
        run_queue_hurry(queue, job->deadline_ns);
    }
    run_queue_unlock(queue);
    if (early) {
        run_queue_wake(queue);
    }
    return status;
}
