/*
 * flow.c: the way of one request, on its event loop: what is asked of it in which order, who
 * answers it, and what is noted when it has ended.
 *
 *   headers   the wire's rejections, framing, Host, target, route
 *   leave     pages of other sites, the key and its limits
 *   route     method, body, media type, room for the body
 *   body      into a block (request.c)
 *   answer    by the route's handler
 *
 * What is wrong before the body has come is answered at once; what is wrong in it, when it has.
 */
#include "server/flow.h"

#include "compute/core/log.h"
#include "server/access_log.h"
#include "server/api/job_kept.h"
#include "server/api/job_submit.h"
#include "server/api/metrics.h"
#include "server/http/authorization.h"
#include "server/http/cors.h"
#include "server/http/cross_site.h"
#include "server/http/hosts.h"
#include "server/http/problem.h"
#include "server/http/reply.h"
#include "server/jobs/record.h"

#include <string.h>

/* Without keys, the name that the client asked for is all that tells friends from rebound names. */
static enum kiln_status host_check(struct http_request *request) {
    const struct options *options = request->service->options;
    const char *host = request->framing.host;
    if (options->keys[0] != '\0' || hosts_allow(options->hosts, host)) {
        return KILN_OK;
    }
    return request_fault(request, KILN_MISDIRECTED,
                         "This daemon without keys answers to addresses and to localhost, not to "
                         "\"%.100s\"; --hosts names others.",
                         host);
}

/* What the wire found wrong with the head, or by now with the body. */
static enum kiln_status wire_check(struct http_request *request) {
    struct rejection rejection;
    bool passed = client_passed(request->client, request->number, &rejection);
    if (passed && rejection.status == KILN_OK) {
        return KILN_OK;
    }
    request->close = true;
    if (!passed) {
        log_error(
            "a request reached the HTTP library unchecked; is it another library than the one "
            "that kilnd was built for?");
        return request_fault(request, KILN_INTERNAL, "The request was not checked.");
    }
    return rejection.why != NULL ? request_fault(request, rejection.status, "%s", rejection.why)
                                 : request_body_above(request);
}

/* What the headers say of the request's names; of a second one nobody could say which is meant. */
static void names_read(struct http_request *request) {
    const struct framing *framing = &request->framing;
    const struct sent *parent = &framing->traceparent, *id = &framing->request_id;
    if (parent->count == 1) {
        tracing_parent_read(&request->tracing, parent->text, parent->size,
                            framing->tracestate.count > 0);
    }
    if (id->count == 1) {
        tracing_id_read(&request->tracing, id->text, id->size);
    }
}

/* Guard and target: everything that is wrong with the headers whatever the address. */
static enum kiln_status headers_check(struct http_request *request, const char *version) {
    char why[192];
    enum kiln_status status =
        framing_check(request->connection, version, &request->framing, why, sizeof why);
    size_t size = strlen(request->target);
    names_read(request);
    if (wire_check(request) != KILN_OK) {
        return request->fault;
    }
    if (status != KILN_OK) {
        request->close = true;
        return request_fault(request, status, "%s", why);
    }
    /* what is answered before the body has been read ends the connection */
    request->close = framing_has_body(&request->framing);
    if (host_check(request) != KILN_OK) {
        return request->fault;
    }
    if (size > URL_TARGET_MAX) {
        return request_fault(request, KILN_URI_TOO_LONG,
                             "The request target has %zu bytes; at most %d are read. Send "
                             "parameters as a JSON body instead.",
                             size, URL_TARGET_MAX);
    }
    status = url_parse(request->url_text, &request->url, why, sizeof why);
    if (status != KILN_OK) {
        return request_fault(request, status, "%s", why);
    }
    if (router_match(&request->url, &request->match) != KILN_OK && !request->url.all) {
        return request_fault(request, KILN_NOT_FOUND,
                             "There is no %.200s here. \"/\" lists what there is.",
                             request->target);
    }
    return KILN_OK;
}

/* Whether the route takes this method and a body like the one announced. */
static enum kiln_status route_check(struct http_request *request, const char *method) {
    const struct route *route = request->match.route;
    unsigned takes = route->methods | (route->methods & METHOD_GET ? METHOD_HEAD : 0);
    bool body = framing_has_body(&request->framing);
    uint64_t limit = request->service->limits.max_body;
    if ((takes & request->method) == 0) {
        return request_fault(request, KILN_METHOD, "%s does not take %.20s.", route->pattern,
                             method);
    }
    if (route->type != NULL && atomic_load(&request->service->draining)) {
        return request_fault(request, KILN_DRAINING, "The daemon is shutting down.");
    }
    if (body && request->method != METHOD_POST) {
        return request_fault(request, KILN_MALFORMED, "A %s request has no body here.",
                             method_name(request->method));
    }
    if (request->framing.sized && request->framing.length > limit) {
        bool vast = request->framing.length >= request->service->limits.arena;
        return request_fault(request, KILN_TOO_LARGE,
                             "The body has %llu bytes; at most %llu are taken (--max-body)%s.",
                             (unsigned long long)request->framing.length, (unsigned long long)limit,
                             vast ? ", and it does not fit into the arena (--arena)" : "");
    }
    return body ? job_media_check(request) : KILN_OK;
}

static enum MHD_Result options_reply(struct http_request *request) {
    char allow[64] = "GET, HEAD, POST, DELETE, OPTIONS";
    if (!request->url.all) {
        route_allow(request->match.route, allow, sizeof allow);
    }
    struct MHD_Response *response = response_constant("", 0);
    response_header(response, MHD_HTTP_HEADER_ALLOW, "%s", allow);
    cors_preflight(request, allow, response);
    return reply_send(request, MHD_HTTP_NO_CONTENT, NULL, response);
}

/* The library closes a connection that is answered in the first call; where no body follows, the
   second call comes at once and answers instead. */
static enum MHD_Result begin_end(struct http_request *request) {
    if (request->fault != KILN_OK && request->close) {
        return problem_send(request);
    }
    return MHD_YES;
}

static enum MHD_Result begin(struct http_request *request, const char *method,
                             const char *version) {
    request->method = method_by_name(method);
    request->match.route = NULL;
    if (headers_check(request, version) != KILN_OK) {
        return begin_end(request);
    }
    if (request->method == METHOD_OPTIONS) {
        return request->close ? options_reply(request) : MHD_YES;
    }
    if (cross_site_check(request) != KILN_OK || authorization_check(request) != KILN_OK ||
        route_check(request, method) != KILN_OK || request_expect(request) != KILN_OK) {
        return begin_end(request);
    }
    request->close = false;
    return MHD_YES;
}

static enum MHD_Result proceed(struct http_request *request) {
    if (request->stage == STAGE_ANSWERED) {
        return MHD_NO;
    }
    client_phase_set(request->client, CLIENT_WORKING);
    if (request->stage == STAGE_BODY &&
        (request->fault != KILN_OK || wire_check(request) != KILN_OK)) {
        return problem_send(request);
    }
    if (request->method == METHOD_OPTIONS) {
        return options_reply(request);
    }
    return request->match.route->handle(request);
}

static void end(struct http_request *request, bool cut, double seconds) {
    metrics_request(request->match.route, request->method, cut ? 0 : request->http, seconds);
    access_log_write(request, cut || request->http == 0, seconds);
    job_record_destroy(request->record);
    request->record = NULL;
    job_kept_end(request);
}

const struct request_flow flow = {.begin = begin, .proceed = proceed, .end = end};
