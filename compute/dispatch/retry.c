/*
 * retry.c: jobs whose worker is gone, and jobs that no device will take.
 *
 * Their states are in the picture of queue.c. A job of a dead worker tries again once,
 * alone; what the device may still write to stays taken until the worker's end is certain.
 *
 * Threads: under the dispatcher's lock, on its own thread.
 */
#include "compute/core/log.h"
#include "compute/dispatch/private.h"

#include <stdio.h>

/* The end of a job on a dead worker, unless it may try again. */
static void job_lose(struct dispatch *dispatch, struct supervisor *supervisor, struct job *job,
                     const char *how, struct job_list *finished) {
    char detail[JOB_DETAIL_MAX], id[JOB_ID_TEXT];
    job_id_print(&job->id, id);
    if (job->state == JOB_CANCELLING || (job->state == JOB_FAULTED && job->revoked)) {
        queue_end_locked(dispatch, job, KILN_CANCELLED, NULL, finished);
    } else if (job->state == JOB_EXPIRING) {
        queue_end_locked(dispatch, job, KILN_DEADLINE, "the job was stopped at its deadline",
                         finished);
    } else if (dispatch->stopping) {
        queue_end_locked(dispatch, job, KILN_DRAINING, NULL, finished);
    } else if (supervisor->blameless || job->attempt == 0) {
        job->attempt += !supervisor->blameless;
        job->suspect = job->worker;
        dispatch->stats.retried++;
        log_about(LOG_LEVEL_WARNING, &job->trace, "job %s (%s) waits again: its worker on %s %s",
                  id, job->type->name, supervisor->name, how);
        queue_return_locked(dispatch, job);
        return;
    } else {
        snprintf(detail, sizeof detail,
                 "the worker of %s died twice with this job; at last it %s%s%.90s",
                 supervisor->name, how, job->state == JOB_FAULTED ? ": " : "",
                 job->state == JOB_FAULTED ? job->detail : "");
        log_about(LOG_LEVEL_ERROR, &job->trace, "job %s (%s) failed for good: %s", id,
                  job->type->name, detail);
        snprintf(job->device_name, sizeof job->device_name, "%s", supervisor->name);
        queue_end_locked(dispatch, job, KILN_DEVICE_FAULT, detail, finished);
    }
    supervisor->jobs_failed += !status_cancelled(job->status);
}

void queue_lose_locked(struct dispatch *dispatch, struct supervisor *supervisor, const char *how,
                       struct job_list *finished) {
    for (int i = 0; i < PLACES_MAX; i++) {
        struct place *place = &supervisor->place[i];
        arena_give(dispatch->arena, &place->orphans[0]);
        arena_give(dispatch->arena, &place->orphans[1]);
        struct job *job = place->job;
        if (!job) {
            continue;
        }
        place_clear_locked(dispatch, supervisor, i);
        if (supervisor_canary(supervisor, job)) {
            canary_lose_locked(supervisor);
        } else {
            job_lose(dispatch, supervisor, job, how, finished);
        }
    }
}

void queue_orphan_locked(struct dispatch *dispatch, struct supervisor *supervisor,
                         uint64_t expired_ns, struct job_list *finished) {
    for (int i = 0; i < PLACES_MAX; i++) {
        struct place *place = &supervisor->place[i];
        struct job *job = place->job;
        if (!job || supervisor_canary(supervisor, job)) {
            continue;
        }
        bool expired = job->state == JOB_EXPIRING && job->deadline_ns <= expired_ns;
        if (!expired && expired_ns != UINT64_MAX) {
            continue;
        }
        place->orphans[0] = job->body;
        place->orphans[1] = job->result;
        job->body = job->result = (struct block){0};
        place_clear_locked(dispatch, supervisor, i);
        supervisor->jobs_failed++;
        queue_end_locked(dispatch, job,
                         job->state == JOB_CANCELLING ? KILN_CANCELLED
                         : job->state == JOB_EXPIRING ? KILN_DEADLINE
                                                      : KILN_DEVICE_FAULT,
                         "the device does not let go of this job", finished);
    }
}

/* ---- jobs without a device ---- */

void queue_reject_locked(struct dispatch *dispatch, struct job_list *finished) {
    char why[JOB_DETAIL_MAX];
    struct job *next;
    for (struct job *job = dispatch->queue.head; job; job = next) {
        next = job->next;
        enum kiln_status status = device_admit_locked(dispatch, job, why, sizeof why);
        if (status != KILN_OK) {
            job_list_remove(&dispatch->queue, job);
            queue_end_locked(dispatch, job, status, why, finished);
        }
    }
}
