/*
 * timers.c: what happens because time has passed.
 *
 * The dispatcher's thread sweeps when the earliest known moment has come, and at least every 250
 * ms; answers and new jobs in between cost no timer. A sweep looks at each device (start it again,
 * does it live, is a canary due), at each running and waiting job's deadline, and at the sockets of
 * clients whose jobs have been here for a while: one poll() call for all of them.
 */
#include "compute/dispatch/timers.h"

#include "compute/dispatch/queue/attempt.h"
#include "compute/dispatch/queue/memory.h"
#include "compute/dispatch/queue/queue.h"
#include "compute/dispatch/workers/canary.h"
#include "compute/dispatch/workers/supervise.h"

#include <stdlib.h>

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
static void sweep_slots(struct run_queue *queue, struct supervisor *supervisor, uint64_t now) {
    for (int i = 0; i < PLACES_MAX && supervisor->phase != WORKER_DYING; i++) {
        struct job *job = supervisor->flight.place[i].job;
        if (job == NULL) {
            continue;
        }
        if (now < job->deadline_ns) {
            run_queue_hurry(queue, job->deadline_ns);
        } else if (now < job->deadline_ns + STOP_LIMIT) {
            if (job->state == JOB_RUNNING) {
                in_flight_cancel(&supervisor->flight, i, JOB_EXPIRING);
            }
            run_queue_hurry(queue, job->deadline_ns + STOP_LIMIT);
        } else {
            if (job->state == JOB_RUNNING) {
                job->state = JOB_EXPIRING;
            }
            supervisor->blameless = job != &supervisor->canary;
            supervisor_kill(supervisor, supervisor->blameless ? "a job did not stop at its deadline"
                                                              : "its canary did not come back");
        }
    }
}

/* A worker whose end is awaited. */
static void sweep_dying(struct run_queue *queue, struct supervisor *supervisor, uint64_t now,
                        struct job_list *finished) {
    if (now > supervisor->dying_ns + DYING_LIMIT) {
        attempts_orphan(queue, supervisor, UINT64_MAX, finished);
        return;
    }
    attempts_orphan(queue, supervisor, now - ANSWER_LIMIT, finished);
    for (int i = 0; i < PLACES_MAX; i++) {
        const struct job *job = supervisor->flight.place[i].job;
        if (job != NULL && job->state == JOB_EXPIRING) {
            run_queue_hurry(queue, job->deadline_ns + ANSWER_LIMIT);
        }
    }
}

/* A worker that should be alive and well. */
static void sweep_living(struct workers *workers, struct supervisor *supervisor, uint64_t now) {
    if (now > supervisor->notice_ns + SILENCE_LIMIT) {
        supervisor_kill(supervisor, "no heartbeat for 10 s");
        return;
    }
    sweep_slots(workers->queue, supervisor, now);
    bool untested = supervisor->phase == WORKER_TESTING && !supervisor->canary_running;
    bool idle = supervisor->phase == WORKER_SERVING && supervisor->flight.running == 0 &&
                now >= supervisor->success_ns + CANARY_PERIOD;
    if (untested || idle) {
        canary_send_locked(workers, supervisor, now);
    }
}

/* One device; true if its process must be started. */
static bool sweep_supervisor(struct workers *workers, struct supervisor *supervisor, uint64_t now,
                             struct job_list *finished) {
    switch (supervisor->phase) {
    case WORKER_WAITING:
        if (now >= supervisor->respawn_ns) {
            return true;
        }
        run_queue_hurry(workers->queue, supervisor->respawn_ns);
        return false;
    case WORKER_WARMING:
        if (now > supervisor->started_ns + WARM_UP_LIMIT) {
            supervisor_kill(supervisor, "its warm-up took longer than 120 s");
        }
        return false;
    case WORKER_TESTING:
    case WORKER_SERVING:
        sweep_living(workers, supervisor, now);
        return false;
    case WORKER_DYING:
        sweep_dying(workers->queue, supervisor, now, finished);
        return false;
    default:
        return false;
    }
}

static void sweep_queue(struct run_queue *queue, uint64_t now, struct job_list *finished) {
    struct job *next;
    for (struct job *job = queue->waiting.head; job != NULL; job = next) {
        next = job->next;
        if (now < job->deadline_ns) {
            run_queue_hurry(queue, job->deadline_ns);
            continue;
        }
        job_list_remove(&queue->waiting, job);
        run_queue_end(queue, job, KILN_DEADLINE,
                      job->starved ? "the job was still waiting for a device, or for room in the "
                                     "arena, at its deadline"
                                   : "the job was still waiting for a device at its deadline",
                      finished);
    }
}

/* ---- clients that hung up ---- */

static void watch(struct timers *timers, struct job *job, uint64_t now, size_t *count) {
    bool unfinished = job->state == JOB_QUEUED || job->state == JOB_RUNNING;
    if (job->watch_fd < 0 || !unfinished || now < job->submitted_ns + SWEEP_PERIOD ||
        *count == timers->watched_max) {
        return;
    }
    timers->watched[*count] =
        (struct pollfd){.fd = job->watch_fd, .events = POLLRDHUP}; /* HUP and ERR always come */
    timers->watched_jobs[(*count)++] = job;
}

static size_t watch_all_locked(struct timers *timers, uint64_t now) {
    const struct run_queue *queue = timers->queue;
    size_t count = 0;
    for (int i = 0; i < queue->count; i++) {
        const struct supervisor *supervisor = &queue->supervisors[i];
        for (int j = 0; j < PLACES_MAX; j++) {
            if (supervisor->flight.place[j].job != NULL) {
                watch(timers, supervisor->flight.place[j].job, now, &count);
            }
        }
    }
    for (struct job *job = queue->waiting.head; job != NULL; job = job->next) {
        watch(timers, job, now, &count);
    }
    return count;
}

/* The client of this job is gone. */
static void hang_up_locked(struct run_queue *queue, struct job *job, struct job_list *finished) {
    if (job->deserted != NULL && !job->deserted(job)) {
        return; /* others want its result */
    }
    if (job->state == JOB_QUEUED) {
        job_list_remove(&queue->waiting, job);
        run_queue_end(queue, job, KILN_CANCELLED, "the client hung up", finished);
        return;
    }
    if (job->state != JOB_RUNNING) {
        return; /* it is ending already */
    }
    struct supervisor *supervisor = &queue->supervisors[job->worker];
    for (int i = 0; job->state == JOB_RUNNING && i < PLACES_MAX; i++) {
        if (supervisor->flight.place[i].job == job) {
            in_flight_cancel(&supervisor->flight, i, JOB_CANCELLING);
        }
    }
}

/* Jobs end only on this thread, so those collected stay valid while the lock is not held. */
static void sweep_clients(struct timers *timers, uint64_t now) {
    struct run_queue *queue = timers->queue;
    struct job_list finished = {0};
    run_queue_lock(queue);
    size_t count = watch_all_locked(timers, now);
    run_queue_unlock(queue);
    if (count == 0 || poll(timers->watched, count, 0) <= 0) {
        return;
    }
    run_queue_lock(queue);
    for (size_t i = 0; i < count; i++) {
        if (timers->watched[i].revents) {
            hang_up_locked(queue, timers->watched_jobs[i], &finished);
        }
    }
    queue_pump(queue);
    run_queue_unlock(queue);
    run_queue_complete(queue, &finished);
}

/* ---- all of it ---- */

enum kiln_status timers_init(struct timers *timers) {
    /* Jobs of dead workers come back to the queue on top of its own bound. */
    timers->watched_max = timers->queue->waiting_max + 2 * (size_t)DEVICES_MAX * PLACES_MAX;
    timers->watched = calloc(timers->watched_max, sizeof *timers->watched);
    timers->watched_jobs = calloc(timers->watched_max, sizeof *timers->watched_jobs);
    timers->awake_ns = clock_ns();
    return timers->watched != NULL && timers->watched_jobs != NULL ? KILN_OK : KILN_NO_MEMORY;
}

void timers_finish(struct timers *timers) {
    free(timers->watched_jobs);
    free(timers->watched);
}

/* After the whole machine or process slept, silence says nothing about the workers. */
static void forgive_sleep(struct timers *timers, uint64_t now) {
    if (now < timers->awake_ns + SLEEP_LIMIT) {
        return;
    }
    for (int i = 0; i < timers->queue->count; i++) {
        timers->queue->supervisors[i].notice_ns = now;
    }
}

void timers_sweep(struct timers *timers, uint64_t now) {
    struct run_queue *queue = timers->queue;
    bool start[DEVICES_MAX] = {false};
    run_queue_lock(queue);
    struct job_list finished = job_list_take(&queue->ended);
    queue->sweep_ns = now + SWEEP_PERIOD;
    forgive_sleep(timers, now);
    for (int i = 0; i < queue->count; i++) {
        start[i] = sweep_supervisor(timers->workers, &queue->supervisors[i], now, &finished);
    }
    sweep_queue(queue, now, &finished);
    memory_unlock(queue, now, &finished);
    /* also for those that wait until a moment */
    queue_pump(queue);
    bool look = now >= timers->hangup_ns && queue->outstanding > 0;
    run_queue_unlock(queue);
    run_queue_complete(queue, &finished);
    for (int i = 0; i < queue->count; i++) {
        if (start[i]) {
            supervise_start(timers->workers, &queue->supervisors[i]);
        }
    }
    if (look) {
        timers->hangup_ns = now + SWEEP_PERIOD - MS;
        sweep_clients(timers, now);
    }
}
