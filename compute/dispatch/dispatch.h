/*
 * dispatch.h: queue and device supervision: takes jobs, gives each to a free slot of a worker,
 * hands it back when done.
 *
 * One thread (the dispatcher's) waits on every worker's sockets and process: its own, or that of an
 * event loop which calls dispatch_turn. Submitting happens on any thread and sends the command at
 * once when a slot is free. A bounded FIFO holds the rest.
 * A worker that dies, stays silent, outlasts a job's deadline or reports a device fault is killed
 * and replaced (back-off 0, 0.1, 0.5, 2, 5 s…); its unfinished jobs go to the head of the queue
 * once. A job that finds the device's memory taken waits until there is room for it.
 * A job on its second attempt runs alone on its worker, and rather on another device than the first
 * one, so that only the guilty one fails: the job, or the device that keeps failing.
 * A ready worker gets a canary job before it takes others, and one every few idle seconds.
 * A client that hung up (watch_fd) has its job dropped from the queue or cancelled while running;
 * dispatch_cancel does the same for a client that is still there.
 *
 * Workers are the children of a process of their own (spawner.h), which dispatch_create starts; the
 * caller may give up starting programs afterwards.
 *
 * Ownership: a submitted job and its blocks belong to the dispatcher until `done`.
 */
#ifndef KILN_COMPUTE_DISPATCH_DISPATCH_H
#define KILN_COMPUTE_DISPATCH_DISPATCH_H

#include "compute/core/arena.h"
#include "compute/dispatch/state/device_state.h"
#include "compute/jobs/job.h"

struct dispatch;

struct dispatch_options {
    const char *program;   /* path of this binary: /proc/self/exe */
    const char *devices;   /* "auto", "cpu", "cuda:0,cuda:1", … */
    int slots;             /* per worker, 0 for the default of its kind */
    int gather;            /* small alike jobs in one launch at most, 0 for what suits the device */
    int threads;           /* CPU pool threads, 0 for one a core */
    int queue;             /* jobs that may wait */
    double deadline_s;     /* per job, from submission */
    uint64_t device_bytes; /* memory that jobs may take on each device; 0: all there is */
    struct arena *arena;
    /* Called once, on the dispatcher's thread, when no worker can ever be started again: the daemon
       has to end. NULL: nobody wants to know. */
    void (*lost)(void *context);
    void *lost_context;
    bool driven; /* no thread of its own: the caller waits on dispatch_fd and calls dispatch_turn */
};

/** A job that waits or runs. */
struct job_view {
    struct job_id id;
    const char *type; /* name of its kind, static */
    bool running;
    bool preparing;  /* not submitted yet: its input is being read */
    char device[24]; /* that runs it; while it waits, the wanted one, "" for any */
    uint32_t owner;  /* as in its job */
    char request_id[REQUEST_ID_MAX + 1]; /* of the request that brought it */
    int attempt;                         /* 1 once a worker has died with it */
    double age_s;                        /* since it was submitted */
    double running_s;                    /* of this attempt; 0 while it waits */
    double progress;                     /* 0 … 1; never falls during an attempt */
    double cost;                         /* of its plan */
};

#define DISPATCH_JOBS_MAX 1000 /* shown at once */

/** One device as the front knows it. Pointers are valid during the callback only. */
struct device_view {
    const char *name; /* "cuda:0" */
    enum device_state state;
    const char *reason;      /* why not available, or "" */
    const char *description; /* JSON object text from the worker or probe, or "{}" */
    uint32_t kernels;        /* that it has (KERNEL_BIT); 0: not known */
    int slots, running;
    int pid; /* worker's process id; 0 for none */
    uint64_t jobs_done, jobs_failed, respawns;
    uint64_t gathered; /* jobs that ran together with others */
    double busy_s;     /* summed kernel + transfer + encode time */
    double active_s;   /* time with at least one job on it, canaries included */
    double age_s;      /* seconds since the description was taken */
};

struct dispatch_stats {
    uint64_t queued, queue_peak, running;
    uint64_t submitted, completed, failed, cancelled, retried, refused;
    double oldest_s; /* how long the job that waits longest has waited */
};

/** Probes devices (in a child process), starts the workers and the dispatcher's thread. Returns at
    once after the probe; readiness comes later. */
enum kiln_status dispatch_create(const struct dispatch_options *options,
                                 struct dispatch **dispatch);
/** Stops taking jobs: later submissions get KILN_DRAINING. Jobs already taken go on. */
void dispatch_drain(struct dispatch *dispatch);
/** Waits until no job is left or `timeout_s` passed; true if idle. */
bool dispatch_wait_idle(struct dispatch *dispatch, double timeout_s);
/** Kills workers, completes what is left as KILN_DRAINING, joins the thread. A driven one is not
    turned any more by then, and completes on the caller's thread. */
void dispatch_destroy(struct dispatch *dispatch);

/** For the loop that drives. Readable when dispatch_turn has something to take. */
int dispatch_fd(const struct dispatch *dispatch);
/** Milliseconds after which a turn is due anyway; -1 once it is being destroyed. */
int dispatch_timeout(struct dispatch *dispatch);
/** Takes what has happened, without waiting; done() is called from here. False if there was
   nothing. One thread at a time. */
bool dispatch_turn(struct dispatch *dispatch);

/** For the thread that turns, between two turns. Starts the process of the store, after ending the
    one that was started before; `socket` is the caller's. Errors: KILN_INTERNAL, logged. */
enum kiln_status dispatch_store(struct dispatch *dispatch, int64_t boot, int64_t bytes,
                                int64_t jobs, int *socket);

/** Takes the job (and its blocks). On any return but KILN_OK the job stays the caller's and `done`
    is not called. Errors: BUSY, DRAINING, NO_DEVICE (none that could run it is available now),
    INCAPABLE (none ever will be: the wanted one is not in use, or lacks a kernel), NO_MEMORY,
    JOB_TOO_LARGE (for the arena, or for every device that it could run on). */
enum kiln_status dispatch_submit(struct dispatch *dispatch, struct job *job);

/** True while a device answered a canary or a job recently; otherwise `why` says what is missing.
 */
bool dispatch_ready(struct dispatch *dispatch, char *why, size_t why_size);
void dispatch_devices(struct dispatch *dispatch,
                      void (*each)(const struct device_view *view, void *context), void *context);
/** True if a device of this name is known (ready or not). */
bool dispatch_knows(struct dispatch *dispatch, const char *device);
void dispatch_stats(struct dispatch *dispatch, struct dispatch_stats *stats);

/** Which jobs are meant; zeroed: all. */
struct job_filter {
    const struct job_type *type;
    enum { JOBS_ALL, JOBS_PREPARING, JOBS_QUEUED, JOBS_RUNNING } state; /* PREPARING: none here */
    const char *request_id; /* whose result is for a request of this id */
    uint32_t owner;         /* with request_id: and of this owner; 0: of anybody's */
};

/** Shows the jobs that are not finished and that the filter lets through, running ones first, then
    the queue from its head, at most DISPATCH_JOBS_MAX of them; `total` receives how many there are.
    The callback runs without the lock. Errors: KILN_NO_MEMORY. */
enum kiln_status dispatch_jobs(struct dispatch *dispatch, const struct job_filter *filter,
                               void (*each)(const struct job_view *view, void *context),
                               void *context, size_t *total);
/** An id for a job that will be submitted: the next one. */
struct job_id dispatch_id(struct dispatch *dispatch);
/** Looks one up; false if no unfinished job has this id. */
bool dispatch_job(struct dispatch *dispatch, const struct job_id *id, struct job_view *view);
/** Cancels a job: one that waits ends now, one that runs as soon as its kernel looks, both as
    KILN_REVOKED; one that is ending for another reason keeps that. KILN_NOT_FOUND if there is none.
 */
enum kiln_status dispatch_cancel(struct dispatch *dispatch, const struct job_id *id);

#endif
