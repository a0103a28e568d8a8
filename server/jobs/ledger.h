/*
 * ledger.h: jobs that outlive their connection: kept in the store before they are acknowledged, run
 * from there, finished there before anybody sees their end.
 *
 *   keep      an order that was checked goes into the store; then it is accepted
 *   run       some at a time are read from the store, oldest first, and run as any other record
 *             (record.h); the same way after a restart, with what was left unfinished
 *   finish    result and end are in the store; then whoever waits is told
 *
 * So what waits takes an id's memory here, whatever its input's size. The store is a process of its
 * own (compute/store); while it is away, what was begun waits for the next one, and new calls are
 * answered with KILN_STORE.
 *
 * Threads: the ledger has one, which makes all call-backs; ledger_ask any. Ownership: a call and
 * what it points to are the asker's and stay until its `done`.
 */
#ifndef KILN_SERVER_JOBS_LEDGER_H
#define KILN_SERVER_JOBS_LEDGER_H

#include "compute/store/command.h"
#include "server/jobs/jobs.h"

struct ledger;
struct job_order;

/** Pointers are the caller's and stay. */
struct ledger_options {
    struct jobs *jobs;
    struct arena *arena;
    const _Atomic bool *draining; /* no more jobs are begun */
    int64_t bytes;                /* of inputs, results and reservations; 0: as the disk allows */
    int64_t jobs_max;             /* unfinished ones */
    bool durable;                 /* there is a state directory */
};

enum ledger_ask {
    LEDGER_KEEP, /* `offer` and `input`; its answer is that of LOOK */
    LEDGER_LOOK, /* the job as it is */
    LEDGER_READ, /* the same, and its result where it has one */
    LEDGER_DROP, /* cancels what is unfinished, forgets the result of what is not */
    LEDGER_LIST  /* `filter` */
};

struct ledger_call {
    enum ledger_ask ask;
    struct job_id id;         /* not of KEEP and LIST */
    const char *owner;        /* KEEP: whose it is; else whose jobs are seen, NULL: all */
    struct store_job offer;   /* KEEP: as store_accept says, with its id */
    struct store_bytes input; /* KEEP: in the arena */
    const char *key;          /* KEEP: Idempotency-Key, "" for none */
    uint8_t fingerprint[STORE_HASH];
    struct store_filter filter;
    uint64_t
        until_ns;     /* LOOK, KEEP, READ: answered then at the latest, or when the job has ended */
    int64_t revision; /* or when it has another one than this; 0: only when it has ended */
    void (*done)(struct ledger_call *call);
    void *context;

    /* the answer; NOT_FOUND where the job is another's */
    enum kiln_status status;
    bool repeated;        /* KEEP: this key was accepted before */
    struct store_job job; /* also with GONE: owner and state */
    struct store_content
        content;              /* READ with OK and a job that has SUCCEEDED; GONE: there was one */
    struct store_answer rows; /* LIST: for store_answer_job */

    /* the ledger's */
    struct ledger *ledger;
    void *texts, *bytes;
    struct ledger_call *next;
};

/** Errors: KILN_NO_MEMORY, KILN_INTERNAL. */
enum kiln_status ledger_create(const struct ledger_options *options, struct ledger **ledger);
/** Starts the thread, once records can be made. Errors: KILN_NO_MEMORY. */
enum kiln_status ledger_open(struct ledger *ledger);
/** Answers all calls, writes the ends of jobs that have ended, and ends the thread. After the
    executor and the threads of `jobs` have stopped. NULL is allowed. */
void ledger_stop(struct ledger *ledger);
/** Stops, and frees. NULL is allowed. */
void ledger_destroy(struct ledger *ledger);

/** Calls are made between the two; false once it has stopped. */
bool ledger_enter(struct ledger *ledger);
void ledger_leave(struct ledger *ledger);
/** `done` will be called, maybe at once. */
void ledger_ask(struct ledger *ledger, struct ledger_call *call);
/** Frees what a call has been given; its descriptor too, unless the asker has taken it (-1). */
void ledger_call_finish(struct ledger_call *call);

bool ledger_durable(const struct ledger *ledger);
/** The store has been open once, and is so now. */
bool ledger_ready(struct ledger *ledger, bool *now);
/** Whether this job, which waits or runs at the executor, is one that is kept. */
bool ledger_has(struct ledger *ledger, const struct job_id *id);
/** A new id. */
struct job_id ledger_id(struct ledger *ledger);

/** What somebody sent, as it is kept: query, captures, media types. False if it is too long. */
bool ledger_order_print(const struct job_order *order, const char *media, char *text, size_t size);

/** For who can start processes: milliseconds until one is wanted, negative for never, with its
    numbers; and its socket, or -1. */
int ledger_wants(struct ledger *ledger, int64_t *boot, int64_t *bytes, int64_t *jobs);
void ledger_connect(struct ledger *ledger, int socket);

#endif
