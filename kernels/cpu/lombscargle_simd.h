/*
 * lombscargle_simd.h: what the inner file of `lombscargle` offers.
 *
 * A block is a run of samples whose cosines and sines at one frequency fit the first-level cache,
 * scaled by the square roots of the weights, so that all seven sums are plain products of pairs.
 */
#ifndef KILN_KERNELS_CPU_LOMBSCARGLE_SIMD_H
#define KILN_KERNELS_CPU_LOMBSCARGLE_SIMD_H

#include "kernels/cpu/isa.h"

#include <stddef.h>

#define LOMBSCARGLE_BLOCK ((size_t)512) /* samples, a multiple of every vector's length */

enum lombscargle_sum { SUM_YC, SUM_YS, SUM_C, SUM_S, SUM_CC, SUM_CS, SUM_SS, SUM_COUNT };

/** Samples padded with zero weights to whole vectors; `real` elements are those of the file. */
struct lombscargle_samples {
    size_t n; /* padded */
    const double *t;
    const void *root;      /* real: √w */
    const void *value;     /* real: √w y */
    void *step_c, *step_s; /* real: cosine and sine of 2π df t */
};

struct lombscargle_simd {
    size_t element; /* bytes of `real` */
    size_t lanes;
    /** Fills root and value (not const here) from w and y - level. */
    void (*weigh)(const double *w, const double *y, double level, size_t n, void *root,
                  void *value);
    /** Fills step_c and step_s for a step of df. */
    void (*prepare)(const struct lombscargle_samples *samples, double df);
    /** Adds to sums[count][SUM_COUNT] those of samples [first, first + n), n ≤ LOMBSCARGLE_BLOCK in
        whole vectors, at the frequencies f, f + df, … The first is given as f + f_low. */
    void (*sums)(const struct lombscargle_samples *samples, size_t first, size_t n, double f,
                 double f_low, int count, double (*sums)[SUM_COUNT]);
};

#define X(isa)                                                                                     \
    extern const struct lombscargle_simd lombscargle_##isa##_f32, lombscargle_##isa##_f64;
KILN_CPU_ISAS(X)
#undef X

#endif
