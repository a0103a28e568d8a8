/*
 * reply.h: answers: their bytes, their common headers, sending them.
 *
 * Threads: the listener's, on the request's turn. Ownership: reply_send takes the response.
 */
#ifndef KILN_SERVER_HTTP_REPLY_H
#define KILN_SERVER_HTTP_REPLY_H

#include "compute/core/text.h"
#include "server/http/request.h"

/** Bytes that outlive the daemon's requests. The makers answer NULL if memory ran out. */
struct MHD_Response *reply_constant(const void *bytes, size_t size);
/** Bytes that are copied. */
struct MHD_Response *reply_copy(const void *bytes, size_t size);
/** Bytes from malloc; freed with the response, or here where that cannot be made. */
struct MHD_Response *reply_owned(char *bytes, size_t size);
/** The first `size` bytes of a block, which moves to the response and goes back to the arena when
    the last byte has left (or here where the response cannot be made). */
struct MHD_Response *reply_block(struct arena *arena, struct block *block, uint64_t size);

/** Adds a header (printf format). NULL is allowed for `response`. */
void reply_header(struct MHD_Response *response, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Adds the common headers and queues the answer; `media` NULL for none. A NULL response closes the
    connection. */
enum MHD_Result reply_send(struct http_request *request, int http, const char *media,
                           struct MHD_Response *response);

/** Adds what keeps a browser from doing more with an answer than showing it: for pages, and for
    `policy` of its own. NULL is allowed for `response`. */
void reply_secure(struct MHD_Response *response, const char *policy);

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
