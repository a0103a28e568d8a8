/*
 * job_submit.h: requests that bring a job.
 *
 * read → check → plan → entity tag → submit (suspended) → answer from the arena, all but the first
 * and the last in the job's record (server/jobs/record.h). What needs no device (bad fields, 304,
 * 406) is answered without suspending, unless the body was large.
 *
 * Threads: the request's event loop.
 */
#ifndef KILN_SERVER_API_JOB_SUBMIT_H
#define KILN_SERVER_API_JOB_SUBMIT_H

#include "server/http/request/request.h"

/** Handler of every job address. */
enum MHD_Result job_submit(struct http_request *request);
/** Before the body is read: whether its media type can be; notes the fault if not. */
enum kiln_status job_media_check(struct http_request *request);

#endif
