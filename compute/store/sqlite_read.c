/*
 * sqlite_read.c: everything that changes nothing.
 *
 * A list walks one index in the order of ids (by batch, by state where few have it, by owner, or
 * all) and looks at each row for the rest of the filter, at no more than SCAN_MAX of them.
 *
 * Thread: the engine's.
 */
#include "compute/store/sqlite.h"

#include <stdio.h>
#include <string.h>

#define SCAN_MAX 4096

void column_bytes(sqlite3_stmt *row, int column, void *out, size_t size) {
    const void *bytes = sqlite3_column_blob(row, column);
    if (bytes != NULL && (size_t)sqlite3_column_bytes(row, column) == size) {
        memcpy(out, bytes, size);
    } else {
        memset(out, 0, size);
    }
}

/* The columns in the order of record_fields; texts are SQLite's. */
static void job_read(sqlite3_stmt *row, struct store_job *job) {
    for (size_t i = 0; i < record_count; i++) {
        const struct record_field *field = &record_fields[i];
        char *place = (char *)job + field->offset;
        if (field->kind == RECORD_TEXT) {
            const char *text = (const char *)sqlite3_column_text(row, (int)i);
            *(const char **)place = text != NULL ? text : "";
        } else if (field->kind == RECORD_NUMBER) {
            *(int64_t *)place = sqlite3_column_int64(row, (int)i);
        } else if (field->kind == RECORD_REAL) {
            *(double *)place = sqlite3_column_double(row, (int)i);
        } else {
            column_bytes(row, (int)i, place,
                         field->kind == RECORD_ID     ? sizeof(struct job_id)
                         : field->kind == RECORD_HASH ? STORE_HASH
                                                      : sizeof(struct trace));
        }
    }
}

/* Moves a job's texts into the store's own memory, where they outlive the row. */
static void texts_keep(struct sqlite_store *store, struct store_job *job) {
    struct text out;
    text_init(&out, store->texts, sizeof store->texts);
    for (size_t i = 0; i < record_count; i++) {
        if (record_fields[i].kind == RECORD_TEXT) {
            const char **place = (const char **)((char *)job + record_fields[i].offset);
            size_t size = strlen(*place);
            const char *copy = store->texts + out.size;
            text_bytes(&out, *place, size < record_fields[i].max ? size : record_fields[i].max);
            text_bytes(&out, "", 1);
            *place = copy;
        }
    }
}

static enum kiln_status tomb_read(struct sqlite_store *store, const struct job_id *id,
                                  struct store_job *job) {
    *job = record_empty;
    job->id = *id;
    int code = sql_step(store, S_TOMB_GET, "k", id);
    if (code == SQLITE_ROW) {
        snprintf(store->texts, sizeof store->texts, "%s",
                 (const char *)sqlite3_column_text(sql_row(store, S_TOMB_GET), 0));
        job->owner = store->texts;
        job->state = sqlite3_column_int64(sql_row(store, S_TOMB_GET), 1);
    }
    sql_end(store, S_TOMB_GET);
    return code == SQLITE_ROW    ? KILN_GONE
           : code == SQLITE_DONE ? KILN_NOT_FOUND
                                 : sql_status(store, code);
}

enum kiln_status sqlite_get(struct store *base, const struct job_id *id, struct store_job *job) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    int code = sql_step(store, S_JOB_GET, "k", id);
    if (code == SQLITE_ROW) {
        job_read(sql_row(store, S_JOB_GET), job);
        texts_keep(store, job);
    }
    sql_end(store, S_JOB_GET);
    return code == SQLITE_ROW    ? KILN_OK
           : code == SQLITE_DONE ? tomb_read(store, id, job)
                                 : sql_status(store, code);
}

enum kiln_status sqlite_content(struct store *base, const struct job_id *id, bool input,
                                struct store_content *content) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    struct brief brief;
    *content = (struct store_content){.fd = -1};
    enum kiln_status status = brief_read(store, id, &brief);
    if (status != KILN_OK) {
        return status;
    }
    if (!input && brief.state != STORE_SUCCEEDED) {
        return KILN_PRECONDITION;
    }
    const uint8_t *hash = input ? brief.input : brief.result;
    if (hash_empty(hash)) {
        return input && brief.state < STORE_SUCCEEDED ? KILN_PRECONDITION : KILN_GONE;
    }
    return blob_open(store, hash, content);
}

/* ---- lists ---- */

static bool text_matches(const char *wanted, const char *text) {
    return wanted == NULL || strcmp(wanted, text) == 0;
}

static bool job_matches(const struct store_filter *filter, const struct store_job *job) {
    return text_matches(filter->owner, job->owner) && text_matches(filter->type, job->type) &&
           text_matches(filter->label, job->label) &&
           (filter->states == 0 || (filter->states & 1u << job->state) != 0);
}

static bool one_bit(uint32_t bits) {
    return bits != 0 && (bits & (bits - 1)) == 0;
}

/* The state by whose index a list goes, or -1: few jobs are unfinished, many are done. */
static int64_t state_walked(const struct store_filter *filter) {
    const uint32_t few = 1u << STORE_QUEUED | 1u << STORE_RUNNING;
    if (!one_bit(filter->states) || (filter->owner != NULL && (filter->states & few) == 0)) {
        return -1;
    }
    return __builtin_ctz(filter->states);
}

static sqlite3_stmt *list_prepare(struct sqlite_store *store, const struct store_filter *filter) {
    char columns[1024], sql[2048];
    struct text text;
    sqlite3_stmt *row = NULL;
    int64_t state = state_walked(filter);
    bool after = !job_id_empty(&filter->after);
    schema_columns(columns, sizeof columns, filter->short_rows);
    text_init(&text, sql, sizeof sql);
    text_format(&text, "SELECT %s FROM job", columns);
    if (!job_id_empty(&filter->batch)) {
        text_string(&text, " INDEXED BY job_batch WHERE batch = ?1");
    } else if (state >= 0) {
        text_format(&text, " INDEXED BY job_state WHERE state = %d", (int)state);
    } else if (filter->owner != NULL) {
        text_string(&text, " INDEXED BY job_owner WHERE owner = ?2");
    } else {
        text_string(&text, " WHERE true");
    }
    text_format(&text, "%s ORDER BY id %s LIMIT %d",
                !after                 ? ""
                : filter->oldest_first ? " AND id > ?3"
                                       : " AND id < ?3",
                filter->oldest_first ? "ASC" : "DESC", SCAN_MAX + 1);
    sql_status(store, sqlite3_prepare_v2(store->db, sql, -1, &row, NULL));
    if (row != NULL) { /* a place that this text does not have is no error */
        sqlite3_bind_blob(row, 1, filter->batch.bytes, JOB_ID_SIZE, SQLITE_STATIC);
        sqlite3_bind_text(row, 2, filter->owner, -1, SQLITE_STATIC);
        sqlite3_bind_blob(row, 3, filter->after.bytes, JOB_ID_SIZE, SQLITE_STATIC);
    }
    return row;
}

enum kiln_status sqlite_list(struct store *base, const struct store_filter *filter,
                             store_job_row *row, void *context, struct store_page *page) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    struct store_job job;
    int64_t rows = 0;
    int code = SQLITE_ROW;
    memset(page, 0, sizeof *page);
    if (filter->limit < 1 || filter->limit > STORE_PAGE_MAX) {
        return KILN_INVALID;
    }
    sqlite3_stmt *walk = list_prepare(store, filter);
    if (walk == NULL) {
        return KILN_STORE;
    }
    for (int seen = 0; (code = sqlite3_step(walk)) == SQLITE_ROW; seen++) {
        if (rows == filter->limit || seen == SCAN_MAX) {
            page->more = true;
            break;
        }
        job_read(walk, &job);
        if (job_matches(filter, &job)) {
            if (!row(context, &job)) {
                page->more = true;
                break;
            }
            rows++;
        }
        page->next = job.id;
    }
    enum kiln_status status = sql_status(store, code);
    sqlite3_finalize(walk);
    return status;
}

/* ---- events, deliveries, calibrations ---- */

enum kiln_status sqlite_events(struct store *base, const struct store_events_filter *filter,
                               store_event_row *each, void *context) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    int code;
    enum sqlite_statement which = S_EVENT_ALL;
    if (!job_id_empty(&filter->job)) {
        which = S_EVENT_JOB;
        code = sql_step(store, which, "iki", filter->after, &filter->job, filter->limit);
    } else if (filter->owner != NULL) {
        which = S_EVENT_OWNER;
        code = sql_step(store, which, "iti", filter->after, filter->owner, filter->limit);
    } else {
        code = sql_step(store, which, "iki", filter->after, &filter->job, filter->limit);
    }
    for (bool going = true; code == SQLITE_ROW && going;) {
        sqlite3_stmt *row = sql_row(store, which);
        struct store_event event = {.seq = sqlite3_column_int64(row, 0),
                                    .owner = (const char *)sqlite3_column_text(row, 2),
                                    .at = sqlite3_column_int64(row, 3),
                                    .kind = sqlite3_column_int64(row, 4),
                                    .attempt = sqlite3_column_int64(row, 5)};
        column_bytes(row, 1, &event.job, sizeof event.job);
        going = each(context, &event);
        code = going ? sql_next(store, which) : code;
    }
    sql_end(store, which);
    return sql_status(store, code);
}

enum kiln_status sqlite_deliveries(struct store *base, int64_t now, int64_t limit,
                                   store_delivery_row *each, void *context) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    int code = sql_step(store, S_OUTBOX_DUE, "ii", now, limit);
    for (bool going = true; code == SQLITE_ROW && going;) {
        sqlite3_stmt *row = sql_row(store, S_OUTBOX_DUE);
        struct store_delivery delivery = {.seq = sqlite3_column_int64(row, 0),
                                          .endpoint = (const char *)sqlite3_column_text(row, 2),
                                          .due = sqlite3_column_int64(row, 3),
                                          .tries = sqlite3_column_int64(row, 4),
                                          .status = sqlite3_column_int64(row, 5)};
        column_bytes(row, 1, &delivery.job, sizeof delivery.job);
        going = each(context, &delivery);
        code = going ? sql_next(store, S_OUTBOX_DUE) : code;
    }
    sql_end(store, S_OUTBOX_DUE);
    return sql_status(store, code);
}

enum kiln_status sqlite_calibrations(struct store *base, store_calibration_row *each,
                                     void *context) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    int code = sql_step(store, S_RATE_ALL, "");
    for (bool going = true; code == SQLITE_ROW && going;) {
        sqlite3_stmt *row = sql_row(store, S_RATE_ALL);
        const struct store_calibration rate = {(const char *)sqlite3_column_text(row, 0),
                                               (const char *)sqlite3_column_text(row, 1),
                                               (const char *)sqlite3_column_text(row, 2),
                                               sqlite3_column_double(row, 3),
                                               sqlite3_column_double(row, 4),
                                               sqlite3_column_double(row, 5)};
        going = each(context, &rate);
        code = going ? sql_next(store, S_RATE_ALL) : code;
    }
    sql_end(store, S_RATE_ALL);
    return sql_status(store, code);
}

enum kiln_status sqlite_stats(struct store *base, struct store_stats *stats) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    *stats = (struct store_stats){.held = store->totals.held,
                                  .reserved = store->totals.reserved,
                                  .limit = store->options.bytes,
                                  .wal = store->wal_pages * store->page_size,
                                  .full = store->full};
    int code = sql_step(store, S_COUNTS, "");
    for (; code == SQLITE_ROW; code = sql_next(store, S_COUNTS)) {
        int64_t state = sqlite3_column_int64(sql_row(store, S_COUNTS), 0);
        if (state >= 0 && state < STORE_STATES) {
            stats->jobs[state] = sqlite3_column_int64(sql_row(store, S_COUNTS), 1);
        }
    }
    sql_end(store, S_COUNTS);
    if (sql_step(store, S_EVENT_LAST, "") == SQLITE_ROW) {
        stats->event = sqlite3_column_int64(sql_row(store, S_EVENT_LAST), 0);
    }
    sql_end(store, S_EVENT_LAST);
    return sql_status(store, code);
}
