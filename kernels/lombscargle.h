/*
 * lombscargle.h: arguments of the kernel `lombscargle`, the direct generalised periodogram.
 *
 * Zechmeister & Kürster 2009 (A&A 496, 577), eq. 4-15, evaluated as astropy's direct method does.
 * With phases 2π f t_j:  YC = Σ w y cos, YS = Σ w y sin, C = Σ w cos, S = Σ w sin, CC = Σ w cos²,
 * CS = Σ w cos sin, SS = Σ w sin²; with fit_mean CC -= C², SS -= S², CS -= C S (and the sums with y
 * lose Y times C or S; the caller passes y with zero weighted mean, or Y ≠ 0 in `y_mean`).
 * standard power p = (SS YC² + CC YS² - 2 CS YC YS) / (YY D), D = CC SS - CS².
 * Where D is not positive beyond rounding (a singular bin: f = 0, two coincident phases) p is the
 * one-parameter fit where that is defined (max(CC,SS) > 0), else NaN.
 *
 * Accuracy on standard power, |t| ≤ 4000, f ≤ 100, n ≤ 4096: fp64 1e-9 absolute; fp32 5e-6
 * absolute. The phase is reduced in double in both.
 */
#ifndef KILN_KERNELS_LOMBSCARGLE_H
#define KILN_KERNELS_LOMBSCARGLE_H

#include <stdint.h>

enum lombscargle_normalization {
    LOMBSCARGLE_STANDARD, /* p */
    LOMBSCARGLE_MODEL,    /* p / (1 - p) */
    LOMBSCARGLE_LOG,      /* -ln(1 - p) */
    LOMBSCARGLE_PSD       /* p * psd_factor */
};

struct lombscargle_args {
    int64_t n;       /* samples, ≥ 1 */
    const double *t; /* device, n: times less their midpoint */
    const double *y; /* device, n: values (less their weighted mean if centred) */
    const double *w; /* device, n: weights, ≥ 0, sum 1 */
    double y_mean;   /* Σ w y of the array as passed */
    double yy;       /* Σ w y² of the array as passed, less y_mean² if fit_mean; > 0 */
    int64_t nf;      /* frequencies, ≥ 1 */
    double f0, df;   /* grid f0 + k df, cycles per unit of time; used where frequency is NULL */
    const double *frequency; /* device, nf, or NULL */
    int32_t fit_mean;        /* floating mean */
    int32_t normalization;   /* enum lombscargle_normalization */
    int32_t fp32;            /* trigonometry and sums in float after phase reduction in double */
    double psd_factor;       /* ½ Σ (y/dy)²-type reference, see the job */
    double *power;           /* device, nf */
};

#endif
