/*
 * jacobi_tile.cuh: a tile of X and B in a block's registers, and sweeps over it.
 *
 * A thread holds four neighbouring columns of ROWS rows; `lanes` threads lie side by side, and
 * threads of consecutive numbers follow them in the next ROWS rows. Left and right neighbours come
 * by shuffle, the rows above and below through shared memory (two buffers, so one barrier a sweep).
 * Whatever lies beyond the tile's border is taken as anything: that spoils one more ring of cells
 * each sweep.
 *
 * Cells outside the array are +0 at the start and never written. Additions happen in the order of
 * the header and nothing is fused, so every cell of every sweep has the bytes that a plain loop
 * gives; doing frame cells twice cannot show.
 */
#ifndef KILN_CUDA_JACOBI_TILE_CUH
#define KILN_CUDA_JACOBI_TILE_CUH

#include "kernels/cuda/jacobi/jacobi_grid.h"

#define FULL   0xffffffffu
#define ACROSS JACOBI_ACROSS
#define COLUMNS (32 * ACROSS) /* of a warp in one row */
#define INLINE static __device__ __forceinline__

INLINE float add(float a, float b) {
    return __fadd_rn(a, b);
}
INLINE double add(double a, double b) {
    return __dadd_rn(a, b);
}
INLINE float quarter(float a) {
    return __fmul_rn(a, 0.25f);
}
INLINE double quarter(double a) {
    return __dmul_rn(a, 0.25);
}

INLINE float mul(float a, float b) {
    return __fmul_rn(a, b);
}
INLINE double mul(double a, double b) {
    return __dmul_rn(a, b);
}
INLINE float fused(float a, float b) {
    return __fmaf_rn(a, 0.25f, b);
}
INLINE double fused(double a, double b) {
    return __fma_rn(a, 0.25, b);
}

/* Whether (s − b)·0.25 and fma(s, 0.25, −0.25·b) have the same bytes for every s: rounding commutes
   with the scaling unless it overflows or meets the end of the exponents. A |b| of at most 2^100 is
   too small to carry any s over; with b = 0 there is one rounding in both; with |b| ≥ 2^-100 a
   result in the subnormal range comes from cancelling and is exact. */
INLINE bool fusible(float b) {
    return b == 0 || (fabsf(b) >= 0x1p-100f && fabsf(b) <= 0x1p100f);
}
INLINE bool fusible(double b) {
    return b == 0 || (fabs(b) >= 0x1p-900 && fabs(b) <= 0x1p900);
}

INLINE void cells_read(const float *from, float *cells) {
    float4 v = __ldcg((const float4 *)from);
    cells[0] = v.x, cells[1] = v.y, cells[2] = v.z, cells[3] = v.w;
}
INLINE void cells_read(const double *from, double *cells) {
    double2 u = __ldcg((const double2 *)from), v = __ldcg((const double2 *)from + 1);
    cells[0] = u.x, cells[1] = u.y, cells[2] = v.x, cells[3] = v.y;
}
INLINE void cells_write(float *to, const float *cells) {
    __stcg((float4 *)to, make_float4(cells[0], cells[1], cells[2], cells[3]));
}
INLINE void cells_write(double *to, const double *cells) {
    __stcg((double2 *)to, make_double2(cells[0], cells[1]));
    __stcg((double2 *)to + 1, make_double2(cells[2], cells[3]));
}

/* Where the thread's first cell lies, and which of its cells are what: bit ACROSS·row + column. */
struct place {
    int64_t plane;
    int64_t row, column; /* may be outside the array */
    unsigned inside;     /* the array */
    unsigned own;        /* the tile's own part of it */
    bool edge;           /* does the tile reach over the array's border? */
};

/* The bits of `count` numbers from `first` on that lie in low ≤ n < high. */
INLINE unsigned span(int64_t first, int count, int64_t low, int64_t high) {
    int from = (int)max((int64_t)0, min((int64_t)count, low - first));
    int to = (int)max((int64_t)from, min((int64_t)count, high - first));
    return ((1u << to) - 1u) & ~((1u << from) - 1u);
}

template <int ROWS> INLINE unsigned bits(unsigned rows, unsigned columns) {
    unsigned all = 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        all |= rows >> r & 1 ? columns << r * ACROSS : 0;
    }
    return all;
}

template <int ROWS> static __device__ place place_find(const jacobi_grid &grid, uint32_t tile) {
    int thread = threadIdx.y * 32 + threadIdx.x;
    int width = grid.lanes * ACROSS, height = blockDim.y * 32 / grid.lanes * ROWS;
    uint32_t line = tile / grid.tiles_x, plane = line / grid.tiles_y;
    int64_t left = (int64_t)(tile - line * grid.tiles_x) * (width - 2 * grid.halo_x) - grid.halo_x;
    int64_t top =
        (int64_t)(line - plane * grid.tiles_y) * (height - 2 * grid.halo_y) - grid.halo_y;
    place at;
    at.plane = plane;
    at.row = top + thread / grid.lanes * ROWS;
    at.column = left + thread % grid.lanes * ACROSS;
    at.inside = bits<ROWS>(span(at.row, ROWS, 0, grid.height),
                           span(at.column, ACROSS, 0, grid.width));
    at.own = at.inside &
             bits<ROWS>(span(at.row, ROWS, top + grid.halo_y, top + height - grid.halo_y),
                        span(at.column, ACROSS, left + grid.halo_x, left + width - grid.halo_x));
    at.edge = top < 0 || left < 0 || top + height > grid.height || left + width > grid.width;
    return at;
}

INLINE unsigned row_bits(unsigned all, int row) {
    return all >> row * ACROSS & (1u << ACROSS) - 1;
}

INLINE int64_t cell_index(const jacobi_grid &grid, const place &at, int row) {
    return (at.plane * grid.height + at.row + row) * grid.width + at.column;
}

/* The thread's cells of an array (NULL: zero), +0 outside. */
template <typename T, int ROWS>
INLINE void cells_load(const jacobi_grid &grid, const place &at, const T *array,
                       T (&cells)[ROWS][ACROSS]) {
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const T *from = array + cell_index(grid, at, r);
        unsigned wanted = array != nullptr ? row_bits(at.inside, r) : 0;
#pragma unroll
        for (int c = 0; c < ACROSS; c++) {
            cells[r][c] = 0;
        }
        if (grid.vector && wanted) {
            cells_read(from, cells[r]);
        } else {
#pragma unroll
            for (int c = 0; c < ACROSS; c++) {
                if (wanted >> c & 1) {
                    cells[r][c] = __ldcg(from + c);
                }
            }
        }
    }
}

/* Writes what belongs to the tile itself. */
template <typename T, int ROWS>
INLINE void cells_store(const jacobi_grid &grid, const place &at, T *array,
                        const T (&cells)[ROWS][ACROSS]) {
    T *to = array + cell_index(grid, at, 0);
#pragma unroll
    for (int r = 0; r < ROWS; r++, to += grid.width) {
        unsigned wanted = row_bits(at.own, r);
        if (grid.vector && wanted) {
            cells_write(to, cells[r]);
        } else {
#pragma unroll
            for (int c = 0; c < ACROSS; c++) {
                if (wanted >> c & 1) {
                    __stcg(to + c, cells[r][c]);
                }
            }
        }
    }
}

/* Four cells, moved in words of 16 bytes. */
template <typename T> struct __align__(16) quad {
    T cell[ACROSS];
};

template <typename T> INLINE quad<T> quad_of(const T (&cells)[ACROSS]) {
    return {cells[0], cells[1], cells[2], cells[3]};
}

/* The threads' outer rows: for each half of 16 bytes of a row all threads' side by side, so that no
   two meet in a bank. `turn` alternates between the two buffers. */
template <typename T> struct borders {
    static constexpr int parts = (int)sizeof(T) / 4;
    uint4 *rows;
    unsigned turn;
};

template <typename T> INLINE void quad_put(uint4 *to, int step, const quad<T> &quad) {
#pragma unroll
    for (int p = 0; p < borders<T>::parts; p++) {
        memcpy(to + p * step, (const char *)&quad + 16 * p, 16);
    }
}

template <typename T> INLINE quad<T> quad_get(const uint4 *from, int step) {
    quad<T> quad;
#pragma unroll
    for (int p = 0; p < borders<T>::parts; p++) {
        memcpy((char *)&quad + 16 * p, from + p * step, 16);
    }
    return quad;
}

/* Left and right neighbours of a row, added. */
template <typename T> INLINE quad<T> beside(const T (&x)[ACROSS], int lanes) {
    T west = __shfl_up_sync(FULL, x[ACROSS - 1], 1, lanes);
    T east = __shfl_down_sync(FULL, x[0], 1, lanes);
    return {add(west, x[1]), add(x[0], x[2]), add(x[1], x[3]), add(x[2], east)};
}

enum edge_kind {
    EDGE_NONE,  /* the tile lies inside the array */
    EDGE_WHOLE, /* a thread's columns are all inside or all outside */
    EDGE_RAGGED
};

/* What is known of a tile, the same in all threads. */
struct tile_kind {
    edge_kind edge;
    bool fused; /* b holds −0.25·B */
};

/* One row, in place. MEASURE takes any kind and raises `worst`. */
template <typename T, edge_kind EDGE, bool FUSED, bool MEASURE>
INLINE void row_sweep(const quad<T> &above, const quad<T> &below, const quad<T> &sides,
                      const T (&b)[ACROSS], unsigned inside, unsigned own, bool is_fused,
                      T (&x)[ACROSS], double &worst) {
#ifdef __CUDA_ARCH__
    /* The compiler would keep a predicate for every cell and run out of them. */
    asm volatile("" : "+r"(inside));
#endif
#pragma unroll
    for (int c = 0; c < ACROSS; c++) {
        T sum = add(add(above.cell[c], below.cell[c]), sides.cell[c]);
        T now = (MEASURE ? is_fused : FUSED) ? fused(sum, b[c]) : quarter(add(sum, -b[c]));
        if (MEASURE) {
            double change = fabs((double)now - (double)x[c]);
            worst = own >> c & 1 && change > worst ? change : worst;
        }
        if (EDGE == EDGE_NONE || inside >> (EDGE == EDGE_WHOLE ? 0 : c) & 1) {
            x[c] = now;
        }
    }
}

/* The rows above and below the thread's. */
template <typename T> struct neighbours {
    quad<T> north, south;
};

/* Shows the thread's outer rows to its neighbours. */
template <typename T, int ROWS>
INLINE uint4 *borders_put(borders<T> &shared, const T (&x)[ROWS][ACROSS]) {
    constexpr int parts = borders<T>::parts;
    int thread = threadIdx.y * 32 + threadIdx.x, threads = blockDim.y * 32;
    uint4 *top = shared.rows + (shared.turn++ & 1) * 2 * parts * threads;
    quad_put(top + thread, threads, quad_of(x[0]));
    quad_put(top + parts * threads + thread, threads, quad_of(x[ROWS - 1]));
    return top;
}

template <typename T> INLINE neighbours<T> borders_get(const jacobi_grid &grid, const uint4 *top) {
    int thread = threadIdx.y * 32 + threadIdx.x, threads = blockDim.y * 32;
    const uint4 *bottom = top + borders<T>::parts * threads;
    __syncthreads();
    return {quad_get<T>(bottom + max(thread - grid.lanes, 0), threads),
            quad_get<T>(top + min(thread + grid.lanes, threads - 1), threads)};
}

/* One sweep of the tile, in place. The outer rows come first, so that they are on their way while
   the others are computed. */
template <typename T, int ROWS, edge_kind EDGE, bool FUSED, bool MEASURE>
INLINE void sweep(const jacobi_grid &grid, borders<T> &shared, const place &at, bool is_fused,
                  neighbours<T> &around, T (&x)[ROWS][ACROSS], const T (&b)[ROWS][ACROSS],
                  double &worst) {
    constexpr int last = ROWS - 1;
    quad<T> sides[ROWS], above = quad_of(x[0]), bottom = quad_of(x[last]);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        sides[r] = beside(x[r], grid.lanes);
    }
    row_sweep<T, EDGE, FUSED, MEASURE>(around.north, quad_of(x[1]), sides[0], b[0],
                                       row_bits(at.inside, 0), row_bits(at.own, 0), is_fused, x[0],
                                       worst);
    row_sweep<T, EDGE, FUSED, MEASURE>(ROWS > 2 ? quad_of(x[last - 1]) : above, around.south,
                                       sides[last], b[last], row_bits(at.inside, last),
                                       row_bits(at.own, last), is_fused, x[last], worst);
    uint4 *top = borders_put(shared, x);
#pragma unroll
    for (int r = 1; r < last; r++) {
        quad<T> old = quad_of(x[r]), below = r + 1 < last ? quad_of(x[r + 1]) : bottom;
        row_sweep<T, EDGE, FUSED, MEASURE>(above, below, sides[r], b[r], row_bits(at.inside, r),
                                           row_bits(at.own, r), is_fused, x[r], worst);
        above = old;
    }
    around = borders_get<T>(grid, top);
}

template <typename T, int ROWS, edge_kind EDGE, bool FUSED>
INLINE void sweeps(const jacobi_grid &grid, borders<T> &shared, const place &at,
                   neighbours<T> &around, T (&x)[ROWS][ACROSS], const T (&b)[ROWS][ACROSS], int count) {
    double unused = 0;
#pragma unroll 1
    for (int i = 0; i < count; i++) {
        sweep<T, ROWS, EDGE, FUSED, false>(grid, shared, at, FUSED, around, x, b, unused);
    }
}

/* `count` sweeps; if so asked, the last raises `worst` to the greatest change of the tile's own
   cells. */
template <typename T, int ROWS>
INLINE void tile_sweep(const jacobi_grid &grid, borders<T> &shared, const place &at, tile_kind kind,
                       T (&x)[ROWS][ACROSS], const T (&b)[ROWS][ACROSS], int count, bool measure,
                       double &worst) {
    count -= measure ? 1 : 0;
    neighbours<T> around = borders_get<T>(grid, borders_put(shared, x));
    if (!kind.fused) {
        sweeps<T, ROWS, EDGE_RAGGED, false>(grid, shared, at, around, x, b, count);
    } else if (kind.edge == EDGE_NONE) {
        sweeps<T, ROWS, EDGE_NONE, true>(grid, shared, at, around, x, b, count);
    } else if (kind.edge == EDGE_WHOLE) {
        sweeps<T, ROWS, EDGE_WHOLE, true>(grid, shared, at, around, x, b, count);
    } else {
        sweeps<T, ROWS, EDGE_RAGGED, true>(grid, shared, at, around, x, b, count);
    }
    if (measure) {
        sweep<T, ROWS, EDGE_RAGGED, false, true>(grid, shared, at, kind.fused, around, x, b, worst);
    }
}

/* Looks at a new tile, and scales b where that is right. All threads meet here. */
template <typename T, int ROWS>
INLINE tile_kind tile_begin(const jacobi_grid &grid, const place &at, T (&b)[ROWS][ACROSS]) {
    bool all = true;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int c = 0; c < ACROSS; c++) {
            all = all && fusible(b[r][c]);
        }
    }
    tile_kind kind;
    kind.fused = __syncthreads_and(all);
    kind.edge = !at.edge ? EDGE_NONE : grid.width % ACROSS == 0 ? EDGE_WHOLE : EDGE_RAGGED;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
#pragma unroll
        for (int c = 0; c < ACROSS; c++) {
            b[r][c] = kind.fused ? quarter(-b[r][c]) : b[r][c];
        }
    }
    return kind;
}

#endif
