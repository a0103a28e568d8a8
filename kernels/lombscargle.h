/*
 * lombscargle.h: arguments of the kernel `lombscargle`, generalised periodograms of light curves.
 *
 * One curve, nterms 1: Zechmeister & Kürster 2009 (A&A 496, 577), eq. 4-15, evaluated as astropy's
 * direct method does. With phases 2π f t_j:  YC = Σ w y cos, YS = Σ w y sin, C = Σ w cos,
 * S = Σ w sin, CC = Σ w cos², CS = Σ w cos sin, SS = Σ w sin²; with fit_mean CC -= C², SS -= S²,
 * CS -= C S (and the sums with y lose Y times C or S; the caller passes y with zero weighted mean,
 * or Y ≠ 0 in `y_mean`). standard power p = (SS YC² + CC YS² - 2 CS YC YS) / (YY D), D = CC SS -
 * CS².
 *
 * nterms H > 1 fits cosines and sines of h f, h ≤ H, at once: p is the part of YY that the normal
 * equations of these 2H functions (less their weighted means with fit_mean) explain, as astropy's
 * chi2 method.
 *
 * Where these equations are near to singular p is computed from the same functions in another basis
 * (lombscargle_basis.h), in double with fp32 too. Phases f t of samples of weight above 0 that
 * agree, modulo whole turns, within 2^-48 |f| T (T: between the first and the last sample; so much
 * rounding leaves in the times) count as one; m is their number. p is the part of YY that what is
 * independent of the functions at m phases explains:
 * - fit_mean: min(m, 2H + 1) - 1 dimensions; NaN where there are none, m = 1 (f = 0, all times
 *   equal modulo 1/f); 1 where each sample has a phase of its own and m ≤ 2H + 1.
 * - no fit_mean: m dimensions for m ≤ 2H, or m - 1 where no polynomial of these functions and the
 *   constant vanishes at all phases but has a mean over the turn; 2H above that. p is never NaN; 1
 *   where there are as many dimensions as samples.
 *
 * All p of a curve whose YY is not above 0 are NaN. This is so for every method and backend.
 *
 * Several curves share grid, terms and switches and are computed side by side: series > 0, and one
 * struct lombscargle_curve for each, in host memory (`curves`) and, the same, in the device's
 * (`device_curves`). The curves' samples lie in t, y and w; curves may share times and weights.
 *
 * Results: power[series][nf], or the strongest peaks of each curve, peaks[series][peak_count], or
 * both. A peak is a bin, or the middle (the lower of two) of a run of equal bins, above its
 * neighbours; ends of the grid and neighbours that are NaN do not count against it. Peaks fall in
 * rank (lombscargle_rank.h), which is power but for rounding; of equal ones the lower index comes
 * first; places that are left have index -1 and power
 * NaN. In a list of frequencies neighbours are those of its order.
 *
 * method: DIRECT adds up every sample at every frequency. NUFFT spreads the samples over a fine
 * grid and transforms that (Press & Rybicki 1989, ApJ 338, 277, with the non-uniform FFT of
 * Barnett, Magland & af Klinteberg 2019, SISC 41, C479, in place of the extirpolation), for grids
 * only; its sums are within 1e-9 of the direct ones. AUTO takes whichever the backend measured to
 * be faster for this shape; a shape the NUFFT cannot take (a list, nterms too high) is computed
 * directly.
 *
 * Accuracy on standard power in every bin, |t| ≤ 4000, f ≤ 100, n ≤ 4096: fp64 1e-9 absolute; fp32
 * 5e-6 absolute for nterms 1, 2e-5 above. The phase is reduced in double in both.
 */
#ifndef KILN_KERNELS_LOMBSCARGLE_H
#define KILN_KERNELS_LOMBSCARGLE_H

#include <stdint.h>

#define LOMBSCARGLE_TERMS_MAX        6
#define LOMBSCARGLE_KERNEL_PEAKS_MAX 64 /* peak_count */

enum lombscargle_normalization {
    LOMBSCARGLE_STANDARD, /* p */
    LOMBSCARGLE_MODEL,    /* p / (1 - p) */
    LOMBSCARGLE_LOG,      /* -ln(1 - p) */
    LOMBSCARGLE_PSD       /* p * psd_factor */
};

enum lombscargle_method {
    LOMBSCARGLE_METHOD_AUTO,
    LOMBSCARGLE_METHOD_DIRECT,
    LOMBSCARGLE_METHOD_NUFFT
};

/** One light curve of several: `n` samples from elements t, y and w of the arrays on. */
struct lombscargle_curve {
    int64_t n; /* ≥ 1 */
    int64_t t, y, w;
    double y_mean, yy, psd_factor; /* as in lombscargle_args; yy not above 0: its power is NaN */
};

struct lombscargle_peak {
    double power, before, after; /* of the bin and its neighbours; NaN outside the grid */
    int64_t index;               /* of the bin */
};

struct lombscargle_args {
    int64_t n;       /* samples, ≥ 1; with several curves the elements of each array at least */
    const double *t; /* device, n: times, best within their span of 0 */
    const double *y; /* device, n: values (less their weighted mean if centred) */
    const double *w; /* device, n: weights, ≥ 0, sum 1 (over each curve) */
    double y_mean;   /* Σ w y of the array as passed */
    double yy;       /* Σ w y² of the array as passed, less y_mean² if fit_mean; > 0 */
    int64_t nf;      /* frequencies, ≥ 1 */
    double f0, df;   /* grid f0 + k df, cycles per unit of time; used where frequency is NULL */
    const double *frequency; /* device, nf, or NULL */
    int32_t fit_mean;        /* floating mean */
    int32_t normalization;   /* enum lombscargle_normalization */
    int32_t fp32;            /* trigonometry and sums in float after phase reduction in double */
    int32_t nterms;          /* 1 to LOMBSCARGLE_TERMS_MAX; 0 stands for 1 */
    int32_t method;          /* enum lombscargle_method */
    int32_t *method_used;    /* host, set by the launch to DIRECT or NUFFT; or NULL */
    double psd_factor;       /* ½ Σ (y/dy)²-type reference, see the job */
    double *power;           /* device, [series][nf]; NULL only with peaks */

    int64_t series;                                /* curves; 0: one, described above */
    const struct lombscargle_curve *curves;        /* host, series, until wait */
    const struct lombscargle_curve *device_curves; /* device, series */
    struct lombscargle_peak *peaks;                /* device, [series][peak_count], or NULL */
    int32_t peak_count;                            /* 1 to LOMBSCARGLE_KERNEL_PEAKS_MAX, or 0 */
};

#endif
