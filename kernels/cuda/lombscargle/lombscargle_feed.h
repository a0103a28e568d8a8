/*
 * lombscargle_feed.h: the matrices that lombscargle_tensor.h multiplies: tables, facts, feeders.
 *
 * Cosines and sines of the columns' and the rows' offsets are the same for all tiles and lie in
 * tables, by entry. What is computed once a sample and tile, its facts, all warps of a block make
 * together for many stages; feeders then copy columns, and make each line by one multiplication.
 * The products leave no room in the double-precision pipe (dmma.h): what runs beside them must
 * hardly use it.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_FEED_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_FEED_H

#include "kernels/cuda/lombscargle/lombscargle_device.h"
#include "kernels/cuda/lombscargle/lombscargle_element.h"

#define SIDE         (LOMBSCARGLE_LINES / 2) /* lines of a warp: of eight pairs of rows twice */
#define FEED         (32 * LOMBSCARGLE_FEEDERS)
#define FED(E)       (E::stage * EIGHT / FEED) /* entries that a thread feeds */
#define PAIRS_MAX    (LOMBSCARGLE_LINES / 4)   /* of rows in a tile */
#define GROUPS_MAX   (PAIRS_MAX / EIGHT)
#define BLOCK        (32 * (LOMBSCARGLE_MULTIPLIERS + LOMBSCARGLE_FEEDERS))
#define SCALE_STAGES 2  /* whose weights have one scale, and whose sums are added up together */
#define FACT_STAGES  32 /* whose facts are held at a time */

/* Where an entry of a harmonic's tables begins. */
template <typename E>
static __device__ __forceinline__ typename E::type *columns_at(const lombscargle_grid &grid,
                                                               int harmonic, int64_t entry) {
    return (typename E::type *)grid.columns + ((harmonic - 1) * grid.entries + entry) * E::pitch;
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
        *grid.stopped = grid.stop != NULL ? *grid.stop : 0;
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
    int64_t first; /* sample that its first entry begins with, perhaps before its own */
    int64_t entry; /* of the tables */
    int stages;
    double weight, level;
};

template <typename E> static __device__ __forceinline__ job job_find(const lombscargle_grid &grid) {
    job job;
    int block = (int)blockIdx.x, narrow = (int)grid.tiles * grid.nterms;
    job.values = block < narrow;
    block -= job.values ? 0 : narrow;
    int tiles = (int)(job.values ? grid.tiles : grid.wide_tiles);
    job.harmonic = block / tiles + 1 + (job.values ? 0 : grid.nterms);
    job.pairs = job.values ? PAIRS_MAX / 2 : PAIRS_MAX;
    job.k = (int64_t)(block % tiles) * (job.pairs * 2 * LOMBSCARGLE_ROW);
    job.curve = curve_of(grid, curve_index(grid));
    double middle = (double)(grid.first + job.k) + (job.pairs * LOMBSCARGLE_ROW - 0.5);
    job.centre = harmonic_of(frequency_at(grid.f0, grid.df, middle), job.harmonic);
    job.samples = slice_of(grid, job.curve);
    int64_t element = job.curve.t + job.samples.first - grid.element;
    job.entry = element / E::pack;
    job.first = job.samples.first - element % E::pack;
    int64_t entries = (job.samples.last - job.first + E::pack - 1) / E::pack;
    job.stages =
        job.samples.last > job.samples.first ? (int)((entries + E::stage - 1) / E::stage) : 0;
    job.weight = weight_of(grid, job.curve.n);
    job.level = level_of(grid, job.curve);
    return job;
}

/* A sample's weighted value and weight times cosine and sine of the tile's centre. */
template <typename R> struct __align__(16) fact {
    R yc, ys, wc, ws;
};

template <typename E> struct block_facts {
    fact<typename E::real> at[FACT_STAGES * E::stage][E::pack];
    uint32_t most[FACT_STAGES / SCALE_STAGES][2]; /* weighted value and weight, as floats' bits */
};

/* Two matrices by entry, as many stages of them as are in use at a time. */
template <typename E> struct block_stages {
    typename E::type lines[2][E::stage][E::pitch], columns[3][E::stage][E::pitch];
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
    const int thread = (int)(threadIdx.y * 32 + threadIdx.x), samples = stages * E::stage * E::pack;
    const int64_t from = job.first + (int64_t)first * E::stage * E::pack;
    if (E::scaled && thread < 2 * FACT_STAGES / SCALE_STAGES) {
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
            int place = min(i / (E::stage * E::pack), FACT_STAGES - 1) / SCALE_STAGES;
            most_raise(&facts.most[place][0], fabsf((float)wy));
            most_raise(&facts.most[place][1], fabsf((float)w));
        }
    }
    stage_barrier();
}

/* Starts the copies of a stage's columns, which lie in the table as they do here. */
template <typename E>
static __device__ __forceinline__ void columns_copy(typename E::type *to,
                                                    const typename E::type *from, int thread) {
    const int chunks = E::stage * E::pitch * (int)sizeof *to / 16;
#pragma unroll
    for (int i = 0; i < (chunks + FEED - 1) / FEED; i++) {
        int chunk = thread + i * FEED;
        if (chunk < chunks) {
            copy_start((char *)to + 16 * chunk, (const char *)from + 16 * chunk);
        }
    }
}

/* The four lines of a pair of rows: cosine or sine of the centre (c, s) × of its offset. */
template <typename E>
static __device__ __forceinline__ void
pair_make(typename E::type *line, const typename E::real (&c)[E::pack],
          const typename E::real (&s)[E::pack], const typename E::offset &offset) {
    E::lines(line, c, offset.c, s, offset.s);
    E::lines(line + 2 * EIGHT, s, offset.c, c, offset.s);
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

/* Cosines and sines of row offsets that a thread needs of its entries. */
template <typename E> struct thread_offsets { typename E::offset at[FED(E)][GROUPS_MAX]; };

template <typename E>
static __device__ __forceinline__ void offsets_load(thread_offsets<E> &offsets,
                                                    const typename E::offset *rows, int pairs) {
#pragma unroll
    for (int i = 0; i < FED(E) * GROUPS_MAX; i++) {
        const int x = i / GROUPS_MAX, group = i % GROUPS_MAX;
        if (group * EIGHT < pairs) {
            offsets.at[x][group] = rows[x * (FEED / EIGHT) * pairs + group * EIGHT];
        }
    }
}

/* What a feeder has on its way: where its columns and offsets of the next stage lie, the offsets.
 */
template <typename E> struct feeder {
    const typename E::type *columns;
    const typename E::offset *rows;
    typename E::offset offsets[FED(E)][GROUPS_MAX];
    int thread, lane, j, pairs;
    bool values;
};

/* Asks for what a stage takes from memory, and moves on to the next. */
template <typename E>
static __device__ __forceinline__ void columns_ask(feeder<E> &feeder, block_stages<E> &to,
                                                   int stage) {
    columns_copy<E>(to.columns[stage % 3][0], feeder.columns, feeder.thread);
    feeder.columns += E::stage * E::pitch;
}

template <typename E> static __device__ __forceinline__ void offsets_ask(feeder<E> &feeder) {
#pragma unroll
    for (int i = 0; i < FED(E) * GROUPS_MAX; i++) {
        const int x = i / GROUPS_MAX, group = i % GROUPS_MAX;
        if (group * EIGHT < feeder.pairs) {
            feeder.offsets[x][group] =
                feeder.rows[x * (FEED / EIGHT) * feeder.pairs + group * EIGHT];
        }
    }
    feeder.rows += E::stage * feeder.pairs;
}

/* Before the first of `stages` stages that begin with stage `first`. */
template <typename E>
static __device__ __forceinline__ feeder<E> feed_begin(const lombscargle_grid &grid,
                                                       block_stages<E> &to, int first) {
    const job job = job_find<E>(grid);
    const int thread = (int)(threadIdx.y - LOMBSCARGLE_MULTIPLIERS) * 32 + (int)threadIdx.x;
    /* Entries change places in fours, so that half a warp's lines lie in different banks. */
    const int turned = thread / EIGHT % 4;
    const int j = thread / EIGHT - turned + (turned % 2 * 2 + turned / 2);
    const int64_t entry = job.entry + (int64_t)first * E::stage;
    feeder<E> feeder;
    feeder.thread = thread;
    feeder.lane = thread % EIGHT;
    feeder.j = j;
    feeder.pairs = job.pairs;
    feeder.values = job.values;
    feeder.columns = columns_at<E>(grid, job.harmonic, entry);
    feeder.rows = rows_at<E>(grid, job.harmonic, entry + j) + feeder.lane;
    columns_ask(feeder, to, 0);
    copies_close();
    offsets_ask(feeder);
    return feeder;
}

/* Feeders: both matrices of `stages` stages, stage by stage. What comes from memory is asked for a
   stage ahead. */
template <typename E>
static __device__ __forceinline__ void feed(feeder<E> &feeder, block_stages<E> &to,
                                            const block_facts<E> &facts, int stages) {
    for (int i = 0; i < stages; i++) {
        if (i + 1 < stages) {
            columns_ask(feeder, to, i + 1);
        }
        copies_close();
#pragma unroll
        for (int x = 0; x < FED(E); x++) {
            int place = feeder.j + x * (FEED / EIGHT);
            lines_make<E>(&to.lines[i % 2][place][feeder.lane], facts.at[i * E::stage + place],
                          facts.most[i / SCALE_STAGES], feeder.offsets[x], feeder.values);
        }
        if (i + 1 < stages) {
            offsets_ask(feeder);
        }
        copies_wait<1>();
        stage_barrier();
    }
    stage_barrier();
}

#endif
