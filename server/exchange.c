/*
 * exchange.c: a request's life on the listener's thread.
 */
#include "server/exchange.h"

#include "compute/log.h"
#include "compute/shortage.h"
#include "server/cors.h"
#include "server/hosts.h"
#include "server/jobs.h"
#include "server/loop.h"
#include "server/metrics.h"
#include "server/problem.h"
#include "server/reply.h"
#include "server/reuse.h"
#include "server/sites.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define BODY_ABOVE "The body has more than %llu bytes (--max-body)."
#define BODY_FIRST (UINT64_C(64) << 10) /* first block of a body, at most */

/* The second word of a holder: families of addresses have theirs (addresses.c). */
enum { HOLDER_KEY = 1, HOLDER_LOCAL = 2 };

/* The target as it was sent: the wire has hidden its query from the library, and has put the same
   mark before a target that is refused. */
static void target_copy(struct exchange *exchange, const char *target, size_t size) {
    exchange->target = memcpy(exchange->text, target, size);
    char *mark = strchr(exchange->target, HEAD_QUERY);
    if (mark == exchange->target) {
        exchange->target++;
    } else if (mark != NULL) {
        *mark = '?';
    }
    strcpy(exchange->text + size, exchange->target);
    exchange->url_text = exchange->text + size;
}

struct exchange *exchange_create(struct service *service, struct client *client,
                                 struct MHD_Connection *connection, const char *target) {
    size_t size = strlen(target) + 1;
    struct exchange *exchange = malloc(sizeof *exchange + 2 * size);
    if (exchange == NULL) {
        return NULL;
    }
    /* the complaints' rows need no zeroing */
    memset(exchange, 0, offsetof(struct exchange, complaints));
    exchange->complaints.count = 0;
    memset(exchange->etag, 0, sizeof *exchange - offsetof(struct exchange, etag));
    exchange->loop = loop_current();
    exchange->service = service;
    exchange->client = client;
    exchange->connection = connection;
    exchange->started_ns = clock_ns();
    tracing_begin(&exchange->tracing);
    exchange->number = client_request(client);
    target_copy(exchange, target, size);
    atomic_fetch_add(&service->active, 1);
    client_phase_set(client, CLIENT_READING);
    return exchange;
}

void exchange_destroy(struct exchange *exchange) {
    if (exchange == NULL) {
        return;
    }
    reuse_end(exchange);
    access_end(exchange);
    arena_give(exchange->service->arena, &exchange->body);
    arena_give(exchange->service->arena, &exchange->job.body);
    arena_give(exchange->service->arena, &exchange->job.result);
    client_phase_set(exchange->client, CLIENT_WAITING);
    atomic_fetch_sub(&exchange->service->active, 1);
    free(exchange);
}

enum kiln_status exchange_fault(struct exchange *exchange, enum kiln_status status,
                                const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(exchange->detail, sizeof exchange->detail, format, arguments);
    va_end(arguments);
    exchange->fault = status;
    exchange->outcome = OUTCOME_FAULT;
    return status;
}

/* Without keys, the name that the client asked for is all that tells friends from rebound names. */
static enum kiln_status host_check(struct exchange *exchange) {
    const struct options *options = exchange->service->options;
    const char *host = exchange->framing.host;
    if (options->keys[0] != '\0' || hosts_allow(options->hosts, host)) {
        return KILN_OK;
    }
    return exchange_fault(exchange, KILN_MISDIRECTED,
                          "This daemon without keys answers to addresses and to localhost, not to "
                          "\"%.100s\"; --hosts names others.",
                          host);
}

/* What the wire found wrong with the head, or by now with the body. */
static enum kiln_status wire_check(struct exchange *exchange) {
    struct rejection rejection;
    bool passed = client_passed(exchange->client, exchange->number, &rejection);
    if (passed && rejection.status == KILN_OK) {
        return KILN_OK;
    }
    exchange->close = true;
    if (!passed) {
        log_error(
            "a request reached the HTTP library unchecked; is it another library than the one "
            "that kilnd was built for?");
        return exchange_fault(exchange, KILN_INTERNAL, "The request was not checked.");
    }
    return rejection.why != NULL
               ? exchange_fault(exchange, rejection.status, "%s", rejection.why)
               : exchange_fault(exchange, rejection.status, BODY_ABOVE,
                                (unsigned long long)exchange->service->limits.max_body);
}

/* Guard and target: everything that is wrong with the headers whatever the address. */
static enum kiln_status headers_check(struct exchange *exchange, const char *version) {
    char why[192];
    enum kiln_status status =
        guard_check(exchange->connection, version, &exchange->framing, why, sizeof why);
    size_t size = strlen(exchange->target);
    tracing_read(exchange);
    if (wire_check(exchange) != KILN_OK) {
        return exchange->fault;
    }
    if (status != KILN_OK) {
        exchange->close = true;
        return exchange_fault(exchange, status, "%s", why);
    }
    /* what is answered before the body has been read ends the connection */
    exchange->close = framing_has_body(&exchange->framing);
    if (host_check(exchange) != KILN_OK) {
        return exchange->fault;
    }
    if (size > URL_TARGET_MAX) {
        return exchange_fault(exchange, KILN_URI_TOO_LONG,
                              "The request target has %zu bytes; at most %d are read. Send "
                              "parameters as a JSON body instead.",
                              size, URL_TARGET_MAX);
    }
    status = url_parse(exchange->url_text, &exchange->url, why, sizeof why);
    if (status != KILN_OK) {
        return exchange_fault(exchange, status, "%s", why);
    }
    if (router_match(&exchange->url, &exchange->match) != KILN_OK && !exchange->url.all) {
        return exchange_fault(exchange, KILN_NOT_FOUND,
                              "There is no %.200s here. \"/\" lists what there is.",
                              exchange->target);
    }
    return KILN_OK;
}

/* Whether the route takes this method and a body like the one announced. */
static enum kiln_status request_check(struct exchange *exchange, const char *method) {
    const struct route *route = exchange->match.route;
    unsigned takes = route->methods | (route->methods & METHOD_GET ? METHOD_HEAD : 0);
    bool body = framing_has_body(&exchange->framing);
    uint64_t limit = exchange->service->limits.max_body;
    if ((takes & exchange->method) == 0) {
        return exchange_fault(exchange, KILN_METHOD, "%s does not take %.20s.", route->pattern,
                              method);
    }
    if (route->type != NULL && atomic_load(&exchange->service->draining)) {
        return exchange_fault(exchange, KILN_DRAINING, "The daemon is shutting down.");
    }
    if (body && exchange->method != METHOD_POST) {
        return exchange_fault(exchange, KILN_MALFORMED, "A %s request has no body here.",
                              method_name(exchange->method));
    }
    if (exchange->framing.sized && exchange->framing.length > limit) {
        bool vast = exchange->framing.length >= exchange->service->limits.arena;
        return exchange_fault(exchange, KILN_TOO_LARGE,
                              "The body has %llu bytes; at most %llu are taken (--max-body)%s.",
                              (unsigned long long)exchange->framing.length,
                              (unsigned long long)limit,
                              vast ? ", and it does not fit into the arena (--arena)" : "");
    }
    return body ? jobs_media_check(exchange) : KILN_OK;
}

const struct holder *exchange_holder(struct exchange *exchange) {
    struct holder *holder = &exchange->job.holder;
    uint32_t owner = access_owner(exchange);
    if (holder->name != NULL) {
        return holder;
    }
    if (owner != 0) {
        *holder = (struct holder){{owner, HOLDER_KEY}, exchange->pass.grant->key.id};
    } else {
        struct address address = {{0, 0}};
        if (exchange->client != NULL) {
            address = client_address(exchange->client);
        }
        *holder =
            (struct holder){{address.words[0], address.words[1]}, client_name(exchange->client)};
        if (address.words[1] == 0) {
            holder->words[1] = HOLDER_LOCAL;
        }
    }
    return holder;
}

enum kiln_status exchange_take(struct exchange *exchange, uint64_t size, const struct block *own,
                               struct block *block) {
    struct arena *arena = exchange->service->arena;
    const struct holder *holder = exchange_holder(exchange);
    enum kiln_status status = arena_take_for(arena, holder, size, own, block);
    if (status == KILN_NO_MEMORY) {
        shortage_log(arena, holder, size);
    }
    return status;
}

/* Notes why a body of so many bytes finds no room. */
static enum kiln_status body_refuse(struct exchange *exchange, enum kiln_status status,
                                    uint64_t size) {
    if (status == KILN_JOB_TOO_LARGE) {
        return exchange_fault(exchange, KILN_TOO_LARGE,
                              "A body of %llu bytes does not fit into the arena (--arena).",
                              (unsigned long long)size);
    }
    return exchange_fault(exchange, status,
                          "There is no room for this body of %llu bytes now: the arena is taken, "
                          "or this client's share of it.",
                          (unsigned long long)size);
}

/* Whether there would be room for the body that the head announces. Nothing is taken for it. */
static enum kiln_status body_expect(struct exchange *exchange) {
    struct arena *arena = exchange->service->arena;
    uint64_t size = exchange->framing.length;
    if (!exchange->framing.sized || size == 0) {
        return KILN_OK;
    }
    enum kiln_status status = arena_probe(arena, exchange_holder(exchange), size + 1);
    if (status == KILN_NO_MEMORY) {
        shortage_log(arena, exchange_holder(exchange), size + 1);
    }
    return status == KILN_OK ? KILN_OK : body_refuse(exchange, status, size);
}

static enum MHD_Result options_reply(struct exchange *exchange) {
    char allow[64] = "GET, HEAD, POST, DELETE, OPTIONS";
    if (!exchange->url.all) {
        route_allow(exchange->match.route, allow, sizeof allow);
    }
    struct MHD_Response *response = reply_constant("", 0);
    reply_header(response, MHD_HTTP_HEADER_ALLOW, "%s", allow);
    cors_preflight(exchange, allow, response);
    return reply_send(exchange, MHD_HTTP_NO_CONTENT, NULL, response);
}

/* The library closes a connection that is answered in the first call; where no body follows, the
   second call comes at once and answers instead. */
static enum MHD_Result begin_end(struct exchange *exchange) {
    if (exchange->outcome == OUTCOME_FAULT && exchange->close) {
        return problem_send(exchange);
    }
    return MHD_YES;
}

enum MHD_Result exchange_begin(struct exchange *exchange, const char *method, const char *version) {
    exchange->stage = STAGE_BODY;
    exchange->method = method_by_name(method);
    exchange->match.route = NULL;
    if (headers_check(exchange, version) != KILN_OK) {
        return begin_end(exchange);
    }
    if (exchange->method == METHOD_OPTIONS) {
        return exchange->close ? options_reply(exchange) : MHD_YES;
    }
    if (sites_check(exchange) != KILN_OK || access_check(exchange) != KILN_OK ||
        request_check(exchange, method) != KILN_OK || body_expect(exchange) != KILN_OK) {
        return begin_end(exchange);
    }
    exchange->close = false;
    return MHD_YES;
}

/* Makes room for `size` bytes of the body, and one more, so that text in it can be ended by a NUL
   in place. What is taken doubles, up to what can come: longer where it lies if that is possible,
   else elsewhere. */
static enum kiln_status body_grow(struct exchange *exchange, uint64_t size) {
    struct arena *arena = exchange->service->arena;
    struct block old = exchange->body, larger;
    if (size < old.size) {
        return KILN_OK;
    }
    uint64_t most =
        (exchange->framing.sized ? exchange->framing.length : exchange->service->limits.max_body) +
        1;
    uint64_t wanted = old.size * 2 > BODY_FIRST ? old.size * 2 : BODY_FIRST;
    wanted = wanted > size ? wanted : size + 1;
    wanted = wanted < most ? wanted : most;
    if (old.size > 0 && arena_extend(arena, &exchange->body, wanted)) {
        client_holds(exchange->client, exchange->body.size);
        return KILN_OK;
    }
    enum kiln_status status = exchange_take(exchange, wanted, &old, &larger);
    if (status != KILN_OK) {
        return body_refuse(exchange, status, most - 1);
    }
    if (old.size > 0) {
        memcpy(arena_at(arena, larger.offset), arena_at(arena, old.offset),
               (size_t)exchange->body_size);
    }
    arena_give(arena, &old);
    exchange->body = larger;
    client_holds(exchange->client, larger.size);
    return KILN_OK;
}

enum MHD_Result exchange_feed(struct exchange *exchange, const char *bytes, size_t *size) {
    uint64_t limit = exchange->service->limits.max_body;
    uint64_t after = exchange->body_size + *size;
    if (exchange->outcome != OUTCOME_FAULT && after > limit) {
        exchange_fault(exchange, KILN_TOO_LARGE, BODY_ABOVE, (unsigned long long)limit);
    }
    if (exchange->outcome != OUTCOME_FAULT && body_grow(exchange, after) == KILN_OK) {
        memcpy((char *)arena_at(exchange->service->arena, exchange->body.offset) +
                   exchange->body_size,
               bytes, *size);
        exchange->body_size = after;
        *size = 0;
        return MHD_YES;
    }
    /* The library takes no answer in the middle of a body: throw the rest away, within bounds. */
    arena_give(exchange->service->arena, &exchange->body);
    client_holds(exchange->client, 0);
    exchange->discarded += *size;
    *size = 0;
    return exchange->discarded > limit ? MHD_NO : MHD_YES;
}

enum MHD_Result exchange_continue(struct exchange *exchange) {
    if (exchange->stage == STAGE_ANSWERED) {
        return MHD_NO;
    }
    client_phase_set(exchange->client, CLIENT_WORKING);
    if (exchange->stage == STAGE_BODY &&
        (exchange->outcome == OUTCOME_FAULT || wire_check(exchange) != KILN_OK)) {
        return problem_send(exchange);
    }
    if (exchange->method == METHOD_OPTIONS) {
        return options_reply(exchange);
    }
    return exchange->match.route->handle(exchange);
}

void exchange_suspend(struct exchange *exchange) {
    exchange->stage = STAGE_AWAY;
    MHD_suspend_connection(exchange->connection);
}

void exchange_resume(struct exchange *exchange) {
    struct loop *loop = exchange->loop; /* the exchange may be gone after the next line */
    MHD_resume_connection(exchange->connection);
    loop_poke(loop);
}

const char *exchange_header(const struct exchange *exchange, const char *name) {
    return MHD_lookup_connection_value(exchange->connection, MHD_HEADER_KIND, name);
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

bool exchange_header_join(const struct exchange *exchange, const char *name, char *out,
                          size_t size) {
    struct join join = {.name = name};
    text_init(&join.text, out, size);
    MHD_get_connection_values(exchange->connection, MHD_HEADER_KIND, value_join, &join);
    return join.any;
}
