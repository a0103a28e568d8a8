/*
 * private.h: what the parts of the dispatcher share.
 *
 *   dispatch.c   the public calls, the dispatcher's thread and its epoll loop
 *   view.c       what others may see: readiness, devices, counts
 *   jobs.c       unfinished jobs: looking at them, cancelling one
 *   queue.c      jobs: waiting, sent, answered (state machine of a job)
 *   answer.c     what a worker answers, judged
 *   in_flight.c  what a worker has: packets in slots, jobs in places
 *   group.c      which waiting jobs run together
 *   match.c      which devices can run a job at all
 *   retry.c      jobs whose worker is gone, jobs that no device will take
 *   timers.c     what happens because time has passed: deadlines, hang-ups, silence
 *   memory.c     what fits where: the arena, the devices' memory
 *   canary.c     the job that asks a device whether it still answers
 *   devices.c    the devices there are and those that --device chose
 *   supervise.c  one device's worker process (state machine of a worker)
 *   spawn.c      child processes, through the spawner (spawner.h)
 *
 * Threads: everything in struct dispatch is under `lock`, except what is constant after
 * dispatch_create and the file descriptors, which only the dispatcher's thread opens, reads and
 * closes (closing under the lock, because submitters send on job_fd under it). Functions that end
 * in _locked are called with the lock held. done() is called without it, only on the dispatcher's
 * thread: so that thread may look at any unfinished job without the lock.
 */
#ifndef KILN_COMPUTE_DISPATCH_PRIVATE_H
#define KILN_COMPUTE_DISPATCH_PRIVATE_H

#include "compute/dispatch/dispatch.h"
#include "compute/worker/command.h"
#include "compute/worker/device_kind.h"

#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/types.h>

#define DEVICES_MAX 32
#define SLOTS_MAX   64  /* of one worker */
#define PLACES_MAX  128 /* for commands of one worker: groups put several into a slot */

#define MS     UINT64_C(1000000) /* nanoseconds */
#define SECOND (UINT64_C(1000) * MS)

enum job_state { JOB_FREE, JOB_QUEUED, JOB_RUNNING, JOB_EXPIRING, JOB_CANCELLING, JOB_FAULTED };

enum worker_phase {
    WORKER_NONE,    /* no process, none wanted */
    WORKER_WAITING, /* no process until respawn_ns */
    WORKER_WARMING, /* process started, not ready yet */
    WORKER_TESTING, /* ready, its first canary is out */
    WORKER_SERVING, /* takes jobs */
    WORKER_DYING,   /* killed, its end is not certain yet */
    WORKER_PHASE_COUNT
};

/* Jobs linked by next and previous, in order. */
struct job_list {
    struct job *head, *tail;
    size_t count;
};

/* One command that a worker has. */
struct place {
    struct job *job;
    int group;               /* the packet that it went in */
    struct block orphans[2]; /* of a job that was completed although its worker may still write */
};

/* One device and the process that owns it. */
struct supervisor {
    char name[DEVICE_NAME_MAX];
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
    int pidfd, job_fd, control_fd;                        /* -1: none */
    uint64_t started_ns, notice_ns, dying_ns, respawn_ns; /* of the process */
    uint64_t success_ns;                                  /* last good answer of a job or canary */
    uint64_t ready_ns;                                    /* since when it takes jobs; 0: not yet */
    bool blameless; /* killed for a deadline: the other jobs are no suspects */
    bool failed;    /* said itself that the device cannot be used */
    int deaths;     /* since window_ns, without a job done between */
    uint64_t window_ns;

    struct place place[PLACES_MAX];
    int group[SLOTS_MAX]; /* jobs left of each packet that a slot works on; 0: a free slot */
    int slots, busy;      /* slots; those with a packet */
    int running;          /* jobs, the canary included */
    int gather;           /* jobs that may share a packet */
    bool exclusive;       /* runs a suspect: nothing beside it */
    bool held;            /* kept free for a suspect, during one pump */
    struct block control; /* PLACES_MAX of struct control */
    struct block reserve; /* for the canary's result: it never waits for clients' memory */

    uint64_t memory_bytes; /* of the device, as far as jobs may take it; 0: not known */
    uint64_t memory_used;  /* by the jobs that run, as planned */
    double power_w;        /* when it was described last; 0: not known */

    struct job canary;
    bool canary_running, canary_failed;

    uint64_t jobs_done, jobs_failed, respawns;
    uint64_t gathered; /* jobs that ran together with others */
    double busy_ms;
    uint64_t active_ns, active_since_ns; /* time with jobs on it; since when it has some */
};

/* The process that starts the workers. */
struct spawner {
    pid_t pid;
    int pidfd, socket; /* -1: none */
    bool lost;         /* ended or silent: nothing can be started any more */
};

struct dispatch {
    struct arena *arena;
    struct spawner spawner;
    void (*lost)(void *context);
    void *lost_context;
    int slots, threads, gather;
    size_t queue_max;
    uint64_t deadline_ns;  /* length */
    uint64_t device_bytes; /* limit of ours, 0: none */

    pthread_mutex_t lock;
    pthread_cond_t idle;
    pthread_t thread;
    int epoll_fd, wake_fd;

    struct supervisor *supervisors;
    int count;
    struct job_list queue;
    struct job_list ended; /* waiting jobs that were cancelled: the thread completes them */
    size_t outstanding;    /* accepted jobs whose done() has not returned */
    bool starved;          /* a job could not be sent for want of memory or room: try again soon */
    bool draining, stopping;
    bool driven;        /* no thread: the caller turns the loop */
    struct job_ids ids; /* of jobs and canaries */
    uint64_t numbers;   /* of jobs so far */
    uint64_t sweep_ns;  /* when the thread looks at its clocks next */
    uint64_t hangup_ns; /* when clients are looked at next */
    uint64_t awake_ns;  /* last time the loop turned */
    uint64_t stuck_ns;  /* since when jobs wait for memory although nothing runs; 0: they do not */
    struct dispatch_stats stats;

    struct pollfd *watched; /* room for every job there can be */
    struct job **watched_jobs;
    size_t watched_max;
};

/* dispatch.c */

/** Has the thread look at its clocks no later than at `when`. Dispatcher's thread, or any other
    that then calls dispatch_wake. */
void dispatch_hurry_locked(struct dispatch *dispatch, uint64_t when);
void dispatch_wake(struct dispatch *dispatch);
/** Adds a worker's descriptors to the epoll set. KILN_INTERNAL on failure. */
enum kiln_status dispatch_listen(struct dispatch *dispatch, const struct supervisor *supervisor);
/** Calls done() of every job in the list, without the lock. */
void dispatch_complete(struct dispatch *dispatch, struct job_list *finished);

/** Is it the worker's own test, which no client waits for? */
static inline bool supervisor_canary(const struct supervisor *supervisor, const struct job *job) {
    return job == &supervisor->canary;
}

static inline bool status_cancelled(enum kiln_status status) {
    return status == KILN_CANCELLED || status == KILN_REVOKED;
}

/* queue.c */

void job_list_push(struct job_list *list, struct job *job);
void job_list_remove(struct job_list *list, struct job *job);
/** Queues a job again, behind those that came earlier. */
void queue_return_locked(struct dispatch *dispatch, struct job *job);

/** Takes a new job: sends it at once or queues it. KILN_BUSY leaves it the caller's. */
enum kiln_status queue_take_locked(struct dispatch *dispatch, struct job *job);
/** Sends whatever can be sent now. */
void queue_pump_locked(struct dispatch *dispatch);
/** Takes one answer; false if it makes no sense. */
bool queue_answer_locked(struct dispatch *dispatch, struct supervisor *supervisor,
                         const struct answer *answer, struct job_list *finished);
/** Ends a job that is in no slot and no queue. `detail` may be the job's own or NULL. */
void queue_end_locked(struct dispatch *dispatch, struct job *job, enum kiln_status status,
                      const char *detail, struct job_list *finished);

/* answer.c */

/** Whether an answer can come from a worker in its senses; its numbers are answer_take's. */
bool answer_sound(const struct answer *answer);
/** Takes times (no longer than the job was out), detail and the size of the result. */
void answer_take(struct job *job, const struct answer *answer, uint64_t now);

/* in_flight.c */

/** Sends `*count` alike jobs in one packet to a worker with a free slot; fewer, as `count` tells
    then, where there is no room for more results. KILN_NO_MEMORY: no result block for the first;
    KILN_BUSY: the socket has no room; KILN_NO_DEVICE: the worker is gone (and marked so). */
enum kiln_status places_send_locked(struct dispatch *dispatch, struct supervisor *supervisor,
                                    struct job *const *jobs, int *count);
/** The control block of a worker's place. */
struct control *place_control(const struct dispatch *dispatch, const struct supervisor *supervisor,
                              int place);
/** Asks the running job in this place to stop. */
void place_cancel_locked(struct dispatch *dispatch, struct supervisor *supervisor, int place,
                         enum job_state state);
/** The place of the job with this id, or -1. */
int place_find(const struct supervisor *supervisor, const struct job_id *id);
/** Takes the job out of a worker's place. */
void place_clear_locked(struct dispatch *dispatch, struct supervisor *supervisor, int place);

/* group.c */

/** Fills `group` with the queued job and those behind it that may run with it on this worker now,
    and returns how many they are: no more than the job's share of what waits. */
int group_find_locked(const struct dispatch *dispatch, const struct supervisor *supervisor,
                      struct job *job, struct job *group[GROUP_MAX]);

/* match.c */

/** Whether a device is the one that the job wants, if it does, and has its kernels. */
static inline bool device_matches(const struct supervisor *supervisor, const struct job *job) {
    return (job->plan.kernels & ~supervisor->kernels) == 0 &&
           device_kind_matches(supervisor->name, job->device);
}
/** KILN_OK where a device could run the job, now or after starting. KILN_NO_DEVICE: none can now.
    KILN_INCAPABLE: nor ever will, as the daemon was started. Says why not. */
enum kiln_status device_admit_locked(const struct dispatch *dispatch, const struct job *job,
                                     char *why, size_t why_size);

/* memory.c */

/** Takes memory and power from the device's description. */
void memory_learn_locked(const struct dispatch *dispatch, struct supervisor *supervisor);
/** Whether so many bytes of arrays fit beside those of the jobs that run there. */
bool memory_fits(const struct supervisor *supervisor, uint64_t bytes);
/** False where no device that the job may run on could ever hold it; writes its detail. */
bool memory_possible_locked(const struct dispatch *dispatch, struct job *job);
/** Takes a job's result block, within its client's share of the arena. Errors as arena_take_for;
   the log is told. */
enum kiln_status memory_take_result(struct dispatch *dispatch, struct job *job);
/** The result block of a new job with an input, where there is one; KILN_OK also where it may wait.
    Writes the job's detail. */
enum kiln_status memory_reserve_locked(struct dispatch *dispatch, struct job *job);
/** KILN_JOB_TOO_LARGE where input and result could never lie in the arena together, however empty
    it is; KILN_NO_MEMORY where they cannot for where the input lies. Writes the job's detail. */
enum kiln_status memory_admit_locked(const struct dispatch *dispatch, struct job *job);
/** Puts a job back that ran out of device memory; false if it has been tried often enough. */
bool memory_retry_locked(struct dispatch *dispatch, struct supervisor *supervisor, struct job *job);
/** Where the queue is full and more than half of it waits for room, the youngest of those gives way
    (true): what clients do not take off our hands does not keep others from queueing. */
bool memory_displace_locked(struct dispatch *dispatch);
/** When jobs wait for each other's inputs, the youngest gives way. */
void memory_unlock_locked(struct dispatch *dispatch, uint64_t now, struct job_list *finished);

/* retry.c */

/** The worker is certainly dead: its jobs go back to the queue or end. `how` tells its death. */
void queue_lose_locked(struct dispatch *dispatch, struct supervisor *supervisor, const char *how,
                       struct job_list *finished);
/** Its end is not certain: completes those of its jobs whose deadline passed at `expired_ns` or
    before (UINT64_MAX: all of them), but keeps their blocks. */
void queue_orphan_locked(struct dispatch *dispatch, struct supervisor *supervisor,
                         uint64_t expired_ns, struct job_list *finished);
/** Ends queued jobs that no device will ever run. */
void queue_reject_locked(struct dispatch *dispatch, struct job_list *finished);

/* timers.c */

/** Does all that is due; sets sweep_ns. Dispatcher's thread, without the lock. */
void dispatch_sweep(struct dispatch *dispatch, uint64_t now);

/* canary.c */

/** Sends a canary; where that cannot be now, it is tried again. Kinds without one count as good. */
void canary_send_locked(struct dispatch *dispatch, struct supervisor *supervisor, uint64_t now);
/** The canary's answer is in. */
void canary_end_locked(struct dispatch *dispatch, struct supervisor *supervisor,
                       enum kiln_status status);
/** Takes what a worker's canaries need, once. Errors as arena_take. */
enum kiln_status canary_reserve_locked(struct dispatch *dispatch, struct supervisor *supervisor);
/** The canary died with its worker. */
void canary_lose_locked(struct supervisor *supervisor);

/* devices.c */

/** Probes, and fills supervisors and count from what there is and from --device. */
enum kiln_status devices_create(struct dispatch *dispatch, const char *chosen);
void devices_destroy(struct dispatch *dispatch);

/* supervise.c */

enum device_state supervisor_state(const struct supervisor *supervisor);
/** Kills the worker; its jobs stay where they are until its death is certain. An empty reason: the
    way it ended will be the reason. */
void supervisor_kill_locked(struct supervisor *supervisor, const char *reason);
/** Its first canary came back: it takes jobs from now on. */
void supervisor_serve_locked(struct dispatch *dispatch, struct supervisor *supervisor);
/** Starts the process (WAITING → WARMING). Without the lock. */
void supervisor_start(struct dispatch *dispatch, struct supervisor *supervisor);
/** Events of the worker's descriptors. Without the lock; harmless when nothing has happened. */
void supervisor_on_jobs(struct dispatch *dispatch, struct supervisor *supervisor);
void supervisor_on_control(struct dispatch *dispatch, struct supervisor *supervisor);
void supervisor_on_death(struct dispatch *dispatch, struct supervisor *supervisor);
/** Ends all workers: asks, waits at most a second, kills, reaps. Without the lock. */
void supervisors_stop(struct dispatch *dispatch);

/* spawn.c */

struct spawned {
    pid_t pid;
    int pidfd, job_fd, control_fd;
};

/** Starts `program spawner`, and ends it. Errors: KILN_INTERNAL, logged. */
enum kiln_status spawner_start(struct dispatch *dispatch, const char *program);
void spawner_stop(struct dispatch *dispatch);
/** Its socket has something to say, which is its end. Without the lock. */
void spawner_on_event(struct dispatch *dispatch);
/** Starts the worker of a device. Errors: KILN_INTERNAL with the reason in `why`. Without the lock,
    as the next two. */
enum kiln_status spawn_worker(struct dispatch *dispatch, const char *device,
                              struct spawned *spawned, char *why, size_t why_size);
/** Reaps a worker that has ended and tells how; false if it lives. */
bool spawn_ended(struct dispatch *dispatch, const struct spawned *spawned, char *how, size_t size);
/** Runs the probe for at most `timeout_ms` and collects its output, NUL-terminated. */
enum kiln_status spawn_probe(struct dispatch *dispatch, int timeout_ms, char *output,
                             size_t capacity, size_t *size);
/** Sends a signal to the process behind a pidfd. */
void pidfd_kill(int pidfd, int signal);

#endif
