/*
 * laplacian_simd.c: rows of `laplacian`; the compiler turns the loops into vectors.
 *
 * The order of roundings is fixed by kernels/laplacian.h. The first and last columns stand outside
 * the loop, with zeros for the neighbours they lack.
 */
#include "kernels/cpu/laplacian/laplacian_simd.h"
#include "kernels/cpu/device/simd.h"

#define LAPLACIAN_ROW(name, type)                                                                  \
    static inline type name##_at(type up, type down, type left, type right, type here) {           \
        return ((up + down) + (left + right)) - 4 * here;                                          \
    }                                                                                              \
    static void name(type *restrict b, const type *restrict up, const type *restrict x,            \
                     const type *restrict down, size_t width) {                                    \
        size_t last = width - 1;                                                                   \
        b[0] = name##_at(up[0], down[0], 0, last ? x[1] : 0, x[0]);                                \
        for (size_t i = 1; i < last; i++) {                                                        \
            b[i] = name##_at(up[i], down[i], x[i - 1], x[i + 1], x[i]);                            \
        }                                                                                          \
        if (last) {                                                                                \
            b[last] = name##_at(up[last], down[last], x[last - 1], 0, x[last]);                    \
        }                                                                                          \
    }

LAPLACIAN_ROW(row_int, int32_t)
LAPLACIAN_ROW(row_real, double)

const struct laplacian_simd SIMD_NAME(laplacian) = {.row_int = row_int, .row_real = row_real};
