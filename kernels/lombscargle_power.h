/*
 * lombscargle_power.h: from the sums over a light curve to its power, for every backend.
 *
 * Sums of H terms, in this order: Σ w y cos hθ, Σ w y sin hθ for h = 1 … H, then Σ w cos hθ,
 * Σ w sin hθ for h = 1 … 2H; the weights' own sum is 1. Products of the fitted functions are sums
 * at the difference and the sum of their harmonics, so that these are all that the normal equations
 * need. C11 and device code; operations are fused only where that is written. Where the normal
 * equations are near to singular nothing can be had from the sums (LOMBSCARGLE_WEAK).
 */
#ifndef KILN_KERNELS_LOMBSCARGLE_POWER_H
#define KILN_KERNELS_LOMBSCARGLE_POWER_H

#include "kernels/lombscargle.h"

#include <math.h>

#ifdef __CUDACC__
#define LOMBSCARGLE_INLINE static __device__ __forceinline__
#else
#define LOMBSCARGLE_INLINE static inline
#endif

#define LOMBSCARGLE_SUMS(terms) (6 * (terms))
#define LOMBSCARGLE_SUMS_MAX    LOMBSCARGLE_SUMS(LOMBSCARGLE_TERMS_MAX)
/** Numbers that the solution takes for one frequency, its sums included. */
#define LOMBSCARGLE_WORK(terms) ((terms) * (7 + 2 * (terms)))

/** Errors of the sums show in the power over the least that a function, of mean square ½, keeps
    beside those before it. Where that is less, the bin is weak and is computed by
    lombscargle_basis.h. */
#define LOMBSCARGLE_WEAK_FP64 0x1p-13
#define LOMBSCARGLE_WEAK_FP32 0x1p-4

/** What stands for the power of a weak bin. */
#define LOMBSCARGLE_WEAK (-1.0)

/** Of one curve and its request. */
struct lombscargle_model {
    double yy, psd_factor;
    double weak; /* bins with less are weak */
    int32_t fit_mean, normalization, nterms;
};

/** `weak` of a curve of n samples: as many parameters fit all values, or nearly, at any frequency,
    and the rank decides. */
LOMBSCARGLE_INLINE double lombscargle_weak(double weak, int64_t n, int nterms) {
    return n <= 2 * nterms + 1 ? 1.0 : weak;
}

/* Zechmeister & Kürster 2009, eq. 5 to 15, with Σ w cos² = (1 + C2)/2, Σ w sin² = (1 - C2)/2. */
LOMBSCARGLE_INLINE double lombscargle_power_one(const struct lombscargle_model *model,
                                                const double *sums) {
    double yc = sums[0], ys = sums[1], c = sums[2], s = sums[3];
    double cc = 0.5 * (1.0 + sums[4]), ss = 0.5 * (1.0 - sums[4]), cs = 0.5 * sums[5];
    if (model->fit_mean) {
        cc -= c * c;
        ss -= s * s;
        cs -= c * s;
    }
    double d = cc * ss - cs * cs, all = cc + ss; /* what is nothing may come out below 0 */
    if (!(model->yy > 0.0)) {
        return (double)NAN;
    }
    if (!(all > model->weak && d > model->weak * all)) {
        return LOMBSCARGLE_WEAK;
    }
    double p = (ss * yc * yc + cc * ys * ys - 2.0 * cs * yc * ys) / (model->yy * d);
    return p > 0.0 ? p : 0.0;
}

/* Σ w cos hθ and Σ w sin hθ for any whole h. */
LOMBSCARGLE_INLINE double lombscargle_cosine(const double *weights, int stride, int h) {
    h = h < 0 ? -h : h;
    return h == 0 ? 1.0 : weights[2 * (h - 1) * stride];
}

LOMBSCARGLE_INLINE double lombscargle_sine(const double *weights, int stride, int h) {
    double sine = h == 0 ? 0.0 : weights[(2 * (h < 0 ? -h : h) - 1) * stride];
    return h < 0 ? -sine : sine;
}

/* Σ w times functions i and j, which are cos 1θ, sin 1θ, cos 2θ, …; i ≥ j. */
LOMBSCARGLE_INLINE double lombscargle_product(const double *weights, int stride, int i, int j) {
    int a = i / 2 + 1, b = j / 2 + 1;
    if (i % 2 == j % 2) {
        double sum = lombscargle_cosine(weights, stride, a + b);
        return 0.5 * (lombscargle_cosine(weights, stride, a - b) + (i % 2 ? -sum : sum));
    }
    int sine = i % 2 ? a : b, cosine = i % 2 ? b : a;
    return 0.5 * (lombscargle_sine(weights, stride, sine + cosine) +
                  lombscargle_sine(weights, stride, sine - cosine));
}

/* The matrix lies behind the sums, its lower triangle row by row. Numbers of one frequency are
   `stride` apart. */
LOMBSCARGLE_INLINE int lombscargle_cell(int i, int j) {
    int row = i > j ? i : j, column = i > j ? j : i;
    return row * (row + 1) / 2 + column;
}

LOMBSCARGLE_INLINE void lombscargle_equations(const struct lombscargle_model *model, double *sums,
                                              int stride) {
    const int count = 2 * model->nterms;
    const double *weights = sums + count * stride;
    double *m = sums + 3 * count * stride;
    for (int i = 0; i < count; i++) {
        for (int j = 0; j <= i; j++) {
            double mean = model->fit_mean ? weights[i * stride] * weights[j * stride] : 0.0;
            m[lombscargle_cell(i, j) * stride] = lombscargle_product(weights, stride, i, j) - mean;
        }
    }
}

/* The largest pivot that is left; -1: none is above `weak`. */
LOMBSCARGLE_INLINE int lombscargle_pivot(const struct lombscargle_model *model, const double *m,
                                         int stride, int used) {
    double most = model->weak;
    int pivot = -1;
    for (int i = 0; i < 2 * model->nterms; i++) {
        double value = m[lombscargle_cell(i, i) * stride];
        if (!(used >> i & 1) && value > most) {
            most = value;
            pivot = i;
        }
    }
    return pivot;
}

/* Cholesky's elimination with the largest pivot first; each step adds what its function explains
   beyond those before it. `sums` has LOMBSCARGLE_WORK places, `stride` apart, and is used up. */
LOMBSCARGLE_INLINE double lombscargle_power_many(const struct lombscargle_model *model,
                                                 double *sums, int stride) {
    const int count = 2 * model->nterms;
    double *b = sums, *m = sums + 3 * count * stride, explained = 0.0;
    int used = 0;
    if (!(model->yy > 0.0)) {
        return (double)NAN;
    }
    lombscargle_equations(model, sums, stride);
    for (int step = 0; step < count; step++) {
        int pivot = lombscargle_pivot(model, m, stride, used);
        if (pivot < 0) {
            return LOMBSCARGLE_WEAK;
        }
        double inverse = 1.0 / m[lombscargle_cell(pivot, pivot) * stride];
        double share = b[pivot * stride] * inverse;
        explained += b[pivot * stride] * share;
        used |= 1 << pivot;
        for (int i = 0; i < count; i++) {
            if (used >> i & 1) {
                continue;
            }
            double factor = m[lombscargle_cell(i, pivot) * stride] * inverse;
            b[i * stride] -= m[lombscargle_cell(i, pivot) * stride] * share;
            for (int j = 0; j <= i; j++) {
                if (!(used >> j & 1)) {
                    m[lombscargle_cell(i, j) * stride] -=
                        factor * m[lombscargle_cell(j, pivot) * stride];
                }
            }
        }
    }
    return explained / model->yy;
}

/** A standard power in the normalization asked for. */
LOMBSCARGLE_INLINE double lombscargle_normalized(const struct lombscargle_model *model, double p) {
    p = p < 0.0 ? 0.0 : p > 1.0 ? 1.0 : p; /* NaN stays */
    switch (model->normalization) {
    case LOMBSCARGLE_MODEL:
        return p / (1.0 - p);
    case LOMBSCARGLE_LOG:
        return -log1p(-p);
    case LOMBSCARGLE_PSD:
        return p * model->psd_factor;
    default:
        return p;
    }
}

#endif
