/*
 * view.c: what others may see of the dispatcher: readiness, devices, counts.
 *
 * Threads: any. Texts are copied under the lock and shown without it.
 */
#include "compute/dispatch/dispatch.h"

#include "compute/dispatch/dispatcher.h"
#include "compute/worker/command.h"

#include <stdio.h>

#define READY_AGE  (15 * SECOND) /* of the last good answer of an idle device */
#define NOTICE_AGE (3 * SECOND)  /* of the last heartbeat, which comes every second */

/* It is given more time before it is replaced, but what cannot be relied on is not ready. */
static bool is_silent(const struct supervisor *supervisor, uint64_t now) {
    return supervisor->phase == WORKER_SERVING && now > supervisor->notice_ns + NOTICE_AGE;
}

static bool is_answering(const struct supervisor *supervisor, uint64_t now) {
    if (supervisor->phase != WORKER_SERVING || supervisor->canary_failed ||
        is_silent(supervisor, now)) {
        return false;
    }
    /* A long job leaves no room for canaries; silence and its deadline are watched instead. */
    bool busy = supervisor->flight.running > supervisor->canary_running;
    return busy || now < supervisor->success_ns + READY_AGE;
}

bool dispatch_ready(struct dispatch *dispatch, char *why, size_t why_size) {
    struct run_queue *queue = &dispatch->queue;
    bool ready = false;
    uint64_t now = clock_ns();
    const struct supervisor *first = NULL;
    run_queue_lock(queue);
    for (int i = 0; i < queue->count && !ready; i++) {
        const struct supervisor *one = &queue->supervisors[i];
        ready = one->chosen && is_answering(one, now);
        first = first == NULL && one->chosen ? one : first;
    }
    if (queue->draining) {
        ready = false;
        snprintf(why, why_size, "the daemon is shutting down");
    } else if (!ready && first != NULL) {
        bool odd = first->phase == WORKER_SERVING;
        snprintf(why, why_size, "%s is %s%s%s", first->name,
                 is_silent(first, now) ? "without heartbeat"
                 : odd                 ? "not answering its canary"
                                       : device_state_name(supervisor_state(first)),
                 first->reason[0] ? ": " : "", first->reason);
    } else if (!ready) {
        snprintf(why, why_size, "no device is in use");
    } else if (why_size > 0) {
        why[0] = '\0';
    }
    run_queue_unlock(queue);
    return ready;
}

/* The caller's copies of one device's texts, so that its callback runs without the lock. */
struct snapshot {
    char name[24], reason[256], description[NOTICE_TEXT_MAX];
};

static void snapshot_locked(const struct supervisor *supervisor, struct snapshot *copy,
                            struct device_view *view) {
    uint64_t now = clock_ns();
    snprintf(copy->name, sizeof copy->name, "%s", supervisor->name);
    snprintf(copy->reason, sizeof copy->reason, "%s", supervisor->reason);
    snprintf(copy->description, sizeof copy->description, "%s", supervisor->description);
    *view = (struct device_view){
        .name = copy->name,
        .state = supervisor_state(supervisor),
        .reason = copy->reason,
        .description = copy->description,
        .slots = supervisor->flight.slots,
        .running = supervisor->flight.running - supervisor->canary_running,
        .pid = (int)supervisor->pid,
        .jobs_done = supervisor->jobs_done,
        .jobs_failed = supervisor->jobs_failed,
        .respawns = supervisor->respawns,
        .gathered = supervisor->gathered,
        .busy_s = supervisor->busy_ms * 1e-3,
        .active_s = (double)in_flight_active(&supervisor->flight, now) * 1e-9,
        .age_s = (double)(now - supervisor->described_ns) * 1e-9,
    };
}

void dispatch_devices(struct dispatch *dispatch,
                      void (*each)(const struct device_view *view, void *context), void *context) {
    struct run_queue *queue = &dispatch->queue;
    struct snapshot copy;
    struct device_view view;
    for (int i = 0; i < queue->count; i++) {
        run_queue_lock(queue);
        snapshot_locked(&queue->supervisors[i], &copy, &view);
        run_queue_unlock(queue);
        each(&view, context);
    }
}

bool dispatch_knows(struct dispatch *dispatch, const char *device) {
    const struct run_queue *queue = &dispatch->queue;
    for (int i = 0; i < queue->count; i++) { /* names are constant: no lock */
        if (device_kind_matches(queue->supervisors[i].name, device)) {
            return true;
        }
    }
    return false;
}

void dispatch_stats(struct dispatch *dispatch, struct dispatch_stats *stats) {
    struct run_queue *queue = &dispatch->queue;
    run_queue_lock(queue);
    const struct run_counts *counts = &queue->counts;
    *stats = (struct dispatch_stats){
        .queued = queue->waiting.count,
        .queue_peak = counts->queue_peak,
        .running = (uint64_t)run_queue_running(queue),
        .submitted = counts->submitted,
        .completed = counts->completed,
        .failed = counts->failed,
        .cancelled = counts->cancelled,
        .retried = counts->retried,
        .refused = counts->refused,
    };
    uint64_t now = clock_ns();
    for (const struct job *job = queue->waiting.head; job != NULL; job = job->next) {
        double waited = (double)(now - job->submitted_ns) * 1e-9;
        stats->oldest_s = waited > stats->oldest_s ? waited : stats->oldest_s;
    }
    run_queue_unlock(queue);
}
