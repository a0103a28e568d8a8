/*
 * request.c: what a request holds, and how its body is taken in.
 */
#include "server/http/request/request.h"

#include "compute/core/log.h"
#include "compute/core/shortage.h"
#include "compute/core/text.h"
#include "server/http/connections/loop.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

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
    memset(request, 0, sizeof *request);
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
    pass_end(&request->pass);
    arena_give(request->service->arena, &request->body);
    client_phase_set(request->client, CLIENT_WAITING);
    atomic_fetch_sub(&request->service->active, 1);
    free(request->detail);
    free(request);
}

enum kiln_status request_fault_with(struct http_request *request, enum kiln_status status,
                                    const char *format, va_list arguments) {
    if (request->detail == NULL) {
        request->detail = malloc(REQUEST_DETAIL_MAX); /* few requests need it */
    }
    if (request->detail != NULL) {
        vsnprintf(request->detail, REQUEST_DETAIL_MAX, format, arguments);
    }
    request->fault = status;
    return status;
}

enum kiln_status request_fault(struct http_request *request, enum kiln_status status,
                               const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    request_fault_with(request, status, format, arguments);
    va_end(arguments);
    return status;
}

enum kiln_status request_body_above(struct http_request *request) {
    return request_fault(request, KILN_TOO_LARGE, "The body has more than %llu bytes (--max-body).",
                         (unsigned long long)request->service->limits.max_body);
}

struct address request_address(const struct http_request *request) {
    return request->client != NULL ? client_address(request->client) : address_of(NULL);
}

const struct holder *request_holder(struct http_request *request) {
    struct holder *holder = &request->holder;
    uint32_t owner = pass_owner(&request->pass);
    if (holder->name != NULL) {
        return holder;
    }
    if (owner != 0) {
        *holder = (struct holder){{owner, HOLDER_KEY}, request->pass.grant->key.id};
    } else {
        struct address address = request_address(request);
        *holder =
            (struct holder){{address.words[0], address.words[1]}, client_name(request->client)};
        if (address.words[1] == 0) {
            holder->words[1] = HOLDER_LOCAL;
        }
    }
    return holder;
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

enum kiln_status request_expect(struct http_request *request) {
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
    enum kiln_status status = arena_take_for(arena, request_holder(request), wanted, &old, &larger);
    if (status == KILN_NO_MEMORY) {
        shortage_log(arena, request_holder(request), wanted);
    }
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
    if (request->fault == KILN_OK && after > limit) {
        request_body_above(request);
    }
    if (request->fault == KILN_OK && body_grow(request, after) == KILN_OK) {
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
    struct header_list *lists;
    size_t count;
    struct text texts[REQUEST_LISTS_MAX];
};

static enum MHD_Result value_join(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value) {
    struct join *join = context;
    (void)kind;
    for (size_t i = 0; i < join->count && value != NULL; i++) {
        struct header_list *list = &join->lists[i];
        if (strcasecmp(name, list->name) == 0) {
            text_string(&join->texts[i], list->any ? "," : "");
            text_string(&join->texts[i], value);
            list->any = true;
        }
    }
    return MHD_YES;
}

void request_lists(const struct http_request *request, struct header_list *lists, size_t count) {
    struct join join = {.lists = lists, .count = count};
    for (size_t i = 0; i < count; i++) {
        lists[i].any = false;
        text_init(&join.texts[i], lists[i].text, lists[i].size);
    }
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, value_join, &join);
}
