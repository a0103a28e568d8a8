/*
 * jacobi.cu: literal Jacobi sweeps (kernels/jacobi.h), many of them between exchanges.
 *
 * One cooperative launch does the whole run. A block holds a tile of X and B in registers, four
 * neighbouring columns and ROWS rows a thread; left and right neighbours come by shuffle, the rows
 * above and below another warp's through shared memory (two buffers, so one barrier a sweep). After
 * `depth` sweeps the tile's own part is written out, all blocks meet, and the next pass reads tile
 * and frame anew. Passes write to two buffers in turn.
 *
 * Cells outside the array are kept at +0 by a mask of bits, without a branch. Additions happen in
 * the order of the header and nothing is fused, so every cell of every sweep has the bytes that a
 * plain loop gives; doing frame cells twice cannot show.
 *
 * All blocks agree on stopping: the host's word travels in the counter of the barrier, and the
 * residual of a check is complete at the barrier after it.
 */
#include "kernels/cuda/jacobi_grid.h"

#define FULL   0xffffffffu
#define ACROSS 4 /* columns a thread */
#define STOP   (1ull << 48)

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
    int64_t column = (int64_t)(tile - line * grid.tiles_x) * (JACOBI_COLUMNS - 2 * grid.halo_x) -
                     grid.halo_x;
    uint32_t plane = line / grid.tiles_y;
    int64_t row = (int64_t)(line - plane * grid.tiles_y) * (rows - 2 * grid.halo_y) - grid.halo_y;
    place at;
    at.corner = ((int64_t)plane * grid.height + row) * grid.width + column;
    at.row_low = row < 0 ? (int)-row : 0;
    at.row_high = (int)min((int64_t)rows, grid.height - row);
    at.column_low = column < 0 ? (int)-column : 0;
    at.column_high = (int)min((int64_t)JACOBI_COLUMNS, grid.width - column);
    at.edge = at.row_low > 0 || at.row_high < rows || at.column_low > 0 ||
              at.column_high < JACOBI_COLUMNS;
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
        bool inside = array && row + r >= at.row_low && row + r < at.row_high;
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
    int last_column = min(at.column_high, JACOBI_COLUMNS - grid.halo_x);
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
    quad<T> top[JACOBI_COLUMNS / ACROSS], bottom[JACOBI_COLUMNS / ACROSS];
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
    bool own_column = column >= grid.halo_x && column < JACOBI_COLUMNS - grid.halo_x;
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

/* The greatest `worst` of the warp, into the shared word. */
static __device__ void residual_raise(double worst, unsigned long long *word) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2) {
        double other = __shfl_xor_sync(FULL, worst, distance);
        worst = other > worst ? other : worst;
    }
    if (threadIdx.x == 0) {
        /* Bits of doubles ≥ 0 are in the doubles' order. */
        atomicMax(word, (unsigned long long)__double_as_longlong(worst));
    }
}

static __device__ __forceinline__ unsigned long long load_acquire(const unsigned long long *word) {
    unsigned long long value;
#ifdef __CUDA_ARCH__
    asm volatile("ld.acquire.gpu.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
#else
    value = *(const volatile unsigned long long *)word;
#endif
    return value;
}

/* Waits for all blocks; what they wrote before can be read after. True where the first block has
   brought word to stop. `goal`, of the first thread only, counts arrivals over all meetings. */
static __device__ bool meet(jacobi_shared *shared, unsigned long long *goal, bool stop) {
    __shared__ bool stopped;
    __syncthreads();
    if (threadIdx.x == 0 && threadIdx.y == 0) {
        unsigned long long seen;
        *goal += gridDim.x;
        __threadfence();
        atomicAdd(&shared->arrived, 1ull + (stop ? STOP : 0ull));
        do {
            seen = load_acquire(&shared->arrived);
        } while ((seen & (STOP - 1)) < *goal);
        __threadfence();
        stopped = seen >= STOP;
    }
    __syncthreads();
    return stopped;
}

/* Where a run stands; the same in every thread. */
struct progress {
    int64_t done;
    unsigned passes, checks;
    bool stop;
};

/* Sweeps until the next exchange, and whether the last of them is measured. */
static __device__ int pass_length(const jacobi_grid &grid, const progress &run, bool &measure) {
    int64_t left = grid.iterations - run.done;
    int length = left < grid.depth ? (int)left : grid.depth;
    measure = false;
    if (grid.tolerance > 0) {
        int until = JACOBI_CHECK - (int)(run.done % JACOBI_CHECK);
        length = min(length, until);
        measure = length == until || length == left;
    }
    return length;
}

/* After the barrier of a measured pass. True where the tolerance is met. */
static __device__ bool residual_check(const jacobi_grid &grid, progress &run) {
    unsigned long long bits = load_acquire(&grid.shared->residual[run.checks % 3]);
    double residual = __longlong_as_double((long long)bits);
    if (grid.report && blockIdx.x == 0 && threadIdx.x == 0 && threadIdx.y == 0) {
        grid.report->residual = residual;
    }
    run.checks++;
    return run.done % JACOBI_CHECK == 0 && residual <= grid.tolerance;
}

template <typename T> static __device__ void copy(const jacobi_grid &grid, const T *from, T *to) {
    int64_t cells = (int64_t)(grid.tiles / grid.tiles_x / grid.tiles_y) * grid.height * grid.width;
    int64_t thread = ((int64_t)blockIdx.x * blockDim.y + threadIdx.y) * 32 + threadIdx.x;
    for (int64_t i = thread; i < cells; i += (int64_t)gridDim.x * blockDim.y * 32) {
        to[i] = from ? __ldcg(from + i) : (T)0;
    }
}

template <typename T, int ROWS> static __device__ void jacobi(const jacobi_grid &grid) {
    extern __shared__ __align__(16) unsigned char memory[];
    borders<T> *shared = (borders<T> *)memory;
    T x[ROWS][ACROSS], b[ROWS][ACROSS];
    const T *source = (const T *)grid.start;
    progress run = {0, 0, 0, false};
    bool first = threadIdx.x == 0 && threadIdx.y == 0, met = false;
    unsigned turn = 0;
    __shared__ unsigned long long goal;
    if (first) {
        goal = 0;
    }
    if (first && blockIdx.x == 0 && grid.report) {
        grid.report->residual = __longlong_as_double(0x7ff8000000000000ll);
    }
    while (run.done < grid.iterations && !run.stop && !met) {
        bool measure;
        int length = pass_length(grid, run, measure);
        uint32_t stop = 0;
        if (first && blockIdx.x == 0 && run.passes % grid.poll == 0) {
            stop = *grid.stop;
            *grid.progress = (uint32_t)((double)run.done / (double)grid.iterations * 65536.0);
        }
        if (first && blockIdx.x == 0 && measure) {
            /* Last read two checks ago, next used after the coming barrier. */
            grid.shared->residual[(run.checks + 1) % 3] = 0;
        }
        T *target = (T *)grid.targets[run.passes & 1];
        double worst = 0;
        for (uint32_t tile = blockIdx.x; tile < grid.tiles; tile += gridDim.x) {
            place at = place_find(grid, tile, blockDim.y * ROWS);
            cells_load(grid, at, source, x);
            if (run.passes == 0 || grid.tiles > gridDim.x) {
                cells_load(grid, at, (const T *)grid.b, b);
            }
            if (at.edge) {
                sweeps<T, ROWS, true>(grid, shared, at, x, b, length, measure, turn, worst);
            } else {
                sweeps<T, ROWS, false>(grid, shared, at, x, b, length, measure, turn, worst);
            }
            cells_store(grid, at, target, x);
        }
        if (measure) {
            residual_raise(worst, &grid.shared->residual[run.checks % 3]);
        }
        run.done += length;
        run.passes++;
        run.stop = meet(grid.shared, &goal, stop != 0);
        source = target;
        if (measure) {
            met = residual_check(grid, run);
        }
    }
    if (source != (const T *)grid.x) {
        copy(grid, source, (T *)grid.x);
    }
    if (first && blockIdx.x == 0 && grid.report) {
        grid.report->sweeps = run.done;
    }
}

extern "C" __global__ void __launch_bounds__(512, 1)
    jacobi_fp32_4(const __grid_constant__ jacobi_grid grid) {
    jacobi<float, 4>(grid);
}

extern "C" __global__ void __launch_bounds__(512, 1)
    jacobi_fp32_8(const __grid_constant__ jacobi_grid grid) {
    jacobi<float, 8>(grid);
}

extern "C" __global__ void __launch_bounds__(512, 1)
    jacobi_fp64_2(const __grid_constant__ jacobi_grid grid) {
    jacobi<double, 2>(grid);
}

extern "C" __global__ void __launch_bounds__(512, 1)
    jacobi_fp64_4(const __grid_constant__ jacobi_grid grid) {
    jacobi<double, 4>(grid);
}
