/*
 * jobs.h: requests that run a job.
 *
 * read → check → plan → entity tag → submit (suspended) → answer from the arena. What needs no
 * device (bad fields, 304, 406) is answered without suspending, unless the body was large.
 *
 * Threads: the listener's; large bodies are prepared on a loader's.
 */
#ifndef KILN_SERVER_API_JOB_SUBMIT_H
#define KILN_SERVER_API_JOB_SUBMIT_H

#include "server/http/request.h"

/** Handler of every job address. */
enum MHD_Result jobs_handle(struct http_request *request);
/** Before the body is read: whether its media type can be; notes the fault if not. */
enum kiln_status jobs_media_check(struct http_request *request);

#endif
