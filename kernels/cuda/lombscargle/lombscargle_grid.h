/*
 * lombscargle_grid.h: what the launcher of `lombscargle` tells its kernels.
 *
 * A launch takes a group of curves × a range of frequencies × a span of samples. Blocks compute
 * sums for tiles of frequencies and slices of samples into `partial`,
 * [curve][slice][sum][frequency]; then `finish` adds the slices in their order, so that results do
 * not depend on timing, and makes power of them; `weak` computes the bins whose equations are near
 * to singular (lombscargle_basis.h); then peaks are sought. Grids have y = curve × slices + slice.
 *
 * On devices with fast tensor cores frequencies come in rows of LOMBSCARGLE_ROW around the rows'
 * centres, and the sums are products of two matrices (lombscargle_tensor.h). What all tiles share
 * of these, the cosines and sines of the offsets, lies in tables by entry: a sample, or in single
 * precision four neighbouring elements of t.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_GRID_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_GRID_H

#include "kernels/lombscargle.h"

#include <stdint.h>

#define LOMBSCARGLE_PAIRS       4 /* a thread of the direct kernels computes */
#define LOMBSCARGLE_COUNT       (2 * LOMBSCARGLE_PAIRS) /* so many frequencies */
#define LOMBSCARGLE_WARPS       4                       /* of most kernels' blocks */
#define LOMBSCARGLE_OFFSETS     64
#define LOMBSCARGLE_ROW         (2 * LOMBSCARGLE_OFFSETS) /* frequencies, and columns of a product */
#define LOMBSCARGLE_LINES       128                       /* of a product: two a row and sum */
#define LOMBSCARGLE_PACK(fp32)  ((fp32) ? 4 : 1)   /* samples an entry, an inner line of products */
#define LOMBSCARGLE_STAGE(fp32) ((fp32) ? 16 : 32) /* entries */
#define LOMBSCARGLE_BYTES(fp32) ((fp32) ? 16 : 8)  /* an element */
#define LOMBSCARGLE_PITCH(fp32) (LOMBSCARGLE_ROW + ((fp32) ? 2 : 4)) /* elements by entry */
#define LOMBSCARGLE_MULTIPLIERS 8                                    /* warps */
#define LOMBSCARGLE_FEEDERS     4                                    /* warps */
/* Two stages of lines and three of columns (of doubles: they are larger), shared out over the
 * warps.
 */
#define LOMBSCARGLE_SHARED_PER_WARP                                                                \
    (5 * LOMBSCARGLE_STAGE(0) * LOMBSCARGLE_PITCH(0) * LOMBSCARGLE_BYTES(0) /                      \
     (LOMBSCARGLE_MULTIPLIERS + LOMBSCARGLE_FEEDERS))
#define LOMBSCARGLE_SEGMENT     8192 /* bins that a block seeks peaks in */
#define LOMBSCARGLE_PEAK_WARPS  8
#define LOMBSCARGLE_SOLVE_WARPS 1
#define LOMBSCARGLE_WEAK_WARPS  16
#define LOMBSCARGLE_WEAK_BINS   32 /* of a word */
#define LOMBSCARGLE_WEAK_TURNS  8  /* blocks that share out the bins of a word */
/* Bytes a warp: its samples' values of up to 13 functions and of y. */
#define LOMBSCARGLE_WEAK_SHARED (14 * 32 * 8 + 8)

/** Rows of a tile at a harmonic: up to `terms` there are sums over values and weights, above that
    over weights only. */
#define LOMBSCARGLE_TILE_ROWS(harmonic, terms)                                                     \
    ((harmonic) <= (terms) ? LOMBSCARGLE_LINES / 4 : LOMBSCARGLE_LINES / 2)
#define LOMBSCARGLE_TILE(harmonic, terms) (LOMBSCARGLE_TILE_ROWS(harmonic, terms) * LOMBSCARGLE_ROW)

struct lombscargle_grid {
    const double *t, *y, *w;
    const double *frequency; /* NULL: f0 + k df */
    double f0, df;
    const struct lombscargle_curve *curves; /* device, of the group; NULL: `one` */
    struct lombscargle_curve one;
    int32_t fit_mean, normalization, nterms, fp32;
    double least;         /* bins are weak below this (lombscargle_power.h) */
    int64_t nf;           /* of the whole grid */
    int64_t first, count; /* frequencies of this launch */
    int64_t from, to;     /* samples of every curve, as far as it has them */
    int64_t slice;        /* samples a slice */
    int32_t slices;
    int32_t add;     /* to the sums that are there */
    int32_t single;  /* partial holds floats */
    double *partial; /* floats where `single` */
    double *power;   /* of the group's first curve, all frequencies */
    uint32_t *weak;  /* [curve][count / WEAK_BINS, rounded up]: a bit for each weak bin */
    int64_t words;   /* of all curves of the group */

    int64_t element, elements; /* of t that the tables cover; the first is a multiple of PACK */
    int64_t entries;           /* of a table: PACK elements each, and a stage of none */
    void *columns;             /* [harmonic][entries][pitch], an element each */
    void *rows;                /* [harmonic][entries][rows / 2], two elements each */
    int64_t tiles, wide_tiles; /* of count, at harmonics up to nterms and above */

    int32_t peak_count, segments;
    struct lombscargle_found *found; /* [curve][segment][peak_count] */
    struct lombscargle_peak *peaks;  /* of the group's first curve */

    const volatile uint32_t *stop; /* host memory; NULL: not looked at */
    uint32_t *stopped;             /* device memory: what stop was */
    volatile uint32_t *progress;   /* host memory; looked at where stop is */
    uint32_t done;                 /* progress after this launch */
};

/** A peak on its way; index -1: none. */
struct lombscargle_found {
    double power;
    int64_t index;
};

#endif
