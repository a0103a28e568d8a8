/*
 * job_answer.c: results, shared and kept results, "not modified", and problems.
 */
#include "server/api/job_answer.h"

#include "compute/core/text.h"
#include "server/api/metrics.h"
#include "server/http/problem.h"
#include "server/http/reply.h"
#include "server/jobs/record.h"

#include <inttypes.h>
#include <stdio.h>

#define CACHE_SECONDS 86400

static struct MHD_Response *bytes_of(const struct result *result) {
    return response_constant(result_bytes(result), (size_t)result->size);
}

static void caching_headers(const struct http_request *request, struct MHD_Response *response) {
    if (request->record->etag[0] != '\0') {
        response_header(response, MHD_HTTP_HEADER_ETAG, "%s", request->record->etag);
    }
    if (request->record->negotiated) {
        response_header(response, MHD_HTTP_HEADER_VARY, "Accept");
    }
    if ((request->method & (METHOD_GET | METHOD_HEAD)) != 0) {
        /* what took a key is for its owner's caches only: a shared one would ask nobody */
        response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "%s, max-age=%d",
                        request->pass.grant != NULL ? "private" : "public", CACHE_SECONDS);
    }
}

/* RFC 9211. */
static void status_header(const struct job_record *record, struct MHD_Response *response) {
    static const char *const texts[] = {
        [REUSED_OFF] = NULL,
        [REUSED_MISS] = "kiln; fwd=miss",
        [REUSED_HIT] = "kiln; hit",
        [REUSED_SHARED] = "kiln; fwd=miss; collapsed",
        [REUSED_REFUSED] = "kiln; fwd=request",
    };
    const char *text = texts[record->reused];
    if (text != NULL) {
        response_header(response, "Cache-Status", "%s%s", text, record->settles ? "; stored" : "");
    }
}

/* What to know of a picture that does not show it. The numbers are a worker's. */
static void remarks_headers(struct MHD_Response *response, const struct remarks *remarks) {
    if (remarks->picture) {
        response_header(response, "Kiln-Clamped", "%" PRIu64, remarks->clamped);
    }
    if (remarks->picture && remarks->scale != 0) {
        char number[32];
        struct text scale;
        text_init(&scale, number, sizeof number);
        text_double(&scale, remarks->scale);
        response_header(response, "Kiln-Scale", "%s", number);
    }
    if (remarks->iterated) {
        bool converged = remarks->left <= REMARK_CONVERGED;
        response_header(response, "Kiln-Converged", "%s", converged ? "true" : "false");
        response_header(response, "Kiln-Convergence", "%.3g", remarks->left);
    }
}

static void origin_headers(struct MHD_Response *response, const char *device,
                           const struct job_id *job) {
    char id[JOB_ID_TEXT];
    job_id_print(job, id);
    response_header(response, "Kiln-Device", "%s", device);
    response_header(response, "Kiln-Job", "%s", id);
}

/* How the input was understood, for results that cannot say it themselves. */
static void input_header(const struct job *job, struct MHD_Response *response) {
    const struct job_type *type = job->type;
    char bytes[1024];
    struct text text;
    if (type->describe_input == NULL || job->format == FORMAT_JSON || response == NULL) {
        return;
    }
    text_init(&text, bytes, sizeof bytes);
    type->describe_input(job->params, &text);
    MHD_add_response_header(response, "Kiln-Input", bytes);
}

static void timing_header(struct MHD_Response *response, const struct timing *timing) {
    response_header(response, "Server-Timing",
                    "queue;dur=%.4f, upload;dur=%.4f, kernel;dur=%.4f, download;dur=%.4f, "
                    "encode;dur=%.4f, total;dur=%.4f",
                    timing->queue, timing->upload, timing->kernel, timing->download, timing->encode,
                    timing->total);
}

static void precision_header(struct MHD_Response *response, const char *precision) {
    if (precision[0] != '\0') {
        response_header(response, "Kiln-Precision", "%s", precision);
    }
}

/* A job of this request's own. */
static enum MHD_Result result_reply(struct http_request *request) {
    struct job_record *record = request->record;
    struct job *job = &record->job;
    struct arena *arena = request->service->arena;
    struct MHD_Response *response = record->result != NULL
                                        ? bytes_of(record->result)
                                        : response_block(arena, &job->result, job->result_size);
    metrics_job(job_type_index(job->type), &job->timing);
    input_header(job, response);
    timing_header(response, &job->timing);
    caching_headers(request, response);
    status_header(record, response);
    origin_headers(response, job->device_name, &job->id);
    remarks_headers(response, &job->remarks);
    if (job->type->precision != NULL) {
        char precision[RESULT_PRECISION_MAX];
        job->type->precision(job->params, precision, sizeof precision);
        precision_header(response, precision);
    }
    if (job->joules > 0) {
        response_header(response, "Kiln-Joules-Estimate", "%.6g", job->joules);
    }
    return reply_send(request, MHD_HTTP_OK, format_row(job->format)->media, response);
}

/* Another request's job, that this one has waited for. */
static enum MHD_Result shared_reply(struct http_request *request) {
    const struct job_record *record = request->record;
    const struct result *result = record->result;
    struct MHD_Response *response = bytes_of(result);
    response_header(response, "Server-Timing", "cache;desc=\"shared\", total;dur=%.4f",
                    (double)(clock_ns() - request->started_ns) * 1e-6);
    input_header(&record->job, response);
    caching_headers(request, response);
    status_header(record, response);
    origin_headers(response, result->device, &result->job);
    remarks_headers(response, &result->remarks);
    precision_header(response, result->precision);
    return reply_send(request, MHD_HTTP_OK, format_row(result->format)->media, response);
}

static struct MHD_Response *kept_make(const struct http_request *request, uint64_t age) {
    const struct job_record *record = request->record;
    const struct result *result = record->result;
    struct MHD_Response *response = bytes_of(result);
    response_header(response, MHD_HTTP_HEADER_AGE, "%" PRIu64, age);
    response_header(response, "Server-Timing", "cache;desc=\"hit\"");
    input_header(&record->job, response);
    caching_headers(request, response);
    status_header(record, response);
    origin_headers(response, result->device, &result->job);
    remarks_headers(response, &result->remarks);
    precision_header(response, result->precision);
    return response;
}

/* A kept result. Its answer to GETs is kept too and made anew every second, for its age; many
   connections share it, so only who wants to be named has one of its own. */
static enum MHD_Result kept_reply(struct http_request *request) {
    const struct job_record *record = request->record;
    struct result *result = record->result;
    const char *media = format_row(result->format)->media;
    uint64_t age = (clock_ns() - result->made_ns) / UINT64_C(1000000000);
    bool get = (request->method & (METHOD_GET | METHOD_HEAD)) != 0;
    if (!get || request->close || atomic_load(&request->service->draining) ||
        pass_limited(&request->pass) || request->service->cors != NULL || request->tracing.named) {
        return reply_send(request, MHD_HTTP_OK, media, kept_make(request, age));
    }
    enum MHD_Result done = MHD_NO;
    pthread_mutex_lock(&result->lock);
    struct MHD_Response **answer = &result->answers[record->negotiated];
    if (*answer == NULL || result->ages[record->negotiated] != age) {
        if (*answer != NULL) {
            MHD_destroy_response(*answer);
        }
        *answer = kept_make(request, age);
        reply_media(request, *answer, media);
        result->ages[record->negotiated] = age;
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
        request->etag = request->record->etag;
        return problem_reply(request, KILN_PRECONDITION,
                             "The result would be %s, which If-None-Match says you have; no job "
                             "was run.",
                             request->etag);
    }
    struct MHD_Response *response = response_constant("", 0);
    caching_headers(request, response);
    return reply_send(request, MHD_HTTP_NOT_MODIFIED, NULL, response);
}

/* What was wrong with what was sent, or with the job. */
static enum MHD_Result fault_reply(struct http_request *request) {
    struct job_record *record = request->record;
    struct job *job = &record->job;
    bool ran = record->outcome == RECORD_JOB;
    enum kiln_status status = ran ? job->status : record->fault;
    const char *detail = !ran                     ? record->detail
                         : job->detail[0] != '\0' ? job->detail
                                                  : status_row(status)->title;
    arena_give(request->service->arena, &job->result);
    request->complaints = record->complaints;
    request->job = job->id;
    if (!ran && status == KILN_NOT_FOUND) {
        return problem_reply(request, status, "There is no %.200s here.", request->target);
    }
    return problem_reply(request, status, "%s", detail);
}

enum MHD_Result job_answer(struct http_request *request) {
    struct job_record *record = request->record;
    arena_give(request->service->arena, &record->job.body);
    if (record->outcome == RECORD_UNCHANGED) {
        return unchanged_reply(request);
    }
    if (record->outcome != RECORD_JOB || record->job.status != KILN_OK) {
        return fault_reply(request);
    }
    return record->reused == REUSED_HIT      ? kept_reply(request)
           : record->reused == REUSED_SHARED ? shared_reply(request)
                                             : result_reply(request);
}
