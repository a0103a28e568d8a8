/*
 * ledger_private.h: the ledger's parts, for the files that implement ledger.h.
 *
 * Threads: the ledger's, but for what the lock and atomics guard.
 */
#ifndef KILN_SERVER_JOBS_LEDGER_PRIVATE_H
#define KILN_SERVER_JOBS_LEDGER_PRIVATE_H

#include "compute/store/client.h"
#include "server/jobs/gate.h"
#include "server/jobs/ledger.h"
#include "server/jobs/record.h"

#define LEDGER_RUNNING 64 /* jobs that are read, run or finished at once */
#define LEDGER_PAUSE   UINT64_C(100000000)
#define LEDGER_OUTCOME 2048

/** Where a job is on its way from the store to the store; each begins with a command. */
enum kept_stage { KEPT_LOAD, KEPT_OPEN, KEPT_START, KEPT_RUN, KEPT_FINISH, KEPT_OVER };

struct kept {
    struct ledger *ledger;
    struct job_id id; /* empty: this place is free */
    enum kept_stage stage;
    uint64_t again_ns; /* its command could not be sent, or failed: when to try again; 0: never */
    bool cancelled;    /* by its owner, before it was at the executor */
    struct store_job job;
    void *texts;
    struct block input, copy; /* copy: of a result that lies outside of the arena */
    struct job_record *record;
    enum store_state state; /* FINISH */
    struct kept *ended;     /* the next one that has ended */
    char outcome[LEDGER_OUTCOME];
};

struct ledger {
    struct ledger_options options;
    struct store_client *client;
    struct gate gate;
    pthread_t thread;
    bool started;
    int wake; /* eventfd */
    _Atomic bool stopping, ready, once;
    int64_t boot;
    uint64_t stop_ns;

    /* the process */
    _Atomic uint64_t want_ns; /* when one is wanted; UINT64_MAX: there is one */
    _Atomic int handed;       /* its socket; -1: none */
    uint64_t lost_ns;         /* since when there has been none; 0: there is one */

    struct ledger_call *waiting; /* for a change of their job */

    /* ids of jobs that wait, a ring */
    struct job_id *queue;
    size_t queue_first, queue_count, queue_room;
    bool listing, listed; /* those of an earlier life are being read, were read */
    struct job_id cursor;

    pthread_mutex_t lock;                /* the ids of `running`, `ended`, `ids` */
    struct kept running[LEDGER_RUNNING]; /* a place is kept until it is free */
    struct kept *ended;
    struct job_ids ids;
};

void ledger_wake(struct ledger *ledger);
/** Copies a job with its texts, in memory for free(); NULL if there is none. */
void *store_job_copy(const struct store_job *job, struct store_job *copy);
/** Tells those who wait for a change of this job. */
void ledger_changed(struct ledger *ledger, const struct job_id *id);

/** ledger_run.c */
bool ledger_queue(struct ledger *ledger, const struct job_id *id);
/** Begins what there is room for, tries again what has failed, takes what has ended. */
void ledger_run(struct ledger *ledger);
/** Ends the job if it is on its way to or from the executor. */
void ledger_revoke(struct ledger *ledger, const struct job_id *id);
/** Nothing is left to be written. */
bool ledger_settled(struct ledger *ledger);
/** Nanoseconds (clock_ns) when ledger_run is due anyway. */
uint64_t ledger_run_due(struct ledger *ledger);
void ledger_run_finish(struct ledger *ledger);

/** ledger_order.c: reads what ledger_order_print wrote; texts point into `room`. False: it is not
    ours. */
struct ledger_order_room {
    char query[STORE_PARAMS_MAX], media[STORE_HOOK_MAX], accept[STORE_HOOK_MAX];
    char captures[8][STORE_HOOK_MAX];
    const char *list[9];
};
bool ledger_order_read(const char *text, struct job_order *order, struct ledger_order_room *room);

#endif
