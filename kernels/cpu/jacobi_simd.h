/*
 * jacobi_simd.h: what the inner file of `jacobi` offers: several sweeps in one pass over rows.
 *
 * A pass makes `levels` sweeps of a strip of columns and yields rows [first, last) of the newest.
 * Level s of row r needs level s-1 of rows r-1, r, r+1, so the levels follow each other one row
 * apart down the strip and only three rows of each live, in a ring that fits the first-level cache.
 * Rows above `top` and from `bottom` on are zero. Columns outside the strip count as zero: right
 * at the edges of the plane, elsewhere wrong by one more column a level, which the caller allows
 * for by a strip wider than what it keeps.
 *
 * Addresses: row r of source, target and b is at base + (r - origin) * stride; strides and the
 * strip's width in elements; everything 64-byte aligned, widths in whole vectors.
 */
#ifndef KILN_KERNELS_CPU_JACOBI_SIMD_H
#define KILN_KERNELS_CPU_JACOBI_SIMD_H

#include "kernels/cpu/isa.h"

#include <stddef.h>
#include <stdint.h>

#define JACOBI_LEVELS 4 /* most sweeps of one pass */

/** Rows of a plane, of a strip, or of a private copy of one. */
struct jacobi_rows {
    void *base;
    ptrdiff_t stride;
    ptrdiff_t origin;
};

struct jacobi_pass {
    struct jacobi_rows source, target, b;
    ptrdiff_t first, last; /* rows wanted */
    ptrdiff_t top, bottom; /* of the plane */
    int levels;            /* 1 … JACOBI_LEVELS */
    size_t columns;        /* of the strip */
    size_t keep, keep_end; /* columns of the target that are written, whole vectors */
    size_t inside;         /* columns before this one are inside the plane */
    void *ring;            /* scratch: 3 * (JACOBI_LEVELS - 1) rows of `columns` */
    const void *zero;      /* a row of `columns` zeros */
};

struct jacobi_simd {
    size_t vector; /* bytes */
    void (*pass)(const struct jacobi_pass *pass);
    /** max |a - b| over n elements; infinity where a difference is not a number. */
    double (*change)(const void *a, const void *b, size_t n);
};

#define X(isa) extern const struct jacobi_simd jacobi_##isa##_f32, jacobi_##isa##_f64;
KILN_CPU_ISAS(X)
#undef X

#endif
