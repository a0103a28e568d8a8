/*
 * request.h: one request from its first line to the last byte of its answer.
 *
 * Stages: HEAD (headers are being read) → BODY (filling the arena block) → the handler answers, or
 * puts the connection aside (AWAY) while a loader thread or the dispatcher owns the request; it
 * comes BACK on the listener's thread, which answers. Whoever calls request_resume must not touch
 * the request afterwards.
 *
 * Memory: a body takes what has come of it and at most as much again, never what its head says will
 * come; a small one lies in one block from its first byte.
 *
 * Ownership: made when the request line arrives, destroyed when the library reports completion. Its
 * blocks go back to the arena at the latest then; a result's block belongs to the response.
 * Threads: one at a time, as above.
 */
#ifndef KILN_SERVER_HTTP_REQUEST_H
#define KILN_SERVER_HTTP_REQUEST_H

#include "compute/jobs/job.h"
#include "server/auth/access.h"
#include "server/cache/single_flight.h"
#include "server/core/offload.h"
#include "server/core/service.h"
#include "server/core/tracing.h"
#include "server/http/connections/connections.h"
#include "server/http/router.h"
#include "server/http/url.h"
#include "server/http/wire/framing.h"

#include <microhttpd.h>

#define REQUEST_DETAIL_MAX 512
#define REQUEST_ETAG_MAX   RESULT_ETAG_MAX

enum stage { STAGE_HEAD, STAGE_BODY, STAGE_AWAY, STAGE_ANSWERED };

/** How preparing a job ended. */
enum outcome { OUTCOME_NONE, OUTCOME_JOB, OUTCOME_UNCHANGED, OUTCOME_FAULT };

struct lookup_row;

/** Where an answer comes from; OFF: there is no cache. */
enum reused { REUSED_OFF, REUSED_MISS, REUSED_HIT, REUSED_SHARED, REUSED_REFUSED };

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
    struct pass pass; /* access.c's */
    struct tracing tracing;
    enum stage stage;
    bool close;           /* the connection ends with this answer */
    int http;             /* status code of the answer; 0 while there is none */
    uint64_t answer_size; /* bytes of its body */

    struct framing framing;
    struct block body;
    uint64_t body_size, discarded; /* bytes kept, bytes thrown away past the limit */

    enum outcome outcome;
    enum kiln_status fault;
    char detail[REQUEST_DETAIL_MAX];
    struct complaints complaints;
    char etag[REQUEST_ETAG_MAX]; /* "" for none */
    bool negotiated;             /* the format came from Accept */
    struct job job;

    /* result_reuse.c's */
    struct digest digest;
    struct digest request;   /* of address and Accept; empty where that does not name a result */
    struct lookup_row *memo; /* its row on this thread */
    struct waiter waiter;
    struct result *result; /* what is answered, held until the last byte has left */
    struct dispatch *dispatch;
    enum reused reused;
    bool find, keep; /* may be answered with another's result; its result may be kept */
    bool flying;     /* leads or follows */
    bool settles;    /* its result was put into the cache and is to be moved there */
    uint64_t age_ns; /* oldest result that the client takes */

    struct offload_task load; /* the loader's */
    struct preparation preparation;
    char text[]; /* target, and a copy that the url points into */
};

/** NULL if memory ran out. `target` is copied. */
struct http_request *request_create(struct service *service, struct client *client,
                                    struct MHD_Connection *connection, const char *target);
/** Gives back what is left of its blocks. NULL is allowed. */
void request_destroy(struct http_request *request);

/** First call: the headers are there. Answers at once where something is wrong with them. */
enum MHD_Result request_begin(struct http_request *request, const char *method,
                              const char *version);
/** A piece of the body; `size` receives what was left over (0). */
enum MHD_Result request_feed(struct http_request *request, const char *bytes, size_t *size);
/** The body is complete, or the request came back. */
enum MHD_Result request_continue(struct http_request *request);

/** Puts the connection aside. Only within service_enter … service_leave. */
void request_suspend(struct http_request *request);
/** Hands the request back to the listener. Any thread. */
void request_resume(struct http_request *request);

/** Notes what is wrong, to be answered as a problem (printf format). Returns `status`. */
enum kiln_status request_fault(struct http_request *request, enum kiln_status status,
                               const char *format, ...) __attribute__((format(printf, 3, 4)));

/** Whose share of the arena the request's blocks are: its key's, else its address's. */
const struct holder *request_holder(struct http_request *request);
/** A block for the request, within that share (arena_take_for). The log is told where there is no
    room. */
enum kiln_status request_take(struct http_request *request, uint64_t size, const struct block *own,
                              struct block *block);

/** Value of a request header or NULL. */
const char *request_header(const struct http_request *request, const char *name);
/** All values of a list header joined by commas; false if there is none. Cut where `size` ends. */
bool request_header_join(const struct http_request *request, const char *name, char *out,
                         size_t size);

#endif
