/*
 * lombscargle.cu: the direct generalised periodogram (kernels/lombscargle.h).
 *
 * On a regular grid a thread computes 2·PAIRS neighbouring frequencies, c ± (m + ½) df around their
 * centre c. For each sample it takes sine and cosine of the centre's phase once, and the offsets'
 * from a table that the block shares; cos and sin of a ± b need the same four products, so each of
 * the three complex sums (y, w, and w at twice the phase) costs two multiply-adds a frequency. The
 * products are summed, and combined after the last sample.
 * A list of frequencies takes one thread and one sine and cosine for each pair.
 *
 * Phases are in turns and reduced in double with the rounding error of the product included; the
 * single-precision kernels work in float after that, and add each tile's sums up in double.
 * Fused operations are written out; the compiler fuses nothing.
 */
#include "kernels/cuda/lombscargle_grid.h"

#define PAIRS   4
#define COUNT   (2 * PAIRS) /* frequencies a thread */
#define TILE    32          /* samples in shared memory */
#define WARPS   4
#define THREADS (32 * WARPS)
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

/* A frequency as a sum of two doubles. */
struct exact {
    double high, low;
};

/* f0 + k df. */
static __device__ __forceinline__ exact frequency_at(double f0, double df, double k) {
    double product = __dmul_rn(k, df);
    double product_low = __fma_rn(k, df, -product);
    double high = __dadd_rn(f0, product);
    double back = __dadd_rn(high, -f0);
    double low = __dadd_rn(__dadd_rn(f0, -__dadd_rn(high, -back)), __dadd_rn(product, -back));
    return {high, __dadd_rn(low, product_low)};
}

/* f t less a whole number, in [-½, ½] but for rounding. */
static __device__ __forceinline__ double phase(exact f, double t) {
    double product = __dmul_rn(f.high, t);
    double error = __fma_rn(f.low, t, __fma_rn(f.high, t, -product));
    return __dadd_rn(__dadd_rn(product, -rint(product)), error);
}

static __device__ __forceinline__ void turn(double phase, double *s, double *c) {
    sincospi(2.0 * phase, s, c);
}

static __device__ __forceinline__ void turn(double phase, float *s, float *c) {
    sincospif((float)(2.0 * phase), s, c);
}

struct sums {
    double yc, ys, c, s, c2, s2;
};

static __device__ double normalized(const lombscargle_grid &grid, double p) {
    p = p < 0.0 ? 0.0 : p > 1.0 ? 1.0 : p; /* NaN stays */
    switch (grid.normalization) {
    case 1:
        return p / (1.0 - p);
    case 2:
        return -log1p(-p);
    case 3:
        return p * grid.psd_factor;
    default:
        return p;
    }
}

/* Zechmeister & Kürster 2009, eq. 5 to 15, with Σ w cos² = (1 + C2)/2, Σ w sin² = (1 - C2)/2. */
static __device__ double power(const lombscargle_grid &grid, const sums &sum) {
    double yc = sum.yc, ys = sum.ys;
    double cc = 0.5 * (1.0 + sum.c2), ss = 0.5 * (1.0 - sum.c2), cs = 0.5 * sum.s2;
    if (grid.fit_mean) {
        cc = fma(-sum.c, sum.c, cc);
        ss = fma(-sum.s, sum.s, ss);
        cs = fma(-sum.c, sum.s, cs);
    }
    double d = fma(cc, ss, -cs * cs), most = fmax(cc, ss), p;
    if (!(most > grid.rounding) || !(grid.yy > 0.0)) {
        p = __longlong_as_double(0x7ff8000000000000ll);
    } else if (d > grid.rounding * (cc + ss)) {
        p = fma(ss * yc, yc, fma(cc * ys, ys, -2.0 * cs * yc * ys)) / (grid.yy * d);
    } else {
        double projection = cc >= ss ? yc : ys;
        p = projection * projection / (most * grid.yy);
    }
    return normalized(grid, p);
}

/* Finishes a frequency, or leaves its sums for the second kernel. */
static __device__ __forceinline__ void deliver(const lombscargle_grid &grid, int64_t k, sums sum) {
    if (k >= grid.nf) {
        return;
    }
    sum = {sum.yc / grid.weight, sum.ys / grid.weight, sum.c / grid.weight,
           sum.s / grid.weight,  sum.c2 / grid.weight, sum.s2 / grid.weight};
    if (!grid.partial) {
        grid.power[k] = power(grid, sum);
        return;
    }
    double *at = grid.partial + (int64_t)blockIdx.y * LOMBSCARGLE_SUMS * grid.nf + k;
    at[0 * grid.nf] = sum.yc;
    at[1 * grid.nf] = sum.ys;
    at[2 * grid.nf] = sum.c;
    at[3 * grid.nf] = sum.s;
    at[4 * grid.nf] = sum.c2;
    at[5 * grid.nf] = sum.s2;
}

/* Sums of products over samples, for one offset: of the centre's (cos, sin) with the offset's. */
template <typename T> struct products {
    T cc, ss, sc, cs; /* centre's function first */
};

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

/* In double the sums are the totals already. */
static __device__ __forceinline__ void products_flush(products<double> &, products<double> &) {
}

/* A tile of samples, and for each the offsets' cosine and sine (x, y), at once and twice the phase. */
template <typename R> struct tile {
    double t[TILE];
    typename R::type w[TILE], wy[TILE];
    typename R::pair once[PAIRS][TILE], twice[PAIRS][TILE];
    unsigned stop;
};

template <typename R>
static __device__ __forceinline__ void tile_fill(const lombscargle_grid &grid, tile<R> &tile,
                                                 int64_t first, int64_t last, bool offsets) {
    int thread = (int)(threadIdx.y * 32 + threadIdx.x);
    for (int i = thread; i < TILE * PAIRS; i += THREADS) {
        int j = i % TILE, m = i / TILE;
        double t = first + j < last ? grid.t[first + j] : 0.0;
        if (m == 0) {
            double w = first + j < last ? grid.w[first + j] * grid.weight : 0.0;
            double y = first + j < last ? grid.y[first + j] : 0.0;
            /* With a floating mean YC - Y C is the sum over y - Y: taken off before values are
               rounded, a large mean costs no digits. */
            y -= grid.fit_mean ? grid.y_mean : 0.0;
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

/* Turns products into the sums of frequency centre + offset (sign 1) or centre - offset (-1). */
static __device__ __forceinline__ sums combine(const products<double> &y, const products<double> &w,
                                               const products<double> &w2, double sign) {
    return {y.cc - sign * y.ss, y.sc + sign * y.cs,   w.cc - sign * w.ss,
            w.sc + sign * w.cs, w2.cc - sign * w2.ss, w2.sc + sign * w2.cs};
}

template <typename R> static __device__ void periodogram(const lombscargle_grid &grid) {
    typedef typename R::type T;
    __shared__ tile<R> tile;
    int64_t thread = (int64_t)blockIdx.x * THREADS + threadIdx.y * 32 + threadIdx.x;
    int64_t k = thread * COUNT;
    int64_t first = (int64_t)blockIdx.y * grid.slice;
    int64_t last = min(first + grid.slice, grid.n);
    exact centre = frequency_at(grid.f0, grid.df, (double)k + (PAIRS - 0.5));
    products<double> total[3][PAIRS] = {};
    products<T> sum[3][PAIRS] = {};
    unsigned tiles = 0;
    for (; first < last; first += TILE) {
        unsigned stop = 0;
        bool poll = threadIdx.x == 0 && threadIdx.y == 0 && tiles++ % POLL == 0;
        if (poll) {
            stop = *grid.stop;
        }
        tile_fill(grid, tile, first, last, true);
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
        if (sizeof(T) == sizeof(float)) {
#pragma unroll
            for (int i = 0; i < 3 * PAIRS; i++) {
                products_flush(total[i / PAIRS][i % PAIRS], sum[i / PAIRS][i % PAIRS]);
            }
        }
        if (poll) {
            tile.stop = stop;
        }
        __syncthreads();
        if (tile.stop != 0) {
            return;
        }
    }
#pragma unroll
    for (int m = 0; m < PAIRS; m++) {
        const products<double> *y, *w, *w2;
        if constexpr (sizeof(T) == sizeof(double)) {
            y = (const products<double> *)&sum[0][m];
            w = (const products<double> *)&sum[1][m];
            w2 = (const products<double> *)&sum[2][m];
        } else {
            y = &total[0][m];
            w = &total[1][m];
            w2 = &total[2][m];
        }
        deliver(grid, k + PAIRS + m, combine(*y, *w, *w2, 1.0));
        deliver(grid, k + PAIRS - 1 - m, combine(*y, *w, *w2, -1.0));
    }
}

/* Frequencies from a list: nothing is shared between them. */
template <typename R> static __device__ void listed(const lombscargle_grid &grid) {
    typedef typename R::type T;
    __shared__ tile<R> tile;
    int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.y * 32 + threadIdx.x;
    int64_t first = (int64_t)blockIdx.y * grid.slice;
    int64_t last = min(first + grid.slice, grid.n);
    exact f = {k < grid.nf ? grid.frequency[k] : 0.0, 0.0};
    sums total = {0.0, 0.0, 0.0, 0.0, 0.0, 0.0};
    unsigned tiles = 0;
    for (; first < last; first += TILE) {
        unsigned stop = 0;
        bool poll = threadIdx.x == 0 && threadIdx.y == 0 && tiles++ % POLL == 0;
        if (poll) {
            stop = *grid.stop;
        }
        tile_fill(grid, tile, first, last, false);
        __syncthreads();
        T yc = 0, ys = 0, wc = 0, ws = 0, w2c = 0, w2s = 0;
        for (int j = 0; j < TILE; j++) {
            T s, c, w = tile.w[j], wy = tile.wy[j];
            turn(phase(f, tile.t[j]), &s, &c);
            T a = w * s;
            yc = R::fma(wy, c, yc);
            ys = R::fma(wy, s, ys);
            wc = R::fma(w, c, wc);
            ws += a;
            w2c = R::fma((T)-2 * a, s, w2c + w);
            w2s = R::fma((T)2 * a, c, w2s);
        }
        total = {total.yc + yc, total.ys + ys, total.c + wc,
                 total.s + ws,  total.c2 + w2c, total.s2 + w2s};
        if (poll) {
            tile.stop = stop;
        }
        __syncthreads();
        if (tile.stop != 0) {
            return;
        }
    }
    deliver(grid, k, total);
}

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

/* Adds the slices' sums in their order. */
extern "C" __global__ void __launch_bounds__(THREADS)
    lombscargle_finish(const __grid_constant__ lombscargle_grid grid) {
    int64_t k = (int64_t)blockIdx.x * THREADS + threadIdx.y * 32 + threadIdx.x;
    if (k >= grid.nf) {
        return;
    }
    double sum[LOMBSCARGLE_SUMS] = {};
    const double *at = grid.partial + k;
    for (int32_t slice = 0; slice < grid.slices; slice++) {
        for (int i = 0; i < LOMBSCARGLE_SUMS; i++, at += grid.nf) {
            sum[i] += *at;
        }
    }
    grid.power[k] = power(grid, {sum[0], sum[1], sum[2], sum[3], sum[4], sum[5]});
}
