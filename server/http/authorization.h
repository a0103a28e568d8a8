/*
 * authorization.h: the key of a request, between its headers and access.h.
 *
 * An answer to a key with limits tells them (RateLimit-Policy, RateLimit); a refusal tells what
 * would help (WWW-Authenticate, Retry-After).
 *
 * Threads: the request's event loop.
 */
#ifndef KILN_SERVER_HTTP_AUTHORIZATION_H
#define KILN_SERVER_HTTP_AUTHORIZATION_H

#include "server/http/request/request.h"

/** Once the route is known, before the body is read: KILN_OK, or the fault noted. */
enum kiln_status authorization_check(struct http_request *request);
/** Adds the limits, and what a refusal says, to an answer with this status. */
void authorization_headers(const struct http_request *request, int http,
                           struct MHD_Response *response);
/** Number of the key's id, for what it owns; 0 without keys. */
uint32_t authorization_owner(const struct http_request *request);
/** Whether the request may do to others' things what needs this scope. */
bool authorization_allows(const struct http_request *request, unsigned scope);

#endif
