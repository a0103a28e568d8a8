/*
 * lombscargle_nufft.h: the sums of `lombscargle` on a grid by non-uniform FFTs, host and device.
 *
 * The sums of one harmonic over values and over weights are two complex sums Σ c_j exp(-2πi f t_j),
 * a grid of frequencies f long. Around the grid's centre they are Fourier coefficients of a measure
 * on the circle, with a point of strength c_j exp(-2πi f_c t_j) at df t_j turns. It is spread with
 * a Kaiser-Bessel window 16 cells wide over a grid of at least 1½ cells a frequency, transformed,
 * and divided by the window's own transform: within 4e-12 of Σ |c_j| (Barnett, Magland & af
 * Klinteberg 2019 compare windows; Potts & Steidl 2003, SISC 24, 2013, give the transform of this
 * one).
 *
 * Six launches for each harmonic of a range of frequencies:
 *   count    which tile of LOMBSCARGLE_NUFFT_TILE cells a sample falls into, and how many do;
 *   lay      places for the tiles' samples, and items of work: a tile's samples, or a part of them;
 *   order    the samples' indices by tile;
 *   spread   each item into a patch of its own, so that crowded cells are shared out as well;
 *   columns  transforms of the grid's columns, their cells the sums of the items' patches. Most
 *            tiles have no items, so that most of the grid is neither cleared nor read;
 *   rows     transforms of the rows, and the sums.
 * The grid has `length` rows of LOMBSCARGLE_NUFFT_ROW cells.
 *
 * Which sample comes first in a tile is left to chance; results are not. Strengths are added to a
 * number so large that its last place is the same throughout, so that each is rounded alike
 * whatever is there already, and nothing is rounded afterwards. Products that lie half-way between
 * two places cannot be: both factors are odd in their last bit.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_NUFFT_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_NUFFT_H

#include "kernels/cuda/lombscargle/lombscargle_grid.h"

#include <stdint.h>

#define LOMBSCARGLE_NUFFT_WINDOW 16   /* cells that a sample is spread over */
#define LOMBSCARGLE_NUFFT_TILE   64   /* cells */
#define LOMBSCARGLE_NUFFT_PATCH  80   /* cells of a tile's samples: windows reach beyond it */
#define LOMBSCARGLE_NUFFT_ROW    1024 /* cells */
#define LOMBSCARGLE_NUFFT_LINES  4    /* rows or columns of a block */
#define LOMBSCARGLE_NUFFT_ROOTS  6144 /* of unity; every length divides it */
#define LOMBSCARGLE_NUFFT_WARPS  8    /* of a block, but for columns */
#define LOMBSCARGLE_NUFFT_EACH   8    /* samples that a thread counts */
#define LOMBSCARGLE_NUFFT_COUNTS 1024 /* tiles a warp that counts */
#define LOMBSCARGLE_NUFFT_ITEMS  (2 * LOMBSCARGLE_NUFFT_WARPS) /* of a block */
#define LOMBSCARGLE_NUFFT_UNIT   128                           /* cells of a column a warp */
/* Bytes a warp: two patches and 16 samples each; lines, with gaps. */
#define LOMBSCARGLE_NUFFT_PATCHES(kinds)                                                           \
    (2 * (LOMBSCARGLE_NUFFT_PATCH * 16 * (kinds) + 16 * (16 + 16 * (kinds))))
#define LOMBSCARGLE_NUFFT_COLUMN_BYTES                                                             \
    (LOMBSCARGLE_NUFFT_UNIT * LOMBSCARGLE_NUFFT_LINES * 16 * 73 / 64)
#define LOMBSCARGLE_NUFFT_PITCH 1170 /* a row in shared memory, with gaps */
#define LOMBSCARGLE_NUFFT_ROW_BYTES                                                                \
    (LOMBSCARGLE_NUFFT_LINES * LOMBSCARGLE_NUFFT_PITCH * 16 / LOMBSCARGLE_NUFFT_WARPS)

/** Below what bins are weak (lombscargle_power.h) where the sums have the transforms' error. */
#define LOMBSCARGLE_WEAK_NUFFT 0x1p-6

/** A tile's items. */
struct lombscargle_span {
    uint32_t first, count;
};

/** Samples first … first + count - 1 in the tiles' order, all of one tile, which has `all`. */
struct lombscargle_item {
    uint32_t tile, first, count, all;
};

/** What blocks tell each other; zero before the first launch. */
struct lombscargle_totals {
    unsigned long long laid;          /* items << 32 | samples */
    unsigned long long weight, value; /* bits of the largest strengths, doubles ≥ 0 */
};

/** One harmonic of one range of frequencies of one curve. */
struct lombscargle_nufft {
    const double *t, *y, *w; /* n, of the curve */
    int64_t n;               /* < 2^31 */
    double level;            /* taken off y */
    double value_most;       /* Σ w |y - level| is less */
    double f0, df;
    int64_t first, count; /* frequencies */
    int32_t harmonic;     /* from 1 on, */
    int32_t last;         /* not 0: no higher one comes */
    int32_t kinds;        /* 2: values and weights; 1: weights only */
    int32_t length;       /* rows */
    int32_t tiles;
    uint32_t part;   /* samples of an item, at most */
    double *sums[2]; /* of the kinds: cosine [count], sine [count] */

    struct lombscargle_totals *totals;
    uint32_t *counts;               /* [tile], zero as the totals are */
    uint32_t *places, *order;       /* [n]: in the tile; samples */
    uint32_t *firsts;               /* [tile]: first place in `order` */
    struct lombscargle_span *spans; /* [tile] */
    struct lombscargle_item *items;
    double *roots;   /* [ROOTS] complex: exp(-2πi j/ROOTS) */
    double *patches; /* [item][kind][PATCH] complex */
    double *lines;   /* [kind][length][ROW] complex: columns' transforms, by frequency */
};

#ifndef __CUDACC__
#include "kernels/cuda/device/stream.h"

#include <stdbool.h>

/** The kernels, in the order of LOMBSCARGLE_NUFFT_FUNCTIONS. */
enum lombscargle_nufft_function {
    LOMBSCARGLE_NUFFT_COUNT,
    LOMBSCARGLE_NUFFT_COUNT_SPARSE,
    LOMBSCARGLE_NUFFT_LAY,
    LOMBSCARGLE_NUFFT_ORDER,
    LOMBSCARGLE_NUFFT_SPREAD_WEIGHTS,
    LOMBSCARGLE_NUFFT_SPREAD_BOTH,
    LOMBSCARGLE_NUFFT_SHORT_COLUMNS,
    LOMBSCARGLE_NUFFT_LONG_COLUMNS,
    LOMBSCARGLE_NUFFT_TRANSFORM_ROWS,
    LOMBSCARGLE_NUFFT_KERNELS
};

#define LOMBSCARGLE_NUFFT_FUNCTION(symbol, width, bytes)                                           \
    { .name = "lombscargle_nufft_" symbol, .warps = width, .shared_per_warp = bytes }
/** Rows of a kernel's functions. */
#define LOMBSCARGLE_NUFFT_FUNCTIONS                                                                \
    LOMBSCARGLE_NUFFT_FUNCTION("count", 32, 4 * LOMBSCARGLE_NUFFT_COUNTS),                         \
        LOMBSCARGLE_NUFFT_FUNCTION("count_sparse", LOMBSCARGLE_NUFFT_WARPS, 0),                    \
        LOMBSCARGLE_NUFFT_FUNCTION("lay", LOMBSCARGLE_NUFFT_WARPS, 0),                             \
        LOMBSCARGLE_NUFFT_FUNCTION("order", LOMBSCARGLE_NUFFT_WARPS, 0),                           \
        LOMBSCARGLE_NUFFT_FUNCTION("spread_weights", LOMBSCARGLE_NUFFT_WARPS,                      \
                                   LOMBSCARGLE_NUFFT_PATCHES(1)),                                  \
        LOMBSCARGLE_NUFFT_FUNCTION("spread_both", LOMBSCARGLE_NUFFT_WARPS,                         \
                                   LOMBSCARGLE_NUFFT_PATCHES(2)),                                  \
        LOMBSCARGLE_NUFFT_FUNCTION("short_columns", 8, LOMBSCARGLE_NUFFT_COLUMN_BYTES),            \
        LOMBSCARGLE_NUFFT_FUNCTION("long_columns", 16, LOMBSCARGLE_NUFFT_COLUMN_BYTES),            \
        LOMBSCARGLE_NUFFT_FUNCTION("rows", LOMBSCARGLE_NUFFT_WARPS, LOMBSCARGLE_NUFFT_ROW_BYTES)

/** How the sums of a job are made. */
struct lombscargle_transform {
    struct stream *stream;
    int function;     /* index of the first */
    uint64_t range;   /* frequencies at a time; 0: the job cannot be done so */
    uint64_t longest; /* samples of a curve */
    uint64_t zeroed;  /* bytes of memory from the totals on */
    double work;      /* expected milliseconds */
    struct lombscargle_nufft job;
};

/** Plans a job of `series` curves; nothing is launched. `function` is the index of the first of
    LOMBSCARGLE_NUFFT_FUNCTIONS among those of KERNEL_LOMBSCARGLE. */
void lombscargle_transform_make(struct lombscargle_transform *transform, struct stream *stream,
                                int function, const struct lombscargle_args *args,
                                const struct lombscargle_curve *curves, uint64_t series);
/** Bytes of device memory that a plan needs; `memory`, STREAM_MEMORY_ALIGN aligned, becomes it, or
 * NULL. */
uint64_t lombscargle_transform_lay(struct lombscargle_transform *transform, void *memory);
/** Clears what must be zero before the first run. Errors as of stream functions. */
enum kiln_status lombscargle_transform_begin(const struct lombscargle_transform *transform);
/** Makes the sums of grid->count frequencies, at most `range`, of one curve in grid->partial. */
enum kiln_status lombscargle_transform_run(struct lombscargle_transform *transform,
                                           const struct lombscargle_grid *grid,
                                           const struct lombscargle_curve *curve);
#endif

#endif
