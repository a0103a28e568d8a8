/*
 * url.h: request targets taken apart, with our own percent-decoding.
 *
 * The library's decoding is off: it would cut at %00 and let %2F make new segments. Here a path is
 * split first and decoded after, `%00` and broken escapes are refused, and lengths are bounded.
 *
 * Threads: one owner. Ownership: everything points into the text given to url_parse.
 */
#ifndef KILN_SERVER_HTTP_REQUEST_URL_H
#define KILN_SERVER_HTTP_REQUEST_URL_H

#include "compute/core/status.h"

#include <stdbool.h>
#include <stddef.h>

#define URL_TARGET_MAX   8192
#define URL_SEGMENTS_MAX 12

struct url {
    const char *segments[URL_SEGMENTS_MAX]; /* decoded: "/v1/jobs" is "v1", "jobs"; "/" is none */
    size_t segment_count;
    char *query; /* as sent, without '?'; NULL for none */
    bool all;    /* the target was "*" */
};

/** Takes apart the NUL-terminated `target`, changing it. Origin form, absolute form (the authority
    is ignored, as Host is) and "*". KILN_MALFORMED with `why`; KILN_NOT_FOUND for too many
    segments. */
enum kiln_status url_parse(char *target, struct url *url, char *why, size_t why_size);

#endif
