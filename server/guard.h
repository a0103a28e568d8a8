/*
 * guard.h: refuses requests whose framing two readers could understand differently.
 *
 * The library takes the first of two Content-Lengths, accepts Transfer-Encoding beside it, ignores
 * "Content-Length : n" and lets control characters through; behind a proxy each of these is request
 * smuggling. The guard walks all headers before anything is acted on.
 *
 * Versions before 0.9.77 also drop a folded line into the name of the header before it, cut at NUL,
 * skip headers without a name and take a lone line feed for the end of a line. Those cannot be seen
 * in what they report, only in where it lies: their strings are parts of the bytes received, so
 * the guard asks that each begins where the one before it ended.
 *
 * Threads: reentrant.
 */
#ifndef KILN_SERVER_GUARD_H
#define KILN_SERVER_GUARD_H

#include "compute/status.h"

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

/** The request line as the library shows it: pointers into its buffer. */
struct request_line {
    const char *method, *version;
    const char *target_end; /* the NUL behind the target */
};

/** KILN_OK, or KILN_MALFORMED with a sentence in `why`: answer it and close the connection. */
enum kiln_status guard_check(struct MHD_Connection *connection, const struct request_line *line,
                             struct framing *framing, char *why, size_t why_size);

#endif
