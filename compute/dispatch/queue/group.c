/*
 * group.c: which waiting jobs run together.
 *
 * A small job leaves most of a GPU idle and costs the host as many calls of the driver as a large
 * one. Where such jobs have to wait for a slot anyway, those that are alike (job.h) share the next
 * one: one packet, one launch of each kernel. Nobody waits for others to come, and while slots are
 * free every job has its own. A group takes no more than its share of what waits, so that all free
 * slots get work.
 */
#include "compute/dispatch/queue/group.h"

#define LOOKED_MAX 128 /* jobs behind the first one that are compared with it */

/* What is left for each free slot, rounded up. */
static size_t share_of_queue(const struct run_queue *queue) {
    size_t slots = 0;
    for (int i = 0; i < queue->count; i++) {
        const struct supervisor *one = &queue->supervisors[i];
        slots += one->phase == WORKER_SERVING ? (size_t)(one->flight.slots - one->flight.busy) : 0;
    }
    return slots > 0 ? (queue->waiting.count + slots - 1) / slots : 1;
}

/* One that failed before, in whatever way, runs by itself. */
static bool is_fresh(const struct job *job) {
    return job->attempt == 0 && job->shortages == 0 && job->retry_ns == 0;
}

static int size_limit(const struct run_queue *queue, const struct supervisor *supervisor) {
    size_t limit = share_of_queue(queue);
    size_t places = (size_t)(PLACES_MAX - supervisor->flight.running);
    limit = limit < places ? limit : places;
    return limit < (size_t)supervisor->flight.gather ? (int)limit : supervisor->flight.gather;
}

int group_find(const struct run_queue *queue, const struct supervisor *supervisor, struct job *job,
               struct job *group[GROUP_MAX]) {
    int limit = size_limit(queue, supervisor), count = 0;
    uint64_t bytes = job->plan.device_bytes;
    group[count++] = job;
    if (limit < 2 || !is_fresh(job) || job->type->alike == NULL || !job->type->alike(job, job)) {
        return count;
    }
    struct job *other = job->next;
    for (int looked = 0; other != NULL && count < limit && looked < LOOKED_MAX; looked++) {
        uint64_t more = bytes + other->plan.device_bytes; /* both are small */
        if (other->type == job->type && other->format == job->format && is_fresh(other) &&
            supervisor_matches(supervisor, other) && job->type->alike(job, other) &&
            supervisor_fits(supervisor, more)) {
            group[count++] = other;
            bytes = more;
        }
        other = other->next;
    }
    return count;
}
