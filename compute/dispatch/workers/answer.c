/*
 * answer.c: what a worker answers, judged: the one place where its numbers come in.
 *
 * A worker decodes what strangers send and may be anybody's by now. Nothing behind this file has to
 * doubt an answer's numbers again: the status is one that a worker can have, the result fits its
 * block, phases are finite and no longer than the job has been out, so that they can be printed,
 * summed and turned into integers. (Descriptions are text; supervisor.c and the
 * server's gauges read their numbers. Progress is another process's word and read in jobs.c.)
 */
#include "compute/dispatch/workers/answer.h"

#include "compute/dispatch/workers/canary.h"

#include <math.h>
#include <stdio.h>

/* How a run can end. All else is for the front to say. */
static bool status_ours(enum kiln_status status) {
    switch (status) {
    case KILN_OK:
    case KILN_MALFORMED:
    case KILN_TOO_LARGE:
    case KILN_INVALID:
    case KILN_UNSUPPORTED:
    case KILN_CANCELLED:
    case KILN_INTERNAL:
    case KILN_DEVICE_FAULT:
    case KILN_NO_MEMORY:
    case KILN_JOB_TOO_LARGE:
        return true;
    default:
        return false;
    }
}

static bool is_sound(const struct answer *answer) {
    return answer->magic == COMMAND_MAGIC && (uint32_t)answer->status < KILN_STATUS_COUNT &&
           status_ours((enum kiln_status)answer->status) && answer->gathered >= 1 &&
           answer->gathered <= GROUP_MAX;
}

/* A phase's length in milliseconds, of a job that was out for `most`. The device's clock is not the
   host's: it may say a little more. */
static double phase_take(double value, double most) {
    return isfinite(value) && value > 0 ? fmin(value, most) : 0;
}

static struct remarks remarks_take(const struct remarks *told) {
    return (struct remarks){
        .picture = told->picture,
        .iterated = told->iterated,
        .clamped = told->clamped,
        .scale = isfinite(told->scale) && told->scale > 0 ? told->scale : 0,
        .left = told->left >= 0 && told->left <= 1 ? told->left : 1,
    };
}

static void answer_copy(struct job *job, const struct answer *answer, uint64_t now) {
    double most = now > job->started_ns ? (double)(now - job->started_ns) * 1e-6 : 0;
    job->timing = (struct timing){
        .queue = (double)(job->started_ns - job->submitted_ns) * 1e-6,
        .upload = phase_take(answer->timing.upload, most),
        .kernel = phase_take(answer->timing.kernel, most),
        .download = phase_take(answer->timing.download, most),
        .encode = phase_take(answer->timing.encode, most),
    };
    snprintf(job->detail, sizeof job->detail, "%.*s", (int)sizeof answer->detail - 1,
             answer->detail);
    job->remarks = remarks_take(&answer->remarks);
    job->result_size = answer->result_size; /* verdict() holds it against the block */
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

/* Its blocks may still be a target of the device: they wait for the process's end. */
static void fault_take(struct supervisor *supervisor, struct job *job) {
    char reason[sizeof supervisor->reason];
    if (job->state == JOB_RUNNING) {
        job->state = JOB_FAULTED;
    }
    snprintf(reason, sizeof reason, "the device failed: %s", job->detail);
    supervisor_kill(supervisor, reason);
}

bool answer_take_locked(struct workers *workers, struct supervisor *supervisor,
                        const struct answer *answer, struct job_list *finished) {
    struct in_flight *flight = &supervisor->flight;
    if (!in_flight_holds(flight, answer->place, answer->generation, &answer->id) ||
        !is_sound(answer)) {
        return false;
    }
    int place = (int)answer->place;
    struct job *job = flight->place[place].job;
    enum kiln_status answered = (enum kiln_status)answer->status;
    if (job->state == JOB_FAULTED) {
        return false; /* answered already */
    }
    answer_copy(job, answer, clock_ns());
    if (answered == KILN_DEVICE_FAULT) {
        fault_take(supervisor, job);
        return true;
    }
    enum kiln_status status = verdict(job, answered);
    /* Power of the last second times the time on the device, shared with the others there. */
    job->joules = supervisor->power_w *
                  (job->timing.upload + job->timing.kernel + job->timing.download) * 1e-3 /
                  flight->running;
    in_flight_clear(flight, place);
    if (supervisor_canary(supervisor, job)) {
        canary_end_locked(workers, supervisor, status);
    } else {
        workers->events->answered(workers->context, supervisor, job, status, answer->gathered,
                                  finished);
    }
    return true;
}
