/*
 * lombscargle_element.h: what the matrices of lombscargle_tensor.h are made of, for device code.
 *
 * An entry is a sample, its elements doubles; in single precision it is four neighbouring samples,
 * and an element their numbers, each as a sum of two half floats (11 bits each): three products of
 * those are one of floats. Elements lie in shared memory as the tensor cores take them (dmma.h):
 * in columns one after the other, four larger halves and four smaller ones; in lines those that
 * are eight apart together, larger halves of both and then smaller ones.
 *
 * Half floats have a narrow range: cosines and sines of columns are taken 2^12 times, those of
 * lines such that the largest weight of two stages lies below 2^14, and their sums are brought back
 * when they are added to those of the stages before, in float. The tensor cores round towards zero,
 * but only over two stages.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_ELEMENT_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_ELEMENT_H

#include "kernels/cuda/lombscargle/lombscargle_grid.h"
#include "kernels/cuda/spectral/dmma.h"

#include <cuda_fp16.h>

#define EIGHT 8 /* lines apart that a product takes together */

struct double_element {
    typedef double type, real, sum;
    static constexpr int pack = LOMBSCARGLE_PACK(0), stage = LOMBSCARGLE_STAGE(0);
    static constexpr int pitch = LOMBSCARGLE_PITCH(0);
    static constexpr int unroll = 2; /* entries × 4 that a multiplier asks for together */
    static constexpr bool scaled = false;
    /* Cosine and sine of a row's offset. */
    struct __align__(16) offset {
        double c[pack], s[pack];
    };

    static __device__ __forceinline__ double scale(double x, uint32_t) {
        return x;
    }
    static __device__ __forceinline__ double column(const double (&x)[pack]) {
        return x[0];
    }
    /* Two lines EIGHT apart: a · b and c · d. */
    static __device__ __forceinline__ void lines(double *to, const double (&a)[pack],
                                                 const double (&b)[pack], const double (&c)[pack],
                                                 const double (&d)[pack]) {
        to[0] = __dmul_rn(a[0], b[0]);
        to[EIGHT] = __dmul_rn(c[0], d[0]);
    }
    template <int N>
    static __device__ __forceinline__ void multiply(double (&c)[N][4], const double (&a)[2],
                                                    const double (&b)[N]) {
#pragma unroll
        for (int n = 0; n < N; n++) {
            const double column[1] = {b[n]};
            dmma(c[n], a, column);
        }
    }
};

struct half_element {
    typedef uint4 type;
    typedef float real, sum;
    static constexpr int pack = LOMBSCARGLE_PACK(1), stage = LOMBSCARGLE_STAGE(1);
    static constexpr int pitch = LOMBSCARGLE_PITCH(1);
    static constexpr int unroll = 1;
    static constexpr bool scaled = true; /* weights, by the largest of some stages */
    struct __align__(16) offset {
        float c[pack], s[pack];
    };

    /* What a weight is multiplied by where the largest of its stage has these bits as a float, and
       the stage's sums. */
    static __device__ __forceinline__ float scale(float x, uint32_t most) {
        return __fmul_rn(x, __uint_as_float((267 - max(most >> 23, 26u)) << 23));
    }
    static __device__ __forceinline__ float back(uint32_t most) {
        return __uint_as_float((max(most >> 23, 26u) - 25) << 23);
    }
    static __device__ __forceinline__ uint32_t bits(__half2 pair) {
        return *(const uint32_t *)&pair;
    }
    /* The products a · c and b · d as larger and smaller halves. */
    static __device__ __forceinline__ void split(float a, float c, float b, float d,
                                                 uint32_t &larger, uint32_t &smaller) {
        __half2 high = __floats2half2_rn(__fmul_rn(a, c), __fmul_rn(b, d));
        float2 rounded = __half22float2(high);
        larger = bits(high);
        smaller = bits(__floats2half2_rn(__fmaf_rn(a, c, -rounded.x), __fmaf_rn(b, d, -rounded.y)));
    }
    static __device__ __forceinline__ uint4 column(const float (&x)[pack]) {
        uint4 element;
        split(x[0], 0x1p12f, x[1], 0x1p12f, element.x, element.z);
        split(x[2], 0x1p12f, x[3], 0x1p12f, element.y, element.w);
        return element;
    }
    static __device__ __forceinline__ void lines(uint4 *to, const float (&a)[pack],
                                                 const float (&b)[pack], const float (&c)[pack],
                                                 const float (&d)[pack]) {
        uint4 larger, smaller;
        split(a[0], b[0], a[1], b[1], larger.x, smaller.x);
        split(c[0], d[0], c[1], d[1], larger.y, smaller.y);
        split(a[2], b[2], a[3], b[3], larger.z, smaller.z);
        split(c[2], d[2], c[3], d[3], larger.w, smaller.w);
        to[0] = larger;
        to[EIGHT] = smaller;
    }
    template <int N>
    static __device__ __forceinline__ void multiply(float (&c)[N][4], const uint4 (&a)[2],
                                                    const uint4 (&b)[N]) {
#pragma unroll
        for (int n = 0; n < N; n++) {
            hmma(c[n], a[1], b[n].x, b[n].y);
        }
#pragma unroll
        for (int n = 0; n < N; n++) {
            hmma(c[n], a[0], b[n].z, b[n].w);
        }
#pragma unroll
        for (int n = 0; n < N; n++) {
            hmma(c[n], a[0], b[n].x, b[n].y);
        }
    }
};

#endif
