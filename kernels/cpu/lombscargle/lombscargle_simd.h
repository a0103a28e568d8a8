/*
 * lombscargle_simd.h: what the inner file of `lombscargle` offers.
 *
 * On a grid, frequencies come in rows of LOMBSCARGLE_ROW around the rows' centres. The phase at
 * frequency centre ± (m + ½) df is the centre's ± the offset's, so that cosine and sine are
 * combinations of four products, whose sums over samples are a product of two matrices: rows of
 * weighted cosines and sines of centres, columns of cosines and sines of offsets. Harmonic h is the
 * same with h times the phases. A block is a run of samples for which both matrices fit the caches.
 *
 * Lists of frequencies take the cosine and sine of every pair.
 */
#ifndef KILN_KERNELS_CPU_LOMBSCARGLE_LOMBSCARGLE_SIMD_H
#define KILN_KERNELS_CPU_LOMBSCARGLE_LOMBSCARGLE_SIMD_H

#include "kernels/cpu/device/isa.h"

#include <stdbool.h>
#include <stddef.h>

#define LOMBSCARGLE_BLOCK   ((size_t)64) /* samples */
#define LOMBSCARGLE_OFFSETS 32
#define LOMBSCARGLE_ROW     (2 * LOMBSCARGLE_OFFSETS) /* frequencies, and columns of a product */
#define LOMBSCARGLE_ROWS    64                        /* most rows of frequencies at a time */
#define LOMBSCARGLE_RENEW   8 /* rows whose phases come from one by rotation */
#define LOMBSCARGLE_GRAIN   8 /* samples are padded to multiples of this */

/** Samples as `real` and as double elements. */
struct lombscargle_samples {
    size_t n; /* with padding of weight 0, a multiple of LOMBSCARGLE_GRAIN */
    const double *t;
    const void *w, *wy; /* real; weights times `weight` of the job */
};

/** Rows around f0 + (k + LOMBSCARGLE_ROW i) df, i < rows: a multiple of LOMBSCARGLE_RENEW. Sums of
    a frequency do not depend on what else is computed, as long as tiles begin at multiples too. */
struct lombscargle_rows {
    double f0, df, k;
    int rows;
};

/** Buffers of one thread, 64-byte aligned. */
struct lombscargle_work {
    void *left;       /* LOMBSCARGLE_BLOCK × 4 × LOMBSCARGLE_ROWS doubles */
    void *right;      /* LOMBSCARGLE_BLOCK × LOMBSCARGLE_ROW doubles */
    double *products; /* 4 × LOMBSCARGLE_ROWS × LOMBSCARGLE_ROW */
};

struct lombscargle_simd {
    size_t element; /* bytes of `real` */
    /** Fills w and wy (not const here) with scale w and scale w (y - level). */
    void (*weigh)(const double *w, const double *y, double level, double scale, size_t n, void *to,
                  void *to_y);
    /** Adds to work->products those of samples [first, first + n), n ≤ LOMBSCARGLE_BLOCK, at one
        harmonic. Lines of LOMBSCARGLE_ROW: first the cosines', then the sines' columns; two lines
        a row, its cosines' and sines', with weights w; with `values` all rows again with w y. */
    void (*block)(const struct lombscargle_samples *samples, size_t first, size_t n,
                  const struct lombscargle_rows *rows, int harmonic, bool values,
                  const struct lombscargle_work *work);
    /** Adds to the sums of kernels/lombscargle_power.h those of samples [first, first + n), n ≤
        LOMBSCARGLE_BLOCK, at frequency f + f_low. */
    void (*pair)(const struct lombscargle_samples *samples, size_t first, size_t n, double f,
                 double f_low, int terms, double *sums);
};

#define X(isa)                                                                                     \
    extern const struct lombscargle_simd lombscargle_##isa##_f32, lombscargle_##isa##_f64;
KILN_CPU_ISAS(X)
#undef X

#endif
