/*
 * fair_queue.h: which of the waiting jobs runs next, fair in device-seconds.
 *
 * Start-time fair queueing (Goyal, Vin & Cheng 1996) in two levels: classes by their weights, and
 * the keys within a class by theirs. Who has used least of the device in proportion to its weight
 * is next. A job is charged its estimate when it is taken, what it has run beyond that as it goes,
 * and what it did take when it ends: who claims too little gains nothing for long. What a key did
 * not use while it had nothing to run is not saved up, but for a little (FAIR_LAG).
 *
 * A job waits in a lane: 0 … lanes - 1, such as "any device", "cuda:1". A device asks for the lanes
 * it serves. In a lane a key's jobs are first come, first served, except that what cannot run now
 * is passed by what can, as the caller judges: it knows devices and memory (backfill.h).
 *
 * Time and cost are seconds in double, time from any fixed start. Memory: as much as was asked for
 * at create, and what is embedded in the jobs. Push, take and end take O(log keys) where the first
 * in line can run; a take judges at most FAIR_LOOKS jobs.
 *
 * Threads: none of its own; the caller's lock.
 */
#ifndef KILN_COMPUTE_SCHEDULE_FAIR_QUEUE_H
#define KILN_COMPUTE_SCHEDULE_FAIR_QUEUE_H

#include "compute/schedule/order.h"

#include <stddef.h>

#define FAIR_LANES_MAX 64
#define FAIR_LOOKS     64 /* jobs that one take judges at most */
#define FAIR_DEPTH     16 /* of them of one key in one lane */
#define FAIR_LAG       10 /* seconds of its share that a key may be behind and get back */

enum fair_class { FAIR_INTERACTIVE, FAIR_NORMAL, FAIR_BATCH, FAIR_CLASSES };

enum fair_state { FAIR_OUT, FAIR_WAITING, FAIR_RUNNING };

struct fair_account; /* a key in a class */

/** What a job carries. The caller sets `estimate` (> 0) before a push; the rest is the queue's. */
struct fair_job {
    double estimate;         /* device-seconds */
    double charged;          /* of them, by now */
    double limit;            /* time at which it is overdue, see fair_queue_limit */
    double before;           /* seconds that had been pushed before it by its key */
    uint64_t index;          /* jobs that had */
    struct order_node clock; /* in the order of limits */
    struct fair_account *account;
    struct fair_job *next, *previous; /* of its key in its lane, while it waits */
    int lane;
    enum fair_state state;
};

struct fair_queue;

/** What the caller says of a job that is next in turn. */
enum fair_verdict {
    FAIR_TAKE,
    FAIR_PASS, /* it cannot run now: the next one */
    FAIR_STOP  /* and none behind it may */
};
typedef enum fair_verdict fair_judge(void *context, struct fair_job *job);

/** Room for `accounts` pairs of key and class that wait, run or are in debt, and for lanes 0 …
    `lanes` - 1. NULL: no memory. */
struct fair_queue *fair_queue_create(size_t accounts, int lanes);
/** Jobs that are still in it are the caller's. NULL is fine. */
void fair_queue_destroy(struct fair_queue *queue);

/** Queues a job that is out of it. `weight` > 0 is the key's from now on. False: too many keys
    have jobs. */
bool fair_queue_push(struct fair_queue *queue, struct fair_job *job, enum fair_class class,
                     uint64_t key, double weight, int lane);

/** The next job of the lanes in `mask` that `judge` takes, now running and charged its estimate;
    NULL: none. The judge must not call the queue. */
struct fair_job *fair_queue_take(struct fair_queue *queue, uint64_t mask, fair_judge *judge,
                                 void *context);

/** A running job has used `seconds` so far: what that is above its charge is charged. */
void fair_queue_used(struct fair_queue *queue, struct fair_job *job, double seconds);
/** A running job has ended and used `seconds` in all; of a group, its share. */
void fair_queue_end(struct fair_queue *queue, struct fair_job *job, double seconds);
/** A running job waits again, first of its key in its lane, and has used nothing. */
void fair_queue_return(struct fair_queue *queue, struct fair_job *job);
/** A waiting job leaves without having run. */
void fair_queue_remove(struct fair_queue *queue, struct fair_job *job);

/** The job is overdue at `time`: when it waits, its latest start; when it runs, its latest end.
    INFINITY: never. A push, a take and a return leave it as it is. */
void fair_queue_limit(struct fair_queue *queue, struct fair_job *job, double time);
/** The job whose limit is earliest, or NULL; it is overdue if its `limit` is not after now. */
struct fair_job *fair_queue_earliest(const struct fair_queue *queue);

/** What will be taken before this waiting job if nothing else comes: jobs and their seconds, to
    within about one job a key, and never fewer of its own key's. O(accounts). */
struct fair_ahead {
    size_t jobs;
    double seconds;
};
struct fair_ahead fair_queue_ahead(const struct fair_queue *queue, const struct fair_job *job);

struct fair_total {
    size_t jobs;
    double seconds;
};
/** What waits: of a class, or of all (FAIR_CLASSES). */
struct fair_total fair_queue_waiting(const struct fair_queue *queue, enum fair_class class);
/** What waits of a key, all classes. */
struct fair_total fair_queue_waiting_of(const struct fair_queue *queue, uint64_t key);

#endif
