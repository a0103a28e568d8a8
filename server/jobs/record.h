/*
 * record.h: one job from the moment at which it was sent to its result, without any connection.
 *
 *   create    what was sent is taken over: texts are copied, the body's block moves
 *   begin     a result that is kept, or a body that is short, is looked at here and now
 *   run       the rest: a long body is read on an offload's thread, then the job is submitted, or
 *             waits for one like it
 *   ended     whoever waits is told, once, on whatever thread; then the outcome and the result are
 *             read, and the record is destroyed
 *
 * What the result depends on is in the record, never in whoever sent it: HTTP requests, tests and
 * whatever comes (batches, a store) use the same calls. Who runs the job is the executor's matter.
 *
 * Threads: one at a time: the maker's until job_record_run, the maker's again from `ended` on.
 * Ownership: the maker's; blocks go back to the arena at the latest with the record.
 */
#ifndef KILN_SERVER_JOBS_RECORD_H
#define KILN_SERVER_JOBS_RECORD_H

#include "compute/jobs/job.h"
#include "server/cache/single_flight.h"
#include "server/core/offload.h"
#include "server/jobs/jobs.h"
#include "server/jobs/preparing.h"

#define RECORD_DETAIL_MAX   512
#define RECORD_CAPTURES_MAX 8

struct job_record;
struct lookup_row;

/** What somebody sends for a job. Everything stays the sender's but the body's block. */
struct job_order {
    const struct job_type *type;
    const struct job_path *path; /* of the address, or NULL */
    const char *const *captures; /* its captured segments, ended by NULL; NULL for none */
    const char *query;           /* names with values; NULL for none */
    const char *media;           /* type of the body; NULL where not told */
    struct block body;           /* room for one byte more than body_size */
    uint64_t body_size;          /* 0: there is no body */
    const char *accept;          /* media ranges, where no format is named; NULL: any */
    const char *tags;            /* entity tags of what the sender has; NULL for none */
    const char *address;         /* names the result together with `accept`; NULL: nothing does */
    bool find, keep;             /* may get another's result; its own may be kept */
    uint64_t age_ns;             /* oldest result that is taken */
    struct holder holder;        /* whose share of the arena its blocks are taken from */
    struct job_id id;            /* that it is to have; empty: a new one */
    bool check;                  /* ends once it has been read and checked, without running */
    uint32_t owner;              /* who may cancel it; 0 for nobody in particular */
    struct trace trace;          /* empty for none */
    const char *request_id;      /* at most REQUEST_ID_MAX bytes; NULL for none */
    int watch_fd;                /* a client's socket, whose hang-up ends it; -1 for none */
    void (*ended)(struct job_record *record); /* after job_record_run; the record may go in it */
    void *context;                            /* the sender's */
};

/** What came of it. FAULT: `fault` and `detail` say what was wrong with what was sent, complaints
   of which fields. UNCHANGED: the sender has the result (`etag`). JOB: see job.status. */
enum record_outcome { RECORD_OPEN, RECORD_JOB, RECORD_UNCHANGED, RECORD_FAULT };

/** Where a result comes from; OFF: there is no cache. */
enum reused { REUSED_OFF, REUSED_MISS, REUSED_HIT, REUSED_SHARED, REUSED_REFUSED };

struct job_record {
    struct jobs *jobs;
    void (*ended)(struct job_record *record);
    void *context;
    struct job job;

    /* what was sent, until it has been read */
    const struct job_path *path;
    const char *captures[RECORD_CAPTURES_MAX + 1];
    char *query, *query_end;
    const char *media, *accept, *tags;
    struct block body;
    uint64_t body_size;

    enum record_outcome outcome;
    enum kiln_status fault;
    char etag[RESULT_ETAG_MAX]; /* "" for none */
    bool negotiated;            /* the format came from `accept` */
    struct result *result;      /* kept or shared, held by the record; NULL: job.result has it */
    enum reused reused;
    bool check;   /* is not to run */
    bool settles; /* its result was put into the cache and is to be moved there */

    /* result_reuse.c's */
    struct digest digest;   /* of the result; empty where it has no name */
    struct digest address;  /* of address and Accept; empty where they do not name a result */
    struct lookup_row *row; /* the address's on this thread */
    struct waiter waiter;
    bool find, keep;
    bool flying; /* leads or follows */
    uint64_t age_ns;

    struct offload_task offload;
    struct preparation preparation;

    struct complaints *complaints; /* of single fields, with KILN_INVALID; NULL for none */

    /* not zeroed */
    char detail[RECORD_DETAIL_MAX];
    char text[]; /* what query, media, accept, tags and captures point into */
};

/** Takes an order over. NULL if memory ran out: the body's block is the sender's then. */
struct job_record *job_record_create(struct jobs *jobs, const struct job_order *order);
/** True if the outcome is known already; false if job_record_run is to follow. */
bool job_record_begin(struct job_record *record);
/** Goes on until `ended` is called, which may be at once. Between jobs_enter and jobs_leave. */
void job_record_run(struct job_record *record);
/** After its end, or instead of running it. Its result is kept, or dropped. NULL is allowed. */
void job_record_destroy(struct job_record *record);

/** The result's bytes, which stay the record's; NULL where the outcome is another than a job that
    went well. */
const void *job_record_result(const struct job_record *record, uint64_t *size);

#endif
