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

void reply_media(const struct http_request *request, struct MHD_Response *response,
                 const char *media) {
    if (response != NULL) {
        MHD_add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, media);
        MHD_add_response_header(response, "X-Content-Type-Options", "nosniff");
        MHD_add_response_header(response, "Cross-Origin-Resource-Policy",
                                cross_site_policy(request->service));
    }
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
    enum MHD_Result result = reply_again(request, http, response, response_size_last());
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
            struct MHD_Response *response = response_owned(bytes, text.size);
            response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
            if (strncmp(media, "text/html", 9) == 0) {
                response_secure(response, PAGE_POLICY);
            }
            return reply_send(request, http, media, response);
        }
        free(bytes);
    }
    return reply_send(request, http, media, NULL);
}
