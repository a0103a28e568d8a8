/*
 * lombscargle_direct.h: sums of `lombscargle` without tensor cores, for lists of frequencies, small
 * grids, and devices whose tensor cores are no help.
 *
 * On a regular grid a thread computes 2·PAIRS neighbouring frequencies of one term, c ± (m + ½) df
 * around their centre c. For each sample it takes sine and cosine of the centre's phase once, and
 * the offsets' from a table that the block shares; cos and sin of a ± b need the same four
 * products, so each of the three complex sums (y, w, and w at twice the phase) costs two
 * multiply-adds a frequency. The products are summed, and combined after the last sample. Otherwise
 * a thread takes one frequency at one harmonic, and one sine and cosine for each pair.
 *
 * Single-precision kernels work in float after the phase's reduction, and add each tile's sums up
 * in double.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_DIRECT_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_DIRECT_H

#include "kernels/cuda/lombscargle/lombscargle_device.h"

#define PAIRS   LOMBSCARGLE_PAIRS
#define TILE    32 /* samples in shared memory */
#define THREADS (32 * LOMBSCARGLE_WARPS)
#define POLL    64 /* tiles between looks at the stop word */

struct double_real {
    typedef double type;
    typedef double2 pair;
    static __device__ __forceinline__ double fma(double a, double b, double c) {
        return __fma_rn(a, b, c);
    }
};

struct float_real {
    typedef float type;
    typedef float2 pair;
    static __device__ __forceinline__ float fma(float a, float b, float c) {
        return __fmaf_rn(a, b, c);
    }
};

/* Sums of products over samples, for one offset: of the centre's (cos, sin) with the offset's. */
template <typename T> struct products { T cc, ss, sc, cs; /* centre's function first */ };

template <typename R>
static __device__ __forceinline__ void products_add(products<typename R::type> &sum,
                                                    typename R::type s, typename R::type c,
                                                    typename R::pair offset) {
    sum.cc = R::fma(c, offset.x, sum.cc);
    sum.ss = R::fma(s, offset.y, sum.ss);
    sum.sc = R::fma(s, offset.x, sum.sc);
    sum.cs = R::fma(c, offset.y, sum.cs);
}

static __device__ __forceinline__ void products_flush(products<double> &total,
                                                      products<float> &sum) {
    total.cc += (double)sum.cc;
    total.ss += (double)sum.ss;
    total.sc += (double)sum.sc;
    total.cs += (double)sum.cs;
    sum.cc = sum.ss = sum.sc = sum.cs = 0.0f;
}

/* Doubles are added up in place, and are the total after the last sample. */
static __device__ __forceinline__ void products_flush(products<double> &, products<double> &) {
}

static __device__ __forceinline__ void products_finish(products<double> &,
                                                       const products<float> &) {
}

static __device__ __forceinline__ void products_finish(products<double> &total,
                                                       const products<double> &sum) {
    total = sum;
}

/* A tile of samples, and for each the offsets' cosine and sine (x, y), at once and twice the phase.
 */
template <typename R> struct tile {
    double t[TILE];
    typename R::type w[TILE], wy[TILE];
    typename R::pair once[PAIRS][TILE], twice[PAIRS][TILE];
    unsigned stop;
};

template <typename R>
static __device__ __forceinline__ void tile_fill(const lombscargle_grid &grid,
                                                 const lombscargle_curve &curve, tile<R> &tile,
                                                 int64_t first, int64_t last, bool offsets) {
    int thread = (int)(threadIdx.y * 32 + threadIdx.x);
    for (int i = thread; i < TILE * PAIRS; i += THREADS) {
        int j = i % TILE, m = i / TILE;
        bool inside = first + j < last;
        double t = inside ? grid.t[curve.t + first + j] : 0.0;
        if (m == 0) {
            double w = inside ? grid.w[curve.w + first + j] * weight_of(grid, curve.n) : 0.0;
            double y = inside ? grid.y[curve.y + first + j] - level_of(grid, curve) : 0.0;
            tile.t[j] = t;
            tile.w[j] = (typename R::type)w;
            tile.wy[j] = (typename R::type)(w * y);
        }
        if (offsets) {
            double p = phase(frequency_at(0.0, grid.df, m + 0.5), t), s, c;
            turn(p, &s, &c);
            tile.once[m][j].x = (typename R::type)c;
            tile.once[m][j].y = (typename R::type)s;
            tile.twice[m][j].x = (typename R::type)(1.0 - 2.0 * s * s);
            tile.twice[m][j].y = (typename R::type)(2.0 * s * c);
        }
    }
}

/* Looks at the stop word now and then; true, in all threads alike, once the job should end. Stands
   where a barrier is needed anyway. */
static __device__ __forceinline__ bool stop_asked(const lombscargle_grid &grid, unsigned &shared,
                                                  unsigned tile) {
    if (grid.stop && tile % POLL == POLL - 1 && threadIdx.x == 0 && threadIdx.y == 0) {
        shared = *grid.stop;
    }
    __syncthreads();
    return shared != 0;
}

/* Leaves the sums of frequency centre + offset (sign 1) or centre - offset (-1). */
static __device__ __forceinline__ void products_leave(const lombscargle_grid &grid, double *to,
                                                      int64_t k, const products<double> &sum,
                                                      double sign) {
    leave(grid, to, k, sum.cc - sign * sum.ss, sum.sc + sign * sum.cs);
}

template <typename R> static __device__ void periodogram(const lombscargle_grid &grid) {
    typedef typename R::type T;
    __shared__ tile<R> tile;
    lombscargle_curve curve = curve_of(grid, curve_index(grid));
    int64_t thread = (int64_t)blockIdx.x * THREADS + threadIdx.y * 32 + threadIdx.x;
    int64_t k = thread * LOMBSCARGLE_COUNT;
    span slice = slice_of(grid, curve);
    exact centre = frequency_at(grid.f0, grid.df, (double)(grid.first + k) + (PAIRS - 0.5));
    products<double> total[3][PAIRS] = {};
    products<T> sum[3][PAIRS] = {};
    unsigned tiles = 0;
    tile.stop = 0;
    for (int64_t at = slice.first; at < slice.last; at += TILE) {
        tile_fill(grid, curve, tile, at, slice.last, true);
        __syncthreads();
#pragma unroll 1
        for (int j = 0; j < TILE; j++) {
            T s, c;
            turn(phase(centre, tile.t[j]), &s, &c);
            T w = tile.w[j], wy = tile.wy[j];
            T ws = w * s, wc = w * c;
            T w2s = (T)2 * ws * c, w2c = R::fma((T)-2 * ws, s, w);
#pragma unroll
            for (int m = 0; m < PAIRS; m++) {
                products_add<R>(sum[0][m], wy * s, wy * c, tile.once[m][j]);
                products_add<R>(sum[1][m], ws, wc, tile.once[m][j]);
                products_add<R>(sum[2][m], w2s, w2c, tile.twice[m][j]);
            }
        }
#pragma unroll
        for (int i = 0; i < 3 * PAIRS; i++) {
            products_flush(total[i / PAIRS][i % PAIRS], sum[i / PAIRS][i % PAIRS]);
        }
        if (stop_asked(grid, tile.stop, tiles++)) {
            return;
        }
    }
    double *to[3] = {partial_at(grid, curve_index(grid), blockIdx.y % grid.slices, 0),
                     partial_at(grid, curve_index(grid), blockIdx.y % grid.slices, 2),
                     partial_at(grid, curve_index(grid), blockIdx.y % grid.slices, 4)};
#pragma unroll
    for (int i = 0; i < 3 * PAIRS; i++) {
        products<double> &all = total[i / PAIRS][i % PAIRS];
        products_finish(all, sum[i / PAIRS][i % PAIRS]);
        products_leave(grid, to[i / PAIRS], k + PAIRS + i % PAIRS, all, 1.0);
        products_leave(grid, to[i / PAIRS], k + PAIRS - 1 - i % PAIRS, all, -1.0);
    }
}

/* Nothing is shared between frequencies. The block's row of the grid says which harmonic. */
template <typename R> static __device__ void listed(const lombscargle_grid &grid) {
    typedef typename R::type T;
    __shared__ tile<R> tile;
    lombscargle_curve curve = curve_of(grid, curve_index(grid));
    int harmonic = (int)(blockIdx.x % (2 * grid.nterms)) + 1;
    int64_t k =
        (int64_t)(blockIdx.x / (2 * grid.nterms)) * THREADS + threadIdx.y * 32 + threadIdx.x;
    span slice = slice_of(grid, curve);
    exact f = {0.0, 0.0};
    if (k < grid.count) {
        f = grid.frequency != NULL ? exact{grid.frequency[grid.first + k], 0.0}
                                   : frequency_at(grid.f0, grid.df, (double)(grid.first + k));
    }
    f = harmonic_of(f, harmonic);
    double yc = 0.0, ys = 0.0, c = 0.0, s = 0.0;
    unsigned tiles = 0;
    tile.stop = 0;
    for (int64_t at = slice.first; at < slice.last; at += TILE) {
        T part[4] = {};
        tile_fill(grid, curve, tile, at, slice.last, false);
        __syncthreads();
        for (int j = 0; j < TILE; j++) {
            T sine, cosine;
            turn(phase(f, tile.t[j]), &sine, &cosine);
            part[0] = R::fma(tile.wy[j], cosine, part[0]);
            part[1] = R::fma(tile.wy[j], sine, part[1]);
            part[2] = R::fma(tile.w[j], cosine, part[2]);
            part[3] = R::fma(tile.w[j], sine, part[3]);
        }
        yc += (double)part[0];
        ys += (double)part[1];
        c += (double)part[2];
        s += (double)part[3];
        if (stop_asked(grid, tile.stop, tiles++)) {
            return;
        }
    }
    int64_t index = curve_index(grid), part = blockIdx.y % grid.slices;
    leave(grid, partial_at(grid, index, part, weight_sum(grid, harmonic)), k, c, s);
    if (harmonic <= grid.nterms) {
        leave(grid, partial_at(grid, index, part, value_sum(grid, harmonic)), k, yc, ys);
    }
}

#endif
