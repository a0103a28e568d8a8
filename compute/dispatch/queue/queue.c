/*
 * queue.c: which job runs next, and where; attempt.c says how runs end.
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
 * Threads: under the queue's lock.
 */
#include "compute/dispatch/queue/queue.h"

#include "compute/dispatch/queue/group.h"
#include "compute/dispatch/queue/match.h"
#include "compute/dispatch/queue/memory.h"

#include <stdio.h>

/* ---- choosing and sending ---- */

/* A suspect is better tried elsewhere, which tells whether it or the device was the cause; else
   the less busy of two. */
static bool is_better(const struct job *job, const struct supervisor *one,
                      const struct supervisor *other) {
    bool again = one->index == job->worker;
    bool other_again = other->index == job->worker;
    if (job->attempt > 0 && again != other_again) {
        return other_again;
    }
    return one->flight.busy * other->flight.slots < other->flight.busy * one->flight.slots;
}

/* The worker with the largest share of free slots that may take this job now. A suspect takes an
   idle one, or reserves the one that is nearest to idle. */
static struct supervisor *choose(struct run_queue *queue, const struct job *job) {
    struct supervisor *best = NULL;
    for (int i = 0; i < queue->count; i++) {
        struct supervisor *one = &queue->supervisors[i];
        bool fits = one->phase == WORKER_SERVING && !one->held && supervisor_matches(one, job) &&
                    supervisor_fits(one, job->plan.device_bytes);
        /* A suspect may reserve a full worker; others need a free slot. */
        if (!fits || (job->attempt == 0 && !supervisor_room(one))) {
            continue;
        }
        if (best == NULL || is_better(job, one, best)) {
            best = one;
        }
    }
    if (best != NULL && job->attempt > 0 && best->flight.running > 0) {
        best->held = true;
        return NULL;
    }
    return best;
}

static bool any_room(const struct run_queue *queue) {
    for (int i = 0; i < queue->count; i++) {
        if (supervisor_room(&queue->supervisors[i])) {
            return true;
        }
    }
    return false;
}

/* The result blocks of the first jobs of a group, in order; returns how many have theirs. */
static int results_take(struct run_queue *queue, struct job *const *group, int count) {
    int taken = 0;
    while (taken < count &&
           (group[taken]->result.size > 0 || memory_take_result(queue, group[taken]) == KILN_OK)) {
        taken++;
    }
    return taken;
}

/* Sends a waiting job, and those that may run with it; `next` receives the one to look at then. */
static enum kiln_status queued_send(struct run_queue *queue, struct supervisor *supervisor,
                                    struct job *job, struct job **next) {
    struct job *group[GROUP_MAX];
    int count = results_take(queue, group, group_find(queue, supervisor, job, group));
    enum kiln_status status =
        count > 0 ? packets_put(&queue->packets, supervisor, group, count) : KILN_NO_MEMORY;
    if (status != KILN_OK) {
        return status;
    }
    while (*next != NULL && (*next)->state == JOB_RUNNING) {
        *next = (*next)->next;
    }
    for (int i = 0; i < count; i++) {
        job_list_remove(&queue->waiting, group[i]);
    }
    return KILN_OK;
}

void queue_pump(struct run_queue *queue) {
    struct job *next;
    uint64_t now = queue->waiting.count > 0 ? clock_ns() : 0;
    queue->starved = false;
    for (struct job *job = queue->waiting.head; job != NULL && any_room(queue); job = next) {
        next = job->next;
        if (job->retry_ns > now) {
            run_queue_hurry(queue, job->retry_ns);
            continue;
        }
        struct supervisor *supervisor = choose(queue, job);
        if (supervisor != NULL && queued_send(queue, supervisor, job, &next) != KILN_OK) {
            queue->starved = true;
        }
    }
    for (int i = 0; i < queue->count; i++) {
        queue->supervisors[i].held = false;
    }
    if (queue->starved) {
        run_queue_hurry(queue, clock_ns() + 10 * MS);
    }
}

/* With nobody waiting, the common case: straight to a worker from the caller's thread. */
static bool sent_at_once(struct run_queue *queue, struct job *job) {
    struct supervisor *supervisor = queue->waiting.count == 0 ? choose(queue, job) : NULL;
    return supervisor != NULL && results_take(queue, &job, 1) == 1 &&
           packets_put(&queue->packets, supervisor, &job, 1) == KILN_OK;
}

enum kiln_status queue_take(struct run_queue *queue, struct job *job) {
    if (sent_at_once(queue, job)) {
        return KILN_OK;
    }
    job->state = JOB_QUEUED;
    job_list_push(&queue->waiting, job);
    queue_pump(queue);
    if (job->state == JOB_QUEUED && queue->waiting.count > queue->waiting_max &&
        (job->starved || !memory_displace(queue))) {
        job_list_remove(&queue->waiting, job);
        job->state = JOB_FREE;
        return KILN_BUSY;
    }
    if (queue->waiting.count > queue->counts.queue_peak) {
        queue->counts.queue_peak = queue->waiting.count;
    }
    return KILN_OK;
}

/* ---- jobs without a device ---- */

void queue_reject(struct run_queue *queue, struct job_list *finished) {
    char why[JOB_DETAIL_MAX];
    struct job *next;
    for (struct job *job = queue->waiting.head; job != NULL; job = next) {
        next = job->next;
        enum kiln_status status = match_admit(queue, job, why, sizeof why);
        if (status != KILN_OK) {
            job_list_remove(&queue->waiting, job);
            run_queue_end(queue, job, status, why, finished);
        }
    }
}
