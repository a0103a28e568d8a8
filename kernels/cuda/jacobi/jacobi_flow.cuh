/*
 * jacobi_flow.cuh: sweeps over rows that flow through a warp.
 *
 * A warp is a strip of 32 × ACROSS columns, four columns a thread, and does LEVELS sweeps of every
 * row that passes: level l makes its row r as soon as level l − 1 has made row r + 1, so a level
 * only holds the last two rows of the one before. Two rows enter a step and two leave it, LEVELS
 * rows later. Nothing is shared and nothing waited for. Columns beyond the strip's border are taken
 * as anything: that spoils one more column a level; so it does with rows before the first and after
 * the last.
 *
 * Columns outside the array are kept at +0 by looking only at themselves: the lane beside them
 * finds its zero there and they never see another. Rows outside, a few other things and strips
 * whose border is no lane's take the longer way, RIM.
 *
 * The loops are short on purpose, and registers move on in them rather than come round: code that
 * does not fit the instruction cache runs at a quarter of the speed.
 */
#ifndef KILN_CUDA_JACOBI_FLOW_CUH
#define KILN_CUDA_JACOBI_FLOW_CUH

#include "kernels/cuda/jacobi/jacobi_tile.cuh"

/* A warp's strip: which columns, and what a thread does with its four. */
struct strip {
    int64_t column;   /* the thread's first; may be outside the array */
    int west, east;   /* lanes whose columns lie beside the thread's */
    unsigned columns; /* bits: inside the array */
    unsigned own;     /* bits: to be written */
    bool ragged;      /* some thread's columns are partly outside */
};

/* The last strip ends where the array does, so that borders are lanes'. */
INLINE strip strip_find(const jacobi_grid &grid, uint32_t index) {
    int lane = threadIdx.x, own = COLUMNS - 2 * grid.halo_x;
    int64_t left = (int64_t)index * own;
    if (grid.tiles_x > 1) {
        left = min(left, (int64_t)grid.width - own);
    }
    strip strip;
    strip.column = left - grid.halo_x + lane * ACROSS;
    strip.columns = span(strip.column, ACROSS, 0, grid.width);
    strip.own = strip.columns & span(strip.column, ACROSS, left, left + own);
    strip.west = strip.columns ? max(lane - 1, 0) : lane;
    strip.east = strip.columns ? min(lane + 1, 31) : lane;
    strip.ragged = grid.tiles_x == 1 && grid.width % ACROSS;
    return strip;
}

/* Four cells of a row, from the thread's first column. */
template <typename T>
INLINE void row_load(bool vector, unsigned wanted, const T *from, T (&cells)[ACROSS]) {
#pragma unroll
    for (int c = 0; c < ACROSS; c++) {
        cells[c] = 0;
    }
    if (vector) {
        if (wanted) {
            cells_read(from, cells);
        }
    } else {
#pragma unroll
        for (int c = 0; c < ACROSS; c++) {
            if (wanted >> c & 1) {
                cells[c] = __ldcg(from + c);
            }
        }
    }
}

template <typename T>
INLINE void row_store(bool vector, unsigned wanted, T *to, const T (&cells)[ACROSS]) {
    if (vector) {
        if (wanted) {
            cells_write(to, cells);
        }
    } else {
#pragma unroll
        for (int c = 0; c < ACROSS; c++) {
            if (wanted >> c & 1) {
                __stcg(to + c, cells[c]);
            }
        }
    }
}

/* What holds for rows near the array's border and in passes that are not plain. `row` counts in the
   flow. */
struct rim {
    int low, high; /* rows inside the array */
    int skip;      /* levels that only pass on */
    bool fused;    /* b holds −0.25·B */
    bool measure;
    int own_low, own_high; /* rows to measure */
    unsigned columns, own; /* of the strip */
};

/* Rows of level l before those that enter; rows of B, the oldest first. */
template <typename T, int LEVELS> struct flow {
    T x[LEVELS][2][ACROSS];
    T b[LEVELS + 2][ACROSS];
};

template <typename T> INLINE quad<T> beside_lanes(const T (&x)[ACROSS], const strip &strip) {
    T west = __shfl_sync(FULL, x[ACROSS - 1], strip.west);
    T east = __shfl_sync(FULL, x[0], strip.east);
    return {add(west, x[1]), add(x[0], x[2]), add(x[1], x[3]), add(x[2], east)};
}

/* A level's row. */
template <typename T, bool RIM>
INLINE void row_flow(const T (&above)[ACROSS], const T (&x)[ACROSS], const T (&below)[ACROSS],
                     const T (&b)[ACROSS], const strip &strip, const rim &rim, int row, bool last,
                      T (&out)[ACROSS], double &worst) {
    quad<T> sides = beside_lanes(x, strip);
#pragma unroll
    for (int c = 0; c < ACROSS; c++) {
        T sum = add(add(above[c], below[c]), sides.cell[c]);
        if (!RIM) {
            out[c] = fused(sum, b[c]);
            continue;
        }
        T now = rim.fused ? fused(sum, b[c]) : quarter(add(sum, -b[c]));
        now = row >= rim.low && row < rim.high && rim.columns >> c & 1 ? now : (T)0;
        if (last && rim.measure && rim.own >> c & 1 && row >= rim.own_low && row < rim.own_high) {
            double change = fabs((double)now - (double)x[c]);
            worst = change > worst ? change : worst;
        }
        out[c] = now;
    }
}

/* Two rows in, `row` and the next, and two out. Their rows of B are the last two. */
template <bool RIM, typename T, int LEVELS>
INLINE void flow_step(flow<T, LEVELS> &flow, const strip &strip, const rim &rim, int row, T scale,
                      T (&rows)[2][ACROSS], double &worst) {
#pragma unroll
    for (int c = 0; c < ACROSS; c++) {
        flow.b[LEVELS][c] = mul(flow.b[LEVELS][c], scale);
        flow.b[LEVELS + 1][c] = mul(flow.b[LEVELS + 1][c], scale);
    }
#pragma unroll
    for (int l = 0; l < LEVELS; l++) {
        T out[2][ACROSS];
#pragma unroll
        for (int c = 0; c < ACROSS; c++) {
            out[0][c] = flow.x[l][1][c];
            out[1][c] = rows[0][c];
        }
        if (!RIM || l >= rim.skip) {
            row_flow<T, RIM>(flow.x[l][0], flow.x[l][1], rows[0], flow.b[LEVELS - l - 1], strip,
                             rim, row - l - 1, l == LEVELS - 1, out[0], worst);
            row_flow<T, RIM>(flow.x[l][1], rows[0], rows[1], flow.b[LEVELS - l], strip, rim, row - l,
                              l == LEVELS - 1, out[1], worst);
        }
#pragma unroll
        for (int c = 0; c < ACROSS; c++) {
            flow.x[l][0][c] = rows[0][c];
            flow.x[l][1][c] = rows[1][c];
            rows[0][c] = out[0][c];
            rows[1][c] = out[1][c];
        }
    }
#pragma unroll
    for (int i = 0; i < LEVELS; i++) {
#pragma unroll
        for (int c = 0; c < ACROSS; c++) {
            flow.b[i][c] = flow.b[i + 2][c];
        }
    }
}

template <typename T, int LEVELS> INLINE void flow_clear(flow<T, LEVELS> &flow) {
#pragma unroll
    for (int c = 0; c < ACROSS; c++) {
#pragma unroll
        for (int l = 0; l < LEVELS; l++) {
            flow.x[l][0][c] = flow.x[l][1][c] = 0;
        }
#pragma unroll
        for (int s = 0; s < LEVELS + 2; s++) {
            flow.b[s][c] = 0;
        }
    }
}

#endif
