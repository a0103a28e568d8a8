/*
 * request.h: one request from its first line to the last byte of its answer.
 *
 * Data, look-ups in its headers, its faults and the block that its body fills; what is done with it
 * is the flow's (listener.h) and the handlers'.
 *
 * Stages: HEAD (headers are being read) → BODY (filling the arena block) → the handler answers, or
 * puts the connection aside (AWAY) while a job record goes its way; it comes back on the listener's
 * thread, which answers (ANSWERED). Whoever calls request_resume must not touch the request
 * afterwards.
 *
 * Memory: a body takes what has come of it and at most as much again, never what its head says will
 * come; a small one lies in one block from its first byte.
 *
 * Ownership: made when the request line arrives, destroyed when the library reports completion. Its
 * blocks go back to the arena at the latest then; a result's block belongs to the response.
 * Threads: one at a time, as above.
 */
#ifndef KILN_SERVER_HTTP_REQUEST_REQUEST_H
#define KILN_SERVER_HTTP_REQUEST_REQUEST_H

#include "compute/core/arena.h"
#include "compute/core/job_id.h"
#include "server/auth/access.h"
#include "server/core/service.h"
#include "server/core/tracing.h"
#include "server/http/connections/connections.h"
#include "server/http/request/router.h"
#include "server/http/request/url.h"
#include "server/http/wire/framing.h"

#include <microhttpd.h>
#include <stdarg.h>

#define REQUEST_DETAIL_MAX 512 /* bytes of a sentence on what is wrong */
#define REQUEST_LISTS_MAX  4

enum stage { STAGE_HEAD, STAGE_BODY, STAGE_AWAY, STAGE_ANSWERED };

struct job_record;
struct kept_request;

struct http_request {
    struct loop *loop; /* its connection's */
    struct service *service;
    struct MHD_Connection *connection;
    struct client *client;
    uint64_t started_ns;
    uint64_t number; /* of the request on its connection */
    char *target;    /* as sent */
    char *url_text;  /* a copy that `url` points into */
    struct url url;
    enum method method;
    struct match match;
    struct pass pass; /* what its key lets it do */
    struct holder holder;
    struct tracing tracing;
    enum stage stage;
    bool close;           /* the connection ends with this answer */
    int http;             /* status code of the answer; 0 while there is none */
    uint64_t answer_size; /* bytes of its body */

    struct framing framing;
    struct block body;
    uint64_t body_size, discarded; /* bytes kept, bytes thrown away past the limit */

    struct job_record *record; /* of the job that it brings, the handler's; NULL for none */
    struct kept_request *kept; /* what it asks of the ledger, the handler's; NULL for nothing */

    /* what is wrong, for a problem document (problem.h); nothing while `fault` is KILN_OK */
    enum kiln_status fault;
    const struct complaints *complaints; /* of single fields; NULL for none */
    const char *cause;                   /* the problem that a job had, as JSON; NULL for none */
    uint64_t length;                     /* RANGE: bytes that there are */
    const char *etag;                    /* of what there is instead; NULL for none */
    struct job_id job;                   /* that it speaks of; empty for none */
    char *detail;                        /* a sentence; NULL for none */
    char text[]; /* not zeroed: target, and a copy that the url points into */
};

/** NULL if memory ran out. `target` is copied. */
struct http_request *request_create(struct service *service, struct client *client,
                                    struct MHD_Connection *connection, const char *target);
/** Gives back what is left of its blocks. NULL is allowed. */
void request_destroy(struct http_request *request);

/** Whether there would be room for the body that the head announces; else the fault noted. Nothing
    is taken for it. */
enum kiln_status request_expect(struct http_request *request);
/** A piece of the body; `size` receives what was left over (0). */
enum MHD_Result request_feed(struct http_request *request, const char *bytes, size_t *size);

/** Puts the connection aside. Only while an executor is entered (server/jobs/executor.h): none may
   be aside when the daemon stops. */
void request_suspend(struct http_request *request);
/** Hands the request back to the listener. Any thread. */
void request_resume(struct http_request *request);

/** Notes what is wrong, to be answered as a problem (printf format). Returns `status`. */
enum kiln_status request_fault(struct http_request *request, enum kiln_status status,
                               const char *format, ...) __attribute__((format(printf, 3, 4)));
/** The same with arguments that were given to another call. */
enum kiln_status request_fault_with(struct http_request *request, enum kiln_status status,
                                    const char *format, va_list arguments)
    __attribute__((format(printf, 3, 0)));

/** Notes that the body is longer than it may be. */
enum kiln_status request_body_above(struct http_request *request);

/** Where it comes from. */
struct address request_address(const struct http_request *request);
/** Whose share of the arena the request's blocks are: its key's, else its address's. */
const struct holder *request_holder(struct http_request *request);

/** Value of a request header or NULL. */
const char *request_header(const struct http_request *request, const char *name);
/** A header whose values make one list. */
struct header_list {
    const char *name;
    char *text;  /* receives the values joined by commas, "" for none; cut where `size` ends */
    size_t size; /* at least 1 */
    bool any;    /* out: it was sent */
};

/** Fills all of the lists, at most REQUEST_LISTS_MAX, in one walk over the headers. */
void request_lists(const struct http_request *request, struct header_list *lists, size_t count);

#endif
