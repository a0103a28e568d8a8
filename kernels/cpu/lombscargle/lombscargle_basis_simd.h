/*
 * lombscargle_basis_simd.h: what the inner file of kernels/lombscargle_basis.h offers.
 *
 * Threads: any; nothing is kept between calls.
 */
#ifndef KILN_KERNELS_CPU_LOMBSCARGLE_LOMBSCARGLE_BASIS_SIMD_H
#define KILN_KERNELS_CPU_LOMBSCARGLE_LOMBSCARGLE_BASIS_SIMD_H

#include "kernels/cpu/device/isa.h"
#include "kernels/lombscargle_basis.h"

#include <stddef.h>

#define BASIS_BLOCK ((size_t)64) /* samples at a time */

/** The values by sample and, of the functions, what each is at these samples times the root of the
    weight; those behind the last sample are 0. */
struct basis_block {
    _Alignas(64) double rows[LOMBSCARGLE_BASIS_MAX + 1][BASIS_BLOCK];
    _Alignas(64) double product[BASIS_BLOCK]; /* of the sines of all nodes */
};

struct basis_simd {
    /** Fills `product` of n ≤ BASIS_BLOCK samples. */
    void (*products)(const struct lombscargle_basis *basis, const double *t, size_t n,
                     struct basis_block *block);
    /** Adds their sums to the normal equations; y less `level`. */
    void (*normal)(const struct lombscargle_basis *basis, const double *t, const double *w,
                   const double *y, double level, size_t n, struct basis_block *block,
                   double *normal);
};

#define X(isa) extern const struct basis_simd basis_##isa##_f64;
KILN_CPU_ISAS(X)
#undef X

#endif
