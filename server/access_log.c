/*
 * access_log.c: facts of a request as members of a log line.
 */
#include "server/access_log.h"

#include "compute/core/log.h"
#include "compute/core/text.h"
#include "server/jobs/record.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PATH_MAX_BYTES 256
#define MEMBERS_MAX    32
#define TEXT_MAX       2048

struct journal {
    struct log_member members[MEMBERS_MAX];
    size_t count;
    struct text text; /* the values, each ended by a NUL */
    char bytes[TEXT_MAX];
};

static void member_add(struct journal *journal, const char *name, const char *value, bool number) {
    if (value != NULL && value[0] != '\0' && journal->count < MEMBERS_MAX) {
        journal->members[journal->count++] = (struct log_member){name, value, number};
    }
}

/* Prints a value that has no other place. */
static void number_add(struct journal *journal, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void number_add(struct journal *journal, const char *name, const char *format, ...) {
    char value[48];
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    const char *place = journal->bytes + journal->text.size;
    bool whole = size > 0 && (size_t)size < sizeof value; /* half a number is another number */
    text_bytes(&journal->text, value, whole ? (size_t)size + 1 : 0);
    if (whole && !journal->text.full) {
        member_add(journal, name, place, true);
    }
}

static void text_add(struct journal *journal, const char *name, const char *value, size_t size) {
    const char *place = journal->bytes + journal->text.size;
    text_bytes(&journal->text, value, size);
    text_bytes(&journal->text, "", 1);
    if (!journal->text.full) {
        member_add(journal, name, place, false);
    }
}

/* An address in absolute form may bring a name and password before its host, so that part is left
   out; so is the query, whose values are the client's own business. */
static void path_add(struct journal *journal, const char *target) {
    const char *scheme = strstr(target, "://");
    if (target[0] != '/' && scheme != NULL) {
        target = scheme + 3 + strcspn(scheme + 3, "/?#");
    }
    size_t size = strcspn(target, "?#");
    size_t kept = size < PATH_MAX_BYTES ? size : PATH_MAX_BYTES;
    text_add(journal, "path", target, kept);
    if (kept < size) {
        number_add(journal, "path_bytes", "%zu", size);
    }
}

static void answer_add(struct journal *journal, const struct http_request *request, bool cut,
                       double seconds) {
    const struct route *route = request->match.route;
    bool body = request->http != MHD_HTTP_NO_CONTENT && request->http != MHD_HTTP_NOT_MODIFIED;
    member_add(journal, "method", method_name(request->method), false);
    path_add(journal, request->target);
    member_add(journal, "route", route != NULL ? route->pattern : NULL, false);
    number_add(journal, "status", "%d", request->http);
    number_add(journal, "bytes", "%" PRIu64, body ? request->answer_size : 0);
    number_add(journal, "ms", "%.3f", seconds * 1e3);
    member_add(journal, "cut", cut ? "true" : NULL, true);
}

static void client_add(struct journal *journal, const struct http_request *request) {
    const struct grant *grant = request->pass.grant;
    char address[ADDRESS_TEXT_MAX];
    if (request->client != NULL) {
        address_text(client_address(request->client), address, sizeof address);
        text_add(journal, "client", address, strlen(address));
    }
    member_add(journal, "key", grant != NULL ? grant->key.id : NULL, false);
}

static void phases_add(struct journal *journal, const struct timing *timing) {
    number_add(journal, "queue_ms", "%.4f", timing->queue);
    number_add(journal, "upload_ms", "%.4f", timing->upload);
    number_add(journal, "kernel_ms", "%.4f", timing->kernel);
    number_add(journal, "download_ms", "%.4f", timing->download);
    number_add(journal, "encode_ms", "%.4f", timing->encode);
}

static void job_add(struct journal *journal, const struct http_request *request) {
    static const char *const reuses[] = {
        [REUSED_OFF] = NULL,        [REUSED_MISS] = "miss",       [REUSED_HIT] = "hit",
        [REUSED_SHARED] = "shared", [REUSED_REFUSED] = "refused",
    };
    const struct job_record *record = request->record;
    if (record == NULL) {
        return;
    }
    const struct result *result = record->result;
    const struct job *job = &record->job;
    bool own = record->outcome == RECORD_JOB && !job_id_empty(&job->id); /* a job of its own ran */
    const struct job_id *id = own ? &job->id : result != NULL ? &result->job : NULL;
    char text[JOB_ID_TEXT];
    if (id == NULL) {
        return;
    }
    member_add(journal, "device", own ? job->device_name : result->device, false);
    job_id_print(id, text);
    text_add(journal, "job", text, strlen(text));
    member_add(journal, "cache", reuses[record->reused], false);
    if (own && job->status == KILN_OK) {
        phases_add(journal, &job->timing);
    }
}

/* The tracestate as it was sent, its headers joined by commas; false where none is to be kept. */
static bool state_read(const struct http_request *request, char text[TRACESTATE_MAX + 1]) {
    char joined[TRACESTATE_MAX + 2]; /* one more, to see what is too long */
    struct header_list list = {"tracestate", joined, sizeof joined, false};
    if (!request->tracing.state) {
        return false;
    }
    request_lists(request, &list, 1);
    size_t size = strlen(joined);
    if (!tracestate_valid(joined, size)) {
        return false;
    }
    memcpy(text, joined, size + 1);
    return true;
}

static void names_add(struct journal *journal, const struct http_request *request) {
    const struct tracing *tracing = &request->tracing;
    static const uint8_t none[TRACE_SPAN_SIZE];
    struct trace caller = {.id = {0}};
    char id[REQUEST_ID_MAX + 1], trace[TRACE_ID_TEXT], span[TRACE_SPAN_TEXT];
    char state[TRACESTATE_MAX + 1];
    tracing_id_print(tracing, id);
    trace_id_print(&tracing->trace, trace);
    trace_span_print(&tracing->trace, span);
    text_add(journal, "request_id", id, strlen(id));
    text_add(journal, "trace_id", trace, strlen(trace));
    text_add(journal, "span_id", span, strlen(span));
    memcpy(caller.span, tracing->parent, sizeof caller.span);
    if (memcmp(caller.span, none, sizeof none) != 0) {
        trace_span_print(&caller, span);
        text_add(journal, "parent_span_id", span, strlen(span));
    }
    if (state_read(request, state)) {
        text_add(journal, "trace_state", state, strlen(state));
    }
}

void access_log_write(const struct http_request *request, bool cut, double seconds) {
    enum log_level level =
        request->service->options->log_requests ? LOG_LEVEL_INFO : LOG_LEVEL_DEBUG;
    struct journal journal;
    if (level > log_level_get()) {
        return;
    }
    journal.count = 0;
    text_init(&journal.text, journal.bytes, sizeof journal.bytes);
    answer_add(&journal, request, cut, seconds);
    client_add(&journal, request);
    job_add(&journal, request);
    names_add(&journal, request);
    log_members(level, "request", journal.members, journal.count);
}
