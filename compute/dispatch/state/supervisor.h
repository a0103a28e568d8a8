/*
 * supervisor.h: what the front knows of one device and of the process that owns it.
 *
 * Threads: under the queue's lock, except names, which are constant, and descriptors, which only
 * the dispatcher's thread opens, reads and closes. Others send on job_fd: what they send is counted
 * in `sending` under the lock, and the socket is closed when none of it is on its way.
 */
#ifndef KILN_COMPUTE_DISPATCH_STATE_SUPERVISOR_H
#define KILN_COMPUTE_DISPATCH_STATE_SUPERVISOR_H

#include "compute/dispatch/state/device_state.h"
#include "compute/dispatch/state/in_flight.h"
#include "compute/worker/device_kind.h"

#include <sys/types.h>

#define DEVICES_MAX 32

#define MS     UINT64_C(1000000) /* nanoseconds */
#define SECOND (UINT64_C(1000) * MS)

enum worker_phase {
    WORKER_NONE,    /* no process, none wanted */
    WORKER_WAITING, /* no process until respawn_ns */
    WORKER_WARMING, /* process started, not ready yet */
    WORKER_TESTING, /* ready, its first canary is out */
    WORKER_SERVING, /* takes jobs */
    WORKER_DYING,   /* killed, its end is not certain yet */
    WORKER_PHASE_COUNT
};

struct supervisor {
    char name[DEVICE_NAME_MAX];
    int index;         /* among its queue's */
    char reason[256];  /* why it is not available */
    char *description; /* JSON object; NOTICE_TEXT_MAX bytes */
    uint64_t described_ns;
    bool present;     /* the probe has seen it */
    bool chosen;      /* by --device */
    bool broken;      /* given up for now: tried again from time to time, its jobs do not wait */
    bool served;      /* has been ready before */
    uint32_t kernels; /* that it has: as the probe or its worker has said, 0 before */

    enum worker_phase phase;
    pid_t pid;
    int pidfd, job_fd, control_fd; /* -1: none */
    uint32_t process;              /* how many there have been */
    atomic_int sending; /* packets that are on their way to job_fd: it stays open for them */
    uint64_t started_ns, notice_ns, dying_ns, respawn_ns; /* of the process */
    uint64_t success_ns;                                  /* last good answer of a job or canary */
    uint64_t ready_ns;                                    /* since when it takes jobs; 0: not yet */
    bool blameless; /* killed for a deadline: the other jobs are no suspects */
    bool failed;    /* said itself that the device cannot be used */
    bool astray;    /* an answer made no sense: nothing that comes after it is believed */
    int deaths;     /* since window_ns, without a job done between */
    uint64_t window_ns;

    struct in_flight flight;
    bool held;            /* kept free for a suspect, during one pump */
    struct block control; /* the arena's, of flight.control */
    struct block reserve; /* for the canary's result: it never waits for clients' memory */

    uint64_t memory_bytes; /* of the device, as far as jobs may take it; 0: not known */
    double power_w;        /* when it was described last; 0: not known */

    struct job canary;
    bool canary_running, canary_failed;

    uint64_t jobs_done, jobs_failed, respawns;
    uint64_t gathered; /* jobs that ran together with others */
    double busy_ms;
};

enum device_state supervisor_state(const struct supervisor *supervisor);
/** Whether the device is the one that the job wants, if it wants one, and has its kernels. */
bool supervisor_matches(const struct supervisor *supervisor, const struct job *job);
/** Can take a packet now? */
bool supervisor_room(const struct supervisor *supervisor);
/** Whether so many bytes of arrays fit beside those of the jobs that run there. */
bool supervisor_fits(const struct supervisor *supervisor, uint64_t bytes);
/** Takes a description of `size` bytes, and memory and power from it, `limit` bytes of memory at
    most (0: all there is); ignored if it is not one JSON object: it is copied into answers. */
void supervisor_describe(struct supervisor *supervisor, const char *text, size_t size,
                         uint64_t limit);
/** Kills the worker; its jobs stay where they are until its death is certain. An empty reason: the
    way it ended will be the reason. Nothing where there is none. */
void supervisor_kill(struct supervisor *supervisor, const char *reason);
/** Closes job_fd, under the lock, once nothing is on its way there: a few microseconds. */
void supervisor_close_jobs(struct supervisor *supervisor);
/** The canary is out no more. */
void supervisor_canary_clear(struct supervisor *supervisor);

/** Is it the worker's own test, which no client waits for? */
static inline bool supervisor_canary(const struct supervisor *supervisor, const struct job *job) {
    return job == &supervisor->canary;
}

#endif
