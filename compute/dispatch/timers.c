/*
 * timers.c: what happens because time has passed.
 *
 * The dispatcher's thread sweeps when the earliest known moment has come, and at least every 250
 * ms; answers and new jobs in between cost no timer. A sweep looks at each device (start it again,
 * does it live, is a canary due), at each running and waiting job's deadline, and at the sockets of
 * clients whose jobs have been here for a while: one poll() call for all of them.
 *
 * Thread: the dispatcher's.
 */
#include "compute/core/log.h"
#include "compute/dispatch/private.h"

#include <stdio.h>

#define SWEEP_PERIOD  (250 * MS)
#define WARM_UP_LIMIT (120 * SECOND) /* drivers may compile kernels at a first start */
#define SILENCE_LIMIT (10 * SECOND)
#define CANARY_PERIOD (5 * SECOND)
#define DYING_LIMIT   (5 * SECOND)
/* After its deadline a job has STOP_LIMIT to give up: kernels look at their cancel word within
   milliseconds, decoding and encoding do not look. Then its worker is killed, which takes a moment
   more where a kernel still runs on a GPU. The client is answered after ANSWER_LIMIT at the latest,
   whether the process has ended by then or not. */
#define STOP_LIMIT   (500 * MS)
#define ANSWER_LIMIT (900 * MS)
#define SLEEP_LIMIT  (2 * SECOND)

/* Deadlines of the jobs that a worker has. */
static void sweep_slots(struct dispatch *dispatch, struct supervisor *supervisor, uint64_t now) {
    for (int i = 0; i < PLACES_MAX && supervisor->phase != WORKER_DYING; i++) {
        struct job *job = supervisor->place[i].job;
        if (!job) {
            continue;
        }
        if (now < job->deadline_ns) {
            dispatch_hurry_locked(dispatch, job->deadline_ns);
        } else if (now < job->deadline_ns + STOP_LIMIT) {
            if (job->state == JOB_RUNNING) {
                place_cancel_locked(dispatch, supervisor, i, JOB_EXPIRING);
            }
            dispatch_hurry_locked(dispatch, job->deadline_ns + STOP_LIMIT);
        } else {
            if (job->state == JOB_RUNNING) {
                job->state = JOB_EXPIRING;
            }
            supervisor->blameless = job != &supervisor->canary;
            supervisor_kill_locked(supervisor, supervisor->blameless
                                                   ? "a job did not stop at its deadline"
                                                   : "its canary did not come back");
        }
    }
}

/* A worker whose end is awaited. */
static void sweep_dying(struct dispatch *dispatch, struct supervisor *supervisor, uint64_t now,
                        struct job_list *finished) {
    if (now > supervisor->dying_ns + DYING_LIMIT) {
        queue_orphan_locked(dispatch, supervisor, UINT64_MAX, finished);
        return;
    }
    queue_orphan_locked(dispatch, supervisor, now - ANSWER_LIMIT, finished);
    for (int i = 0; i < PLACES_MAX; i++) {
        const struct job *job = supervisor->place[i].job;
        if (job && job->state == JOB_EXPIRING) {
            dispatch_hurry_locked(dispatch, job->deadline_ns + ANSWER_LIMIT);
        }
    }
}

/* A worker that should be alive and well. */
static void sweep_living(struct dispatch *dispatch, struct supervisor *supervisor, uint64_t now) {
    if (now > supervisor->notice_ns + SILENCE_LIMIT) {
        supervisor_kill_locked(supervisor, "no heartbeat for 10 s");
        return;
    }
    sweep_slots(dispatch, supervisor, now);
    bool untested = supervisor->phase == WORKER_TESTING && !supervisor->canary_running;
    bool idle = supervisor->phase == WORKER_SERVING && supervisor->running == 0 &&
                now >= supervisor->success_ns + CANARY_PERIOD;
    if (untested || idle) {
        canary_send_locked(dispatch, supervisor, now);
    }
}

/* One device; true if its process must be started. */
static bool sweep_supervisor(struct dispatch *dispatch, struct supervisor *supervisor, uint64_t now,
                             struct job_list *finished) {
    switch (supervisor->phase) {
    case WORKER_WAITING:
        if (now >= supervisor->respawn_ns) {
            return true;
        }
        dispatch_hurry_locked(dispatch, supervisor->respawn_ns);
        return false;
    case WORKER_WARMING:
        if (now > supervisor->started_ns + WARM_UP_LIMIT) {
            supervisor_kill_locked(supervisor, "its warm-up took longer than 120 s");
        }
        return false;
    case WORKER_TESTING:
    case WORKER_SERVING:
        sweep_living(dispatch, supervisor, now);
        return false;
    case WORKER_DYING:
        sweep_dying(dispatch, supervisor, now, finished);
        return false;
    default:
        return false;
    }
}

static void sweep_queue(struct dispatch *dispatch, uint64_t now, struct job_list *finished) {
    struct job *next;
    for (struct job *job = dispatch->queue.head; job; job = next) {
        next = job->next;
        if (now < job->deadline_ns) {
            dispatch_hurry_locked(dispatch, job->deadline_ns);
            continue;
        }
        job_list_remove(&dispatch->queue, job);
        queue_end_locked(dispatch, job, KILN_DEADLINE,
                         job->starved
                             ? "the job was still waiting for a device, or for room in the "
                               "arena, at its deadline"
                             : "the job was still waiting for a device at its deadline",
                         finished);
    }
}

/* ---- clients that hung up ---- */

static void watch(struct dispatch *dispatch, struct job *job, uint64_t now, size_t *count) {
    bool unfinished = job->state == JOB_QUEUED || job->state == JOB_RUNNING;
    if (job->watch_fd < 0 || !unfinished || now < job->submitted_ns + SWEEP_PERIOD ||
        *count == dispatch->watched_max) {
        return;
    }
    dispatch->watched[*count] =
        (struct pollfd){.fd = job->watch_fd, .events = POLLRDHUP}; /* HUP and ERR always come */
    dispatch->watched_jobs[(*count)++] = job;
}

static size_t watch_all_locked(struct dispatch *dispatch, uint64_t now) {
    size_t count = 0;
    for (int i = 0; i < dispatch->count; i++) {
        const struct supervisor *supervisor = &dispatch->supervisors[i];
        for (int j = 0; j < PLACES_MAX; j++) {
            if (supervisor->place[j].job) {
                watch(dispatch, supervisor->place[j].job, now, &count);
            }
        }
    }
    for (struct job *job = dispatch->queue.head; job; job = job->next) {
        watch(dispatch, job, now, &count);
    }
    return count;
}

/* The client of this job is gone. */
static void hang_up_locked(struct dispatch *dispatch, struct job *job, struct job_list *finished) {
    if (job->deserted != NULL && !job->deserted(job)) {
        return; /* others want its result */
    }
    if (job->state == JOB_QUEUED) {
        job_list_remove(&dispatch->queue, job);
        queue_end_locked(dispatch, job, KILN_CANCELLED, "the client hung up", finished);
        return;
    }
    if (job->state != JOB_RUNNING) {
        return; /* it is ending already */
    }
    struct supervisor *supervisor = &dispatch->supervisors[job->worker];
    for (int i = 0; job->state == JOB_RUNNING && i < PLACES_MAX; i++) {
        if (supervisor->place[i].job == job) {
            place_cancel_locked(dispatch, supervisor, i, JOB_CANCELLING);
        }
    }
}

/* Jobs end only on this thread, so those collected stay valid while the lock is not held. */
static void sweep_clients(struct dispatch *dispatch, uint64_t now) {
    struct job_list finished = {0};
    pthread_mutex_lock(&dispatch->lock);
    size_t count = watch_all_locked(dispatch, now);
    pthread_mutex_unlock(&dispatch->lock);
    if (count == 0 || poll(dispatch->watched, count, 0) <= 0) {
        return;
    }
    pthread_mutex_lock(&dispatch->lock);
    for (size_t i = 0; i < count; i++) {
        if (dispatch->watched[i].revents) {
            hang_up_locked(dispatch, dispatch->watched_jobs[i], &finished);
        }
    }
    queue_pump_locked(dispatch);
    pthread_mutex_unlock(&dispatch->lock);
    dispatch_complete(dispatch, &finished);
}

/* ---- all of it ---- */

/* After the whole machine or process slept, silence says nothing about the workers. */
static void forgive_sleep(struct dispatch *dispatch, uint64_t now) {
    if (now < dispatch->awake_ns + SLEEP_LIMIT) {
        return;
    }
    for (int i = 0; i < dispatch->count; i++) {
        dispatch->supervisors[i].notice_ns = now;
    }
}

void dispatch_sweep(struct dispatch *dispatch, uint64_t now) {
    bool start[DEVICES_MAX] = {false};
    pthread_mutex_lock(&dispatch->lock);
    struct job_list finished = dispatch->ended;
    dispatch->ended = (struct job_list){0};
    dispatch->sweep_ns = now + SWEEP_PERIOD;
    forgive_sleep(dispatch, now);
    for (int i = 0; i < dispatch->count; i++) {
        start[i] = sweep_supervisor(dispatch, &dispatch->supervisors[i], now, &finished);
    }
    sweep_queue(dispatch, now, &finished);
    memory_unlock_locked(dispatch, now, &finished);
    /* also for those that wait until a moment */
    queue_pump_locked(dispatch);
    bool look = now >= dispatch->hangup_ns && dispatch->outstanding > 0;
    pthread_mutex_unlock(&dispatch->lock);
    dispatch_complete(dispatch, &finished);
    for (int i = 0; i < dispatch->count; i++) {
        if (start[i]) {
            supervisor_start(dispatch, &dispatch->supervisors[i]);
        }
    }
    if (look) {
        dispatch->hangup_ns = now + SWEEP_PERIOD - MS;
        sweep_clients(dispatch, now);
    }
}
