/*
 * access.h: who may ask for what, and how often.
 *
 * Without --keys everybody may ask for everything. With it, every address but the open ones
 * (health, pages, the API's description: SCOPE_OPEN in the route table) needs a key with the scope
 * of its route. The order of refusals: no key or an unknown one 401, unknown ones
 * too often from one address 429 (throttle.h), rate 429, scope 403, concurrency 429. An answer to
 * a key with limits tells them (RateLimit-Policy, RateLimit).
 *
 * Neither keys nor their hashes are ever logged; refusals are counted, by reason.
 *
 * Threads: the event loops; access_create, _reload, _destroy the main thread.
 */
#ifndef KILN_SERVER_AUTH_ACCESS_H
#define KILN_SERVER_AUTH_ACCESS_H

#include "compute/core/status.h"
#include "compute/core/text.h"
#include "server/auth/keyring.h"

#include <microhttpd.h>

struct access;
struct http_request;

/** A request's leave; zeroed: none, or none needed. */
struct pass {
    struct grant *grant;
    struct quota quota; /* of its rate, if it has one */
    bool running;       /* counts in the meter */
};

/** `guesses`: unknown keys that an address may send in a minute; 0 for no limit. NULL with `why` if
    the file cannot be used. */
struct access *access_create(const char *path, uint64_t guesses, char *why, size_t why_size);
/** No request may be left. NULL is allowed. */
void access_destroy(struct access *access);
/** Reads the file again and logs how that went. */
void access_reload(struct access *access);

/** Once the route is known, before the body is read: KILN_OK, or the fault noted. */
enum kiln_status access_check(struct http_request *request);
/** Ends the request's pass. */
void access_end(struct http_request *request);
/** Whether access_headers adds anything that is of this request alone. */
bool access_tells(const struct http_request *request);
/** Adds limits, and what a refusal says, to an answer with this status. */
void access_headers(const struct http_request *request, int http, struct MHD_Response *response);
/** Number of the key's id, for what it owns; 0 without keys. */
uint32_t access_owner(const struct http_request *request);
/** Whether the request may do to others' things what needs this scope. */
bool access_allows(const struct http_request *request, unsigned scope);

/** Metrics. NULL is allowed for `access`. */
void access_print(struct access *access, struct text *text);

#endif
