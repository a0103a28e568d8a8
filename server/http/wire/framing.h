/*
 * framing.h: how a request's body is delimited, by the headers that the library shows.
 *
 * The bytes of the head have been read strictly before (head.h); this is the second reader of what
 * both must understand alike. The library takes the first of two Content-Lengths and accepts
 * Transfer-Encoding beside it; neither comes this far, and would be refused here again.
 *
 * Threads: reentrant.
 */
#ifndef KILN_SERVER_HTTP_WIRE_FRAMING_H
#define KILN_SERVER_HTTP_WIRE_FRAMING_H

#include "compute/core/status.h"

#include <microhttpd.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** A header whose second one is not to be missed. */
struct sent {
    const char *text; /* of the last one, the library's */
    size_t size;
    int count;
};

/** How the body is delimited, and what else one walk over the headers finds. */
struct framing {
    bool chunked;
    bool sized;       /* there is a Content-Length */
    uint64_t length;  /* its value */
    bool expects;     /* the client waits for "100 Continue" */
    const char *host; /* the Host's value, the library's; NULL for none */
    struct sent traceparent, tracestate, request_id;
    struct sent origin, fetch_site, referer; /* of browsers */
};

/** True if the request announces a body of at least one byte. */
bool framing_has_body(const struct framing *framing);

/** KILN_OK, or KILN_MALFORMED with a sentence in `why`: answer it and close the connection. */
enum kiln_status framing_check(struct MHD_Connection *connection, const char *version,
                               struct framing *framing, char *why, size_t why_size);

#endif
