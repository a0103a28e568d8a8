/*
 * chirp_line.h: sine transforms of two lines by one block (chirp.h), for device code.
 *
 * y_j = sin(πj/N) (x_j + x_{N-j}) + (x_j - x_{N-j}) / 2 folds a line (Press et al., Numerical
 * Recipes). Of its transform Y result 2k is -Im Y_k, and result 2k - 1 minus the sum of Re Y_l over
 * l ≥ k up to N/2, where the last counts half if 2l = N: the odd results end at zero. The two lines
 * are told apart by the symmetry of a real line's transform.
 */
#ifndef KILN_KERNELS_CUDA_SPECTRAL_CHIRP_LINE_H
#define KILN_KERNELS_CUDA_SPECTRAL_CHIRP_LINE_H

#include "kernels/cuda/spectral/chirp.h"
#include "kernels/cuda/spectral/fourier.h"

/* exp(-iπ numerator / denominator), reduced in integers. */
INLINE double2 unit(uint64_t numerator, uint64_t denominator) {
    double2 value;
    sincospi((double)(numerator % (2 * denominator)) / (double)denominator, &value.y, &value.x);
    value.y = -value.y;
    return value;
}

/* Makes what chirp_table holds beside the filter; `first` of `step` threads. */
INLINE void chirp_lead_make(const chirp_table &table, uint64_t length, uint64_t first,
                            uint64_t step) {
    uint64_t period = length + 1, size = (uint64_t)table.plan.size, stride = size / CHIRP_FIRST;
    double2 *lead = (double2 *)table.lead;
    for (uint64_t i = first; i < size / 2; i += step) {
        ((double2 *)table.twiddle)[i] = unit(2 * i, size);
    }
    for (uint64_t b = first; b < stride; b += step) {
        uint64_t j = b + 1;
        double2 chirp = unit(j * j, period), shift = unit(b, size);
        double2 ratio = unit((2 * j + stride) * stride, period), move = unit(stride, size);
        lead[b] = chirp;
        lead[stride + b] = ratio;
        lead[2 * stride + b] = multiply(chirp, shift);
        lead[3 * stride + b] = multiply(ratio, move);
        lead[4 * stride + b] = multiply(chirp, facing<true>(shift));
        lead[5 * stride + b] = multiply(ratio, facing<true>(move));
        lead[6 * stride + b] = facing<true>(unit(j, period));
    }
}

/* Chirps of the elements of one butterfly, one after the other. */
struct chirps {
    double2 value, ratio;

    __device__ __forceinline__ chirps(const chirp_table &table, int stride, int variant, int b) {
        const double2 *lead = (const double2 *)table.lead + 2 * variant * stride + b;
        value = lead[0];
        ratio = lead[stride];
    }
    __device__ __forceinline__ double2 next(const chirp_table &table) {
        double2 now = value;
        value = multiply(value, ratio);
        ratio = multiply(ratio, make_double2(table.growth[0], table.growth[1]));
        return now;
    }
};

/* Two lines of elements; the second may be missing. */
template <typename T> struct lines {
    const T *a, *b;

    __device__ __forceinline__ double2 at(int64_t i) const {
        return make_double2((double)a[i], b != NULL ? (double)b[i] : 0.0);
    }
};

/* Folds, chirps and makes the first pass; comb 0: even frequencies, 1: odd ones. */
template <typename T>
INLINE void chirp_load(const fourier &f, const chirp_table &table, int n, int comb, lines<T> from) {
    int stride = f.size / CHIRP_FIRST;
#pragma unroll 1
    for (int i = f.thread; i < stride; i += f.threads) {
        chirps chirp(table, stride, comb, i);
        double2 root = ((const double2 *)table.lead)[6 * stride + i], a[CHIRP_FIRST];
#pragma unroll
        for (int q = 0; q < CHIRP_FIRST; q++) {
            int j = i + q * stride;
            a[q] = make_double2(0, 0);
            if (j < n) {
                double2 x = from.at(j), mirror = from.at(n - 1 - j);
                double2 y = scale(subtract(x, mirror), 0.5);
                a[q] = multiply(mix(y, add(x, mirror), root.y), chirp.next(table));
                root = multiply(root, make_double2(table.move[0], table.move[1]));
            }
        }
        butterfly<CHIRP_FIRST, false>::run(a);
        twist<CHIRP_FIRST>(a, f.twiddle[i]);
#pragma unroll
        for (int q = 0; q < CHIRP_FIRST; q++) {
            f.data[slot(i + q * stride)] = a[q];
        }
    }
    __syncthreads();
}

/* The last pass backward and the chirp: into `kept`, or with comb 1 added to it in the line. */
INLINE void chirp_unload(const fourier &f, const chirp_table &table, int n, int comb,
                         double2 *kept) {
    int stride = f.size / CHIRP_FIRST;
#pragma unroll 1
    for (int i = f.thread; i < stride; i += f.threads) {
        chirps chirp(table, stride, 2 * comb, i);
        double2 a[CHIRP_FIRST];
#pragma unroll
        for (int q = 0; q < CHIRP_FIRST; q++) {
            a[q] = f.data[slot(i + q * stride)];
        }
        twist<CHIRP_FIRST>(a, facing<true>(f.twiddle[i]));
        butterfly<CHIRP_FIRST, true>::run(a);
#pragma unroll
        for (int q = 0; q < CHIRP_FIRST; q++) {
            int j = i + q * stride;
            double2 z = multiply(a[q], chirp.next(table));
            if (comb == 0 && j < n) {
                kept[j] = z;
            } else if (j < n) {
                f.data[slot(j)] = add(z, kept[j]);
            }
        }
    }
}

/* Between the first pass forward and the last one backward. */
INLINE void chirp_convolve(const fourier &f, const chirp_plan &plan, double2 *filter) {
    int length = plan.size / CHIRP_FIRST, s = 1;
#pragma unroll 1
    for (; s < plan.stages - 1; length /= plan.radix[s++]) {
#define FORWARD(radix) radix_stage<radix, false>(f, length)
        BY_RADIX(plan.radix[s], FORWARD)
    }
#define MIDDLE(radix) middle<radix, false>(f, filter)
    BY_RADIX(plan.radix[s], MIDDLE)
#pragma unroll 1
    while (--s > 0) {
        length *= plan.radix[s];
#define BACKWARD(radix) radix_stage<radix, true>(f, length)
        BY_RADIX(plan.radix[s], BACKWARD)
    }
}

/* Sums of a pair over all threads after this one; `carry` holds a pair for each warp. */
INLINE double2 sums_after(double2 own, double2 *carry) {
    double2 sum = own;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        double x = __shfl_down_sync(0xffffffffu, sum.x, step);
        double y = __shfl_down_sync(0xffffffffu, sum.y, step);
        if (threadIdx.x + step < 32) {
            sum = add(sum, make_double2(x, y));
        }
    }
    if (threadIdx.x == 0) {
        carry[threadIdx.y] = sum;
    }
    double x = __shfl_down_sync(0xffffffffu, sum.x, 1);
    double y = __shfl_down_sync(0xffffffffu, sum.y, 1);
    sum = threadIdx.x < 31 ? make_double2(x, y) : make_double2(0, 0);
    __syncthreads();
    for (unsigned warp = threadIdx.y + 1; warp < blockDim.y; warp++) {
        sum = add(sum, carry[warp]);
    }
    return sum;
}

/* Where result r = 1 … n of both lines is after unfolding. */
INLINE int result_slot(int r, int n) {
    return slot(r % 2 ? r / 2 : n - r / 2);
}

/* The transform at k = 1 … n, in places k - 1, to results, each thread a run of k. */
INLINE void chirp_unfold(const fourier &f, int n, double2 *carry) {
    int half = n / 2, run = (half + f.threads - 1) / f.threads;
    int first = min(f.thread * run, half), last = min(first + run, half);
    double2 sum = make_double2(0, 0);
    __syncthreads();
#pragma unroll 1
    for (int k = first; k < last; k++) {
        sum = add(sum, add(f.data[slot(k)], f.data[slot(n - 1 - k)]));
    }
    sum = sums_after(sum, carry);
    if (n % 2) {
        sum = add(sum, f.data[slot(half)]);
    }
#pragma unroll 1
    for (int k = last - 1; k >= first; k--) {
        double2 *left = &f.data[slot(k)], *right = &f.data[slot(n - 1 - k)];
        double2 p = *left, m = *right;
        sum = add(sum, add(p, m));
        *left = scale(sum, -0.5);
        *right = make_double2(0.5 * (m.y - p.y), 0.5 * (p.x - m.x));
    }
    __syncthreads();
    if (n % 2 && f.thread == 0) {
        f.data[slot(half)] = scale(f.data[slot(half)], -0.5);
    }
    __syncthreads();
}

/* Sine transforms of two lines, of doubles or floats; the results are found by result_slot. */
INLINE void chirp_run(const fourier &f, const chirp_table &table, int n, const void *first,
                      const void *second, bool fp64, double2 *kept, double2 *carry) {
#pragma unroll 1
    for (int comb = 0; comb < 2; comb++) {
        if (fp64) {
            lines<double> from = {(const double *)first, (const double *)second};
            chirp_load(f, table, n, comb, from);
        } else {
            lines<float> from = {(const float *)first, (const float *)second};
            chirp_load(f, table, n, comb, from);
        }
        chirp_convolve(f, table.plan, (double2 *)table.filter + comb * f.size);
        chirp_unload(f, table, n, comb, kept);
    }
    chirp_unfold(f, n, carry);
}

/* Makes the filter of one comb: the chirp's transform, as the passes leave it. */
INLINE void chirp_filter_make(const fourier &f, const chirp_table &table, int n, int comb) {
    uint64_t period = (uint64_t)n + 1;
    int length = f.size, s = 0;
    for (int i = f.thread; i < f.size; i += f.threads) {
        uint64_t after = (uint64_t)i, before = (uint64_t)(f.size - i);
        double2 near = make_double2(0, 0), far = near;
        if (i < n) {
            near = facing<true>(unit(after * after, period));
        }
        if (f.size - i < n) {
            far = facing<true>(unit(before * before, period));
        }
        double2 value = add(near, far);
        if (comb) {
            value = multiply(subtract(near, far), unit(after, (uint64_t)f.size));
        }
        f.data[slot(i)] = scale(value, 0.5 / f.size);
    }
    __syncthreads();
#pragma unroll 1
    for (; s < table.plan.stages - 1; length /= table.plan.radix[s++]) {
        BY_RADIX(table.plan.radix[s], FORWARD)
    }
    double2 *filter = (double2 *)table.filter + comb * f.size;
#define MAKE(radix) middle<radix, true>(f, filter)
    BY_RADIX(table.plan.radix[s], MAKE)
}

#endif
