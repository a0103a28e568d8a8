/*
 * simd.h: vectors of one element type and one instruction set, for the inner files (*_simd.c).
 *
 * The build compiles an inner file once for every pair: SIMD_ISA_<set> and SIMD_REAL_<f32|f64> say
 * which. `vec` holds LANES elements of type `real` and takes + - * / directly; the rest is here.
 * `lanes` is the integer vector of the same shape. `mask` holds one truth value a lane.
 *
 *   v_fma(a,b,c)     a*b + c; rounded once where SIMD_FUSED, else twice
 *   v_fma_exact      a*b + c rounded once on every set (slow without the instruction)
 *   v_fnma_exact     c - a*b rounded once
 *   v_left(p, v)     lane i is element i-1 of v, lane 0 the last one of p
 *   v_right(v, n)    lane i is element i+1 of v, the last lane the first one of n
 *   m_over(a, b)     a > b;  m_within(a, b)  a <= b: both false where one is NaN
 */
#ifndef KILN_KERNELS_CPU_DEVICE_SIMD_H
#define KILN_KERNELS_CPU_DEVICE_SIMD_H

#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define SIMD_PASTE2(noun, isa, real) noun##_##isa##_##real
#define SIMD_PASTE(noun, isa, real)  SIMD_PASTE2(noun, isa, real)
/** noun_avx2_f32 */
#define SIMD_NAME(noun) SIMD_PASTE(noun, SIMD_ISA, SIMD_REAL)

#if defined(SIMD_ISA_avx512)
#define SIMD_BYTES 64
#elif defined(SIMD_ISA_avx2)
#define SIMD_BYTES 32
#else
#define SIMD_BYTES 16
#endif

#if defined(SIMD_REAL_f64)
typedef double real;
typedef int64_t lane;
#define LANES (SIMD_BYTES / 8)
#else
typedef float real;
typedef int32_t lane;
#define LANES (SIMD_BYTES / 4)
#endif

typedef real vec __attribute__((vector_size(SIMD_BYTES)));
typedef lane lanes __attribute__((vector_size(SIMD_BYTES)));

static inline vec v_load(const real *from) {
    vec v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline void v_store(real *to, vec v) {
    memcpy(to, &v, sizeof v);
}

static inline lanes i_load(const lane *from) {
    lanes v;
    memcpy(&v, from, sizeof v);
    return v;
}

static inline void i_store(lane *to, lanes v) {
    memcpy(to, &v, sizeof v);
}

static inline vec v_set(real x) {
    return (vec){0} + x;
}

static inline lanes i_set(lane x) {
    return (lanes){0} + x;
}

#if defined(SIMD_ISA_avx512)
#include <immintrin.h>
#define SIMD_FUSED 1
#if defined(SIMD_REAL_f64)
typedef __mmask8 mask;
#define SIMD_MASK_ALL       ((mask)0xff)
#define V(name)             _mm512_##name##_pd
#define m_over(a, b)        _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ)
#define m_within(a, b)      _mm512_cmp_pd_mask(a, b, _CMP_LE_OQ)
#define m_equal(a, b)       _mm512_cmp_pd_mask(a, b, _CMP_EQ_OQ)
#define m_equal_lanes(a, b) _mm512_cmpeq_epi64_mask((__m512i)(a), (__m512i)(b))
#define i_select(m, a, b)   ((lanes)_mm512_mask_mov_epi64((__m512i)(b), m, (__m512i)(a)))
#define v_left(p, v)        ((vec)_mm512_alignr_epi64((__m512i)(v), (__m512i)(p), 7))
#define v_right(v, n)       ((vec)_mm512_alignr_epi64((__m512i)(n), (__m512i)(v), 1))
#else
typedef __mmask16 mask;
#define SIMD_MASK_ALL       ((mask)0xffff)
#define V(name)             _mm512_##name##_ps
#define m_over(a, b)        _mm512_cmp_ps_mask(a, b, _CMP_GT_OQ)
#define m_within(a, b)      _mm512_cmp_ps_mask(a, b, _CMP_LE_OQ)
#define m_equal(a, b)       _mm512_cmp_ps_mask(a, b, _CMP_EQ_OQ)
#define m_equal_lanes(a, b) _mm512_cmpeq_epi32_mask((__m512i)(a), (__m512i)(b))
#define i_select(m, a, b)   ((lanes)_mm512_mask_mov_epi32((__m512i)(b), m, (__m512i)(a)))
#define v_left(p, v)        ((vec)_mm512_alignr_epi32((__m512i)(v), (__m512i)(p), 15))
#define v_right(v, n)       ((vec)_mm512_alignr_epi32((__m512i)(n), (__m512i)(v), 1))
#endif
#define v_fma(a, b, c)        V(fmadd)(a, b, c)
#define v_fma_exact(a, b, c)  V(fmadd)(a, b, c)
#define v_fnma_exact(a, b, c) V(fnmadd)(a, b, c)
#define v_sqrt(a)             V(sqrt)(a)
#define v_select(m, a, b)     V(mask_mov)(b, m, a)
#define m_bits(m)             ((uint32_t)(m))
#define m_from_bits(bits)     ((mask)(bits))
#define m_and(a, b)           ((mask)((a) & (b)))
#define m_and_not(a, b)       ((mask)((a) & ~(b)))
#define m_any(m)              ((m) != 0)

#elif defined(SIMD_ISA_avx2)
#include <immintrin.h>
#define SIMD_FUSED 1
typedef lanes mask;
#if defined(SIMD_REAL_f64)
#define V(name) _mm256_##name##_pd
static inline vec v_left(vec p, vec v) {
    __m256d middle = _mm256_permute2f128_pd(p, v, 0x21);
    return _mm256_shuffle_pd(middle, v, 0x5);
}
static inline vec v_right(vec v, vec n) {
    __m256d middle = _mm256_permute2f128_pd(v, n, 0x21);
    return _mm256_shuffle_pd(v, middle, 0x5);
}
#else
#define V(name) _mm256_##name##_ps
static inline vec v_left(vec p, vec v) {
    __m256i middle = _mm256_permute2x128_si256((__m256i)p, (__m256i)v, 0x21);
    return (vec)_mm256_alignr_epi8((__m256i)v, middle, 12);
}
static inline vec v_right(vec v, vec n) {
    __m256i middle = _mm256_permute2x128_si256((__m256i)v, (__m256i)n, 0x21);
    return (vec)_mm256_alignr_epi8(middle, (__m256i)v, 4);
}
#endif
#define v_fma(a, b, c)        V(fmadd)(a, b, c)
#define v_fma_exact(a, b, c)  V(fmadd)(a, b, c)
#define v_fnma_exact(a, b, c) V(fnmadd)(a, b, c)
#define v_sqrt(a)             V(sqrt)(a)
#define v_select(m, a, b)     V(blendv)(b, a, (vec)(m))
#define i_select(m, a, b)     (((m) & (a)) | (~(m) & (b)))
#define m_bits(m)             ((uint32_t)V(movemask)((vec)(m)))
#define m_any(m)              (m_bits(m) != 0)

#else /* baseline: GCC's portable vectors */
typedef lanes mask;
static inline vec v_fma(vec a, vec b, vec c) {
    return a * b + c;
}
static inline vec v_fma_exact(vec a, vec b, vec c) {
    vec r;
    for (int i = 0; i < LANES; i++) {
        r[i] = sizeof(real) == 8 ? (real)fma(a[i], b[i], c[i])
                                 : (real)fmaf((float)a[i], (float)b[i], (float)c[i]);
    }
    return r;
}
static inline vec v_fnma_exact(vec a, vec b, vec c) {
    return v_fma_exact(-a, b, c);
}
static inline vec v_sqrt(vec a) {
    for (int i = 0; i < LANES; i++) {
        a[i] = (real)sqrt(a[i]);
    }
    return a;
}
#define i_select(m, a, b) (((m) & (a)) | (~(m) & (b)))
static inline vec v_select(mask m, vec a, vec b) {
    return (vec)i_select(m, (lanes)a, (lanes)b);
}
#if LANES == 4
static inline vec v_left(vec p, vec v) {
    return __builtin_shuffle(p, v, (lanes){3, 4, 5, 6});
}
static inline vec v_right(vec v, vec n) {
    return __builtin_shuffle(v, n, (lanes){1, 2, 3, 4});
}
#else
static inline vec v_left(vec p, vec v) {
    return __builtin_shuffle(p, v, (lanes){1, 2});
}
static inline vec v_right(vec v, vec n) {
    return __builtin_shuffle(v, n, (lanes){1, 2});
}
#endif
static inline uint32_t m_bits(mask m) {
    uint32_t bits = 0;
    for (int i = 0; i < LANES; i++) {
        bits |= (uint32_t)(m[i] & 1) << i;
    }
    return bits;
}
#define m_any(m) (m_bits(m) != 0)
#endif

#if !defined(SIMD_ISA_avx512)
#define m_over(a, b)        ((a) > (b))
#define m_within(a, b)      ((a) <= (b))
#define m_equal(a, b)       ((a) == (b))
#define m_equal_lanes(a, b) ((a) == (b))
#define m_and(a, b)         ((a) & (b))
#define m_and_not(a, b)     ((a) & ~(b))
static inline mask m_from_bits(uint32_t bits) {
    mask m;
    for (int i = 0; i < LANES; i++) {
        m[i] = -(lane)(bits >> i & 1);
    }
    return m;
}
#endif

#endif
