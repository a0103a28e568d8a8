/*
 * lombscargle_basis.h: power of weak bins (kernels/lombscargle_basis.h), for device code.
 *
 * The kernels that make power of sums leave a bit for each bin, 32 to a word. Blocks then look
 * through the words, each for some places in them, so that neighbouring bins, which are weak
 * together, are computed side by side. A block takes one bin at a time: a pass over the samples for
 * each node, whose strongest sample all threads find together, and one for the sums.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_BASIS_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_BASIS_H

#include "kernels/cuda/lombscargle/lombscargle_device.h"
#include "kernels/lombscargle_basis.h"

#define BASIS_THREADS (32 * LOMBSCARGLE_WEAK_WARPS)
#define BASIS_PITCH   (BASIS_THREADS + 1)
#define BASIS_LOOK    4 /* words that a thread looks at */

/* The functions' values, and y, times the root of w, of BASIS_THREADS samples. */
extern __shared__ __align__(16) double basis_rows[];

/* A sample that may become a node, and what a block knows of all samples. */
struct candidate {
    double weighted, product; /* of its product's square; of the nodes before */
    int64_t index;
};

struct extent {
    double low, high;
    int64_t samples;
};

struct basis_block {
    lombscargle_basis basis;
    lombscargle_curve curve;
    candidate candidates[LOMBSCARGLE_WEAK_WARPS];
    extent extents[LOMBSCARGLE_WEAK_WARPS];
    double part[BASIS_THREADS];
    double normal[LOMBSCARGLE_NORMAL(LOMBSCARGLE_BASIS_MAX)];
    unsigned end; /* no more nodes */
    unsigned stop;
};

static __device__ __forceinline__ int basis_thread() {
    return (int)(threadIdx.y * 32 + threadIdx.x);
}

/* Sine and cosine of π f (t - node); the sine is 0 where both phases are one. */
static __device__ __forceinline__ void factor_at(const lombscargle_basis &basis, int k, double t,
                                                 double *sine, double *cosine) {
    double odd, turns = basis_turns(basis.f, basis.f_low, t, basis.t[k], &odd).high;
    sincospi(turns, sine, cosine);
    *sine = fabs(turns) <= basis.same ? 0.0 : basis_sign(odd) * *sine;
    *cosine *= basis_sign(odd);
}

static __device__ __forceinline__ candidate stronger_of(const candidate &a, const candidate &b) {
    bool second = b.weighted > a.weighted || (b.weighted == a.weighted && b.index < a.index);
    return second ? b : a;
}

/* The strongest of all threads' candidates, in all of them; has a barrier around. */
static __device__ candidate strongest_of(basis_block &block, candidate best) {
    for (int step = 16; step > 0; step /= 2) {
        candidate other = {__shfl_xor_sync(0xffffffffu, best.weighted, step),
                           __shfl_xor_sync(0xffffffffu, best.product, step),
                           __shfl_xor_sync(0xffffffffu, best.index, step)};
        best = stronger_of(best, other);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        block.candidates[threadIdx.y] = best;
    }
    __syncthreads();
    best = block.candidates[0];
    for (int i = 1; i < LOMBSCARGLE_WEAK_WARPS; i++) {
        best = stronger_of(best, block.candidates[i]);
    }
    return best;
}

/* Times of the first and the last sample, and how many there are, of weight above 0. */
static __device__ extent extent_of(const lombscargle_grid &grid, basis_block &block) {
    const lombscargle_curve &curve = block.curve;
    extent all = {(double)INFINITY, -(double)INFINITY, 0};
#pragma unroll 4
    for (int64_t j = basis_thread(); j < curve.n; j += BASIS_THREADS) {
        if (grid.w[curve.w + j] > 0.0) {
            all.low = fmin(all.low, grid.t[curve.t + j]);
            all.high = fmax(all.high, grid.t[curve.t + j]);
            all.samples++;
        }
    }
    for (int step = 16; step > 0; step /= 2) {
        all.low = fmin(all.low, __shfl_xor_sync(0xffffffffu, all.low, step));
        all.high = fmax(all.high, __shfl_xor_sync(0xffffffffu, all.high, step));
        all.samples += __shfl_xor_sync(0xffffffffu, all.samples, step);
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        block.extents[threadIdx.y] = all;
    }
    __syncthreads();
    all = block.extents[0];
    for (int i = 1; i < LOMBSCARGLE_WEAK_WARPS; i++) {
        all.low = fmin(all.low, block.extents[i].low);
        all.high = fmax(all.high, block.extents[i].high);
        all.samples += block.extents[i].samples;
    }
    return all;
}

/* Adds the next node; false, in all threads, where there is none or the job should end. */
static __device__ bool node_add(const lombscargle_grid &grid, basis_block &block) {
    const lombscargle_curve &curve = block.curve;
    candidate best = {0.0, 0.0, INT64_MAX};
#pragma unroll 2
    for (int64_t j = basis_thread(); j < curve.n; j += BASIS_THREADS) {
        double product = 1.0, t = grid.t[curve.t + j];
        for (int k = 0; k < block.basis.nodes; k++) {
            double sine, cosine;
            double gain = k + 1 < block.basis.nodes ? block.basis.gain[k + 1] : 1.0;
            factor_at(block.basis, k, t, &sine, &cosine);
            product *= sine * gain;
        }
        double weighted = grid.w[curve.w + j] * product * product;
        if (weighted > best.weighted) {
            best = {weighted, product, j};
        }
    }
    best = strongest_of(block, best);
    if (basis_thread() == 0) {
        if (best.weighted > 0.0) {
            basis_node(&block.basis, grid.t[curve.t + best.index], best.product);
        }
        block.stop = grid.stop != NULL ? *grid.stop : 0;
        block.end = block.stop || !(best.weighted > 0.0);
    }
    __syncthreads();
    return !block.end;
}

/* The rows of one tile of samples. */
static __device__ __forceinline__ void rows_fill(const lombscargle_grid &grid, basis_block &block,
                                                 int64_t j) {
    const lombscargle_curve &curve = block.curve;
    const int thread = basis_thread(), m = block.basis.nodes;
    bool inside = j < curve.n;
    double t = inside ? grid.t[curve.t + j] : 0.0;
    double root = inside ? sqrt(grid.w[curve.w + j]) : 0.0, product = root;
    for (int k = 0; k < m; k++) {
        double sine, cosine;
        factor_at(block.basis, k, t, &sine, &cosine);
        basis_rows[k * BASIS_PITCH + thread] = k % 2 ? product * cosine : product;
        product *= sine * (k + 1 < m ? block.basis.gain[k + 1] : 1.0);
    }
    double y = inside ? grid.y[curve.y + j] - level_of(grid, curve) : 0.0;
    basis_rows[m * BASIS_PITCH + thread] = root * y;
}

/* The normal equations' numbers but the last, each the sum of some threads' parts. */
static __device__ void normal_make(const lombscargle_grid &grid, basis_block &block) {
    const int thread = basis_thread(), m = block.basis.nodes;
    const int cells = basis_cell(m, m), groups = BASIS_THREADS / cells;
    int row = 0, cell = thread % cells, group = thread / cells;
    while (basis_cell(row + 1, 0) <= cell) {
        row++;
    }
    const double *a = basis_rows + row * BASIS_PITCH;
    const double *b = basis_rows + (cell - basis_cell(row, 0)) * BASIS_PITCH;
    double sum = 0.0;
    for (int64_t at = 0; at < block.curve.n; at += BASIS_THREADS) {
        __syncthreads();
        rows_fill(grid, block, at + thread);
        __syncthreads();
        for (int j = group; j < BASIS_THREADS && group < groups; j += groups) {
            sum = fma(a[j], b[j], sum);
        }
    }
    block.part[thread] = sum;
    __syncthreads();
    if (thread < cells) {
        for (int i = 1; i < groups; i++) {
            sum += block.part[thread + i * cells];
        }
        block.normal[thread] = sum;
    }
    __syncthreads();
}

/* All threads of a block: one bin. */
static __device__ void weak_bin(const lombscargle_grid &grid, basis_block &block, int64_t index,
                                int64_t k, lombscargle_model model) {
    __syncthreads();
    if (basis_thread() == 0) {
        block.curve = curve_of(grid, index);
    }
    __syncthreads();
    extent extent = extent_of(grid, block);
    if (basis_thread() == 0) {
        exact f = grid.frequency != NULL ? exact{grid.frequency[grid.first + k], 0.0}
                                         : frequency_at(grid.f0, grid.df, (double)(grid.first + k));
        double span = extent.samples > 0 ? extent.high - extent.low : 0.0;
        basis_begin(&block.basis, grid.nterms, f.high, f.low, span);
        block.basis.samples = extent.samples;
        block.stop = 0;
    }
    __syncthreads();
    while (block.basis.nodes < block.basis.size && node_add(grid, block)) {
    }
    if (block.stop) {
        return;
    }
    if (block.basis.nodes > 0) {
        normal_make(grid, block);
    }
    if (basis_thread() == 0) {
        double p = basis_power(&model, &block.basis, block.normal);
        grid.power[index * grid.nf + grid.first + k] = lombscargle_normalized(&model, p);
    }
}

#endif
