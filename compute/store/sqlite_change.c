/*
 * sqlite_change.c: moving jobs from state to state. Every update names the state and the attempt
 * that it expects, and every way to the end goes through job_end.
 *
 * Thread: the engine's.
 */
#include "compute/store/sqlite.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- shared ---- */

void account_add(struct sqlite_store *store, const char *owner, int64_t unfinished, int64_t held,
                 int64_t reserved, int *code) {
    store->totals.unfinished += unfinished;
    store->totals.reserved += reserved;
    *code = sql_run(store, S_ACCOUNT_ADD, "tiii", owner, unfinished, held, reserved);
}

int event_add(struct sqlite_store *store, const struct job_id *id, const char *owner, int64_t kind,
              int64_t attempt, int64_t *event) {
    int code = sql_run(store, S_EVENT_ADD, "ktiii", id, owner, store_now(store), kind, attempt);
    *event = sqlite3_last_insert_rowid(store->db);
    return code;
}

static void text_copy(char *out, size_t size, sqlite3_stmt *row, int column) {
    const char *text = (const char *)sqlite3_column_text(row, column);
    snprintf(out, size, "%s", text != NULL ? text : "");
}

enum kiln_status brief_read(struct sqlite_store *store, const struct job_id *id,
                            struct brief *brief) {
    int code = sql_step(store, S_JOB_BRIEF, "k", id);
    memset(brief, 0, sizeof *brief);
    brief->id = *id;
    if (code == SQLITE_ROW) {
        sqlite3_stmt *row = sql_row(store, S_JOB_BRIEF);
        int64_t *const numbers[] = {
            &brief->state, &brief->revision, &brief->attempt,  &brief->losses,      &brief->cancel,
            &brief->boot,  &brief->retain,   &brief->reserved, &brief->input_bytes, &brief->bytes};
        text_copy(brief->owner, sizeof brief->owner, row, 0);
        text_copy(brief->hook, sizeof brief->hook, row, 1);
        for (int i = 0; i < 10; i++) {
            *numbers[i] = sqlite3_column_int64(row, 2 + i);
        }
        column_bytes(row, 12, brief->input, STORE_HASH);
        column_bytes(row, 13, brief->result, STORE_HASH);
        brief->created = sqlite3_column_int64(row, 14);
    }
    sql_end(store, S_JOB_BRIEF);
    if (code == SQLITE_ROW) {
        return KILN_OK;
    }
    if (code != SQLITE_DONE) {
        return sql_status(store, code);
    }
    bool tomb = sql_run(store, S_TOMB_GET, "k", id) == SQLITE_ROW;
    return tomb ? KILN_GONE : KILN_NOT_FOUND;
}

/* ---- the end of a job ---- */

enum kiln_status job_end(struct sqlite_store *store, const struct brief *brief,
                         const struct store_change *change, int64_t state,
                         struct store_changed *changed) {
    static const struct store_change none = {.outcome = ""};
    uint8_t result[STORE_HASH] = {0};
    int64_t bytes = 0;
    int code;
    enum kiln_status status = KILN_OK;
    change = change != NULL ? change : &none;
    if (state == STORE_SUCCEEDED) {
        bytes = (int64_t)change->result.size;
        status = blob_put(store, &change->result, result);
    }
    if (status == KILN_OK) {
        status = blob_drop(store, brief->input);
    }
    if (status != KILN_OK) {
        return status;
    }
    code =
        sql_run(store, S_JOB_END, "kiidhitii", &brief->id, state, store_now(store), change->seconds,
                (const uint8_t *)result, bytes, change->outcome, brief->state, brief->attempt);
    if (code == SQLITE_DONE && sqlite3_changes(store->db) != 1) {
        return KILN_PRECONDITION;
    }
    if (code == SQLITE_DONE) {
        account_add(store, brief->owner, -1, bytes - brief->input_bytes, -brief->reserved, &code);
    }
    if (code == SQLITE_DONE) {
        code = event_add(store, &brief->id, brief->owner, state, brief->attempt, &changed->event);
    }
    if (code == SQLITE_DONE && brief->hook[0] != '\0') {
        code = sql_run(store, S_OUTBOX_ADD, "ikti", changed->event, &brief->id, brief->hook,
                       store_now(store));
    }
    changed->state = state;
    changed->revision++;
    changed->cancel = 0;
    memcpy(changed->result, result, STORE_HASH);
    return sql_status(store, code);
}

enum kiln_status job_forget(struct sqlite_store *store, const struct brief *brief) {
    int code;
    enum kiln_status status = blob_drop(store, brief->result);
    if (status != KILN_OK) {
        return status;
    }
    account_add(store, brief->owner, 0, -brief->bytes, 0, &code);
    if (code == SQLITE_DONE) {
        code = sql_run(store, S_JOB_FORGET, "k", &brief->id);
    }
    return sql_status(store, code);
}

enum kiln_status job_retry(struct sqlite_store *store, const struct brief *brief, int64_t losses,
                           struct store_changed *changed) {
    if (brief->cancel != 0) {
        return job_end(store, brief, NULL, STORE_CANCELLED, changed);
    }
    int code = sql_run(store, S_JOB_RETRY, "kii", &brief->id, brief->attempt, losses);
    if (code == SQLITE_DONE) {
        code = event_add(store, &brief->id, brief->owner, STORE_EVENT_RETRYING, brief->attempt + 1,
                         &changed->event);
    }
    changed->state = STORE_QUEUED;
    changed->attempt++;
    changed->revision++;
    return sql_status(store, code);
}

/* ---- the verbs ---- */

static enum kiln_status verb_start(struct sqlite_store *store, const struct store_change *change,
                                   const struct brief *brief, struct store_changed *changed) {
    changed->repeated = brief->state == STORE_RUNNING && brief->attempt == change->attempt &&
                        brief->boot == store->options.boot;
    if (changed->repeated) {
        return KILN_OK;
    }
    if (brief->state != STORE_QUEUED || brief->attempt != change->attempt) {
        return KILN_PRECONDITION;
    }
    int code = sql_run(store, S_JOB_START, "kiiti", &change->id, store_now(store),
                       store->options.boot, change->node, change->attempt);
    if (code == SQLITE_DONE) {
        code = event_add(store, &brief->id, brief->owner, STORE_RUNNING, brief->attempt,
                         &changed->event);
    }
    changed->state = STORE_RUNNING;
    changed->revision++;
    return sql_status(store, code);
}

static enum kiln_status verb_finish(struct sqlite_store *store, const struct store_change *change,
                                    const struct brief *brief, struct store_changed *changed) {
    if (change->state < STORE_SUCCEEDED || change->state >= STORE_STATES ||
        !isfinite(change->seconds) ||
        strnlen(change->outcome, STORE_OUTCOME_MAX + 1) > STORE_OUTCOME_MAX) {
        return KILN_INVALID;
    }
    changed->repeated = brief->state == change->state && brief->attempt == change->attempt;
    if (changed->repeated) {
        return KILN_OK;
    }
    bool may = brief->state == STORE_RUNNING ||
               (brief->state == STORE_QUEUED && change->state != STORE_SUCCEEDED);
    if (!may || brief->attempt != change->attempt) {
        return KILN_PRECONDITION;
    }
    return job_end(store, brief, change, change->state, changed);
}

static enum kiln_status verb_retry(struct sqlite_store *store, const struct store_change *change,
                                   const struct brief *brief, struct store_changed *changed) {
    changed->repeated = (brief->state == STORE_QUEUED && brief->attempt == change->attempt + 1) ||
                        (brief->state == STORE_CANCELLED && brief->attempt == change->attempt);
    if (changed->repeated) {
        return KILN_OK;
    }
    if (brief->state != STORE_RUNNING || brief->attempt != change->attempt) {
        return KILN_PRECONDITION;
    }
    return job_retry(store, brief, change->losses, changed);
}

static enum kiln_status verb_cancel(struct sqlite_store *store, const struct store_change *change,
                                    const struct brief *brief, struct store_changed *changed) {
    (void)change;
    changed->repeated = brief->state == STORE_CANCELLED || brief->cancel != 0;
    if (changed->repeated) {
        return KILN_OK;
    }
    if (brief->state == STORE_QUEUED) {
        return job_end(store, brief, NULL, STORE_CANCELLED, changed);
    }
    if (brief->state != STORE_RUNNING) {
        return KILN_PRECONDITION;
    }
    int code = sql_run(store, S_JOB_CANCEL, "k", &brief->id);
    if (code == SQLITE_DONE) {
        code = event_add(store, &brief->id, brief->owner, STORE_EVENT_CANCELLING, brief->attempt,
                         &changed->event);
    }
    changed->cancel = 1;
    changed->revision++;
    return sql_status(store, code);
}

static enum kiln_status verb_forget(struct sqlite_store *store, const struct store_change *change,
                                    const struct brief *brief, struct store_changed *changed) {
    (void)change;
    if (brief->state < STORE_SUCCEEDED) {
        return KILN_PRECONDITION;
    }
    changed->repeated = hash_empty(brief->result);
    if (changed->repeated) {
        return KILN_OK;
    }
    memset(changed->result, 0, STORE_HASH);
    changed->revision++;
    return job_forget(store, brief);
}

static enum kiln_status verb_fetched(struct sqlite_store *store, const struct store_change *change,
                                     const struct brief *brief, struct store_changed *changed) {
    (void)change;
    if (brief->state != STORE_SUCCEEDED) {
        return KILN_PRECONDITION;
    }
    int code = sql_run(store, S_JOB_FETCHED, "ki", &brief->id, store_now(store));
    changed->repeated = sqlite3_changes(store->db) == 0;
    return sql_status(store, code);
}

enum kiln_status sqlite_change(struct store *base, const struct store_change *change,
                               struct store_changed *changed) {
    static enum kiln_status (*const verbs[])(struct sqlite_store *, const struct store_change *,
                                             const struct brief *, struct store_changed *) = {
        [STORE_START] = verb_start,   [STORE_FINISH] = verb_finish, [STORE_RETRY] = verb_retry,
        [STORE_CANCEL] = verb_cancel, [STORE_FORGET] = verb_forget, [STORE_FETCHED] = verb_fetched,
    };
    struct sqlite_store *store = (struct sqlite_store *)base;
    struct brief brief;
    memset(changed, 0, sizeof *changed);
    if ((unsigned)change->verb >= sizeof verbs / sizeof *verbs || change->losses < 0) {
        return KILN_INVALID;
    }
    enum kiln_status status = point_set(store);
    if (status != KILN_OK) {
        return status;
    }
    status = brief_read(store, &change->id, &brief);
    if (status == KILN_OK) {
        changed->state = brief.state;
        changed->revision = brief.revision;
        changed->attempt = brief.attempt;
        changed->cancel = brief.cancel;
        memcpy(changed->result, brief.result, STORE_HASH);
        status = verbs[change->verb](store, change, &brief, changed);
    }
    return point_end(store, status);
}

/* ---- what is no job ---- */

enum kiln_status sqlite_calibrate(struct store *base, const struct store_calibration *row) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    if (strlen(row->type) > STORE_NAME_MAX || strlen(row->variant) > STORE_NAME_MAX ||
        strlen(row->device) > STORE_NAME_MAX || !isfinite(row->a) || !isfinite(row->b) ||
        !isfinite(row->n)) {
        return KILN_INVALID;
    }
    return sql_status(store, sql_run(store, S_RATE_PUT, "tttddd", row->type, row->variant,
                                     row->device, row->a, row->b, row->n));
}

enum kiln_status sqlite_delivered(struct store *base, const struct store_delivery *delivery) {
    struct sqlite_store *store = (struct sqlite_store *)base;
    enum kiln_status status =
        sql_status(store, sql_run(store, S_OUTBOX_SET, "iiii", delivery->seq, delivery->due,
                                  delivery->tries, delivery->status));
    return status == KILN_OK && sqlite3_changes(store->db) == 0 ? KILN_NOT_FOUND : status;
}
