/*
 * lombscargle_spread.h: from samples to patches of the grid (lombscargle_nufft.h), for device code.
 *
 * Items are spread by 16 lanes each, of which lane l computes cell l of every sample's window, its
 * polynomial in registers. Lanes of the next sample add to what others have left in shared memory.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_SPREAD_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_SPREAD_H

#include "kernels/cuda/lombscargle/lombscargle_device.h"
#include "kernels/cuda/lombscargle/lombscargle_window.h"

#define NUFFT_THREADS (32 * LOMBSCARGLE_NUFFT_WARPS)
#define NUFFT_BATCH   16 /* samples that an item's lanes prepare at a time */
#define NUFFT_AHEAD   4  /* of which so many windows are computed at a time */
#define ALL_LANES     0xffffffffu

static __device__ __forceinline__ int nufft_thread() {
    return (int)(threadIdx.y * 32 + threadIdx.x);
}

/* The first cell of a sample's window, and where in the eighth the sample lies: 2z - 1. */
struct nufft_place {
    int cell;
    double within;
};

static __device__ __forceinline__ nufft_place place_of(const lombscargle_nufft &job, double t) {
    exact step = harmonic_of({job.df, 0.0}, job.harmonic);
    int cells = job.length * LOMBSCARGLE_NUFFT_ROW;
    double turns = __dmul_rn(step.high, t);
    double error = __fma_rn(step.low, t, __fma_rn(step.high, t, -turns));
    turns = __dadd_rn(turns, -rint(turns));
    double at = turns * cells, below = floor(at);
    double rest = __fma_rn(error, cells, __fma_rn(turns, cells, -at));
    int cell = (int)below - (LOMBSCARGLE_NUFFT_WINDOW / 2 - 1);
    cell = min(max(cell < 0 ? cell + cells : cell, 0), cells - 1);
    return {cell, __fma_rn(2.0, at - below + rest, -1.0)};
}

static __device__ __forceinline__ double value_of(const lombscargle_nufft &job, int64_t i) {
    return job.w[i] * (job.y[i] - job.level);
}

/* The largest number of a block's threads, in all of them. */
static __device__ __forceinline__ double block_most(double x) {
    __shared__ double most[32];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        x = fmax(x, __shfl_xor_sync(ALL_LANES, x, step));
    }
    if (threadIdx.x == 0) {
        most[threadIdx.y] = x;
    }
    __syncthreads();
    for (int i = 0; i < (int)blockDim.y; i++) {
        x = fmax(x, most[i]);
    }
    __syncthreads();
    return x;
}

static __device__ __forceinline__ void roots_make(const lombscargle_nufft &job, int64_t from,
                                                  int64_t step) {
    for (int64_t i = from; i < LOMBSCARGLE_NUFFT_ROOTS; i += step) {
        double s, c;
        sincospi(2.0 * (double)i / LOMBSCARGLE_NUFFT_ROOTS, &s, &c);
        ((double2 *)job.roots)[i] = make_double2(c, -s);
    }
}

/* Samples of a warp that fall into one tile count as one step. */
static __device__ __forceinline__ unsigned tile_enter(unsigned *counts, int tile) {
    unsigned same = __match_any_sync(ALL_LANES, tile), base = 0;
    int leader = __ffs(same) - 1;
    if ((int)threadIdx.x == leader && tile >= 0) {
        base = atomicAdd(&counts[tile], (unsigned)__popc(same));
    }
    base = __shfl_sync(ALL_LANES, base, leader);
    return base + (unsigned)__popc(same & ((1u << threadIdx.x) - 1u));
}

/* Tells how strong a block's samples are. */
static __device__ __forceinline__ void strengths_tell(const lombscargle_nufft &job, double weight,
                                                      double value) {
    weight = block_most(weight);
    value = block_most(value);
    if (nufft_thread() == 0) {
        atomicMax(&job.totals->weight, (unsigned long long)__double_as_longlong(weight));
        atomicMax(&job.totals->value, (unsigned long long)__double_as_longlong(value));
    }
}

static __device__ void samples_count_sparse(const lombscargle_nufft &job) {
    int64_t thread = (int64_t)blockIdx.x * NUFFT_THREADS + nufft_thread();
    int64_t step = (int64_t)gridDim.x * NUFFT_THREADS;
    double weight = 0.0, value = 0.0;
    roots_make(job, thread, step);
    for (int64_t at = thread - threadIdx.x; at < job.n; at += step) {
        int64_t i = at + threadIdx.x;
        int tile = i < job.n ? place_of(job, job.t[i]).cell / LOMBSCARGLE_NUFFT_TILE : -1;
        unsigned place = tile_enter(job.counts, tile);
        if (tile >= 0) {
            job.places[i] = place;
        }
        if (tile >= 0 && job.harmonic == 1) {
            weight = fmax(weight, fabs(job.w[i]));
            value = fmax(value, fabs(value_of(job, i)));
        }
    }
    if (job.harmonic == 1) {
        strengths_tell(job, weight, value);
    }
}

/* A block counts its own samples first, in shared memory: for many samples a tile. */
static __device__ void samples_count(const lombscargle_nufft &job) {
    extern __shared__ __align__(16) unsigned char nufft_memory[];
    unsigned *counts = (unsigned *)nufft_memory, place[LOMBSCARGLE_NUFFT_EACH];
    int threads = 32 * (int)blockDim.y, tile[LOMBSCARGLE_NUFFT_EACH];
    int64_t first = (int64_t)blockIdx.x * threads * LOMBSCARGLE_NUFFT_EACH + nufft_thread();
    roots_make(job, (int64_t)blockIdx.x * threads + nufft_thread(), (int64_t)gridDim.x * threads);
    for (int i = nufft_thread(); i < job.tiles; i += threads) {
        counts[i] = 0;
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < LOMBSCARGLE_NUFFT_EACH; p++) {
        int64_t i = first + p * threads;
        tile[p] = i < job.n ? place_of(job, job.t[i]).cell / LOMBSCARGLE_NUFFT_TILE : -1;
        place[p] = tile_enter(counts, tile[p]);
    }
    __syncthreads();
#pragma unroll 8
    for (int i = nufft_thread(); i < job.tiles; i += threads) {
        if (counts[i] > 0) {
            counts[i] = atomicAdd(&job.counts[i], counts[i]);
        }
    }
    __syncthreads();
#pragma unroll
    for (int p = 0; p < LOMBSCARGLE_NUFFT_EACH; p++) {
        if (tile[p] >= 0) {
            job.places[first + p * threads] = counts[tile[p]] + place[p];
        }
    }
    if (job.harmonic > 1) {
        return;
    }
    double weight = 0.0, value = 0.0;
#pragma unroll
    for (int p = 0; p < LOMBSCARGLE_NUFFT_EACH; p++) {
        int64_t i = first + p * threads;
        if (i < job.n) {
            weight = fmax(weight, fabs(job.w[i]));
            value = fmax(value, fabs(value_of(job, i)));
        }
    }
    strengths_tell(job, weight, value);
}

/* Sums over the threads before this one; `all` becomes the block's. */
static __device__ __forceinline__ unsigned long long
block_before(unsigned long long x, unsigned long long *all, unsigned long long *shared) {
    unsigned long long sum = x, before = 0;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        unsigned long long other = __shfl_up_sync(ALL_LANES, sum, step);
        sum += (int)threadIdx.x >= step ? other : 0;
    }
    if (threadIdx.x == 31) {
        shared[threadIdx.y] = sum;
    }
    __syncthreads();
    *all = 0;
    for (int i = 0; i < LOMBSCARGLE_NUFFT_WARPS; i++) {
        before += i < (int)threadIdx.y ? shared[i] : 0;
        *all += shared[i];
    }
    return before + sum - x;
}

/* Blocks get their places in the order in which they come. */
static __device__ void tiles_lay(const lombscargle_nufft &job) {
    __shared__ unsigned long long sums[LOMBSCARGLE_NUFFT_WARPS], base;
    int tile = (int)blockIdx.x * NUFFT_THREADS + nufft_thread();
    unsigned all = tile < job.tiles ? job.counts[tile] : 0;
    unsigned items = (all + job.part - 1) / job.part;
    unsigned long long total;
    unsigned long long laid = block_before((unsigned long long)items << 32 | all, &total, sums);
    if (nufft_thread() == 0) {
        base = atomicAdd(&job.totals->laid, total);
    }
    __syncthreads();
    laid += base;
    if (tile >= job.tiles) {
        return;
    }
    unsigned sample = (unsigned)laid, item = (unsigned)(laid >> 32);
    job.counts[tile] = 0;
    job.firsts[tile] = sample;
    job.spans[tile] = {item, items};
    for (unsigned i = 0; i < items; i++) {
        unsigned from = i * job.part;
        job.items[item + i] = {(unsigned)tile, sample + from, min(job.part, all - from), all};
    }
}

static __device__ void samples_order(const lombscargle_nufft &job) {
    int64_t step = (int64_t)gridDim.x * NUFFT_THREADS;
    for (int64_t i = (int64_t)blockIdx.x * NUFFT_THREADS + nufft_thread(); i < job.n; i += step) {
        int tile = place_of(job, job.t[i]).cell / LOMBSCARGLE_NUFFT_TILE;
        job.order[job.firsts[tile] + job.places[i]] = (unsigned)i;
    }
}

/* 1½ times a power of two: sums below `most` that start from it keep its last place. */
static __device__ __forceinline__ double anchor_of(double most) {
    long long bits = __double_as_longlong(fmax(most * 1.001, 1e-280)) >> 52;
    return __longlong_as_double((bits + 2) << 52 | 1ll << 51);
}

/* Strengths of a sample at the lanes' batch: values (of two kinds), weights. */
template <int KINDS> struct nufft_batch {
    double within[NUFFT_BATCH];
    int cell[NUFFT_BATCH][2]; /* and nothing: what follows is aligned */
    double2 strength[KINDS][NUFFT_BATCH];
};

template <int KINDS>
static __device__ __forceinline__ void batch_fill(const lombscargle_nufft &job, exact centre,
                                                  nufft_batch<KINDS> &batch, int lane,
                                                  const uint32_t *order, bool inside) {
    double within = 0.0, s = 0.0, c = 0.0, strength[KINDS] = {};
    int cell = 0;
    if (inside) {
        int64_t i = order[lane];
        double t = job.t[i];
        nufft_place place = place_of(job, t);
        cell = place.cell % LOMBSCARGLE_NUFFT_TILE;
        within = place.within;
        turn(phase(centre, t), &s, &c);
        strength[KINDS - 1] = job.w[i];
        if (KINDS == 2) {
            strength[0] = value_of(job, i);
        }
    }
    batch.within[lane] = within;
    batch.cell[lane][0] = cell;
#pragma unroll
    for (int k = 0; k < KINDS; k++) {
        batch.strength[k][lane] = make_double2(odd(strength[k] * c), odd(-strength[k] * s));
    }
}

template <int KINDS>
static __device__ __forceinline__ void batch_add(const nufft_batch<KINDS> &batch, double2 *patch,
                                                 const double (&terms)[WINDOW_TERMS], int lane,
                                                 int from) {
    double share[NUFFT_AHEAD];
#pragma unroll
    for (int i = 0; i < NUFFT_AHEAD; i++) {
        share[i] = window(terms, batch.within[from + i]);
    }
#pragma unroll
    for (int i = 0; i < NUFFT_AHEAD; i++) {
        double2 *cell = patch + batch.cell[from + i][0] + lane;
#pragma unroll
        for (int k = 0; k < KINDS; k++) {
            double2 strength = batch.strength[k][from + i];
            double2 sum = cell[k * LOMBSCARGLE_NUFFT_PATCH];
            sum.x = __fma_rn(strength.x, share[i], sum.x);
            sum.y = __fma_rn(strength.y, share[i], sum.y);
            cell[k * LOMBSCARGLE_NUFFT_PATCH] = sum;
        }
        __syncwarp();
    }
}

template <int KINDS>
static __device__ __forceinline__ void anchors_set(const lombscargle_nufft &job, unsigned all,
                                                   double (&anchor)[KINDS]) {
    double weight = __longlong_as_double((long long)job.totals->weight);
    double value = __longlong_as_double((long long)job.totals->value);
    anchor[KINDS - 1] = anchor_of(fmin(weight * all, 2.0));
    if (KINDS == 2) {
        anchor[0] = anchor_of(fmin(value * all, job.value_most));
    }
}

/* Two items a warp. */
template <int KINDS> static __device__ void items_spread(const lombscargle_nufft &job) {
    extern __shared__ __align__(16) unsigned char nufft_memory[];
    const int cells = LOMBSCARGLE_NUFFT_PATCH;
    int lane = (int)threadIdx.x % 16, item = nufft_thread() / 16;
    double2 *patch = (double2 *)nufft_memory + item * KINDS * cells;
    nufft_batch<KINDS> &batch =
        ((nufft_batch<KINDS> *)((double2 *)nufft_memory +
                                LOMBSCARGLE_NUFFT_ITEMS * KINDS * cells))[item];
    int64_t index = (int64_t)blockIdx.x * LOMBSCARGLE_NUFFT_ITEMS + item;
    bool any = index < (int64_t)(job.totals->laid >> 32);
    lombscargle_item work = {0, 0, 0, 0};
    if (any) {
        work = job.items[index];
    }
    double terms[WINDOW_TERMS], anchor[KINDS];
    window_load(terms, lane);
    anchors_set<KINDS>(job, work.all, anchor);
    for (int i = lane; i < KINDS * cells; i += 16) {
        double start = i < cells ? anchor[0] : anchor[KINDS - 1];
        patch[i] = make_double2(start, start);
    }
    exact centre = harmonic_of(frequency_at(job.f0, job.df, (double)(job.first + job.count / 2)),
                               job.harmonic);
    unsigned longest = max(work.count, __shfl_xor_sync(ALL_LANES, work.count, 16));
    for (unsigned at = 0; at < longest; at += NUFFT_BATCH) {
        __syncwarp();
        batch_fill<KINDS>(job, centre, batch, lane, job.order + work.first + at,
                          at + lane < work.count);
        __syncwarp();
        for (unsigned i = 0; i < min(longest - at, (unsigned)NUFFT_BATCH); i += NUFFT_AHEAD) {
            batch_add<KINDS>(batch, patch, terms, lane, (int)i);
        }
    }
    __syncwarp();
    double2 *to = (double2 *)job.patches + index * KINDS * cells;
    for (int i = lane; any && i < KINDS * cells; i += 16) {
        double start = i < cells ? anchor[0] : anchor[KINDS - 1];
        to[i] = make_double2(patch[i].x - start, patch[i].y - start);
    }
}

#endif
