/*
 * lombscargle.cu: the kernels of `lombscargle` (kernels/lombscargle.h): sums on tensor cores
 * (lombscargle_tensor.h) or without (lombscargle_direct.h), or by non-uniform FFTs
 * (lombscargle_nufft.h), power, weak bins (lombscargle_basis.h), peaks (lombscargle_peaks.h).
 */
#include "kernels/cuda/lombscargle/lombscargle_basis.h"
#include "kernels/cuda/lombscargle/lombscargle_direct.h"
#include "kernels/cuda/lombscargle/lombscargle_nufft_kernels.h"
#include "kernels/cuda/lombscargle/lombscargle_peaks.h"
#include "kernels/cuda/lombscargle/lombscargle_tensor.h"

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
    model.weak = lombscargle_weak(grid.least, curve.n, grid.nterms);
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

/* Leaves the power of frequency k, or a bit where it is weak. All threads of a warp. */
static __device__ __forceinline__ void
power_leave(const lombscargle_grid &grid, const lombscargle_model &model, int64_t k, double p) {
    bool weak = p == LOMBSCARGLE_WEAK;
    uint32_t bits = __ballot_sync(0xffffffffu, weak);
    int64_t words = (grid.count + LOMBSCARGLE_WEAK_BINS - 1) / LOMBSCARGLE_WEAK_BINS;
    if (k >= grid.count) {
        return;
    }
    if (threadIdx.x == 0) {
        grid.weak[blockIdx.y * words + k / LOMBSCARGLE_WEAK_BINS] = bits;
    }
    if (!weak) {
        grid.power[blockIdx.y * grid.nf + grid.first + k] = lombscargle_normalized(&model, p);
    }
}

extern "C" __global__ void __launch_bounds__(THREADS)
    lombscargle_finish(const __grid_constant__ lombscargle_grid grid) {
    int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.y * 32 + threadIdx.x;
    control_pass(grid);
    lombscargle_curve curve = curve_of(grid, blockIdx.y);
    lombscargle_model model = model_of(grid, curve);
    double sums[LOMBSCARGLE_SUMS(1)], p = 0.0;
    if (k < grid.count) {
        sums_of(grid, curve, k, LOMBSCARGLE_SUMS(1), 1, sums);
        p = lombscargle_power_one(&model, sums);
    }
    power_leave(grid, model, k, p);
}

/* Several terms: the equations of a thread lie in shared memory. */
extern "C" __global__ void __launch_bounds__(SOLVE_THREADS)
    lombscargle_solve(const __grid_constant__ lombscargle_grid grid) {
    __shared__ double work[LOMBSCARGLE_WORK(LOMBSCARGLE_TERMS_MAX)][SOLVE_THREADS];
    int64_t k = (int64_t)blockIdx.x * SOLVE_THREADS + threadIdx.x;
    control_pass(grid);
    lombscargle_curve curve = curve_of(grid, blockIdx.y);
    lombscargle_model model = model_of(grid, curve);
    double *own = &work[0][threadIdx.x], p = 0.0;
    if (k < grid.count) {
        sums_of(grid, curve, k, LOMBSCARGLE_SUMS(grid.nterms), SOLVE_THREADS, own);
        p = lombscargle_power_many(&model, own, SOLVE_THREADS);
    }
    power_leave(grid, model, k, p);
}

/* Weak bins at places y, y + TURNS, … of the words. Threads look at some words each, and then at
   the bins together. */
extern "C" __global__ void __launch_bounds__(BASIS_THREADS)
    lombscargle_weak(const __grid_constant__ lombscargle_grid grid) {
    __shared__ basis_block block;
    __shared__ int64_t found[BASIS_THREADS * BASIS_LOOK];
    __shared__ uint32_t found_bits[BASIS_THREADS * BASIS_LOOK], count;
    const int64_t words = (grid.count + LOMBSCARGLE_WEAK_BINS - 1) / LOMBSCARGLE_WEAK_BINS;
    const int64_t look = BASIS_THREADS * BASIS_LOOK, step = gridDim.x * look;
    const uint32_t mine = 0x01010101u << blockIdx.y;
    for (int64_t at = blockIdx.x * look; at < grid.words; at += step) {
        const int64_t word = at + basis_thread() * BASIS_LOOK;
        uint4 bits = word < grid.words ? *(const uint4 *)(grid.weak + word) : uint4{0, 0, 0, 0};
        const uint32_t all[BASIS_LOOK] = {bits.x, bits.y, bits.z, bits.w};
        bool weak = ((bits.x | bits.y | bits.z | bits.w) & mine) != 0; /* perhaps behind the last */
        count = 0;
        if (__syncthreads_or(weak) == 0) {
            continue;
        }
#pragma unroll
        for (int i = 0; i < BASIS_LOOK; i++) {
            if (word + i < grid.words && (all[i] & mine) != 0) {
                uint32_t place = atomicAdd(&count, 1u); /* in any order: bins are independent */
                found[place] = word + i;
                found_bits[place] = all[i] & mine;
            }
        }
        __syncthreads();
        for (uint32_t i = 0; i < count; i++) {
            int64_t index = found[i] / words, row = found[i] % words;
            for (uint32_t left = found_bits[i]; left; left &= left - 1) {
                int64_t k = row * LOMBSCARGLE_WEAK_BINS + __ffs((int)left) - 1;
                weak_bin(grid, block, index, k, model_of(grid, curve_of(grid, index)));
            }
        }
        __syncthreads();
    }
}

extern "C" __global__ void __launch_bounds__(KEEP_THREADS)
    lombscargle_search(const __grid_constant__ lombscargle_grid grid) {
    segment_search(grid);
}

extern "C" __global__ void __launch_bounds__(KEEP_THREADS)
    lombscargle_join(const __grid_constant__ lombscargle_grid grid) {
    segments_join(grid);
}
