/*
 * dst_simd.h: type-I discrete sine transforms of any length, DST_ROWS rows at a time.
 *
 * y_k = Σ_{j=1..n} x_j sin(πjk / (n+1)), k = 1..n; applying it twice multiplies by (n+1)/2. Two
 * real rows ride in one complex transform of length n+1 after the folding of Press et al.
 * (Numerical Recipes, section on sine transforms), so that no transform is longer than the row.
 *
 * Threads: a plan is constant after creation. Ownership: work memory is the caller's.
 */
#ifndef KILN_KERNELS_CPU_SPECTRAL_DST_SIMD_H
#define KILN_KERNELS_CPU_SPECTRAL_DST_SIMD_H

#include "kernels/cpu/spectral/fft_simd.h"

#define DST_ROWS (2 * FFT_LANES)

#define dst_create  SIMD_NAME(dst_create)
#define dst_destroy SIMD_NAME(dst_destroy)
#define dst_length  SIMD_NAME(dst_length)
#define dst_waves   SIMD_NAME(dst_waves)
#define dst_work    SIMD_NAME(dst_work)
#define dst_run     SIMD_NAME(dst_run)

/** Element i of DST_ROWS rows. */
struct dst_element {
    vec half[2];
};

struct dst;

struct dst *dst_create(size_t length);
void dst_destroy(struct dst *dst);
/** The plan's length. */
size_t dst_length(const struct dst *dst);
/** sin²(πk / 2(n+1)) for k = 1 … n at index k - 1: half the share of this axis in the eigenvalue
    1 - L of the five-point stencil's mode k. Index n - k is the same of the complement. */
const double *dst_waves(const struct dst *dst);
/** Bytes of work memory, 64-byte aligned, that dst_run needs. */
size_t dst_work(const struct dst *dst);
/** Transforms `data` (length elements) in place. */
void dst_run(const struct dst *dst, struct dst_element *data, void *work);

#endif
