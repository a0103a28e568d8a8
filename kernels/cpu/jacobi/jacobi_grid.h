/*
 * jacobi_grid.h: the planes of a run of `jacobi` in the lifted layout (jacobi_simd.h), and the
 * pairs of sweeps over them (jacobi_pairs.c).
 *
 * Every plane has JACOBI_ABOVE rows of zeros above and at least two below.
 */
#ifndef KILN_KERNELS_CPU_JACOBI_JACOBI_GRID_H
#define KILN_KERNELS_CPU_JACOBI_JACOBI_GRID_H

#include "kernels/cpu/device/stream.h"
#include "kernels/cpu/jacobi/jacobi_simd.h"

#define JACOBI_ABOVE 2

struct jacobi_grid {
    struct stream *stream;
    const struct jacobi_simd *simd;
    bool fused;                   /* which of the kernels; b is -B/4 then */
    size_t width, height, planes; /* elements, rows */
    size_t element;               /* bytes */
    size_t vectors;               /* of a row */
    size_t stride;                /* bytes from row to row */
    size_t plane;                 /* bytes from plane to plane */
    size_t groups;                /* of a plane */
    char *x, *b;                  /* planes, from the first row above on */
    char *mask;
    int threads; /* that are worth while */
};

/** Row of a plane in x or b; from -JACOBI_ABOVE on. */
static inline char *jacobi_row(const struct jacobi_grid *grid, char *array, size_t plane,
                               ptrdiff_t row) {
    return array + plane * grid->plane + (size_t)(row + JACOBI_ABOVE) * grid->stride;
}

/** How far a run is, for those who watch it: `sweeps` of `all` were done before. */
struct jacobi_progress {
    uint64_t sweeps, all;
};

/** Makes 2 * pairs sweeps of every plane, in place; less where the stream is cancelled.
    Errors: KILN_NO_MEMORY. */
enum kiln_status jacobi_pairs(const struct jacobi_grid *grid, uint64_t pairs,
                              struct jacobi_progress progress);

#endif
