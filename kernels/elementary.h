/*
 * elementary.h: logarithm, power, root and circular functions whose bytes are the same everywhere.
 *
 * The C library's and the device's functions differ in their last digits, from one another and from
 * one version or processor to the next. What decides a byte of a result uses these instead: sums,
 * products, quotients and written fused multiply-adds in one order, each rounded as IEEE 754 says.
 * The compiler must fuse nothing by itself (-ffp-contract=off, nvcc -fmad=false).
 *
 * In float, for kernels (C11 and device code; loops over them become vectors):
 *   elementary_log2f, elementary_log2d   |error| < 1e-7 + half an ulp of the result
 *   elementary_rsqrt                     relative error < 3e-7
 * In double, for hosts:
 *   elementary_log2, elementary_exp2, elementary_sine, elementary_cosine   relative error < 1e-15
 *   (exp2: and 4e-16 for each unit of its argument, which is rounded itself)
 * tests/unit/test_elementary.c holds all of them to that.
 *
 * The polynomial of the float logarithm is the best one of degree 7 for log2(1+r)/r on
 * [sqrt(1/2) - 1, sqrt(2) - 1], found by scripts/logarithm.py (Remez exchange, 40 digits).
 *
 * Threads: reentrant.
 */
#ifndef KILN_KERNELS_ELEMENTARY_H
#define KILN_KERNELS_ELEMENTARY_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#ifdef __CUDACC__
#define ELEMENTARY_INLINE static __device__ __forceinline__
#else
#define ELEMENTARY_INLINE static inline
#endif

/* log2 of m · 2^e for m in [sqrt(1/2), sqrt(2)]. */
ELEMENTARY_INLINE float elementary_log2_of(float m, int32_t e) {
    float r = m - 1.0f, p = -0.14577023684978485f;
    p = fmaf(p, r, 0.23687517642974854f);
    p = fmaf(p, r, -0.2500537037849426f);
    p = fmaf(p, r, 0.2867095470428467f);
    p = fmaf(p, r, -0.360088974237442f);
    p = fmaf(p, r, 0.4809393286705017f);
    p = fmaf(p, r, -0.7213571071624756f);
    p = fmaf(p, r, 1.4426947832107544f);
    return fmaf(p, r, (float)e);
}

/** log2(x) for normal x ≥ sqrt(1/2). Infinity counts as 2^128. */
ELEMENTARY_INLINE float elementary_log2f(float x) {
    uint32_t bits, above;
    float m;
    memcpy(&bits, &x, sizeof bits);
    above = bits - 0x3f3504f3u; /* of sqrt(1/2) */
    bits -= above & 0xff800000u;
    memcpy(&m, &bits, sizeof m);
    return elementary_log2_of(m, (int32_t)(above >> 23));
}

/** The same of a double, as a float. Infinity counts as 2^1024. */
ELEMENTARY_INLINE float elementary_log2d(double x) {
    uint64_t bits, above;
    double m;
    memcpy(&bits, &x, sizeof bits);
    above = bits - 0x3fe6a09e667f3bcdu;
    bits -= above & 0xfff0000000000000u;
    memcpy(&m, &bits, sizeof m);
    return elementary_log2_of((float)m, (int32_t)(above >> 52));
}

/** 1/sqrt(x) for 1 ≤ x < 1e37: Newton's iteration from halved bits, unfused. */
ELEMENTARY_INLINE float elementary_rsqrt(float x) {
    uint32_t bits;
    float y, half = 0.5f * x;
    memcpy(&bits, &x, sizeof bits);
    bits = 0x5f375a86u - (bits >> 1);
    memcpy(&y, &bits, sizeof y);
    y = y * (1.5f - half * y * y);
    y = y * (1.5f - half * y * y);
    return y * (1.5f - half * y * y);
}

#ifndef __CUDACC__
/** log2(x) for normal x > 0, by the series of the inverse hyperbolic tangent. Powers of two are
    exact. */
static inline double elementary_log2(double x) {
    int64_t bits, above;
    double m;
    memcpy(&bits, &x, sizeof bits);
    above = bits - 0x3fe6a09e667f3bcd;
    int64_t exponent = above >> 52; /* rounded down */
    bits -= exponent * (INT64_C(1) << 52);
    memcpy(&m, &bits, sizeof m);
    double s = (m - 1) / (m + 1), q = s * s, q2 = q * q;
    double even = 1.0 / 5 + q2 * (1.0 / 9 + q2 * (1.0 / 13 + q2 * (1.0 / 17 + q2 * (1.0 / 21))));
    double odd = 1.0 / 3 + q2 * (1.0 / 7 + q2 * (1.0 / 11 + q2 * (1.0 / 15 + q2 * (1.0 / 19))));
    double sum = s * (q * odd + q2 * even);
    return (double)exponent + (s + sum) * 2.8853900817779268; /* 2 / ln 2 */
}

/** 2^t for t ≤ 1000, by the exponential's series; 0 below the normal numbers. */
static inline double elementary_exp2(double t) {
    if (!(t >= -1022)) {
        return 0;
    }
    double whole = (t + 0x1.8p52) - 0x1.8p52, scale; /* the nearest whole number */
    double x = (t - whole) * 0.69314718055994531, x2 = x * x, x4 = x2 * x2;
    double low = 1.0 + x + x2 * (1.0 / 2 + x * (1.0 / 6));
    double middle = 1.0 / 24 + x * (1.0 / 120) + x2 * (1.0 / 720 + x * (1.0 / 5040));
    double high = 1.0 / 40320 + x * (1.0 / 362880) + x2 * (1.0 / 3628800 + x * (1.0 / 39916800));
    double last = 1.0 / 479001600 + x * (1.0 / 6227020800) + x2 * (1.0 / 87178291200);
    double sum = low + x4 * (middle + x4 * (high + x4 * last));
    int64_t bits = ((int64_t)whole + 1023) * (INT64_C(1) << 52);
    memcpy(&scale, &bits, sizeof scale);
    return sum * scale;
}

/** Sine of an angle in degrees (a few turns at most); exact at multiples of 90. */
static inline double elementary_sine(double degrees) {
    double quarters = floor((degrees + 45) / 90);
    double x = (degrees - 90 * quarters) * 0.017453292519943295, square = x * x;
    int quarter = (int)(quarters - 4 * floor(quarters / 4)), odd = quarter % 2 != 0;
    double sum = 1;
    for (int n = odd ? 18 : 19; n > 1; n -= 2) {
        sum = 1 - sum * square / (n * (n - 1));
    }
    sum = odd ? sum : sum * x;
    return quarter < 2 ? sum : 0 - sum;
}

static inline double elementary_cosine(double degrees) {
    return elementary_sine(degrees + 90);
}
#endif

#endif
