/*
 * router.h: from a path to what answers it.
 *
 * The table is given by whoever knows the handlers. A route is also a row of the request metrics.
 *
 * Threads: the table is given before serving and constant afterwards.
 */
#ifndef KILN_SERVER_HTTP_REQUEST_ROUTER_H
#define KILN_SERVER_HTTP_REQUEST_ROUTER_H

#include "compute/core/status.h"
#include "server/auth/keys.h"
#include "server/http/request/url.h"

#include <microhttpd.h>

#define ROUTES_MAX   64
#define CAPTURES_MAX 8

struct http_request;
struct job_path;
struct job_type;

enum method {
    METHOD_GET = 1,
    METHOD_HEAD = 2,
    METHOD_POST = 4,
    METHOD_DELETE = 8,
    METHOD_OPTIONS = 16,
    METHOD_OTHER = 32
};
#define METHODS_COUNT 6

/** "GET" …; "other" for METHOD_OTHER. */
const char *method_name(enum method method);
enum method method_by_name(const char *name);

struct route {
    const char *pattern; /* "/problems/{slug}" */
    unsigned methods;    /* of GET, POST, DELETE; HEAD and OPTIONS follow from them */
    enum MHD_Result (*handle)(struct http_request *request);
    const struct job_type *type; /* jobs only */
    const struct job_path *path; /* jobs at an address of their own */
    enum scope scope;            /* that a key needs; SCOPE_OPEN: none is needed */
};

/** Where a request goes. `captures` are the {…} segments, decoded, NULL-terminated. */
struct match {
    const struct route *route; /* never NULL: the last one where none fits */
    const char *captures[CAPTURES_MAX + 1];
};

/** Takes a table of at most ROUTES_MAX rows, which stays the caller's. The last row is the one of
    requests that fit no other. */
void router_init(const struct route *rows, size_t count);
/** KILN_OK, or KILN_NOT_FOUND with route = the row for unmatched requests. */
enum kiln_status router_match(const struct url *url, struct match *match);
/** "GET, HEAD, OPTIONS" */
void route_allow(const struct route *route, char *out, size_t size);

/** Row `index`, or NULL past the last; the last row is the one of unmatched requests. */
const struct route *route_at(size_t index);
size_t route_index(const struct route *route);

#endif
