/*
 * jacobi_simd.h: what the inner files of `jacobi` offer: sweeps over rows in the lifted layout.
 *
 * A lifted row of `vectors` vectors gives every lane a run of neighbouring columns: lane l of
 * vector j is column l * vectors + j. So the neighbours to the left and right of a vector are the
 * vectors beside it, and only at the row's ends do elements change lanes. Columns beyond the
 * width are zero in X, and so are rows above and below the plane.
 *
 * A pair makes two sweeps of a group of `rows` rows, in place. Group g reads X from row
 * g * rows - 2 on, rows + 2 of them, makes the first sweep of the last `rows` but one row up, keeps
 * its last two rows in `carry` for the next group, and writes the second sweep one row further up:
 * rows g * rows - 2 … g * rows + rows - 3. So groups follow each other down the plane, and the
 * next pair of sweeps may do group g once this one has done g + 1.
 *
 * With `fused` the last two roundings are one, and `b` holds -B/4: the bytes are the same as long
 * as nothing overflows and no element of B is tiny (jacobi.c sees to that).
 */
#ifndef KILN_KERNELS_CPU_JACOBI_JACOBI_SIMD_H
#define KILN_KERNELS_CPU_JACOBI_JACOBI_SIMD_H

#include "kernels/cpu/device/isa.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** The group of a pair. Addresses are 64-byte aligned. */
struct jacobi_group {
    void *x;          /* row `row` of the plane */
    const void *b;    /* likewise */
    void *carry;      /* two rows of `vectors`, anything before the first group */
    const void *mask; /* a row of `vectors`, bits all set inside the width; then a row of zeros */
    ptrdiff_t row, height; /* rows outside 0 … height - 1 become zero */
    size_t stride;         /* elements */
    size_t vectors;        /* of a row */
    size_t whole;          /* vectors that are within the width in every lane */
};

/** One sweep from one array to another, rows 0 … rows - 1 of these addresses. */
struct jacobi_sweep {
    void *to;
    const void *from, *b, *mask;
    size_t stride, vectors, rows;
};

/** Bounds of |x|, infinity and zero where an element is no number. */
struct jacobi_bounds {
    double most, least; /* least: of those that are not zero */
};

struct jacobi_simd {
    size_t lanes;
    size_t rows;    /* of a group */
    bool can_fuse;  /* multiplies and adds with one rounding */
    double tiny;    /* least |B| for `fused` */
    double largest; /* most |X| and |B| for it */
    double growth;  /* relative, more than a sweep's roundings can add */
    void (*pair[2])(const struct jacobi_group *group); /* plain, fused */
    void (*sweep[2])(const struct jacobi_sweep *sweep);
    /** max |a - b| over n elements; infinity where a difference is not a number. */
    double (*change)(const void *a, const void *b, size_t n);
    struct jacobi_bounds (*bounds)(const void *x, size_t n);
    /** A row of `width` packed elements into a lifted one, times -1/4 if `scaled`. */
    void (*lift)(void *to, const void *from, size_t width, size_t vectors, bool scaled);
    /** A lifted row into a packed one. */
    void (*lower)(void *to, const void *from, size_t width, size_t vectors);
};

#define X(isa) extern const struct jacobi_simd jacobi_##isa##_f32, jacobi_##isa##_f64;
KILN_CPU_ISAS(X)
#undef X

#endif
