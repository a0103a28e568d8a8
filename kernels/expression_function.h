/*
 * expression_function.h: functions of float32, for kernels/expression.h.
 *
 * They are computed in float64 by sums, products and quotients in one order and rounded once, so
 * the error is half an ulp and a hundredth, and bytes are the same wherever float64 is IEEE 754's
 * and the compiler fuses nothing. No branch depends on a value: loops over them become vectors.
 * sin, cos and tan are good for |x| <= EXPRESSION_ANGLE_MAX; beyond it callers ask the C library.
 *
 * Threads: reentrant.
 */
#ifndef KILN_KERNELS_EXPRESSION_FUNCTION_H
#define KILN_KERNELS_EXPRESSION_FUNCTION_H

#include "kernels/elementary.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#define EXPRESSION_ANGLE_MAX 0x1p20f

#define FUNCTION_INLINE ELEMENTARY_INLINE
#define FUNCTION_MAGIC  0x1.8p52 /* added, the nearest whole number stands in the low bits */
#define FUNCTION_LN2    0.69314718055994531
#define FUNCTION_LOG2E  1.4426950408889634

FUNCTION_INLINE uint64_t function_bits(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

FUNCTION_INLINE double function_value(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

FUNCTION_INLINE double function_clamp(double x, double low, double high) {
    x = x < low ? low : x;
    return x > high ? high : x; /* NaN stays */
}

/* 2^k for a whole number k + FUNCTION_MAGIC. */
FUNCTION_INLINE double function_scale(double shifted) {
    return function_value((function_bits(shifted) + 1023) << 52);
}

/* e^r - 1 for |r| < 0.35: the series. */
FUNCTION_INLINE double function_expm1_near(double r) {
    double p = 1.0 / 3628800;
    p = p * r + 1.0 / 362880;
    p = p * r + 1.0 / 40320;
    p = p * r + 1.0 / 5040;
    p = p * r + 1.0 / 720;
    p = p * r + 1.0 / 120;
    p = p * r + 1.0 / 24;
    p = p * r + 1.0 / 6;
    p = p * r + 0.5;
    return r * (1 + r * p);
}

FUNCTION_INLINE double function_exp(double x) {
    double shifted = x * FUNCTION_LOG2E + FUNCTION_MAGIC, k = shifted - FUNCTION_MAGIC;
    return function_scale(shifted) * (1 + function_expm1_near(x - k * FUNCTION_LN2));
}

FUNCTION_INLINE double function_expm1(double x) {
    double shifted = x * FUNCTION_LOG2E + FUNCTION_MAGIC, k = shifted - FUNCTION_MAGIC;
    double near = function_expm1_near(x - k * FUNCTION_LN2), scale = function_scale(shifted);
    return k == 0 ? near : scale * near + (scale - 1);
}

/* log of m and e, where x = m * 2^e with m in [sqrt(1/2), sqrt(2)], for normal x > 0. */
FUNCTION_INLINE double function_log_parts(double x, double *e) {
    uint64_t bits = function_bits(x);
    uint64_t above = bits - UINT64_C(0x3fe6a09e667f3bcd) + (UINT64_C(1024) << 52);
    uint64_t exponent = above >> 52;
    double m = function_value(bits - ((exponent - 1024) << 52));
    *e = function_value(UINT64_C(0x4330000000000000) | exponent) - (0x1p52 + 1024);
    double s = (m - 1) / (m + 1), q = s * s, p = 2.0 / 17;
    p = p * q + 2.0 / 15;
    p = p * q + 2.0 / 13;
    p = p * q + 2.0 / 11;
    p = p * q + 2.0 / 9;
    p = p * q + 2.0 / 7;
    p = p * q + 2.0 / 5;
    p = p * q + 2.0 / 3;
    return s * (2 + q * p);
}

/* What a logarithm of x is, given its value for finite x > 0. */
FUNCTION_INLINE double function_log_ends(double x, double value) {
    value = x < INFINITY ? value : x;
    return x > 0 ? value : x == 0 ? -INFINITY : NAN;
}

FUNCTION_INLINE double function_log(double x) {
    double e, near = function_log_parts(x, &e);
    return function_log_ends(x, e * FUNCTION_LN2 + near);
}

/* Sine and cosine of what is left of x beside `quarter` right angles. */
FUNCTION_INLINE uint64_t function_angle(double x, double *sine, double *cosine) {
    double shifted = x * 0.63661977236758134 + FUNCTION_MAGIC, k = shifted - FUNCTION_MAGIC;
    double r = x - k * 0x1.921fb544p+0;
    r = r - k * 0x1.0b4611a6p-34;
    r = r - k * 0x1.3198a2e037073p-69;
    double q = r * r, s = -1.0 / 39916800, c = 1.0 / 479001600;
    s = s * q + 1.0 / 362880;
    s = s * q - 1.0 / 5040;
    s = s * q + 1.0 / 120;
    s = s * q - 1.0 / 6;
    c = c * q - 1.0 / 3628800;
    c = c * q + 1.0 / 40320;
    c = c * q - 1.0 / 720;
    c = c * q + 1.0 / 24;
    c = c * q - 0.5;
    *sine = r * (1 + q * s);
    *cosine = 1 + q * c;
    return function_bits(shifted);
}

FUNCTION_INLINE float expression_exp_f32(float x) {
    return (float)function_exp(function_clamp(x, -150, 130));
}

FUNCTION_INLINE float expression_exp2_f32(float x) {
    double t = function_clamp(x, -200, 200), shifted = t + FUNCTION_MAGIC;
    double near = function_expm1_near((t - (shifted - FUNCTION_MAGIC)) * FUNCTION_LN2);
    return (float)(function_scale(shifted) * (1 + near));
}

FUNCTION_INLINE float expression_expm1_f32(float x) {
    return (float)function_expm1(function_clamp(x, -50, 130));
}

FUNCTION_INLINE float expression_log_f32(float x) {
    return (float)function_log(x);
}

FUNCTION_INLINE float expression_log2_f32(float x) {
    double e, near = function_log_parts(x, &e);
    return (float)function_log_ends(x, e + near * FUNCTION_LOG2E);
}

FUNCTION_INLINE float expression_log10_f32(float x) {
    return (float)(function_log(x) * 0.43429448190325183);
}

/* What 1 + x lost comes back as its share. */
FUNCTION_INLINE float expression_log1p_f32(float x) {
    double t = x, u = 1 + t, e, near = function_log_parts(u, &e);
    double value = e * FUNCTION_LN2 + near + (t - (u - 1)) / u;
    return x == 0 ? x : (float)function_log_ends(u, value);
}

FUNCTION_INLINE float expression_sin_f32(float x) {
    double s, c;
    uint64_t quarter = function_angle(x, &s, &c);
    s = (quarter & 1) != 0 ? c : s;
    return (float)((quarter & 2) != 0 ? -s : s);
}

FUNCTION_INLINE float expression_cos_f32(float x) {
    double s, c;
    uint64_t quarter = function_angle(x, &s, &c);
    c = (quarter & 1) != 0 ? s : c;
    return (float)(((quarter + 1) & 2) != 0 ? -c : c);
}

FUNCTION_INLINE float expression_tan_f32(float x) {
    double s, c;
    uint64_t quarter = function_angle(x, &s, &c);
    double over = (quarter & 1) != 0 ? -c : s, under = (quarter & 1) != 0 ? s : c;
    return (float)(over / under);
}

FUNCTION_INLINE float expression_sinh_f32(float x) {
    double e = function_expm1(function_clamp(fabs((double)x), 0, 130));
    return (float)copysign(0.5 * (e + e / (e + 1)), (double)x);
}

FUNCTION_INLINE float expression_cosh_f32(float x) {
    double e = function_exp(function_clamp(fabs((double)x), 0, 130));
    return (float)(0.5 * (e + 1 / e));
}

FUNCTION_INLINE float expression_tanh_f32(float x) {
    double e = function_expm1(function_clamp(2 * fabs((double)x), 0, 50));
    return (float)copysign(e / (e + 2), (double)x);
}

#endif
