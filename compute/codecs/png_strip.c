/*
 * png_strip.c: filters and compresses a strip of rows (png_strip.h).
 *
 * A strip is small enough to stay in the second-level cache on its way, and large enough that its
 * own codes and its padding cost nothing. Thread: any.
 */
#include "compute/codecs/png_strip.h"

#include "compute/codecs/png_block.h"

#include <libdeflate.h>
#include <stdlib.h>

#define STRIP_BYTES 131070 /* of filtered rows, about; two blocks */

struct strip_scratch {
    struct block_scratch block;
    uint8_t *lines;  /* of rows_filter */
    uint8_t bytes[]; /* BLOCK_BEFORE, filtered rows, BLOCK_BEHIND; then the lines */
};

size_t strip_rows(size_t row_size) {
    size_t rows = STRIP_BYTES / (row_size + 1);
    return rows ? rows : 1;
}

uint64_t strip_bound(size_t row_size, size_t count) {
    return blocks_bound(((uint64_t)row_size + 1) * count);
}

struct strip_scratch *strip_scratch_create(const struct rows *rows) {
    size_t filtered = BLOCK_BEFORE + strip_rows(rows->size) * (rows->size + 1) + BLOCK_BEHIND;
    struct strip_scratch *scratch = malloc(sizeof *scratch + filtered + rows_scratch(rows));
    if (scratch)
        scratch->lines = scratch->bytes + filtered;
    return scratch;
}

void strip_scratch_destroy(struct strip_scratch *scratch) {
    free(scratch);
}

size_t strip_write(const struct rows *rows, size_t first, size_t count, bool last,
                   struct strip_scratch *scratch, uint32_t *adler, uint8_t *out, size_t room) {
    uint8_t *filtered = scratch->bytes + BLOCK_BEFORE;
    size_t size = count * (rows->size + 1);
    memset(scratch->bytes, 0, BLOCK_BEFORE);
    memset(filtered + size, 0, BLOCK_BEHIND);
    rows_filter(rows, first, count, scratch->lines, filtered);
    *adler = libdeflate_adler32(*adler, filtered, size);
    return blocks_write(filtered, size, last, &scratch->block, out, room);
}
