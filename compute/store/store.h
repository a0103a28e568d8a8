/*
 * store.h: jobs that outlive their connection and their daemon: records, results, events.
 *
 * An engine keeps them behind one table of functions. Two are here: SQLite with files in a state
 * directory (durable), and the same in memory (store_open decides by the directory); a fleet can be
 * the third. Who calls speaks of jobs only; HTTP, devices and arenas are unknown here.
 *
 * Transactions: every change lies between begin and commit, any number of them. Nothing that a
 * change has answered holds before commit has returned KILN_OK; after any other status all changes
 * since begin are undone. A change that is refused undoes itself and no other. Reads are made
 * outside.
 *
 * Every change can be made twice: the second one changes nothing and answers as the first did
 * (`repeated`), so whoever lost an answer asks again. Every change names the state that it expects;
 * where the job is in another, KILN_PRECONDITION, and `changed` tells which. A terminal state never
 * changes.
 *
 * Threads: an engine and all that it hands out belong to one thread. Texts and bytes that are
 * handed over are the caller's; those that come back are valid until the next call.
 */
#ifndef KILN_COMPUTE_STORE_STORE_H
#define KILN_COMPUTE_STORE_STORE_H

#include "compute/core/job_id.h"
#include "compute/core/status.h"
#include "compute/core/trace.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Bytes of texts, without NUL. */
#define STORE_NAME_MAX    64    /* owner, type, device, label, format, key */
#define STORE_HOOK_MAX    256   /* webhook endpoint, media type, etag */
#define STORE_PARAMS_MAX  16384 /* canonical parameters */
#define STORE_OUTCOME_MAX 8192  /* what is told beside a result; the problem of a failure */
#define STORE_SMALL       32768 /* inputs and results up to this size lie in the database */
#define STORE_HASH        32    /* SHA-256 */
#define STORE_NUMBER_MAX  (INT64_C(1) << 53) /* of every number of a job */
#define STORE_BATCH_MAX   10000              /* jobs of one accept */
#define STORE_PAGE_MAX    1000               /* rows of one list */

enum store_state {
    STORE_QUEUED,
    STORE_RUNNING,
    STORE_SUCCEEDED, /* this and all that follow are terminal */
    STORE_FAILED,
    STORE_CANCELLED,
    STORE_EXPIRED, /* waited longer than its `expires` allows */
    STORE_STATES
};

/** The state's name ("queued"). */
const char *store_state_name(int64_t state);

/** One job. Texts are never NULL, "" is none; hashes and ids of zeros are none; times are
    milliseconds since 1970, 0 for none. record.c has a row for every member. */
struct store_job {
    struct job_id id;
    struct job_id batch; /* that it came with */
    int64_t line;        /* its place there, from 0 */
    const char *owner;   /* id of the key that brought it */
    const char *type;    /* kind of job */
    int64_t version;     /* of the kind */
    const char *params;
    const char *format; /* of the result */
    const char *media;  /* media type of the result */
    const char *device; /* wanted; "" any */
    const char *node;   /* that ran it, or runs it */
    const char *etag;
    const char *label;
    const char *hook;           /* endpoint to be told of the end */
    int64_t class;              /* priority: 0 is the most urgent */
    int64_t state;              /* enum store_state */
    int64_t revision;           /* counts changes, from 1 */
    int64_t attempt;            /* of the run that is next, or is on, from 1 */
    int64_t losses;             /* runs that ended with their worker */
    int64_t cancel;             /* 1: is to be cancelled, and runs */
    int64_t boot;               /* of the daemon that started it */
    int64_t created;            /* never earlier than any job's before it */
    int64_t started;            /* the last run */
    int64_t finished;           /* terminal since */
    int64_t expires;            /* until then it may wait */
    int64_t timeout;            /* milliseconds that one run may take, 0: the daemon's */
    int64_t retain;             /* milliseconds that the result is kept */
    int64_t discard;            /* when the result goes: finished + retain */
    int64_t fetched;            /* when the result was first read */
    int64_t reserved;           /* bytes kept free for the result until there is one */
    int64_t input_bytes;        /* of the input; 0 once it is gone */
    int64_t bytes;              /* of the result */
    double cost;                /* as planned */
    double seconds;             /* as measured */
    uint8_t input[STORE_HASH];  /* SHA-256; unfinished jobs only */
    uint8_t result[STORE_HASH]; /* SHA-256; none where state is SUCCEEDED: it is gone */
    const char *outcome;
    struct trace trace; /* of the request that brought it */
};

/** Bytes of the caller's, valid during the call. */
struct store_bytes {
    const void *data;
    size_t size;
};

/* ---- changes ---- */

/** Jobs to be kept, all or none. Of each the caller fills id, type, version, params, format, media,
    device, etag, label, hook, class, expires, timeout, retain, reserved, cost, trace, and line in a
    batch; the rest is the store's and is filled in here. */
struct store_accept {
    struct store_job *jobs;
    const struct store_bytes *inputs; /* one a job; NULL: none has one */
    size_t count;                     /* 1 to STORE_BATCH_MAX */
    const char *owner;
    struct job_id batch; /* of them all, or none */
    const char *key;     /* Idempotency-Key of this owner, or "" */
    uint8_t fingerprint[STORE_HASH];
};

struct store_accepted {
    struct job_id id; /* the first job, or the batch; of the first acceptance where `repeated` */
    int64_t created, event;
    bool repeated; /* this key, or this id, was accepted before: nothing was done */
};

enum store_verb {
    STORE_START,  /* queued → running. Durable with the next change that is */
    STORE_FINISH, /* running (queued, too, unless SUCCEEDED) → `state`. The result is durable first
                   */
    STORE_RETRY, /* running → queued, attempt + 1, losses + `losses`; → cancelled where it is to be
                  */
    STORE_CANCEL, /* queued → cancelled; running: cancel = 1 */
    STORE_FORGET, /* terminal: its result goes */
    STORE_FETCHED /* SUCCEEDED: its result was read now */
};

struct store_change {
    enum store_verb verb;
    struct job_id id;
    int64_t attempt;           /* START, FINISH, RETRY: the one that is meant */
    int64_t state;             /* FINISH: a terminal one */
    int64_t losses;            /* RETRY: 1 if its own worker died, else 0 */
    double seconds;            /* FINISH */
    struct store_bytes result; /* FINISH as SUCCEEDED */
    const char *outcome;       /* FINISH */
    const char *node;          /* START */
};

/** The job as it is now; `event` is 0 where nothing happened. */
struct store_changed {
    int64_t state, revision, attempt, cancel, event;
    uint8_t result[STORE_HASH];
    bool repeated;
};

/** What a (type, variant, device) costs: seconds = a + b · cost, from n runs. */
struct store_calibration {
    const char *type, *variant, *device;
    double a, b, n;
};

/* ---- reads ---- */

struct store_filter {
    const char *owner;   /* NULL: all */
    const char *type;    /* NULL: all */
    const char *label;   /* NULL: all */
    uint32_t states;     /* bits 1 << state; 0: all */
    struct job_id batch; /* or none */
    struct job_id after; /* the last page's `next`, or none */
    bool oldest_first;   /* else the newest */
    bool short_rows;     /* without params, outcome, etag, hook */
    int64_t limit;       /* rows, 1 to STORE_PAGE_MAX */
};

/** `more`: go on after `next`. A page may be short, or empty, and have more: each looks at a
    bounded number of jobs. */
struct store_page {
    struct job_id next;
    bool more;
};

enum store_event_kind { /* queued … expired as the states, and: */
                        STORE_EVENT_RETRYING = STORE_STATES,
                        STORE_EVENT_CANCELLING, /* a running job is to be cancelled */
                        STORE_EVENT_KINDS
};

struct store_event {
    int64_t seq; /* rises over all jobs of the store, and never comes again */
    struct job_id job;
    const char *owner;
    int64_t at, kind, attempt;
};

struct store_events_filter {
    int64_t after;     /* seq */
    struct job_id job; /* of this one, or: */
    const char *owner; /* of all of this owner; NULL: of all */
    int64_t limit;
};

/** What is to be told to an endpoint. Written in the transaction of the job's end. */
struct store_delivery {
    int64_t seq; /* of its event */
    struct job_id job;
    const char *endpoint;
    int64_t due, tries, status;
};

/** Inputs and results: a descriptor of the caller's, or bytes where `fd` is -1. */
struct store_content {
    int fd;
    const void *data;
    uint64_t size;
};

struct store_stats {
    int64_t jobs[STORE_STATES];
    int64_t held;     /* bytes of inputs and results */
    int64_t reserved; /* bytes kept free for results to come */
    int64_t limit;    /* of both; 0: none */
    int64_t wal;      /* bytes of the log of changes */
    int64_t event;    /* the newest one */
    int64_t full;     /* 1: no room; nothing new is accepted */
};

/** Called for each row; false: no more of them. */
typedef bool store_job_row(void *context, const struct store_job *job);
typedef bool store_event_row(void *context, const struct store_event *event);
typedef bool store_delivery_row(void *context, const struct store_delivery *delivery);
typedef bool store_calibration_row(void *context, const struct store_calibration *row);

/* ---- engines ---- */

struct store {
    const struct store_engine *engine;
};

struct store_engine {
    const char *name;
    bool durable;
    void (*close)(struct store *store);

    /** `lazy`: nothing in it needs to outlive the power; only STORE_START is so. */
    enum kiln_status (*begin)(struct store *store, bool lazy);
    /** STORE_FULL: call relieve, and make the changes again. STORE: the store cannot be trusted any
        more; close it and open it anew. */
    enum kiln_status (*commit)(struct store *store);
    void (*abandon)(struct store *store);
    /** Makes room on a full disk; until there is enough, accept answers STORE_FULL. */
    void (*relieve)(struct store *store);

    /** INVALID: texts too long, ids missing; MISMATCH: the key was for something else; QUOTA: the
        owner has as much as it may; BUSY: too many jobs wait; STORE_FULL. */
    enum kiln_status (*accept)(struct store *store, const struct store_accept *accept,
                               struct store_accepted *accepted);
    /** NOT_FOUND, GONE, PRECONDITION, INVALID, STORE_FULL. */
    enum kiln_status (*change)(struct store *store, const struct store_change *change,
                               struct store_changed *changed);
    enum kiln_status (*calibrate)(struct store *store, const struct store_calibration *row);
    /** An endpoint has answered: due anew at `due`, or never where that is 0. NOT_FOUND. */
    enum kiln_status (*delivered)(struct store *store, const struct store_delivery *delivery);

    /** GONE: there was one; owner and state are filled. NOT_FOUND. */
    enum kiln_status (*get)(struct store *store, const struct job_id *id, struct store_job *job);
    /** The input or the result of a job. NOT_FOUND; PRECONDITION: not there yet, or never; GONE. */
    enum kiln_status (*open)(struct store *store, const struct job_id *id, bool input,
                             struct store_content *content);
    enum kiln_status (*list)(struct store *store, const struct store_filter *filter,
                             store_job_row *row, void *context, struct store_page *page);
    enum kiln_status (*events)(struct store *store, const struct store_events_filter *filter,
                               store_event_row *row, void *context);
    /** Those due by `now`, the earliest first. */
    enum kiln_status (*deliveries)(struct store *store, int64_t now, int64_t limit,
                                   store_delivery_row *row, void *context);
    enum kiln_status (*calibrations)(struct store *store, store_calibration_row *row,
                                     void *context);
    enum kiln_status (*stats)(struct store *store, struct store_stats *stats);

    /** Retention, expiry, orphans, checkpoints: a bounded piece. Outside of transactions, about
        every second and whenever there is nothing to do. `more`: there is something left to do. */
    enum kiln_status (*tick)(struct store *store, bool *more);
};

struct store_options {
    const char *directory; /* "": in memory, gone with the process */
    int64_t boot;          /* of the daemon: jobs that ran under another one are queued again */
    int64_t bytes;         /* of inputs, results and reservations; 0: as the disk allows */
    int64_t reserve;       /* bytes of the disk that are left free */
    int64_t jobs;          /* unfinished ones; 0: no limit */
    int64_t owner_jobs;    /* the same for one owner */
    int64_t owner_bytes;   /* bytes of one owner; 0: no limit */
    int64_t record;        /* milliseconds that a record is kept after its end; at least a day */
    int64_t (*now)(void);  /* NULL: the system's clock */
    bool inspect;          /* a look from outside: nothing is queued again, nothing is swept */
};

/** Opens or makes a store. STORE with the reason in `why`: in use, a network file system, a newer
    version's, broken. */
enum kiln_status store_open(const struct store_options *options, struct store **store, char *why,
                            size_t why_size);
/** NULL is allowed. */
void store_close(struct store *store);

#endif
