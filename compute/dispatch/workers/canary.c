/*
 * canary.c: the job that asks a device whether it still answers.
 *
 * It goes the way of every other job (command, arena block, answer), so that its success says that
 * all of that works; but its block is its own for ever, so that it says nothing of how full the
 * arena is. A new worker must bring its first one back before it takes jobs; an idle one
 * gets another every few seconds. A canary that fails or does not come back has its worker
 * replaced.
 */
#include "compute/dispatch/workers/canary.h"

#include "compute/core/log.h"
#include "compute/jobs/canary.h"

#include <stdio.h>

#define CANARY_DEADLINE (10 * SECOND)

/* Makes the job that of the first kind that needs no input and no kernel that the device lacks;
   false if there is none. */
static bool canary_make(const struct supervisor *supervisor, struct job *job) {
    size_t data_size;
    for (size_t i = 0; job_types[i] != NULL; i++) {
        job->type = job_types[i];
        if (job->type->input == INPUT_NONE &&
            canary_prepare(job->type, job->params, job->inputs, NULL, &data_size, &job->plan) ==
                KILN_OK &&
            supervisor_matches(supervisor, job)) {
            return true;
        }
    }
    return false;
}

/* Its first one came back: it takes jobs from now on. */
static void serve(struct workers *workers, struct supervisor *supervisor) {
    uint64_t now = clock_ns();
    supervisor->phase = WORKER_SERVING;
    supervisor->served = true;
    supervisor->broken = false;
    supervisor->ready_ns = now;
    supervisor->reason[0] = '\0';
    log_info("%s is ready after %.2f s (worker %ld, %d slots)", supervisor->name,
             (double)(now - supervisor->started_ns) * 1e-9, (long)supervisor->pid,
             supervisor->flight.slots);
    workers->events->ready(workers->context, supervisor);
}

static void succeed(struct workers *workers, struct supervisor *supervisor) {
    supervisor->success_ns = clock_ns();
    supervisor->canary_failed = false;
    if (supervisor->phase == WORKER_TESTING) {
        serve(workers, supervisor);
    }
}

enum kiln_status canary_reserve_locked(struct workers *workers, struct supervisor *supervisor) {
    struct job *job = &supervisor->canary;
    if (supervisor->reserve.size > 0 || !canary_make(supervisor, job)) {
        return KILN_OK;
    }
    return arena_take(workers->queue->arena, job->plan.result_bytes, &supervisor->reserve);
}

void canary_send_locked(struct workers *workers, struct supervisor *supervisor, uint64_t now) {
    struct job *job = &supervisor->canary;
    *job = (struct job){
        .id = job_ids_next(&workers->queue->ids, job_ids_now()),
        .watch_fd = -1,
        .submitted_ns = now,
        .deadline_ns = now + CANARY_DEADLINE,
    };
    if (!canary_make(supervisor, job) || job->plan.result_bytes > supervisor->reserve.size) {
        succeed(workers, supervisor); /* there is nothing to ask: the warm-up must do */
        return;
    }
    job->format = job->type->canary_format;
    job->result = supervisor->reserve;
    if (packets_put(&workers->queue->packets, supervisor, &job, 1) == KILN_OK) {
        supervisor->canary_running = true;
        return;
    }
    run_queue_hurry(workers->queue, now + 20 * MS); /* too much is on its way */
}

void canary_end_locked(struct workers *workers, struct supervisor *supervisor,
                       enum kiln_status status) {
    struct job *job = &supervisor->canary;
    char reason[sizeof supervisor->reason];
    supervisor_canary_clear(supervisor);
    if (status == KILN_OK) {
        succeed(workers, supervisor);
        return;
    }
    supervisor->canary_failed = true;
    snprintf(reason, sizeof reason, "its canary failed: %s",
             job->detail[0] ? job->detail : status_row(status)->title);
    if (status == KILN_NO_MEMORY && supervisor->phase == WORKER_SERVING) {
        log_warning("%s: %s", supervisor->name, reason); /* others use the device too */
        return;
    }
    supervisor_kill(supervisor, reason);
}
