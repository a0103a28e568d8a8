/*
 * jobs.h: what all job records share, and the jobs that have not ended yet.
 *
 * A job that is here is prepared (preparing.h) or waits or runs at the executor; it is listed,
 * found and cancelled here wherever it is.
 *
 * Threads: any; jobs_create, _open, _stop and _destroy the main thread.
 */
#ifndef KILN_SERVER_JOBS_JOBS_H
#define KILN_SERVER_JOBS_JOBS_H

#include "server/jobs/executor.h"
#include "server/jobs/preparing.h"

struct offload;
struct result_reuse;

/** Pointers are the caller's and stay. */
struct jobs_options {
    struct arena *arena;
    const struct limits *limits;
    const _Atomic bool *draining; /* nothing more is to be prepared */
    double deadline_s;            /* of a job, from the moment at which it was sent */
    uint64_t cache_bytes;         /* for results that are kept; 0: every record runs its own job */
};

struct jobs {
    struct jobs_options options;
    struct executor *executor;
    const char *variants;       /* of devices: what names of results depend on (etag.h) */
    struct offload *offload;    /* threads that read large bodies, copy large results */
    struct result_reuse *reuse; /* results that are kept or shared; NULL: none */
    struct preparing preparing;
};

/** Makes the cache. Errors: KILN_NO_MEMORY, KILN_INTERNAL. */
enum kiln_status jobs_create(const struct jobs_options *options, struct jobs **jobs);
/** Starts the threads; from then on records may be made. The executor stays the caller's, and stays
    until jobs_destroy. Errors: KILN_NO_MEMORY. */
enum kiln_status jobs_open(struct jobs *jobs, struct executor *executor, const char *variants);
/** Ends what is being prepared, and the threads. After the executor has closed. NULL is allowed. */
void jobs_stop(struct jobs *jobs);
/** Stops, and frees. No record may be left. NULL is allowed. */
void jobs_destroy(struct jobs *jobs);

/** As an executor's (executor.h): the calls below, and job_record_run, are made between the two. */
bool jobs_enter(struct jobs *jobs);
void jobs_leave(struct jobs *jobs);

/** Shows the jobs that the filter lets through: those that run, those that wait, those that are
    prepared, at most DISPATCH_JOBS_MAX; `total` receives how many there are. Errors:
    KILN_NO_MEMORY. */
enum kiln_status jobs_list(struct jobs *jobs, const struct job_filter *filter,
                           void (*each)(const struct job_view *view, void *context), void *context,
                           size_t *total);
/** False if no job of this id has not ended. */
bool jobs_find(struct jobs *jobs, const struct job_id *id, struct job_view *view);
/** Has it end as KILN_REVOKED; false if there is none. */
bool jobs_cancel(struct jobs *jobs, const struct job_id *id);

#endif
