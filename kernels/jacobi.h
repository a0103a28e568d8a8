/*
 * jacobi.h: arguments of the kernel `jacobi`, literal Jacobi sweeps of the discrete Poisson
 * problem.
 *
 * One sweep is X'[i,j] = (((X[i-1,j] + X[i+1,j]) + (X[i,j-1] + X[i,j+1])) - B[i,j]) * 0.25, with
 * zero outside the array, in exactly this order of roundings (no fused operations) on every
 * backend, so that results are byte-identical to the same expression in NumPy. Planes are
 * independent.
 *
 * With tolerance > 0 the sweeps stop after the first multiple of JACOBI_CHECK sweeps whose last
 * sweep changed no element of any plane by more than `tolerance` (max |X' - X|).
 *
 * Tolerance: equal bytes.
 */
#ifndef KILN_KERNELS_JACOBI_H
#define KILN_KERNELS_JACOBI_H

#include <stdint.h>

#define JACOBI_CHECK 256

/** What a run of sweeps did; in device memory, downloaded by the caller. */
struct jacobi_report {
    int64_t sweeps;  /* done */
    double residual; /* max |X' - X| of the last sweep; NaN where it was not asked for */
};

struct jacobi_args {
    int32_t width, height, planes; /* ≥ 1 */
    int32_t fp64;                  /* elements are 0: float, 1: double */
    int64_t iterations;            /* ≥ 0; 0 copies the start */
    double tolerance;              /* 0: none */
    const void *b;                 /* device, planes × height × width */
    const void *start;             /* device, likewise (may equal b), or NULL for zero */
    void *x;                       /* device, likewise, result; not overlapping b or start */
    struct jacobi_report *report;  /* device, or NULL */
};

#endif
