/*
 * response.h: answers as the HTTP library takes them: whose their bytes are, their headers.
 *
 * Threads: any, one at a time for each; response_size_last is the thread's. Ownership: the maker's,
 * until it is sent (reply.h).
 */
#ifndef KILN_SERVER_HTTP_RESPONSE_H
#define KILN_SERVER_HTTP_RESPONSE_H

#include "compute/core/arena.h"

#include <microhttpd.h>

/** Bytes that outlive the daemon's requests. The makers answer NULL if memory ran out. */
struct MHD_Response *response_constant(const void *bytes, size_t size);
/** Bytes that are copied. */
struct MHD_Response *response_copy(const void *bytes, size_t size);
/** Bytes from malloc; freed with the response, or here where that cannot be made. */
struct MHD_Response *response_owned(char *bytes, size_t size);
/** The first `size` bytes of a block, which moves to the response and goes back to the arena when
    the last byte has left (or here where the response cannot be made). */
struct MHD_Response *response_block(struct arena *arena, struct block *block, uint64_t size);

/** `size` bytes of a file from `offset` on; the descriptor is closed with the response, or here. */
struct MHD_Response *response_file(int fd, uint64_t offset, uint64_t size);

/** Adds a header (printf format). NULL is allowed for `response`. */
void response_header(struct MHD_Response *response, const char *name, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/** Adds what keeps a browser from doing more with an answer than showing it: for pages, and for
    `policy` of its own. NULL is allowed for `response`. */
void response_secure(struct MHD_Response *response, const char *policy);

/** Bytes of the body that this thread has made last: the library does not tell, and who makes an
    answer sends it next. */
uint64_t response_size_last(void);

#endif
