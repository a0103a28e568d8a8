/*
 * status.h: every way a call can end, and the HTTP answer each stands for.
 *
 * One table (status.c) gives each status its HTTP code, the slug of its help page (the `type` of
 * a problem document is "/problems/<slug>"), its title and a paragraph of help. Nothing else in
 * the project maps errors to HTTP.
 *
 * Threads: the table is constant.
 */
#ifndef KILN_COMPUTE_CORE_STATUS_H
#define KILN_COMPUTE_CORE_STATUS_H

#include <stdbool.h>

/* X(symbol, http, slug, title) */
#define KILN_STATUSES(X)                                                                           \
    X(OK, 200, "ok", "Success")                                                                    \
    X(MALFORMED, 400, "malformed", "The request could not be parsed")                              \
    X(UNAUTHORIZED, 401, "unauthorized", "A key is needed")                                        \
    X(FORBIDDEN, 403, "forbidden", "The key does not allow this")                                  \
    X(CROSS_SITE, 403, "cross-site", "This daemon does not answer to pages of other sites")        \
    X(NOT_FOUND, 404, "not-found", "There is nothing at this address")                             \
    X(METHOD, 405, "method-not-allowed", "This address does not take this method")                 \
    X(NOT_ACCEPTABLE, 406, "not-acceptable", "No representation matches the Accept header")        \
    X(REVOKED, 409, "revoked", "Another request cancelled the job")                                \
    X(NOT_FINISHED, 409, "not-finished", "The job has no result yet")                              \
    X(JOB_FAILED, 409, "job-failed", "The job has ended without a result")                         \
    X(GONE, 410, "expired", "The job or its result is not kept any more")                          \
    X(PRECONDITION, 412, "precondition-failed", "The client has this result already")              \
    X(TOO_LARGE, 413, "too-large", "The request is larger than this daemon accepts")               \
    X(URI_TOO_LONG, 414, "uri-too-long", "The address is longer than this daemon accepts")         \
    X(MEDIA_TYPE, 415, "unsupported-media-type",                                                   \
      "The body has a media type this address cannot read")                                        \
    X(RANGE, 416, "range", "The result has no such bytes")                                         \
    X(MISDIRECTED, 421, "misdirected", "This daemon does not answer to that name")                 \
    X(INVALID, 422, "invalid-fields", "Some fields are missing, unknown or out of range")          \
    X(UNSUPPORTED, 422, "unsupported", "This combination is not available")                        \
    X(INCAPABLE, 422, "incapable", "No device of this daemon can run this job")                    \
    X(MISMATCH, 422, "idempotency-mismatch", "This Idempotency-Key was sent with another request") \
    X(LIMITED, 429, "rate-limited", "A limit of requests has been reached")                        \
    X(QUOTA, 429, "quota", "This key has as many jobs or bytes as it may have")                    \
    X(HEAD_TOO_LARGE, 431, "head-too-large", "The headers are larger than this daemon accepts")    \
    X(CANCELLED, 499, "cancelled", "The client went away")                                         \
    X(INTERNAL, 500, "internal", "The daemon failed")                                              \
    X(DEVICE_FAULT, 500, "device-fault", "The device failed on this job twice")                    \
    X(BUSY, 503, "busy", "The queue is full")                                                      \
    X(NO_DEVICE, 503, "no-device", "No device can run this job now")                               \
    X(NO_MEMORY, 503, "no-memory", "There is not enough memory for this job now")                  \
    X(DRAINING, 503, "draining", "The daemon is shutting down")                                    \
    X(STORE, 503, "store", "The store of jobs does not answer now")                                \
    X(DEADLINE, 504, "deadline", "The job did not finish before its deadline")                     \
    X(JOB_TOO_LARGE, 507, "job-too-large", "The job can never fit on this device")                 \
    X(STORE_FULL, 507, "store-full", "There is no room to keep this job")

enum kiln_status {
#define X(symbol, http, slug, title) KILN_##symbol,
    KILN_STATUSES(X)
#undef X
        KILN_STATUS_COUNT
};

/** What one status means to a client. Strings are static and never NULL. */
struct status_row {
    const char *symbol; /* "INVALID" */
    int http;           /* HTTP status code */
    const char *slug;   /* last part of the problem type's path */
    const char *title;  /* RFC 9457 title: same text on every occurrence */
    const char *help;   /* paragraph for the help page: what happened, what to do */
};

/** The row of a status; an out-of-range value yields the row of KILN_INTERNAL. */
const struct status_row *status_row(enum kiln_status status);

/** The row with this slug, or NULL. */
const struct status_row *status_by_slug(const char *slug);

#endif
