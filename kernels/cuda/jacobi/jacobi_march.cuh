/*
 * jacobi_march.cuh: sweeps of grids that do not fit on the chip.
 *
 * A pass does up to LEVELS sweeps. Each warp marches down a part of a strip (jacobi_flow.cuh): rows
 * come from memory by way of shared memory, asked for ahead of their use, and go back LEVELS sweeps
 * later; nothing is waited for but the memory. A shorter pass is the same
 * with some levels that only pass on.
 *
 * Whether b may be scaled is found out before the first.
 */
#ifndef KILN_CUDA_JACOBI_MARCH_CUH
#define KILN_CUDA_JACOBI_MARCH_CUH

#include "kernels/cuda/jacobi/jacobi_flow.cuh"

/* A part of a strip on its way down. Row 0 of its flow is LEVELS rows above its first. */
template <typename T, int LEVELS> struct march {
    flow<T, LEVELS> levels;
    uint4 *ring;         /* shared memory: rows of the next steps, each thread its own cells */
    const T *source, *b; /* the thread's cells that are read next */
    T *target;           /* those written next */
    int row, height;     /* read next, of the array */
    int count;           /* the part's rows */
    bool zero;           /* X is: there is no source */
    T scale;
};

/* What a pass is, for all its parts. */
template <typename T> struct leg {
    const T *source, *b;
    T *target;
    int length;
    bool measure, fused;
};

/* Four cells to shared memory, in the background; zeros where they do not exist. */
template <typename T> INLINE void cells_ask(bool exist, const T *from, uint4 *to) {
#pragma unroll
    for (int p = 0; p < borders<T>::parts; p++) {
#ifdef __CUDA_ARCH__
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                         (unsigned)__cvta_generic_to_shared(to + 32 * p)),
                     "l"((const char *)from + 16 * p), "r"(exist ? 16 : 0)
                     : "memory");
#else
        memset(to + 32 * p, 0, 16);
        if (exist) {
            memcpy(to + 32 * p, (const char *)from + 16 * p, 16);
        }
#endif
    }
}

INLINE void asked_close() {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

INLINE void asked_wait() {
#ifdef __CUDA_ARCH__
    asm volatile("cp.async.wait_group %0;" ::"n"(JACOBI_AHEAD) : "memory");
#endif
}

template <typename T>
INLINE void row_ask(const jacobi_grid &grid, unsigned wanted, const T *from, uint4 *to) {
    if (grid.vector) {
        cells_ask(wanted != 0, from, to);
    } else {
        T cells[ACROSS];
        row_load(false, wanted, from, cells);
        quad_put(to, 32, quad_of(cells));
    }
}

/* Asks for the rows of X and B of a step. */
template <typename T, int LEVELS>
INLINE void march_ask(const jacobi_grid &grid, march<T, LEVELS> &march, const strip &strip,
                      int step) {
    constexpr int row = 32 * borders<T>::parts;
    uint4 *to = march.ring + step % (JACOBI_AHEAD + 1) * 4 * row;
#pragma unroll
    for (int r = 0; r < 2; r++) {
        unsigned wanted = (unsigned)march.row < (unsigned)march.height ? strip.columns : 0;
        row_ask(grid, march.zero ? 0 : wanted, march.source, to + r * row);
        row_ask(grid, wanted, march.b, to + (2 + r) * row);
        march.source += grid.width;
        march.b += grid.width;
        march.row++;
    }
    asked_close();
}

template <typename T, int LEVELS>
INLINE void march_take(march<T, LEVELS> &march, int step, T (&rows)[2][ACROSS]) {
    constexpr int row = 32 * borders<T>::parts;
    const uint4 *from = march.ring + step % (JACOBI_AHEAD + 1) * 4 * row;
    asked_wait();
#pragma unroll
    for (int r = 0; r < 2; r++) {
        quad<T> x = quad_get<T>(from + r * row, 32), b = quad_get<T>(from + (2 + r) * row, 32);
#pragma unroll
        for (int c = 0; c < ACROSS; c++) {
            rows[r][c] = x.cell[c];
            march.levels.b[LEVELS + r][c] = b.cell[c];
        }
    }
}

template <bool RIM, typename T, int LEVELS>
INLINE void march_step(const jacobi_grid &grid, march<T, LEVELS> &march, const strip &strip,
                       const rim &rim, int step, double &worst) {
    T rows[2][ACROSS];
    march_ask(grid, march, strip, step + JACOBI_AHEAD);
    march_take(march, step, rows);
    __syncwarp();
    flow_step<RIM>(march.levels, strip, rim, 2 * step, march.scale, rows, worst);
#pragma unroll
    for (int r = 0; r < 2; r++) {
        bool wanted = (unsigned)(2 * (step - LEVELS) + r) < (unsigned)march.count;
        row_store(!RIM || grid.vector, wanted ? strip.own : 0, march.target, rows[r]);
        march.target += grid.width;
    }
}

template <typename T, int LEVELS>
INLINE void part_march(const jacobi_grid &grid, uint32_t index, const leg<T> &leg, uint4 *ring,
                       double &worst) {
    march<T, LEVELS> march;
    uint32_t line = index / grid.tiles_x, plane = line / grid.tiles_y;
    strip strip = strip_find(grid, index - line * grid.tiles_x);
    int first = (int)(line - plane * grid.tiles_y) * grid.part;
    march.height = grid.height;
    march.count = min(grid.part, grid.height - first);
    march.row = first - LEVELS;
    march.scale = leg.fused ? (T)-0.25 : (T)1;
    int64_t cell = ((int64_t)plane * grid.height + march.row) * grid.width + strip.column;
    march.zero = !leg.source;
    march.ring = ring;
    march.source = (leg.source ? leg.source : leg.b) + cell;
    march.b = leg.b + cell;
    march.target = leg.target + (cell - (int64_t)LEVELS * grid.width);
    rim rim = {-march.row,
               grid.height - march.row,
               LEVELS - leg.length,
               leg.fused,
               leg.measure,
               LEVELS,
               LEVELS + march.count,
               strip.columns,
               strip.own};
    bool plain = rim.skip == 0 && leg.fused && !leg.measure && grid.vector;
    flow_clear(march.levels);
#pragma unroll
    for (int step = 0; step < JACOBI_AHEAD; step++) {
        march_ask(grid, march, strip, step);
    }
    int steps = LEVELS + (march.count + 1) / 2;
#pragma unroll 1
    for (int step = 0; step < steps; step++) {
        if (plain && 2 * step - LEVELS >= rim.low && 2 * step < rim.high) {
            march_step<false>(grid, march, strip, rim, step, worst);
        } else {
            march_step<true>(grid, march, strip, rim, step, worst);
        }
    }
}

/* Whether all of B may be scaled, as far as this thread looks. */
template <typename T> INLINE bool all_fusible(const jacobi_grid &grid, int64_t cells) {
    int64_t thread = ((int64_t)blockIdx.x * blockDim.y + threadIdx.y) * 32 + threadIdx.x;
    int64_t threads = (int64_t)gridDim.x * blockDim.y * 32;
    const T *b = (const T *)grid.b;
    bool all = true;
    int64_t quads = grid.vector ? cells / ACROSS : 0;
#pragma unroll 4
    for (int64_t i = thread; i < quads; i += threads) {
        T four[ACROSS];
        cells_read(b + i * ACROSS, four);
#pragma unroll
        for (int c = 0; c < ACROSS; c++) {
            all = all && fusible(four[c]);
        }
    }
    for (int64_t i = quads * ACROSS + thread; i < cells; i += threads) {
        all = all && fusible(b[i]);
    }
    return all;
}

#endif
