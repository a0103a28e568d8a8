/*
 * sqlite_group.c: a group of changes: its transaction, the files that came and went with it, and
 * the log that it leaves.
 *
 * Thread: the engine's.
 */
#include "compute/store/sqlite.h"

#include "compute/core/log.h"

#define CHECKPOINT_AT ((int64_t)16 << 20) /* bytes of the log */

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

void sqlite_abandon(struct store *base) {
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
