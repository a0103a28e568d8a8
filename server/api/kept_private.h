/*
 * kept_private.h: what a request asks of the ledger, for the files that implement job_kept.h.
 *
 * Threads: the request's event loop; while the call is out, the ledger's.
 */
#ifndef KILN_SERVER_API_KEPT_PRIVATE_H
#define KILN_SERVER_API_KEPT_PRIVATE_H

#include "compute/core/text.h"
#include "server/http/reply.h"
#include "server/jobs/ledger.h"

struct kept_request {
    struct ledger_call call;
    bool asked; /* the call is out or answered */
    struct block body;
    uint64_t body_size;
    bool fits; /* what was ordered could be written down */
    uint64_t wait_s;
    char key[STORE_NAME_MAX + 1], label[STORE_NAME_MAX + 1];
    int64_t expires_s, retain_s;
    struct job_filter live; /* LIST: of jobs that wait at a connection */
    bool no_live, no_kept;  /* the filter lets none of these through */
    char params[STORE_PARAMS_MAX + 1];
};

/** Seconds of the preference `wait`; 0 where there is none. `async` tells of respond-async. */
uint64_t kept_prefer(const struct http_request *request, bool *async);
/** A kept_request for this one; NULL if memory ran out. */
struct kept_request *kept_make(struct http_request *request, enum ledger_ask ask);
/** Suspends the request and asks. */
enum MHD_Result kept_ask(struct http_request *request);
/** Whose jobs the request may see: NULL for all. */
const char *kept_owner(const struct http_request *request);
/** Answers a call that was not answered with KILN_OK. */
enum MHD_Result kept_problem(struct http_request *request, enum kiln_status status);
/** The resource with what depends on its state. */
void kept_print(struct http_request *request, const struct store_job *job, struct text *text);
enum MHD_Result kept_reply(struct http_request *request, int http);
/** The bytes of a result that the call has brought. */
enum MHD_Result kept_bytes_reply(struct http_request *request);
/** What there is to say where there is no result. */
enum MHD_Result kept_none_reply(struct http_request *request);

#endif
