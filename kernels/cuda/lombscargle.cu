/*
 * lombscargle.cu: the kernels of `lombscargle` (kernels/lombscargle.h): sums on tensor cores
 * (lombscargle_tensor.h) or without (lombscargle_direct.h), or by non-uniform FFTs
 * (lombscargle_nufft.h), power, peaks (lombscargle_peaks.h).
 */
#include "kernels/cuda/lombscargle_direct.h"
#include "kernels/cuda/lombscargle_nufft_kernels.h"
#include "kernels/cuda/lombscargle_peaks.h"
#include "kernels/cuda/lombscargle_tensor.h"

#define TENSOR_THREADS (32 * (LOMBSCARGLE_MULTIPLIERS + LOMBSCARGLE_FEEDERS))
#define SOLVE_THREADS  (32 * LOMBSCARGLE_SOLVE_WARPS)

extern "C" __global__ void __launch_bounds__(THREADS, 3)
    lombscargle_fp64(const __grid_constant__ lombscargle_grid grid) {
    periodogram<double_real>(grid);
}

extern "C" __global__ void __launch_bounds__(THREADS, 3)
    lombscargle_fp32(const __grid_constant__ lombscargle_grid grid) {
    periodogram<float_real>(grid);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    lombscargle_list_fp64(const __grid_constant__ lombscargle_grid grid) {
    listed<double_real>(grid);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    lombscargle_list_fp32(const __grid_constant__ lombscargle_grid grid) {
    listed<float_real>(grid);
}

extern "C" __global__ void __launch_bounds__(THREADS)
    lombscargle_tables(const __grid_constant__ lombscargle_grid grid) {
    if (grid.fp32) {
        tables<half_element>(grid);
    } else {
        tables<double_element>(grid);
    }
}

extern "C" __global__ void __launch_bounds__(TENSOR_THREADS, 1)
    lombscargle_tensor_fp64(const __grid_constant__ lombscargle_grid grid) {
    multiply<double_element>(grid);
}

extern "C" __global__ void __launch_bounds__(TENSOR_THREADS, 1)
    lombscargle_tensor_fp32(const __grid_constant__ lombscargle_grid grid) {
    multiply<half_element>(grid);
}

static __device__ __forceinline__ lombscargle_model model_of(const lombscargle_grid &grid,
                                                             const lombscargle_curve &curve) {
    lombscargle_model model;
    model.yy = curve.yy;
    model.psd_factor = curve.psd_factor;
    model.rounding = grid.rounding;
    model.fit_mean = grid.fit_mean;
    model.normalization = grid.normalization;
    model.nterms = grid.nterms;
    return model;
}

/* Tells how far the job is; if it is cancelled, the kernels of the next range shall end at once. */
static __device__ __forceinline__ void control_pass(const lombscargle_grid &grid) {
    if (grid.stop && blockIdx.x == 0 && blockIdx.y == 0 && threadIdx.x == 0 && threadIdx.y == 0) {
        *grid.stopped = *grid.stop;
        *grid.progress = grid.done;
    }
}

/* Adds up a frequency's sums, `stride` apart, over slices in their order. */
template <typename T>
static __device__ __forceinline__ void slices_add(const lombscargle_grid &grid, const T *from,
                                                  int count, int stride, double *sums) {
    for (int32_t slice = 0; slice < grid.slices; slice++, from += count * grid.count) {
#pragma unroll 6
        for (int i = 0; i < count; i++) {
            double part = (double)from[i * grid.count];
            sums[i * stride] = slice > 0 ? sums[i * stride] + part : part;
        }
    }
}

/* The sums of frequency k, `stride` apart, by weights of sum 1. */
static __device__ __forceinline__ void sums_of(const lombscargle_grid &grid,
                                               const lombscargle_curve &curve, int64_t k, int count,
                                               int stride, double *sums) {
    const int64_t index = partial_index(grid, blockIdx.y, 0, 0) + k;
    if (grid.single) {
        slices_add(grid, (const float *)grid.partial + index, count, stride, sums);
    } else {
        slices_add(grid, (const double *)grid.partial + index, count, stride, sums);
    }
    const double inverse = 1.0 / weight_of(grid, curve.n);
#pragma unroll 6
    for (int i = 0; i < count; i++) {
        sums[i * stride] *= inverse;
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    lombscargle_finish(const __grid_constant__ lombscargle_grid grid) {
    int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.y * 32 + threadIdx.x;
    control_pass(grid);
    if (k >= grid.count) {
        return;
    }
    lombscargle_curve curve = curve_of(grid, blockIdx.y);
    lombscargle_model model = model_of(grid, curve);
    double sums[LOMBSCARGLE_SUMS(1)];
    sums_of(grid, curve, k, LOMBSCARGLE_SUMS(1), 1, sums);
    double p = lombscargle_power_one(&model, sums);
    grid.power[blockIdx.y * grid.nf + grid.first + k] = lombscargle_normalized(&model, p);
}

/* Several terms: the equations of a thread lie in shared memory. */
extern "C" __global__ void __launch_bounds__(SOLVE_THREADS)
    lombscargle_solve(const __grid_constant__ lombscargle_grid grid) {
    __shared__ double work[LOMBSCARGLE_WORK(LOMBSCARGLE_TERMS_MAX)][SOLVE_THREADS];
    int64_t k = (int64_t)blockIdx.x * SOLVE_THREADS + threadIdx.x;
    control_pass(grid);
    if (k >= grid.count) {
        return;
    }
    lombscargle_curve curve = curve_of(grid, blockIdx.y);
    lombscargle_model model = model_of(grid, curve);
    double *own = &work[0][threadIdx.x];
    sums_of(grid, curve, k, LOMBSCARGLE_SUMS(grid.nterms), SOLVE_THREADS, own);
    double p = lombscargle_power_many(&model, own, SOLVE_THREADS);
    grid.power[blockIdx.y * grid.nf + grid.first + k] = lombscargle_normalized(&model, p);
}

extern "C" __global__ void __launch_bounds__(KEEP_THREADS)
    lombscargle_search(const __grid_constant__ lombscargle_grid grid) {
    segment_search(grid);
}

extern "C" __global__ void __launch_bounds__(KEEP_THREADS)
    lombscargle_join(const __grid_constant__ lombscargle_grid grid) {
    segments_join(grid);
}
