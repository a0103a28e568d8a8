/*
 * lombscargle_fourier.h: from patches to sums (lombscargle_nufft.h), for device code.
 *
 * Cell n = 1024 a + b of a grid of 1024 L contributes to frequency k = u + L v with exp(-2πi (a u/L
 * + b u/(1024 L) + b v/1024)). Columns do the first of these, rows the others. A block has four of
 * either, so that what it reads or writes across them is whole sectors of memory.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_FOURIER_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_FOURIER_H

#include "kernels/cuda/lombscargle/lombscargle_spread.h"
#include "kernels/cuda/spectral/fourier.h"

#define NUFFT_LINES LOMBSCARGLE_NUFFT_LINES
#define NUFFT_ROW   LOMBSCARGLE_NUFFT_ROW

/* Three transforms of N/3 elements each, N 6 or 12. */
template <int N> static __device__ __forceinline__ void butterfly_by_three(double2 (&a)[N]) {
    const int part = N / 3;
    const double half = 0.5, high = 0.86602540378443864676;
    const double2 roots[7] = {{1.0, 0.0},     {high, -half},  {half, -high}, {0.0, -1.0},
                              {-half, -high}, {-high, -half}, {-1.0, 0.0}}; /* of order 12 */
    double2 b[3][part];
#pragma unroll
    for (int i = 0; i < part; i++) {
        double2 three[3] = {a[i], a[i + part], a[i + 2 * part]};
        butterfly<3, false>::run(three);
#pragma unroll
        for (int k = 0; k < 3; k++) {
            b[k][i] = i * k > 0 ? multiply(three[k], roots[i * k * (12 / N)]) : three[k];
        }
    }
#pragma unroll
    for (int k = 0; k < 3; k++) {
        butterfly<part, false>::run(b[k]);
#pragma unroll
        for (int i = 0; i < part; i++) {
            a[k + 3 * i] = b[k][i];
        }
    }
}

template <> struct butterfly<6, false> {
    static __device__ __forceinline__ void run(double2 (&a)[6]) {
        butterfly_by_three<6>(a);
    }
};

template <> struct butterfly<12, false> {
    static __device__ __forceinline__ void run(double2 (&a)[12]) {
        butterfly_by_three<12>(a);
    }
};

/* As twist, with a factor for all. */
template <int R> INLINE void twist_from(double2 (&a)[R], double2 factor, double2 w) {
#pragma unroll
    for (int q = 0; q < R; q++) {
        a[q] = multiply(a[q], factor);
        if (q + 1 < R) {
            factor = multiply(factor, w);
        }
    }
}

INLINE double2 root_of(const lombscargle_nufft &job, int order, int j) {
    return ((const double2 *)job.roots)[j * (LOMBSCARGLE_NUFFT_ROOTS / order)];
}

/* Adds the cells at `place` of the patches of a tile's items from number `from` on. */
INLINE void patches_add(const lombscargle_nufft &job, double2 &sum, lombscargle_span span,
                        unsigned from, int place) {
    const double2 *at = (const double2 *)job.patches + (int)blockIdx.y * LOMBSCARGLE_NUFFT_PATCH +
                        place + (int64_t)span.first * job.kinds * LOMBSCARGLE_NUFFT_PATCH;
#pragma unroll 4
    for (unsigned i = from; i < span.count; i++) {
        sum = add(sum, at[(int64_t)i * job.kinds * LOMBSCARGLE_NUFFT_PATCH]);
    }
}

/* Cells of column `column` in rows j + q stride; most tiles have one item or none. */
template <int R>
INLINE void cells_load(const lombscargle_nufft &job, double2 (&a)[R], int column, int j,
                       int stride) {
    const int tiles = NUFFT_ROW / LOMBSCARGLE_NUFFT_TILE;
    int tile[R], place = column % LOMBSCARGLE_NUFFT_TILE;
    lombscargle_span span[R];
#pragma unroll
    for (int q = 0; q < R; q++) {
        tile[q] = (j + q * stride) * tiles + column / LOMBSCARGLE_NUFFT_TILE;
        span[q] = job.spans[tile[q]];
    }
#pragma unroll
    for (int q = 0; q < R; q++) {
        a[q] = make_double2(0.0, 0.0);
        patches_add(job, a[q], {span[q].first, min(span[q].count, 1u)}, 0, place);
    }
#pragma unroll
    for (int q = 0; q < R; q++) {
        patches_add(job, a[q], span[q], 1, place);
        if (place < LOMBSCARGLE_NUFFT_WINDOW - 1) {
            int before = tile[q] > 0 ? tile[q] - 1 : job.tiles - 1;
            patches_add(job, a[q], job.spans[before], 0, place + LOMBSCARGLE_NUFFT_TILE);
        }
    }
}

/* A pass of radix 8 over parts of `length` elements of each column. */
template <int LENGTH>
INLINE void columns_stage(const lombscargle_nufft &job, double2 *data, int column, int unit,
                          int length) {
    const int stride = length / 8;
    for (int i = unit; i < LENGTH / 8; i += LENGTH / 16) {
        int j = i % stride, base = i / stride * length + j;
        double2 a[8];
#pragma unroll
        for (int q = 0; q < 8; q++) {
            a[q] = data[slot(base + q * stride) * NUFFT_LINES + column];
        }
        butterfly<8, false>::run(a);
        twist<8>(a, root_of(job, length, j));
#pragma unroll
        for (int q = 0; q < 8; q++) {
            data[slot(base + q * stride) * NUFFT_LINES + column] = a[q];
        }
    }
    __syncthreads();
}

/* Columns of R 8^EIGHTS cells: passes of radix R, then 8, the last of which leaves the block. Where
   they are has the frequency's digits the other way round. */
template <int R, int EIGHTS>
static __device__ void columns_transform(const lombscargle_nufft &job) {
    extern __shared__ __align__(16) unsigned char nufft_memory[];
    const int stride = EIGHTS == 3 ? 512 : 64, length = R * stride;
    double2 *data = (double2 *)nufft_memory;
    int thread = nufft_thread(), column = thread % NUFFT_LINES, unit = thread / NUFFT_LINES;
    int b = (int)blockIdx.x * NUFFT_LINES + column;
    for (int j = unit; j < stride; j += length / 16) {
        double2 a[R];
        cells_load<R>(job, a, b, j, stride);
        butterfly<R, false>::run(a);
        twist<R>(a, root_of(job, length, j));
#pragma unroll
        for (int q = 0; q < R; q++) {
            data[slot(j + q * stride) * NUFFT_LINES + column] = a[q];
        }
    }
    __syncthreads();
    if (EIGHTS == 3) {
        columns_stage<length>(job, data, column, unit, 512);
    }
    columns_stage<length>(job, data, column, unit, 64);
    double2 *to = (double2 *)job.lines + (int64_t)blockIdx.y * length * NUFFT_ROW + b;
    for (int i = unit; i < length / 8; i += length / 16) {
        double2 a[8];
#pragma unroll
        for (int q = 0; q < 8; q++) {
            a[q] = data[slot(i * 8 + q) * NUFFT_LINES + column];
        }
        butterfly<8, false>::run(a);
        int low = EIGHTS == 3 ? i / 8 % 8 + 8 * (i % 8) : i % 8;
        int u = i / (stride / 8) + R * low;
#pragma unroll
        for (int q = 0; q < 8; q++) {
            to[(int64_t)(u + q * (length / 8)) * NUFFT_ROW] = a[q];
        }
    }
}

/* What the next harmonic counts starts from zero; its samples are as strong as before. */
INLINE void totals_clear(const lombscargle_nufft &job) {
    if (blockIdx.x == 0 && blockIdx.y == 0 && nufft_thread() == 0) {
        job.totals->laid = 0;
        if (job.last) {
            job.totals->weight = job.totals->value = 0;
        }
    }
}

INLINE void short_columns(const lombscargle_nufft &job) {
    totals_clear(job);
    switch (job.length) {
    case 128:
        return columns_transform<2, 2>(job);
    case 256:
        return columns_transform<4, 2>(job);
    case 384:
        return columns_transform<6, 2>(job);
    case 512:
        return columns_transform<8, 2>(job);
    case 768:
        return columns_transform<12, 2>(job);
    default:
        return columns_transform<16, 2>(job);
    }
}

INLINE void long_columns(const lombscargle_nufft &job) {
    totals_clear(job);
    if (job.length == 1536) {
        columns_transform<3, 3>(job);
    } else {
        columns_transform<4, 3>(job);
    }
}

/* Rows u … u + 3: the first pass of radix 16, from memory. */
INLINE void rows_begin(const lombscargle_nufft &job, double2 *data, int u) {
    int thread = nufft_thread(), row = thread / 64, j = thread % 64;
    int64_t cells = (int64_t)job.length * NUFFT_ROW;
    const double2 *from =
        (const double2 *)job.lines + (int)blockIdx.y * cells + (int64_t)(u + row) * NUFFT_ROW + j;
    double2 a[16], first, step;
#pragma unroll
    for (int q = 0; q < 16; q++) {
        a[q] = from[q * 64];
    }
    sincospi(-2.0 * ((double)(u + row) * j / (double)cells), &first.y, &first.x);
    sincospi(-2.0 * ((double)(u + row) * 64 / (double)cells), &step.y, &step.x);
    twist<16>(a, step);
    butterfly<16, false>::run(a);
    twist_from<16>(a, first, root_of(job, NUFFT_ROW, j));
#pragma unroll
    for (int q = 0; q < 16; q++) {
        data[row * LOMBSCARGLE_NUFFT_PITCH + slot(j + q * 64)] = a[q];
    }
    __syncthreads();
}

/* Frequency k of the grid, if it is wanted. */
INLINE void sum_leave(const lombscargle_nufft &job, int k, double2 value) {
    int cells = job.length * NUFFT_ROW;
    k = k < cells / 2 ? k : k - cells;
    int64_t at = k + job.count / 2;
    if (at >= 0 && at < job.count) {
        double *sums = job.sums[blockIdx.y], inverse = window_inverse((double)k / cells);
        sums[at] = value.x * inverse;
        sums[job.count + at] = -value.y * inverse;
    }
}

static __device__ void rows_transform(const lombscargle_nufft &job) {
    extern __shared__ __align__(16) unsigned char nufft_memory[];
    double2 *data = (double2 *)nufft_memory;
    int u = (int)blockIdx.x * NUFFT_LINES;
    rows_begin(job, data, u);
    for (int i = nufft_thread(); i < NUFFT_LINES * NUFFT_ROW / 8; i += NUFFT_THREADS) {
        int row = i / (NUFFT_ROW / 8), part = i / 8 % 16, j = i % 8;
        double2 a[8], *line = data + row * LOMBSCARGLE_NUFFT_PITCH;
#pragma unroll
        for (int q = 0; q < 8; q++) {
            a[q] = line[slot(part * 64 + j + q * 8)];
        }
        butterfly<8, false>::run(a);
        twist<8>(a, root_of(job, 64, j));
#pragma unroll
        for (int q = 0; q < 8; q++) {
            line[slot(part * 64 + j + q * 8)] = a[q];
        }
    }
    __syncthreads();
    for (int i = nufft_thread(); i < NUFFT_LINES * NUFFT_ROW / 8; i += NUFFT_THREADS) {
        int row = i % NUFFT_LINES, part = i / NUFFT_LINES;
        double2 a[8], *line = data + row * LOMBSCARGLE_NUFFT_PITCH;
#pragma unroll
        for (int q = 0; q < 8; q++) {
            a[q] = line[slot(part * 8 + q)];
        }
        butterfly<8, false>::run(a);
#pragma unroll
        for (int q = 0; q < 8; q++) {
            int v = part / 8 + 16 * (part % 8 + 8 * q);
            sum_leave(job, u + row + job.length * v, a[q]);
        }
    }
}

#endif
