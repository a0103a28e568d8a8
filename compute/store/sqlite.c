/*
 * sqlite.c: statements and what becomes of their result codes (sqlite.h).
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
#include <string.h>

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

void column_bytes(sqlite3_stmt *row, int column, void *out, size_t size) {
    const void *bytes = sqlite3_column_blob(row, column);
    if (bytes != NULL && (size_t)sqlite3_column_bytes(row, column) == size) {
        memcpy(out, bytes, size);
    } else {
        memset(out, 0, size);
    }
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

/* ---- points ---- */

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
