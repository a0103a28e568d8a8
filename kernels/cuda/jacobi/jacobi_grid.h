/*
 * jacobi_grid.h: what the launcher of `jacobi` tells its kernel.
 *
 * Each plane is cut into tiles of (4 × lanes) × (rows a thread × threads / lanes) cells, a frame of
 * `halo` cells on each side included; what lies inside the frame is the tile's own part. The
 * frame's cells are computed by several tiles, and spoil by one cell a sweep from the tile's edge
 * inwards, so a tile can do min(halo) sweeps before it needs its neighbours' results. A tile that
 * covers its plane along an axis has no neighbours there, and a frame only so that the zero ring
 * lies in the tile.
 *
 * Where warps march, a tile is a part of a strip: 128 columns with their frames, `part` rows.
 */
#ifndef KILN_KERNELS_CUDA_JACOBI_JACOBI_GRID_H
#define KILN_KERNELS_CUDA_JACOBI_JACOBI_GRID_H

#include "kernels/jacobi.h"

#define JACOBI_ACROSS 4 /* columns a thread */
#define JACOBI_AHEAD  3 /* marching: steps that rows are asked for ahead of their use */

/** Words that all blocks share; zero at the start. */
struct jacobi_shared {
    unsigned long long arrived;     /* blocks, all barriers together; from bit 48 on: stop */
    unsigned long long residual[3]; /* bits of a double ≥ 0, for one check each in turn */
    unsigned long long unfusible;   /* marching: b may not be scaled */
};

struct jacobi_grid {
    int32_t width, height;
    uint32_t tiles_x, tiles_y, tiles; /* tiles: of all planes */
    int32_t lanes;                    /* threads across a tile: 16 or 32 */
    int32_t part;                     /* marching: rows of a part */
    int32_t halo_x, halo_y;
    int32_t depth;  /* most sweeps between exchanges */
    int32_t poll;   /* passes between looks at the stop word */
    int32_t vector; /* rows are aligned to four cells */
    int64_t iterations;
    double tolerance;
    const void *b, *start;
    void *x;          /* result */
    void *targets[2]; /* streamed, of even and odd passes: x and scratch, so that the last is x */
    unsigned long long *mail; /* resident: two pictures of tagged words, rows of `pitch` cells */
    int64_t pitch;            /* a multiple of four */
    struct jacobi_report *report;
    struct jacobi_shared *shared;
    const volatile uint32_t *stop;
    volatile uint32_t *progress; /* in 1/65536, stored with each look at the stop word */
};

#endif
