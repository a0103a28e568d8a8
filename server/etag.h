/*
 * etag.h: entity tags of results, known before a job is run.
 *
 * A tag covers the daemon's version, the kind and its version, the canonical parameters, the
 * format, the kinds of device that may run the job, and the input's bytes (XXH3, 128 bits). Results
 * other than JSON are deterministic and get a strong tag; JSON carries timings and gets a weak one,
 * and so does a result that devices of different kinds may compute.
 *
 * Threads: reentrant.
 */
#ifndef KILN_SERVER_ETAG_H
#define KILN_SERVER_ETAG_H

#include "compute/job.h"

#include <stdbool.h>

/** Writes the tag with its quotes; "" where the parameters are too long to print. `data` is the
    input block or NULL; `kinds` as in struct service. */
void etag_make(const struct job *job, const uint8_t *data, const char *kinds, char *out,
               size_t size);
/** Weak comparison with the value of If-None-Match. */
bool etag_match(const char *header, const char *etag);

#endif
