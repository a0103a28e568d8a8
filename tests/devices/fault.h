/*
 * fault.h: a kind of job that breaks its worker or its device, for tests of what happens then.
 *
 * `GET /v1/fault?what=…` exists in kilnd-faults only, which is built with the tests and never
 * shipped.
 */
#ifndef KILN_TESTS_DEVICES_FAULT_H
#define KILN_TESTS_DEVICES_FAULT_H

#include "compute/jobs/job.h"

/** The first ones are a device's; where there is no GPU, the nearest thing that a CPU does. */
enum fault_what {
    FAULT_STORE,         /* stores far out of bounds */
    FAULT_TRAP,          /* executes a trap instruction */
    FAULT_MISALIGNED,    /* stores across a word's border; CPU: SIGBUS */
    FAULT_SPIN,          /* never ends and does not look at its cancel word */
    FAULT_POLITE,        /* never ends unless it is cancelled */
    FAULT_DEVICE_MEMORY, /* takes device memory until there is none */
    FAULT_HOST_MEMORY,   /* takes host memory until there is none, limited by RLIMIT_AS */
    FAULT_KILL,          /* SIGKILL */
    FAULT_STOP,          /* SIGSTOP: silence */
    FAULT_EXIT,          /* ends the process with code 0 */
    FAULT_LIE,           /* claims a result larger than its bound */
    FAULT_FORGE,         /* the same in an answer of its own, then a second answer */
    FAULT_GARBAGE,       /* sends packets that make no sense */
    FAULT_TIMES,         /* a good result, and phases that are no times */
    FAULT_OPEN,          /* tries to open files that are none of a worker's business */
    FAULT_REPORT,        /* reports a device fault */
    FAULT_NONE,          /* fills the result after `ms` milliseconds */
    FAULT_CANARY,        /* the canary: FAULT_REPORT while there is a file $KILN_FAULT_FILE.DEVICE,
                            else FAULT_NONE */
    FAULT_PREPARE,       /* in the front, while the request is prepared: a reader that takes `ms`
                            milliseconds of work, with cancellation points */
    FAULT_COUNT
};

struct fault_params {
    int64_t seed, bytes, ms, device_bytes;
    int32_t what;
};

/** Runs the device's share of a fault on a GPU. Errors as in backend.h; KILN_UNSUPPORTED where
    there is none. */
enum kiln_status fault_gpu(struct task *task, enum fault_what what);
/** True if the worker has an NVIDIA driver. */
bool fault_has_gpu(void);
/** The same deeds on the host. Most do not return. */
enum kiln_status fault_host(struct task *task, enum fault_what what);

#endif
