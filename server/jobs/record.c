/*
 * record.c: reading, checking and naming what was sent, and the way to the executor.
 */
#include "server/jobs/record.h"

#include "compute/core/text.h"
#include "compute/submission/submission.h"
#include "server/cache/etag.h"
#include "server/jobs/negotiate.h"
#include "server/jobs/result_reuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- what was sent ---- */

static size_t text_room(const char *text) {
    return text != NULL ? strlen(text) + 1 : 0;
}

static char *text_keep(char **room, const char *text) {
    if (text == NULL) {
        return NULL;
    }
    size_t size = strlen(text) + 1;
    char *kept = memcpy(*room, text, size);
    *room += size;
    return kept;
}

static size_t texts_room(const struct job_order *order) {
    size_t size = text_room(order->query) + text_room(order->media) + text_room(order->accept) +
                  text_room(order->tags) + text_room(order->holder.name);
    for (size_t i = 0; order->captures != NULL && order->captures[i] != NULL; i++) {
        size += text_room(order->captures[i]);
    }
    return size;
}

static void texts_keep(struct job_record *record, const struct job_order *order) {
    char *room = record->text;
    record->query = text_keep(&room, order->query);
    record->query_end = order->query != NULL ? room - 1 : NULL;
    record->media = text_keep(&room, order->media);
    record->accept = text_keep(&room, order->accept);
    record->tags = text_keep(&room, order->tags);
    record->job.holder.name = text_keep(&room, order->holder.name);
    for (size_t i = 0;
         order->captures != NULL && i < RECORD_CAPTURES_MAX && order->captures[i] != NULL; i++) {
        record->captures[i] = text_keep(&room, order->captures[i]);
    }
}

struct job_record *job_record_create(struct jobs *jobs, const struct job_order *order) {
    struct job_record *record = malloc(sizeof *record + texts_room(order));
    if (record == NULL) {
        return NULL;
    }
    memset(record, 0, offsetof(struct job_record, detail));
    record->detail[0] = '\0';
    record->jobs = jobs;
    record->ended = order->ended;
    record->context = order->context;
    record->path = order->path;
    record->body = order->body;
    record->body_size = order->body_size;
    record->find = order->find && jobs->reuse != NULL;
    record->keep = order->keep && jobs->reuse != NULL;
    record->age_ns = order->age_ns;
    record->job.type = order->type;
    record->job.holder = order->holder;
    texts_keep(record, order);
    record->check = order->check;
    record->preparation.id = order->id;
    record->job.owner = order->owner;
    record->job.trace = order->trace;
    record->job.watch_fd = order->watch_fd;
    if (order->request_id != NULL) {
        snprintf(record->job.request_id, sizeof record->job.request_id, "%s", order->request_id);
    }
    result_reuse_address(record, order->address);
    return record;
}

void job_record_destroy(struct job_record *record) {
    if (record == NULL) {
        return;
    }
    struct arena *arena = record->jobs->options.arena;
    result_reuse_end(record);
    arena_give(arena, &record->body);
    arena_give(arena, &record->job.body);
    arena_give(arena, &record->job.result);
    free(record->complaints);
    free(record);
}

const void *job_record_result(const struct job_record *record, uint64_t *size) {
    const struct job *job = &record->job;
    *size = 0;
    if (record->outcome != RECORD_JOB || job->status != KILN_OK) {
        return NULL;
    }
    if (record->result != NULL) {
        *size = record->result->size;
        return result_bytes(record->result);
    }
    *size = job->result_size;
    return arena_at(record->jobs->options.arena, job->result.offset);
}

/* ---- preparing it ---- */

static enum kiln_status fault(struct job_record *record, enum kiln_status status,
                              const char *format, ...) __attribute__((format(printf, 3, 4)));
static enum kiln_status fault(struct job_record *record, enum kiln_status status,
                              const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(record->detail, sizeof record->detail, format, arguments);
    va_end(arguments);
    record->fault = status;
    record->outcome = RECORD_FAULT;
    return status;
}

static enum format format_offered(const struct job_type *type, const char *name) {
    for (const enum format *row = type->formats; *row != FORMAT_NONE; row++) {
        if (strcmp(format_row(*row)->name, name) == 0) {
            return *row;
        }
    }
    return FORMAT_NONE;
}

static enum kiln_status not_acceptable(struct job_record *record, const char *wanted) {
    const enum format *formats = record->job.type->formats;
    char bytes[384];
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    for (const enum format *row = formats; *row != FORMAT_NONE; row++) {
        text_format(&text, "%s%s (format=%s)", row > formats ? ", " : "", format_row(*row)->media,
                    format_row(*row)->name);
    }
    return fault(record, KILN_NOT_ACCEPTABLE, "\"%.60s\" is not available. There is: %s.", wanted,
                 bytes);
}

/* The address's own format, else the member `format`, else what is accepted. Where none fits, the
   job's format is its first, so that its check can still complain of the fields. */
static enum kiln_status format_choose(struct job_record *record, const char *named) {
    struct job *job = &record->job;
    const char *wanted = named;
    if (record->path != NULL && record->path->format != FORMAT_NONE) {
        job->format = record->path->format;
        return KILN_OK;
    }
    if (named[0] != '\0') {
        job->format = format_offered(job->type, named);
    } else {
        record->negotiated = true;
        job->format = negotiate(record->accept, job->type->formats);
        wanted = record->accept;
    }
    if (job->format != FORMAT_NONE) {
        return KILN_OK;
    }
    job->format = job->type->formats[0];
    return not_acceptable(record, wanted);
}

/* Whether a job may ask for it: once the executor has closed, that no longer matters. */
static bool device_known(const char *name, void *context) {
    struct jobs *jobs = context;
    bool open = jobs_enter(jobs);
    bool known = !open || jobs->executor->type->knows_device(jobs->executor, name);
    if (open) {
        jobs_leave(jobs);
    }
    return known;
}

/* Query and body into the job; `format` receives the member of that name or "". */
static enum kiln_status submission_take(struct job_record *record, struct complaints *complaints,
                                        char format[FORMAT_TEXT_MAX]) {
    const struct jobs_options *options = &record->jobs->options;
    struct submission submission = {
        .type = record->job.type,
        .path = record->path,
        .captures = record->captures,
        .limits = options->limits,
        .arena = options->arena,
        .holder = &record->job.holder,
        .device_known = device_known,
        .context = record->jobs,
        .query = record->query,
        .query_end = record->query_end,
        .media = record->media,
        .body = record->body,
        .body_size = record->body_size,
        .job = &record->job,
        .complaints = complaints,
    };
    record->body = (struct block){0, 0};
    enum kiln_status status = submission_read(&submission);
    memcpy(format, submission.format, FORMAT_TEXT_MAX);
    return status == KILN_OK ? KILN_OK : fault(record, status, "%s", submission.detail);
}

static uint8_t *input_data(const struct job_record *record) {
    const struct job *job = &record->job;
    return job->body.size > 0 ? arena_at(record->jobs->options.arena, job->body.offset) : NULL;
}

/* Rare and large, so that they have memory of their own; without any the sum is told. */
static enum kiln_status complaints_keep(struct job_record *record,
                                        const struct complaints *complaints) {
    record->complaints = malloc(sizeof *complaints);
    if (record->complaints != NULL) {
        *record->complaints = *complaints;
    }
    return fault(record, KILN_INVALID, "%zu field%s cannot be used.", complaints->count,
                 complaints->count == 1 ? "" : "s");
}

/* All complaints at once: the fields', the format's, and the kind's own. */
static enum kiln_status check(struct job_record *record) {
    struct job *job = &record->job;
    struct complaints complaints;
    char named[FORMAT_TEXT_MAX];
    complaints.count = 0;
    enum kiln_status status = submission_take(record, &complaints, named);
    if (status != KILN_OK) {
        return status;
    }
    enum kiln_status format = format_choose(record, named);
    if (complaints.count < COMPLAINTS_MAX) { /* else no more are kept */
        job->type->check(job->params, job->inputs, input_data(record), job->format,
                         record->jobs->options.limits, &complaints);
    }
    if (complaints.count > 0) {
        if (format != KILN_OK) {
            complaints_add(&complaints, named[0] != '\0' ? "format" : "Accept", "%s",
                           record->detail);
        }
        return complaints_keep(record, &complaints);
    }
    return format;
}

/* Whether the sender names the result as one that it has. */
static bool unchanged(const struct job_record *record) {
    return record->etag[0] != '\0' && record->tags != NULL &&
           etag_match(record->tags, record->etag);
}

/* Fills the job or notes what is wrong; sets the outcome. */
static void prepare(struct job_record *record) {
    struct job *job = &record->job;
    if (check(record) != KILN_OK) {
        return;
    }
    enum kiln_status status = job->type->plan(job->params, job->inputs, job->format, &job->plan);
    if (status != KILN_OK) {
        fault(record, status, "The result would be too large.");
        return;
    }
    const struct result_reuse *reuse = record->jobs->reuse;
    etag_make(job, input_data(record), record->jobs->variants, reuse != NULL ? reuse->secret : NULL,
              record->etag, sizeof record->etag, &record->digest);
    record->outcome = unchanged(record) ? RECORD_UNCHANGED : RECORD_JOB;
}

/* ---- on an offload's thread ---- */

/* What is told where preparing was ended from outside; nobody reads some of it. */
static void preparation_end(struct job_record *record, enum kiln_status status) {
    const char *why = status == KILN_DRAINING   ? "The daemon is shutting down."
                      : status == KILN_DEADLINE ? "The deadline came before the body was read."
                      : status == KILN_REVOKED  ? "The job was cancelled while its body was read."
                                                : "The client has left.";
    free(record->complaints);
    record->complaints = NULL;
    record->job.id = record->preparation.id;
    fault(record, status, "%s", why);
}

static void preparation_submit(void *context) {
    result_reuse_submit(context);
}

/* Without a moment in which the job is found neither among those that are prepared nor among those
   that wait. */
static enum kiln_status preparation_move(struct job_record *record) {
    struct jobs *jobs = record->jobs;
    if (!jobs_enter(jobs)) { /* before the list's lock, as whoever lists */
        return KILN_DRAINING;
    }
    bool moved = preparing_move(&jobs->preparing, &record->preparation, preparation_submit, record);
    jobs_leave(jobs);
    return moved ? KILN_OK : KILN_REVOKED;
}

static void preparation_run(struct offload_task *task) {
    struct job_record *record =
        (struct job_record *)(void *)((char *)task - offsetof(struct job_record, offload));
    struct preparation *preparation = &record->preparation;
    cancel_begin(&preparation->cancel, preparing_ask, preparation);
    if (!cancel_point(0)) { /* it may have waited long for this thread */
        prepare(record);
    }
    enum kiln_status ended = cancel_end();
    if (ended == KILN_OK && atomic_load(&preparation->revoked)) {
        ended = KILN_REVOKED; /* behind the last point */
    }
    bool runs = ended == KILN_OK && record->outcome == RECORD_JOB && !record->check &&
                !result_reuse_find(record);
    if (runs) {
        ended = preparation_move(record);
        if (ended == KILN_OK) {
            return;
        }
    }
    if (ended != KILN_OK) {
        preparation_end(record, ended);
    }
    preparing_leave(&record->jobs->preparing, preparation);
    record->ended(record);
}

/* How long its body takes, in bytes of text: images are only hashed here, texts are parsed. */
static uint64_t body_work(const struct job_record *record) {
    const struct job_type *type = record->job.type;
    bool image = type->input == INPUT_IMAGE && submission_media_binary(type, record->media);
    return image ? record->body_size / OFFLOAD_IMAGE_EASE : record->body_size;
}

static bool body_is_long(const struct job_record *record) {
    return record->body_size >= OFFLOAD_BODY_MIN && body_work(record) >= OFFLOAD_BODY_MIN;
}

/* The record is the offload's after this. */
static void preparation_push(struct job_record *record) {
    struct jobs *jobs = record->jobs;
    struct job *job = &record->job;
    job->since_ns = clock_ns();
    record->preparation = (struct preparation){
        .id = job_id_empty(&record->preparation.id) ? jobs->executor->type->id(jobs->executor)
                                                    : record->preparation.id,
        .since_ns = job->since_ns,
        .until_ns = job->since_ns + (uint64_t)(jobs->options.deadline_s * 1e9),
        .type = job->type,
        .owner = job->owner,
        .fd = job->watch_fd,
        .draining = jobs->options.draining,
    };
    memcpy(record->preparation.request_id, job->request_id, sizeof job->request_id);
    record->offload.run = preparation_run;
    preparing_enter(&jobs->preparing, &record->preparation);
    enum offload_kind kind = body_work(record) < OFFLOAD_LONG_MIN ? OFFLOAD_BODY : OFFLOAD_LONG;
    offload_push(jobs->offload, kind, &record->offload); /* stops after the executor */
}

/* ---- its way ---- */

/* True if the outcome is known without reading what was sent any further. */
static bool recalled(struct job_record *record) {
    if (!result_reuse_recall(record)) {
        return false;
    }
    record->outcome = unchanged(record) ? RECORD_UNCHANGED : RECORD_JOB;
    if (record->outcome == RECORD_UNCHANGED || result_reuse_find(record)) {
        return true;
    }
    record->outcome = RECORD_OPEN;
    record->negotiated = false;
    return false;
}

bool job_record_begin(struct job_record *record) {
    if (recalled(record)) {
        return true;
    }
    if (body_is_long(record)) {
        return false;
    }
    prepare(record);
    if (record->outcome == RECORD_JOB || record->outcome == RECORD_UNCHANGED) {
        result_reuse_remember(record);
    }
    return record->check || record->outcome != RECORD_JOB || result_reuse_find(record);
}

void job_record_run(struct job_record *record) {
    if (record->outcome == RECORD_OPEN) {
        preparation_push(record);
    } else {
        result_reuse_submit(record);
    }
}
