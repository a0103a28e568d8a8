/*
 * png_block.h: bytes as blocks of deflate, made for filtered rows.
 *
 * The only matches are runs of one byte (distance 1): behind a filter that is nearly all there is,
 * and it is found sixteen bytes at a time. Each block has a Huffman code of its own, or is stored
 * where that is smaller. The result depends on the bytes alone. Threads: reentrant, one scratch a
 * thread.
 */
#ifndef KILN_COMPUTE_CODECS_PNG_PNG_BLOCK_H
#define KILN_COMPUTE_CODECS_PNG_PNG_BLOCK_H

#include "compute/codecs/png/png_bits.h"

#include <stdbool.h>

#define BLOCK_BYTES_MAX (1u << 16) /* of input */
#define BLOCK_BEFORE    1          /* readable bytes that a block's input has before it … */
#define BLOCK_BEHIND    64         /* … and behind */

/** What one block needs to work; large, not for the stack. */
struct block_scratch {
    uint64_t repeats[BLOCK_BYTES_MAX / 64 + 1];
    uint16_t tokens[BLOCK_BYTES_MAX + 64];
    uint32_t counts[4][512];
    uint32_t entries[512];
};

/** Bytes that blocks_write can need for `size` bytes of input, BITS_SLACK included. */
uint64_t blocks_bound(uint64_t size);

/** Writes `size` ≥ 1 bytes as blocks; bytes[-1] is readable and no part of the stream, so are
    BLOCK_BEHIND bytes at the end. After the last block of the stream, or where `last` is not set
    after an empty one, the output stands at a whole byte. Returns the bytes written, 0 where they
    and BITS_SLACK more were not within `room`. */
size_t blocks_write(const uint8_t *bytes, size_t size, bool last, struct block_scratch *scratch,
                    uint8_t *out, size_t room);

#endif
