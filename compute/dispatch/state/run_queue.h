/*
 * run_queue.h: the dispatcher's state: jobs that wait, devices, what these have in flight, one lock
 * over all of it; and the leaf operations on that.
 *
 * Nothing here decides anything. queue/ chooses what runs next and says how runs end, workers/
 * keeps the processes alive, the folder above turns the loop. All three share this.
 *
 * Threads: everything is under `lock`, except what is constant after dispatch_create. done() is
 * called without it, only on the dispatcher's thread (run_queue_complete): so that thread may look
 * at any unfinished job without the lock.
 */
#ifndef KILN_COMPUTE_DISPATCH_STATE_RUN_QUEUE_H
#define KILN_COMPUTE_DISPATCH_STATE_RUN_QUEUE_H

#include "compute/dispatch/state/job_list.h"
#include "compute/dispatch/state/packet.h"
#include "compute/dispatch/state/supervisor.h"

#include <pthread.h>

/** Counts since the start. */
struct run_counts {
    uint64_t queue_peak, submitted, completed, failed, cancelled, retried, refused;
};

struct run_queue {
    struct arena *arena;
    pthread_mutex_t lock;
    pthread_cond_t idle; /* outstanding has come down to 0 */
    int wake_fd;         /* eventfd: has the dispatcher's thread look at its clocks */

    struct supervisor *supervisors; /* DEVICES_MAX, of which there are count */
    int count;
    struct packets packets;  /* that go out when the lock is released */
    struct job_list waiting; /* in the order of submission */
    size_t waiting_max;
    struct job_list ended; /* waiting jobs that were cancelled: the dispatcher's thread completes
                              them */
    size_t outstanding;    /* accepted jobs whose done() has not returned */
    bool starved;          /* a job could not be sent for want of memory or room: try again soon */
    bool draining;
    atomic_bool stopping;      /* set under the lock, as sweep_ns; read anywhere */
    struct job_ids ids;        /* of jobs and canaries */
    uint64_t numbers;          /* of jobs so far */
    _Atomic uint64_t sweep_ns; /* when the thread looks at its clocks next */
    uint64_t stuck_ns; /* since when jobs wait for memory although nothing runs; 0: they do not */
    struct run_counts counts;
};

/** Zeroed but for arena and waiting_max, which are set. KILN_NO_MEMORY, KILN_INTERNAL. */
enum kiln_status run_queue_init(struct run_queue *queue);
/** Gives back the devices' blocks too. After a failed init as well. */
void run_queue_finish(struct run_queue *queue);

void run_queue_lock(struct run_queue *queue);
/** Also sends the packets that were made meanwhile. Jobs of a packet that its socket does not take
    wait again, as if they had never left. */
void run_queue_unlock(struct run_queue *queue);

/** Has the thread look at its clocks no later than at `when`. Under the lock; on another thread
   than the dispatcher's, run_queue_wake follows. */
void run_queue_hurry(struct run_queue *queue, uint64_t when);
void run_queue_wake(struct run_queue *queue);

/** Jobs that workers have, canaries not counted. Under the lock, as the next two. */
int run_queue_running(const struct run_queue *queue);
/** Lets a job wait again, behind those that came earlier. */
void run_queue_return(struct run_queue *queue, struct job *job);
/** Ends a job that is in no place and does not wait. `detail` may be the job's own or NULL. */
void run_queue_end(struct run_queue *queue, struct job *job, enum kiln_status status,
                   const char *detail, struct job_list *finished);
/** Calls done() of every job in the list. The dispatcher's thread, without the lock. */
void run_queue_complete(struct run_queue *queue, struct job_list *finished);

static inline bool status_cancelled(enum kiln_status status) {
    return status == KILN_CANCELLED || status == KILN_REVOKED;
}

#endif
