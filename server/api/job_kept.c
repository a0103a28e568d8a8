/*
 * job_kept.c: orders that are to be kept, and calls of the ledger.
 *
 *   begin     headers; a copy of the body as it was sent, because reading it takes the body apart
 *   check     a record reads and checks it, without running it: what is wrong is said now
 *   keep      the ledger has it in the store, and the request comes back
 *   read      where the job ended while the request waited: the result, by a second call
 */
#include "server/api/job_kept.h"

#include "compute/jobs/job.h"
#include "server/api/job_answer.h"
#include "server/api/kept_headers.h"
#include "server/api/kept_private.h"
#include "server/http/authorization.h"
#include "server/http/problem.h"
#include "server/jobs/record.h"

#include <ctype.h>
#include <errno.h>
#include <gnutls/crypto.h>
#include <stdlib.h>
#include <string.h>

#define SECOND      UINT64_C(1000000000)
#define RETAIN_S    86400
#define SECONDS_MAX 31536000 /* of Kiln-Expires, Kiln-Retain */

/* ---- headers ---- */

uint64_t kept_prefer(const struct http_request *request, bool *async) {
    char text[256];
    struct header_list list = {"Prefer", text, sizeof text, false};
    *async = false;
    request_lists(request, &list, 1);
    return list.any ? kept_prefer_read(text, async) : 0;
}

bool job_kept_wanted(const struct http_request *request) {
    bool async = false;
    if (request->method != METHOD_HEAD && request_header(request, "Prefer") != NULL) {
        kept_prefer(request, &async);
    }
    return async;
}

/* Whole seconds; false, and the fault noted, for anything else. */
static bool seconds_read(struct http_request *request, const char *name, int64_t *seconds) {
    const char *value = request_header(request, name);
    char *end;
    if (value == NULL) {
        return true;
    }
    errno = 0;
    long long number = strtoll(value, &end, 10);
    if (!isdigit((unsigned char)value[0]) || errno != 0 || *end != '\0' || number < 1 ||
        number > SECONDS_MAX) {
        request_fault(request, KILN_MALFORMED, "%s is whole seconds, 1 to %d.", name, SECONDS_MAX);
        return false;
    }
    *seconds = number;
    return true;
}

static bool key_read(struct http_request *request, char key[STORE_NAME_MAX + 1]) {
    const char *value = request_header(request, "Idempotency-Key");
    bool good = value == NULL || kept_key_read(value, key, STORE_NAME_MAX + 1);
    if (!good) {
        request_fault(request, KILN_MALFORMED,
                      "Idempotency-Key is a string of 1 to %d printable characters in double "
                      "quotes.",
                      STORE_NAME_MAX);
    }
    return good;
}

static bool label_read(struct http_request *request, char label[STORE_NAME_MAX + 1]) {
    const char *value = request_header(request, "Kiln-Label");
    size_t size = value != NULL ? strlen(value) : 0;
    bool good = size <= STORE_NAME_MAX;
    for (size_t i = 0; good && i < size; i++) {
        good = value[i] > ' ' && value[i] <= '~';
        label[i] = value[i];
    }
    if (!good) {
        request_fault(request, KILN_MALFORMED,
                      "Kiln-Label is 1 to %d printable characters without blanks.", STORE_NAME_MAX);
    }
    return good;
}

/* ---- calls ---- */

const char *kept_owner(const struct http_request *request) {
    return authorization_allows(request, SCOPE_ADMIN) ? NULL
           : request->pass.grant != NULL              ? request->pass.grant->key.id
                                                      : "";
}

static void call_done(struct ledger_call *call) {
    request_resume(call->context);
}

struct kept_request *kept_make(struct http_request *request, enum ledger_ask ask) {
    struct kept_request *kept = malloc(sizeof *kept);
    if (kept == NULL) {
        return NULL;
    }
    memset(kept, 0, offsetof(struct kept_request, params));
    kept->call.ask = ask;
    kept->call.owner = kept_owner(request);
    kept->call.key = kept->key;
    kept->call.done = call_done;
    kept->call.context = request;
    kept->call.content.fd = -1;
    request->kept = kept;
    return kept;
}

enum MHD_Result kept_ask(struct http_request *request) {
    struct ledger *ledger = request->service->ledger;
    if (!ledger_enter(ledger)) {
        return problem_reply(request, KILN_DRAINING, "The daemon is shutting down.");
    }
    request->kept->asked = true;
    request_suspend(request);
    ledger_ask(ledger, &request->kept->call);
    ledger_leave(ledger);
    return MHD_YES;
}

void job_kept_end(struct http_request *request) {
    if (request->kept != NULL) {
        arena_give(request->service->arena, &request->kept->body);
        ledger_call_finish(&request->kept->call);
        free(request->kept);
        request->kept = NULL;
    }
}

/* ---- keeping ---- */

static enum kiln_status body_copy(struct http_request *request, struct kept_request *kept) {
    struct arena *arena = request->service->arena;
    kept->body_size = request->body_size;
    if (kept->body_size == 0) {
        return KILN_OK;
    }
    enum kiln_status status = arena_take_for(arena, request_holder(request), kept->body_size,
                                             &request->body, &kept->body);
    if (status != KILN_OK) {
        return request_fault(request, status, "There is no room for the body now.");
    }
    memcpy(arena_at(arena, kept->body.offset), arena_at(arena, request->body.offset),
           (size_t)kept->body_size);
    return KILN_OK;
}

enum kiln_status job_kept_begin(struct http_request *request) {
    bool now;
    struct kept_request *kept = kept_make(request, LEDGER_KEEP);
    if (kept == NULL) {
        return request_fault(request, KILN_NO_MEMORY, "There is no memory for this request now.");
    }
    kept->retain_s = RETAIN_S;
    bool async;
    kept->wait_s = kept_prefer(request, &async);
    if (!key_read(request, kept->key) || !label_read(request, kept->label) ||
        !seconds_read(request, "Kiln-Expires", &kept->expires_s) ||
        !seconds_read(request, "Kiln-Retain", &kept->retain_s)) {
        return request->fault;
    }
    if (!ledger_ready(request->service->ledger, &now) || !now) {
        return request_fault(request, KILN_STORE, "The store of jobs does not answer now.");
    }
    return body_copy(request, kept);
}

void job_kept_order(struct http_request *request, const struct job_order *order) {
    struct kept_request *kept = request->kept;
    kept->fits = ledger_order_print(order, order->accept, kept->params, sizeof kept->params);
}

/* SHA-256 of what the result depends on: kind, parameters, format and input as they were read, so
   that white space makes no difference. */
static bool fingerprint_make(const struct http_request *request, uint8_t out[STORE_HASH]) {
    const struct job *job = &request->record->job;
    gnutls_hash_hd_t hash;
    char bytes[STORE_PARAMS_MAX];
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    text_format(&text, "%s %d %s %s\n", job->type->name, job->type->version,
                format_row(job->format)->name, job->device);
    fields_print_query(job->type->fields, job->params, &text);
    if (text.full || gnutls_hash_init(&hash, GNUTLS_DIG_SHA256) != 0) {
        return false;
    }
    int failed = gnutls_hash(hash, text.data, text.size);
    for (size_t i = 0; job->body.size > 0 && i < job_type_inputs(job->type); i++) {
        const struct input *input = &job->inputs[i];
        const uint8_t *data = arena_at(request->service->arena, job->body.offset);
        failed |= gnutls_hash(hash, &input->size, sizeof input->size);
        failed |= gnutls_hash(hash, data + input->offset, (size_t)input->size);
    }
    gnutls_hash_deinit(hash, out);
    return failed == 0;
}

/* The order as the store takes it. */
static void offer_fill(struct http_request *request) {
    struct kept_request *kept = request->kept;
    struct ledger_call *call = &kept->call;
    const struct job *job = &request->record->job;
    int64_t now = (int64_t)job_ids_now();
    call->owner = request->pass.grant != NULL ? request->pass.grant->key.id : "";
    call->offer = (struct store_job){
        .id = ledger_id(request->service->ledger),
        .owner = "",
        .type = job->type->name,
        .version = job->type->version,
        .params = kept->params,
        .format = format_row(job->format)->name,
        .media = format_row(job->format)->media,
        .device = job->device,
        .node = "",
        .etag = "",
        .label = kept->label,
        .hook = "",
        .outcome = "",
        .expires = kept->expires_s > 0 ? now + kept->expires_s * 1000 : 0,
        .retain = kept->retain_s * 1000,
        .reserved = (int64_t)job->plan.result_bytes,
        .cost = job->plan.cost,
        .trace = request->tracing.trace,
    };
    if (kept->body_size > 0) {
        call->input = (struct store_bytes){arena_at(request->service->arena, kept->body.offset),
                                           (size_t)kept->body_size};
    }
    call->until_ns = kept->wait_s > 0 ? clock_ns() + kept->wait_s * SECOND : 0;
}

static enum MHD_Result offer(struct http_request *request) {
    struct kept_request *kept = request->kept;
    if (request->record->outcome != RECORD_JOB || request->record->job.status != KILN_OK) {
        return job_answer(request);
    }
    if (!kept->fits) {
        return problem_reply(
            request, KILN_URI_TOO_LONG,
            "The parameters are too long to be kept. Send them as a body instead.");
    }
    if (kept->key[0] != '\0' && !fingerprint_make(request, kept->call.fingerprint)) {
        return problem_reply(request, KILN_INTERNAL, "The request could not be named.");
    }
    offer_fill(request);
    return kept_ask(request);
}

/* The second call: the job ended while the request waited. */
static enum MHD_Result result_ask(struct http_request *request) {
    struct kept_request *kept = request->kept;
    kept->call.ask = LEDGER_READ;
    kept->call.until_ns = 0;
    return kept_ask(request);
}

static enum MHD_Result accepted_reply(struct http_request *request) {
    struct kept_request *kept = request->kept;
    struct ledger_call *call = &kept->call;
    bool succeeded = call->job.state == STORE_SUCCEEDED;
    job_record_destroy(request->record); /* with its copy of the input */
    request->record = NULL;
    arena_give(request->service->arena, &kept->body);
    if (call->status == KILN_GONE && (call->ask == LEDGER_READ || call->repeated)) {
        return kept_problem(request, KILN_GONE);
    }
    if (call->status != KILN_OK) {
        return kept_problem(request, call->status);
    }
    if (call->ask == LEDGER_READ) {
        return kept_bytes_reply(request);
    }
    return kept->wait_s > 0 && succeeded ? result_ask(request) : kept_reply(request, 202);
}

enum MHD_Result job_kept_checked(struct http_request *request) {
    return request->kept->asked ? accepted_reply(request) : offer(request);
}
