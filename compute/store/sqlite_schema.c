/*
 * sqlite_schema.c: the tables, as a row of steps. A new file takes all of them, an older one those
 * that it lacks, in one transaction, after a copy of it was made (store.db.v1). Steps that were
 * once released never change.
 *
 * Jobs have rowids: SQLite keeps large rows badly in trees by key. Ids rise with time, so the index
 * over them grows at its end.
 *
 * Thread: the engine's.
 */
#include "compute/store/sqlite.h"

#include "compute/core/log.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define APPLICATION 0x6b696c6e /* "kiln" */

static const char *const steps[] = {
    "CREATE TABLE job(number INTEGER PRIMARY KEY, id BLOB NOT NULL UNIQUE, batch BLOB,"
    " line INTEGER NOT NULL, owner TEXT NOT NULL, type TEXT NOT NULL, version INTEGER NOT NULL,"
    " params TEXT NOT NULL, format TEXT NOT NULL, media TEXT NOT NULL, device TEXT NOT NULL,"
    " node TEXT NOT NULL, etag TEXT NOT NULL, hook TEXT NOT NULL, class INTEGER NOT NULL,"
    " state INTEGER NOT NULL CHECK(state BETWEEN 0 AND 5), revision INTEGER NOT NULL,"
    " attempt INTEGER NOT NULL, losses INTEGER NOT NULL, cancel INTEGER NOT NULL,"
    " boot INTEGER NOT NULL, created INTEGER NOT NULL, started INTEGER NOT NULL,"
    " finished INTEGER NOT NULL, expires INTEGER NOT NULL, timeout INTEGER NOT NULL,"
    " retain INTEGER NOT NULL, discard INTEGER NOT NULL, fetched INTEGER NOT NULL,"
    " reserved INTEGER NOT NULL, input_bytes INTEGER NOT NULL, bytes INTEGER NOT NULL,"
    " cost REAL NOT NULL, seconds REAL NOT NULL, input BLOB,"
    " result BLOB, outcome TEXT NOT NULL, trace BLOB) STRICT;"
    "CREATE INDEX job_owner ON job(owner, id);"
    "CREATE INDEX job_state ON job(state, id);"
    "CREATE INDEX job_batch ON job(batch, id) WHERE batch IS NOT NULL;"
    "CREATE INDEX job_expires ON job(expires) WHERE state = 0 AND expires > 0;"
    "CREATE INDEX job_finished ON job(finished) WHERE state >= 2;"
    "CREATE INDEX job_discard ON job(discard) WHERE result IS NOT NULL;"
    "CREATE INDEX job_fetched ON job(fetched) WHERE result IS NOT NULL AND fetched > 0;"
    "CREATE INDEX job_held ON job(owner, finished) WHERE result IS NOT NULL;"
    "CREATE TABLE event(seq INTEGER PRIMARY KEY AUTOINCREMENT, job BLOB NOT NULL,"
    " owner TEXT NOT NULL, at INTEGER NOT NULL, kind INTEGER NOT NULL, attempt INTEGER NOT NULL)"
    " STRICT;"
    "CREATE INDEX event_job ON event(job, seq);"
    "CREATE INDEX event_owner ON event(owner, seq);"
    "CREATE TABLE idempotency(owner TEXT NOT NULL, key TEXT NOT NULL, fingerprint BLOB NOT NULL,"
    " job BLOB NOT NULL, batch BLOB, created INTEGER NOT NULL, PRIMARY KEY(owner, key))"
    " STRICT, WITHOUT ROWID;"
    "CREATE INDEX idempotency_job ON idempotency(job);"
    "CREATE TABLE account(owner TEXT NOT NULL PRIMARY KEY, unfinished INTEGER NOT NULL,"
    " held INTEGER NOT NULL, reserved INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE blob(hash BLOB NOT NULL PRIMARY KEY, bytes INTEGER NOT NULL,"
    " refs INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE TABLE small(hash BLOB NOT NULL UNIQUE, data BLOB NOT NULL) STRICT;"
    "CREATE TABLE outbox(seq INTEGER PRIMARY KEY, job BLOB NOT NULL, endpoint TEXT NOT NULL,"
    " due INTEGER, tries INTEGER NOT NULL, status INTEGER NOT NULL) STRICT;"
    "CREATE INDEX outbox_due ON outbox(due) WHERE due IS NOT NULL;"
    "CREATE INDEX outbox_job ON outbox(job);"
    "CREATE TABLE tombstone(id BLOB NOT NULL PRIMARY KEY, owner TEXT NOT NULL,"
    " state INTEGER NOT NULL, until INTEGER NOT NULL) STRICT, WITHOUT ROWID;"
    "CREATE INDEX tombstone_until ON tombstone(until);",

    "ALTER TABLE job ADD COLUMN label TEXT NOT NULL DEFAULT '';"
    "CREATE TABLE calibration(type TEXT NOT NULL, variant TEXT NOT NULL, device TEXT NOT NULL,"
    " a REAL NOT NULL, b REAL NOT NULL, n REAL NOT NULL, PRIMARY KEY(type, variant, device))"
    " STRICT, WITHOUT ROWID;",
};

#define VERSION ((int64_t)(sizeof steps / sizeof *steps))

void schema_columns(char *text, size_t size, bool short_rows) {
    struct text out;
    text_init(&out, text, size);
    for (size_t i = 0; i < record_count; i++) {
        bool left_out = short_rows && record_fields[i].long_rows;
        text_format(&out, "%s%s", i > 0 ? "," : "", left_out ? "''" : record_fields[i].name);
    }
}

static int64_t pragma_read(struct sqlite_store *store, const char *sql) {
    sqlite3_stmt *row = NULL;
    int64_t value = -1;
    int code = sqlite3_prepare_v2(store->db, sql, -1, &row, NULL);
    if (code == SQLITE_OK && (code = sqlite3_step(row)) == SQLITE_ROW) {
        value = sqlite3_column_int64(row, 0);
    }
    sqlite3_finalize(row);
    return value;
}

/* A copy of the file as it is, beside it, in case that the new version is not wanted after all. */
static int copy_keep(struct sqlite_store *store, int64_t version) {
    char sql[1200], path[1100];
    snprintf(path, sizeof path, "%s/store.db.v%lld", store->options.directory, (long long)version);
    unlink(path);
    sqlite3_snprintf(sizeof sql, sql, "VACUUM INTO %Q", path);
    log_info("store: version %lld becomes %lld; %s keeps it as it was", (long long)version,
             (long long)VERSION, path);
    return sql_once(store, sql);
}

static int steps_run(struct sqlite_store *store, int64_t version) {
    char sql[96];
    int code = sql_once(store, "BEGIN EXCLUSIVE");
    for (; code == SQLITE_OK && version < VERSION; version++) {
        code = sql_once(store, steps[version]);
    }
    snprintf(sql, sizeof sql, "PRAGMA application_id = %d; PRAGMA user_version = %lld", APPLICATION,
             (long long)VERSION);
    if (code == SQLITE_OK) {
        code = sql_once(store, sql);
    }
    int ended = sql_once(store, code == SQLITE_OK ? "COMMIT" : "ROLLBACK");
    return code != SQLITE_OK ? code : ended;
}

enum kiln_status schema_prepare(struct sqlite_store *store, char *why, size_t why_size) {
    int64_t version = pragma_read(store, "PRAGMA user_version");
    int64_t application = pragma_read(store, "PRAGMA application_id");
    int64_t tables = pragma_read(store, "SELECT count(*) FROM sqlite_schema");
    bool fresh = version == 0 && application == 0 && tables == 0;
    if (version < 0 || application < 0 || tables < 0) {
        snprintf(why, why_size, "store.db: %s", sqlite3_errmsg(store->db));
        return KILN_STORE;
    }
    if (!fresh && (application != APPLICATION || version == 0)) {
        snprintf(why, why_size, "store.db is a database of another program");
        return KILN_STORE;
    }
    if (version > VERSION) {
        snprintf(why, why_size,
                 "store.db has version %lld and this program knows %lld: start the newer one",
                 (long long)version, (long long)VERSION);
        return KILN_STORE;
    }
    if (store->options.inspect && version < VERSION) {
        snprintf(why, why_size,
                 "store.db has version %lld; the daemon brings it to %lld when it starts",
                 (long long)version, (long long)VERSION);
        return KILN_STORE;
    }
    int code = SQLITE_OK;
    if (!fresh && version < VERSION && store->files != NULL) {
        code = copy_keep(store, version);
    }
    if (code == SQLITE_OK && version < VERSION) {
        code = steps_run(store, version);
    }
    if (code != SQLITE_OK) {
        snprintf(why, why_size, "store.db: %s", sqlite3_errmsg(store->db));
    }
    return code == SQLITE_OK ? KILN_OK : KILN_STORE;
}
