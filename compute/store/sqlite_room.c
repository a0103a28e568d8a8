/*
 * sqlite_room.c: room for results to come, and the results that go for it: those past their time,
 * then those that were fetched, then the oldest of the owner who has most.
 *
 * Thread: the engine's.
 */
#include "compute/store/sqlite.h"

#include <string.h>

#define EVICT_PIECE 64
#define EVICT_MOST  1024 /* results that go for one acceptance */

/* Lets go of the results that a query names, one bounded piece of them at a time. */
static int64_t evict_by(struct sqlite_store *store, enum sqlite_statement which, const char *owner,
                        int64_t now, int64_t wanted) {
    struct job_id ids[EVICT_PIECE];
    struct brief brief;
    int64_t got = 0;
    for (int left = EVICT_MOST; left > 0 && got < wanted; left -= EVICT_PIECE) {
        int count = 0, code = owner != NULL
                                  ? sql_step(store, which, "ti", owner, (int64_t)EVICT_PIECE)
                                  : sql_step(store, which, "ii", now, (int64_t)EVICT_PIECE);
        for (; code == SQLITE_ROW && count < EVICT_PIECE; code = sql_next(store, which)) {
            column_bytes(sql_row(store, which), 0, &ids[count++], sizeof ids[0]);
        }
        sql_end(store, which);
        for (int i = 0; i < count && got < wanted; i++) {
            int64_t before = store->totals.held;
            if (brief_read(store, &ids[i], &brief) != KILN_OK ||
                job_forget(store, &brief) != KILN_OK) {
                return got;
            }
            got += before - store->totals.held;
        }
        if (count < EVICT_PIECE) {
            break;
        }
    }
    return got;
}

int64_t room_evict(struct sqlite_store *store, int64_t wanted) {
    char owner[STORE_NAME_MAX + 1] = "";
    int64_t now = store_now(store);
    int64_t got = evict_by(store, S_DUE_RESULT, NULL, now, wanted);
    if (got < wanted) {
        got += evict_by(store, S_READ_RESULT, NULL, now, wanted - got);
    }
    if (got < wanted) {
        bool found = sql_step(store, S_ACCOUNT_MOST, "") == SQLITE_ROW;
        if (found) {
            strncpy(owner, (const char *)sqlite3_column_text(sql_row(store, S_ACCOUNT_MOST), 0),
                    STORE_NAME_MAX);
        }
        sql_end(store, S_ACCOUNT_MOST);
        got += found ? evict_by(store, S_OLD_RESULT, owner, now, wanted - got) : 0;
    }
    return got;
}

enum kiln_status room_make(struct sqlite_store *store, int64_t bytes) {
    const struct store_options *options = &store->options;
    int64_t over = 0, taken = store->totals.held + store->totals.reserved + bytes;
    if (store->full) {
        return KILN_STORE_FULL;
    }
    if (options->bytes > 0 && taken > options->bytes) {
        over = taken - options->bytes;
    }
    if (store->files != NULL) {
        int64_t lacking = options->reserve + store->totals.reserved + bytes - store->free_bytes;
        over = lacking > over ? lacking : over;
    }
    if (over == 0) {
        return KILN_OK;
    }
    if (over > store->totals.held) {
        return KILN_STORE_FULL; /* not even if every result went */
    }
    int64_t got = room_evict(store, over);
    store->free_bytes += got;
    return got >= over ? KILN_OK : KILN_STORE_FULL;
}
