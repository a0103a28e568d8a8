/*
 * lombscargle_device.h: what the device code of `lombscargle` shares: frequencies, phases, places.
 *
 * Phases are in turns and reduced in double with the rounding error of the product included.
 * Fused operations are written out; the compiler fuses nothing.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_DEVICE_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_DEVICE_H

#include "kernels/cuda/lombscargle/lombscargle_grid.h"
#include "kernels/lombscargle_power.h"

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

/* h times a frequency. */
static __device__ __forceinline__ exact harmonic_of(exact f, double h) {
    double high = __dmul_rn(f.high, h);
    return {high, __fma_rn(f.low, h, __fma_rn(f.high, h, -high))};
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

static __device__ __forceinline__ int64_t curve_index(const lombscargle_grid &grid) {
    return blockIdx.y / grid.slices;
}

static __device__ __forceinline__ lombscargle_curve curve_of(const lombscargle_grid &grid,
                                                             int64_t index) {
    return grid.curves != NULL ? grid.curves[index] : grid.one;
}

/* Of the weights as kernels see them: in float equal weights are exactly 1. */
static __device__ __forceinline__ double weight_of(const lombscargle_grid &grid, int64_t n) {
    return grid.fp32 ? (double)n : 1.0;
}

/* With a floating mean YC - Y C is the sum over y - Y: taken off before values are rounded, a large
   mean costs no digits. */
static __device__ __forceinline__ double level_of(const lombscargle_grid &grid,
                                                  const lombscargle_curve &curve) {
    return grid.fit_mean ? curve.y_mean : 0.0;
}

/* The samples of this block's slice, counted from the curve's first. */
struct span {
    int64_t first, last;
};

static __device__ __forceinline__ span slice_of(const lombscargle_grid &grid,
                                                const lombscargle_curve &curve) {
    int64_t first = grid.from + (int64_t)(blockIdx.y % grid.slices) * grid.slice;
    int64_t last = min(first + grid.slice, min(grid.to, curve.n));
    return {first, max(first, last)};
}

/* Where a sum's frequencies begin in `partial`. */
static __device__ __forceinline__ int64_t partial_index(const lombscargle_grid &grid, int64_t curve,
                                                        int64_t slice, int sum) {
    return ((curve * grid.slices + slice) * LOMBSCARGLE_SUMS(grid.nterms) + sum) * grid.count;
}

static __device__ __forceinline__ double *partial_at(const lombscargle_grid &grid, int64_t curve,
                                                     int64_t slice, int sum) {
    return grid.partial + partial_index(grid, curve, slice, sum);
}

/* Places of a harmonic's cosine sum; the sine's is the next. */
static __device__ __forceinline__ int value_sum(const lombscargle_grid &, int harmonic) {
    return 2 * (harmonic - 1);
}

static __device__ __forceinline__ int weight_sum(const lombscargle_grid &grid, int harmonic) {
    return 2 * (grid.nterms + harmonic - 1);
}

/* Leaves a cosine and a sine sum of frequency `first` + k, where that is one of the launch's. */
static __device__ __forceinline__ void leave(const lombscargle_grid &grid, double *cosine,
                                             int64_t k, double c, double s) {
    if (k >= grid.count) {
        return;
    }
    double *sine = cosine + grid.count;
    cosine[k] = grid.add ? cosine[k] + c : c;
    sine[k] = grid.add ? sine[k] + s : s;
}

#endif
