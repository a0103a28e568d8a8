/*
 * lombscargle_power.h: from the sums over a light curve to its power, for every backend.
 *
 * Sums of H terms, in this order: Σ w y cos hθ, Σ w y sin hθ for h = 1 … H, then Σ w cos hθ,
 * Σ w sin hθ for h = 1 … 2H; the weights' own sum is 1. Products of the fitted functions are sums
 * at the difference and the sum of their harmonics, so that these are all that the normal equations
 * need. C11 and device code; operations are fused only where that is written.
 */
#ifndef KILN_KERNELS_LOMBSCARGLE_POWER_H
#define KILN_KERNELS_LOMBSCARGLE_POWER_H

#include "kernels/lombscargle.h"

#include <math.h>

#ifdef __CUDACC__
#define LOMBSCARGLE_INLINE static __device__ __forceinline__
#define LOMBSCARGLE_CALL   static __device__ __noinline__
#else
#define LOMBSCARGLE_INLINE static inline
#define LOMBSCARGLE_CALL   static inline
#endif

#define LOMBSCARGLE_SUMS(terms)   (6 * (terms))
#define LOMBSCARGLE_SUMS_MAX      LOMBSCARGLE_SUMS(LOMBSCARGLE_TERMS_MAX)
#define LOMBSCARGLE_FUNCTIONS_MAX (2 * LOMBSCARGLE_TERMS_MAX)

/** What rounding leaves of sums whose terms have weight 1 in all: less is nothing. */
#define LOMBSCARGLE_ROUNDING_FP64 0x1p-45
#define LOMBSCARGLE_ROUNDING_FP32 0x1p-16

/** Of one curve and its request. */
struct lombscargle_model {
    double yy, psd_factor, rounding;
    int32_t fit_mean, normalization, nterms;
};

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
    double d = cc * ss - cs * cs, most = cc > ss ? cc : ss;
    if (!(most > model->rounding))
        return (double)NAN;
    if (d > model->rounding * (cc + ss))
        return (ss * yc * yc + cc * ys * ys - 2.0 * cs * yc * ys) / (model->yy * d);
    double projection = cc >= ss ? yc : ys;
    return projection * projection / (most * model->yy);
}

/* Σ w cos hθ and Σ w sin hθ for any whole h. */
LOMBSCARGLE_INLINE double lombscargle_cosine(const double *weights, int h) {
    h = h < 0 ? -h : h;
    return h == 0 ? 1.0 : weights[2 * (h - 1)];
}

LOMBSCARGLE_INLINE double lombscargle_sine(const double *weights, int h) {
    return h == 0 ? 0.0 : h < 0 ? -weights[2 * (-h - 1) + 1] : weights[2 * (h - 1) + 1];
}

/* Σ w times functions i and j, which are cos 1θ, sin 1θ, cos 2θ, …; i ≥ j. */
LOMBSCARGLE_INLINE double lombscargle_product(const double *weights, int i, int j) {
    int a = i / 2 + 1, b = j / 2 + 1;
    if (i % 2 == j % 2) {
        double sum = lombscargle_cosine(weights, a + b);
        return 0.5 * (lombscargle_cosine(weights, a - b) + (i % 2 ? -sum : sum));
    }
    int sine = i % 2 ? a : b, cosine = i % 2 ? b : a;
    return 0.5 *
           (lombscargle_sine(weights, sine + cosine) + lombscargle_sine(weights, sine - cosine));
}

/* Cholesky's elimination with the largest pivot first; each step adds what its function explains
   beyond those before it. */
LOMBSCARGLE_CALL double lombscargle_power_many(const struct lombscargle_model *model,
                                               const double *sums) {
    double m[LOMBSCARGLE_FUNCTIONS_MAX][LOMBSCARGLE_FUNCTIONS_MAX], b[LOMBSCARGLE_FUNCTIONS_MAX];
    double first[LOMBSCARGLE_FUNCTIONS_MAX], explained = 0.0;
    const int count = 2 * model->nterms;
    const double *weights = sums + count;
    int used = 0, rank = 0;
    for (int i = 0; i < count; i++) {
        for (int j = 0; j <= i; j++) {
            double mean = model->fit_mean ? weights[i] * weights[j] : 0.0;
            m[i][j] = m[j][i] = lombscargle_product(weights, i, j) - mean;
        }
        first[i] = m[i][i];
        b[i] = sums[i];
    }
    for (int step = 0; step < count; step++) {
        int pivot = -1;
        for (int i = 0; i < count; i++)
            if (!(used >> i & 1) && m[i][i] > model->rounding &&
                m[i][i] > 4.0 * model->rounding * first[i] &&
                (pivot < 0 || m[i][i] > m[pivot][pivot]))
                pivot = i;
        if (pivot < 0)
            break;
        used |= 1 << pivot;
        rank++;
        double inverse = 1.0 / m[pivot][pivot];
        explained += b[pivot] * b[pivot] * inverse;
        for (int i = 0; i < count; i++) {
            if (used >> i & 1)
                continue;
            double factor = m[i][pivot] * inverse;
            b[i] -= factor * b[pivot];
            for (int j = 0; j < count; j++)
                if (!(used >> j & 1))
                    m[i][j] -= factor * m[pivot][j];
        }
    }
    return rank > 0 ? explained / model->yy : (double)NAN;
}

/** Normalized power of LOMBSCARGLE_SUMS(nterms) sums. */
LOMBSCARGLE_INLINE double lombscargle_power(const struct lombscargle_model *model,
                                            const double *sums) {
    if (!(model->yy > 0.0))
        return (double)NAN;
    double p = model->nterms == 1 ? lombscargle_power_one(model, sums)
                                  : lombscargle_power_many(model, sums);
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
