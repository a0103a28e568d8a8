/*
 * authorization.c: headers to a pass, and a pass to headers.
 */
#include "server/http/authorization.h"

#include "compute/core/text.h"
#include "server/http/response.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static enum MHD_Result header_see(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value) {
    struct credentials *sent = context;
    (void)kind;
    if (strcasecmp(name, MHD_HTTP_HEADER_AUTHORIZATION) == 0) {
        sent->value = value;
        sent->count++;
    }
    return MHD_YES;
}

/* Any one of these is enough. */
static unsigned scopes_wanted(const struct http_request *request) {
    unsigned scope = request->match.route->scope;
    return request->method == METHOD_DELETE && scope != SCOPE_OPEN ? SCOPE_COMPUTE | SCOPE_ADMIN
                                                                   : scope;
}

enum kiln_status authorization_check(struct http_request *request) {
    struct access *access = request->service->access;
    struct refusal refusal = {.close = false};
    if (access == NULL || request->match.route->scope == SCOPE_OPEN) {
        return KILN_OK;
    }
    struct credentials sent = {.address = request_address(request), .now_ns = request->started_ns};
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, header_see, &sent);
    enum kiln_status status =
        access_check(access, &sent, scopes_wanted(request), &request->pass, &refusal);
    if (status == KILN_OK) {
        return KILN_OK;
    }
    request->close = request->close || refusal.close;
    return request_fault(request, status, "%s", refusal.detail);
}

uint32_t authorization_owner(const struct http_request *request) {
    return pass_owner(&request->pass);
}

bool authorization_allows(const struct http_request *request, unsigned scope) {
    return access_allows(request->service->access, &request->pass, scope);
}

static void limits_headers(const struct pass *pass, struct MHD_Response *response) {
    const struct grant *grant = pass->grant;
    char bytes[128] = "";
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    if (grant->key.rate > 0) {
        text_format(&text, "\"rate\";r=%" PRIu64 ";t=%" PRIu64, pass->quota.left,
                    pass->quota.full_s);
    }
    if (grant->key.concurrency > 0) {
        uint64_t running = atomic_load_explicit(&grant->meter->running, memory_order_relaxed);
        text_format(&text, "%s\"concurrency\";r=%" PRIu64, grant->key.rate > 0 ? ", " : "",
                    running < grant->key.concurrency ? grant->key.concurrency - running : 0);
    }
    response_header(response, "RateLimit-Policy", "%s", grant->policy);
    response_header(response, "RateLimit", "%.*s", (int)text.size, bytes);
}

static void refusal_headers(const struct http_request *request, int http,
                            struct MHD_Response *response) {
    uint64_t wait = request->pass.quota.wait_s;
    bool sent = request_header(request, MHD_HTTP_HEADER_AUTHORIZATION) != NULL;
    char scopes[32];
    switch (http) {
    case MHD_HTTP_UNAUTHORIZED:
        response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"kiln\"%s",
                        sent ? ", error=\"invalid_token\"" : "");
        break;
    case MHD_HTTP_FORBIDDEN:
        scopes_print(scopes_wanted(request) & ~request->pass.grant->key.scopes, scopes,
                     sizeof scopes);
        for (char *comma = scopes; (comma = strchr(comma, ',')) != NULL;) {
            *comma = ' ';
        }
        response_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                        "Bearer realm=\"kiln\", error=\"insufficient_scope\", scope=\"%s\"",
                        scopes);
        break;
    case MHD_HTTP_TOO_MANY_REQUESTS:
        response_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "%" PRIu64, wait > 0 ? wait : 1);
        break;
    default:
        break;
    }
}

void authorization_headers(const struct http_request *request, int http,
                           struct MHD_Response *response) {
    if (request->service->access == NULL) {
        return;
    }
    if (pass_limited(&request->pass)) {
        limits_headers(&request->pass, response);
    }
    refusal_headers(request, http, response);
}
