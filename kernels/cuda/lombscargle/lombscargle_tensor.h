/*
 * lombscargle_tensor.h: sums of `lombscargle` on a grid as products of matrices on tensor cores.
 *
 * A tile's frequencies are its centre's ± a row's offset ± a column's, and their cosines and sines
 * sums of products of three factors: cosine or sine of each. Those of the centre, weighted, are
 * multiplied by those of 16 or 32 rows' offsets, which makes four lines of a pair of rows (once
 * with the weighted values, once with the weights), and the matrix of these by that of 64 columns'
 * offsets: the sums over samples of all products, from which each frequency's are combined in the
 * end. Harmonic h is the same with h times the phases.
 *
 * A block has two kinds of warps. Feeders (lombscargle_feed.h) make both matrices for the next
 * stage, while multipliers work on the stage before. Matrices lie by entry, a pitch apart, so that
 * fragments are read without bank conflicts. Lines come in groups of 16: eight pairs' cosine ×
 * cosine and sine × sine, or sine × cosine and cosine × sine; columns are cosine, sine, cosine, …:
 * so what belongs together ends in one thread.
 */
#ifndef KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_TENSOR_H
#define KILN_KERNELS_CUDA_LOMBSCARGLE_LOMBSCARGLE_TENSOR_H

#include "kernels/cuda/lombscargle/lombscargle_feed.h"

#define BANDS       4 /* of 16 lines, and of 8 columns, that a warp multiplies */
#define STORE_PITCH (LOMBSCARGLE_ROW + 4) /* of rows of sums in shared memory */

/* Sums of a warp: BANDS × 16 lines and BANDS × 8 columns. */
template <typename T> struct block_sums { T at[BANDS][BANDS][4]; };

template <typename E>
static __device__ __forceinline__ void
stage_multiply(const typename E::type (&lines)[E::stage][E::pitch],
               const typename E::type (&columns)[E::stage][E::pitch], int line, int column,
               block_sums<typename E::sum> &sums) {
    const int g = threadIdx.x / 4, t = threadIdx.x % 4;
#pragma unroll(E::unroll)
    for (int k = t; k < E::stage; k += 4) {
        typename E::type b[BANDS];
#pragma unroll
        for (int n = 0; n < BANDS; n++) {
            b[n] = columns[k][column + 8 * n + g];
        }
#pragma unroll
        for (int m = 0; m < BANDS; m++) {
            const typename E::type *at = &lines[k][line + 16 * m + g];
            const typename E::type a[2] = {at[0], at[EIGHT]};
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

/* Combines the products of each pair of rows and offset to the sums of its four frequencies:
   cosines, then sines, by row. */
template <typename T>
static __device__ __forceinline__ void sums_combine(T *to, int pairs, int line, int column,
                                                    const block_sums<T> &sums) {
    T *sines = to + 2 * pairs * STORE_PITCH;
    int pair = (line / 4) % pairs + (int)threadIdx.x / 4;
    int offset = LOMBSCARGLE_OFFSETS + column / 2 + (int)threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < BANDS / 2 * BANDS * 2; i++) {
        const int m = i / 2 / BANDS, n = i / 2 % BANDS;
        const T sign = i % 2 ? -1 : 1;
        const T(&even)[4] = sums.at[2 * m][n], (&odd)[4] = sums.at[2 * m + 1][n];
        T cc = even[0] - sign * even[2], cs = even[1] - sign * even[3]; /* row × offset */
        T sc = odd[0] + sign * odd[2], ss = odd[1] + sign * odd[3];
        int row = sign > 0 ? pairs + pair + EIGHT * m : pairs - 1 - pair - EIGHT * m;
        int above = row * STORE_PITCH + offset + 4 * n;
        int below = row * STORE_PITCH + LOMBSCARGLE_ROW - 1 - offset - 4 * n;
        to[above] = cc - ss;
        to[below] = cc + ss;
        sines[above] = sc + cs;
        sines[below] = sc - cs;
    }
}

/* Leaves what sums_combine has made, of values and weights or of weights: a warp takes a row. */
template <typename T>
static __device__ __forceinline__ void sums_leave(const lombscargle_grid &grid, const job &job,
                                                  const T *from) {
    const int values = value_sum(grid, job.harmonic), weights = weight_sum(grid, job.harmonic);
    T *to = (T *)grid.partial + partial_index(grid, curve_index(grid), blockIdx.y % grid.slices, 0);
    for (int line = threadIdx.y; line < LOMBSCARGLE_LINES; line += BLOCK / 32) {
        int kind = job.values ? line / PAIRS_MAX : 2 + line / (2 * PAIRS_MAX);
        int64_t first = job.k + line % (2 * job.pairs) * LOMBSCARGLE_ROW;
        T *sum = to + (kind < 2 ? values + kind : weights + kind - 2) * grid.count + first;
#pragma unroll
        for (int i = 0; i < LOMBSCARGLE_ROW / 32; i++) {
            int place = (int)threadIdx.x + 32 * i;
            if (first + place < grid.count) {
                T all = from[line * STORE_PITCH + place];
                sum[place] = grid.add ? sum[place] + all : all;
            }
        }
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
            if (i % SCALE_STAGES == SCALE_STAGES - 1 || i == stages - 1) {
                sums_flush(total, sums, E::back(facts.most[i / SCALE_STAGES][kind]));
            }
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
    if (grid.stop != NULL && *grid.stopped) {
        return;
    }
    int left = job_find<E>(grid).stages;
    if (threadIdx.y < LOMBSCARGLE_MULTIPLIERS) {
        const int line = threadIdx.y / 4 * SIDE, column = threadIdx.y % 4 * (8 * BANDS);
        const bool values = blockIdx.x < grid.tiles * grid.nterms,
                   weights = !values || line >= SIDE;
        block_sums<typename E::sum> total = {};
        for (int first = 0; left > 0; first += FACT_STAGES, left -= FACT_STAGES) {
            const int stages = min(left, FACT_STAGES);
            facts_make<E>(grid, facts, first, stages);
            stages_multiply<E>(memory, facts, stages, line, column, weights ? 1 : 0, total);
        }
        const int pairs = values ? PAIRS_MAX / 2 : PAIRS_MAX;
        typename E::sum *to =
            (typename E::sum *)shared + (values && weights ? 4 * pairs * STORE_PITCH : 0);
        sums_combine(to, pairs, line, column, total);
    } else {
        for (int first = 0; left > 0; first += FACT_STAGES, left -= FACT_STAGES) {
            const int stages = min(left, FACT_STAGES);
            feeder<E> feeder = feed_begin<E>(grid, memory, first);
            facts_make<E>(grid, facts, first, stages);
            feed<E>(feeder, memory, facts, stages);
        }
    }
    stage_barrier();
    sums_leave(grid, job_find<E>(grid), (const typename E::sum *)shared);
}

#endif
