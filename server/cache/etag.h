/*
 * etag.h: names of results, known before a job is run.
 *
 * Both names cover the daemon's version, the kind and its version, the canonical parameters, the
 * format and the input's bytes. The entity tag is for clients (XXH3, 128 bits). Where a kind's
 * bytes are the same from every device (`portable`), so are its tags, in every daemon; else they
 * cover the device asked for and the variants of all that may run the job, so that equal tags never
 * stand for bytes of different arithmetic. Results other than JSON are deterministic and get a
 * strong tag; JSON carries timings and gets a weak one, and so does a result that variants may
 * compute differently. The digest is for our own cache: hashed with a secret, so that no client can
 * find two requests that share one; it covers the device asked for too.
 *
 * Threads: reentrant.
 */
#ifndef KILN_SERVER_CACHE_ETAG_H
#define KILN_SERVER_CACHE_ETAG_H

#include "server/cache/result.h"

#include <stdbool.h>

#define ETAG_SECRET_SIZE 192

/** Writes the tag with its quotes, and the digest; "" and an empty one where the parameters are too
    long to print. `data` is the input block or NULL; `variants` as in struct service. `secret` has
    ETAG_SECRET_SIZE random bytes; NULL: no digest is wanted. */
void etag_make(const struct job *job, const uint8_t *data, const char *variants, const void *secret,
               char *tag, size_t size, struct digest *digest);
/** Hash of some bytes with the secret. */
void etag_hash(const void *bytes, size_t size, const void *secret, struct digest *digest);
/** Weak comparison with the value of If-None-Match. */
bool etag_match(const char *header, const char *etag);

#endif
