/*
 * request.c: a request's life on the listener's thread.
 */
#include "server/http/request.h"

#include "compute/core/log.h"
#include "compute/core/shortage.h"
#include "server/api/job_submit.h"
#include "server/api/metrics.h"
#include "server/http/connections/loop.h"
#include "server/http/cors.h"
#include "server/http/cross_site.h"
#include "server/http/hosts.h"
#include "server/http/problem.h"
#include "server/http/reply.h"
#include "server/jobs/result_reuse.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BODY_ABOVE "The body has more than %llu bytes (--max-body)."
#define BODY_FIRST (UINT64_C(64) << 10) /* first block of a body, at most */

/* The second word of a holder: families of addresses have theirs (connection_limit.c). */
enum { HOLDER_KEY = 1, HOLDER_LOCAL = 2 };

/* The target as it was sent: the wire has hidden its query from the library, and has put the same
   mark before a target that is refused. */
static void target_copy(struct http_request *request, const char *target, size_t size) {
    request->target = memcpy(request->text, target, size);
    char *mark = strchr(request->target, HEAD_QUERY);
    if (mark == request->target) {
        request->target++;
    } else if (mark != NULL) {
        *mark = '?';
    }
    strcpy(request->text + size, request->target);
    request->url_text = request->text + size;
}

struct http_request *request_create(struct service *service, struct client *client,
                                    struct MHD_Connection *connection, const char *target) {
    size_t size = strlen(target) + 1;
    struct http_request *request = malloc(sizeof *request + 2 * size);
    if (request == NULL) {
        return NULL;
    }
    /* the complaints' rows need no zeroing */
    memset(request, 0, offsetof(struct http_request, complaints));
    request->complaints.count = 0;
    memset(request->etag, 0, sizeof *request - offsetof(struct http_request, etag));
    request->loop = loop_current();
    request->service = service;
    request->client = client;
    request->connection = connection;
    request->started_ns = clock_ns();
    tracing_begin(&request->tracing);
    request->number = client_request(client);
    target_copy(request, target, size);
    atomic_fetch_add(&service->active, 1);
    client_phase_set(client, CLIENT_READING);
    return request;
}

void request_destroy(struct http_request *request) {
    if (request == NULL) {
        return;
    }
    result_reuse_end(request);
    access_end(request);
    arena_give(request->service->arena, &request->body);
    arena_give(request->service->arena, &request->job.body);
    arena_give(request->service->arena, &request->job.result);
    client_phase_set(request->client, CLIENT_WAITING);
    atomic_fetch_sub(&request->service->active, 1);
    free(request);
}

enum kiln_status request_fault(struct http_request *request, enum kiln_status status,
                               const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(request->detail, sizeof request->detail, format, arguments);
    va_end(arguments);
    request->fault = status;
    request->outcome = OUTCOME_FAULT;
    return status;
}

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
    return rejection.why != NULL
               ? request_fault(request, rejection.status, "%s", rejection.why)
               : request_fault(request, rejection.status, BODY_ABOVE,
                               (unsigned long long)request->service->limits.max_body);
}

/* Guard and target: everything that is wrong with the headers whatever the address. */
static enum kiln_status headers_check(struct http_request *request, const char *version) {
    char why[192];
    enum kiln_status status =
        framing_check(request->connection, version, &request->framing, why, sizeof why);
    size_t size = strlen(request->target);
    tracing_read(request);
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
static enum kiln_status request_check(struct http_request *request, const char *method) {
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
    return body ? jobs_media_check(request) : KILN_OK;
}

const struct holder *request_holder(struct http_request *request) {
    struct holder *holder = &request->job.holder;
    uint32_t owner = access_owner(request);
    if (holder->name != NULL) {
        return holder;
    }
    if (owner != 0) {
        *holder = (struct holder){{owner, HOLDER_KEY}, request->pass.grant->key.id};
    } else {
        struct address address = {{0, 0}};
        if (request->client != NULL) {
            address = client_address(request->client);
        }
        *holder =
            (struct holder){{address.words[0], address.words[1]}, client_name(request->client)};
        if (address.words[1] == 0) {
            holder->words[1] = HOLDER_LOCAL;
        }
    }
    return holder;
}

enum kiln_status request_take(struct http_request *request, uint64_t size, const struct block *own,
                              struct block *block) {
    struct arena *arena = request->service->arena;
    const struct holder *holder = request_holder(request);
    enum kiln_status status = arena_take_for(arena, holder, size, own, block);
    if (status == KILN_NO_MEMORY) {
        shortage_log(arena, holder, size);
    }
    return status;
}

/* Notes why a body of so many bytes finds no room. */
static enum kiln_status body_refuse(struct http_request *request, enum kiln_status status,
                                    uint64_t size) {
    if (status == KILN_JOB_TOO_LARGE) {
        return request_fault(request, KILN_TOO_LARGE,
                             "A body of %llu bytes does not fit into the arena (--arena).",
                             (unsigned long long)size);
    }
    return request_fault(request, status,
                         "There is no room for this body of %llu bytes now: the arena is taken, "
                         "or this client's share of it.",
                         (unsigned long long)size);
}

/* Whether there would be room for the body that the head announces. Nothing is taken for it. */
static enum kiln_status body_expect(struct http_request *request) {
    struct arena *arena = request->service->arena;
    uint64_t size = request->framing.length;
    if (!request->framing.sized || size == 0) {
        return KILN_OK;
    }
    enum kiln_status status = arena_probe(arena, request_holder(request), size + 1);
    if (status == KILN_NO_MEMORY) {
        shortage_log(arena, request_holder(request), size + 1);
    }
    return status == KILN_OK ? KILN_OK : body_refuse(request, status, size);
}

static enum MHD_Result options_reply(struct http_request *request) {
    char allow[64] = "GET, HEAD, POST, DELETE, OPTIONS";
    if (!request->url.all) {
        route_allow(request->match.route, allow, sizeof allow);
    }
    struct MHD_Response *response = reply_constant("", 0);
    reply_header(response, MHD_HTTP_HEADER_ALLOW, "%s", allow);
    cors_preflight(request, allow, response);
    return reply_send(request, MHD_HTTP_NO_CONTENT, NULL, response);
}

/* The library closes a connection that is answered in the first call; where no body follows, the
   second call comes at once and answers instead. */
static enum MHD_Result begin_end(struct http_request *request) {
    if (request->outcome == OUTCOME_FAULT && request->close) {
        return problem_send(request);
    }
    return MHD_YES;
}

enum MHD_Result request_begin(struct http_request *request, const char *method,
                              const char *version) {
    request->stage = STAGE_BODY;
    request->method = method_by_name(method);
    request->match.route = NULL;
    if (headers_check(request, version) != KILN_OK) {
        return begin_end(request);
    }
    if (request->method == METHOD_OPTIONS) {
        return request->close ? options_reply(request) : MHD_YES;
    }
    if (cross_site_check(request) != KILN_OK || access_check(request) != KILN_OK ||
        request_check(request, method) != KILN_OK || body_expect(request) != KILN_OK) {
        return begin_end(request);
    }
    request->close = false;
    return MHD_YES;
}

/* Makes room for `size` bytes of the body, and one more, so that text in it can be ended by a NUL
   in place. What is taken doubles, up to what can come: longer where it lies if that is possible,
   else elsewhere. */
static enum kiln_status body_grow(struct http_request *request, uint64_t size) {
    struct arena *arena = request->service->arena;
    struct block old = request->body, larger;
    if (size < old.size) {
        return KILN_OK;
    }
    uint64_t most =
        (request->framing.sized ? request->framing.length : request->service->limits.max_body) + 1;
    uint64_t wanted = old.size * 2 > BODY_FIRST ? old.size * 2 : BODY_FIRST;
    wanted = wanted > size ? wanted : size + 1;
    wanted = wanted < most ? wanted : most;
    if (old.size > 0 && arena_extend(arena, &request->body, wanted)) {
        client_holds(request->client, request->body.size);
        return KILN_OK;
    }
    enum kiln_status status = request_take(request, wanted, &old, &larger);
    if (status != KILN_OK) {
        return body_refuse(request, status, most - 1);
    }
    if (old.size > 0) {
        memcpy(arena_at(arena, larger.offset), arena_at(arena, old.offset),
               (size_t)request->body_size);
    }
    arena_give(arena, &old);
    request->body = larger;
    client_holds(request->client, larger.size);
    return KILN_OK;
}

enum MHD_Result request_feed(struct http_request *request, const char *bytes, size_t *size) {
    uint64_t limit = request->service->limits.max_body;
    uint64_t after = request->body_size + *size;
    if (request->outcome != OUTCOME_FAULT && after > limit) {
        request_fault(request, KILN_TOO_LARGE, BODY_ABOVE, (unsigned long long)limit);
    }
    if (request->outcome != OUTCOME_FAULT && body_grow(request, after) == KILN_OK) {
        memcpy((char *)arena_at(request->service->arena, request->body.offset) + request->body_size,
               bytes, *size);
        request->body_size = after;
        *size = 0;
        return MHD_YES;
    }
    /* The library takes no answer in the middle of a body: throw the rest away, within bounds. */
    arena_give(request->service->arena, &request->body);
    client_holds(request->client, 0);
    request->discarded += *size;
    *size = 0;
    return request->discarded > limit ? MHD_NO : MHD_YES;
}

enum MHD_Result request_continue(struct http_request *request) {
    if (request->stage == STAGE_ANSWERED) {
        return MHD_NO;
    }
    client_phase_set(request->client, CLIENT_WORKING);
    if (request->stage == STAGE_BODY &&
        (request->outcome == OUTCOME_FAULT || wire_check(request) != KILN_OK)) {
        return problem_send(request);
    }
    if (request->method == METHOD_OPTIONS) {
        return options_reply(request);
    }
    return request->match.route->handle(request);
}

void request_suspend(struct http_request *request) {
    request->stage = STAGE_AWAY;
    MHD_suspend_connection(request->connection);
}

void request_resume(struct http_request *request) {
    struct loop *loop = request->loop; /* the request may be gone after the next line */
    MHD_resume_connection(request->connection);
    loop_poke(loop);
}

const char *request_header(const struct http_request *request, const char *name) {
    return MHD_lookup_connection_value(request->connection, MHD_HEADER_KIND, name);
}

struct join {
    const char *name;
    struct text text;
    bool any;
};

static enum MHD_Result value_join(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value) {
    struct join *join = context;
    (void)kind;
    if (strcasecmp(name, join->name) == 0 && value != NULL) {
        text_string(&join->text, join->any ? "," : "");
        text_string(&join->text, value);
        join->any = true;
    }
    return MHD_YES;
}

bool request_header_join(const struct http_request *request, const char *name, char *out,
                         size_t size) {
    struct join join = {.name = name};
    text_init(&join.text, out, size);
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, value_join, &join);
    return join.any;
}
