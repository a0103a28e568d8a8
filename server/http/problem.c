/*
 * problem.c: problem documents: type, title, status, detail, errors.
 */
#include "server/http/problem.h"

#include "compute/jobs/field.h"
#include "server/http/reply.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Seconds after which asking again makes sense; statuses that are not listed have none. */
static const struct {
    enum kiln_status status;
    int seconds;
} retries[] = {
    {KILN_BUSY, 1},  {KILN_NO_DEVICE, 1},   {KILN_NO_MEMORY, 1},    {KILN_DRAINING, 5},
    {KILN_STORE, 1}, {KILN_STORE_FULL, 60}, {KILN_NOT_FINISHED, 1},
};

static void member_print(struct text *text, const char *name, const char *value) {
    text_format(text, ",\"%s\":", name);
    text_json_string(text, value, strlen(value));
}

static void errors_print(struct text *text, const struct complaints *complaints) {
    size_t kept = complaints->count < COMPLAINTS_MAX ? complaints->count : COMPLAINTS_MAX;
    text_string(text, ",\"errors\":[");
    for (size_t i = 0; i < kept; i++) {
        const struct complaint *row = &complaints->rows[i];
        text_string(text, i > 0 ? ",{\"field\":" : "{\"field\":");
        text_json_string(text, row->field, strlen(row->field));
        member_print(text, "reason", row->reason);
        text_string(text, "}");
    }
    text_string(text, "]");
    if (complaints->count > kept) {
        text_format(text, ",\"more_errors\":%zu", complaints->count - kept);
    }
}

static void problem_print(struct http_request *request, struct text *text) {
    const struct status_row *row = status_row(request->fault);
    text_format(text, "{\"type\":\"/problems/%s\"", row->slug);
    member_print(text, "title", row->title);
    text_format(text, ",\"status\":%d", row->http);
    if (request->detail != NULL && request->detail[0] != '\0') {
        member_print(text, "detail", request->detail);
    }
    if (request->complaints != NULL && request->complaints->count > 0) {
        errors_print(text, request->complaints);
    }
    if (request->cause != NULL) {
        text_format(text, ",\"error\":%s", request->cause);
    }
    if (!job_id_empty(&request->job)) {
        char id[JOB_ID_TEXT];
        job_id_print(&request->job, id);
        member_print(text, "job", id);
    }
    text_string(text, "}\n");
}

enum MHD_Result problem_send(struct http_request *request) {
    char bytes[65536]; /* more than 32 complaints with every byte escaped */
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    problem_print(request, &text);
    struct MHD_Response *response = response_copy(bytes, text.size);
    response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    response_secure(response, "default-src 'none'; frame-ancestors 'none'");
    for (size_t i = 0; i < sizeof retries / sizeof retries[0]; i++) {
        if (retries[i].status == request->fault) {
            response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "%d", retries[i].seconds);
        }
    }
    if (request->fault == KILN_METHOD) {
        char allow[64];
        route_allow(request->match.route, allow, sizeof allow);
        response_header(response, MHD_HTTP_HEADER_ALLOW, "%s", allow);
    }
    if (request->etag != NULL) {
        response_header(response, MHD_HTTP_HEADER_ETAG, "%s", request->etag);
    }
    if (request->fault == KILN_RANGE) {
        response_header(response, MHD_HTTP_HEADER_CONTENT_RANGE, "bytes */%llu",
                        (unsigned long long)request->length);
    }
    if (request->fault == KILN_NOT_ACCEPTABLE) {
        response_header(response, MHD_HTTP_HEADER_VARY, "Accept");
    }
    return reply_send(request, status_row(request->fault)->http, PROBLEM_MEDIA, response);
}

enum MHD_Result problem_reply(struct http_request *request, enum kiln_status status,
                              const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    request_fault_with(request, status, format, arguments);
    va_end(arguments);
    return problem_send(request);
}
