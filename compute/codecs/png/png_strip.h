/*
 * png_strip.h: rows of a picture as compressed data, a strip at a time.
 *
 * Strips do not depend on one another but for the row above the first: they can be made in any
 * order and on several threads, and their data, one behind the other between a zlib header and the
 * Adler-32 of all rows, is one zlib stream. Indices into a palette (`indexed`) go in strips and
 * pieces as kernels/png.h has them, because devices make the same stream.
 * Threads: reentrant, one scratch a thread.
 */
#ifndef KILN_COMPUTE_CODECS_PNG_PNG_STRIP_H
#define KILN_COMPUTE_CODECS_PNG_PNG_STRIP_H

#include "compute/codecs/png/png_filter.h"

struct strip_scratch;

/** Rows of a strip of a picture with so many rows of this size; the last strip may have fewer. */
size_t strip_rows(size_t row_size, size_t height, bool indexed);

/** Bytes that strip_write can need for this many rows. */
uint64_t strip_bound(size_t row_size, size_t count, bool indexed);

/** For strips of `count` rows at most. NULL: no memory. */
struct strip_scratch *strip_scratch_create(const struct png_rows *rows, size_t count);
void strip_scratch_destroy(struct strip_scratch *scratch);

/** Writes rows [first, first + count). `indexed`: rows are indices and filtered with FILTERS_ONE.
    `last`: the stream ends here. `adler` is that of all rows before and becomes that of these, too.
    Returns the bytes written; 0 where they and 8 more, which may be overwritten, are not within
    `room`. */
size_t strip_write(const struct png_rows *rows, size_t first, size_t count, bool indexed, bool last,
                   struct strip_scratch *scratch, uint32_t *adler, uint8_t *out, size_t room);

#endif
