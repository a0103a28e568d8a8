/*
 * reuse.c: who may have whose result, and the ends of jobs.
 */
#include "server/reuse.h"

#include "compute/log.h"
#include "server/memo.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/random.h>

enum kiln_status reuse_create(uint64_t bytes, struct reuse **out) {
    *out = NULL;
    if (bytes == 0) {
        return KILN_OK;
    }
    struct reuse *reuse = calloc(1, sizeof *reuse);
    if (reuse == NULL) {
        return KILN_NO_MEMORY;
    }
    flights_init(&reuse->flights);
    enum kiln_status status = cache_create(bytes, &reuse->cache);
    if (status == KILN_OK && (!memo_init() || getrandom(reuse->secret, sizeof reuse->secret, 0) !=
                                                  (ssize_t)sizeof reuse->secret)) {
        status = KILN_INTERNAL;
    }
    if (status == KILN_OK) {
        *out = reuse;
    } else {
        reuse_destroy(reuse);
    }
    return status;
}

void reuse_destroy(struct reuse *reuse) {
    if (reuse == NULL) {
        return;
    }
    cache_destroy(reuse->cache);
    flights_finish(&reuse->flights);
    free(reuse);
}

/* ---- what a request wishes ---- */

static void directive_read(struct exchange *exchange, const char *text, size_t size) {
    if (size == 8 && strncasecmp(text, "no-cache", size) == 0) {
        exchange->find = false;
    } else if (size == 8 && strncasecmp(text, "no-store", size) == 0) {
        exchange->find = exchange->keep = false;
    } else if (size > 8 && strncasecmp(text, "max-age=", 8) == 0) {
        char *end;
        errno = 0;
        unsigned long long seconds = strtoull(text + 8, &end, 10);
        if (end == text + size && errno == 0 && seconds < UINT64_MAX / 1000000000) {
            exchange->age_ns = seconds * UINT64_C(1000000000);
            exchange->find = exchange->find && seconds > 0; /* 0 demands a run of its own */
        }
    }
}

void reuse_begin(struct exchange *exchange) {
    char bytes[256];
    exchange->find = exchange->keep = exchange->service->reuse != NULL;
    exchange->age_ns = UINT64_MAX;
    if (!exchange->find ||
        !exchange_header_join(exchange, MHD_HTTP_HEADER_CACHE_CONTROL, bytes, sizeof bytes)) {
        return;
    }
    for (const char *at = bytes; *at != '\0';) {
        at += strspn(at, " \t,");
        size_t size = strcspn(at, " \t,");
        directive_read(exchange, at, size);
        at += size;
    }
}

/* ---- addresses seen before ---- */

/* GET without a body: address and Accept say it all. */
static void row_find(struct exchange *exchange) {
    const void *secret = exchange->service->reuse->secret;
    char accept[1024] = "";
    struct digest parts[2];
    exchange_header_join(exchange, MHD_HTTP_HEADER_ACCEPT, accept, sizeof accept);
    etag_hash(exchange->target, strlen(exchange->target), secret, &parts[0]);
    etag_hash(accept, strlen(accept), secret, &parts[1]);
    etag_hash(parts, sizeof parts, secret, &exchange->request);
    exchange->memo = memo_row(&exchange->request);
}

bool reuse_recall(struct exchange *exchange) {
    if (exchange->service->reuse == NULL || exchange->body_size > 0 ||
        (exchange->method & (METHOD_GET | METHOD_HEAD)) == 0) {
        return false;
    }
    row_find(exchange);
    const struct memo *row = exchange->memo;
    if (row == NULL || !digest_equal(&row->request, &exchange->request)) {
        return false;
    }
    exchange->digest = row->result;
    exchange->negotiated = row->negotiated;
    exchange->job.format = row->format;
    memcpy(exchange->etag, row->etag, sizeof row->etag);
    return true;
}

void reuse_remember(const struct exchange *exchange) {
    struct memo *row = exchange->memo;
    if (row != NULL && !digest_empty(&exchange->digest)) {
        row->request = exchange->request;
        row->result = exchange->digest;
        row->negotiated = exchange->negotiated;
        row->format = exchange->job.format;
        memcpy(row->etag, exchange->etag, sizeof row->etag);
    }
}

bool reuse_find(struct exchange *exchange) {
    struct reuse *reuse = exchange->service->reuse;
    if (!exchange->find || digest_empty(&exchange->digest)) {
        return false;
    }
    exchange->result = cache_find(reuse->cache, &exchange->digest, clock_ns(), exchange->age_ns);
    if (exchange->result == NULL) {
        return false;
    }
    exchange->reused = REUSED_HIT;
    exchange->job.status = KILN_OK;
    atomic_fetch_add_explicit(&reuse->hits, 1, memory_order_relaxed);
    return true;
}

/* ---- the ends of jobs ---- */

static struct exchange *exchange_of(struct waiter *waiter) {
    return (struct exchange *)(void *)((char *)waiter - offsetof(struct exchange, waiter));
}

/* The block of a finished job becomes a result that others can find. */
static void publish(struct exchange *exchange) {
    struct job *job = &exchange->job;
    struct result *result = result_create(exchange->service->arena, &job->result, job->result_size);
    if (result == NULL) {
        return;
    }
    result->made_ns = clock_ns();
    result->job = job->id;
    result->format = job->format;
    result->remarks = job->remarks;
    snprintf(result->device, sizeof result->device, "%s", job->device_name);
    snprintf(result->etag, sizeof result->etag, "%s", exchange->etag);
    if (job->type->precision != NULL) {
        job->type->precision(job->params, result->precision, sizeof result->precision);
    }
    exchange->result = result;
    exchange->settles =
        exchange->keep && cache_add(exchange->service->reuse->cache, &exchange->digest, result);
}

/* The end of a job for one who shared it. */
static void share(const struct exchange *leader, struct exchange *follower) {
    const struct job *job = &leader->job;
    follower->job.status = job->status;
    memcpy(follower->job.detail, job->detail, sizeof job->detail);
    if (leader->result != NULL) {
        follower->result = result_hold(leader->result);
    } else if (job->status == KILN_OK) {
        follower->job.status = KILN_NO_MEMORY;
    }
    exchange_resume(follower);
}

static void share_all(const struct exchange *leader, struct waiter *followers) {
    struct waiter *next;
    for (struct waiter *waiter = followers; waiter != NULL; waiter = next) {
        next = waiter->next;
        share(leader, exchange_of(waiter));
    }
}

/* The job has ended, or was refused: everybody who waits for it is told. */
static void finish(struct exchange *exchange) {
    struct reuse *reuse = exchange->service->reuse;
    bool good = exchange->job.status == KILN_OK;
    if (reuse != NULL && !digest_empty(&exchange->digest) && good && exchange->result == NULL) {
        publish(exchange);
    }
    if (exchange->flying) {
        share_all(exchange, flight_end(&reuse->flights, &exchange->waiter));
    }
    exchange_resume(exchange);
}

static void submit(struct exchange *exchange) {
    exchange->job.id = exchange->preparation.id;
    enum kiln_status status = dispatch_submit(exchange->dispatch, &exchange->job);
    if (status != KILN_OK) {
        exchange->job.status = status;
        finish(exchange);
    }
}

/* At the leader's deadline, or when its owner has cancelled what others want too: the next in line
   brings the job again, with its own. It takes over the input, which it had given up, and the
   parameters that tell what lies where in it. */
static void pass(struct exchange *leader) {
    struct reuse *reuse = leader->service->reuse;
    struct waiter *late;
    struct waiter *waiter = flight_pass(&reuse->flights, &leader->waiter, clock_ns(), &late);
    share_all(leader, late);
    leader->flying = false;
    if (waiter == NULL) {
        exchange_resume(leader);
        return;
    }
    struct exchange *heir = exchange_of(waiter);
    heir->job.input = leader->job.input;
    memcpy(heir->job.params, leader->job.params, sizeof heir->job.params);
    heir->job.body = leader->job.body;
    leader->job.body = (struct block){0, 0};
    heir->reused = REUSED_MISS;
    exchange_resume(leader);
    submit(heir);
}

/* False where a worker that cannot be ended has kept the input. */
static bool input_left(const struct job *job) {
    return job->type->input == INPUT_NONE || job->body.size > 0;
}

static void job_done(struct job *job) {
    struct exchange *exchange = job->context;
    /* with keys, to cancel a job is its owner's right, and no more than the owner's */
    bool handed = job->status == KILN_DEADLINE || (job->status == KILN_REVOKED && job->owner != 0);
    if (exchange->flying && handed && input_left(job)) {
        pass(exchange);
    } else {
        finish(exchange);
    }
}

/* The client whose socket was watched has hung up. */
static bool job_deserted(struct job *job) {
    struct exchange *exchange = job->context;
    struct reuse *reuse = exchange->service->reuse;
    return !exchange->flying || flight_deserted(&reuse->flights, &exchange->waiter, &job->watch_fd);
}

/* Whether a request with this id waits for the job that another one has brought. */
static bool job_shared(const struct job *job, const char *request_id, uint32_t owner) {
    const struct exchange *exchange = job->context;
    struct reuse *reuse = exchange->service->reuse;
    return exchange->flying && flight_has(&reuse->flights, &exchange->waiter, request_id, owner);
}

/* True if it leads; a follower may be gone already. Its input is given up: the leader has the same.
 */
static bool enter(struct exchange *exchange) {
    struct service *service = exchange->service;
    struct job *job = &exchange->job;
    struct block body = job->body;
    exchange->waiter = (struct waiter){
        .key = exchange->digest,
        .request_id = job->request_id,
        .owner = job->owner,
        .fd = job->watch_fd,
        .until_ns = job->since_ns + (uint64_t)(service->options->deadline * 1e9),
    };
    exchange->flying = true;
    exchange->reused = REUSED_SHARED;
    job->body = (struct block){0, 0};
    if (!flight_enter(&service->reuse->flights, &exchange->waiter)) {
        atomic_fetch_add_explicit(&service->reuse->shared, 1, memory_order_relaxed);
        arena_give(service->arena, &body);
        return false;
    }
    job->body = body;
    exchange->reused = REUSED_MISS;
    return true;
}

void reuse_submit(struct exchange *exchange, struct dispatch *dispatch) {
    struct reuse *reuse = exchange->service->reuse;
    struct job *job = &exchange->job;
    exchange->dispatch = dispatch;
    job->done = job_done;
    job->deserted = job_deserted;
    job->shared = job_shared;
    job->context = exchange;
    job->since_ns = job->since_ns != 0 ? job->since_ns : clock_ns();
    if (reuse != NULL && exchange->find && !digest_empty(&exchange->digest)) {
        if (!enter(exchange)) {
            return;
        }
        /* a flight may have ended since we looked */
        if (reuse_find(exchange)) {
            finish(exchange);
            return;
        }
        atomic_fetch_add_explicit(&reuse->misses, 1, memory_order_relaxed);
    } else if (reuse != NULL) {
        exchange->reused = REUSED_REFUSED;
        atomic_fetch_add_explicit(&reuse->refused, 1, memory_order_relaxed);
    }
    submit(exchange);
}

/* ---- moving results into the cache ---- */

struct move {
    struct load load;
    struct reuse *reuse;
    struct digest key;
    struct result *result; /* with the reference that was the exchange's */
};

static void move_run(struct load *load) {
    struct move *move = (struct move *)(void *)((char *)load - offsetof(struct move, load));
    uint64_t size = move->result->size;
    cache_settle(move->reuse->cache, &move->key, move->result);
    result_drop(move->result);
    atomic_fetch_sub(&move->reuse->moving, size);
    free(move);
}

/* Hands the result over; false where it stays the exchange's. */
static bool move_push(struct exchange *exchange) {
    struct reuse *reuse = exchange->service->reuse;
    struct move *move = malloc(sizeof *move);
    if (move == NULL) {
        return false;
    }
    *move = (struct move){.load = {.run = move_run},
                          .reuse = reuse,
                          .key = exchange->digest,
                          .result = exchange->result};
    if (!loader_push(exchange->service->loader, LOAD_COPY, &move->load)) {
        free(move);
        return false;
    }
    exchange->result = NULL;
    return true;
}

/* Some milliseconds for a large one, which an event loop does not have. */
static void settle(struct exchange *exchange) {
    struct reuse *reuse = exchange->service->reuse;
    uint64_t size = exchange->result->size;
    if (size < LOADER_COPY_MIN) {
        cache_settle(reuse->cache, &exchange->digest, exchange->result);
        return;
    }
    uint64_t moving = atomic_fetch_add(&reuse->moving, size);
    bool room = moving + size <= exchange->service->options->arena / REUSE_MOVING || moving == 0;
    if (!room || !move_push(exchange)) {
        atomic_fetch_sub(&reuse->moving, size);
        cache_forget(reuse->cache, &exchange->digest, exchange->result);
    }
}

void reuse_end(struct exchange *exchange) {
    if (exchange->settles) {
        settle(exchange);
    }
    result_drop(exchange->result);
    exchange->result = NULL;
}
