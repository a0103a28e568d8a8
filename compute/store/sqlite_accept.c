/*
 * sqlite_accept.c: accepting jobs: one, or a batch whole. Whoever asks again, by the same key or
 * with the same id, is told of the first time.
 *
 * Thread: the engine's.
 */
#include "compute/store/sqlite.h"

#include <string.h>

static enum kiln_status accept_check(const struct store_accept *accept) {
    if (accept->count == 0 || accept->count > STORE_BATCH_MAX ||
        strnlen(accept->owner, STORE_NAME_MAX + 1) > STORE_NAME_MAX ||
        strnlen(accept->key, STORE_NAME_MAX + 1) > STORE_NAME_MAX ||
        (accept->count > 1 && job_id_empty(&accept->batch))) {
        return KILN_INVALID;
    }
    for (size_t i = 0; i < accept->count; i++) {
        const struct store_job *job = &accept->jobs[i];
        if (job_id_empty(&job->id) || job->type[0] == '\0' || job->reserved > INT64_MAX >> 24 ||
            !record_valid(job)) {
            return KILN_INVALID;
        }
    }
    return KILN_OK;
}

/* Whether this was accepted before: by its key, or by its id, where the answer was lost. */
static enum kiln_status accept_find(struct sqlite_store *store, const struct store_accept *accept,
                                    struct store_accepted *accepted) {
    enum kiln_status status = KILN_OK;
    struct brief brief;
    if (accept->key[0] != '\0' &&
        sql_step(store, S_KEY_GET, "tt", accept->owner, accept->key) == SQLITE_ROW) {
        sqlite3_stmt *row = sql_row(store, S_KEY_GET);
        uint8_t fingerprint[STORE_HASH];
        column_bytes(row, 0, fingerprint, sizeof fingerprint);
        column_bytes(row, 1, &accepted->id, sizeof accepted->id);
        accepted->created = sqlite3_column_int64(row, 2);
        accepted->repeated = memcmp(fingerprint, accept->fingerprint, STORE_HASH) == 0;
        status = accepted->repeated ? KILN_OK : KILN_MISMATCH;
    }
    sql_end(store, S_KEY_GET);
    if (status == KILN_OK && !accepted->repeated &&
        brief_read(store, &accept->jobs[0].id, &brief) == KILN_OK) {
        bool own = strcmp(brief.owner, accept->owner) == 0;
        accepted->id = job_id_empty(&accept->batch) ? brief.id : accept->batch;
        accepted->created = brief.created;
        accepted->repeated = own;
        status = own ? KILN_OK : KILN_INVALID;
    }
    return status;
}

static enum kiln_status limits_check(struct sqlite_store *store, const struct store_accept *accept,
                                     int64_t bytes) {
    const struct store_options *options = &store->options;
    int64_t count = (int64_t)accept->count, unfinished = 0, own = 0;
    if (options->jobs > 0 && store->totals.unfinished + count > options->jobs) {
        return KILN_BUSY;
    }
    if (sql_step(store, S_ACCOUNT_GET, "t", accept->owner) == SQLITE_ROW) {
        unfinished = sqlite3_column_int64(sql_row(store, S_ACCOUNT_GET), 0);
        own = sqlite3_column_int64(sql_row(store, S_ACCOUNT_GET), 1);
    }
    sql_end(store, S_ACCOUNT_GET);
    if ((options->owner_jobs > 0 && unfinished + count > options->owner_jobs) ||
        (options->owner_bytes > 0 && own + bytes > options->owner_bytes)) {
        return KILN_QUOTA;
    }
    return room_make(store, bytes);
}

static int field_bind(sqlite3_stmt *row, int place, const struct record_field *field,
                      const struct store_job *job) {
    const char *at = (const char *)job + field->offset;
    size_t size = field->kind == RECORD_ID     ? sizeof(struct job_id)
                  : field->kind == RECORD_HASH ? STORE_HASH
                                               : sizeof(struct trace);
    if (field->kind == RECORD_TEXT) {
        return sqlite3_bind_text(row, place, *(const char *const *)at, -1, SQLITE_STATIC);
    }
    if (field->kind == RECORD_NUMBER) {
        return sqlite3_bind_int64(row, place, *(const int64_t *)at);
    }
    if (field->kind == RECORD_REAL) {
        return sqlite3_bind_double(row, place, *(const double *)at);
    }
    static const char none[STORE_HASH];
    return memcmp(at, none, size) == 0
               ? sqlite3_bind_null(row, place)
               : sqlite3_bind_blob(row, place, at, (int)size, SQLITE_STATIC);
}

static int job_insert(struct sqlite_store *store, const struct store_job *job) {
    int code = SQLITE_OK;
    for (size_t i = 0; i < record_count && code == SQLITE_OK; i++) {
        code = field_bind(store->insert, (int)i + 1, &record_fields[i], job);
    }
    if (code == SQLITE_OK) {
        code = sqlite3_step(store->insert);
    }
    sqlite3_reset(store->insert);
    return code;
}

/* What is the store's to say of a new job. */
static void job_fill(struct store_job *job, const struct store_accept *accept, int64_t now,
                     int64_t input) {
    job->batch = accept->batch;
    job->owner = accept->owner;
    job->node = job->outcome = "";
    job->state = STORE_QUEUED;
    job->revision = job->attempt = 1;
    job->losses = job->cancel = job->boot = job->started = job->finished = 0;
    job->discard = job->fetched = job->bytes = 0;
    job->created = now;
    job->input_bytes = input;
    job->seconds = 0;
    memset(job->input, 0, STORE_HASH);
    memset(job->result, 0, STORE_HASH);
}

static enum kiln_status jobs_put(struct sqlite_store *store, const struct store_accept *accept,
                                 struct store_accepted *accepted) {
    int64_t now = store_now(store);
    accepted->created = now;
    for (size_t i = 0; i < accept->count; i++) {
        struct store_job *job = &accept->jobs[i];
        size_t input = accept->inputs != NULL ? accept->inputs[i].size : 0;
        job_fill(job, accept, now, (int64_t)input);
        if (input > 0) {
            enum kiln_status status = blob_put(store, &accept->inputs[i], job->input);
            if (status != KILN_OK) {
                return status;
            }
        }
        int code = job_insert(store, job);
        if (code == SQLITE_DONE) {
            code = event_add(store, &job->id, job->owner, STORE_QUEUED, 1, &accepted->event);
        }
        if (code != SQLITE_DONE) {
            return sql_status(store, code);
        }
    }
    return KILN_OK;
}

enum kiln_status sqlite_accept(struct store *base, const struct store_accept *accept,
                               struct store_accepted *accepted) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    int64_t reserved = 0, input = 0;
    int code = SQLITE_DONE;
    memset(accepted, 0, sizeof *accepted);
    enum kiln_status status = accept_check(accept);
    if (status != KILN_OK || (status = point_set(store)) != KILN_OK) {
        return status;
    }
    status = accept_find(store, accept, accepted);
    for (size_t i = 0; i < accept->count; i++) {
        reserved += accept->jobs[i].reserved;
        input += accept->inputs != NULL ? (int64_t)accept->inputs[i].size : 0;
    }
    if (status == KILN_OK && !accepted->repeated) {
        accepted->id = job_id_empty(&accept->batch) ? accept->jobs[0].id : accept->batch;
        status = limits_check(store, accept, reserved + input);
        if (status == KILN_OK) {
            status = jobs_put(store, accept, accepted);
        }
        if (status == KILN_OK) {
            account_add(store, accept->owner, (int64_t)accept->count, input, reserved, &code);
            status = sql_status(store, code);
        }
        if (status == KILN_OK && accept->key[0] != '\0') {
            status =
                sql_status(store, sql_run(store, S_KEY_PUT, "ttbkki", accept->owner, accept->key,
                                          (const void *)accept->fingerprint, (size_t)STORE_HASH,
                                          &accept->jobs[0].id, &accept->batch, accepted->created));
        }
    }
    return point_end(store, status);
}
