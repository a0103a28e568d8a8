/*
 * jobs.c: from a request to a job and from a finished job to an answer.
 */
#include "server/jobs.h"

#include "server/body.h"
#include "server/etag.h"
#include "server/loader.h"
#include "server/metrics.h"
#include "server/negotiate.h"
#include "server/problem.h"
#include "server/reply.h"

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

static bool unchanged(const struct exchange *exchange) {
    char tags[1024];
    return exchange->etag[0] != '\0' && (exchange->method & (METHOD_GET | METHOD_HEAD)) != 0 &&
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

static void job_done(struct job *job) {
    exchange_resume(job->context);
}

/* Fills the exchange's job or notes what is wrong; sets the outcome. */
static void job_prepare(struct exchange *exchange) {
    struct job *job = &exchange->job;
    job->type = exchange->match.route->type;
    job->watch_fd = client_fd(exchange->client);
    job->done = job_done;
    job->context = exchange;
    if (job_check(exchange) != KILN_OK) {
        return;
    }
    enum kiln_status status = job->type->plan(job->params, &job->input, job->format, &job->plan);
    if (status != KILN_OK) {
        exchange_fault(exchange, status, "The result would be too large.");
        return;
    }
    etag_make(job, job_data(exchange), exchange->service->kinds, exchange->etag,
              sizeof exchange->etag);
    exchange->outcome = unchanged(exchange) ? OUTCOME_UNCHANGED : OUTCOME_JOB;
}

/* Gives the suspended exchange to the dispatcher; where that refuses, it comes back with a fault.
   Nothing may touch the exchange afterwards. */
static void job_submit(struct exchange *exchange, struct dispatch *dispatch) {
    enum kiln_status status = dispatch_submit(dispatch, &exchange->job);
    if (status == KILN_OK) {
        return;
    }
    exchange_fault(exchange, status, "%s",
                   exchange->job.detail[0] != '\0' ? exchange->job.detail
                                                   : status_row(status)->title);
    exchange_resume(exchange);
}

void jobs_load(struct exchange *exchange) {
    struct service *service = exchange->service;
    job_prepare(exchange);
    if (exchange->outcome != OUTCOME_JOB) {
        exchange_resume(exchange);
        return;
    }
    struct dispatch *dispatch = service_enter(service);
    if (dispatch == NULL) {
        exchange_fault(exchange, KILN_DRAINING, "The daemon is shutting down.");
        exchange_resume(exchange);
        return;
    }
    job_submit(exchange, dispatch);
    service_leave(service);
}

static void timing_header(struct MHD_Response *response, const struct timing *timing) {
    reply_header(response, "Server-Timing",
                 "queue;dur=%.4f, upload;dur=%.4f, kernel;dur=%.4f, download;dur=%.4f, "
                 "encode;dur=%.4f, total;dur=%.4f",
                 timing->queue, timing->upload, timing->kernel, timing->download, timing->encode,
                 timing->total);
}

static void caching_headers(const struct exchange *exchange, struct MHD_Response *response) {
    if (exchange->etag[0] != '\0') {
        reply_header(response, MHD_HTTP_HEADER_ETAG, "%s", exchange->etag);
    }
    if (exchange->negotiated) {
        reply_header(response, MHD_HTTP_HEADER_VARY, "Accept");
    }
    if ((exchange->method & (METHOD_GET | METHOD_HEAD)) != 0) {
        reply_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "public, max-age=%d", CACHE_SECONDS);
    }
}

static enum MHD_Result result_reply(struct exchange *exchange) {
    struct job *job = &exchange->job;
    struct arena *arena = exchange->service->arena;
    arena_give(arena, &job->body);
    struct MHD_Response *response = reply_block(arena, &job->result, job->result_size);
    metrics_job(job_type_index(job->type), &job->timing);
    timing_header(response, &job->timing);
    caching_headers(exchange, response);
    reply_header(response, "Kiln-Device", "%s", job->device_name);
    reply_header(response, "Kiln-Job", "%016" PRIx64, job->id);
    return reply_send(exchange, MHD_HTTP_OK, format_row(job->format)->media, response);
}

static enum MHD_Result job_answer(struct exchange *exchange) {
    struct job *job = &exchange->job;
    if (exchange->outcome == OUTCOME_UNCHANGED) {
        struct MHD_Response *response = reply_constant("", 0);
        caching_headers(exchange, response);
        return reply_send(exchange, MHD_HTTP_NOT_MODIFIED, NULL, response);
    }
    if (exchange->outcome == OUTCOME_JOB && job->status == KILN_OK) {
        return result_reply(exchange);
    }
    arena_give(exchange->service->arena, &job->result);
    arena_give(exchange->service->arena, &job->body);
    if (exchange->outcome == OUTCOME_JOB) {
        exchange_fault(exchange, job->status, "%s",
                       job->detail[0] != '\0' ? job->detail : status_row(job->status)->title);
    }
    return problem_send(exchange);
}

enum MHD_Result jobs_handle(struct exchange *exchange) {
    struct service *service = exchange->service;
    if (exchange->stage == STAGE_AWAY) {
        return job_answer(exchange);
    }
    bool large = exchange->body_size >= LOADER_BODY_MIN;
    if (!large) {
        job_prepare(exchange);
        if (exchange->outcome != OUTCOME_JOB) {
            return job_answer(exchange);
        }
    }
    struct dispatch *dispatch = service_enter(service);
    if (dispatch == NULL) {
        return problem_reply(exchange, KILN_DRAINING, "The daemon is shutting down.");
    }
    exchange_suspend(exchange);
    if (large) {
        loader_push(service->loader, exchange);
    } else {
        job_submit(exchange, dispatch);
    }
    service_leave(service);
    return MHD_YES;
}
