/*
 * lombscargle_grid.h: what the launcher of `lombscargle` tells its kernels.
 *
 * Work is cut into tiles of frequencies × slices of samples. With one slice a block finishes its
 * frequencies itself; with several it leaves sums in `partial`, [slice][sum][frequency], and a
 * second kernel adds them in the slices' order, so that results do not depend on timing.
 */
#ifndef KILN_CUDA_LOMBSCARGLE_GRID_H
#define KILN_CUDA_LOMBSCARGLE_GRID_H

#include <stdint.h>

#define LOMBSCARGLE_SUMS 6 /* YC, YS, C, S, C2 = Σ w cos 2θ, S2 = Σ w sin 2θ */

struct lombscargle_grid {
    int64_t n, nf;
    const double *t, *y, *w;
    double f0, df;
    const double *frequency;
    double y_mean, yy, psd_factor;
    double weight; /* of the weights as the kernel sees them: n in float, so that equal weights are
                      exactly 1 there, and 1 in double */
    double rounding; /* what rounding leaves of the normal equations: less is nothing */
    int32_t fit_mean, normalization;
    int64_t slice; /* samples a slice */
    int32_t slices;
    double *partial; /* NULL with one slice */
    double *power;
    const volatile uint32_t *stop;
};

#endif
