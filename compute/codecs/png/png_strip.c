/*
 * png_strip.c: filters and compresses a strip of rows (png_strip.h).
 *
 * A strip is small enough to stay in the second-level cache on its way, and large enough that its
 * own codes and its padding cost nothing. Thread: any.
 */
#include "compute/codecs/png/png_strip.h"

#include "compute/codecs/png/png_block.h"
#include "kernels/png.h"

#include <libdeflate.h>
#include <stdlib.h>

#define STRIP_BYTES 131070 /* of filtered rows, about; two blocks */

struct strip_scratch {
    struct block_scratch block;
    uint8_t *lines;  /* of rows_filter */
    uint8_t bytes[]; /* BLOCK_BEFORE, filtered rows, BLOCK_BEHIND; then the lines */
};

size_t strip_rows(size_t row_size, size_t height, bool indexed) {
    if (indexed)
        return png_strip_rows(row_size, height);
    size_t rows = STRIP_BYTES / (row_size + 1);
    return rows ? rows : 1;
}

uint64_t strip_bound(size_t row_size, size_t count, bool indexed) {
    uint64_t size = ((uint64_t)row_size + 1) * count, whole = size / PNG_PIECE;
    if (!indexed)
        return blocks_bound(size);
    return whole * blocks_bound(PNG_PIECE) + blocks_bound(size % PNG_PIECE);
}

struct strip_scratch *strip_scratch_create(const struct png_rows *rows, size_t count) {
    size_t filtered = BLOCK_BEFORE + count * (rows->size + 1) + BLOCK_BEHIND;
    struct strip_scratch *scratch = malloc(sizeof *scratch + filtered + rows_scratch(rows));
    if (scratch)
        scratch->lines = scratch->bytes + filtered;
    return scratch;
}

void strip_scratch_destroy(struct strip_scratch *scratch) {
    free(scratch);
}

size_t strip_write(const struct png_rows *rows, size_t first, size_t count, bool indexed, bool last,
                   struct strip_scratch *scratch, uint32_t *adler, uint8_t *out, size_t room) {
    uint8_t *filtered = scratch->bytes + BLOCK_BEFORE;
    size_t size = count * (rows->size + 1), piece = indexed ? PNG_PIECE : size, written = 0;
    memset(scratch->bytes, 0, BLOCK_BEFORE);
    memset(filtered + size, 0, BLOCK_BEHIND);
    rows_filter(rows, first, count, scratch->lines, filtered);
    *adler = libdeflate_adler32(*adler, filtered, size);
    for (size_t at = 0; at < size; at += piece) {
        size_t part = size - at < piece ? size - at : piece;
        size_t more = blocks_write(filtered + at, part, last && part == size - at, &scratch->block,
                                   out + written, room - written);
        if (more == 0)
            return 0;
        written += more;
    }
    return written;
}
