/*
 * lombscargle_tensor.h: sums of `lombscargle` on a grid as products of matrices on tensor cores.
 *
 * A tile's frequencies are its centre's ± a row's offset ± a column's, and their cosines and sines
 * sums of products of three factors: cosine or sine of each. Line by line those of the centre,
 * weighted, are multiplied by those of 16 or 32 rows' offsets, which makes four lines of a pair of
 * rows (once with the weighted values, once with the weights), and the matrix of these by that of
 * 64 columns' offsets: the sums over samples of all products, from which each frequency's are
 * combined in the end. Harmonic h is the same with h times the phases. Offsets are the same for all
 * tiles; `tables` has computed their cosines and sines.
 *
 * A block has two kinds of warps. Feeders make the lines of the next stage (LOMBSCARGLE_STAGE
 * entries) and copy columns, while multipliers work on the stage before. What is computed once a
 * sample, its facts, all warps make together for many stages. That, and lines which take one
 * multiplication each, is because the products leave no room in the double-precision pipe (dmma.h).
 *
 * Both matrices lie by entry, LOMBSCARGLE_PITCH apart, so that fragments are read without bank
 * conflicts. Lines come in groups of 16: eight pairs' cosine × cosine and sine × sine, or sine ×
 * cosine and cosine × sine; columns are cosine, sine, cosine, …: so what belongs together ends in
 * one thread.
 */
#ifndef KILN_CUDA_LOMBSCARGLE_TENSOR_H
#define KILN_CUDA_LOMBSCARGLE_TENSOR_H

#include "kernels/cuda/lombscargle_device.h"
#include "kernels/cuda/lombscargle_element.h"

#define STAGE       LOMBSCARGLE_STAGE
#define PITCH       LOMBSCARGLE_PITCH
#define BANDS       4 /* of 16 lines, and of 8 columns, that a warp multiplies */
#define SIDE        (16 * BANDS) /* lines of a warp: of eight pairs of rows twice */
#define FEED        (32 * LOMBSCARGLE_FEEDERS)
#define EIGHT       8                      /* threads that feed an entry; pairs of a group */
#define FED         (STAGE * EIGHT / FEED) /* entries that a thread feeds */
#define PAIRS_MAX   (LOMBSCARGLE_LINES / 4) /* of rows in a tile */
#define GROUPS_MAX  (PAIRS_MAX / EIGHT)
#define BLOCK       (32 * (LOMBSCARGLE_MULTIPLIERS + LOMBSCARGLE_FEEDERS))
#define FACT_STAGES 32 /* whose facts are held at a time */

/* Where an entry of a harmonic's tables begins. */
template <typename E>
static __device__ __forceinline__ typename E::type *columns_at(const lombscargle_grid &grid,
                                                               int harmonic, int64_t entry) {
    return (typename E::type *)grid.columns + ((harmonic - 1) * grid.entries + entry) * PITCH;
}

template <typename E>
static __device__ __forceinline__ typename E::offset *rows_at(const lombscargle_grid &grid,
                                                              int harmonic, int64_t entry) {
    int narrow = min(harmonic - 1, grid.nterms), wide = harmonic - 1 - narrow;
    int64_t before = (narrow * (PAIRS_MAX / 2) + wide * PAIRS_MAX) * grid.entries;
    int pairs = harmonic > grid.nterms ? PAIRS_MAX : PAIRS_MAX / 2;
    return (typename E::offset *)grid.rows + before + entry * pairs;
}

/* One cosine and sine: first of the columns' offsets, then of the rows'. The grid's y is the
   harmonic. Entries go on for a stage behind the last element; their lines will be nothing. */
template <typename E> static __device__ void tables(const lombscargle_grid &grid) {
    int harmonic = (int)blockIdx.y + 1;
    int pairs = LOMBSCARGLE_TILE_ROWS(harmonic, grid.nterms) / 2, all = LOMBSCARGLE_OFFSETS + pairs;
    int64_t thread = ((int64_t)blockIdx.x * LOMBSCARGLE_WARPS + threadIdx.y) * 32 + threadIdx.x;
    int64_t entry = thread / all;
    int place = (int)(thread % all);
    if (thread == 0 && harmonic == 1) {
        *grid.stopped = grid.stop ? *grid.stop : 0;
    }
    if (entry >= grid.entries) {
        return;
    }
    bool column = place < LOMBSCARGLE_OFFSETS;
    double steps = column ? place + 0.5 : (place - LOMBSCARGLE_OFFSETS + 0.5) * LOMBSCARGLE_ROW;
    exact step = frequency_at(0.0, grid.df, steps * harmonic);
    typename E::offset offset;
#pragma unroll
    for (int x = 0; x < E::pack; x++) {
        int64_t element = entry * E::pack + x;
        double t = element < grid.elements ? grid.t[grid.element + element] : 0.0;
        turn(phase(step, isfinite(t) ? t : 0.0), &offset.s[x], &offset.c[x]);
    }
    if (column) {
        typename E::type *to = columns_at<E>(grid, harmonic, entry) + 2 * place;
        to[0] = E::column(offset.c);
        to[1] = E::column(offset.s);
    } else {
        rows_at<E>(grid, harmonic, entry)[place - LOMBSCARGLE_OFFSETS] = offset;
    }
}

/* What a block computes. */
struct job {
    lombscargle_curve curve;
    int harmonic, pairs; /* of rows */
    bool values;         /* sums over values too */
    int64_t k;           /* its first frequency, counted from the launch's first */
    exact centre;        /* times the harmonic */
    span samples;
    int64_t first; /* sample that its first entry begins with, perhaps one before its own */
    int64_t entry; /* of the tables */
    int stages;
    double weight, level;
};

template <typename E>
static __device__ __forceinline__ job job_find(const lombscargle_grid &grid) {
    job job;
    int64_t block = blockIdx.x, narrow = grid.tiles * grid.nterms;
    job.values = block < narrow;
    block -= job.values ? 0 : narrow;
    int64_t tiles = job.values ? grid.tiles : grid.wide_tiles;
    job.harmonic = (int)(block / tiles) + 1 + (job.values ? 0 : grid.nterms);
    job.pairs = job.values ? PAIRS_MAX / 2 : PAIRS_MAX;
    job.k = block % tiles * job.pairs * 2 * LOMBSCARGLE_ROW;
    job.curve = curve_of(grid, curve_index(grid));
    double middle = (double)(grid.first + job.k) + (job.pairs * LOMBSCARGLE_ROW - 0.5);
    job.centre = harmonic_of(frequency_at(grid.f0, grid.df, middle), job.harmonic);
    job.samples = slice_of(grid, job.curve);
    int64_t element = job.curve.t + job.samples.first - grid.element;
    job.entry = element / E::pack;
    job.first = job.samples.first - element % E::pack;
    int64_t entries = (job.samples.last - job.first + E::pack - 1) / E::pack;
    job.stages = job.samples.last > job.samples.first ? (int)((entries + STAGE - 1) / STAGE) : 0;
    job.weight = weight_of(grid, job.curve.n);
    job.level = level_of(grid, job.curve);
    return job;
}

/* A sample's weighted value and weight times cosine and sine of the tile's centre. */
template <typename R> struct __align__(16) fact { R yc, ys, wc, ws; };

template <typename E> struct block_facts {
    fact<typename E::real> at[FACT_STAGES * STAGE][E::pack];
    uint32_t most[FACT_STAGES][2]; /* weighted value and weight of a stage, as floats' bits */
};

/* Two matrices by entry, as many stages of them as are in use at a time. */
template <typename E> struct block_stages {
    typename E::type lines[2][STAGE][PITCH], columns[3][STAGE][PITCH];
};

/* All warps meet here, each kind at a place of its own. */
static __device__ __forceinline__ void stage_barrier() {
#ifdef __CUDA_ARCH__
    asm volatile("bar.sync 1, %0;" ::"n"(BLOCK) : "memory");
#endif
}

/* A sample on its way from memory; one outside of the slice weighs nothing. */
struct sample {
    double t, w, y;
};

static __device__ __forceinline__ sample sample_load(const lombscargle_grid &grid, const job &job,
                                                     int64_t at) {
    if (at < job.samples.first || at >= job.samples.last) {
        return {0.0, 0.0, 0.0};
    }
    return {grid.t[job.curve.t + at], grid.w[job.curve.w + at], grid.y[job.curve.y + at]};
}

/* Raises the largest of a stage to those of 16 neighbouring threads, whose samples it has. */
static __device__ __forceinline__ void most_raise(uint32_t *most, float value) {
    for (int step = 8; step > 0; step /= 2) {
        value = fmaxf(value, __shfl_xor_sync(0xffffffffu, value, step));
    }
    if (threadIdx.x % 16 == 0) {
        atomicMax(most, __float_as_uint(value));
    }
}

/* Makes the facts of `stages` stages from stage `first` on. All threads; has barriers around. */
template <typename E>
static __device__ __forceinline__ void facts_make(const lombscargle_grid &grid,
                                                  block_facts<E> &facts, int first, int stages) {
    const job job = job_find<E>(grid);
    typedef typename E::real real;
    const int thread = (int)(threadIdx.y * 32 + threadIdx.x), samples = stages * STAGE * E::pack;
    const int64_t from = job.first + (int64_t)first * STAGE * E::pack;
    if (E::scaled && thread < 2 * FACT_STAGES) {
        facts.most[thread / 2][thread % 2] = 0;
    }
    stage_barrier();
    sample next = sample_load(grid, job, from + thread);
    for (int i = thread; i - thread < samples; i += BLOCK) {
        const sample sample = next;
        next = sample_load(grid, job, from + i + BLOCK);
        real s, c, w = (real)(sample.w * job.weight);
        real wy = (real)(sample.w * job.weight * (sample.y - job.level));
        turn(phase(job.centre, sample.t), &s, &c);
        if (i < samples) {
            facts.at[i / E::pack][i % E::pack] = {wy * c, wy * s, w * c, w * s};
        }
        if (E::scaled) {
            int stage = min(i / (STAGE * E::pack), FACT_STAGES - 1);
            most_raise(&facts.most[stage][0], fabsf((float)wy));
            most_raise(&facts.most[stage][1], fabsf((float)w));
        }
    }
    stage_barrier();
}

/* Starts the copies of a stage's columns, which lie in the table as they do here. */
template <typename E>
static __device__ __forceinline__ void columns_copy(typename E::type *to,
                                                    const typename E::type *from, int thread) {
    const int chunks = STAGE * PITCH / 2; /* of 16 bytes */
#pragma unroll
    for (int i = 0; i < (chunks + FEED - 1) / FEED; i++) {
        int chunk = thread + i * FEED;
        if (chunk < chunks) {
            copy_start(to + 2 * chunk, from + 2 * chunk);
        }
    }
    copies_close();
}

/* The four lines of a pair of rows: cosine or sine of the centre (c, s) × of its offset. */
template <typename E>
static __device__ __forceinline__ void pair_make(typename E::type *line,
                                                 const typename E::real (&c)[E::pack],
                                                 const typename E::real (&s)[E::pack],
                                                 const typename E::offset &offset) {
    line[0] = E::line(c, offset.c);
    line[EIGHT] = E::line(s, offset.s);
    line[2 * EIGHT] = E::line(s, offset.c);
    line[3 * EIGHT] = E::line(c, offset.s);
}

/* Makes an entry's lines: one of eight threads those of pairs lane, lane + 8, … */
template <typename E>
static __device__ __forceinline__ void
lines_make(typename E::type *line, const fact<typename E::real> (&facts)[E::pack],
           const uint32_t (&most)[2], const typename E::offset (&offsets)[GROUPS_MAX],
           bool values) {
    typename E::real yc[E::pack], ys[E::pack], wc[E::pack], ws[E::pack];
#pragma unroll
    for (int x = 0; x < E::pack; x++) {
        const fact<typename E::real> fact = facts[x];
        yc[x] = E::scale(fact.yc, most[0]);
        ys[x] = E::scale(fact.ys, most[0]);
        wc[x] = E::scale(fact.wc, most[1]);
        ws[x] = E::scale(fact.ws, most[1]);
    }
#pragma unroll
    for (int group = 0; group < GROUPS_MAX / 2; group++) {
        if (values) {
            pair_make<E>(line + group * 4 * EIGHT, yc, ys, offsets[group]);
            pair_make<E>(line + SIDE + group * 4 * EIGHT, wc, ws, offsets[group]);
        } else {
            pair_make<E>(line + group * 4 * EIGHT, wc, ws, offsets[group]);
            pair_make<E>(line + SIDE + group * 4 * EIGHT, wc, ws, offsets[group + GROUPS_MAX / 2]);
        }
    }
}

/* Feeders: from the tables and the facts of `stages` stages from stage `first` on, stage by stage,
   both matrices. Columns are a stage further ahead. */
template <typename E>
static __device__ __forceinline__ void feed(const lombscargle_grid &grid, block_stages<E> &to, const block_facts<E> &facts,
                                            int first, int stages) {
    const job job = job_find<E>(grid);
    const int thread = (int)(threadIdx.y - LOMBSCARGLE_MULTIPLIERS) * 32 + (int)threadIdx.x;
    /* Entries change places in fours, so that half a warp's lines lie in different banks. */
    const int lane = thread % EIGHT, turned = thread / EIGHT % 4;
    const int j = thread / EIGHT - turned + (turned % 2 * 2 + turned / 2);
    const int64_t entry = job.entry + (int64_t)first * STAGE;
    const typename E::type *columns = columns_at<E>(grid, job.harmonic, entry);
    const typename E::offset *rows = rows_at<E>(grid, job.harmonic, entry + j) + lane;
    columns_copy<E>(to.columns[0][0], columns, thread);
    for (int i = 0; i < stages; i++) {
        typename E::offset offsets[FED][GROUPS_MAX];
#pragma unroll
        for (int x = 0; x < FED * GROUPS_MAX; x++) {
            int group = x % GROUPS_MAX, place = x / GROUPS_MAX * (FEED / EIGHT);
            if (group * EIGHT < job.pairs) {
                offsets[x / GROUPS_MAX][group] = rows[place * job.pairs + group * EIGHT];
            }
        }
        columns += STAGE * PITCH;
        rows += STAGE * job.pairs;
        /* Behind the last stage's the tables go on. */
        columns_copy<E>(to.columns[(i + 1) % 3][0], columns, thread);
#pragma unroll
        for (int x = 0; x < FED; x++) {
            int place = j + x * (FEED / EIGHT);
            lines_make<E>(&to.lines[i % 2][place][lane], facts.at[i * STAGE + place],
                          facts.most[i], offsets[x], job.values);
        }
        copies_wait<1>();
        stage_barrier();
    }
    copies_wait<0>();
    stage_barrier();
}

/* Sums of a warp: BANDS × 16 lines and BANDS × 8 columns. */
template <typename T> struct block_sums { T at[BANDS][BANDS][4]; };

template <typename E>
static __device__ __forceinline__ void
stage_multiply(const typename E::type (&lines)[STAGE][PITCH],
               const typename E::type (&columns)[STAGE][PITCH], int line, int column,
               block_sums<typename E::sum> &sums) {
    const int g = threadIdx.x / 4, t = threadIdx.x % 4;
    const int quarters = E::step / 4;
#pragma unroll 1
    for (int k = t; k < STAGE; k += E::step) {
        typename E::type b[BANDS][quarters];
#pragma unroll
        for (int i = 0; i < BANDS * quarters; i++) {
            const int n = i / quarters, quarter = i % quarters;
            b[n][quarter] = columns[k + 4 * quarter][column + 8 * n + g];
        }
#pragma unroll
        for (int m = 0; m < BANDS; m++) {
            typename E::type a[2 * quarters];
#pragma unroll
            for (int i = 0; i < 2 * quarters; i++) {
                a[i] = lines[k + i / 2 * 4][line + 16 * m + i % 2 * 8 + g];
            }
            E::multiply(sums.at[m], a, b);
        }
    }
}

/* Adds a stage's sums to those of the stages before. */
static __device__ __forceinline__ void sums_flush(block_sums<float> &total, block_sums<float> &sums,
                                                  float factor) {
#pragma unroll
    for (int i = 0; i < BANDS * BANDS * 4; i++) {
        float &sum = sums.at[i / 4 / BANDS][i / 4 % BANDS][i % 4];
        float &all = total.at[i / 4 / BANDS][i / 4 % BANDS][i % 4];
        all = __fmaf_rn(sum, factor, all);
        sum = 0.0f;
    }
}

/* Combines the products of each pair of rows and offset to the sums of its four frequencies. */
template <typename T>
static __device__ __forceinline__ void sums_leave(const lombscargle_grid &grid, const job &job,
                                                  int line, int column, const block_sums<T> &sums) {
    bool values = job.values && line < SIDE;
    int sum = values ? value_sum(grid, job.harmonic) : weight_sum(grid, job.harmonic);
    double *to = partial_at(grid, curve_index(grid), blockIdx.y % grid.slices, sum);
    int pair = (job.values ? 0 : line / 4) + (int)threadIdx.x / 4;
    int64_t offset = column / 2 + (int)threadIdx.x % 4;
    int64_t middle = job.k + (int64_t)job.pairs * LOMBSCARGLE_ROW;
#pragma unroll
    for (int i = 0; i < BANDS / 2 * BANDS * 2; i++) {
        const int m = i / 2 / BANDS, n = i / 2 % BANDS, sign = i % 2 ? -1 : 1;
        const T(&even)[4] = sums.at[2 * m][n], (&odd)[4] = sums.at[2 * m + 1][n];
        double cc = (double)even[0] - sign * (double)even[2]; /* row × offset */
        double cs = (double)even[1] - sign * (double)even[3];
        double sc = (double)odd[0] + sign * (double)odd[2];
        double ss = (double)odd[1] + sign * (double)odd[3];
        int64_t row = sign > 0 ? pair + EIGHT * m : -1 - pair - EIGHT * m;
        int64_t k = middle + row * LOMBSCARGLE_ROW + LOMBSCARGLE_OFFSETS;
        leave(grid, to, k + offset + 4 * n, cc - ss, sc + cs);
        leave(grid, to, k - 1 - offset - 4 * n, cc + ss, sc - cs);
    }
}

/* Multipliers: sums of so many stages. */
template <typename E>
static __device__ __forceinline__ void
stages_multiply(const block_stages<E> &from, const block_facts<E> &facts, int stages, int line,
                int column, int kind, block_sums<typename E::sum> &total) {
    block_sums<typename E::sum> sums = {};
    int columns = 0;
    stage_barrier();
    for (int i = 0; i < stages; i++) {
        if constexpr (E::scaled) {
            stage_multiply<E>(from.lines[i % 2], from.columns[columns], line, column, sums);
            sums_flush(total, sums, E::down(facts.most[i][kind]));
        } else {
            stage_multiply<E>(from.lines[i % 2], from.columns[columns], line, column, total);
        }
        columns = columns == 2 ? 0 : columns + 1;
        stage_barrier();
    }
}

template <typename E> static __device__ void multiply(const lombscargle_grid &grid) {
    extern __shared__ double2 shared[];
    __shared__ block_facts<E> facts;
    block_stages<E> &memory = *(block_stages<E> *)shared;
    if (*grid.stopped) {
        return;
    }
    int left = job_find<E>(grid).stages;
    if (threadIdx.y < LOMBSCARGLE_MULTIPLIERS) {
        const int line = threadIdx.y / 4 * SIDE, column = threadIdx.y % 4 * (8 * BANDS);
        const int kind = line < SIDE && blockIdx.x < grid.tiles * grid.nterms ? 0 : 1;
        block_sums<typename E::sum> total = {};
        for (int first = 0; left > 0; first += FACT_STAGES, left -= FACT_STAGES) {
            facts_make<E>(grid, facts, first, min(left, FACT_STAGES));
            stages_multiply<E>(memory, facts, min(left, FACT_STAGES), line, column, kind, total);
        }
        sums_leave(grid, job_find<E>(grid), line, column, total);
    } else {
        for (int first = 0; left > 0; first += FACT_STAGES, left -= FACT_STAGES) {
            facts_make<E>(grid, facts, first, min(left, FACT_STAGES));
            feed<E>(grid, memory, facts, first, min(left, FACT_STAGES));
        }
    }
}

#endif
