/*
 * base64.h: RFC 4648 base64, strict (padding required, no line breaks; "data:…;base64," prefixes
 * allowed). Threads: reentrant.
 */
#ifndef KILN_COMPUTE_CODECS_BASE64_H
#define KILN_COMPUTE_CODECS_BASE64_H

#include "compute/core/status.h"

#include <stddef.h>
#include <stdint.h>

/** Decodes `size` characters into `out` (capacity at least size/4*3); KILN_MALFORMED if not base64,
    KILN_TOO_LARGE if it does not fit. `out` may be the text itself, which is then overwritten. */
enum kiln_status base64_decode(const char *text, size_t size, uint8_t *out, size_t capacity,
                               size_t *decoded);

#endif
