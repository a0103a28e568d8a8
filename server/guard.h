/*
 * guard.h: refuses requests whose framing two readers could understand differently.
 *
 * The library takes the first of two Content-Lengths, accepts Transfer-Encoding beside it, ignores
 * "Content-Length : n" and lets control characters through; behind a proxy each of these is request
 * smuggling. The guard walks all headers before anything is acted on.
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

/** How the body is delimited. */
struct framing {
    bool chunked;
    bool sized;      /* there is a Content-Length */
    uint64_t length; /* its value */
    bool expects;    /* the client waits for "100 Continue" */
};

/** True if the request announces a body of at least one byte. */
bool framing_has_body(const struct framing *framing);

/** KILN_OK, or KILN_MALFORMED with a sentence in `why`: answer it and close the connection. */
enum kiln_status guard_check(struct MHD_Connection *connection, const char *version,
                             struct framing *framing, char *why, size_t why_size);

#endif
