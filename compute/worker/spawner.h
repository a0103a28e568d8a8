/*
 * spawner.h: the process that starts workers, the store and the probe for the front.
 *
 * The front speaks with the network, so it gives up starting programs before it serves; whoever
 * takes it over finds no way to. This process, `kilnd spawner`, keeps that right and hears of
 * nothing but the front's requests: start the worker of a device, the store or the probe, tell how
 * one of them ended. What is started, and with which arguments, is written here; the front chooses
 * names and numbers only.
 *
 * The store's directory is in the environment (STORE_DIRECTORY_VARIABLE), which the front sets
 * before it starts the spawner and cannot change afterwards.
 *
 * One request, one reply, in order, over a packet socket. The spawner remembers nothing but how
 * many children it has. It ends when the front's end of the socket closes; its children die with it
 * (PR_SET_PDEATHSIG).
 */
#ifndef KILN_COMPUTE_WORKER_SPAWNER_H
#define KILN_COMPUTE_WORKER_SPAWNER_H

#include "compute/worker/program.h"

#include <stdint.h>

#define SPAWNER_FD    PROGRAM_FD /* the socket, in a new spawner */
#define SPAWNER_MAGIC UINT32_C(0x6b737032)

#define STORE_DIRECTORY_VARIABLE "KILN_STORE_DIRECTORY" /* empty: jobs are kept in memory */

enum spawner_task {
    SPAWNER_WORKER, /* with three descriptors: jobs, control, arena */
    SPAWNER_PROBE,  /* with one: its standard output */
    SPAWNER_STORE,  /* with two: commands, arena */
    SPAWNER_REAP,   /* tells how a child ended, if it did */
    SPAWNER_END     /* the same, after killing it */
};

struct spawner_request {
    uint32_t magic, task;
    char device[24]; /* WORKER: "cuda:1", NUL-terminated */
    int32_t slots, threads;
    uint64_t arena_size, device_bytes;
    int64_t boot, store_bytes, store_jobs; /* STORE: as in its options */
    int64_t pid;                           /* REAP, END */
};

/** With a pidfd of the child, where one was started. */
struct spawner_reply {
    uint32_t magic;
    int32_t error; /* errno; 0: done */
    int64_t
        pid; /* WORKER, PROBE, STORE: of the child; REAP, END: of the one that has ended, else 0 */
    int32_t code, status; /* as in siginfo_t */
};

/** Runs the spawner on this process's only thread until the front is gone; returns the exit code.
 */
int spawner_run(void);

#endif
