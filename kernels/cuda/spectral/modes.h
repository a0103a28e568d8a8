/*
 * modes.h: what the passes of `spectral` have in common, for device code: the modes' factors,
 * stores of elements, and the look at the stop word.
 */
#ifndef KILN_KERNELS_CUDA_SPECTRAL_MODES_H
#define KILN_KERNELS_CUDA_SPECTRAL_MODES_H

#include "kernels/cuda/spectral/spectral_grid.h"

#define UNDERFLOW_LOG -745.0 /* exp of less is 0 in double */

/* L^n of a mode, from q = 1 - L and its complement 2 - q = 1 + L, each accurate by itself. */
static __device__ double power(double q, double complement, int64_t n) {
    /* Where L is almost 0 both may be rounded to more than 1. */
    double exponent = (double)n * log1p(-fmin(fmin(q, complement), 1.0));
    if (exponent < UNDERFLOW_LOG) {
        return 0;
    }
    return q > 1 && n % 2 ? -exp(exponent) : exp(exponent);
}

/* What mode (k,l) of B is multiplied by. Modes that have died out need no logarithm. */
static __device__ double factor(const spectral_modes &grid, int64_t k, int64_t l) {
    int64_t n = grid.iterations;
    double q = grid.along[k] + grid.other[l];
    double complement = grid.along[grid.length - 1 - k] + grid.other[grid.rows - 1 - l];
    if (n == 0) {
        return grid.start_zero ? 0 : grid.scale;
    }
    if (n == SPECTRAL_INFINITE || (double)n * fmin(q, complement) > -UNDERFLOW_LOG) {
        return grid.scale * (-0.25 / q);
    }
    double left = power(q, complement, n);
    double gone = q < 1 ? -expm1((double)n * log1p(-q)) : 1 - left;
    return grid.scale * (-0.25 * gone / q + (grid.start_zero ? 0 : left));
}

static __device__ void element_store(void *to, int32_t fp64, int64_t index, double value) {
    if (fp64) {
        ((double *)to)[index] = value;
    } else {
        ((float *)to)[index] = (float)value;
    }
}

/* True in all threads where the job is to stop. Reading the host's word takes about a microsecond,
   one block after the other: few blocks `ask`, and tell the others through device memory. */
template <typename GRID> static __device__ bool stopped(const GRID &grid, bool ask) {
    bool first = threadIdx.x == 0 && threadIdx.y == 0;
    if (first && ask && *grid.stop) {
        *grid.halt = 1;
    }
    return __syncthreads_or(first && *grid.halt) != 0;
}

#endif
