/*
 * sqlite_engine.c: opening and closing a store, and the engines' tables.
 *
 * Thread: the engine's.
 */
#include "compute/store/sqlite.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int log_grown(void *context, sqlite3 *db, const char *name, int pages) {
    struct sqlite_store *store = context;
    (void)db;
    (void)name;
    store->wal_pages = pages;
    return SQLITE_OK;
}

static const struct store_engine engine, memory_engine;

static enum kiln_status connection_open(struct sqlite_store *store, char *why, size_t why_size) {
    char path[1100];
    snprintf(path, sizeof path, "%s%s", store->options.directory,
             store->files != NULL ? "/store.db" : ":memory:");
    int code = sqlite3_open_v2(
        path, &store->db, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX, NULL);
    if (code == SQLITE_OK) {
        sqlite3_extended_result_codes(store->db, 1);
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
        sqlite3_db_config(store->db, SQLITE_DBCONFIG_ENABLE_TRIGGER, 0, NULL);
        /* locking first: then the log needs no shared memory, and nobody else gets in */
        code = sql_once(store, "PRAGMA locking_mode = EXCLUSIVE; PRAGMA journal_mode = WAL;"
                               "PRAGMA synchronous = FULL; PRAGMA foreign_keys = ON;"
                               "PRAGMA trusted_schema = OFF; PRAGMA secure_delete = OFF;"
                               "PRAGMA cell_size_check = ON; PRAGMA temp_store = MEMORY;"
                               "PRAGMA cache_size = -16384; PRAGMA wal_autocheckpoint = 0;"
                               "PRAGMA journal_size_limit = 16777216;");
        /* after wal_autocheckpoint, which takes a hook away */
        sqlite3_wal_hook(store->db, log_grown, store);
    }
    if (code == SQLITE_OK) {
        code = sql_once(store, "BEGIN EXCLUSIVE; COMMIT");
    }
    if ((code & 0xff) == SQLITE_BUSY) {
        snprintf(why, why_size, "%.200s is in use by another process", path);
    } else if (code != SQLITE_OK) {
        snprintf(why, why_size, "%.200s: %s", path, sqlite3_errmsg(store->db));
    }
    return code == SQLITE_OK ? KILN_OK : KILN_STORE;
}

/* The two statements that have every column. */
static enum kiln_status rows_prepare(struct sqlite_store *store) {
    char columns[1024], sql[2048];
    struct text text;
    schema_columns(columns, sizeof columns, false);
    text_init(&text, sql, sizeof sql);
    text_format(&text, "SELECT %s FROM job WHERE id = ?1", columns);
    enum kiln_status status =
        sql_status(store, sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                             &store->statements[S_JOB_GET], NULL));
    if (status != KILN_OK) {
        return status;
    }
    text_init(&text, sql, sizeof sql);
    text_format(&text, "INSERT INTO job(%s) VALUES(", columns);
    for (size_t i = 0; i < record_count; i++) {
        text_format(&text, "%s?%zu", i > 0 ? "," : "", i + 1);
    }
    text_string(&text, ")");
    return sql_status(store, sqlite3_prepare_v3(store->db, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                                &store->insert, NULL));
}

static int64_t sum_read(struct sqlite_store *store, enum sqlite_statement which, int column) {
    int64_t sum = 0;
    if (sql_step(store, which, "") == SQLITE_ROW) {
        sum = (int64_t)sqlite3_column_double(sql_row(store, which), column);
    }
    sql_end(store, which);
    return sum;
}

static void totals_read(struct sqlite_store *store) {
    sqlite3_stmt *size = NULL;
    store->totals.held = sum_read(store, S_BLOB_SUM, 0);
    store->totals.unfinished = sum_read(store, S_ACCOUNT_SUM, 0);
    store->totals.reserved = sum_read(store, S_ACCOUNT_SUM, 1);
    if (sql_step(store, S_EVENT_LAST, "") == SQLITE_ROW) {
        store->last_ms = sqlite3_column_int64(sql_row(store, S_EVENT_LAST), 1);
    }
    sql_end(store, S_EVENT_LAST);
    if (sqlite3_prepare_v2(store->db, "PRAGMA page_size", -1, &size, NULL) == SQLITE_OK &&
        sqlite3_step(size) == SQLITE_ROW) {
        store->page_size = sqlite3_column_int64(size, 0);
    }
    sqlite3_finalize(size);
}

static enum kiln_status parts_open(struct sqlite_store *store, char *why, size_t why_size) {
    enum kiln_status status = KILN_OK;
    if (store->options.directory[0] != '\0') {
        status = files_open(store->options.directory, &store->files, why, why_size);
    }
    if (status == KILN_OK) {
        status = connection_open(store, why, why_size);
    }
    if (status == KILN_OK) {
        status = schema_prepare(store, why, why_size);
    }
    if (status == KILN_OK) {
        status = rows_prepare(store);
    }
    if (status == KILN_OK) {
        totals_read(store);
    }
    if (status == KILN_OK && store->files != NULL && !store->options.inspect) {
        store->full = !files_ballast_take(store->files);
    }
    return status == KILN_OK && !store->options.inspect ? jobs_recover(store) : status;
}

enum kiln_status store_open(const struct store_options *options, struct store **out, char *why,
                            size_t why_size) {
    struct sqlite_store *store = calloc(1, sizeof *store);
    if (options->boot < 0 || options->boot > STORE_NUMBER_MAX) {
        free(store);
        snprintf(why, why_size, "a boot is a number from 0 to 2^53");
        return KILN_STORE;
    }
    snprintf(why, why_size, "there is not enough memory");
    if (store == NULL) {
        return KILN_NO_MEMORY;
    }
    store->options = *options;
    store->options.directory = strdup(options->directory);
    store->store.engine = options->directory[0] != '\0' ? &engine : &memory_engine;
    enum kiln_status status =
        store->options.directory != NULL ? parts_open(store, why, why_size) : KILN_NO_MEMORY;
    if (status != KILN_OK) {
        store_close(&store->store);
        return status;
    }
    why[0] = '\0';
    *out = &store->store;
    return KILN_OK;
}

static void sqlite_close(struct store *base) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    for (size_t i = 0; i < S_COUNT; i++) {
        sqlite3_finalize(store->statements[i]);
    }
    sqlite3_finalize(store->insert);
    sqlite3_close(store->db); /* writes the log back */
    files_close(store->files);
    free(store->touched);
    free((void *)(uintptr_t)store->options.directory);
    free(store);
}

void store_close(struct store *store) {
    if (store != NULL) {
        store->engine->close(store);
    }
}

#define CALLS                                                                                      \
    .close = sqlite_close, .begin = sqlite_begin, .commit = sqlite_commit,                         \
    .abandon = sqlite_abandon, .relieve = sqlite_relieve, .accept = sqlite_accept,                 \
    .change = sqlite_change, .calibrate = sqlite_calibrate, .delivered = sqlite_delivered,         \
    .get = sqlite_get, .open = sqlite_content, .list = sqlite_list, .events = sqlite_events,       \
    .deliveries = sqlite_deliveries, .calibrations = sqlite_calibrations, .stats = sqlite_stats,   \
    .tick = sqlite_tick

static const struct store_engine engine = {.name = "sqlite", .durable = true, CALLS};
static const struct store_engine memory_engine = {.name = "memory", .durable = false, CALLS};
