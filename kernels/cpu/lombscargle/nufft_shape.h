/*
 * nufft_shape.h: how a periodogram is cut into non-uniform transforms, and what that costs.
 *
 * All samples lie within `half` of the middle of their curve, so that sums as functions of the
 * frequency are known from coarse frequencies D = df up / down apart, D ≤ 1 / (2 half
 * WINDOW_OVERSAMPLING), and the window between those. Harmonic h of the grid is h f0 + k h df. A
 * band is a run of coarse frequencies, anchor f0 + n D with n ≥ -WINDOW_WIDTH/2, that serves one or
 * several harmonics, whose sums it holds: of weights (for harmonics to 2 nterms) or of weights
 * times values (to nterms). Neighbouring harmonics share a band where that is less work: on a grid
 * from near 0 on all do.
 *
 * Threads: pure functions.
 */
#ifndef KILN_KERNELS_CPU_LOMBSCARGLE_NUFFT_SHAPE_H
#define KILN_KERNELS_CPU_LOMBSCARGLE_NUFFT_SHAPE_H

#include "kernels/cpu/lombscargle/nufft_simd.h"

#include <stdbool.h>

#define NUFFT_HARMONICS_MAX (2 * LOMBSCARGLE_TERMS_MAX)
#define NUFFT_BANDS_MAX     (3 * LOMBSCARGLE_TERMS_MAX)

struct nufft_run_of_harmonics {
    struct nufft_band band;
    bool values;
    int anchor, last; /* harmonics */
};

struct nufft_shape {
    double half;
    double f0, df;
    int terms;
    int up, down;        /* D / df as a fraction */
    int64_t blocks;      /* filters of each harmonic: after these they come again */
    int64_t frequencies; /* with those that fill the last blocks */
    int taps[NUFFT_HARMONICS_MAX];
    int anchor[NUFFT_HARMONICS_MAX];
    int bands;
    struct nufft_run_of_harmonics band[NUFFT_BANDS_MAX];
    size_t bytes; /* of one curve's grids and sums */
};

/** False where there is none: a list, times that are all equal, steps too wide, too much memory. */
bool nufft_shape_make(const struct lombscargle_args *args, const struct lombscargle_curve *curves,
                      size_t series, struct nufft_shape *shape);
/** What is taken off a curve's times: 0 where they are centred well enough as they are. */
double nufft_shift(const double *t, size_t n, double *half);
/** Fills blocks × taps × NUFFT_BLOCK filters and `blocks` bases of harmonic h ≥ 1. */
void nufft_filters(const struct nufft_shape *shape, const struct window *window, int h,
                   double *filters, int64_t *bases);

#endif
