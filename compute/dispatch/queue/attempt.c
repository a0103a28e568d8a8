/*
 * attempt.c: how a run of a job ends: with an answer, with its worker, or without certainty.
 *
 * The states are in the picture of queue.c. A job of a dead worker is retried once, alone; what the
 * device may still write to stays taken until the worker's end is certain.
 */
#include "compute/dispatch/queue/attempt.h"

#include "compute/core/log.h"
#include "compute/dispatch/queue/memory.h"

#include <stdio.h>

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

void attempt_end(struct run_queue *queue, struct supervisor *supervisor, struct job *job,
                 enum kiln_status status, uint32_t gathered, struct job_list *finished) {
    if (status == KILN_NO_MEMORY && memory_retry(queue, supervisor, job)) {
        return;
    }
    snprintf(job->device_name, sizeof job->device_name, "%s", supervisor->name);
    account(supervisor, job, gathered, status);
    if (status == KILN_NO_MEMORY && queue->stopping) {
        status = KILN_DRAINING; /* it would have been tried again */
    }
    run_queue_end(queue, job, status, job->detail, finished);
}

/* The end of a job on a dead worker, unless it may try again. */
static void lose(struct run_queue *queue, struct supervisor *supervisor, struct job *job,
                 const char *how, struct job_list *finished) {
    char detail[JOB_DETAIL_MAX], id[JOB_ID_TEXT];
    job_id_print(&job->id, id);
    if (job->state == JOB_CANCELLING || (job->state == JOB_FAULTED && job->revoked)) {
        run_queue_end(queue, job, KILN_CANCELLED, NULL, finished);
    } else if (job->state == JOB_EXPIRING) {
        run_queue_end(queue, job, KILN_DEADLINE, "the job was stopped at its deadline", finished);
    } else if (queue->stopping) {
        run_queue_end(queue, job, KILN_DRAINING, NULL, finished);
    } else if (supervisor->blameless || job->attempt == 0) {
        job->attempt += !supervisor->blameless;
        job->suspect = job->worker;
        queue->counts.retried++;
        log_about(LOG_LEVEL_WARNING, &job->trace, "job %s (%s) waits again: its worker on %s %s",
                  id, job->type->name, supervisor->name, how);
        run_queue_return(queue, job);
        return;
    } else {
        snprintf(detail, sizeof detail,
                 "the worker of %s died twice with this job; at last it %s%s%.90s",
                 supervisor->name, how, job->state == JOB_FAULTED ? ": " : "",
                 job->state == JOB_FAULTED ? job->detail : "");
        log_about(LOG_LEVEL_ERROR, &job->trace, "job %s (%s) failed for good: %s", id,
                  job->type->name, detail);
        snprintf(job->device_name, sizeof job->device_name, "%s", supervisor->name);
        run_queue_end(queue, job, KILN_DEVICE_FAULT, detail, finished);
    }
    supervisor->jobs_failed += !status_cancelled(job->status);
}

void attempts_lose(struct run_queue *queue, struct supervisor *supervisor, const char *how,
                   struct job_list *finished) {
    for (int i = 0; i < PLACES_MAX; i++) {
        struct place *place = &supervisor->flight.place[i];
        arena_give(queue->arena, &place->orphans[0]);
        arena_give(queue->arena, &place->orphans[1]);
        struct job *job = place->job;
        if (job == NULL) {
            continue;
        }
        in_flight_clear(&supervisor->flight, i);
        if (supervisor_canary(supervisor, job)) {
            supervisor_canary_clear(supervisor);
        } else {
            lose(queue, supervisor, job, how, finished);
        }
    }
}

void attempts_orphan(struct run_queue *queue, struct supervisor *supervisor, uint64_t expired_ns,
                     struct job_list *finished) {
    for (int i = 0; i < PLACES_MAX; i++) {
        struct place *place = &supervisor->flight.place[i];
        struct job *job = place->job;
        if (job == NULL || supervisor_canary(supervisor, job)) {
            continue;
        }
        bool expired = job->state == JOB_EXPIRING && job->deadline_ns <= expired_ns;
        if (!expired && expired_ns != UINT64_MAX) {
            continue;
        }
        place->orphans[0] = job->body;
        place->orphans[1] = job->result;
        job->body = job->result = (struct block){0};
        in_flight_clear(&supervisor->flight, i);
        supervisor->jobs_failed++;
        run_queue_end(queue, job,
                      job->state == JOB_CANCELLING ? KILN_CANCELLED
                      : job->state == JOB_EXPIRING ? KILN_DEADLINE
                                                   : KILN_DEVICE_FAULT,
                      "the device does not let go of this job", finished);
    }
}
