/*
 * access_log.h: the line that the log has of a request (--log-requests).
 *
 * Members and their order are stable: method, path (as sent, without its query), route, status,
 * bytes, ms, client, key, device, job, cache, the phases' ms, request_id, trace_id, span_id,
 * parent_span_id, trace_state; what there is none of is left out. Nothing of a query, of a body or
 * of any other header is written, and of a key only its id.
 *
 * Threads: the request's event loop.
 */
#ifndef KILN_SERVER_ACCESS_LOG_H
#define KILN_SERVER_ACCESS_LOG_H

#include "server/http/request/request.h"

/** Writes the line of a request that ends now; `cut`: before its answer had left. */
void access_log_write(const struct http_request *request, bool cut, double seconds);

#endif
