/*
 * reply.c: making and sending answers.
 */
#include "server/http/reply.h"

#include "server/http/authorization.h"
#include "server/http/cors.h"
#include "server/http/cross_site.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pages have no scripts; their one style sheet is in them, their pictures are the daemon's. */
#define PAGE_POLICY                                                                                \
    "default-src 'none'; img-src 'self'; style-src 'unsafe-inline'; base-uri 'none'; "             \
    "form-action 'none'; frame-ancestors 'none'"

#define PRINT_MAX (16u << 20)

/* Bytes of the body that this thread has made last: the library does not tell, and who makes an
   answer sends it next. */
static _Thread_local uint64_t made_size;

/* Keeps a block until the library has sent it. */
struct lease {
    struct arena *arena;
    struct block block;
};

static void lease_end(void *context) {
    struct lease *lease = context;
    arena_give(lease->arena, &lease->block);
    free(lease);
}

/* The library takes non-const pointers for buffers it only reads. */
static void *unconst(const void *bytes) {
    return (void *)(uintptr_t)bytes;
}

struct MHD_Response *reply_constant(const void *bytes, size_t size) {
    made_size = size;
    return MHD_create_response_from_buffer(size, unconst(bytes), MHD_RESPMEM_PERSISTENT);
}

struct MHD_Response *reply_copy(const void *bytes, size_t size) {
    made_size = size;
    return MHD_create_response_from_buffer(size, unconst(bytes), MHD_RESPMEM_MUST_COPY);
}

struct MHD_Response *reply_owned(char *bytes, size_t size) {
    made_size = size;
    struct MHD_Response *response =
        MHD_create_response_from_buffer(size, bytes, MHD_RESPMEM_MUST_FREE);
    if (response == NULL) {
        free(bytes);
    }
    return response;
}

struct MHD_Response *reply_block(struct arena *arena, struct block *block, uint64_t size) {
    struct lease *lease = malloc(sizeof *lease);
    if (lease == NULL) {
        arena_give(arena, block);
        return NULL;
    }
    made_size = size;
    arena_trim(arena, block, size);
    *lease = (struct lease){arena, *block};
    *block = (struct block){0, 0};
    struct MHD_Response *response = MHD_create_response_from_buffer_with_free_callback_cls(
        (size_t)size, arena_at(arena, lease->block.offset), lease_end, lease);
    if (response == NULL) {
        lease_end(lease);
    }
    return response;
}

void reply_header(struct MHD_Response *response, const char *name, const char *format, ...) {
    char value[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, sizeof value, format, arguments);
    va_end(arguments);
    if (response != NULL) {
        MHD_add_response_header(response, name, value);
    }
}

void reply_media(const struct http_request *request, struct MHD_Response *response,
                 const char *media) {
    if (response != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, media);
        MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        MHD_add_response_header(response, "Cross-Origin-Resource-Policy",
                                cross_site_policy(request->service));
    }
}

void reply_secure(struct MHD_Response *response, const char *policy) {
    reply_header(response, "Content-Security-Policy", "%s", policy);
    reply_header(response, "Referrer-Policy", "no-referrer");
}

enum MHD_Result reply_again(struct http_request *request, int http, struct MHD_Response *response,
                            uint64_t size) {
    request->stage = STAGE_ANSWERED;
    request->http = http;
    request->answer_size = request->method == METHOD_HEAD ? 0 : size;
    client_holds(request->client, request->answer_size);
    client_phase_set(request->client, CLIENT_SENDING);
    return MHD_queue_response(request->connection, (unsigned int)http, response);
}

static void names_headers(const struct tracing *tracing, struct MHD_Response *response) {
    char id[REQUEST_ID_MAX + 1], parent[TRACEPARENT_TEXT];
    tracing_id_print(tracing, id);
    traceparent_print(&tracing->trace, tracing->flags, parent);
    MHD_add_response_header(response, "X-Request-Id", id);
    MHD_add_response_header(response, "traceresponse", parent);
}

enum MHD_Result reply_send(struct http_request *request, int http, const char *media,
                           struct MHD_Response *response) {
    request->stage = STAGE_ANSWERED;
    if (response == NULL) {
        return MHD_NO;
    }
    if (media != NULL) {
        reply_media(request, response, media);
    }
    authorization_headers(request, http, response);
    cors_headers(request, response);
    names_headers(&request->tracing, response);
    if (request->close || atomic_load(&request->service->draining)) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
    }
    if (request->close) {
        client_linger(request->client);
    }
    enum MHD_Result result = reply_again(request, http, response, made_size);
    MHD_destroy_response(response);
    return result;
}

enum MHD_Result reply_print(struct http_request *request, int http, const char *media,
                            void (*print)(struct http_request *request, struct text *text)) {
    for (size_t capacity = 16384; capacity <= PRINT_MAX; capacity *= 4) {
        struct text text;
        char *bytes = malloc(capacity);
        if (bytes == NULL) {
            break;
        }
        text_init(&text, bytes, capacity);
        print(request, &text);
        if (!text.full) {
            struct MHD_Response *response = reply_owned(bytes, text.size);
            reply_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
            if (strncmp(media, "text/html", 9) == 0) {
                reply_secure(response, PAGE_POLICY);
            }
            return reply_send(request, http, media, response);
        }
        free(bytes);
    }
    return reply_send(request, http, media, NULL);
}
