/*
 * submission.h: what somebody sent for a job, read into its parameters and its inputs.
 *
 * A submission is names with texts (a query) and a body of some media type: a form, a JSON object,
 * multipart, or the input itself. One table says which media types there are and who reads each.
 * Whatever the source, a name and a text, or a name and a JSON value, end in the kind's field
 * table; the fields common to all jobs (`format`, `device`) are taken out before. Nothing here
 * knows where it came from: HTTP, a line of a batch, a command line.
 *
 * Threads: one owner (an event loop's thread, or a loader's for large bodies). At a cancellation
 * point (compute/core/cancel.h) reading ends with any status: whoever asked for it knows why.
 */
#ifndef KILN_COMPUTE_SUBMISSION_SUBMISSION_H
#define KILN_COMPUTE_SUBMISSION_SUBMISSION_H

#include "compute/jobs/job.h"

#define FORMAT_TEXT_MAX      32
#define SUBMISSION_PAIRS_MAX 256 /* names with values in query and body together */

/** Filled by the caller, but for `detail` and `format`. Pointers are the caller's. */
struct submission {
    const struct job_type *type;
    const struct job_path *path; /* of the address, or NULL */
    const char *const *captures; /* its captured segments; NULL without a path */
    const struct limits *limits;
    struct arena *arena;
    const struct holder *holder; /* whose share blocks are taken from; NULL: the daemon's */
    /** Is there a device of this name? NULL: whatever fits is taken. */
    bool (*device_known)(const char *name, void *context);
    void *context;           /* of device_known */
    char *query, *query_end; /* names with values, changed where they lie; *query_end is
                                writable. NULL: none */
    const char *media;       /* type of the body with its parameters; NULL where not told */
    struct block body;       /* room for one byte more than body_size; its bytes are changed */
    uint64_t body_size;      /* 0: there is no body */
    struct job *job;         /* params (zeroed before), input, body and device are filled */
    struct complaints *complaints;
    char detail[512];             /* out: what is wrong where the status is not KILN_OK */
    char format[FORMAT_TEXT_MAX]; /* out: the member `format`, "" if not given */
};

/** True if this media type (parameters ignored; NULL for none) can be read for this kind. */
bool submission_media_known(const struct job_type *type, const char *media);
/** True if a body of this type is the input itself, not fields. */
bool submission_media_binary(const struct job_type *type, const char *media);
/** The media types that a kind takes, each once: calls `each` until it has seen all. */
void submission_media_list(const struct job_type *type,
                           void (*each)(const char *media, void *context), void *context);

/** Fills the job from captures, query and body; complaints are collected. KILN_OK even with
    complaints; anything else (KILN_MALFORMED, KILN_MEDIA_TYPE, KILN_NO_MEMORY, KILN_NOT_FOUND where
    the path leads nowhere …) has its reason in `detail`. The body block is given back, or has moved
    to the job, whatever the status. The kind's check has not been asked. */
enum kiln_status submission_read(struct submission *submission);

#endif
