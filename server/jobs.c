/*
 * jobs.c: from a request to a job and from a finished job to an answer.
 */
#include "server/jobs.h"

#include "compute/codecs/signature.h"
#include "server/body.h"
#include "server/cors.h"
#include "server/etag.h"
#include "server/loader.h"
#include "server/metrics.h"
#include "server/negotiate.h"
#include "server/problem.h"
#include "server/reply.h"
#include "server/reuse.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define CACHE_SECONDS 86400

struct listing {
    struct text text;
    bool any;
};

static void listing_add(const char *item, void *context) {
    struct listing *listing = context;
    text_string(&listing->text, listing->any ? ", " : "");
    text_string(&listing->text, item);
    listing->any = true;
}

enum kiln_status jobs_media_check(struct exchange *exchange) {
    const struct job_type *type = exchange->match.route->type;
    const char *media = exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE);
    const char *coding = exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_ENCODING);
    char bytes[384];
    struct listing listing = {.any = false};
    if (coding != NULL && strcasecmp(coding, "identity") != 0) {
        return exchange_fault(exchange, KILN_MEDIA_TYPE,
                              "The body has the content coding \"%.40s\"; none is taken.", coding);
    }
    if (body_media_known(type, media)) {
        return KILN_OK;
    }
    const char *known = type->input == INPUT_SERIES ? signature_of_media(media) : NULL;
    if (known != NULL) {
        return exchange_fault(exchange, KILN_MEDIA_TYPE, "The body is %s.", known);
    }
    text_init(&listing.text, bytes, sizeof bytes);
    body_media_list(type, listing_add, &listing);
    return exchange_fault(exchange, KILN_MEDIA_TYPE, "%s%.80s%s; %s takes %s.",
                          media != NULL ? "The body is \"" : "The body has no Content-Type",
                          media != NULL ? media : "", media != NULL ? "\"" : "",
                          exchange->match.route->pattern, bytes);
}

static enum format format_offered(const struct job_type *type, const char *name) {
    for (const enum format *row = type->formats; *row != FORMAT_NONE; row++) {
        if (strcmp(format_row(*row)->name, name) == 0) {
            return *row;
        }
    }
    return FORMAT_NONE;
}

static enum kiln_status not_acceptable(struct exchange *exchange, const char *wanted) {
    const struct job_type *type = exchange->match.route->type;
    char bytes[384];
    struct listing listing = {.any = false};
    text_init(&listing.text, bytes, sizeof bytes);
    for (const enum format *row = type->formats; *row != FORMAT_NONE; row++) {
        listing_add(format_row(*row)->media, &listing);
        text_format(&listing.text, " (format=%s)", format_row(*row)->name);
    }
    return exchange_fault(exchange, KILN_NOT_ACCEPTABLE,
                          "\"%.60s\" is not available. There is: %s.", wanted, bytes);
}

/* The address's own format, else the member `format`, else Accept. Where none fits, the job's
   format is its first, so that its check can still complain of the fields. */
static enum kiln_status format_choose(struct exchange *exchange, const char *named) {
    const struct job_type *type = exchange->match.route->type;
    const struct job_path *path = exchange->match.route->path;
    struct job *job = &exchange->job;
    char accept[1024];
    const char *wanted = named;
    if (path != NULL && path->format != FORMAT_NONE) {
        job->format = path->format;
        return KILN_OK;
    }
    if (named[0] != '\0') {
        job->format = format_offered(type, named);
    } else {
        bool any = exchange_header_join(exchange, MHD_HTTP_HEADER_ACCEPT, accept, sizeof accept);
        exchange->negotiated = true;
        job->format = negotiate(any ? accept : NULL, type->formats);
        wanted = accept;
    }
    if (job->format != FORMAT_NONE) {
        return KILN_OK;
    }
    job->format = type->formats[0];
    return not_acceptable(exchange, wanted);
}

/* Whether the client names the result as one that it has. */
static bool unchanged(const struct exchange *exchange) {
    char tags[1024];
    return exchange->etag[0] != '\0' &&
           exchange_header_join(exchange, MHD_HTTP_HEADER_IF_NONE_MATCH, tags, sizeof tags) &&
           etag_match(tags, exchange->etag);
}

static uint8_t *job_data(const struct exchange *exchange) {
    const struct job *job = &exchange->job;
    return job->body.size > 0 ? arena_at(exchange->service->arena, job->body.offset) : NULL;
}

/* All complaints at once: the fields', the format's, and the kind's own. */
static enum kiln_status job_check(struct exchange *exchange) {
    struct job *job = &exchange->job;
    char named[FORMAT_TEXT_MAX];
    enum kiln_status status = body_read(exchange, named);
    if (status != KILN_OK) {
        exchange->complaints.count = 0;
        return status;
    }
    enum kiln_status format = format_choose(exchange, named);
    if (exchange->complaints.count == 0) {
        job->type->check(job->params, &job->input, job_data(exchange), job->format,
                         &exchange->service->limits, &exchange->complaints);
    }
    size_t count = exchange->complaints.count;
    if (count > 0) {
        if (format != KILN_OK) {
            complaints_add(&exchange->complaints, named[0] != '\0' ? "format" : "Accept", "%s",
                           exchange->detail);
        }
        return exchange_fault(exchange, KILN_INVALID, "%zu field%s cannot be used.",
                              exchange->complaints.count,
                              exchange->complaints.count == 1 ? "" : "s");
    }
    return format;
}

/* Fills the exchange's job or notes what is wrong; sets the outcome. */
static void job_prepare(struct exchange *exchange) {
    struct job *job = &exchange->job;
    job->type = exchange->match.route->type;
    job->watch_fd = client_fd(exchange->client);
    job->owner = access_owner(exchange);
    exchange_holder(exchange);
    job->trace = exchange->tracing.trace;
    tracing_id_print(&exchange->tracing, job->request_id);
    if (job_check(exchange) != KILN_OK) {
        return;
    }
    enum kiln_status status = job->type->plan(job->params, &job->input, job->format, &job->plan);
    if (status != KILN_OK) {
        exchange_fault(exchange, status, "The result would be too large.");
        return;
    }
    const struct reuse *reuse = exchange->service->reuse;
    etag_make(job, job_data(exchange), exchange->service->variants,
              reuse != NULL ? reuse->secret : NULL, exchange->etag, sizeof exchange->etag,
              &exchange->digest);
    exchange->outcome = unchanged(exchange) ? OUTCOME_UNCHANGED : OUTCOME_JOB;
}

/* What is answered where preparing was ended from outside; nobody reads some of it. */
static void load_end(struct exchange *exchange, enum kiln_status status) {
    const char *why = status == KILN_DRAINING   ? "The daemon is shutting down."
                      : status == KILN_DEADLINE ? "The deadline came before the body was read."
                      : status == KILN_REVOKED  ? "The job was cancelled while its body was read."
                                                : "The client has left.";
    exchange->complaints.count = 0;
    exchange->job.id = exchange->preparation.id;
    exchange_fault(exchange, status, "%s", why);
}

static void load_submit(void *context) {
    struct exchange *exchange = context;
    reuse_submit(exchange, exchange->dispatch);
}

/* Without a moment in which DELETE finds the job neither among those that are prepared nor among
   those that wait. */
static enum kiln_status load_move(struct exchange *exchange) {
    struct service *service = exchange->service;
    struct dispatch *dispatch = service_enter(service); /* before the list's lock, as active.c */
    if (dispatch == NULL) {
        return KILN_DRAINING;
    }
    exchange->dispatch = dispatch;
    bool moved = preparing_move(&service->preparing, &exchange->preparation, load_submit, exchange);
    service_leave(service);
    return moved ? KILN_OK : KILN_REVOKED;
}

/* On a loader's thread: prepares a suspended exchange and submits or resumes it. */
static void load_run(struct load *load) {
    struct exchange *exchange =
        (struct exchange *)(void *)((char *)load - offsetof(struct exchange, load));
    struct preparation *preparation = &exchange->preparation;
    cancel_begin(&preparation->cancel, preparing_ask, preparation);
    if (!cancel_point(0)) { /* it may have waited long for this thread */
        job_prepare(exchange);
    }
    enum kiln_status ended = cancel_end();
    if (ended == KILN_OK && atomic_load(&preparation->revoked)) {
        ended = KILN_REVOKED; /* behind the last point */
    }
    bool runs = ended == KILN_OK && exchange->outcome == OUTCOME_JOB && !reuse_find(exchange);
    if (runs) {
        ended = load_move(exchange);
        if (ended == KILN_OK) {
            return;
        }
    }
    if (ended != KILN_OK) {
        load_end(exchange, ended);
    }
    preparing_leave(&exchange->service->preparing, preparation);
    exchange_resume(exchange);
}

/* How long its body takes, in bytes of text: images are only hashed here, texts are parsed. */
static uint64_t load_size(const struct exchange *exchange) {
    const struct job_type *type = exchange->match.route->type;
    const char *media = exchange_header(exchange, MHD_HTTP_HEADER_CONTENT_TYPE);
    bool image = type->input == INPUT_IMAGE && body_media_binary(type, media);
    return image ? exchange->body_size / LOADER_IMAGE_EASE : exchange->body_size;
}

/* The exchange is the loader's after this. */
static void load_push(struct exchange *exchange, struct dispatch *dispatch) {
    struct service *service = exchange->service;
    struct job *job = &exchange->job;
    const struct job_type *type = exchange->match.route->type;
    job->since_ns = clock_ns();
    exchange->preparation = (struct preparation){
        .id = dispatch_id(dispatch),
        .since_ns = job->since_ns,
        .until_ns = job->since_ns + (uint64_t)(service->options->deadline * 1e9),
        .type = type,
        .owner = access_owner(exchange),
        .fd = client_fd(exchange->client),
        .draining = &service->draining,
    };
    tracing_id_print(&exchange->tracing, exchange->preparation.request_id);
    exchange->load.run = load_run;
    preparing_enter(&service->preparing, &exchange->preparation);
    enum load_kind kind = load_size(exchange) < LOADER_LONG_MIN ? LOAD_BODY : LOAD_LONG;
    loader_push(service->loader, kind, &exchange->load); /* stops after the service */
}

/* ---- answers ---- */

static void caching_headers(const struct exchange *exchange, struct MHD_Response *response) {
    if (exchange->etag[0] != '\0') {
        reply_header(response, MHD_HTTP_HEADER_ETAG, "%s", exchange->etag);
    }
    if (exchange->negotiated) {
        reply_header(response, MHD_HTTP_HEADER_VARY, "Accept");
    }
    if ((exchange->method & (METHOD_GET | METHOD_HEAD)) != 0) {
        /* what took a key is for its owner's caches only: a shared one would ask nobody */
        reply_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "%s, max-age=%d",
                     exchange->pass.grant != NULL ? "private" : "public", CACHE_SECONDS);
    }
}

/* RFC 9211. */
static void status_header(const struct exchange *exchange, struct MHD_Response *response) {
    static const char *const texts[] = {
        [REUSED_OFF] = NULL,
        [REUSED_MISS] = "kiln; fwd=miss",
        [REUSED_HIT] = "kiln; hit",
        [REUSED_SHARED] = "kiln; fwd=miss; collapsed",
        [REUSED_REFUSED] = "kiln; fwd=request",
    };
    const char *text = texts[exchange->reused];
    if (text != NULL) {
        reply_header(response, "Cache-Status", "%s%s", text, exchange->settles ? "; stored" : "");
    }
}

/* What to know of a picture that does not show it. The numbers are a worker's. */
static void remarks_headers(struct MHD_Response *response, const struct remarks *remarks) {
    if (remarks->picture) {
        reply_header(response, "Kiln-Clamped", "%" PRIu64, remarks->clamped);
    }
    if (remarks->picture && remarks->scale != 0) {
        reply_header(response, "Kiln-Scale", "%.17g", remarks->scale);
    }
    if (remarks->iterated) {
        bool converged = remarks->left <= REMARK_CONVERGED;
        reply_header(response, "Kiln-Converged", "%s", converged ? "true" : "false");
        reply_header(response, "Kiln-Convergence", "%.3g", remarks->left);
    }
}

static void origin_headers(struct MHD_Response *response, const char *device,
                           const struct job_id *job) {
    char id[JOB_ID_TEXT];
    job_id_print(job, id);
    reply_header(response, "Kiln-Device", "%s", device);
    reply_header(response, "Kiln-Job", "%s", id);
}

/* How the input was understood, for results that cannot say it themselves. */
static void input_header(const struct exchange *exchange, struct MHD_Response *response) {
    const struct job_type *type = exchange->match.route->type; /* a recalled job's own is not set */
    char bytes[1024];
    struct text text;
    if (type->describe_input == NULL || exchange->job.format == FORMAT_JSON || response == NULL) {
        return;
    }
    text_init(&text, bytes, sizeof bytes);
    type->describe_input(exchange->job.params, &text);
    MHD_add_response_header(response, "Kiln-Input", bytes);
}

static void timing_header(struct MHD_Response *response, const struct timing *timing) {
    reply_header(response, "Server-Timing",
                 "queue;dur=%.4f, upload;dur=%.4f, kernel;dur=%.4f, download;dur=%.4f, "
                 "encode;dur=%.4f, total;dur=%.4f",
                 timing->queue, timing->upload, timing->kernel, timing->download, timing->encode,
                 timing->total);
}

static void precision_header(struct MHD_Response *response, const char *precision) {
    if (precision[0] != '\0') {
        reply_header(response, "Kiln-Precision", "%s", precision);
    }
}

/* A job of this request's own. */
static enum MHD_Result result_reply(struct exchange *exchange) {
    struct job *job = &exchange->job;
    struct arena *arena = exchange->service->arena;
    struct MHD_Response *response = exchange->result != NULL
                                        ? reply_result(exchange->result)
                                        : reply_block(arena, &job->result, job->result_size);
    metrics_job(job_type_index(job->type), &job->timing);
    input_header(exchange, response);
    timing_header(response, &job->timing);
    caching_headers(exchange, response);
    status_header(exchange, response);
    origin_headers(response, job->device_name, &job->id);
    remarks_headers(response, &job->remarks);
    if (job->type->precision != NULL) {
        char precision[RESULT_PRECISION_MAX];
        job->type->precision(job->params, precision, sizeof precision);
        precision_header(response, precision);
    }
    if (job->joules > 0) {
        reply_header(response, "Kiln-Joules-Estimate", "%.6g", job->joules);
    }
    return reply_send(exchange, MHD_HTTP_OK, format_row(job->format)->media, response);
}

/* Another request's job, that this one has waited for. */
static enum MHD_Result shared_reply(struct exchange *exchange) {
    const struct result *result = exchange->result;
    struct MHD_Response *response = reply_result(result);
    reply_header(response, "Server-Timing", "cache;desc=\"shared\", total;dur=%.4f",
                 (double)(clock_ns() - exchange->started_ns) * 1e-6);
    input_header(exchange, response);
    caching_headers(exchange, response);
    status_header(exchange, response);
    origin_headers(response, result->device, &result->job);
    remarks_headers(response, &result->remarks);
    precision_header(response, result->precision);
    return reply_send(exchange, MHD_HTTP_OK, format_row(result->format)->media, response);
}

static struct MHD_Response *kept_make(const struct exchange *exchange, uint64_t age) {
    const struct result *result = exchange->result;
    struct MHD_Response *response = reply_result(result);
    reply_header(response, MHD_HTTP_HEADER_AGE, "%" PRIu64, age);
    reply_header(response, "Server-Timing", "cache;desc=\"hit\"");
    input_header(exchange, response);
    caching_headers(exchange, response);
    status_header(exchange, response);
    origin_headers(response, result->device, &result->job);
    remarks_headers(response, &result->remarks);
    precision_header(response, result->precision);
    return response;
}

/* A kept result. Its answer to GETs is kept too and made anew every second, for its age; many
   connections share it, so only who wants to be named has one of its own. */
static enum MHD_Result kept_reply(struct exchange *exchange) {
    struct result *result = exchange->result;
    const char *media = format_row(result->format)->media;
    uint64_t age = (clock_ns() - result->made_ns) / UINT64_C(1000000000);
    bool get = (exchange->method & (METHOD_GET | METHOD_HEAD)) != 0;
    if (!get || exchange->close || atomic_load(&exchange->service->draining) ||
        access_tells(exchange) || cors_tells(exchange) || exchange->tracing.named) {
        return reply_send(exchange, MHD_HTTP_OK, media, kept_make(exchange, age));
    }
    enum MHD_Result done = MHD_NO;
    pthread_mutex_lock(&result->lock);
    struct MHD_Response **answer = &result->answers[exchange->negotiated];
    if (*answer == NULL || result->ages[exchange->negotiated] != age) {
        if (*answer != NULL) {
            MHD_destroy_response(*answer);
        }
        *answer = kept_make(exchange, age);
        reply_media(exchange, *answer, media);
        result->ages[exchange->negotiated] = age;
        result->forget = MHD_destroy_response;
    }
    if (*answer != NULL) {
        done = reply_again(exchange, MHD_HTTP_OK, *answer, result->size);
    }
    pthread_mutex_unlock(&result->lock);
    return done;
}

/* RFC 9110, 13.1.2: 304 is for GET and HEAD, whose answer a cache has; other methods are not
   performed, which 412 says. */
static enum MHD_Result unchanged_reply(struct exchange *exchange) {
    if ((exchange->method & (METHOD_GET | METHOD_HEAD)) == 0) {
        return problem_reply(exchange, KILN_PRECONDITION,
                             "The result would be %s, which If-None-Match says you have; no job "
                             "was run.",
                             exchange->etag);
    }
    struct MHD_Response *response = reply_constant("", 0);
    caching_headers(exchange, response);
    return reply_send(exchange, MHD_HTTP_NOT_MODIFIED, NULL, response);
}

static enum MHD_Result job_answer(struct exchange *exchange) {
    struct job *job = &exchange->job;
    arena_give(exchange->service->arena, &job->body);
    if (exchange->outcome == OUTCOME_UNCHANGED) {
        return unchanged_reply(exchange);
    }
    if (exchange->outcome == OUTCOME_JOB && job->status == KILN_OK) {
        return exchange->reused == REUSED_HIT      ? kept_reply(exchange)
               : exchange->reused == REUSED_SHARED ? shared_reply(exchange)
                                                   : result_reply(exchange);
    }
    arena_give(exchange->service->arena, &job->result);
    if (exchange->outcome == OUTCOME_JOB) {
        exchange_fault(exchange, job->status, "%s",
                       job->detail[0] != '\0' ? job->detail : status_row(job->status)->title);
    }
    return problem_send(exchange);
}

/* True if the answer is known without reading the request any further. */
static bool recalled(struct exchange *exchange) {
    if (!reuse_recall(exchange)) {
        return false;
    }
    exchange->outcome = unchanged(exchange) ? OUTCOME_UNCHANGED : OUTCOME_JOB;
    if (exchange->outcome == OUTCOME_UNCHANGED || reuse_find(exchange)) {
        return true;
    }
    exchange->outcome = OUTCOME_NONE;
    exchange->negotiated = false;
    return false;
}

enum MHD_Result jobs_handle(struct exchange *exchange) {
    struct service *service = exchange->service;
    if (exchange->stage == STAGE_AWAY) {
        return job_answer(exchange);
    }
    reuse_begin(exchange);
    if (recalled(exchange)) {
        return job_answer(exchange);
    }
    bool large = exchange->body_size >= LOADER_BODY_MIN && load_size(exchange) >= LOADER_BODY_MIN;
    if (!large) {
        job_prepare(exchange);
        if (exchange->outcome == OUTCOME_JOB || exchange->outcome == OUTCOME_UNCHANGED) {
            reuse_remember(exchange);
        }
        if (exchange->outcome != OUTCOME_JOB || reuse_find(exchange)) {
            return job_answer(exchange);
        }
    }
    struct dispatch *dispatch = service_enter(service);
    if (dispatch == NULL) {
        return problem_reply(exchange, KILN_DRAINING, "The daemon is shutting down.");
    }
    exchange_suspend(exchange);
    if (large) {
        load_push(exchange, dispatch);
    } else {
        reuse_submit(exchange, dispatch);
    }
    service_leave(service);
    return MHD_YES;
}
