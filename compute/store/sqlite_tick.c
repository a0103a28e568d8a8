/*
 * sqlite_tick.c: what time does to jobs: waiting ones expire, results and then records go, and
 * after them what is remembered of them; a full disk is looked at again; files of nobody are swept;
 * the log of changes is written back. A piece a call.
 *
 * Thread: the engine's.
 */
#include "compute/store/sqlite.h"

#include "compute/core/log.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PIECE      64
#define DAY_MS     ((int64_t)86400000)
#define TOMB_MS    (30 * DAY_MS)
#define IDLE_PAGES 256 /* of the log, from which on it is written back when nothing happens */

static enum kiln_status record_drop(struct sqlite_store *store, const struct brief *brief) {
    static const enum sqlite_statement drops[] = {S_KEY_DROP, S_EVENT_DROP, S_OUTBOX_DROP,
                                                  S_JOB_DROP};
    int code = sql_run(store, S_TOMB_PUT, "ktii", &brief->id, brief->owner, brief->state,
                       store_now(store) + TOMB_MS);
    for (size_t i = 0; i < sizeof drops / sizeof *drops && code == SQLITE_DONE; i++) {
        code = sql_run(store, drops[i], "k", &brief->id);
    }
    return sql_status(store, code);
}

static enum kiln_status job_expire(struct sqlite_store *store, const struct brief *brief) {
    struct store_changed changed = {.revision = brief->revision};
    return brief->state == STORE_QUEUED ? job_end(store, brief, NULL, STORE_EXPIRED, &changed)
                                        : KILN_OK;
}

static enum kiln_status job_again(struct sqlite_store *store, const struct brief *brief) {
    struct store_changed changed = {.revision = brief->revision};
    return job_retry(store, brief, 0, &changed);
}

static size_t ids_read(struct sqlite_store *store, enum sqlite_statement which, int64_t bound,
                       struct job_id ids[PIECE]) {
    size_t count = 0;
    int code = sql_step(store, which, "ii", bound, (int64_t)PIECE);
    for (; code == SQLITE_ROW && count < PIECE; code = sql_next(store, which)) {
        column_bytes(sql_row(store, which), 0, &ids[count++], sizeof ids[0]);
    }
    sql_end(store, which);
    return count;
}

/* Does `each` to a piece of the jobs that a query names, in a transaction; `more` where there are
   others. */
static enum kiln_status
piece_do(struct sqlite_store *store, enum sqlite_statement which, int64_t bound,
         enum kiln_status (*each)(struct sqlite_store *, const struct brief *), bool *more) {
    struct job_id ids[PIECE];
    struct brief brief;
    size_t count = ids_read(store, which, bound, ids);
    if (count == 0) {
        return KILN_OK;
    }
    enum kiln_status status = sqlite_begin(&store->store, false);
    for (size_t i = 0; i < count && status == KILN_OK; i++) {
        status = brief_read(store, &ids[i], &brief);
        status = status == KILN_OK ? each(store, &brief) : status;
    }
    store->lost = store->lost || (status != KILN_OK && status != KILN_STORE_FULL);
    enum kiln_status committed = sqlite_commit(&store->store);
    *more = *more || (count == PIECE && committed == KILN_OK);
    return committed;
}

enum kiln_status jobs_recover(struct sqlite_store *store) {
    enum kiln_status status = KILN_OK;
    for (bool more = true; more && status == KILN_OK;) {
        more = false;
        status = piece_do(store, S_RUNNING, store->options.boot, job_again, &more);
    }
    if (status == KILN_STORE_FULL) { /* what is readable shall be read */
        sqlite_relieve(&store->store);
        status = KILN_OK;
    }
    return status;
}

static enum kiln_status tombs_drop(struct sqlite_store *store, int64_t now) {
    int code = sql_run(store, S_TOMB_DUE, "i", now);
    if (code != SQLITE_ROW) {
        return sql_status(store, code);
    }
    enum kiln_status status = sqlite_begin(&store->store, false);
    if (status == KILN_OK) {
        sql_status(store, sql_run(store, S_TOMB_TIDY, "i", now));
        sql_status(store, sql_run(store, S_ACCOUNT_TIDY, ""));
        status = sqlite_commit(&store->store);
    }
    return status;
}

/* ---- a full disk ---- */

void sqlite_relieve(struct store *base) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    if (!store->full) {
        log_warning("store: the disk is full: nothing new is accepted until there is room");
    }
    store->full = true;
    if (store->files == NULL || store->lost) {
        return;
    }
    files_ballast_give(store->files);
    sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_PASSIVE, NULL, NULL);
    if (sqlite_begin(base, false) == KILN_OK) {
        room_evict(store, FILES_BALLAST);
        sqlite_commit(base);
    }
}

static void room_look(struct sqlite_store *store) {
    if (!store->full || store->files == NULL ||
        files_free(store->files) < store->options.reserve + FILES_BALLAST ||
        !files_ballast_take(store->files)) {
        return;
    }
    store->full = false;
    log_info("store: there is room again: jobs are accepted");
}

/* ---- a piece ---- */

enum kiln_status sqlite_tick(struct store *base, bool *more) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    int64_t now = store_now(store);
    int64_t record = store->options.record > DAY_MS ? store->options.record : DAY_MS;
    const struct {
        enum sqlite_statement which;
        int64_t bound;
        enum kiln_status (*each)(struct sqlite_store *, const struct brief *);
    } pieces[] = {{S_DUE_WAIT, now, job_expire},
                  {S_DUE_RESULT, now, job_forget},
                  {S_DUE_RECORD, now - record, record_drop}};
    enum kiln_status status = store->lost ? KILN_STORE : KILN_OK;
    *more = false;
    room_look(store);
    for (size_t i = 0; i < 3 && status == KILN_OK; i++) {
        status = piece_do(store, pieces[i].which, pieces[i].bound, pieces[i].each, more);
    }
    if (status == KILN_OK) {
        status = tombs_drop(store, now);
    }
    if (status == KILN_STORE_FULL) {
        sqlite_relieve(base);
        status = store->lost ? KILN_STORE : KILN_OK;
    }
    if (store->files != NULL && !store->swept) {
        store->swept = files_sweep(store->files, blob_known, store);
        *more = *more || !store->swept;
    }
    if (store->commits == store->ticked && store->wal_pages >= IDLE_PAGES &&
        sqlite3_wal_checkpoint_v2(store->db, NULL, SQLITE_CHECKPOINT_TRUNCATE, NULL, NULL) ==
            SQLITE_OK) {
        store->wal_pages = 0;
    }
    store->ticked = store->commits;
    return status;
}
