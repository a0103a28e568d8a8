/*
 * laplacian_grid.h: what the launcher of `laplacian` tells its kernel.
 */
#ifndef KILN_KERNELS_CUDA_LAPLACIAN_LAPLACIAN_GRID_H
#define KILN_KERNELS_CUDA_LAPLACIAN_LAPLACIAN_GRID_H

#include <stdint.h>

struct laplacian_grid {
    int64_t width, height;
    int64_t rows; /* planes × height */
    const void *x;
    void *b;
};

#endif
