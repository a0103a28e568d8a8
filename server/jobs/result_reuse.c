/*
 * result_reuse.c: who may have whose result, and the ends of jobs.
 */
#include "server/jobs/result_reuse.h"

#include "compute/core/log.h"
#include "server/cache/lookup_cache.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
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

/* ---- what a request wishes ---- */

static void directive_read(struct http_request *request, const char *text, size_t size) {
    if (size == 8 && strncasecmp(text, "no-cache", size) == 0) {
        request->find = false;
    } else if (size == 8 && strncasecmp(text, "no-store", size) == 0) {
        request->find = request->keep = false;
    } else if (size > 8 && strncasecmp(text, "max-age=", 8) == 0) {
        char *end;
        errno = 0;
        unsigned long long seconds = strtoull(text + 8, &end, 10);
        if (end == text + size && errno == 0 && seconds < UINT64_MAX / 1000000000) {
            request->age_ns = seconds * UINT64_C(1000000000);
            request->find = request->find && seconds > 0; /* 0 demands a run of its own */
        }
    }
}

void result_reuse_begin(struct http_request *request) {
    char bytes[256];
    request->find = request->keep = request->service->reuse != NULL;
    request->age_ns = UINT64_MAX;
    if (!request->find ||
        !request_header_join(request, MHD_HTTP_HEADER_CACHE_CONTROL, bytes, sizeof bytes)) {
        return;
    }
    for (const char *at = bytes; *at != '\0';) {
        at += strspn(at, " \t,");
        size_t size = strcspn(at, " \t,");
        directive_read(request, at, size);
        at += size;
    }
}

/* ---- addresses seen before ---- */

/* GET without a body: address and Accept say it all. */
static void row_find(struct http_request *request) {
    const void *secret = request->service->reuse->secret;
    char accept[1024] = "";
    struct digest parts[2];
    request_header_join(request, MHD_HTTP_HEADER_ACCEPT, accept, sizeof accept);
    etag_hash(request->target, strlen(request->target), secret, &parts[0]);
    etag_hash(accept, strlen(accept), secret, &parts[1]);
    etag_hash(parts, sizeof parts, secret, &request->request);
    request->memo = lookup_cache_row(&request->request);
}

bool result_reuse_recall(struct http_request *request) {
    if (request->service->reuse == NULL || request->body_size > 0 ||
        (request->method & (METHOD_GET | METHOD_HEAD)) == 0) {
        return false;
    }
    row_find(request);
    const struct lookup_row *row = request->memo;
    if (row == NULL || !digest_equal(&row->request, &request->request)) {
        return false;
    }
    request->digest = row->result;
    request->negotiated = row->negotiated;
    request->job.format = row->format;
    memcpy(request->etag, row->etag, sizeof row->etag);
    return true;
}

void result_reuse_remember(const struct http_request *request) {
    struct lookup_row *row = request->memo;
    if (row != NULL && !digest_empty(&request->digest)) {
        row->request = request->request;
        row->result = request->digest;
        row->negotiated = request->negotiated;
        row->format = request->job.format;
        memcpy(row->etag, request->etag, sizeof row->etag);
    }
}

bool result_reuse_find(struct http_request *request) {
    struct result_reuse *reuse = request->service->reuse;
    if (!request->find || digest_empty(&request->digest)) {
        return false;
    }
    request->result = cache_find(reuse->cache, &request->digest, clock_ns(), request->age_ns);
    if (request->result == NULL) {
        return false;
    }
    request->reused = REUSED_HIT;
    request->job.status = KILN_OK;
    atomic_fetch_add_explicit(&reuse->hits, 1, memory_order_relaxed);
    return true;
}

/* ---- the ends of jobs ---- */

static struct http_request *request_of(struct waiter *waiter) {
    return (struct http_request *)(void *)((char *)waiter - offsetof(struct http_request, waiter));
}

/* The block of a finished job becomes a result that others can find. */
static void publish(struct http_request *request) {
    struct job *job = &request->job;
    struct result *result = result_create(request->service->arena, &job->result, job->result_size);
    if (result == NULL) {
        return;
    }
    result->made_ns = clock_ns();
    result->job = job->id;
    result->format = job->format;
    result->remarks = job->remarks;
    snprintf(result->device, sizeof result->device, "%s", job->device_name);
    snprintf(result->etag, sizeof result->etag, "%s", request->etag);
    if (job->type->precision != NULL) {
        job->type->precision(job->params, result->precision, sizeof result->precision);
    }
    request->result = result;
    request->settles =
        request->keep && cache_add(request->service->reuse->cache, &request->digest, result);
}

/* The end of a job for one who shared it. */
static void share(const struct http_request *leader, struct http_request *follower) {
    const struct job *job = &leader->job;
    follower->job.status = job->status;
    memcpy(follower->job.detail, job->detail, sizeof job->detail);
    if (leader->result != NULL) {
        follower->result = result_hold(leader->result);
    } else if (job->status == KILN_OK) {
        follower->job.status = KILN_NO_MEMORY;
    }
    request_resume(follower);
}

static void share_all(const struct http_request *leader, struct waiter *followers) {
    struct waiter *next;
    for (struct waiter *waiter = followers; waiter != NULL; waiter = next) {
        next = waiter->next;
        share(leader, request_of(waiter));
    }
}

/* The job has ended, or was refused: everybody who waits for it is told. */
static void finish(struct http_request *request) {
    struct result_reuse *reuse = request->service->reuse;
    bool good = request->job.status == KILN_OK;
    if (reuse != NULL && !digest_empty(&request->digest) && good && request->result == NULL) {
        publish(request);
    }
    if (request->flying) {
        share_all(request, single_flight_end(&reuse->flights, &request->waiter));
    }
    request_resume(request);
}

static void submit(struct http_request *request) {
    request->job.id = request->preparation.id;
    enum kiln_status status = dispatch_submit(request->dispatch, &request->job);
    if (status != KILN_OK) {
        request->job.status = status;
        finish(request);
    }
}

/* At the leader's deadline, or when its owner has cancelled what others want too: the next in line
   brings the job again, with its own. It takes over the input, which it had given up, and the
   parameters that tell what lies where in it. */
static void pass(struct http_request *leader) {
    struct result_reuse *reuse = leader->service->reuse;
    struct waiter *late;
    struct waiter *waiter = single_flight_pass(&reuse->flights, &leader->waiter, clock_ns(), &late);
    share_all(leader, late);
    leader->flying = false;
    if (waiter == NULL) {
        request_resume(leader);
        return;
    }
    struct http_request *heir = request_of(waiter);
    heir->job.input = leader->job.input;
    memcpy(heir->job.params, leader->job.params, sizeof heir->job.params);
    heir->job.body = leader->job.body;
    leader->job.body = (struct block){0, 0};
    heir->reused = REUSED_MISS;
    request_resume(leader);
    submit(heir);
}

/* False where a worker that cannot be ended has kept the input. */
static bool input_left(const struct job *job) {
    return job->type->input == INPUT_NONE || job->body.size > 0;
}

static void job_done(struct job *job) {
    struct http_request *request = job->context;
    /* with keys, to cancel a job is its owner's right, and no more than the owner's */
    bool handed = job->status == KILN_DEADLINE || (job->status == KILN_REVOKED && job->owner != 0);
    if (request->flying && handed && input_left(job)) {
        pass(request);
    } else {
        finish(request);
    }
}

/* The client whose socket was watched has hung up. */
static bool job_deserted(struct job *job) {
    struct http_request *request = job->context;
    struct result_reuse *reuse = request->service->reuse;
    return !request->flying ||
           single_flight_deserted(&reuse->flights, &request->waiter, &job->watch_fd);
}

/* Whether a request with this id waits for the job that another one has brought. */
static bool job_shared(const struct job *job, const char *request_id, uint32_t owner) {
    const struct http_request *request = job->context;
    struct result_reuse *reuse = request->service->reuse;
    return request->flying &&
           single_flight_has(&reuse->flights, &request->waiter, request_id, owner);
}

/* True if it leads; a follower may be gone already. Its input is given up: the leader has the same.
 */
static bool enter(struct http_request *request) {
    struct service *service = request->service;
    struct job *job = &request->job;
    struct block body = job->body;
    request->waiter = (struct waiter){
        .key = request->digest,
        .request_id = job->request_id,
        .owner = job->owner,
        .fd = job->watch_fd,
        .until_ns = job->since_ns + (uint64_t)(service->options->deadline * 1e9),
    };
    request->flying = true;
    request->reused = REUSED_SHARED;
    job->body = (struct block){0, 0};
    if (!single_flight_enter(&service->reuse->flights, &request->waiter)) {
        atomic_fetch_add_explicit(&service->reuse->shared, 1, memory_order_relaxed);
        arena_give(service->arena, &body);
        return false;
    }
    job->body = body;
    request->reused = REUSED_MISS;
    return true;
}

void result_reuse_submit(struct http_request *request, struct dispatch *dispatch) {
    struct result_reuse *reuse = request->service->reuse;
    struct job *job = &request->job;
    request->dispatch = dispatch;
    job->done = job_done;
    job->deserted = job_deserted;
    job->shared = job_shared;
    job->context = request;
    job->since_ns = job->since_ns != 0 ? job->since_ns : clock_ns();
    if (reuse != NULL && request->find && !digest_empty(&request->digest)) {
        if (!enter(request)) {
            return;
        }
        /* a flight may have ended since we looked */
        if (result_reuse_find(request)) {
            finish(request);
            return;
        }
        atomic_fetch_add_explicit(&reuse->misses, 1, memory_order_relaxed);
    } else if (reuse != NULL) {
        request->reused = REUSED_REFUSED;
        atomic_fetch_add_explicit(&reuse->refused, 1, memory_order_relaxed);
    }
    submit(request);
}

/* ---- moving results into the cache ---- */

struct move {
    struct offload_task load;
    struct result_reuse *reuse;
    struct digest key;
    struct result *result; /* with the reference that was the request's */
};

static void move_run(struct offload_task *load) {
    struct move *move = (struct move *)(void *)((char *)load - offsetof(struct move, load));
    uint64_t size = move->result->size;
    cache_settle(move->reuse->cache, &move->key, move->result);
    result_drop(move->result);
    atomic_fetch_sub(&move->reuse->moving, size);
    free(move);
}

/* Hands the result over; false where it stays the request's. */
static bool move_push(struct http_request *request) {
    struct result_reuse *reuse = request->service->reuse;
    struct move *move = malloc(sizeof *move);
    if (move == NULL) {
        return false;
    }
    *move = (struct move){.load = {.run = move_run},
                          .reuse = reuse,
                          .key = request->digest,
                          .result = request->result};
    if (!offload_push(request->service->offload, OFFLOAD_COPY, &move->load)) {
        free(move);
        return false;
    }
    request->result = NULL;
    return true;
}

/* Some milliseconds for a large one, which an event loop does not have. */
static void settle(struct http_request *request) {
    struct result_reuse *reuse = request->service->reuse;
    uint64_t size = request->result->size;
    if (size < OFFLOAD_COPY_MIN) {
        cache_settle(reuse->cache, &request->digest, request->result);
        return;
    }
    uint64_t moving = atomic_fetch_add(&reuse->moving, size);
    bool room = moving + size <= request->service->options->arena / REUSE_MOVING || moving == 0;
    if (!room || !move_push(request)) {
        atomic_fetch_sub(&reuse->moving, size);
        cache_forget(reuse->cache, &request->digest, request->result);
    }
}

void result_reuse_end(struct http_request *request) {
    if (request->settles) {
        settle(request);
    }
    result_drop(request->result);
    request->result = NULL;
}
