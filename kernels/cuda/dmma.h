/*
 * dmma.h: double-precision tensor-core products and asynchronous copies, for device code.
 *
 * A warp holds fragments of C (16 × 8), A (16 × 8, rows) and B (8 × 8, columns). With g = lane / 4
 * and t = lane % 4 lane holds
 *   A: rows g, g + 8 at t, then the same rows at t + 4
 *   B: column g at t, t + 4
 *   C: row g at 2t, 2t + 1, then row g + 8 likewise
 * The inner index may be permuted at will, as long as A and B agree.
 */
#ifndef KILN_CUDA_DMMA_H
#define KILN_CUDA_DMMA_H

#include <stdint.h>

/* c += a · b */
static __device__ __forceinline__ void dmma(double (&c)[4], const double (&a)[4],
                                            const double (&b)[2]) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f64.f64.f64.f64 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+d"(c[0]), "+d"(c[1]), "+d"(c[2]), "+d"(c[3])
                 : "d"(a[0]), "d"(a[1]), "d"(a[2]), "d"(a[3]), "d"(b[0]), "d"(b[1]));
#elif defined(__CUDA_ARCH__)
#pragma unroll
    for (int row = 0; row < 2; row++) {
#pragma unroll
        for (int k = 0; k < 2; k++) {
            asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 "
                         "{%0, %1}, {%2}, {%3}, {%0, %1};"
                         : "+d"(c[2 * row]), "+d"(c[2 * row + 1])
                         : "d"(a[2 * k + row]), "d"(b[k]));
        }
    }
#endif
}

/* 16 bytes from global to shared memory, or zeros; seen after copies_wait and a barrier. */
static __device__ __forceinline__ void copy_start(void *shared, const void *global, bool zeros) {
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
