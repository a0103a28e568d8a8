/*
 * lombscargle_phase.h: cosines and sines of the phases of samples, for the inner files.
 *
 * Phases are products of a frequency and a time in turns, reduced in twice double precision.
 */
#ifndef KILN_KERNELS_CPU_LOMBSCARGLE_LOMBSCARGLE_PHASE_H
#define KILN_KERNELS_CPU_LOMBSCARGLE_LOMBSCARGLE_PHASE_H

#include "kernels/cpu/device/simd.h"

#define ROUNDER 6755399441055744.0 /* 1.5 * 2^52: adding it rounds to an integer */

static inline uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* a*b less its rounded value `product`, without a fused instruction: the halves are exact. */
static inline double product_error(double a, double b, double product) {
#if defined(SIMD_FUSED)
    return fma(a, b, -product);
#else
    const double split = 134217729.0; /* 2^27 + 1 */
    double as = a * split, bs = b * split;
    double ah = as - (as - a), bh = bs - (bs - b);
    double al = a - ah, bl = b - bh;
    return ((ah * bh - product) + ah * bl + al * bh) + al * bl;
#endif
}

/* Phase (f + f_low) * t in turns, reduced to [-1/8, 1/8] plus `quarter` quarters. */
static inline double phase_reduce(double f, double f_low, double t, uint64_t *quarter) {
    double product = f * t;
    double low = product_error(f, t, product) + f_low * t;
    double turns = (product - ((product + ROUNDER) - ROUNDER)) + low;
    double shifted = turns * 4 + ROUNDER;
    *quarter = bits_of(shifted);
    return turns - (shifted - ROUNDER) * 0.25;
}

static inline double fused(double a, double b, double c) {
#if defined(SIMD_FUSED)
    return fma(a, b, c);
#else
    return a * b + c;
#endif
}

/* sin and cos of 2π x, |x| ≤ 1/8 and a little more: Taylor series in x², which converge fast here.
 */
static inline void sincos_poly(double x, double *sine, double *cosine) {
    double q = x * x;
    double s = -0.71812230177850051;
    s = fused(s, q, 3.8199525848482821);
    s = fused(s, q, -15.094642576822990);
    s = fused(s, q, 42.058693944897652);
    s = fused(s, q, -76.705859753061385);
    s = fused(s, q, 81.605249276075054);
    s = fused(s, q, -41.341702240399760);
    *sine = x * fused(s, q, 6.2831853071795865);
    double c = 0.28200596845579096;
    c = fused(c, q, -1.7143907110886720);
    c = fused(c, q, 7.9035363713184692);
    c = fused(c, q, -26.426256783374399);
    c = fused(c, q, 60.244641371876664);
    c = fused(c, q, -85.456817206693724);
    c = fused(c, q, 64.939394022668291);
    c = fused(c, q, -19.739208802178716);
    *cosine = fused(c, q, 1);
}

/* Turns (sine, cosine) on by `quarter` quarters. */
static inline void sincos_turn(uint64_t quarter, double *sine, double *cosine) {
    double s = quarter & 1 ? *cosine : *sine, c = quarter & 1 ? *sine : *cosine;
    *sine = quarter & 2 ? -s : s;
    *cosine = (quarter + 1) & 2 ? -c : c;
}

static inline void sincos_fill(const double *restrict t, size_t n, double f, double f_low,
                               double *restrict cosine, double *restrict sine) {
    for (size_t i = 0; i < n; i++) {
        uint64_t quarter;
        double x = phase_reduce(f, f_low, t[i], &quarter);
        sincos_poly(x, &sine[i], &cosine[i]);
        sincos_turn(quarter, &sine[i], &cosine[i]);
    }
}

#endif
