/*
 * kept_answer.c: kept jobs as resources: what they are, their results, their ends.
 */
#include "compute/store/record.h"
#include "server/api/job_kept.h"
#include "server/api/kept_headers.h"
#include "server/api/kept_private.h"
#include "server/cache/etag.h"
#include "server/http/problem.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SECOND UINT64_C(1000000000)
#define DIGEST 45 /* characters of a SHA-256 in base64, and NUL */

static enum MHD_Result gone(struct http_request *request) {
    return problem_reply(request, KILN_GONE, "There was such a job; its result is not kept.");
}

enum MHD_Result kept_problem(struct http_request *request, enum kiln_status status) {
    static const char *const texts[KILN_STATUS_COUNT] = {
        [KILN_NOT_FOUND] = "No job with this id is waiting, running or kept.",
        [KILN_STORE] = "The store of jobs does not answer now.",
        [KILN_STORE_FULL] = "There is no room to keep this job.",
        [KILN_BUSY] = "As many jobs wait as are kept (--store-jobs).",
        [KILN_MISMATCH] = "The Idempotency-Key was sent with another request before.",
    };
    if (status == KILN_GONE) {
        return gone(request);
    }
    return problem_reply(request, status, "%s",
                         texts[status] != NULL ? texts[status] : status_row(status)->title);
}

/* ---- the resource ---- */

static void digest_print(const uint8_t hash[STORE_HASH], char out[DIGEST]) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < 11; i++) {
        uint32_t group = (uint32_t)hash[3 * i] << 16 | (uint32_t)hash[3 * i + 1] << 8;
        group |= i < 10 ? hash[3 * i + 2] : 0;
        for (size_t j = 0; j < 4; j++) {
            out[4 * i + j] = digits[group >> (18 - 6 * j) & 63];
        }
    }
    out[43] = '=';
    out[44] = '\0';
}

static void text_member(struct text *text, const char *name, const char *value) {
    text_format(text, ",\"%s\":", name);
    if (value[0] != '\0') {
        text_json_string(text, value, strlen(value));
    } else {
        text_string(text, "null");
    }
}

/* RFC 3339 in UTC, with milliseconds. */
static void time_member(struct text *text, const char *name, int64_t milliseconds) {
    time_t seconds = (time_t)(milliseconds / 1000);
    struct tm parts;
    char date[32] = "";
    if (milliseconds > 0 && gmtime_r(&seconds, &parts) != NULL) {
        size_t size = strftime(date, sizeof date, "%Y-%m-%dT%H:%M:%S", &parts);
        snprintf(date + size, sizeof date - size, ".%03dZ", (int)(milliseconds % 1000));
    }
    text_member(text, name, date);
}

static double progress_of(struct http_request *request, const struct store_job *job) {
    struct jobs *jobs = request->service->jobs;
    struct job_view view = {.progress = 0};
    if (job->state == STORE_RUNNING && jobs_enter(jobs)) {
        if (!jobs_find(jobs, &job->id, &view)) {
            view.progress = 0;
        }
        jobs_leave(jobs);
    }
    return job->state == STORE_SUCCEEDED ? 1 : view.progress;
}

static void result_print(struct text *text, const struct store_job *job, const char *id) {
    char digest[DIGEST];
    bool there = job->state == STORE_SUCCEEDED && !hash_empty(job->result);
    text_format(text, ",\"bytes\":%" PRId64, job->bytes);
    if (there) {
        digest_print(job->result, digest);
        text_format(text, ",\"digest\":\"sha-256=:%s:\"", digest);
    } else {
        text_string(text, ",\"digest\":null");
    }
    text_format(text, ",\"%s\":%s", job->state == STORE_FAILED ? "error" : "outcome",
                job->outcome[0] != '\0' ? job->outcome : "null");
    text_format(text, ",\"links\":{\"self\":\"/v1/jobs/%s\"", id);
    if (there) {
        text_format(text, ",\"result\":\"/v1/jobs/%s/result\"", id);
    }
    text_string(text, "}}");
}

void kept_print(struct http_request *request, const struct store_job *job, struct text *text) {
    char id[JOB_ID_TEXT];
    job_id_print(&job->id, id);
    text_format(text, "{\"id\":\"%s\",\"type\":\"%s\",\"state\":\"%s\",\"version\":%" PRId64, id,
                job->type, store_state_name(job->state), job->revision);
    text_format(text, ",\"attempt\":%" PRId64 ",\"cancel_requested\":%s", job->attempt,
                job->cancel != 0 ? "true" : "false");
    time_member(text, "created", job->created);
    time_member(text, "started", job->started);
    time_member(text, "finished", job->finished);
    time_member(text, "expires", job->expires);
    text_string(text, ",\"progress\":");
    text_double(text, progress_of(request, job));
    text_string(text, ",\"cost\":");
    text_double(text, job->cost);
    text_member(text, "wanted_device", job->device);
    text_member(text, "owner", job->owner);
    text_member(text, "label", job->label);
    text_format(text, ",\"durable\":%s",
                ledger_durable(request->service->ledger) ? "true" : "false");
    text_format(text, ",\"request\":%s", job->params[0] != '\0' ? job->params : "null");
    text_member(text, "format", job->format);
    text_member(text, "media", job->media);
    result_print(text, job, id);
}

/* The header Retry-After: soon for short jobs, later for those that have waited long. */
static int64_t look_again(const struct store_job *job) {
    int64_t age = ((int64_t)job_ids_now() - job->created) / 1000;
    return age < 10 ? 1 : age < 600 ? age / 10 : 60;
}

static void resource_print(struct http_request *request, struct text *text) {
    kept_print(request, &request->kept->call.job, text);
    text_string(text, "\n");
}

static void resource_headers(struct http_request *request, int http,
                             struct MHD_Response *response) {
    const struct kept_request *kept = request->kept;
    const struct store_job *job = &kept->call.job;
    char id[JOB_ID_TEXT];
    job_id_print(&job->id, id);
    response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    response_header(response, MHD_HTTP_HEADER_ETAG, "\"v%" PRId64 "\"", job->revision);
    if (job->state < STORE_SUCCEEDED) {
        response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "%" PRId64, look_again(job));
    }
    if (http == MHD_HTTP_ACCEPTED) {
        response_header(response, MHD_HTTP_HEADER_LOCATION, "/v1/jobs/%s", id);
        response_header(response, "Preference-Applied", "respond-async");
        response_header(response, MHD_HTTP_HEADER_VARY, "Prefer");
        if (kept->call.repeated) {
            response_header(response, "Idempotency-Replayed", "true");
        }
    } else if (kept->wait_s > 0) {
        response_header(response, "Preference-Applied", "wait=%" PRIu64, kept->wait_s);
    }
}

enum MHD_Result kept_reply(struct http_request *request, int http) {
    size_t capacity = 8192 + 2 * STORE_PARAMS_MAX + STORE_OUTCOME_MAX;
    char *bytes = malloc(capacity);
    struct text text;
    if (bytes == NULL) {
        return problem_reply(request, KILN_NO_MEMORY, "There is no memory for this request now.");
    }
    text_init(&text, bytes, capacity);
    resource_print(request, &text);
    struct MHD_Response *response = response_owned(bytes, text.size);
    resource_headers(request, http, response);
    return reply_send(request, http, "application/json", response);
}

/* ---- one job ---- */

/* The revision that the client has ("v7"); 0 for none. */
static int64_t revision_read(const char *tags) {
    return tags != NULL && strncmp(tags, "\"v", 2) == 0 && isdigit((unsigned char)tags[2])
               ? (int64_t)strtoll(tags + 2, NULL, 10)
               : 0;
}

static enum MHD_Result one_answer(struct http_request *request) {
    const struct kept_request *kept = request->kept;
    const struct ledger_call *call = &kept->call;
    const char *tags = request_header(request, MHD_HTTP_HEADER_IF_NONE_MATCH);
    char tag[32];
    if (call->status != KILN_OK) {
        return kept_problem(request, call->status);
    }
    if (request->method == METHOD_DELETE) {
        return reply_send(request, MHD_HTTP_NO_CONTENT, NULL, response_constant("", 0));
    }
    snprintf(tag, sizeof tag, "\"v%" PRId64 "\"", call->job.revision);
    if (tags != NULL && etag_match(tags, tag)) {
        struct MHD_Response *response = response_constant("", 0);
        resource_headers(request, MHD_HTTP_NOT_MODIFIED, response);
        return reply_send(request, MHD_HTTP_NOT_MODIFIED, NULL, response);
    }
    return kept_reply(request, MHD_HTTP_OK);
}

static enum MHD_Result job_ask(struct http_request *request, enum ledger_ask ask) {
    const char *name = request->match.captures[0];
    struct job_id id;
    bool async;
    if (!job_id_parse(name, strlen(name), &id)) {
        return kept_problem(request, KILN_NOT_FOUND);
    }
    struct kept_request *kept = kept_make(request, ask);
    if (kept == NULL) {
        return problem_reply(request, KILN_NO_MEMORY, "There is no memory for this request now.");
    }
    kept->call.id = id;
    if (ask != LEDGER_DROP) {
        kept->wait_s = kept_prefer(request, &async);
        kept->call.until_ns = kept->wait_s > 0 ? clock_ns() + kept->wait_s * SECOND : 0;
    }
    if (ask == LEDGER_LOOK) {
        kept->call.revision = revision_read(request_header(request, MHD_HTTP_HEADER_IF_NONE_MATCH));
    }
    return kept_ask(request);
}

enum MHD_Result job_kept_one(struct http_request *request) {
    if (request->kept != NULL) {
        return one_answer(request);
    }
    return job_ask(request, request->method == METHOD_DELETE ? LEDGER_DROP : LEDGER_LOOK);
}

/* ---- its result ---- */

static void bytes_headers(const struct http_request *request, struct MHD_Response *response,
                          const char *tag) {
    const struct store_job *job = &request->kept->call.job;
    char digest[DIGEST], id[JOB_ID_TEXT];
    digest_print(job->result, digest);
    job_id_print(&job->id, id);
    response_header(response, MHD_HTTP_HEADER_ETAG, "%s", tag);
    response_header(response, "Repr-Digest", "sha-256=:%s:", digest);
    response_header(response, MHD_HTTP_HEADER_ACCEPT_RANGES, "bytes");
    response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "private, no-cache");
    response_header(response, "Kiln-Job", "%s", id);
    if (request->kept->wait_s > 0 && request->method == METHOD_POST) {
        response_header(response, MHD_HTTP_HEADER_VARY, "Prefer");
    }
}

enum MHD_Result kept_bytes_reply(struct http_request *request) {
    struct ledger_call *call = &request->kept->call;
    const char *if_range = request_header(request, MHD_HTTP_HEADER_IF_RANGE);
    const char *tags = request_header(request, MHD_HTTP_HEADER_IF_NONE_MATCH);
    const char *range = request_header(request, MHD_HTTP_HEADER_RANGE);
    uint64_t total = call->content.size, first = 0, size = total;
    char hex[HASH_TEXT], tag[HASH_TEXT + 2];
    hash_print(call->job.result, hex);
    snprintf(tag, sizeof tag, "\"%s\"", hex);
    if (request->method != METHOD_POST && tags != NULL && etag_match(tags, tag)) {
        struct MHD_Response *response = response_constant("", 0);
        bytes_headers(request, response, tag);
        return reply_send(request, MHD_HTTP_NOT_MODIFIED, NULL, response);
    }
    bool part = request->method == METHOD_GET && call->job.state == STORE_SUCCEEDED &&
                (if_range == NULL || strcmp(if_range, tag) == 0) &&
                kept_range_read(range, total, &first, &size);
    if (part && size == 0) {
        request->length = total;
        return problem_reply(request, KILN_RANGE, "The result has %" PRIu64 " bytes.", total);
    }
    if (!part) {
        first = 0;
        size = total;
    }
    struct MHD_Response *response;
    if (call->content.fd >= 0) {
        response = response_file(call->content.fd, first, size);
        call->content.fd = -1;
    } else {
        response = response_copy((const char *)call->content.data + first, (size_t)size);
    }
    bytes_headers(request, response, tag);
    if (part) {
        response_header(response, MHD_HTTP_HEADER_CONTENT_RANGE,
                        "bytes %" PRIu64 "-%" PRIu64 "/%" PRIu64, first, first + size - 1, total);
    }
    return reply_send(request, part ? MHD_HTTP_PARTIAL_CONTENT : MHD_HTTP_OK, call->job.media,
                      response);
}

enum MHD_Result kept_none_reply(struct http_request *request) {
    const struct store_job *job = &request->kept->call.job;
    request->job = job->id;
    if (job->state < STORE_SUCCEEDED) {
        return problem_reply(request, KILN_NOT_FINISHED, "The job is %s.",
                             store_state_name(job->state));
    }
    if (job->state == STORE_FAILED && job->outcome[0] != '\0') {
        request->cause = job->outcome;
    }
    return problem_reply(request, KILN_JOB_FAILED, "The job has %s.",
                         job->state == STORE_FAILED      ? "failed"
                         : job->state == STORE_CANCELLED ? "been cancelled"
                                                         : "expired");
}

enum MHD_Result job_kept_result(struct http_request *request) {
    if (request->kept == NULL) {
        return job_ask(request, LEDGER_READ);
    }
    const struct ledger_call *call = &request->kept->call;
    if (call->status != KILN_OK) {
        return kept_problem(request, call->status);
    }
    return call->job.state == STORE_SUCCEEDED ? kept_bytes_reply(request)
                                              : kept_none_reply(request);
}
