/*
 * jobs.c: from a request to a job and from a finished job to an answer.
 */
#include "server/api/job_submit.h"

#include "compute/codecs/signature.h"
#include "compute/core/text.h"
#include "compute/submission/submission.h"
#include "server/api/metrics.h"
#include "server/cache/etag.h"
#include "server/core/offload.h"
#include "server/http/cors.h"
#include "server/http/problem.h"
#include "server/http/reply.h"
#include "server/jobs/negotiate.h"
#include "server/jobs/result_reuse.h"

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

enum kiln_status jobs_media_check(struct http_request *request) {
    const struct job_type *type = request->match.route->type;
    const char *media = request_header(request, MHD_HTTP_HEADER_CONTENT_TYPE);
    const char *coding = request_header(request, MHD_HTTP_HEADER_CONTENT_ENCODING);
    char bytes[384];
    struct listing listing = {.any = false};
    if (coding != NULL && strcasecmp(coding, "identity") != 0) {
        return request_fault(request, KILN_MEDIA_TYPE,
                             "The body has the content coding \"%.40s\"; none is taken.", coding);
    }
    if (submission_media_known(type, media)) {
        return KILN_OK;
    }
    const char *known = type->input == INPUT_SERIES ? signature_of_media(media) : NULL;
    if (known != NULL) {
        return request_fault(request, KILN_MEDIA_TYPE, "The body is %s.", known);
    }
    text_init(&listing.text, bytes, sizeof bytes);
    submission_media_list(type, listing_add, &listing);
    return request_fault(request, KILN_MEDIA_TYPE, "%s%.80s%s; %s takes %s.",
                         media != NULL ? "The body is \"" : "The body has no Content-Type",
                         media != NULL ? media : "", media != NULL ? "\"" : "",
                         request->match.route->pattern, bytes);
}

static enum format format_offered(const struct job_type *type, const char *name) {
    for (const enum format *row = type->formats; *row != FORMAT_NONE; row++) {
        if (strcmp(format_row(*row)->name, name) == 0) {
            return *row;
        }
    }
    return FORMAT_NONE;
}

static enum kiln_status not_acceptable(struct http_request *request, const char *wanted) {
    const struct job_type *type = request->match.route->type;
    char bytes[384];
    struct listing listing = {.any = false};
    text_init(&listing.text, bytes, sizeof bytes);
    for (const enum format *row = type->formats; *row != FORMAT_NONE; row++) {
        listing_add(format_row(*row)->media, &listing);
        text_format(&listing.text, " (format=%s)", format_row(*row)->name);
    }
    return request_fault(request, KILN_NOT_ACCEPTABLE, "\"%.60s\" is not available. There is: %s.",
                         wanted, bytes);
}

/* The address's own format, else the member `format`, else Accept. Where none fits, the job's
   format is its first, so that its check can still complain of the fields. */
static enum kiln_status format_choose(struct http_request *request, const char *named) {
    const struct job_type *type = request->match.route->type;
    const struct job_path *path = request->match.route->path;
    struct job *job = &request->job;
    char accept[1024];
    const char *wanted = named;
    if (path != NULL && path->format != FORMAT_NONE) {
        job->format = path->format;
        return KILN_OK;
    }
    if (named[0] != '\0') {
        job->format = format_offered(type, named);
    } else {
        bool any = request_header_join(request, MHD_HTTP_HEADER_ACCEPT, accept, sizeof accept);
        request->negotiated = true;
        job->format = negotiate(any ? accept : NULL, type->formats);
        wanted = accept;
    }
    if (job->format != FORMAT_NONE) {
        return KILN_OK;
    }
    job->format = type->formats[0];
    return not_acceptable(request, wanted);
}

/* Whether the client names the result as one that it has. */
static bool unchanged(const struct http_request *request) {
    char tags[1024];
    return request->etag[0] != '\0' &&
           request_header_join(request, MHD_HTTP_HEADER_IF_NONE_MATCH, tags, sizeof tags) &&
           etag_match(tags, request->etag);
}

static uint8_t *job_data(const struct http_request *request) {
    const struct job *job = &request->job;
    return job->body.size > 0 ? arena_at(request->service->arena, job->body.offset) : NULL;
}

static bool device_known(const char *name, void *context) {
    struct service *service = context;
    struct dispatch *dispatch = service_enter(service);
    bool known = dispatch == NULL || dispatch_knows(dispatch, name);
    if (dispatch != NULL) {
        service_leave(service);
    }
    return known;
}

/* Query and body into the request's job; `format` receives the member of that name or "". */
static enum kiln_status job_read(struct http_request *request, char format[FORMAT_TEXT_MAX]) {
    struct service *service = request->service;
    char *query = request->url.query;
    struct submission submission = {
        .type = request->match.route->type,
        .path = request->match.route->path,
        .captures = request->match.captures,
        .limits = &service->limits,
        .arena = service->arena,
        .holder = request_holder(request),
        .device_known = device_known,
        .context = service,
        .query = query,
        .query_end = query != NULL ? query + strlen(query) : NULL,
        .media = request_header(request, MHD_HTTP_HEADER_CONTENT_TYPE),
        .body = request->body,
        .body_size = request->body_size,
        .job = &request->job,
        .complaints = &request->complaints,
    };
    request->body = (struct block){0, 0};
    enum kiln_status status = submission_read(&submission);
    memcpy(format, submission.format, FORMAT_TEXT_MAX);
    if (status == KILN_NOT_FOUND) {
        return request_fault(request, status, "There is no %.200s here.", request->target);
    }
    return status == KILN_OK ? KILN_OK : request_fault(request, status, "%s", submission.detail);
}

/* All complaints at once: the fields', the format's, and the kind's own. */
static enum kiln_status job_check(struct http_request *request) {
    struct job *job = &request->job;
    char named[FORMAT_TEXT_MAX];
    enum kiln_status status = job_read(request, named);
    if (status != KILN_OK) {
        request->complaints.count = 0;
        return status;
    }
    enum kiln_status format = format_choose(request, named);
    if (request->complaints.count == 0) {
        job->type->check(job->params, &job->input, job_data(request), job->format,
                         &request->service->limits, &request->complaints);
    }
    size_t count = request->complaints.count;
    if (count > 0) {
        if (format != KILN_OK) {
            complaints_add(&request->complaints, named[0] != '\0' ? "format" : "Accept", "%s",
                           request->detail);
        }
        return request_fault(request, KILN_INVALID, "%zu field%s cannot be used.",
                             request->complaints.count, request->complaints.count == 1 ? "" : "s");
    }
    return format;
}

/* Fills the request's job or notes what is wrong; sets the outcome. */
static void job_prepare(struct http_request *request) {
    struct job *job = &request->job;
    job->type = request->match.route->type;
    job->watch_fd = client_fd(request->client);
    job->owner = access_owner(request);
    request_holder(request);
    job->trace = request->tracing.trace;
    tracing_id_print(&request->tracing, job->request_id);
    if (job_check(request) != KILN_OK) {
        return;
    }
    enum kiln_status status = job->type->plan(job->params, &job->input, job->format, &job->plan);
    if (status != KILN_OK) {
        request_fault(request, status, "The result would be too large.");
        return;
    }
    const struct result_reuse *reuse = request->service->reuse;
    etag_make(job, job_data(request), request->service->variants,
              reuse != NULL ? reuse->secret : NULL, request->etag, sizeof request->etag,
              &request->digest);
    request->outcome = unchanged(request) ? OUTCOME_UNCHANGED : OUTCOME_JOB;
}

/* What is answered where preparing was ended from outside; nobody reads some of it. */
static void load_end(struct http_request *request, enum kiln_status status) {
    const char *why = status == KILN_DRAINING   ? "The daemon is shutting down."
                      : status == KILN_DEADLINE ? "The deadline came before the body was read."
                      : status == KILN_REVOKED  ? "The job was cancelled while its body was read."
                                                : "The client has left.";
    request->complaints.count = 0;
    request->job.id = request->preparation.id;
    request_fault(request, status, "%s", why);
}

static void load_submit(void *context) {
    struct http_request *request = context;
    result_reuse_submit(request, request->dispatch);
}

/* Without a moment in which DELETE finds the job neither among those that are prepared nor among
   those that wait. */
static enum kiln_status load_move(struct http_request *request) {
    struct service *service = request->service;
    struct dispatch *dispatch = service_enter(service); /* before the list's lock, as job_list.c */
    if (dispatch == NULL) {
        return KILN_DRAINING;
    }
    request->dispatch = dispatch;
    bool moved = preparing_move(&service->preparing, &request->preparation, load_submit, request);
    service_leave(service);
    return moved ? KILN_OK : KILN_REVOKED;
}

/* On a loader's thread: prepares a suspended request and submits or resumes it. */
static void load_run(struct offload_task *load) {
    struct http_request *request =
        (struct http_request *)(void *)((char *)load - offsetof(struct http_request, load));
    struct preparation *preparation = &request->preparation;
    cancel_begin(&preparation->cancel, preparing_ask, preparation);
    if (!cancel_point(0)) { /* it may have waited long for this thread */
        job_prepare(request);
    }
    enum kiln_status ended = cancel_end();
    if (ended == KILN_OK && atomic_load(&preparation->revoked)) {
        ended = KILN_REVOKED; /* behind the last point */
    }
    bool runs = ended == KILN_OK && request->outcome == OUTCOME_JOB && !result_reuse_find(request);
    if (runs) {
        ended = load_move(request);
        if (ended == KILN_OK) {
            return;
        }
    }
    if (ended != KILN_OK) {
        load_end(request, ended);
    }
    preparing_leave(&request->service->preparing, preparation);
    request_resume(request);
}

/* How long its body takes, in bytes of text: images are only hashed here, texts are parsed. */
static uint64_t load_size(const struct http_request *request) {
    const struct job_type *type = request->match.route->type;
    const char *media = request_header(request, MHD_HTTP_HEADER_CONTENT_TYPE);
    bool image = type->input == INPUT_IMAGE && submission_media_binary(type, media);
    return image ? request->body_size / OFFLOAD_IMAGE_EASE : request->body_size;
}

/* The request is the loader's after this. */
static void load_push(struct http_request *request, struct dispatch *dispatch) {
    struct service *service = request->service;
    struct job *job = &request->job;
    const struct job_type *type = request->match.route->type;
    job->since_ns = clock_ns();
    request->preparation = (struct preparation){
        .id = dispatch_id(dispatch),
        .since_ns = job->since_ns,
        .until_ns = job->since_ns + (uint64_t)(service->options->deadline * 1e9),
        .type = type,
        .owner = access_owner(request),
        .fd = client_fd(request->client),
        .draining = &service->draining,
    };
    tracing_id_print(&request->tracing, request->preparation.request_id);
    request->load.run = load_run;
    preparing_enter(&service->preparing, &request->preparation);
    enum offload_kind kind = load_size(request) < OFFLOAD_LONG_MIN ? OFFLOAD_BODY : OFFLOAD_LONG;
    offload_push(service->offload, kind, &request->load); /* stops after the service */
}

/* ---- answers ---- */

static void caching_headers(const struct http_request *request, struct MHD_Response *response) {
    if (request->etag[0] != '\0') {
        reply_header(response, MHD_HTTP_HEADER_ETAG, "%s", request->etag);
    }
    if (request->negotiated) {
        reply_header(response, MHD_HTTP_HEADER_VARY, "Accept");
    }
    if ((request->method & (METHOD_GET | METHOD_HEAD)) != 0) {
        /* what took a key is for its owner's caches only: a shared one would ask nobody */
        reply_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "%s, max-age=%d",
                     request->pass.grant != NULL ? "private" : "public", CACHE_SECONDS);
    }
}

/* RFC 9211. */
static void status_header(const struct http_request *request, struct MHD_Response *response) {
    static const char *const texts[] = {
        [REUSED_OFF] = NULL,
        [REUSED_MISS] = "kiln; fwd=miss",
        [REUSED_HIT] = "kiln; hit",
        [REUSED_SHARED] = "kiln; fwd=miss; collapsed",
        [REUSED_REFUSED] = "kiln; fwd=request",
    };
    const char *text = texts[request->reused];
    if (text != NULL) {
        reply_header(response, "Cache-Status", "%s%s", text, request->settles ? "; stored" : "");
    }
}

/* What to know of a picture that does not show it. The numbers are a worker's. */
static void remarks_headers(struct MHD_Response *response, const struct remarks *remarks) {
    if (remarks->picture) {
        reply_header(response, "Kiln-Clamped", "%" PRIu64, remarks->clamped);
    }
    if (remarks->picture && remarks->scale != 0) {
        char number[32];
        struct text scale;
        text_init(&scale, number, sizeof number);
        text_double(&scale, remarks->scale);
        reply_header(response, "Kiln-Scale", "%s", number);
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
static void input_header(const struct http_request *request, struct MHD_Response *response) {
    const struct job_type *type = request->match.route->type; /* a recalled job's own is not set */
    char bytes[1024];
    struct text text;
    if (type->describe_input == NULL || request->job.format == FORMAT_JSON || response == NULL) {
        return;
    }
    text_init(&text, bytes, sizeof bytes);
    type->describe_input(request->job.params, &text);
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
static enum MHD_Result result_reply(struct http_request *request) {
    struct job *job = &request->job;
    struct arena *arena = request->service->arena;
    struct MHD_Response *response = request->result != NULL
                                        ? reply_result(request->result)
                                        : reply_block(arena, &job->result, job->result_size);
    metrics_job(job_type_index(job->type), &job->timing);
    input_header(request, response);
    timing_header(response, &job->timing);
    caching_headers(request, response);
    status_header(request, response);
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
    return reply_send(request, MHD_HTTP_OK, format_row(job->format)->media, response);
}

/* Another request's job, that this one has waited for. */
static enum MHD_Result shared_reply(struct http_request *request) {
    const struct result *result = request->result;
    struct MHD_Response *response = reply_result(result);
    reply_header(response, "Server-Timing", "cache;desc=\"shared\", total;dur=%.4f",
                 (double)(clock_ns() - request->started_ns) * 1e-6);
    input_header(request, response);
    caching_headers(request, response);
    status_header(request, response);
    origin_headers(response, result->device, &result->job);
    remarks_headers(response, &result->remarks);
    precision_header(response, result->precision);
    return reply_send(request, MHD_HTTP_OK, format_row(result->format)->media, response);
}

static struct MHD_Response *kept_make(const struct http_request *request, uint64_t age) {
    const struct result *result = request->result;
    struct MHD_Response *response = reply_result(result);
    reply_header(response, MHD_HTTP_HEADER_AGE, "%" PRIu64, age);
    reply_header(response, "Server-Timing", "cache;desc=\"hit\"");
    input_header(request, response);
    caching_headers(request, response);
    status_header(request, response);
    origin_headers(response, result->device, &result->job);
    remarks_headers(response, &result->remarks);
    precision_header(response, result->precision);
    return response;
}

/* A kept result. Its answer to GETs is kept too and made anew every second, for its age; many
   connections share it, so only who wants to be named has one of its own. */
static enum MHD_Result kept_reply(struct http_request *request) {
    struct result *result = request->result;
    const char *media = format_row(result->format)->media;
    uint64_t age = (clock_ns() - result->made_ns) / UINT64_C(1000000000);
    bool get = (request->method & (METHOD_GET | METHOD_HEAD)) != 0;
    if (!get || request->close || atomic_load(&request->service->draining) ||
        access_tells(request) || cors_tells(request) || request->tracing.named) {
        return reply_send(request, MHD_HTTP_OK, media, kept_make(request, age));
    }
    enum MHD_Result done = MHD_NO;
    pthread_mutex_lock(&result->lock);
    struct MHD_Response **answer = &result->answers[request->negotiated];
    if (*answer == NULL || result->ages[request->negotiated] != age) {
        if (*answer != NULL) {
            MHD_destroy_response(*answer);
        }
        *answer = kept_make(request, age);
        reply_media(request, *answer, media);
        result->ages[request->negotiated] = age;
        result->forget = MHD_destroy_response;
    }
    if (*answer != NULL) {
        done = reply_again(request, MHD_HTTP_OK, *answer, result->size);
    }
    pthread_mutex_unlock(&result->lock);
    return done;
}

/* RFC 9110, 13.1.2: 304 is for GET and HEAD, whose answer a cache has; other methods are not
   performed, which 412 says. */
static enum MHD_Result unchanged_reply(struct http_request *request) {
    if ((request->method & (METHOD_GET | METHOD_HEAD)) == 0) {
        return problem_reply(request, KILN_PRECONDITION,
                             "The result would be %s, which If-None-Match says you have; no job "
                             "was run.",
                             request->etag);
    }
    struct MHD_Response *response = reply_constant("", 0);
    caching_headers(request, response);
    return reply_send(request, MHD_HTTP_NOT_MODIFIED, NULL, response);
}

static enum MHD_Result job_answer(struct http_request *request) {
    struct job *job = &request->job;
    arena_give(request->service->arena, &job->body);
    if (request->outcome == OUTCOME_UNCHANGED) {
        return unchanged_reply(request);
    }
    if (request->outcome == OUTCOME_JOB && job->status == KILN_OK) {
        return request->reused == REUSED_HIT      ? kept_reply(request)
               : request->reused == REUSED_SHARED ? shared_reply(request)
                                                  : result_reply(request);
    }
    arena_give(request->service->arena, &job->result);
    if (request->outcome == OUTCOME_JOB) {
        request_fault(request, job->status, "%s",
                      job->detail[0] != '\0' ? job->detail : status_row(job->status)->title);
    }
    return problem_send(request);
}

/* True if the answer is known without reading the request any further. */
static bool recalled(struct http_request *request) {
    if (!result_reuse_recall(request)) {
        return false;
    }
    request->outcome = unchanged(request) ? OUTCOME_UNCHANGED : OUTCOME_JOB;
    if (request->outcome == OUTCOME_UNCHANGED || result_reuse_find(request)) {
        return true;
    }
    request->outcome = OUTCOME_NONE;
    request->negotiated = false;
    return false;
}

enum MHD_Result jobs_handle(struct http_request *request) {
    struct service *service = request->service;
    if (request->stage == STAGE_AWAY) {
        return job_answer(request);
    }
    result_reuse_begin(request);
    if (recalled(request)) {
        return job_answer(request);
    }
    bool large = request->body_size >= OFFLOAD_BODY_MIN && load_size(request) >= OFFLOAD_BODY_MIN;
    if (!large) {
        job_prepare(request);
        if (request->outcome == OUTCOME_JOB || request->outcome == OUTCOME_UNCHANGED) {
            result_reuse_remember(request);
        }
        if (request->outcome != OUTCOME_JOB || result_reuse_find(request)) {
            return job_answer(request);
        }
    }
    struct dispatch *dispatch = service_enter(service);
    if (dispatch == NULL) {
        return problem_reply(request, KILN_DRAINING, "The daemon is shutting down.");
    }
    request_suspend(request);
    if (large) {
        load_push(request, dispatch);
    } else {
        result_reuse_submit(request, dispatch);
    }
    service_leave(service);
    return MHD_YES;
}
