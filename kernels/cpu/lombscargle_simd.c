/*
 * lombscargle_simd.c: the sums of `lombscargle` for one instruction set and element type.
 *
 * The first frequency's cosines and sines come from the phase in turns, reduced in double with the
 * product's rounding error kept, and two short polynomials. Those of the next frequencies come by
 * rotation. Sums run over vectors of samples; each block's are added up in double.
 */
#include "kernels/cpu/lombscargle_simd.h"
#include "kernels/cpu/simd.h"

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

/* sin and cos of 2π x, |x| ≤ 1/8 and a little more: Taylor series in x², which converge fast here.
 */
static inline void sincos_poly(real x, real *sine, real *cosine) {
    real q = x * x;
    if (sizeof(real) == 8) {
        real s = (real)-0.71812230177850051;
        s = s * q + (real)3.8199525848482821;
        s = s * q + (real)-15.094642576822990;
        s = s * q + (real)42.058693944897652;
        s = s * q + (real)-76.705859753061385;
        s = s * q + (real)81.605249276075054;
        s = s * q + (real)-41.341702240399760;
        *sine = x * (s * q + (real)6.2831853071795865);
        real c = (real)0.28200596845579096;
        c = c * q + (real)-1.7143907110886720;
        c = c * q + (real)7.9035363713184692;
        c = c * q + (real)-26.426256783374399;
        c = c * q + (real)60.244641371876664;
        c = c * q + (real)-85.456817206693724;
        c = c * q + (real)64.939394022668291;
        c = c * q + (real)-19.739208802178716;
        *cosine = c * q + 1;
    } else {
        real s = (real)42.058693944897652;
        s = s * q + (real)-76.705859753061385;
        s = s * q + (real)81.605249276075054;
        s = s * q + (real)-41.341702240399760;
        *sine = x * (s * q + (real)6.2831853071795865);
        real c = (real)-26.426256783374399;
        c = c * q + (real)60.244641371876664;
        c = c * q + (real)-85.456817206693724;
        c = c * q + (real)64.939394022668291;
        c = c * q + (real)-19.739208802178716;
        *cosine = c * q + 1;
    }
}

/* Turns (sine, cosine) on by `quarter` quarters. */
static inline void sincos_turn(uint64_t quarter, real *sine, real *cosine) {
    real s = quarter & 1 ? *cosine : *sine, c = quarter & 1 ? *sine : *cosine;
    *sine = quarter & 2 ? -s : s;
    *cosine = (quarter + 1) & 2 ? -c : c;
}

static void sincos_fill(const double *restrict t, size_t n, double f, double f_low,
                        real *restrict cosine, real *restrict sine) {
    for (size_t i = 0; i < n; i++) {
        uint64_t quarter;
        real x = (real)phase_reduce(f, f_low, t[i], &quarter);
        real s, c;
        sincos_poly(x, &s, &c);
        sincos_turn(quarter, &s, &c);
        cosine[i] = c;
        sine[i] = s;
    }
}

static void weigh(const double *w, const double *y, double level, size_t n, void *root,
                  void *value) {
    real *r = root, *v = value;
    for (size_t i = 0; i < n; i++) {
        double scale = sqrt(w[i]);
        r[i] = (real)scale;
        v[i] = (real)(scale * (y[i] - level));
    }
}

static void prepare(const struct lombscargle_samples *samples, double df) {
    sincos_fill(samples->t, samples->n, df, 0, samples->step_c, samples->step_s);
}

#if defined(SIMD_ISA_avx512) && defined(SIMD_REAL_f64)
#define v_sum(v) _mm512_reduce_add_pd(v)
#elif defined(SIMD_ISA_avx512)
static inline double v_sum(vec v) {
    __m512d low = _mm512_cvtps_pd(_mm512_castps512_ps256(v));
    __m512d high = _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1));
    return _mm512_reduce_add_pd(low + high);
}
#else
static inline double v_sum(vec v) {
    double sum = 0;
    for (int i = 0; i < LANES; i++)
        sum += (double)v[i];
    return sum;
}
#endif

struct block {
    const real *root, *value, *step_c, *step_s;
    _Alignas(64) real c[LOMBSCARGLE_BLOCK], s[LOMBSCARGLE_BLOCK]; /* √w cos, √w sin */
};

/* The sums at one frequency; turns the block on to the next one. */
static void block_sum(struct block *block, size_t n, double *sums) {
    vec yc = v_set(0), ys = yc, c1 = yc, s1 = yc, cc = yc, cs = yc, ss = yc;
    for (size_t i = 0; i < n; i += LANES) {
        vec c = v_load(block->c + i), s = v_load(block->s + i);
        vec root = v_load(block->root + i), value = v_load(block->value + i);
        vec step_c = v_load(block->step_c + i), step_s = v_load(block->step_s + i);
        yc = v_fma(value, c, yc);
        ys = v_fma(value, s, ys);
        c1 = v_fma(root, c, c1);
        s1 = v_fma(root, s, s1);
        cc = v_fma(c, c, cc);
        cs = v_fma(c, s, cs);
        ss = v_fma(s, s, ss);
        v_store(block->c + i, v_fma(c, step_c, -(s * step_s)));
        v_store(block->s + i, v_fma(s, step_c, c * step_s));
    }
    sums[SUM_YC] += v_sum(yc);
    sums[SUM_YS] += v_sum(ys);
    sums[SUM_C] += v_sum(c1);
    sums[SUM_S] += v_sum(s1);
    sums[SUM_CC] += v_sum(cc);
    sums[SUM_CS] += v_sum(cs);
    sums[SUM_SS] += v_sum(ss);
}

static void sums_add(const struct lombscargle_samples *samples, size_t first, size_t n, double f,
                     double f_low, int count, double (*sums)[SUM_COUNT]) {
    struct block block; /* its arrays are filled as far as n */
    block.root = (const real *)samples->root + first;
    block.value = (const real *)samples->value + first;
    block.step_c = (const real *)samples->step_c + first;
    block.step_s = (const real *)samples->step_s + first;
    sincos_fill(samples->t + first, n, f, f_low, block.c, block.s);
    for (size_t i = 0; i < n; i++) {
        block.c[i] *= block.root[i];
        block.s[i] *= block.root[i];
    }
    for (int k = 0; k < count; k++)
        block_sum(&block, n, sums[k]);
}

const struct lombscargle_simd SIMD_NAME(lombscargle) = {
    .element = sizeof(real),
    .lanes = LANES,
    .weigh = weigh,
    .prepare = prepare,
    .sums = sums_add,
};
