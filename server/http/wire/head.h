/*
 * head.h: the head of a request (RFC 9112 sections 2 to 6), read strictly from the bytes that came.
 *
 * Two steps. The scan takes bytes in any pieces, looks at each once and finds where the head ends;
 * lines end with CR LF, and no other control character than a tab gets past it. The reader takes a
 * whole head apart, refuses whatever two readers could understand differently, and writes it anew
 * in place, never longer than it was:
 *
 *   - one blank after the colon, none before or behind a value;
 *   - the first '?' of the target is HEAD_QUERY, which no client can send, so that the library
 *     takes no parameter apart (each would cost it memory of the connection);
 *   - no Cookie, which nothing here reads; no Expect where no body follows.
 *
 * Threads: reentrant. Ownership: everything points into the head or is constant.
 */
#ifndef KILN_SERVER_HTTP_WIRE_HEAD_H
#define KILN_SERVER_HTTP_WIRE_HEAD_H

#include "compute/core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define HEAD_SIZE_MAX                                                                              \
    24576 /* bytes as sent, and bytes as written with HEAD_FIELD_COST for each header */
#define HEAD_FIELD_COST                                                                            \
    64                 /* what the library notes of a header, in the memory where the head is      \
                        */
#define HEAD_QUERY '#' /* stands for the '?' before the query */

/** Why something is not taken; KILN_OK for nothing. */
struct rejection {
    enum kiln_status status;
    const char *why; /* a constant sentence; NULL: the body is above the limit */
};

struct head_scan {
    uint32_t size; /* bytes seen */
    uint8_t state; /* head.c's; 0 at the start */
    bool lined;    /* the request line is complete */
};

enum head_found { HEAD_MORE, HEAD_WHOLE, HEAD_WRONG };

/** Looks at more bytes. `used` receives how many of them belong to the head: all for HEAD_MORE.
    `skipped` receives how many at the front are empty lines before it. HEAD_WRONG: see `rejection`.
    After HEAD_WHOLE the scan is zeroed for the next head. */
enum head_found head_scan(struct head_scan *scan, const char *bytes, size_t size, size_t *used,
                          size_t *skipped, struct rejection *rejection);

/** A span of bytes of the head. */
struct span {
    const char *text;
    size_t size;
};

struct head {
    struct span method, target, version; /* as they are left in the head */
    struct span request_id, traceparent; /* values of the last ones; NULL for none */
    size_t size;                         /* of the head that is left, with its empty line */
    bool chunked, sized;
    uint64_t length; /* Content-Length */
    struct rejection rejection;
};

/** Reads a head that the scan has found whole, and writes it anew. False: see head->rejection, and
    the bytes are in no order; the spans are as far as they were read. */
bool head_read(char *bytes, size_t size, struct head *head);

/** A word as methods, names of headers and the like are (RFC 9110 section 5.6.2). */
bool head_token(const char *text, size_t size);

#endif
