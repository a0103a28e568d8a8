/*
 * sqlite.c: the connection: opening, statements, transactions, checkpoints (sqlite.h).
 *
 * A change that fails for want of room spoils its group: the commit undoes it and says so, and
 * whoever made the changes makes them again after sqlite_relieve. Any other error of the disk loses
 * the store: what a failed sync has left in the system's memory and what on the disk nobody knows,
 * so the file is closed and read again from the disk.
 *
 * Thread: the engine's.
 */
#include "compute/store/sqlite.h"

#include "compute/core/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define CHECKPOINT_AT ((int64_t)16 << 20) /* bytes of the log */

static const char *const statements[S_COUNT] = {
#define X(name, sql) [S_##name] = sql,
    SQLITE_STATEMENTS(X)
#undef X
};

/* ---- statements ---- */

int sql_once(struct sqlite_store *store, const char *sql) {
    return sqlite3_exec(store->db, sql, NULL, NULL, NULL);
}

static bool all_zero(const uint8_t *bytes, size_t size) {
    size_t i = 0;
    while (i < size && bytes[i] == 0) {
        i++;
    }
    return i == size;
}

static int bytes_bind(sqlite3_stmt *row, int place, const uint8_t *bytes, size_t size) {
    return all_zero(bytes, size) ? sqlite3_bind_null(row, place)
                                 : sqlite3_bind_blob(row, place, bytes, (int)size, SQLITE_STATIC);
}

static int values_bind(sqlite3_stmt *row, const char *types, va_list values) {
    int code = SQLITE_OK;
    for (int place = 1; *types != '\0' && code == SQLITE_OK; types++, place++) {
        if (*types == 'i') {
            code = sqlite3_bind_int64(row, place, va_arg(values, int64_t));
        } else if (*types == 'd') {
            code = sqlite3_bind_double(row, place, va_arg(values, double));
        } else if (*types == 't') {
            code = sqlite3_bind_text(row, place, va_arg(values, const char *), -1, SQLITE_STATIC);
        } else if (*types == 'k') {
            const struct job_id *id = va_arg(values, const struct job_id *);
            code = bytes_bind(row, place, id->bytes, JOB_ID_SIZE);
        } else if (*types == 'h') {
            code = bytes_bind(row, place, va_arg(values, const uint8_t *), STORE_HASH);
        } else {
            const void *data = va_arg(values, const void *);
            size_t size = va_arg(values, size_t);
            code = size > 0 ? sqlite3_bind_blob64(row, place, data, size, SQLITE_STATIC)
                            : sqlite3_bind_zeroblob(row, place, 0);
        }
    }
    return code;
}

int sql_step(struct sqlite_store *store, enum sqlite_statement which, const char *types, ...) {
    sqlite3_stmt **row = &store->statements[which];
    va_list values;
    if (*row == NULL) {
        int code = sqlite3_prepare_v3(store->db, statements[which], -1, SQLITE_PREPARE_PERSISTENT,
                                      row, NULL);
        if (code != SQLITE_OK) {
            log_error("store: %s", sqlite3_errmsg(store->db));
            return code;
        }
    }
    va_start(values, types);
    int code = values_bind(*row, types, values);
    va_end(values);
    return code == SQLITE_OK ? sqlite3_step(*row) : code;
}

int sql_next(struct sqlite_store *store, enum sqlite_statement which) {
    return sqlite3_step(store->statements[which]);
}

sqlite3_stmt *sql_row(struct sqlite_store *store, enum sqlite_statement which) {
    return store->statements[which];
}

void sql_end(struct sqlite_store *store, enum sqlite_statement which) {
    if (store->statements[which] != NULL) {
        sqlite3_reset(store->statements[which]);
        sqlite3_clear_bindings(store->statements[which]);
    }
}

int sql_ended(struct sqlite_store *store, enum sqlite_statement which, int code) {
    sql_end(store, which);
    return code;
}

static bool disk_full(const struct sqlite_store *store, int code) {
    int error = sqlite3_system_errno(store->db);
    return (code & 0xff) == SQLITE_FULL || ((code & 0xff) == SQLITE_IOERR &&
                                            (error == ENOSPC || error == EDQUOT || error == EFBIG));
}

enum kiln_status sql_status(struct sqlite_store *store, int code) {
    int kind = code & 0xff;
    if (kind == SQLITE_OK || kind == SQLITE_ROW || kind == SQLITE_DONE) {
        return KILN_OK;
    }
    if (disk_full(store, code)) {
        store->spoiled = true;
        return KILN_STORE_FULL;
    }
    if (kind == SQLITE_CONSTRAINT || kind == SQLITE_TOOBIG) {
        return KILN_INVALID;
    }
    log_error("store: %s (%d)", sqlite3_errmsg(store->db), code);
    store->lost = true;
    return KILN_STORE;
}

int64_t store_now(struct sqlite_store *store) {
    int64_t now = store->options.now != NULL ? store->options.now() : (int64_t)job_ids_now();
    store->last_ms = now > store->last_ms ? now : store->last_ms;
    return store->last_ms;
}

/* ---- transactions ---- */

/* The log of changes is synced by every commit, or only when it is written back. Not a prepared
   statement: this one acts when it is compiled. */
static int synchronous_set(struct sqlite_store *store, bool normal) {
    if (store->normal == normal) {
        return SQLITE_OK;
    }
    store->normal = normal;
    return sql_once(store, normal ? "PRAGMA synchronous = NORMAL" : "PRAGMA synchronous = FULL");
}

enum kiln_status sqlite_begin(struct store *base, bool lazy) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    if (store->lost) {
        return KILN_STORE;
    }
    int code = synchronous_set(store, lazy);
    if (code == SQLITE_OK) {
        code = sql_run(store, S_BEGIN, "");
    }
    store->before_group = store->totals;
    store->group = true;
    store->spoiled = false;
    store->free_bytes = store->files != NULL ? files_free(store->files) : INT64_MAX / 2;
    return sql_status(store, code);
}

static void group_undo(struct sqlite_store *store) {
    if (sqlite3_get_autocommit(store->db) == 0) {
        sql_run(store, S_ROLLBACK, "");
    }
    store->totals = store->before_group;
    store->group = false;
}

static void sqlite_abandon(struct store *base) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    group_undo(store);
    blob_settle(store);
}

/* Writes the log back into the database where it has grown; what cannot be written back now can be
   later. */
static void log_shorten(struct sqlite_store *store) {
    if (store->wal_pages * store->page_size >= CHECKPOINT_AT &&
        sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL) !=
            SQLITE_OK) {
        log_warning("store: the log of changes cannot be written back: %s",
                    sqlite3_errmsg(store->db));
    }
}

enum kiln_status sqlite_commit(struct store *base) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    enum kiln_status status = store->spoiled ? KILN_STORE_FULL : store->lost ? KILN_STORE : KILN_OK;
    if (status == KILN_OK && store->files != NULL) {
        status = files_sync(store->files);
    }
    if (status == KILN_OK) {
        status = sql_status(store, sql_run(store, S_COMMIT, ""));
    }
    if (status != KILN_OK) {
        group_undo(store);
        store->lost = store->lost || status != KILN_STORE_FULL;
    }
    store->group = false;
    store->commits++;
    blob_settle(store);
    log_shorten(store);
    return status;
}

enum kiln_status point_set(struct sqlite_store *store) {
    store->before_point = store->totals;
    return store->lost || !store->group ? KILN_STORE
                                        : sql_status(store, sql_run(store, S_POINT, ""));
}

enum kiln_status point_end(struct sqlite_store *store, enum kiln_status status) {
    if (sqlite3_get_autocommit(store->db) != 0) {
        store->spoiled = true; /* SQLite has undone the whole group by itself */
        return status == KILN_OK ? KILN_STORE_FULL : status;
    }
    if (status != KILN_OK) {
        store->totals = store->before_point;
        sql_run(store, S_UNDO, "");
    }
    enum kiln_status released = sql_status(store, sql_run(store, S_RELEASE, ""));
    return status != KILN_OK ? status : released;
}

static int log_grown(void *context, sqlite3 *db, const char *name, int pages) {
    struct sqlite_store *store = context;
    (void)db;
    (void)name;
    store->wal_pages = pages;
    return SQLITE_OK;
}

/* ---- opening ---- */

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
