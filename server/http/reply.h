/*
 * reply.h: sending answers with the headers that all have in common.
 *
 * Threads: the listener's, on the request's turn. Ownership: reply_send takes the response.
 */
#ifndef KILN_SERVER_HTTP_REPLY_H
#define KILN_SERVER_HTTP_REPLY_H

#include "compute/core/text.h"
#include "server/http/request/request.h"
#include "server/http/response.h"

/** Adds the common headers and queues the answer; `media` NULL for none. A NULL response closes the
    connection. */
enum MHD_Result reply_send(struct http_request *request, int http, const char *media,
                           struct MHD_Response *response);

/** Queues an answer with a body of `size` bytes that is complete, common headers included, and
   stays the caller's. */
enum MHD_Result reply_again(struct http_request *request, int http, struct MHD_Response *response,
                            uint64_t size);
/** The headers that come with a media type. */
void reply_media(const struct http_request *request, struct MHD_Response *response,
                 const char *media);

/** Prints with `print` into a buffer that is made larger until the text fits (at most 16 MiB) and
    sends it. */
enum MHD_Result reply_print(struct http_request *request, int http, const char *media,
                            void (*print)(struct http_request *request, struct text *text));

#endif
