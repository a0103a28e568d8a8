/*
 * sqlite_blob.c: inputs and results. Small ones are rows, so that they come with the commit; large
 * ones are files (in memory all are rows). A blob counts its references.
 *
 * Files and rows: a file is written and synced before the commit that names it, and removed only
 * after the one that forgets it. Both are remembered as touched; when the group is over, whatever
 * of them has no row goes. What a crash leaves behind is found by the sweep.
 *
 * Thread: the engine's.
 */
#include "compute/store/sqlite.h"

#include "compute/core/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define EVICT_PIECE 64
#define EVICT_MOST  1024 /* results that go for one acceptance */

bool blob_known(void *context, const uint8_t hash[STORE_HASH]) {
    struct sqlite_store *store = context;
    int code = sql_run(store, S_BLOB_GET, "h", hash);
    return code != SQLITE_DONE; /* also where the question failed */
}

static enum kiln_status touch(struct sqlite_store *store, const uint8_t hash[STORE_HASH]) {
    if (store->touched_count == store->touched_capacity) {
        size_t capacity = store->touched_capacity == 0 ? 64 : 2 * store->touched_capacity;
        void *more = realloc(store->touched, capacity * STORE_HASH);
        if (more == NULL) {
            return KILN_NO_MEMORY;
        }
        store->touched = more;
        store->touched_capacity = capacity;
    }
    memcpy(store->touched[store->touched_count++], hash, STORE_HASH);
    return KILN_OK;
}

void blob_settle(struct sqlite_store *store) {
    for (; store->touched_count > 0; store->touched_count--) {
        const uint8_t *hash = store->touched[store->touched_count - 1];
        if (!blob_known(store, hash)) {
            files_remove(store->files, hash);
        }
    }
}

/* ---- keeping ---- */

/* A row with the bytes. They may be shared memory: what is hashed is what is kept. */
static enum kiln_status small_put(struct sqlite_store *store, const struct store_bytes *bytes,
                                  uint8_t hash[STORE_HASH], bool *known) {
    uint8_t *copy = bytes->size <= STORE_SMALL ? store->small : malloc(bytes->size);
    enum kiln_status status = KILN_OK;
    if (copy == NULL) {
        return KILN_NO_MEMORY;
    }
    if (bytes->size > 0) {
        memcpy(copy, bytes->data, bytes->size);
    }
    files_hash(copy, bytes->size, hash);
    *known = blob_known(store, hash);
    if (!*known) {
        status = sql_status(
            store, sql_run(store, S_SMALL_NEW, "hb", hash, (const void *)copy, bytes->size));
    }
    if (copy != store->small) {
        free(copy);
    }
    return status;
}

static enum kiln_status file_put(struct sqlite_store *store, const struct store_bytes *bytes,
                                 uint8_t hash[STORE_HASH], bool *known) {
    enum kiln_status status = files_write(store->files, bytes, blob_known, store, hash);
    if (status != KILN_OK) {
        store->spoiled = store->spoiled || status == KILN_STORE_FULL;
        store->lost = store->lost || status == KILN_STORE;
        return status;
    }
    *known = blob_known(store, hash);
    return *known ? KILN_OK : touch(store, hash);
}

enum kiln_status blob_put(struct sqlite_store *store, const struct store_bytes *bytes,
                          uint8_t hash[STORE_HASH]) {
    bool known = false, small = store->files == NULL || bytes->size <= STORE_SMALL;
    enum kiln_status status =
        small ? small_put(store, bytes, hash, &known) : file_put(store, bytes, hash, &known);
    if (status == KILN_OK && known) {
        return sql_status(store, sql_run(store, S_BLOB_ADD, "h", hash));
    }
    if (status == KILN_OK) {
        status = sql_status(store, sql_run(store, S_BLOB_NEW, "hi", hash, (int64_t)bytes->size));
        store->totals.held += (int64_t)bytes->size;
        store->free_bytes -= (int64_t)bytes->size;
    }
    return status;
}

enum kiln_status blob_drop(struct sqlite_store *store, const uint8_t hash[STORE_HASH]) {
    int64_t refs = 1, bytes = 0;
    if (hash_empty(hash)) {
        return KILN_OK;
    }
    int code = sql_step(store, S_BLOB_LESS, "h", hash);
    if (code == SQLITE_ROW) {
        refs = sqlite3_column_int64(sql_row(store, S_BLOB_LESS), 0);
        bytes = sqlite3_column_int64(sql_row(store, S_BLOB_LESS), 1);
    }
    sql_end(store, S_BLOB_LESS);
    if (refs > 0) {
        return sql_status(store, code);
    }
    store->totals.held -= bytes;
    code = sql_run(store, S_BLOB_DROP, "h", hash);
    if (code == SQLITE_DONE) {
        code = sql_run(store, S_SMALL_DROP, "h", hash);
    }
    if (code == SQLITE_DONE && store->files != NULL && sqlite3_changes(store->db) == 0) {
        enum kiln_status status = touch(store, hash);
        return status;
    }
    return sql_status(store, code);
}

/* ---- reading ---- */

static int memory_file(const void *data, size_t size) {
    int fd = memfd_create("result", MFD_CLOEXEC | MFD_ALLOW_SEALING);
    const uint8_t *from = data;
    size_t left = size;
    while (fd >= 0 && left > 0) {
        ssize_t written = write(fd, from, left);
        if (written <= 0 && errno != EINTR) {
            close(fd);
            return -1;
        }
        from += written > 0 ? written : 0;
        left -= written > 0 ? (size_t)written : 0;
    }
    if (fd >= 0) {
        fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_WRITE | F_SEAL_SEAL);
        lseek(fd, 0, SEEK_SET);
    }
    return fd;
}

enum kiln_status blob_open(struct sqlite_store *store, const uint8_t hash[STORE_HASH],
                           struct store_content *content) {
    enum kiln_status status = KILN_OK;
    int code = sql_step(store, S_SMALL_GET, "h", hash);
    *content = (struct store_content){.fd = -1, .data = store->small};
    if (code == SQLITE_ROW) {
        const void *data = sqlite3_column_blob(sql_row(store, S_SMALL_GET), 0);
        content->size = (uint64_t)sqlite3_column_bytes(sql_row(store, S_SMALL_GET), 0);
        if (content->size > STORE_SMALL) {
            content->fd = memory_file(data, (size_t)content->size);
            status = content->fd >= 0 ? KILN_OK : KILN_NO_MEMORY;
        } else if (content->size > 0) {
            memcpy(store->small, data, (size_t)content->size);
        }
    }
    sql_end(store, S_SMALL_GET);
    if (code == SQLITE_ROW) {
        return status;
    }
    if (code != SQLITE_DONE) {
        return sql_status(store, code);
    }
    content->fd = store->files != NULL ? files_read(store->files, hash, &content->size) : -1;
    if (content->fd < 0) {
        log_warning("store: a file that there should be is missing (kilnd store check names it)");
    }
    return content->fd >= 0 ? KILN_OK : KILN_GONE;
}

/* ---- room ---- */

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
