/*
 * png_grid.h: what the launcher of `png` tells its kernels.
 *
 * Two launches: png_pieces, a block a piece, leaves each piece's data in its own slot; png_gather
 * moves them together.
 */
#ifndef KILN_KERNELS_CUDA_PNG_PNG_GRID_H
#define KILN_KERNELS_CUDA_PNG_PNG_GRID_H

#include "kernels/png.h"

#define PNG_WARPS        32
#define PNG_GATHER_WARPS 8
#define PNG_PITCH        (PNG_PIECE + 16) /* of the slots; a multiple of 16 */

#define PNG_SHARED (3072 * PNG_WARPS) /* bytes of shared memory of png_pieces, at most */

/** What is known of a piece beside its data. */
struct png_piece {
    uint32_t size;  /* bytes of its data */
    uint32_t bytes; /* of filtered rows in it */
    uint32_t sum;   /* of these bytes, modulo 65521 */
    uint32_t sums;  /* of each times those that follow it, itself included, likewise */
};

struct png_grid {
    const uint8_t *indices; /* of all pictures, blocks' y of them */
    int64_t width, height;
    int64_t strip_rows;
    int32_t strip_pieces; /* of a strip */
    int32_t pieces;       /* of a picture */
    uint8_t *slots;       /* pictures × pieces × PNG_PITCH */
    struct png_piece *piece;
    struct png_target target[GROUP_MAX];
};

#endif
