/*
 * spectral.h: arguments of the kernel `spectral`, the n-th Jacobi iterate and its limit in closed
 * form.
 *
 * On a rectangle with zeros outside, the update of jacobi.h is diagonal in the type-I discrete sine
 * transform. With q = sin²(πk / 2(height+1)) + sin²(πl / 2(width+1)) and L = 1 - q, mode (k,l) of
 * the n-th iterate is L^n X₀ - (1 - L^n) / (4q) B; for n = ∞ it is -B / (4q), the solution of the
 * discrete Poisson problem (Buzbee, Golub, Nielson 1970, SIAM J. Numer. Anal. 7, 627). L^n is
 * evaluated as exp(n log1p(-q)) for q < 1 and by symmetry above, 1 - L^n by expm1, all in double.
 *
 * Transforms run in double whatever the elements are. Tolerance, relative to the largest |X| of the
 * literal iterate in double: 1e-9 for double elements, 1e-6 for float.
 */
#ifndef KILN_KERNELS_SPECTRAL_H
#define KILN_KERNELS_SPECTRAL_H

#include <stdint.h>

#define SPECTRAL_INFINITE INT64_C(-1) /* iterations of the direct solution */

struct spectral_args {
    int32_t width, height, planes; /* ≥ 1 */
    int32_t fp64;                  /* elements are 0: float, 1: double */
    int64_t iterations;            /* ≥ 0, or SPECTRAL_INFINITE */
    int32_t start_zero;            /* X₀ is 0: B, 1: zero */
    const void *b;                 /* device, planes × height × width */
    void *x;                       /* device, likewise, result; may equal b */
};

#endif
