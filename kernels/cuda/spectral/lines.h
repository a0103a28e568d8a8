/*
 * lines.h: the passes of `spectral` by chirp convolutions, for device code: two lines a block, over
 * all pairs in steps of the grid. Columns are transformed, multiplied by their modes' factors and
 * transformed back by the same block, through their own place in memory.
 */
#ifndef KILN_KERNELS_CUDA_SPECTRAL_LINES_H
#define KILN_KERNELS_CUDA_SPECTRAL_LINES_H

#include "kernels/cuda/spectral/chirp_line.h"
#include "kernels/cuda/spectral/modes.h"
#include "kernels/cuda/spectral/spectral_grid.h"

static __device__ fourier fourier_of(const chirp_table &table) {
    extern __shared__ __align__(128) double memory[];
    fourier f;
    f.data = (double2 *)memory;
    f.twiddle = (const double2 *)table.twiddle;
    f.size = table.plan.size;
    f.thread = (int)(threadIdx.y * 32 + threadIdx.x);
    f.threads = (int)(blockDim.y * 32);
    return f;
}

extern "C" __global__ void __launch_bounds__(256, 1)
    spectral_filter(const __grid_constant__ sine_table table) {
    chirp_filter_make(fourier_of(table.chirp), table.chirp, (int)table.length, (int)blockIdx.x);
}

/* Two lines, the second if there is one. */
struct line_pair {
    int64_t plane, line;
    bool two;
};

static __device__ void lines_transform(const spectral_lines &grid, const fourier &f,
                                       const line_pair &at) {
    int n = (int)grid.sines.length;
    int64_t size = grid.from_fp64 ? 8 : 4, stride = size * grid.from_stride;
    const char *first = (const char *)grid.from + (at.plane * grid.lines + at.line) * stride;
    double2 *kept = (double2 *)grid.kept + (int64_t)blockIdx.x * n;
    double2 *carry = f.data + slot(f.size); /* behind the line */
    chirp_run(f, grid.sines.chirp, n, first, at.two ? first + stride : NULL, grid.from_fp64, kept,
              carry);
}

/* Modes over what they came from, for the transform back. */
static __device__ void modes_store(const spectral_lines &grid, const fourier &f,
                                   const line_pair &at) {
    int n = (int)grid.sines.length;
    double *to = (double *)grid.from + (at.plane * grid.lines + at.line) * grid.from_stride;
#pragma unroll 1
    for (int i = f.thread; i < n; i += f.threads) {
        double2 value = f.data[result_slot(i + 1, n)];
        to[i] = value.x * factor(grid.modes, i, at.line);
        if (at.two) {
            to[grid.from_stride + i] = value.y * factor(grid.modes, i, at.line + 1);
        }
    }
}

static __device__ void results_store(const spectral_lines &grid, const fourier &f,
                                     const line_pair &at) {
    int n = (int)grid.sines.length;
#pragma unroll 1
    for (int i = f.thread; i < n; i += f.threads) {
        double2 value = f.data[result_slot(i + 1, n)];
        if (grid.result == SPECTRAL_ELEMENTS) {
            int64_t index = (at.plane * grid.lines + at.line) * n + i;
            element_store(grid.to, grid.to_fp64, index, value.x);
            if (at.two) {
                element_store(grid.to, grid.to_fp64, index + n, value.y);
            }
        } else {
            int64_t index = (at.plane * n + i) * grid.to_stride + at.line;
            *(double2 *)((double *)grid.to + index) = value;
        }
    }
}

extern "C" __global__ void __launch_bounds__(512, 1)
    spectral_lines_run(const __grid_constant__ spectral_lines grid) {
    fourier f = fourier_of(grid.sines.chirp);
    int64_t pairs = (grid.lines + 1) / 2;
#pragma unroll 1
    for (int64_t i = blockIdx.x; i < pairs * grid.planes; i += gridDim.x) {
        line_pair at = {i / pairs, i % pairs * 2, false};
        at.two = at.line + 1 < grid.lines;
        if (stopped(grid, i / gridDim.x % gridDim.x == blockIdx.x)) {
            return;
        }
        int rounds = grid.result == SPECTRAL_MODES ? 2 : 1;
#pragma unroll 1
        for (int round = 0; round < rounds; round++) {
            lines_transform(grid, f, at);
            if (round + 1 < rounds) {
                modes_store(grid, f, at);
            } else {
                results_store(grid, f, at);
            }
            __syncthreads();
        }
    }
}

#endif
