/*
 * problem.h: error answers as RFC 9457 problem documents.
 *
 * Threads: the listener's.
 */
#ifndef KILN_SERVER_HTTP_PROBLEM_H
#define KILN_SERVER_HTTP_PROBLEM_H

#include "server/http/request/request.h"

#define PROBLEM_MEDIA "application/problem+json"

/** Answers with the request's noted fault, its detail and its complaints. */
enum MHD_Result problem_send(struct http_request *request);
/** Notes a fault and answers with it (printf format). */
enum MHD_Result problem_reply(struct http_request *request, enum kiln_status status,
                              const char *format, ...) __attribute__((format(printf, 3, 4)));

#endif
