/*
 * sqlite.h: what the files of the SQLite engine share.
 *
 *   sqlite.c          opening, transactions, statements, a full disk
 *   sqlite_schema.c   tables, and the way from one version of them to the next
 *   sqlite_accept.c   accept
 *   sqlite_change.c   change, from state to state
 *   sqlite_read.c     get, list, events and the other reads
 *   sqlite_blob.c     inputs and results: rows, files, room for them
 *   sqlite_tick.c     retention and what else time brings
 *
 * One connection, which keeps others out (locking_mode EXCLUSIVE), so its log needs no shared
 * memory. Without a directory the database is ":memory:" and all blobs lie in it.
 *
 * Threads: one.
 */
#ifndef KILN_COMPUTE_STORE_SQLITE_H
#define KILN_COMPUTE_STORE_SQLITE_H

#include "compute/store/files.h"
#include "compute/store/record.h"
#include "compute/store/store.h"

#include <sqlite3.h>

/* X(name, SQL): prepared when first used. */
#define SQLITE_STATEMENTS(X)                                                                       \
    X(BEGIN, "BEGIN IMMEDIATE")                                                                    \
    X(COMMIT, "COMMIT")                                                                            \
    X(ROLLBACK, "ROLLBACK")                                                                        \
    X(POINT, "SAVEPOINT one")                                                                      \
    X(RELEASE, "RELEASE one")                                                                      \
    X(UNDO, "ROLLBACK TO one")                                                                     \
    X(KEY_GET, "SELECT fingerprint, coalesce(batch, job), created FROM idempotency "               \
               "WHERE owner = ?1 AND key = ?2")                                                    \
    X(KEY_PUT, "INSERT INTO idempotency(owner, key, fingerprint, job, batch, created) "            \
               "VALUES(?1, ?2, ?3, ?4, ?5, ?6)")                                                   \
    X(KEY_DROP, "DELETE FROM idempotency WHERE job = ?1")                                          \
    X(ACCOUNT_GET, "SELECT unfinished, held + reserved FROM account WHERE owner = ?1")             \
    X(ACCOUNT_ADD, "INSERT INTO account(owner, unfinished, held, reserved) VALUES(?1, ?2, ?3, ?4)" \
                   " ON CONFLICT(owner) DO UPDATE SET unfinished = unfinished + ?2, "              \
                   "held = held + ?3, reserved = reserved + ?4")                                   \
    X(ACCOUNT_MOST, "SELECT owner FROM account ORDER BY held DESC LIMIT 1")                        \
    X(ACCOUNT_TIDY, "DELETE FROM account WHERE unfinished = 0 AND held = 0 AND reserved = 0")      \
    X(ACCOUNT_SUM, "SELECT total(unfinished), total(reserved) FROM account")                       \
    X(JOB_BRIEF, "SELECT owner, hook, state, revision, attempt, losses, cancel, boot, retain, "    \
                 "reserved, input_bytes, bytes, input, result, created FROM job WHERE id = ?1")    \
    X(JOB_GET, "") /* made of record_fields */                                                     \
    X(JOB_START, "UPDATE job SET state = 1, started = ?2, boot = ?3, node = ?4, "                  \
                 "revision = revision + 1 WHERE id = ?1 AND state = 0 AND attempt = ?5")           \
    X(JOB_RETRY, "UPDATE job SET state = 0, attempt = attempt + 1, losses = losses + ?3, "         \
                 "node = '', revision = revision + 1 "                                             \
                 "WHERE id = ?1 AND state = 1 AND attempt = ?2")                                   \
    X(JOB_CANCEL, "UPDATE job SET cancel = 1, revision = revision + 1 "                            \
                  "WHERE id = ?1 AND state = 1 AND cancel = 0")                                    \
    X(JOB_END, "UPDATE job SET state = ?2, finished = ?3, discard = ?3 + retain, seconds = ?4, "   \
               "result = ?5, bytes = ?6, outcome = ?7, reserved = 0, input = NULL, "               \
               "input_bytes = 0, cancel = 0, revision = revision + 1 "                             \
               "WHERE id = ?1 AND state = ?8 AND attempt = ?9")                                    \
    X(JOB_FORGET, "UPDATE job SET result = NULL, revision = revision + 1 WHERE id = ?1")           \
    X(JOB_FETCHED, "UPDATE job SET fetched = ?2 WHERE id = ?1 AND fetched = 0")                    \
    X(JOB_DROP, "DELETE FROM job WHERE id = ?1")                                                   \
    X(EVENT_ADD, "INSERT INTO event(job, owner, at, kind, attempt) VALUES(?1, ?2, ?3, ?4, ?5)")    \
    X(EVENT_DROP, "DELETE FROM event WHERE job = ?1")                                              \
    X(EVENT_LAST, "SELECT seq, at FROM event ORDER BY seq DESC LIMIT 1")                           \
    X(EVENT_JOB, "SELECT seq, job, owner, at, kind, attempt FROM event "                           \
                 "WHERE job = ?2 AND seq > ?1 ORDER BY seq LIMIT ?3")                              \
    X(EVENT_OWNER, "SELECT seq, job, owner, at, kind, attempt FROM event "                         \
                   "WHERE owner = ?2 AND seq > ?1 ORDER BY seq LIMIT ?3")                          \
    X(EVENT_ALL, "SELECT seq, job, owner, at, kind, attempt FROM event "                           \
                 "WHERE seq > ?1 AND ?2 IS NULL ORDER BY seq LIMIT ?3")                            \
    X(OUTBOX_ADD, "INSERT INTO outbox(seq, job, endpoint, due, tries, status) "                    \
                  "VALUES(?1, ?2, ?3, ?4, 0, 0)")                                                  \
    X(OUTBOX_DROP, "DELETE FROM outbox WHERE job = ?1")                                            \
    X(OUTBOX_SET, "UPDATE outbox SET due = nullif(?2, 0), tries = ?3, status = ?4 WHERE seq = ?1") \
    X(OUTBOX_DUE, "SELECT seq, job, endpoint, due, tries, status FROM outbox "                     \
                  "WHERE due <= ?1 ORDER BY due, seq LIMIT ?2")                                    \
    X(BLOB_ADD, "UPDATE blob SET refs = refs + 1 WHERE hash = ?1")                                 \
    X(BLOB_NEW, "INSERT INTO blob(hash, bytes, refs) VALUES(?1, ?2, 1)")                           \
    X(BLOB_LESS, "UPDATE blob SET refs = refs - 1 WHERE hash = ?1 RETURNING refs, bytes")          \
    X(BLOB_DROP, "DELETE FROM blob WHERE hash = ?1")                                               \
    X(BLOB_GET, "SELECT bytes FROM blob WHERE hash = ?1")                                          \
    X(BLOB_SUM, "SELECT total(bytes) FROM blob")                                                   \
    X(SMALL_NEW, "INSERT INTO small(hash, data) VALUES(?1, ?2)")                                   \
    X(SMALL_DROP, "DELETE FROM small WHERE hash = ?1")                                             \
    X(SMALL_GET, "SELECT data FROM small WHERE hash = ?1")                                         \
    X(TOMB_PUT,                                                                                    \
      "INSERT OR REPLACE INTO tombstone(id, owner, state, until) VALUES(?1, ?2, ?3, ?4)")          \
    X(TOMB_GET, "SELECT owner, state FROM tombstone WHERE id = ?1")                                \
    X(TOMB_TIDY, "DELETE FROM tombstone WHERE until <= ?1")                                        \
    X(TOMB_DUE, "SELECT 1 FROM tombstone WHERE until <= ?1 LIMIT 1")                               \
    X(DUE_WAIT, "SELECT id FROM job WHERE state = 0 AND expires > 0 AND expires <= ?1 LIMIT ?2")   \
    X(DUE_RESULT, "SELECT id FROM job WHERE result IS NOT NULL AND discard <= ?1 "                 \
                  "ORDER BY discard LIMIT ?2")                                                     \
    X(DUE_RECORD, "SELECT id FROM job WHERE state >= 2 AND finished <= ?1 AND result IS NULL "     \
                  "LIMIT ?2")                                                                      \
    X(READ_RESULT, "SELECT id FROM job WHERE result IS NOT NULL AND fetched > 0 "                  \
                   "ORDER BY fetched LIMIT ?2")                                                    \
    X(OLD_RESULT, "SELECT id FROM job WHERE result IS NOT NULL AND owner = ?1 "                    \
                  "ORDER BY finished LIMIT ?2")                                                    \
    X(RUNNING, "SELECT id FROM job WHERE state = 1 AND boot <> ?1 LIMIT ?2")                       \
    X(COUNTS, "SELECT state, count(*) FROM job GROUP BY state")                                    \
    X(RATE_PUT, "INSERT OR REPLACE INTO calibration(type, variant, device, a, b, n) "              \
                "VALUES(?1, ?2, ?3, ?4, ?5, ?6)")                                                  \
    X(RATE_ALL, "SELECT type, variant, device, a, b, n FROM calibration ORDER BY 1, 2, 3")

enum sqlite_statement {
#define X(name, sql) S_##name,
    SQLITE_STATEMENTS(X)
#undef X
        S_COUNT
};

struct totals {
    int64_t unfinished; /* jobs */
    int64_t held;       /* bytes of blobs */
    int64_t reserved;   /* bytes for results to come */
};

/* What a change needs to know of its job. */
struct brief {
    struct job_id id;
    char owner[STORE_NAME_MAX + 1], hook[STORE_HOOK_MAX + 1];
    int64_t state, revision, attempt, losses, cancel, boot, retain, reserved, input_bytes, bytes,
        created;
    uint8_t input[STORE_HASH], result[STORE_HASH];
};

#define TEXTS_MAX (STORE_PARAMS_MAX + STORE_OUTCOME_MAX + 16 * (STORE_HOOK_MAX + 1))

struct sqlite_store {
    struct store store;
    struct store_options options;
    sqlite3 *db;
    struct files *files; /* NULL: in memory */
    sqlite3_stmt *statements[S_COUNT];
    sqlite3_stmt *insert; /* a job, every column */
    struct totals totals;
    struct totals before_group, before_point;
    uint8_t (*touched)[STORE_HASH]; /* files written, or of rows dropped, in this group */
    size_t touched_count, touched_capacity;
    int64_t free_bytes; /* of the disk at the group's start, less what it has taken */
    int64_t last_ms;    /* time does not go back */
    int64_t wal_pages, page_size;
    int64_t commits; /* so far */
    int64_t ticked;  /* commits at the last tick */
    bool group;      /* between begin and commit */
    bool normal;     /* synchronous is NORMAL now */
    bool spoiled;    /* the disk was full in this group: it is to be undone */
    bool lost;       /* an error that leaves nothing to rely on */
    bool full;       /* nothing new is accepted */
    bool swept;      /* all files were looked at */
    char texts[TEXTS_MAX];
    uint8_t small[STORE_SMALL];
};

/* ---- sqlite.c ---- */

/** Binds by letters and steps once: i int64_t, d double, t text, k id, h hash (both NULL where
    empty), b pointer and size. SQLITE_ROW: read the columns, then sql_end. */
int sql_step(struct sqlite_store *store, enum sqlite_statement which, const char *types, ...);
/** Another row. */
int sql_next(struct sqlite_store *store, enum sqlite_statement which);
sqlite3_stmt *sql_row(struct sqlite_store *store, enum sqlite_statement which);
void sql_end(struct sqlite_store *store, enum sqlite_statement which);
/** Steps and ends. */
#define sql_run(store, which, ...) sql_ended(store, which, sql_step(store, which, __VA_ARGS__))
int sql_ended(struct sqlite_store *store, enum sqlite_statement which, int code);
/** Plain SQL that is run once. */
int sql_once(struct sqlite_store *store, const char *sql);
/** Of a result code; remembers what spoils the group or loses the store. */
enum kiln_status sql_status(struct sqlite_store *store, int code);
/** A change that undoes itself unless it ends with KILN_OK. */
enum kiln_status point_set(struct sqlite_store *store);
enum kiln_status point_end(struct sqlite_store *store, enum kiln_status status);
int64_t store_now(struct sqlite_store *store);

enum kiln_status sqlite_begin(struct store *store, bool lazy);
enum kiln_status sqlite_commit(struct store *store);

/* ---- sqlite_schema.c ---- */

/** Makes the tables, or brings them to this version. */
enum kiln_status schema_prepare(struct sqlite_store *store, char *why, size_t why_size);
/** "id,batch,…": the columns of a job in the order of record_fields. */
void schema_columns(char *text, size_t size, bool short_rows);

/* ---- sqlite_blob.c ---- */

files_known blob_known; /* context: the store */
/** Keeps bytes, or one more reference to them. */
enum kiln_status blob_put(struct sqlite_store *store, const struct store_bytes *bytes,
                          uint8_t hash[STORE_HASH]);
enum kiln_status blob_drop(struct sqlite_store *store, const uint8_t hash[STORE_HASH]);
enum kiln_status blob_open(struct sqlite_store *store, const uint8_t hash[STORE_HASH],
                           struct store_content *content);
/** Removes files that have no row, of those touched; after a commit or a rollback. */
void blob_settle(struct sqlite_store *store);
/** Whether there is room for so many more bytes; lets go of results where not. STORE_FULL. */
enum kiln_status room_make(struct sqlite_store *store, int64_t bytes);
/** Lets go of results worth `bytes`; returns what it got. */
int64_t room_evict(struct sqlite_store *store, int64_t bytes);

/* ---- sqlite_accept.c ---- */

enum kiln_status sqlite_accept(struct store *store, const struct store_accept *accept,
                               struct store_accepted *accepted);

/* ---- sqlite_change.c ---- */

enum kiln_status sqlite_change(struct store *store, const struct store_change *change,
                               struct store_changed *changed);
enum kiln_status sqlite_calibrate(struct store *store, const struct store_calibration *row);
enum kiln_status sqlite_delivered(struct store *store, const struct store_delivery *delivery);
/** An event of a job, now; `event` receives its number. A result code. */
int event_add(struct sqlite_store *store, const struct job_id *id, const char *owner, int64_t kind,
              int64_t attempt, int64_t *event);
enum kiln_status brief_read(struct sqlite_store *store, const struct job_id *id,
                            struct brief *brief);
/** Brings a job from the brief's state to a terminal one. */
enum kiln_status job_end(struct sqlite_store *store, const struct brief *brief,
                         const struct store_change *change, int64_t state,
                         struct store_changed *changed);
enum kiln_status job_forget(struct sqlite_store *store, const struct brief *brief);
/** After a start under another boot. */
enum kiln_status job_retry(struct sqlite_store *store, const struct brief *brief, int64_t losses,
                           struct store_changed *changed);
void account_add(struct sqlite_store *store, const char *owner, int64_t unfinished, int64_t held,
                 int64_t reserved, int *code);

/* ---- sqlite_read.c ---- */

enum kiln_status sqlite_get(struct store *store, const struct job_id *id, struct store_job *job);
enum kiln_status sqlite_content(struct store *store, const struct job_id *id, bool input,
                                struct store_content *content);
enum kiln_status sqlite_list(struct store *store, const struct store_filter *filter,
                             store_job_row *row, void *context, struct store_page *page);
enum kiln_status sqlite_events(struct store *store, const struct store_events_filter *filter,
                               store_event_row *row, void *context);
enum kiln_status sqlite_deliveries(struct store *store, int64_t now, int64_t limit,
                                   store_delivery_row *row, void *context);
enum kiln_status sqlite_calibrations(struct store *store, store_calibration_row *row,
                                     void *context);
enum kiln_status sqlite_stats(struct store *store, struct store_stats *stats);
void column_bytes(sqlite3_stmt *row, int column, void *out, size_t size);

/* ---- sqlite_tick.c ---- */

enum kiln_status sqlite_tick(struct store *store, bool *more);
void sqlite_relieve(struct store *store);
/** What ran under another boot is queued again. */
enum kiln_status jobs_recover(struct sqlite_store *store);

#endif
