/*
 * job_answer.h: from a job that has ended to an answer.
 *
 * Threads: the request's event loop.
 */
#ifndef KILN_SERVER_API_JOB_ANSWER_H
#define KILN_SERVER_API_JOB_ANSWER_H

#include "server/http/request/request.h"

/** Answers with what came of the request's record, which has ended. */
enum MHD_Result job_answer(struct http_request *request);

#endif
