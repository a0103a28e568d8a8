/*
 * mandelbrot_grid.h: what the launcher of `mandelbrot` tells its kernel.
 *
 * The picture, row after row, is cut into groups of 32 samples. A warp begins with the group of its
 * own number; the others are dealt one by one, since neighbours cost alike, and through several
 * counters, since thousands of warps at one would wait for each other: counter k hands out every
 * COUNTERS-th group, and who finds its counter used up goes to one that has groups left.
 */
#ifndef KILN_KERNELS_CUDA_MANDELBROT_MANDELBROT_GRID_H
#define KILN_KERNELS_CUDA_MANDELBROT_MANDELBROT_GRID_H

#include "kernels/mandelbrot.h"

#define MANDELBROT_WARPS    8  /* of a block */
#define MANDELBROT_COUNTERS 32 /* one a lane */
#define MANDELBROT_SPREAD   32 /* words from one to the next: each in its own line */
#define MANDELBROT_WORDS    (MANDELBROT_COUNTERS * MANDELBROT_SPREAD)

struct mandelbrot_grid {
    uint32_t samples, groups;   /* of all pictures, one below the other */
    uint32_t width, reciprocal; /* 2^32 / width, rounded down */
    uint32_t height, height_reciprocal;
    struct mandelbrot_view view[GROUP_MAX];
    double radius2; /* escape_radius² */
    float inverse;  /* 1 / log2(escape_radius²) */
    uint32_t max_iter;
    int32_t may_return; /* radius ≈ 2, see mandelbrot_step.cuh */
    int32_t continuous;
    uint32_t *counters; /* groups dealt so far; 0 at the start */
    uint32_t *next;     /* those of the next launch, which this one sets to 0 */
    const volatile uint32_t *stop;
    int32_t *count;
    float *smooth;
};

#endif
