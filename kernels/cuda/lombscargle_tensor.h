/*
 * lombscargle_tensor.h: sums of `lombscargle` on a grid as products of matrices on tensor cores.
 *
 * The phase at frequency centre ± (m + ½) df of a row is the centre's ± the offset's, so that both
 * frequencies' cosine and sine are combinations of four products. Their sums over samples are a
 * product of two matrices: lines of weighted cosines and sines of centres, columns of cosines and
 * sines of offsets. Harmonic h is the same with h times the phases. A row's centre is the tile's
 * first one turned on by an offset of its own; both kinds of offsets are the same for all tiles,
 * and `tables` has computed them.
 *
 * A block has two kinds of warps. Feeders make the lines of the next stage (LOMBSCARGLE_STAGE
 * samples) and copy its columns, while multipliers work on the stage before. Both matrices lie by
 * sample, LOMBSCARGLE_PITCH apart, so that fragments are read without bank conflicts. Lines come in
 * groups of 16: cosines of eight rows, then their sines; columns are cosine, sine, cosine, …: so
 * the four products that belong together end in one thread.
 *
 * An element is a double, or in single precision two TF32 numbers whose sum it is: three products
 * of those are one of floats. The tensor cores' own sums then run over one stage only; stages are
 * added in float.
 */
#ifndef KILN_CUDA_LOMBSCARGLE_TENSOR_H
#define KILN_CUDA_LOMBSCARGLE_TENSOR_H

#include "kernels/cuda/dmma.h"
#include "kernels/cuda/lombscargle_device.h"

#define STAGE    LOMBSCARGLE_STAGE
#define PITCH    LOMBSCARGLE_PITCH
#define BANDS    4 /* of 16 lines, and of 8 columns, that a warp multiplies */
#define FEED     (32 * LOMBSCARGLE_FEEDERS)
#define EIGHT    8                      /* threads that feed a sample; rows of a group */
#define FED      (STAGE * EIGHT / FEED) /* samples that a thread feeds */
#define ROWS_MAX (LOMBSCARGLE_LINES / 2)

struct double_element {
    typedef double type;
    typedef double sum;
    static constexpr bool staged = false; /* sums of a stage are added by themselves */
    static __device__ __forceinline__ double make(double x) {
        return x;
    }
    static __device__ __forceinline__ void multiply(double (&c)[4], const double (&a)[4],
                                                    const double (&b)[2]) {
        dmma(c, a, b);
    }
};

static __device__ __forceinline__ float tf32(float x) {
    uint32_t bits = 0;
#ifdef __CUDA_ARCH__
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(bits) : "f"(x));
#endif
    return __uint_as_float(bits);
}

static __device__ __forceinline__ void mma_tf32(float (&c)[4], float a0, float a1, float a2,
                                                float a3, float b0, float b1) {
#ifdef __CUDA_ARCH__
    asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
                 "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(__float_as_uint(a0)), "r"(__float_as_uint(a1)), "r"(__float_as_uint(a2)),
                   "r"(__float_as_uint(a3)), "r"(__float_as_uint(b0)), "r"(__float_as_uint(b1)));
#endif
}

struct float_element {
    typedef float2 type; /* x is the larger */
    typedef float sum;
    static constexpr bool staged = true;
    static __device__ __forceinline__ float2 make(double value) {
        float high = tf32((float)value);
        return make_float2(high, tf32((float)(value - (double)high)));
    }
    static __device__ __forceinline__ void multiply(float (&c)[4], const float2 (&a)[4],
                                                    const float2 (&b)[2]) {
        mma_tf32(c, a[0].y, a[1].y, a[2].y, a[3].y, b[0].x, b[1].x);
        mma_tf32(c, a[0].x, a[1].x, a[2].x, a[3].x, b[0].y, b[1].y);
        mma_tf32(c, a[0].x, a[1].x, a[2].x, a[3].x, b[0].x, b[1].x);
    }
};

/* Where a harmonic's tables begin. */
static __device__ __forceinline__ int64_t columns_at(const lombscargle_grid &grid, int harmonic) {
    return (harmonic - 1) * (grid.elements + STAGE) * PITCH;
}

static __device__ __forceinline__ int64_t rows_at(const lombscargle_grid &grid, int harmonic) {
    int narrow = min(harmonic - 1, grid.nterms), wide = harmonic - 1 - narrow;
    return (narrow * (ROWS_MAX / 2) + wide * ROWS_MAX) * (grid.elements + STAGE);
}

/* One cosine and sine: first of the columns' offsets, then of the rows'. The grid's y is the
   harmonic. Behind the last element the tables go on for a stage, whose lines will be nothing. */
template <typename E> static __device__ void tables(const lombscargle_grid &grid) {
    int harmonic = (int)blockIdx.y + 1;
    int rows = LOMBSCARGLE_TILE_ROWS(harmonic, grid.nterms), all = LOMBSCARGLE_OFFSETS + rows;
    int64_t thread = ((int64_t)blockIdx.x * LOMBSCARGLE_WARPS + threadIdx.y) * 32 + threadIdx.x;
    int64_t element = thread / all;
    int place = (int)(thread % all);
    if (thread == 0 && harmonic == 1) {
        *grid.stopped = grid.stop ? *grid.stop : 0;
    }
    if (element >= grid.elements + STAGE) {
        return;
    }
    bool column = place < LOMBSCARGLE_OFFSETS;
    int row = place - LOMBSCARGLE_OFFSETS;
    double steps = column ? place + 0.5 : (double)row * LOMBSCARGLE_ROW, s, c;
    exact offset = frequency_at(0.0, grid.df, steps * harmonic);
    double t = element < grid.elements ? grid.t[grid.element + element] : 0.0;
    turn(phase(offset, t), &s, &c);
    if (column) {
        typename E::type *to = (typename E::type *)grid.columns + columns_at(grid, harmonic) +
                               element * PITCH + 2 * place;
        to[0] = E::make(c);
        to[1] = E::make(s);
    } else {
        double2 *to = (double2 *)grid.rows + rows_at(grid, harmonic) + element * rows + row;
        *to = make_double2(c, s);
    }
}

/* What a block computes. */
struct job {
    lombscargle_curve curve;
    int harmonic, rows;
    bool values;  /* sums over values too */
    int64_t k;    /* its first frequency, counted from the launch's first */
    exact centre; /* of its first row, times the harmonic */
    span samples;
    double weight, level;
};

static __device__ __forceinline__ job job_find(const lombscargle_grid &grid) {
    job job;
    int64_t block = blockIdx.x, narrow = grid.tiles * grid.nterms;
    job.values = block < narrow;
    block -= job.values ? 0 : narrow;
    int64_t tiles = job.values ? grid.tiles : grid.wide_tiles;
    job.harmonic = (int)(block / tiles) + 1 + (job.values ? 0 : grid.nterms);
    job.rows = job.values ? ROWS_MAX / 2 : ROWS_MAX;
    job.k = block % tiles * job.rows * LOMBSCARGLE_ROW;
    job.curve = curve_of(grid, curve_index(grid));
    double middle = (double)(grid.first + job.k) + (LOMBSCARGLE_OFFSETS - 0.5);
    job.centre = harmonic_of(frequency_at(grid.f0, grid.df, middle), job.harmonic);
    job.samples = slice_of(grid, job.curve);
    job.weight = weight_of(grid, job.curve.n);
    job.level = level_of(grid, job.curve);
    return job;
}

/* Both matrices of a stage, by sample. */
template <typename E> struct stage { typename E::type lines[STAGE][PITCH], columns[STAGE][PITCH]; };

/* What a block's lines of a sample are made of: cosine and sine of the first row's centre, weight
   and weighted value. */
struct fact {
    double c, s, w, wy;
};

/* A sample on its way from memory; one outside of the slice weighs nothing. */
struct sample {
    double t, w, y;
};

static __device__ __forceinline__ sample sample_load(const lombscargle_grid &grid, const job &job,
                                                     int64_t at) {
    if (at >= job.samples.last) {
        return {0.0, 0.0, 0.0};
    }
    return {grid.t[job.curve.t + at], grid.w[job.curve.w + at], grid.y[job.curve.y + at]};
}

static __device__ __forceinline__ fact fact_make(const job &job, const sample &sample) {
    fact fact;
    turn(phase(job.centre, sample.t), &fact.s, &fact.c);
    fact.w = sample.w * job.weight;
    fact.wy = fact.w * (sample.y - job.level);
    return fact;
}

/* Starts the copies of a stage's columns, which lie in the table as they do here. */
template <typename E>
static __device__ __forceinline__ void columns_copy(stage<E> &stage, const typename E::type *table,
                                                    int thread) {
    const int chunks = STAGE * PITCH / 2; /* of 16 bytes */
    typename E::type *to = &stage.columns[0][0];
#pragma unroll
    for (int i = 0; i < (chunks + FEED - 1) / FEED; i++) {
        int chunk = thread + i * FEED;
        if (chunk < chunks) {
            copy_start(to + 2 * chunk, table + 2 * chunk, false);
        }
    }
    copies_close();
}

/* Makes the lines of one sample: one of eight threads those of rows lane, lane + 8, … */
template <typename E>
static __device__ __forceinline__ void lines_make(typename E::type *line, const fact &fact,
                                                  const double2 (&offsets)[ROWS_MAX / EIGHT],
                                                  bool values) {
    typename E::type *weights = line + (values ? LOMBSCARGLE_LINES / 2 : 0);
#pragma unroll
    for (int group = 0; group < ROWS_MAX / EIGHT; group++) {
        if (values && group >= ROWS_MAX / EIGHT / 2) {
            break;
        }
        const double2 offset = offsets[group];
        double cosine = __fma_rn(fact.c, offset.x, -(fact.s * offset.y));
        double sine = __fma_rn(fact.s, offset.x, fact.c * offset.y);
        if (values) {
            line[2 * EIGHT * group] = E::make(fact.wy * cosine);
            line[2 * EIGHT * group + EIGHT] = E::make(fact.wy * sine);
        }
        weights[2 * EIGHT * group] = E::make(fact.w * cosine);
        weights[2 * EIGHT * group + EIGHT] = E::make(fact.w * sine);
    }
}

/* Cosines and sines of the rows' offsets that one thread needs of a sample. */
static __device__ __forceinline__ void offsets_load(double2 (&offsets)[ROWS_MAX / EIGHT],
                                                    const double2 *table, bool values) {
#pragma unroll
    for (int group = 0; group < ROWS_MAX / EIGHT; group++) {
        if (!values || group < ROWS_MAX / EIGHT / 2) {
            offsets[group] = table[group * EIGHT];
        }
    }
}

/* Sums of a warp: BANDS × 16 lines and BANDS × 8 columns. */
template <typename T> struct block_sums { T at[BANDS][BANDS][4]; };

template <typename E>
static __device__ __forceinline__ void stage_multiply(const stage<E> &stage, int lines, int columns,
                                                      block_sums<typename E::sum> &sums) {
    const int g = threadIdx.x / 4, t = threadIdx.x % 4;
#pragma unroll 1
    for (int k = t; k < STAGE; k += 8) {
        typename E::type b[BANDS][2];
#pragma unroll
        for (int n = 0; n < BANDS; n++) {
            b[n][0] = stage.columns[k][columns + 8 * n + g];
            b[n][1] = stage.columns[k + 4][columns + 8 * n + g];
        }
#pragma unroll
        for (int m = 0; m < BANDS; m++) {
            const typename E::type *line = &stage.lines[k][lines + 16 * m + g];
            typename E::type a[4] = {line[0], line[8], line[4 * PITCH], line[4 * PITCH + 8]};
#pragma unroll
            for (int n = 0; n < BANDS; n++) {
                E::multiply(sums.at[m][n], a, b[n]);
            }
        }
    }
}

/* Adds a stage's sums to those of the stages before. */
template <typename T>
static __device__ __forceinline__ void sums_flush(block_sums<T> &total, block_sums<T> &sums) {
#pragma unroll
    for (int i = 0; i < BANDS * BANDS * 4; i++) {
        T &sum = sums.at[i / 4 / BANDS][i / 4 % BANDS][i % 4];
        total.at[i / 4 / BANDS][i / 4 % BANDS][i % 4] += sum;
        sum = 0;
    }
}

/* Combines the four products of each row and offset to the sums of its two frequencies. */
template <typename T>
static __device__ __forceinline__ void sums_leave(const lombscargle_grid &grid, const job &job,
                                                  int lines, int columns,
                                                  const block_sums<T> &sums) {
    bool values = job.values && lines < LOMBSCARGLE_LINES / 2;
    int sum = values ? value_sum(grid, job.harmonic) : weight_sum(grid, job.harmonic);
    double *to = partial_at(grid, curve_index(grid), blockIdx.y % grid.slices, sum);
    int row = (job.values ? lines % (LOMBSCARGLE_LINES / 2) : lines) / 2 + (int)threadIdx.x / 4;
    int offset = columns / 2 + (int)threadIdx.x % 4;
#pragma unroll
    for (int m = 0; m < BANDS; m++) {
        int64_t middle = job.k + (int64_t)(row + EIGHT * m) * LOMBSCARGLE_ROW + LOMBSCARGLE_OFFSETS;
#pragma unroll
        for (int n = 0; n < BANDS; n++) {
            const T(&part)[4] = sums.at[m][n];
            double cc = (double)part[0], cs = (double)part[1];
            double sc = (double)part[2], ss = (double)part[3];
            leave(grid, to, middle + offset + 4 * n, cc - ss, sc + cs);
            leave(grid, to, middle - 1 - offset - 4 * n, cc + ss, sc - cs);
        }
    }
}

/* Both kinds of warps meet here, each at a place of its own. */
static __device__ __forceinline__ void stage_barrier() {
#ifdef __CUDA_ARCH__
    asm volatile("bar.sync 1, %0;" ::"n"(32 * (LOMBSCARGLE_MULTIPLIERS + LOMBSCARGLE_FEEDERS))
                 : "memory");
#endif
}

/* The same for the feeders alone. */
static __device__ __forceinline__ void feed_barrier() {
#ifdef __CUDA_ARCH__
    asm volatile("bar.sync 2, %0;" ::"n"(FEED) : "memory");
#endif
}

/* Feeders: each thread makes the facts of one sample for several stages to come, and in every stage
   an eighth of the lines of FED samples. */
template <typename E>
static __device__ __forceinline__ void feed(const lombscargle_grid &grid, stage<E> *stages) {
    __shared__ fact facts[FEED];
    const job job = job_find(grid);
    int thread = (int)(threadIdx.y - LOMBSCARGLE_MULTIPLIERS) * 32 + (int)threadIdx.x;
    int j = thread / EIGHT, lane = thread % EIGHT;
    int count = (int)((job.samples.last - job.samples.first + STAGE - 1) / STAGE);
    int64_t element = job.curve.t + job.samples.first - grid.element;
    const typename E::type *columns =
        (const typename E::type *)grid.columns + columns_at(grid, job.harmonic) + element * PITCH;
    const double2 *rows = (const double2 *)grid.rows + rows_at(grid, job.harmonic) +
                          (element + j) * job.rows + lane;
    sample next = sample_load(grid, job, job.samples.first + thread);
    for (int i = 0; i < count; i++) {
        stage<E> &stage = stages[i % 2];
        double2 offsets[FED][ROWS_MAX / EIGHT];
        columns_copy<E>(stage, columns, thread);
#pragma unroll
        for (int x = 0; x < FED; x++) {
            offsets_load(offsets[x], rows + x * (FEED / EIGHT) * job.rows, job.values);
        }
        if (i % (FEED / STAGE) == 0) {
            feed_barrier();
            facts[thread] = fact_make(job, next);
            next = sample_load(grid, job, job.samples.first + i * STAGE + FEED + thread);
            feed_barrier();
        }
#pragma unroll
        for (int x = 0; x < FED; x++) {
            int place = j + x * (FEED / EIGHT);
            lines_make<E>(&stage.lines[place][lane],
                          facts[i % (FEED / STAGE) * STAGE + place], offsets[x], job.values);
        }
        columns += STAGE * PITCH;
        rows += STAGE * job.rows;
        copies_wait<0>();
        stage_barrier();
    }
    stage_barrier();
}

template <typename E> static __device__ void multiply(const lombscargle_grid &grid) {
    extern __shared__ double2 shared[];
    stage<E> *stages = (stage<E> *)shared;
    if (*grid.stopped) {
        return;
    }
    if (threadIdx.y < LOMBSCARGLE_MULTIPLIERS) {
        const span samples = slice_of(grid, curve_of(grid, curve_index(grid)));
        int stages_left = (int)((samples.last - samples.first + STAGE - 1) / STAGE);
        int lines = threadIdx.y / 4 * (16 * BANDS), columns = threadIdx.y % 4 * (8 * BANDS);
        block_sums<typename E::sum> total = {}, sums = {};
        const stage<E> *at = stages;
        stage_barrier();
        for (; stages_left > 0; stages_left--) {
            stage_multiply<E>(*at, lines, columns, sums);
            if (E::staged) {
                sums_flush(total, sums);
            }
            at = at == stages ? stages + 1 : stages;
            stage_barrier();
        }
        sums_leave(grid, job_find(grid), lines, columns, E::staged ? total : sums);
    } else {
        feed<E>(grid, stages);
    }
}

#endif
