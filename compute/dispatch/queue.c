/*
 * queue.c: jobs on their way: waiting, sent, answered; retry.c has those that are
 * lost.
 *
 *              take                send                 answer
 *     FREE ───────────▶ QUEUED ───────────▶ RUNNING ─────────────▶ FREE (done)
 *       ▲                │  ▲                │ │ │
 *       │ deadline,      │  │ worker died,   │ │ └─ answer DEVICE_FAULT ─▶ FAULTED ─ death ─┐
 *       │ hang-up,       │  │ attempt 0 → 1  │ │                                            │
 *       │ no device      │  └────────────────┤ └─ deadline ─▶ EXPIRING ─┐ answer or death:   │
 *       └────────────────┘                   └─── hang-up ─▶ CANCELLING ┴─▶ FREE (done)      │
 *                                attempt 0: QUEUED as attempt 1; attempt 1: FREE (done) ◀────┘
 *
 * The queue is first come, first served, except that a job which cannot run now (its device is busy
 * or restarting, or there is no memory for its result) does not hold up those behind it that can.
 * Jobs with an input block take their result block when they arrive, if there is room, others when
 * they are sent. Where jobs that hold inputs wait for each other's memory, the youngest gives way
 * (memory.c).
 *
 * Small jobs that are alike go to a worker in one packet, and run together there, where they have
 * had to wait (group.c). Such a group takes one slot; each of its jobs has a place of its
 * own and ends by itself.
 *
 * A suspect (attempt 1: its worker died with it) goes to the head and runs alone. While it waits
 * for a worker to become idle, that worker gets no other jobs.
 *
 * Threads: under the dispatcher's lock; taking from any thread, answers and losses on its own.
 */
#include "compute/core/log.h"
#include "compute/dispatch/private.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

void job_list_push(struct job_list *list, struct job *job) {
    job->next = NULL;
    job->previous = list->tail;
    *(list->tail ? &list->tail->next : &list->head) = job;
    list->tail = job;
    list->count++;
}

void job_list_remove(struct job_list *list, struct job *job) {
    *(job->previous ? &job->previous->next : &list->head) = job->next;
    *(job->next ? &job->next->previous : &list->tail) = job->previous;
    job->next = job->previous = NULL;
    list->count--;
}

static void job_list_insert(struct job_list *list, struct job *job, struct job *before) {
    if (!before) {
        job_list_push(list, job);
        return;
    }
    job->next = before;
    job->previous = before->previous;
    *(before->previous ? &before->previous->next : &list->head) = job;
    before->previous = job;
    list->count++;
}

/* ---- choosing and sending ---- */

static bool has_room(const struct supervisor *supervisor) {
    return supervisor->phase == WORKER_SERVING && supervisor->busy < supervisor->slots &&
           supervisor->running < PLACES_MAX && !supervisor->exclusive && !supervisor->held;
}

/* A suspect is better tried elsewhere, which tells whether it or the device was the cause; else
   the less busy of two. */
static bool is_better(const struct dispatch *dispatch, const struct job *job,
                      const struct supervisor *one, const struct supervisor *other) {
    bool again = one - dispatch->supervisors == job->worker;
    bool other_again = other - dispatch->supervisors == job->worker;
    if (job->attempt > 0 && again != other_again) {
        return other_again;
    }
    return one->busy * other->slots < other->busy * one->slots;
}

/* The worker with the largest share of free slots that may take this job now. A suspect takes an
   idle one, or reserves the one that is nearest to idle. */
static struct supervisor *choose(struct dispatch *dispatch, const struct job *job) {
    struct supervisor *best = NULL;
    for (int i = 0; i < dispatch->count; i++) {
        struct supervisor *one = &dispatch->supervisors[i];
        bool fits = one->phase == WORKER_SERVING && !one->held && device_matches(one, job) &&
                    memory_fits(one, job->plan.device_bytes);
        /* A suspect may reserve a full worker; others need a free slot. */
        if (!fits || (job->attempt == 0 && !has_room(one))) {
            continue;
        }
        if (!best || is_better(dispatch, job, one, best)) {
            best = one;
        }
    }
    if (best && job->attempt > 0 && best->running > 0) {
        best->held = true;
        return NULL;
    }
    return best;
}

static bool any_room(const struct dispatch *dispatch) {
    for (int i = 0; i < dispatch->count; i++) {
        if (has_room(&dispatch->supervisors[i])) {
            return true;
        }
    }
    return false;
}

/* Sends a waiting job, and those that may run with it; `next` receives the one to look at then. */
static enum kiln_status queued_send(struct dispatch *dispatch, struct supervisor *supervisor,
                                    struct job *job, struct job **next) {
    struct job *group[GROUP_MAX];
    int count = group_find_locked(dispatch, supervisor, job, group);
    enum kiln_status status = places_send_locked(dispatch, supervisor, group, &count);
    if (status != KILN_OK) {
        return status;
    }
    while (*next && (*next)->state == JOB_RUNNING) {
        *next = (*next)->next;
    }
    for (int i = 0; i < count; i++) {
        job_list_remove(&dispatch->queue, group[i]);
    }
    return KILN_OK;
}

void queue_pump_locked(struct dispatch *dispatch) {
    struct job *next;
    uint64_t now = dispatch->queue.count > 0 ? clock_ns() : 0;
    dispatch->starved = false;
    for (struct job *job = dispatch->queue.head; job && any_room(dispatch); job = next) {
        next = job->next;
        if (job->retry_ns > now) {
            dispatch_hurry_locked(dispatch, job->retry_ns);
            continue;
        }
        struct supervisor *supervisor = choose(dispatch, job);
        if (!supervisor) {
            continue;
        }
        enum kiln_status status = queued_send(dispatch, supervisor, job, &next);
        if (status != KILN_OK) {
            dispatch->starved = true;
        }
    }
    for (int i = 0; i < dispatch->count; i++) {
        dispatch->supervisors[i].held = false;
    }
    if (dispatch->starved) {
        dispatch_hurry_locked(dispatch, clock_ns() + 10 * MS);
    }
}

enum kiln_status queue_take_locked(struct dispatch *dispatch, struct job *job) {
    /* With nobody waiting, the common case: straight to a worker from the caller's thread. */
    if (dispatch->queue.count == 0) {
        struct supervisor *supervisor = choose(dispatch, job);
        if (supervisor && places_send_locked(dispatch, supervisor, &job, &(int){1}) == KILN_OK) {
            return KILN_OK;
        }
    }
    job->state = JOB_QUEUED;
    job_list_push(&dispatch->queue, job);
    queue_pump_locked(dispatch);
    if (job->state == JOB_QUEUED && dispatch->queue.count > dispatch->queue_max &&
        (job->starved || !memory_displace_locked(dispatch))) {
        job_list_remove(&dispatch->queue, job);
        job->state = JOB_FREE;
        return KILN_BUSY;
    }
    if (dispatch->queue.count > dispatch->stats.queue_peak) {
        dispatch->stats.queue_peak = dispatch->queue.count;
    }
    return KILN_OK;
}

/* ---- ending ---- */

void queue_end_locked(struct dispatch *dispatch, struct job *job, enum kiln_status status,
                      const char *detail, struct job_list *finished) {
    struct dispatch_stats *stats = &dispatch->stats;
    if (status == KILN_CANCELLED && job->revoked) {
        status = KILN_REVOKED;
        detail = "another request cancelled the job";
    }
    job->status = status;
    job->state = JOB_FREE;
    job->timing.total = (double)(clock_ns() - job->submitted_ns) * 1e-6;
    if (status == KILN_OK) {
        stats->completed++;
        arena_trim(dispatch->arena, &job->result, job->result_size);
    } else {
        job->result_size = 0;
        arena_give(dispatch->arena, &job->result);
        *(status_cancelled(status) ? &stats->cancelled : &stats->failed) += 1;
        if (detail != job->detail) {
            snprintf(job->detail, sizeof job->detail, "%s", detail ? detail : "");
        }
    }
    job_list_push(finished, job);
}

/* What the client is told, from what the worker answered and what we had decided before. */
static enum kiln_status verdict(struct job *job, enum kiln_status answered) {
    if (job->state == JOB_CANCELLING) {
        return KILN_CANCELLED;
    }
    if (answered == KILN_CANCELLED) {
        /* Only we cancel: at a deadline, unless the worker has gone astray. */
        snprintf(job->detail, sizeof job->detail, "%s",
                 job->state == JOB_EXPIRING ? "the job was stopped at its deadline"
                                            : "the worker gave the job up");
        return job->state == JOB_EXPIRING ? KILN_DEADLINE : KILN_INTERNAL;
    }
    if (answered == KILN_OK && job->result_size > job->result.size) {
        snprintf(job->detail, sizeof job->detail,
                 "the worker claims more result than there is room");
        return KILN_INTERNAL;
    }
    return answered;
}

/* `gathered` jobs share the device's phases. */
static void account(struct supervisor *supervisor, const struct job *job, uint32_t gathered,
                    enum kiln_status status) {
    const struct timing *timing = &job->timing;
    supervisor->busy_ms +=
        (timing->upload + timing->kernel + timing->download + timing->encode) / gathered;
    supervisor->gathered += gathered > 1;
    supervisor->jobs_done += status == KILN_OK;
    supervisor->jobs_failed += status != KILN_OK && status != KILN_CANCELLED;
    if (status == KILN_OK) {
        supervisor->success_ns = clock_ns();
        supervisor->deaths = 0;
    }
}

bool queue_answer_locked(struct dispatch *dispatch, struct supervisor *supervisor,
                         const struct answer *answer, struct job_list *finished) {
    int place = place_find(supervisor, &answer->id);
    if (place < 0 || !answer_sound(answer)) {
        return false;
    }
    struct job *job = supervisor->place[place].job;
    enum kiln_status answered = (enum kiln_status)answer->status;
    if (job->state == JOB_FAULTED) {
        return false; /* answered already */
    }
    answer_take(job, answer, clock_ns());
    if (answered == KILN_DEVICE_FAULT) {
        /* Its blocks may still be a target of the device: they wait for the process's end. */
        if (job->state == JOB_RUNNING) {
            job->state = JOB_FAULTED;
        }
        char reason[sizeof supervisor->reason];
        snprintf(reason, sizeof reason, "the device failed: %s", job->detail);
        supervisor_kill_locked(supervisor, reason);
        return true;
    }
    enum kiln_status status = verdict(job, answered);
    /* Power of the last second times the time on the device, shared with the others there. */
    job->joules = supervisor->power_w *
                  (job->timing.upload + job->timing.kernel + job->timing.download) * 1e-3 /
                  supervisor->running;
    place_clear_locked(dispatch, supervisor, place);
    if (supervisor_canary(supervisor, job)) {
        canary_end_locked(dispatch, supervisor, status);
        return true;
    }
    if (status == KILN_NO_MEMORY && memory_retry_locked(dispatch, supervisor, job)) {
        return true;
    }
    snprintf(job->device_name, sizeof job->device_name, "%s", supervisor->name);
    account(supervisor, job, answer->gathered, status);
    if (status == KILN_NO_MEMORY && dispatch->stopping) {
        status = KILN_DRAINING; /* it would have been tried again */
    }
    queue_end_locked(dispatch, job, status, job->detail, finished);
    return true;
}

/* ---- trying again ---- */

void queue_return_locked(struct dispatch *dispatch, struct job *job) {
    struct job *before = dispatch->queue.head;
    while (before && before->number < job->number) {
        before = before->next;
    }
    job->state = JOB_QUEUED;
    job_list_insert(&dispatch->queue, job, before);
}
