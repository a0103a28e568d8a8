/*
 * executor.h: who runs jobs.
 *
 * A table of calls, so that a record (record.h) does not know where its job goes. The dispatcher is
 * one (dispatcher.h).
 *
 * An executor may close at any time. `enter` says whether it is open and keeps it so until `leave`;
 * the other calls are made between the two, or from inside an executor's own call-back of a job,
 * and so are steps that must not happen once it is closed (putting aside a request that waits for
 * a job).
 *
 * Threads: any. Ownership: of jobs, as dispatch.h says.
 */
#ifndef KILN_SERVER_JOBS_EXECUTOR_H
#define KILN_SERVER_JOBS_EXECUTOR_H

#include "compute/dispatch/dispatch.h"

struct executor;

struct executor_type {
    /** True if it is open: then leave it again, soon. */
    bool (*enter)(struct executor *executor);
    void (*leave)(struct executor *executor);
    /** An id for a job that will be submitted. */
    struct job_id (*id)(struct executor *executor);
    /** As dispatch_submit. */
    enum kiln_status (*submit)(struct executor *executor, struct job *job);
    /** As dispatch_cancel. */
    enum kiln_status (*cancel)(struct executor *executor, const struct job_id *id);
    /** False if no job of this id waits or runs. */
    bool (*find)(struct executor *executor, const struct job_id *id, struct job_view *view);
    /** As dispatch_jobs. */
    enum kiln_status (*list)(struct executor *executor, const struct job_filter *filter,
                             void (*each)(const struct job_view *view, void *context),
                             void *context, size_t *total);
    /** Whether a job may ask for this device. */
    bool (*knows_device)(struct executor *executor, const char *name);
};

/** The first member of each one. */
struct executor {
    const struct executor_type *type;
};

#endif
