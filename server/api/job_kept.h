/*
 * job_kept.h: jobs that outlive their connection: Prefer: respond-async, and what is asked of them
 * later (server/jobs/ledger.h).
 *
 * All of these suspend while the store answers, and come back to the same handler.
 *
 * Threads: the request's event loop.
 */
#ifndef KILN_SERVER_API_JOB_KEPT_H
#define KILN_SERVER_API_JOB_KEPT_H

#include "server/http/request/request.h"

struct job_order;

/** Whether a request that brings a job wishes to be answered before it has ended (RFC 7240). */
bool job_kept_wanted(const struct http_request *request);
/** Reads the headers and keeps a copy of the body; or notes the fault. */
enum kiln_status job_kept_begin(struct http_request *request);
/** Takes down what was ordered, before it is read. */
void job_kept_order(struct http_request *request, const struct job_order *order);
/** Its record was checked, or it came back: goes on to the answer. */
enum MHD_Result job_kept_checked(struct http_request *request);

/** GET and DELETE /v1/jobs/{id} of a job that is kept, or of none. */
enum MHD_Result job_kept_one(struct http_request *request);
/** GET /v1/jobs/{id}/result */
enum MHD_Result job_kept_result(struct http_request *request);

/** Frees what the request has asked for. */
void job_kept_end(struct http_request *request);

#endif
