/*
 * png.h: arguments of the kernel `png`, a picture of palette indices to the data of a PNG.
 *
 * The result is a whole zlib stream, what the IDAT chunk of a PNG with 8-bit indices holds:
 * header, deflate blocks, Adler-32. Rows are taken in strips of png_strip_rows; a strip has one
 * filter (none, sub or up: the one that leaves the least sum of magnitudes in every fourth of its
 * rows, of equals the last), and its filtered bytes are cut into pieces of PNG_PIECE. Each piece is
 * one deflate block of literals and runs (distance 1) with a Huffman code of its own, or a stored
 * block where that is not larger; every piece but the last is followed by an empty stored block, so
 * that it begins and ends at whole bytes and nothing in it depends on another piece.
 *
 * Several pictures of one size are one launch, each with a stream of its own.
 *
 * Accuracy: byte-exact. The bytes are those that png_write (compute/codecs/image.h) puts into the
 * IDAT chunk of the same picture; its source, png_block.c, is the rule for tokens and codes.
 *
 * Only backends whose devices have memory of their own offer this kernel; elsewhere png_write does
 * it.
 */
#ifndef KILN_KERNELS_PNG_H
#define KILN_KERNELS_PNG_H

#include "kernels/kernels.h"

#include <stdint.h>

#define PNG_PIECE      32768  /* bytes of filtered rows in a block, at most */
#define PNG_PIECE_MORE 10     /* bytes that a piece's data can have beyond the piece's own */
#define PNG_STREAM     6      /* bytes of the stream's header and Adler-32 */
#define PNG_WIDTH_MAX  131071 /* pixels; wider rows are KILN_UNSUPPORTED */

/** Where a picture's stream goes. */
struct png_target {
    uint8_t *stream;   /* device, or host memory that the device writes (backend.h, `mapped`);
                          png_stream_bound bytes are always enough */
    uint64_t capacity; /* bytes of `stream`; nothing is written beyond */
    uint64_t *size;    /* device or mapped: the stream's bytes; 0 where they do not fit, and then
                          the contents of `stream` are undefined */
};

struct png_args {
    int32_t width, height;               /* pixels of a picture, ≥ 1 */
    int32_t pictures;                    /* 1 to GROUP_MAX */
    const uint8_t *indices;              /* device, pictures × height × width */
    struct png_target target[GROUP_MAX]; /* of each */
};

/** Rows of every strip but the last, which may have fewer: as many as a piece holds, evened out. */
static inline uint64_t png_strip_rows(uint64_t width, uint64_t height) {
    uint64_t most = width + 1 < PNG_PIECE ? PNG_PIECE / (width + 1) : 1;
    uint64_t strips = (height + most - 1) / most;
    return (height + strips - 1) / strips;
}

/** Pieces of a strip: more than one only where a row alone is larger than a piece. */
static inline uint64_t png_strip_pieces(uint64_t width) {
    return (width + PNG_PIECE) / PNG_PIECE;
}

/** Pieces of a picture. */
static inline uint64_t png_pieces(uint64_t width, uint64_t height) {
    uint64_t rows = png_strip_rows(width, height);
    return (height + rows - 1) / rows * png_strip_pieces(width);
}

/** Bytes that the stream has at most; sizes are below 2^31. */
static inline uint64_t png_stream_bound(uint64_t width, uint64_t height) {
    return (width + 1) * height + png_pieces(width, height) * PNG_PIECE_MORE + PNG_STREAM;
}

#endif
