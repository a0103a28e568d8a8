/*
 * canary.c: the job that asks a device whether it still answers.
 *
 * It goes the way of every other job (command, arena block, answer), so that its success says that
 * all of that works; but its block is its own for ever, so that it says nothing of how full the
 * arena is. A new worker must bring its first one back before it takes jobs; an idle one
 * gets another every few seconds. A canary that fails or does not come back has its worker
 * replaced.
 *
 * Threads: the dispatcher's, under the lock.
 */
#include "compute/jobs/canary.h"
#include "compute/core/log.h"
#include "compute/dispatch/private.h"

#include <stdio.h>

#define CANARY_DEADLINE (10 * SECOND)

/* The first kind that needs no input. */
static const struct job_type *canary_type(void) {
    for (size_t i = 0; job_types[i]; i++) {
        if (job_types[i]->canary_query && job_types[i]->input == INPUT_NONE) {
            return job_types[i];
        }
    }
    return NULL;
}

static void succeed(struct dispatch *dispatch, struct supervisor *supervisor) {
    supervisor->success_ns = clock_ns();
    supervisor->canary_failed = false;
    if (supervisor->phase == WORKER_TESTING) {
        supervisor_serve_locked(dispatch, supervisor);
    }
}

enum kiln_status canary_reserve_locked(struct dispatch *dispatch, struct supervisor *supervisor) {
    const struct job_type *type = canary_type();
    struct job *job = &supervisor->canary;
    size_t data_size;
    if (supervisor->reserve.size > 0 || !type ||
        canary_prepare(type, job->params, job->inputs, NULL, &data_size, &job->plan) != KILN_OK) {
        return KILN_OK;
    }
    return arena_take(dispatch->arena, job->plan.result_bytes, &supervisor->reserve);
}

void canary_send_locked(struct dispatch *dispatch, struct supervisor *supervisor, uint64_t now) {
    const struct job_type *type = canary_type();
    struct job *job = &supervisor->canary;
    size_t data_size;
    *job = (struct job){
        .type = type,
        .id = job_ids_next(&dispatch->ids, job_ids_now()),
        .watch_fd = -1,
        .submitted_ns = now,
        .deadline_ns = now + CANARY_DEADLINE,
    };
    if (!type ||
        canary_prepare(type, job->params, job->inputs, NULL, &data_size, &job->plan) != KILN_OK) {
        succeed(dispatch, supervisor); /* there is nothing to ask: the warm-up must do */
        return;
    }
    job->format = type->canary_format;
    job->result = supervisor->reserve;
    if (places_send_locked(dispatch, supervisor, &job, &(int){1}) == KILN_OK) {
        supervisor->canary_running = true;
        return;
    }
    dispatch_hurry_locked(dispatch, now + 20 * MS); /* its socket is full for now */
}

void canary_end_locked(struct dispatch *dispatch, struct supervisor *supervisor,
                       enum kiln_status status) {
    struct job *job = &supervisor->canary;
    char reason[sizeof supervisor->reason];
    supervisor->canary_running = false;
    job->state = JOB_FREE;
    job->result = (struct block){0};
    if (status == KILN_OK) {
        succeed(dispatch, supervisor);
        return;
    }
    supervisor->canary_failed = true;
    snprintf(reason, sizeof reason, "its canary failed: %s",
             job->detail[0] ? job->detail : status_row(status)->title);
    if (status == KILN_NO_MEMORY && supervisor->phase == WORKER_SERVING) {
        log_warning("%s: %s", supervisor->name, reason); /* others use the device too */
        return;
    }
    supervisor_kill_locked(supervisor, reason);
}

void canary_lose_locked(struct supervisor *supervisor) {
    supervisor->canary_running = false;
    supervisor->canary.state = JOB_FREE;
    supervisor->canary.result = (struct block){0};
}
