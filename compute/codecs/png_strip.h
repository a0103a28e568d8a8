/*
 * png_strip.h: rows of a picture as compressed data, a strip at a time.
 *
 * Strips do not depend on one another but for the row above the first: they can be made in any
 * order and on several threads, and their data, one behind the other between a zlib header and the
 * Adler-32 of all rows, is one zlib stream.
 * Threads: reentrant, one scratch a thread.
 */
#ifndef KILN_COMPUTE_CODECS_PNG_STRIP_H
#define KILN_COMPUTE_CODECS_PNG_STRIP_H

#include "compute/codecs/png_filter.h"

struct strip_scratch;

/** Rows of a strip: the same for every picture with rows of this size. */
size_t strip_rows(size_t row_size);

/** Bytes that strip_write can need for this many rows. */
uint64_t strip_bound(size_t row_size, size_t count);

/** NULL: no memory. */
struct strip_scratch *strip_scratch_create(const struct rows *rows);
void strip_scratch_destroy(struct strip_scratch *scratch);

/** Writes rows [first, first + count), at most strip_rows of them. `last`: the stream ends here.
    `adler` is that of all rows before and becomes that of these, too. Returns the bytes written;
    0 where they and 8 more, which may be overwritten, are not within `room`. */
size_t strip_write(const struct rows *rows, size_t first, size_t count, bool last,
                   struct strip_scratch *scratch, uint32_t *adler, uint8_t *out, size_t room);

#endif
