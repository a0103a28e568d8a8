/*
 * private.h: what the worker's main thread (worker.c) and its slot threads (slot.c)
 * share.
 *
 * Everything but the `lock`ed members is written before the slot threads start.
 */
#ifndef KILN_COMPUTE_WORKER_PRIVATE_H
#define KILN_COMPUTE_WORKER_PRIVATE_H

#include "compute/worker/command.h"
#include "compute/worker/worker.h"

#include <pthread.h>
#include <stdatomic.h>

#define WORKER_SLOTS_MAX 64

/** Exit codes of a worker. */
enum worker_exit { WORKER_EXIT_OK = 0, WORKER_EXIT_FAILED = 1, WORKER_EXIT_DEVICE_FAULT = 3 };

struct worker {
    const struct worker_options *options;
    const struct backend *backend;
    struct device *device;
    uint8_t *arena;
    struct thread_pool *pool; /* threads that help the slots with the host's share; NULL: none */
    int slots;
    bool shut;           /* can open no file any more: its description stays as it is */
    bool looks;          /* a slot without a command looks for the next one before it sleeps */
    atomic_bool looking; /* one does */

    pthread_mutex_t lock;
    pthread_cond_t changed;
    int warm;                /* slots that finished their warm-up, well or not */
    int finished;            /* slot threads that have ended */
    enum kiln_status status; /* first failure of a warm-up */
    char why[NOTICE_TEXT_MAX / 32];
};

/** Runs a task between begin and finish. Every failure has a detail afterwards. */
enum kiln_status task_run(struct task *task, const struct job_type *type, struct control *control);

/** Runs the `count` (≥ 1) commands of a packet, together if their kind can, and returns how many
    answers it has filled: not all where a device fault, which the last one tells, ends the process.
    A slot's thread. */
size_t commands_run(const struct worker *worker, struct stream *stream,
                    const struct command *commands, size_t count, struct answer *answers);

/** Body of a slot's thread (argument: the worker): makes a stream, warms it up with every kind's
    canary, then serves commands until the job socket closes. Ends the process after a sticky
    device error, once the answer is out. */
void *worker_slot(void *worker);

#endif
