/*
 * lombscargle_element.h: what the matrices of lombscargle_tensor.h are made of, for device code.
 *
 * An element has 8 bytes: a double, or in single precision two neighbouring samples' numbers, each
 * as a sum of two half floats (11 bits each) of which the larger pair comes first: three products
 * of those are one of floats. Half floats have a narrow range: cosines and sines of columns are
 * taken 2^12 times, those of lines such that a stage's largest weight lies below 2^14, and the
 * stage's sums are brought back when they are added to those of the stages before, in float. The
 * tensor cores round towards zero, but only over one stage.
 */
#ifndef KILN_CUDA_LOMBSCARGLE_ELEMENT_H
#define KILN_CUDA_LOMBSCARGLE_ELEMENT_H

#include "kernels/cuda/dmma.h"

#include <cuda_fp16.h>

struct double_element {
    typedef double type, real, sum;
    static constexpr int pack = LOMBSCARGLE_PACK(0);
    static constexpr int step = 4; /* entries that a product takes */
    static constexpr bool scaled = false;
    /* Cosine and sine of a row's offset. */
    struct __align__(16) offset { double c[pack], s[pack]; };
    static __device__ __forceinline__ double scale(double x, uint32_t) {
        return x;
    }
    static __device__ __forceinline__ double column(const double (&x)[pack]) {
        return x[0];
    }
    static __device__ __forceinline__ double line(const double (&x)[pack],
                                                  const double (&y)[pack]) {
        return __dmul_rn(x[0], y[0]);
    }
    template <int N>
    static __device__ __forceinline__ void multiply(double (&c)[N][4], const double (&a)[2],
                                                    const double (&b)[N][1]) {
#pragma unroll
        for (int n = 0; n < N; n++) {
            dmma(c[n], a, b[n]);
        }
    }
};

struct half_element {
    typedef uint2 type; /* the larger halves in x, the first sample's in the low bits */
    typedef float real, sum;
    static constexpr int pack = LOMBSCARGLE_PACK(1);
    static constexpr int step = 8;
    static constexpr bool scaled = true;
    struct __align__(16) offset { float c[pack], s[pack]; };
    static __device__ __forceinline__ uint32_t bits(__half2 pair) {
        return *(const uint32_t *)&pair;
    }
    /* The products x · y as sums of two halves. */
    static __device__ __forceinline__ uint2 line(const float (&x)[pack], const float (&y)[pack]) {
        __half2 high = __floats2half2_rn(__fmul_rn(x[0], y[0]), __fmul_rn(x[1], y[1]));
        float2 back = __half22float2(high);
        __half2 low = __floats2half2_rn(__fmaf_rn(x[0], y[0], -back.x),
                                        __fmaf_rn(x[1], y[1], -back.y));
        return make_uint2(bits(high), bits(low));
    }
    static __device__ __forceinline__ uint2 column(const float (&x)[pack]) {
        const float scale[pack] = {0x1p12f, 0x1p12f};
        return line(x, scale);
    }
    /* What a weight is multiplied by where the largest of its stage has these bits as a float, and
       the stage's sums. */
    static __device__ __forceinline__ float up(uint32_t most) {
        return __uint_as_float((267 - max(most >> 23, 26u)) << 23);
    }
    static __device__ __forceinline__ float down(uint32_t most) {
        return __uint_as_float((max(most >> 23, 26u) - 25) << 23);
    }
    static __device__ __forceinline__ float scale(float x, uint32_t most) {
        return __fmul_rn(x, up(most));
    }
    template <int N>
    static __device__ __forceinline__ void multiply(float (&c)[N][4], const uint2 (&a)[4],
                                                    const uint2 (&b)[N][2]) {
#pragma unroll
        for (int part = 0; part < 3; part++) {
#pragma unroll
            for (int n = 0; n < N; n++) {
                const uint32_t lines[4] = {part == 0 ? a[0].y : a[0].x, part == 0 ? a[1].y : a[1].x,
                                           part == 0 ? a[2].y : a[2].x,
                                           part == 0 ? a[3].y : a[3].x};
                const uint32_t columns[2] = {part == 1 ? b[n][0].y : b[n][0].x,
                                             part == 1 ? b[n][1].y : b[n][1].x};
                hmma(c[n], lines, columns);
            }
        }
    }
};

#endif
