/*
 * jacobi_passing.cuh: a tile of X and B that stays for one pass only, and sweeps over it.
 *
 * The same work as in jacobi_tile.cuh with fewer registers and less to prepare: a warp is COLUMNS
 * cells wide, four columns and ROWS rows a thread, and cells outside the array are kept at +0 by a
 * mask of bits.
 */
#ifndef KILN_CUDA_JACOBI_PASSING_CUH
#define KILN_CUDA_JACOBI_PASSING_CUH

#include "kernels/cuda/jacobi/jacobi_tile.cuh"

namespace passing {

template <typename T> struct real;

template <> struct real<float> {
    static __device__ __forceinline__ float add(float a, float b) {
        return __fadd_rn(a, b);
    }
    static __device__ __forceinline__ float quarter(float a) {
        return __fmul_rn(a, 0.25f);
    }
    static __device__ __forceinline__ float mask(float a, int row, int column) {
        return __int_as_float(__float_as_int(a) & row & column);
    }
    static __device__ __forceinline__ void load(const float *from, float *cells) {
        float4 v = __ldcg((const float4 *)from);
        cells[0] = v.x, cells[1] = v.y, cells[2] = v.z, cells[3] = v.w;
    }
    static __device__ __forceinline__ void store(float *to, const float *cells) {
        __stcg((float4 *)to, make_float4(cells[0], cells[1], cells[2], cells[3]));
    }
};

template <> struct real<double> {
    static __device__ __forceinline__ double add(double a, double b) {
        return __dadd_rn(a, b);
    }
    static __device__ __forceinline__ double quarter(double a) {
        return __dmul_rn(a, 0.25);
    }
    static __device__ __forceinline__ double mask(double a, int row, int column) {
        return __hiloint2double(__double2hiint(a) & row & column,
                                __double2loint(a) & row & column);
    }
    static __device__ __forceinline__ void load(const double *from, double *cells) {
        double2 u = __ldcg((const double2 *)from), v = __ldcg((const double2 *)from + 1);
        cells[0] = u.x, cells[1] = u.y, cells[2] = v.x, cells[3] = v.y;
    }
    static __device__ __forceinline__ void store(double *to, const double *cells) {
        __stcg((double2 *)to, make_double2(cells[0], cells[1]));
        __stcg((double2 *)to + 1, make_double2(cells[2], cells[3]));
    }
};

/* Where a block's tile lies; all relative to the tile's corner, which may be outside the array. */
struct place {
    int64_t corner;                /* index of the tile's first cell in its array */
    int row_low, row_high;         /* rows of the tile inside the array */
    int column_low, column_high;   /* likewise */
    bool edge;                     /* does the tile reach over the array's border? */
};

static __device__ place place_find(const jacobi_grid &grid, uint32_t tile, int rows) {
    uint32_t line = tile / grid.tiles_x;
    int64_t column = (int64_t)(tile - line * grid.tiles_x) * (COLUMNS - 2 * grid.halo_x) -
                     grid.halo_x;
    uint32_t plane = line / grid.tiles_y;
    int64_t row = (int64_t)(line - plane * grid.tiles_y) * (rows - 2 * grid.halo_y) - grid.halo_y;
    place at;
    at.corner = ((int64_t)plane * grid.height + row) * grid.width + column;
    at.row_low = row < 0 ? (int)-row : 0;
    at.row_high = (int)min((int64_t)rows, grid.height - row);
    at.column_low = column < 0 ? (int)-column : 0;
    at.column_high = (int)min((int64_t)COLUMNS, grid.width - column);
    at.edge = at.row_low > 0 || at.row_high < rows || at.column_low > 0 ||
              at.column_high < COLUMNS;
    return at;
}

/* The thread's rows of an array (NULL: zero), +0 outside. */
template <typename T, int ROWS>
static __device__ __forceinline__ void cells_load(const jacobi_grid &grid, const place &at,
                                                  const T *array, T (&cells)[ROWS][ACROSS]) {
    int row = threadIdx.y * ROWS, column = threadIdx.x * ACROSS;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        const T *from = array + (at.corner + (int64_t)(row + r) * grid.width + column);
        bool inside = array != nullptr && row + r >= at.row_low && row + r < at.row_high;
#pragma unroll
        for (int c = 0; c < ACROSS; c++) {
            cells[r][c] = 0;
        }
        if (grid.vector) {
            if (inside && column >= at.column_low && column < at.column_high) {
                real<T>::load(from, cells[r]);
            }
        } else {
#pragma unroll
            for (int c = 0; c < ACROSS; c++) {
                if (inside && column + c >= at.column_low && column + c < at.column_high) {
                    cells[r][c] = __ldcg(from + c);
                }
            }
        }
    }
}

/* Writes what belongs to the tile itself. */
template <typename T, int ROWS>
static __device__ __forceinline__ void cells_store(const jacobi_grid &grid, const place &at,
                                                   T *array, const T (&cells)[ROWS][ACROSS]) {
    int row = threadIdx.y * ROWS, column = threadIdx.x * ACROSS;
    int last_row = min(at.row_high, (int)blockDim.y * ROWS - grid.halo_y);
    int last_column = min(at.column_high, COLUMNS - grid.halo_x);
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        T *to = array + (at.corner + (int64_t)(row + r) * grid.width + column);
        if (row + r < grid.halo_y || row + r >= last_row) {
            continue;
        }
        if (grid.vector) {
            if (column >= grid.halo_x && column < last_column) {
                real<T>::store(to, cells[r]);
            }
        } else {
#pragma unroll
            for (int c = 0; c < ACROSS; c++) {
                if (column + c >= grid.halo_x && column + c < last_column) {
                    __stcg(to + c, cells[r][c]);
                }
            }
        }
    }
}

/* Which of the thread's cells are inside the array. */
struct masks {
    int first_row;      /* of the thread's rows */
    unsigned rows;      /* inside, from there */
    int column[ACROSS]; /* bits that keep or clear a column */
};

static __device__ __forceinline__ masks masks_of(const place &at, int row, int column) {
    masks mask;
    mask.first_row = at.row_low - row;
    mask.rows = (unsigned)(at.row_high - at.row_low);
#pragma unroll
    for (int c = 0; c < ACROSS; c++) {
        mask.column[c] = column + c >= at.column_low && column + c < at.column_high ? -1 : 0;
    }
    return mask;
}

/* Four cells, moved in words of 16 bytes. */
template <typename T> struct __align__(16) quad {
    T cell[ACROSS];
};

template <typename T>
static __device__ __forceinline__ quad<T> quad_of(const T (&cells)[ACROSS]) {
    return {cells[0], cells[1], cells[2], cells[3]};
}

/* A warp's outer rows, for the warps above and below. */
template <typename T> struct borders {
    quad<T> top[COLUMNS / ACROSS], bottom[COLUMNS / ACROSS];
};

/* One sweep of the tile, in place. With MEASURE raises `worst` to the greatest change of the tile's
   own cells. */
template <typename T, int ROWS, bool EDGE, bool MEASURE>
static __device__ __forceinline__ void sweep(const jacobi_grid &grid, borders<T> *shared,
                                             const masks &mask, T (&x)[ROWS][ACROSS],
                                             const T (&b)[ROWS][ACROSS], double &worst) {
    int lane = threadIdx.x, warp = threadIdx.y, warps = blockDim.y, column = lane * ACROSS;
    quad<T> above = {}, below = {};
    shared[warp].top[lane] = quad_of(x[0]);
    shared[warp].bottom[lane] = quad_of(x[ROWS - 1]);
    __syncthreads();
    if (warp > 0) {
        above = shared[warp - 1].bottom[lane];
    }
    if (warp + 1 < warps) {
        below = shared[warp + 1].top[lane];
    }
    bool own_column = column >= grid.halo_x && column < COLUMNS - grid.halo_x;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        T west = __shfl_up_sync(FULL, x[r][ACROSS - 1], 1);
        T east_end = __shfl_down_sync(FULL, x[r][0], 1);
        int row = warp * ROWS + r;
        int row_mask = EDGE && (unsigned)(r - mask.first_row) >= mask.rows ? 0 : -1;
        bool own = own_column && row >= grid.halo_y && row < warps * ROWS - grid.halo_y;
#pragma unroll
        for (int c = 0; c < ACROSS; c++) {
            T old = x[r][c];
            T south = r + 1 < ROWS ? x[r + 1 < ROWS ? r + 1 : r][c] : below.cell[c];
            T east = c + 1 < ACROSS ? x[r][c + 1 < ACROSS ? c + 1 : c] : east_end;
            T sum = real<T>::add(real<T>::add(above.cell[c], south), real<T>::add(west, east));
            T now = real<T>::quarter(real<T>::add(sum, -b[r][c]));
            if (EDGE) {
                now = real<T>::mask(now, row_mask, mask.column[c]);
            }
            if (MEASURE) {
                double change = fabs((double)now - (double)old);
                worst = own && change > worst ? change : worst;
            }
            x[r][c] = now;
            above.cell[c] = old;
            west = old;
        }
    }
}

template <typename T, int ROWS, bool EDGE>
static __device__ __forceinline__ void sweeps(const jacobi_grid &grid, borders<T> *shared,
                                              const place &at, T (&x)[ROWS][ACROSS],
                                              const T (&b)[ROWS][ACROSS], int count, bool measure,
                                              unsigned &turn, double &worst) {
    masks mask = masks_of(at, threadIdx.y * ROWS, threadIdx.x * ACROSS);
    double unused = 0;
#pragma unroll 1
    for (int i = measure ? 1 : 0; i < count; i++) {
        sweep<T, ROWS, EDGE, false>(grid, shared + (turn++ & 1) * blockDim.y, mask, x, b, unused);
    }
    if (measure) {
        sweep<T, ROWS, EDGE, true>(grid, shared + (turn++ & 1) * blockDim.y, mask, x, b, worst);
    }
}

} // namespace passing

#endif
