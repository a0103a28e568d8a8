/*
 * laplacian_simd.h: what the inner file of `laplacian` offers.
 *
 * `row_int` and `row_real` yield one row of `width` elements from the row itself and those above
 * and below it (rows of zeros outside the plane).
 */
#ifndef KILN_KERNELS_CPU_LAPLACIAN_LAPLACIAN_SIMD_H
#define KILN_KERNELS_CPU_LAPLACIAN_LAPLACIAN_SIMD_H

#include "kernels/cpu/device/isa.h"

#include <stddef.h>
#include <stdint.h>

struct laplacian_simd {
    void (*row_int)(int32_t *b, const int32_t *up, const int32_t *x, const int32_t *down,
                    size_t width);
    void (*row_real)(double *b, const double *up, const double *x, const double *down,
                     size_t width);
};

#define X(isa) extern const struct laplacian_simd laplacian_##isa##_f32;
KILN_CPU_ISAS(X)
#undef X

#endif
