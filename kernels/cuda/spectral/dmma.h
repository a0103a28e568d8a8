/*
 * dmma.h: products on tensor cores in double and half precision, and asynchronous copies, for
 * device code.
 *
 * A warp holds fragments of C (16 × 8), A (16 rows) and B (8 columns), of 4 or 8 inner lines at a
 * time. With g = lane / 4 and t = lane % 4 lane holds
 *   A: rows g, g + 8 at t; of 8 inner lines then the same rows at t + 4
 *   B: column g at t; of 8 then at t + 4
 *   C: row g at 2t, 2t + 1, then row g + 8 likewise
 * What half floats have at an inner line are two neighbours, the first in the low bits; C is in
 * float. The inner index may be permuted at will, as long as A and B agree.
 *
 * While products in double keep a multiprocessor busy, other warps' arithmetic in double waits: the
 * two share a pipe, and products go first (on an H200 about 1400 cycles for one multiply-add).
 */
#ifndef KILN_KERNELS_CUDA_SPECTRAL_DMMA_H
#define KILN_KERNELS_CUDA_SPECTRAL_DMMA_H

#include <stdint.h>

/* c += a · b of 4 inner lines */
static __device__ __forceinline__ void dmma(double (&c)[4], const double (&a)[2],
                                            const double (&b)[1]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k4.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(b[0]));
#elif defined(__CUDA_ARCH__)
#pragma unroll
    for (int row = 0; row < 2; row++) {
        asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
                     "{%0, %1}, {%2}, {%3}, {%0, %1};"
                     : "+d"(c[2 * row]), "+d"(c[2 * row + 1])
                     : "d"(a[row]), "d"(b[0]));
    }
#endif
}

/* c += a · b of 8 */
static __device__ __forceinline__ void dmma(double (&c)[4], const double (&a)[4],
                                            const double (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#else
#pragma unroll
    for (int k = 0; k < 2; k++) {
        dmma(c, {a[2 * k], a[2 * k + 1]}, {b[k]});
    }
#endif
}

/* c += a · b of 8 pairs of half floats, sums rounded towards zero */
static __device__ __forceinline__ void hmma(float (&c)[4], const uint4 &a, uint32_t b, uint32_t d) {
#ifdef __CUDA_ARCH__
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a.x), "r"(a.y), "r"(a.z), "r"(a.w), "r"(b), "r"(d));
#endif
}

/* 16 bytes from global to shared memory, or zeros; seen after copies_wait and a barrier. */
static __device__ __forceinline__ void copy_start(void *shared, const void *global,
                                                  bool zeros = false) {
#ifdef __CUDA_ARCH__
    unsigned target = (unsigned)__cvta_generic_to_shared(shared);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;"
                 :
                 : "r"(target), "l"(global), "r"(zeros ? 0 : 16)
                 : "memory");
#endif
}

/* Closes a group of copies. */
static __device__ __forceinline__ void copies_close() {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

/* Waits for all groups but the last LEFT. */
template <int LEFT> static __device__ __forceinline__ void copies_wait() {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_group %0;" ::"n"(LEFT) : "memory");
#endif
}

#endif
