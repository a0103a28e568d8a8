/*
 * multipart.h: multipart/form-data bodies (RFC 7578), read where they lie.
 *
 * The whole body is in memory, so the reader is strict and small: the boundary must start a line,
 * headers are bounded, nested multiparts are not taken apart.
 *
 * Threads: one owner. Ownership: parts point into the body, which the reader changes (a part's data
 * is ended by a NUL where the next delimiter began).
 */
#ifndef KILN_COMPUTE_SUBMISSION_MULTIPART_H
#define KILN_COMPUTE_SUBMISSION_MULTIPART_H

#include "compute/core/status.h"

#include <stdbool.h>
#include <stddef.h>

#define MULTIPART_PARTS_MAX  128
#define MULTIPART_HEADER_MAX 4096 /* bytes of one part's headers */

struct multipart {
    char *at, *end;
    char delimiter[76]; /* CR LF "--" boundary */
    size_t delimiter_size;
    int parts;
    bool done;
};

struct part {
    char name[128];
    char media[128]; /* "" where the part does not say */
    bool file;       /* it has a file name */
    char *data;      /* followed by a NUL */
    size_t size;
};

/** Finds the boundary in `content_type` and the first part. KILN_MALFORMED with `why`. */
enum kiln_status multipart_open(struct multipart *multipart, const char *content_type, char *body,
                                size_t size, char *why, size_t why_size);
/** Next part; `*found` is false at the end. KILN_MALFORMED with `why`. */
enum kiln_status multipart_next(struct multipart *multipart, struct part *part, bool *found,
                                char *why, size_t why_size);

#endif
