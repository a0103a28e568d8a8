/*
 * result_reuse.c: who may have whose result, and the ends of jobs.
 */
#include "server/jobs/result_reuse.h"

#include "compute/core/log.h"
#include "server/cache/lookup_cache.h"
#include "server/core/offload.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

enum kiln_status result_reuse_create(uint64_t bytes, struct result_reuse **out) {
    *out = NULL;
    if (bytes == 0) {
        return KILN_OK;
    }
    struct result_reuse *reuse = calloc(1, sizeof *reuse);
    if (reuse == NULL) {
        return KILN_NO_MEMORY;
    }
    single_flight_init(&reuse->flights);
    enum kiln_status status = cache_create(bytes, &reuse->cache);
    if (status == KILN_OK &&
        (!lookup_cache_init() ||
         getrandom(reuse->secret, sizeof reuse->secret, 0) != (ssize_t)sizeof reuse->secret)) {
        status = KILN_INTERNAL;
    }
    if (status == KILN_OK) {
        *out = reuse;
    } else {
        result_reuse_destroy(reuse);
    }
    return status;
}

void result_reuse_destroy(struct result_reuse *reuse) {
    if (reuse == NULL) {
        return;
    }
    cache_destroy(reuse->cache);
    single_flight_finish(&reuse->flights);
    free(reuse);
}

/* ---- addresses seen before ---- */

/* Where there is no body, address and `accept` say it all. */
void result_reuse_address(struct job_record *record, const char *address) {
    const struct result_reuse *reuse = record->jobs->reuse;
    struct digest parts[2];
    const char *accept = record->accept != NULL ? record->accept : "";
    if (reuse == NULL || address == NULL || record->body_size > 0) {
        return;
    }
    etag_hash(address, strlen(address), reuse->secret, &parts[0]);
    etag_hash(accept, strlen(accept), reuse->secret, &parts[1]);
    etag_hash(parts, sizeof parts, reuse->secret, &record->address);
}

bool result_reuse_recall(struct job_record *record) {
    if (digest_empty(&record->address)) {
        return false;
    }
    const struct lookup_row *row = record->row = lookup_cache_row(&record->address);
    if (row == NULL || !digest_equal(&row->request, &record->address)) {
        return false;
    }
    record->digest = row->result;
    record->negotiated = row->negotiated;
    record->job.format = row->format;
    memcpy(record->etag, row->etag, sizeof row->etag);
    return true;
}

void result_reuse_remember(const struct job_record *record) {
    struct lookup_row *row = record->row;
    if (row != NULL && !digest_empty(&record->digest)) {
        row->request = record->address;
        row->result = record->digest;
        row->negotiated = record->negotiated;
        row->format = record->job.format;
        memcpy(row->etag, record->etag, sizeof row->etag);
    }
}

bool result_reuse_find(struct job_record *record) {
    struct result_reuse *reuse = record->jobs->reuse;
    if (!record->find || digest_empty(&record->digest)) {
        return false;
    }
    record->result = cache_find(reuse->cache, &record->digest, clock_ns(), record->age_ns);
    if (record->result == NULL) {
        return false;
    }
    record->reused = REUSED_HIT;
    record->job.status = KILN_OK;
    atomic_fetch_add_explicit(&reuse->hits, 1, memory_order_relaxed);
    return true;
}

/* ---- the ends of jobs ---- */

static struct job_record *record_of(struct waiter *waiter) {
    return (struct job_record *)(void *)((char *)waiter - offsetof(struct job_record, waiter));
}

/* The block of a finished job becomes a result that others can find. */
static void publish(struct job_record *record) {
    struct job *job = &record->job;
    struct result *result =
        result_create(record->jobs->options.arena, &job->result, job->result_size);
    if (result == NULL) {
        return;
    }
    result->made_ns = clock_ns();
    result->job = job->id;
    result->format = job->format;
    result->remarks = job->remarks;
    snprintf(result->device, sizeof result->device, "%s", job->device_name);
    snprintf(result->etag, sizeof result->etag, "%s", record->etag);
    if (job->type->precision != NULL) {
        job->type->precision(job->params, result->precision, sizeof result->precision);
    }
    record->result = result;
    record->settles =
        record->keep && cache_add(record->jobs->reuse->cache, &record->digest, result);
}

/* The end of a job for one who shared it. */
static void share(const struct job_record *leader, struct job_record *follower) {
    const struct job *job = &leader->job;
    follower->job.status = job->status;
    memcpy(follower->job.detail, job->detail, sizeof job->detail);
    if (leader->result != NULL) {
        follower->result = result_hold(leader->result);
    } else if (job->status == KILN_OK) {
        follower->job.status = KILN_NO_MEMORY;
    }
    follower->ended(follower);
}

static void share_all(const struct job_record *leader, struct waiter *followers) {
    struct waiter *next;
    for (struct waiter *waiter = followers; waiter != NULL; waiter = next) {
        next = waiter->next;
        share(leader, record_of(waiter));
    }
}

/* The job has ended, or was refused: everybody who waits for it is told. */
static void finish(struct job_record *record) {
    struct result_reuse *reuse = record->jobs->reuse;
    bool good = record->job.status == KILN_OK;
    if (reuse != NULL && !digest_empty(&record->digest) && good && record->result == NULL) {
        publish(record);
    }
    if (record->flying) {
        share_all(record, single_flight_end(&reuse->flights, &record->waiter));
    }
    record->ended(record);
}

static void submit(struct job_record *record) {
    record->job.id = record->preparation.id;
    struct executor *executor = record->jobs->executor;
    enum kiln_status status = executor->type->submit(executor, &record->job);
    if (status != KILN_OK) {
        record->job.status = status;
        finish(record);
    }
}

/* At the leader's deadline, or when its owner has cancelled what others want too: the next in line
   brings the job again, with its own. It takes over the input, which it had given up, and the
   parameters that tell what lies where in it. */
static void pass(struct job_record *leader) {
    struct result_reuse *reuse = leader->jobs->reuse;
    struct waiter *late;
    struct waiter *waiter = single_flight_pass(&reuse->flights, &leader->waiter, clock_ns(), &late);
    share_all(leader, late);
    leader->flying = false;
    if (waiter == NULL) {
        leader->ended(leader);
        return;
    }
    struct job_record *heir = record_of(waiter);
    memcpy(heir->job.inputs, leader->job.inputs, sizeof heir->job.inputs);
    memcpy(heir->job.params, leader->job.params, sizeof heir->job.params);
    heir->job.body = leader->job.body;
    leader->job.body = (struct block){0, 0};
    heir->reused = REUSED_MISS;
    leader->ended(leader);
    submit(heir);
}

/* False where a worker that cannot be ended has kept the input. */
static bool input_left(const struct job *job) {
    return job->type->input == INPUT_NONE || job->body.size > 0;
}

static void job_done(struct job *job) {
    struct job_record *record = job->context;
    /* with keys, to cancel a job is its owner's right, and no more than the owner's */
    bool handed = job->status == KILN_DEADLINE || (job->status == KILN_REVOKED && job->owner != 0);
    if (record->flying && handed && input_left(job)) {
        pass(record);
    } else {
        finish(record);
    }
}

/* The client whose socket was watched has hung up. */
static bool job_deserted(struct job *job) {
    struct job_record *record = job->context;
    struct result_reuse *reuse = record->jobs->reuse;
    return !record->flying ||
           single_flight_deserted(&reuse->flights, &record->waiter, &job->watch_fd);
}

/* Whether a record of a request with this id waits for the job that another one has brought. */
static bool job_shared(const struct job *job, const char *request_id, uint32_t owner) {
    const struct job_record *record = job->context;
    struct result_reuse *reuse = record->jobs->reuse;
    return record->flying && single_flight_has(&reuse->flights, &record->waiter, request_id, owner);
}

/* True if it leads; a follower may be gone already. Its input is given up: the leader has the same.
 */
static bool enter(struct job_record *record) {
    struct jobs *jobs = record->jobs;
    struct job *job = &record->job;
    struct block body = job->body;
    record->waiter = (struct waiter){
        .key = record->digest,
        .request_id = job->request_id,
        .owner = job->owner,
        .fd = job->watch_fd,
        .until_ns = job->since_ns + (uint64_t)(jobs->options.deadline_s * 1e9),
    };
    record->flying = true;
    record->reused = REUSED_SHARED;
    job->body = (struct block){0, 0};
    if (!single_flight_enter(&jobs->reuse->flights, &record->waiter)) {
        atomic_fetch_add_explicit(&jobs->reuse->shared, 1, memory_order_relaxed);
        arena_give(jobs->options.arena, &body);
        return false;
    }
    job->body = body;
    record->reused = REUSED_MISS;
    return true;
}

void result_reuse_submit(struct job_record *record) {
    struct result_reuse *reuse = record->jobs->reuse;
    struct job *job = &record->job;
    job->done = job_done;
    job->deserted = job_deserted;
    job->shared = job_shared;
    job->context = record;
    job->since_ns = job->since_ns != 0 ? job->since_ns : clock_ns();
    if (reuse != NULL && record->find && !digest_empty(&record->digest)) {
        if (!enter(record)) {
            return;
        }
        /* a flight may have ended since we looked */
        if (result_reuse_find(record)) {
            finish(record);
            return;
        }
        atomic_fetch_add_explicit(&reuse->misses, 1, memory_order_relaxed);
    } else if (reuse != NULL) {
        record->reused = REUSED_REFUSED;
        atomic_fetch_add_explicit(&reuse->refused, 1, memory_order_relaxed);
    }
    submit(record);
}

/* ---- moving results into the cache ---- */

struct move {
    struct offload_task load;
    struct result_reuse *reuse;
    struct digest key;
    struct result *result; /* with the reference that was the record's */
};

static void move_run(struct offload_task *load) {
    struct move *move = (struct move *)(void *)((char *)load - offsetof(struct move, load));
    uint64_t size = move->result->size;
    cache_settle(move->reuse->cache, &move->key, move->result);
    result_drop(move->result);
    atomic_fetch_sub(&move->reuse->moving, size);
    free(move);
}

/* Hands the result over; false where it stays the record's. */
static bool move_push(struct job_record *record) {
    struct result_reuse *reuse = record->jobs->reuse;
    struct move *move = malloc(sizeof *move);
    if (move == NULL) {
        return false;
    }
    *move = (struct move){
        .load = {.run = move_run}, .reuse = reuse, .key = record->digest, .result = record->result};
    if (!offload_push(record->jobs->offload, OFFLOAD_COPY, &move->load)) {
        free(move);
        return false;
    }
    record->result = NULL;
    return true;
}

/* Some milliseconds for a large one, which an event loop does not have. */
static void settle(struct job_record *record) {
    struct result_reuse *reuse = record->jobs->reuse;
    uint64_t size = record->result->size;
    if (size < OFFLOAD_COPY_MIN) {
        cache_settle(reuse->cache, &record->digest, record->result);
        return;
    }
    uint64_t moving = atomic_fetch_add(&reuse->moving, size);
    bool room =
        moving + size <= arena_size(record->jobs->options.arena) / REUSE_MOVING || moving == 0;
    if (!room || !move_push(record)) {
        atomic_fetch_sub(&reuse->moving, size);
        cache_forget(reuse->cache, &record->digest, record->result);
    }
}

void result_reuse_end(struct job_record *record) {
    if (record->settles) {
        settle(record);
    }
    result_drop(record->result);
    record->result = NULL;
}
