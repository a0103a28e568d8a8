/*
 * cors.h: which web pages of other origins may read answers (CORS), by an allow-list.
 *
 * `--cors-origin https://a.example,http://127.0.0.1:3000` names them; "*" alone lets any page read.
 * Credentials that browsers add by themselves (cookies, client certificates) are never allowed: the
 * daemon has none, keys are sent by the page's own code.
 *
 * Threads: cors_create and _destroy the main thread; the others the event loops, on constant data.
 */
#ifndef KILN_SERVER_HTTP_CORS_H
#define KILN_SERVER_HTTP_CORS_H

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>

#define CORS_ORIGINS_MAX 32
#define CORS_LIST_MAX    1024

struct cors;
struct http_request;

/** Reads a list of origins. NULL with `why`. */
struct cors *cors_create(const char *list, char *why, size_t why_size);
/** NULL is allowed. */
void cors_destroy(struct cors *cors);
/** Whether the list has this origin, byte for byte. */
bool cors_allows(const struct cors *cors, const char *origin);

/** Adds what lets the asking page read the answer. */
void cors_headers(const struct http_request *request, struct MHD_Response *response);
/** Adds the answer to a preflight; `methods` as in Allow. */
void cors_preflight(const struct http_request *request, const char *methods,
                    struct MHD_Response *response);

#endif
