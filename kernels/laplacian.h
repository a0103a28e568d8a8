/*
 * laplacian.h: arguments of the kernel `laplacian`, the five-point Laplacian with zero outside.
 *
 * B[i,j] = ((X[i-1,j] + X[i+1,j]) + (X[i,j-1] + X[i,j+1])) - 4*X[i,j], the right-hand side of which
 * X is the fixed point of the Jacobi update. Integers are exact (|X| < 2^28); doubles round in the
 * order written.
 *
 * Tolerance: equal bytes.
 */
#ifndef KILN_KERNELS_LAPLACIAN_H
#define KILN_KERNELS_LAPLACIAN_H

#include <stdint.h>

struct laplacian_args {
    int32_t width, height, planes; /* ≥ 1 */
    int32_t real;                  /* elements are 0: int32_t, 1: double */
    const void *x;                 /* device, planes × height × width */
    void *b;                       /* device, likewise; not overlapping x */
};

#endif
