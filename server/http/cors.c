/*
 * cors.c: the list of origins, and the headers.
 */
#include "server/http/cors.h"

#include "compute/core/words.h"
#include "server/http/request/request.h"
#include "server/http/response.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PREFLIGHT_SECONDS 7200 /* as long as any browser keeps one */

struct cors {
    bool any;
    size_t count;
    const char *origins[CORS_ORIGINS_MAX];
    size_t used; /* bytes of text */
    char text[CORS_LIST_MAX];
};

/* scheme://host[:port] as browsers write it: lower case, nothing behind it. */
static bool origin_valid(const char *origin) {
    static const char host[] = "abcdefghijklmnopqrstuvwxyz0123456789.-_[]:";
    size_t scheme = strspn(origin, "abcdefghijklmnopqrstuvwxyz0123456789+-.");
    const char *rest = origin + scheme;
    return scheme > 0 && strncmp(rest, "://", 3) == 0 && rest[3] != '\0' && rest[3] != ':' &&
           rest[3 + strspn(rest + 3, host)] == '\0' && rest[strlen(rest) - 1] != ':';
}

static bool origin_add(struct cors *cors, const struct words *item, char *why, size_t why_size) {
    char *origin = cors->text + cors->used;
    snprintf(origin, sizeof cors->text - cors->used, "%.*s", (int)item->size, item->word);
    cors->used += item->size + 1; /* no more than the list, which fits */
    if (strcmp(origin, "*") == 0 && cors->count == 0 && item->rest == NULL) {
        cors->any = true;
    } else if (!origin_valid(origin)) {
        snprintf(why, why_size,
                 "--cors-origin: \"%.80s\" is not an origin: scheme://host or "
                 "scheme://host:port in lower case; or * alone",
                 origin);
        return false;
    } else if (cors->count == CORS_ORIGINS_MAX) {
        snprintf(why, why_size, "--cors-origin: at most %d origins", CORS_ORIGINS_MAX);
        return false;
    } else {
        cors->origins[cors->count++] = origin;
    }
    return true;
}

struct cors *cors_create(const char *list, char *why, size_t why_size) {
    struct cors *cors = calloc(1, sizeof *cors);
    if (cors == NULL || strlen(list) >= sizeof cors->text) {
        snprintf(why, why_size, "--cors-origin: %s", cors == NULL ? "no memory" : "too long");
        free(cors);
        return NULL;
    }
    for (struct words items = words_of(list, strlen(list)); words_next(&items);) {
        if (!origin_add(cors, &items, why, why_size)) {
            free(cors);
            return NULL;
        }
    }
    return cors;
}

void cors_destroy(struct cors *cors) {
    free(cors);
}

bool cors_allows(const struct cors *cors, const char *origin) {
    bool found = cors->any;
    for (size_t i = 0; i < cors->count && !found; i++) {
        found = strcmp(cors->origins[i], origin) == 0;
    }
    return found;
}

/* True where the asking page may read the answer. */
static bool origin_header(const struct http_request *request, struct MHD_Response *response) {
    const struct cors *cors = request->service->cors;
    const char *origin = request_header(request, MHD_HTTP_HEADER_ORIGIN);
    if (cors->any) {
        response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, "*");
        return true;
    }
    /* without an Origin too: caches must not give that answer to a page */
    response_header(response, MHD_HTTP_HEADER_VARY, "Origin");
    if (origin == NULL || !cors_allows(cors, origin)) {
        return false;
    }
    response_header(response, MHD_HTTP_HEADER_ACCESS_CONTROL_ALLOW_ORIGIN, "%s", origin);
    return true;
}

void cors_headers(const struct http_request *request, struct MHD_Response *response) {
    bool preflight = request->method == METHOD_OPTIONS; /* says it by itself */
    if (request->service->cors == NULL || preflight || !origin_header(request, response)) {
        return;
    }
    response_header(response, "Access-Control-Expose-Headers",
                    "Server-Timing, ETag, Age, Cache-Status, Retry-After, Kiln-Device, "
                    "Kiln-Input, Kiln-Job, Kiln-Joules-Estimate, Kiln-Precision, Kiln-Clamped, "
                    "Kiln-Scale, Kiln-Converged, Kiln-Convergence, RateLimit, RateLimit-Policy, "
                    "WWW-Authenticate, X-Request-Id, Traceresponse, Location, Preference-Applied, "
                    "Idempotency-Replayed, Repr-Digest");
    /* browsers show a page of another origin the timings only with this */
    const char *origin = request_header(request, MHD_HTTP_HEADER_ORIGIN);
    if (origin != NULL) {
        response_header(response, "Timing-Allow-Origin", "%s", origin);
    }
}

void cors_preflight(const struct http_request *request, const char *methods,
                    struct MHD_Response *response) {
    if (request->service->cors == NULL || !origin_header(request, response)) {
        return;
    }
    response_header(response, "Access-Control-Allow-Methods", "%s", methods);
    response_header(
        response, "Access-Control-Allow-Headers",
        "Authorization, Content-Type, Accept, Cache-Control, If-None-Match, Traceparent, "
        "Tracestate, X-Request-Id, Prefer, Idempotency-Key, Range, If-Range, Kiln-Label, "
        "Kiln-Expires, Kiln-Retain");
    response_header(response, "Access-Control-Max-Age", "%d", PREFLIGHT_SECONDS);
}
