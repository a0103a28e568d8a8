/*
 * lombscargle_peaks.h: the strongest peaks of `lombscargle`'s power (kernels/lombscargle.h says
 * what one is), found on the device.
 *
 * A block looks at one segment of a curve's bins and keeps peaks in shared memory; where they
 * become many it sorts them and keeps the strongest. A second kernel does the same with what the
 * segments of a curve have left. The order is total, so that the result does not depend on who came
 * first.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_PEAKS_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_PEAKS_H

#include "kernels/cuda/lombscargle/lombscargle_device.h"
#include "kernels/lombscargle_rank.h"

#define KEEP_THREADS (32 * LOMBSCARGLE_PEAK_WARPS)
#define KEEP_ROUND   (4 * KEEP_THREADS) /* candidates between two looks at the space left */
#define KEEP_MAX     (2 * KEEP_ROUND)   /* a power of two */

struct keeper {
    double power[KEEP_MAX];
    int64_t index[KEEP_MAX];
    unsigned held;
    int fp32;
    lombscargle_found weakest; /* of a full list; index -1: it is not full */
};

static __device__ __forceinline__ int keep_thread() {
    return (int)(threadIdx.y * 32 + threadIdx.x);
}

/* Whether peak a comes before peak b. */
static __device__ __forceinline__ bool stronger(double a, int64_t i, double b, int64_t j,
                                                int fp32) {
    if (i < 0 || j < 0) {
        return i >= 0 && j < 0;
    }
    int64_t first = lombscargle_rank(a, fp32), second = lombscargle_rank(b, fp32);
    return first > second || (first == second && i < j);
}

static __device__ __forceinline__ void keep_offer(keeper &keeper, double power, int64_t index) {
    if (keeper.weakest.index >= 0 &&
        !stronger(power, index, keeper.weakest.power, keeper.weakest.index, keeper.fp32)) {
        return;
    }
    unsigned place = atomicAdd(&keeper.held, 1u);
    keeper.power[place] = power;
    keeper.index[place] = index;
}

/* Exchanges two places if they are out of order. */
static __device__ __forceinline__ void keep_order(keeper &keeper, unsigned a, unsigned b,
                                                  bool down) {
    double left = keeper.power[a], right = keeper.power[b];
    int64_t i = keeper.index[a], j = keeper.index[b];
    if (stronger(right, j, left, i, keeper.fp32) == down) {
        keeper.power[a] = right;
        keeper.power[b] = left;
        keeper.index[a] = j;
        keeper.index[b] = i;
    }
}

/* Sorts what there is (a bitonic network) and keeps the first `count`. All threads. */
static __device__ void keep_sort(keeper &keeper, int count) {
    unsigned held = keeper.held, size = 2;
    while (size < held) {
        size *= 2;
    }
    for (unsigned i = held + keep_thread(); i < max(size, (unsigned)count); i += KEEP_THREADS) {
        keeper.index[i] = -1;
    }
    for (unsigned run = 2; run <= size; run *= 2) {
        for (unsigned step = run / 2; step > 0; step /= 2) {
            __syncthreads();
            for (unsigned i = keep_thread(); i < size / 2; i += KEEP_THREADS) {
                unsigned a = 2 * step * (i / step) + i % step;
                keep_order(keeper, a, a + step, (a & run) == 0);
            }
        }
    }
    __syncthreads();
    if (keep_thread() == 0) {
        keeper.held = min(held, (unsigned)count);
        keeper.weakest = {keeper.power[count - 1],
                          held >= (unsigned)count ? keeper.index[count - 1] : -1};
    }
    __syncthreads();
}

static __device__ __forceinline__ void keep_begin(keeper &keeper, int fp32) {
    if (keep_thread() == 0) {
        keeper.held = 0;
        keeper.fp32 = fp32;
        keeper.weakest = {0.0, -1};
    }
    __syncthreads();
}

/* Between rounds of at most KEEP_ROUND offers. All threads. */
static __device__ __forceinline__ void keep_round(keeper &keeper, int count) {
    __syncthreads();
    bool full = keeper.held > KEEP_MAX - KEEP_ROUND;
    __syncthreads();
    if (full) {
        keep_sort(keeper, count);
    }
}

/* Offers the run of equal bins that begins at k, if one begins there and is a peak. */
static __device__ __forceinline__ void bin_offer(keeper &keeper, const double *power, int64_t nf,
                                                 int64_t k) {
    double value = power[k];
    /* Comparisons with NaN are false: neither a bin nor its neighbours. */
    if (value != value || (k > 0 && power[k - 1] >= value)) {
        return;
    }
    int64_t end = k + 1;
    while (end < nf && power[end] == value) {
        end++;
    }
    if (end == nf || !(power[end] > value)) {
        keep_offer(keeper, value, k + (end - 1 - k) / 2);
    }
}

static __device__ void segment_search(const lombscargle_grid &grid) {
    __shared__ keeper keeper;
    const double *power = grid.power + blockIdx.y * grid.nf;
    int64_t first = (int64_t)blockIdx.x * LOMBSCARGLE_SEGMENT;
    int64_t last = min(first + LOMBSCARGLE_SEGMENT, grid.nf);
    keep_begin(keeper, grid.fp32);
    for (int64_t at = first; at < last; at += KEEP_ROUND) {
        for (int64_t k = at + keep_thread(); k < min(at + KEEP_ROUND, last); k += KEEP_THREADS) {
            bin_offer(keeper, power, grid.nf, k);
        }
        keep_round(keeper, grid.peak_count);
    }
    keep_sort(keeper, grid.peak_count);
    lombscargle_found *to =
        grid.found + ((int64_t)blockIdx.y * grid.segments + blockIdx.x) * grid.peak_count;
    for (int i = keep_thread(); i < grid.peak_count; i += KEEP_THREADS) {
        to[i] = {keeper.power[i], keeper.index[i]};
    }
}

static __device__ void segments_join(const lombscargle_grid &grid) {
    __shared__ keeper keeper;
    const double *power = grid.power + blockIdx.y * grid.nf, none = (double)NAN;
    int64_t all = (int64_t)grid.segments * grid.peak_count;
    const lombscargle_found *from = grid.found + blockIdx.y * all;
    keep_begin(keeper, grid.fp32);
    for (int64_t at = 0; at < all; at += KEEP_ROUND) {
        for (int64_t i = at + keep_thread(); i < min(at + KEEP_ROUND, all); i += KEEP_THREADS) {
            if (from[i].index >= 0) {
                keep_offer(keeper, from[i].power, from[i].index);
            }
        }
        keep_round(keeper, grid.peak_count);
    }
    keep_sort(keeper, grid.peak_count);
    lombscargle_peak *to = grid.peaks + blockIdx.y * grid.peak_count;
    for (int i = keep_thread(); i < grid.peak_count; i += KEEP_THREADS) {
        int64_t index = keeper.index[i];
        to[i] = {none, none, none, -1};
        if (index >= 0) {
            to[i] = {keeper.power[i], index > 0 ? power[index - 1] : none,
                     index + 1 < grid.nf ? power[index + 1] : none, index};
        }
    }
}

#endif
