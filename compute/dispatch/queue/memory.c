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
 */
#include "compute/dispatch/queue/memory.h"

#include "compute/core/shortage.h"

#include <stdio.h>

#define RETRY_FIRST (5 * MS)
#define STUCK_LIMIT SECOND

bool memory_possible(const struct run_queue *queue, struct job *job) {
    const struct supervisor *largest = NULL;
    for (int i = 0; i < queue->count; i++) {
        const struct supervisor *one = &queue->supervisors[i];
        if (!one->chosen || !one->present || !supervisor_matches(one, job)) {
            continue;
        }
        if (one->memory_bytes == 0 || job->plan.device_bytes <= one->memory_bytes) {
            return true;
        }
        largest = largest == NULL || one->memory_bytes > largest->memory_bytes ? one : largest;
    }
    if (largest != NULL) {
        snprintf(job->detail, sizeof job->detail,
                 "the job needs about %.1f MB of device memory; %s gives jobs %.1f MB",
                 (double)job->plan.device_bytes * 1e-6, largest->name,
                 (double)largest->memory_bytes * 1e-6);
    }
    return largest == NULL;
}

/* Something runs, or is ready to run, that will give memory back. */
static bool others_give(const struct run_queue *queue) {
    bool any = run_queue_running(queue) > 0;
    for (const struct job *job = queue->waiting.head; job != NULL && !any; job = job->next) {
        any = job->result.size > 0;
    }
    return any;
}

/* What clients' blocks can never have. */
static uint64_t fixed_bytes(const struct run_queue *queue) {
    uint64_t bytes = 0;
    for (int i = 0; i < queue->count; i++) {
        bytes += queue->supervisors[i].control.size + queue->supervisors[i].reserve.size;
    }
    return bytes;
}

enum kiln_status memory_admit(const struct run_queue *queue, struct job *job) {
    uint64_t size = arena_size(queue->arena), most = arena_most(queue->arena);
    uint64_t fixed = fixed_bytes(queue), result = job->plan.result_bytes;
    const struct block *body = &job->body;
    most = most > fixed ? most - fixed : 0;
    if (result > most || body->size > most - result) {
        snprintf(job->detail, sizeof job->detail,
                 "the result may need %.1f MB beside %.1f MB of input; one job may have %.1f MB of "
                 "this daemon's arena (--arena)",
                 (double)result * 1e-6, (double)body->size * 1e-6, (double)most * 1e-6);
        return KILN_JOB_TOO_LARGE;
    }
    uint64_t from = arena_large_from(queue->arena), end = body->offset + body->size;
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

enum kiln_status memory_take_result(struct run_queue *queue, struct job *job) {
    uint64_t gives = arena_gives(queue->arena);
    if (job->starved && job->starved_at == gives) {
        return KILN_NO_MEMORY; /* nothing has been given back since */
    }
    enum kiln_status status = arena_take_for(queue->arena, &job->holder, job->plan.result_bytes,
                                             &job->body, &job->result);
    if (status == KILN_NO_MEMORY && !job->starved) {
        shortage_log(queue->arena, &job->holder, job->plan.result_bytes);
    }
    if (status == KILN_NO_MEMORY) {
        job->starved = true;
        job->starved_at = gives;
    }
    return status;
}

enum kiln_status memory_reserve(struct run_queue *queue, struct job *job) {
    if (job->body.size == 0) {
        return KILN_OK; /* it takes its result block when it is sent */
    }
    enum kiln_status status = memory_take_result(queue, job);
    if (status == KILN_NO_MEMORY && others_give(queue)) {
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

bool memory_retry(struct run_queue *queue, struct supervisor *supervisor, struct job *job) {
    uint64_t now = clock_ns();
    /* While others run there, their end may be what it waits for. */
    job->shortages += supervisor->flight.running == 0;
    if (queue->stopping || job->state != JOB_RUNNING || now >= job->deadline_ns ||
        job->shortages > supervisor->flight.slots + 1) {
        return false;
    }
    job->retry_ns = now + RETRY_FIRST * (uint64_t)(1 + job->shortages);
    job->detail[0] = '\0';
    run_queue_return(queue, job);
    run_queue_hurry(queue, job->retry_ns);
    return true;
}

bool memory_displace(struct run_queue *queue) {
    struct job *youngest = NULL;
    size_t starved = 0;
    for (struct job *job = queue->waiting.head; job != NULL; job = job->next) {
        if (job->starved && job->result.size == 0) {
            youngest = job;
            starved++;
        }
    }
    if (starved <= queue->waiting_max / 2) {
        return false;
    }
    job_list_remove(&queue->waiting, youngest);
    run_queue_end(queue, youngest, KILN_NO_MEMORY,
                  "the job waited for room in the arena, and the queue is full", &queue->ended);
    run_queue_hurry(queue, clock_ns());
    return true;
}

void memory_unlock(struct run_queue *queue, uint64_t now, struct job_list *finished) {
    if (!queue->starved || run_queue_running(queue) > 0) {
        queue->stuck_ns = 0;
        return;
    }
    if (queue->stuck_ns == 0) {
        queue->stuck_ns = now;
    }
    if (now < queue->stuck_ns + STUCK_LIMIT) {
        return;
    }
    for (struct job *job = queue->waiting.tail; job != NULL; job = job->previous) {
        if (job->body.size > 0 && job->result.size == 0) {
            job_list_remove(&queue->waiting, job);
            run_queue_end(queue, job, KILN_NO_MEMORY, "the arena is full of inputs that wait",
                          finished);
            queue->stuck_ns = now;
            return;
        }
    }
}
