/*
 * mandelbrot_grid.h: what the launcher of `mandelbrot` tells its kernel.
 *
 * The picture is cut into spans: up to `span` neighbouring samples of one row. Warps take spans
 * from a common counter and their lanes take samples from the warp's span.
 */
#ifndef KILN_CUDA_MANDELBROT_GRID_H
#define KILN_CUDA_MANDELBROT_GRID_H

#include <stdint.h>

struct mandelbrot_grid {
    int64_t width;
    double x0, y0, dx, dy;
    double radius2;    /* escape_radius² */
    float inverse_log; /* 1 / ln escape_radius */
    uint32_t max_iter;
    int32_t continuous;
    uint32_t span;  /* samples, a multiple of 32 */
    uint64_t spans; /* of the whole picture */
    uint64_t spans_per_row;
    unsigned long long *counter; /* spans taken beyond each warp's first; starts at 0 */
    const volatile uint32_t *stop;
    int32_t *count;
    float *smooth;
};

#endif
