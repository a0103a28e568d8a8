/*
 * job_list.h: the jobs that wait or run: seeing how far they are, and cancelling one.
 *
 * Threads: the listener's. None of these suspends.
 */
#ifndef KILN_SERVER_API_JOB_LIST_H
#define KILN_SERVER_API_JOB_LIST_H

#include "server/http/request/request.h"

/** GET /v1/jobs */
enum MHD_Result job_list_all(struct http_request *request);
/** GET and DELETE /v1/jobs/{id} */
enum MHD_Result job_list_one(struct http_request *request);

#endif
