/*
 * memory.c: what fits where: results in the arena, arrays in the devices' memory.
 *
 * Each plan says how much device memory a job takes. A job that no device could ever hold is
 * refused before it starts; one that only finds the memory taken waits for the jobs that run. Plans
 * are estimates, and slots keep memory of their last jobs, which they give back at their next one
 * after another has run short. So a job that the device had no memory for is tried again, once for
 * every slot that may have to let go.
 *
 * Blocks of the arena are their client's and come out of its share (arena.h). A job for which there
 * is none waits, and those behind it that fit go past: none of them can tell when a client will
 * have taken its results, so to hold the memory back for one would stop all.
 *
 * Threads: under the dispatcher's lock.
 */
#include "compute/codecs/json.h"
#include "compute/core/shortage.h"
#include "compute/dispatch/private.h"

#include <stdio.h>
#include <string.h>

#define RETRY_FIRST (5 * MS)
#define STUCK_LIMIT SECOND

/* The number at this name, or 0. */
static double number_of(const struct json_value *object, const char *name) {
    struct json_value value = json_member(object, name);
    return value.type == JSON_NUMBER ? json_number(&value) : 0;
}

void memory_learn_locked(const struct dispatch *dispatch, struct supervisor *supervisor) {
    struct json_value description;
    json_value_make(supervisor->description, strlen(supervisor->description), &description);
    if (description.type != JSON_OBJECT) {
        return;
    }
    struct json_value memory = json_member(&description, "memory");
    double total = number_of(&memory, "total"), power = number_of(&description, "power");
    uint64_t bytes = total > 0 && total < 0x1p63 ? (uint64_t)total : 0;
    uint64_t limit = dispatch->device_bytes;
    supervisor->memory_bytes = limit > 0 && (bytes == 0 || limit < bytes) ? limit : bytes;
    supervisor->power_w = power > 0 && power < 1e6 ? power : 0;
}

bool memory_fits(const struct supervisor *supervisor, uint64_t bytes) {
    uint64_t total = supervisor->memory_bytes, used = supervisor->memory_used;
    return total == 0 || (used <= total && bytes <= total - used);
}

bool memory_possible_locked(const struct dispatch *dispatch, struct job *job) {
    const struct supervisor *largest = NULL;
    for (int i = 0; i < dispatch->count; i++) {
        const struct supervisor *one = &dispatch->supervisors[i];
        if (!one->chosen || !one->present || !device_matches(one, job)) {
            continue;
        }
        if (one->memory_bytes == 0 || job->plan.device_bytes <= one->memory_bytes) {
            return true;
        }
        largest = !largest || one->memory_bytes > largest->memory_bytes ? one : largest;
    }
    if (largest) {
        snprintf(job->detail, sizeof job->detail,
                 "the job needs about %.1f MB of device memory; %s gives jobs %.1f MB",
                 (double)job->plan.device_bytes * 1e-6, largest->name,
                 (double)largest->memory_bytes * 1e-6);
    }
    return largest == NULL;
}

/* Something runs, or is ready to run, that will give memory back. */
static bool others_give(const struct dispatch *dispatch) {
    bool any = dispatch->stats.running > 0;
    for (const struct job *job = dispatch->queue.head; job && !any; job = job->next) {
        any = job->result.size > 0;
    }
    return any;
}

/* What clients' blocks can never have. */
static uint64_t fixed_bytes(const struct dispatch *dispatch) {
    uint64_t bytes = 0;
    for (int i = 0; i < dispatch->count; i++) {
        bytes += dispatch->supervisors[i].control.size + dispatch->supervisors[i].reserve.size;
    }
    return bytes;
}

enum kiln_status memory_admit_locked(const struct dispatch *dispatch, struct job *job) {
    uint64_t size = arena_size(dispatch->arena), most = arena_most(dispatch->arena);
    uint64_t fixed = fixed_bytes(dispatch), result = job->plan.result_bytes;
    const struct block *body = &job->body;
    most = most > fixed ? most - fixed : 0;
    if (result > most || body->size > most - result) {
        snprintf(job->detail, sizeof job->detail,
                 "the result may need %.1f MB beside %.1f MB of input; one job may have %.1f MB of "
                 "this daemon's arena (--arena)",
                 (double)result * 1e-6, (double)body->size * 1e-6, (double)most * 1e-6);
        return KILN_JOB_TOO_LARGE;
    }
    uint64_t from = arena_large_from(dispatch->arena), end = body->offset + body->size;
    uint64_t below = body->offset > from ? body->offset - from : 0;
    uint64_t above = size - (end > from ? end : from);
    if (body->size > 0 && result > below && result > above) {
        snprintf(job->detail, sizeof job->detail,
                 "the result may need %.1f MB, which do not fit beside the input where it has come "
                 "to lie in the arena (--arena)",
                 (double)result * 1e-6);
        return KILN_NO_MEMORY;
    }
    return KILN_OK;
}

enum kiln_status memory_take_result(struct dispatch *dispatch, struct job *job) {
    uint64_t gives = arena_gives(dispatch->arena);
    if (job->starved && job->starved_at == gives) {
        return KILN_NO_MEMORY; /* nothing has been given back since */
    }
    enum kiln_status status = arena_take_for(dispatch->arena, &job->holder, job->plan.result_bytes,
                                             &job->body, &job->result);
    if (status == KILN_NO_MEMORY && !job->starved) {
        shortage_log(dispatch->arena, &job->holder, job->plan.result_bytes);
    }
    if (status == KILN_NO_MEMORY) {
        job->starved = true;
        job->starved_at = gives;
    }
    return status;
}

enum kiln_status memory_reserve_locked(struct dispatch *dispatch, struct job *job) {
    if (job->body.size == 0) {
        return KILN_OK; /* it takes its result block when it is sent */
    }
    enum kiln_status status = memory_take_result(dispatch, job);
    if (status == KILN_NO_MEMORY && others_give(dispatch)) {
        return KILN_OK;
    }
    if (status != KILN_OK) {
        snprintf(job->detail, sizeof job->detail,
                 "the result may need %.1f MB of the arena; they are taken now, or this client's "
                 "share is",
                 (double)job->plan.result_bytes * 1e-6);
    }
    return status;
}

bool memory_retry_locked(struct dispatch *dispatch, struct supervisor *supervisor,
                         struct job *job) {
    uint64_t now = clock_ns();
    /* While others run there, their end may be what it waits for. */
    job->shortages += supervisor->running == 0;
    if (dispatch->stopping || job->state != JOB_RUNNING || now >= job->deadline_ns ||
        job->shortages > supervisor->slots + 1) {
        return false;
    }
    job->retry_ns = now + RETRY_FIRST * (uint64_t)(1 + job->shortages);
    job->detail[0] = '\0';
    queue_return_locked(dispatch, job);
    dispatch_hurry_locked(dispatch, job->retry_ns);
    return true;
}

bool memory_displace_locked(struct dispatch *dispatch) {
    struct job *youngest = NULL;
    size_t starved = 0;
    for (struct job *job = dispatch->queue.head; job; job = job->next) {
        if (job->starved && job->result.size == 0) {
            youngest = job;
            starved++;
        }
    }
    if (starved <= dispatch->queue_max / 2) {
        return false;
    }
    job_list_remove(&dispatch->queue, youngest);
    queue_end_locked(dispatch, youngest, KILN_NO_MEMORY,
                     "the job waited for room in the arena, and the queue is full",
                     &dispatch->ended);
    dispatch_hurry_locked(dispatch, clock_ns());
    return true;
}

void memory_unlock_locked(struct dispatch *dispatch, uint64_t now, struct job_list *finished) {
    if (!dispatch->starved || dispatch->stats.running > 0) {
        dispatch->stuck_ns = 0;
        return;
    }
    if (dispatch->stuck_ns == 0) {
        dispatch->stuck_ns = now;
    }
    if (now < dispatch->stuck_ns + STUCK_LIMIT) {
        return;
    }
    for (struct job *job = dispatch->queue.tail; job; job = job->previous) {
        if (job->body.size > 0 && job->result.size == 0) {
            job_list_remove(&dispatch->queue, job);
            queue_end_locked(dispatch, job, KILN_NO_MEMORY, "the arena is full of inputs that wait",
                             finished);
            dispatch->stuck_ns = now;
            return;
        }
    }
}
