/*
 * spectral.cu: the closed form of the Jacobi iteration by sine transforms (kernels/spectral.h).
 *
 * Large arrays go through chirp convolutions (lines.h). Transforms of the others are products on
 * the double-precision tensor cores (spectral_grid.h tells which). A block computes results of one
 * parity for a tile of rows that is made of two parts, the second the mirror of the first, so that
 * the fold of the transposed result needs nothing of another block. Both operands come by
 * asynchronous copies, several steps of STEP ahead, into rows of 128 bytes whose halves are
 * exchanged in odd rows: then the fragments are read without bank conflicts. The results go through
 * shared memory, for whole lines of stores and to keep the epilogue small.
 */
#include "kernels/cuda/spectral/dmma.h"
#include "kernels/cuda/spectral/lines.h"
#include "kernels/cuda/spectral/modes.h"
#include "kernels/cuda/spectral/spectral_grid.h"

#define STEP        16   /* inner elements of a step: eight chunks of 16 bytes */
#define POLL_BLOCKS 64   /* of which one looks at the stop word */
#define POLL_STEPS  1024 /* of long rows, between looks at the stop word */
#define PAD         8    /* staged rows start 64 bytes apart in the banks */

/* sin(π index / period) for 0 ≤ index < 2 period, reduced in integers. */
static __device__ double sine(uint64_t index, uint64_t period) {
    bool negative = index >= period;
    index -= negative ? period : 0;
    index = 2 * index > period ? period - index : index;
    double value = sinpi((double)index / (double)period);
    return negative ? -value : value;
}

extern "C" __global__ void __launch_bounds__(256)
    spectral_sines(const __grid_constant__ sine_table table) {
    uint64_t period = (uint64_t)table.length + 1;
    uint64_t first = ((uint64_t)blockIdx.x * blockDim.y + threadIdx.y) * 32 + threadIdx.x;
    uint64_t step = (uint64_t)gridDim.x * blockDim.y * 32;
    uint64_t half = (uint64_t)table.half, stride = (uint64_t)table.stride;
    if (table.matrix != nullptr) {
        for (uint64_t i = first; i < 2 * half * stride; i += step) {
            uint64_t row = i / stride, j = i % stride;
            uint64_t k = row < half ? 2 * row + 1 : 2 * (row - half) + 2;
            table.matrix[i] = j < half ? sine((j + 1) * k % (2 * period), period) : 0.0;
        }
    }
    if (table.line != nullptr) {
        for (uint64_t i = first; i < 2 * period; i += step) {
            table.line[i] = sine(i, period);
        }
    }
    for (uint64_t i = first; i + 1 < period; i += step) {
        double root = sine(i + 1, 2 * period);
        table.waves[i] = root * root;
    }
    if (table.chirp.plan.size) {
        chirp_lead_make(table.chirp, (uint64_t)table.length, first, step);
    }
}

template <typename T> static __device__ void fold(const spectral_fold &grid) {
    int64_t count = grid.planes * grid.rows * grid.stride;
    int64_t first = ((int64_t)blockIdx.x * blockDim.y + threadIdx.y) * 32 + threadIdx.x;
    int64_t step = (int64_t)gridDim.x * blockDim.y * 32;
    for (int64_t i = first; i < count; i += step) {
        int64_t row = i / grid.stride, j = i % grid.stride, plane = row / grid.rows;
        const T *line = (const T *)grid.from + row * grid.length;
        double left = 0, right = 0;
        if (j < grid.half) {
            left = (double)line[j];
            right = (double)line[grid.length - 1 - j];
        }
        bool middle = 2 * j == grid.length - 1;
        double *to = grid.to + (plane * grid.rows + row) * grid.stride + j;
        to[0] = middle ? left : left + right;
        to[grid.rows * grid.stride] = left - right;
    }
}

extern "C" __global__ void __launch_bounds__(256)
    spectral_fold_fp32(const __grid_constant__ spectral_fold grid) {
    fold<float>(grid);
}

extern "C" __global__ void __launch_bounds__(256)
    spectral_fold_fp64(const __grid_constant__ spectral_fold grid) {
    fold<double>(grid);
}

/* What a block works on. */
struct place {
    int64_t plane, parity;
    int64_t i0; /* first result: k = 2i + parity */
    int64_t m0; /* first row of the left part */
};

/* Consecutive blocks share the rows of one parity and plane. */
template <int TILE> static __device__ place place_find(const spectral_pass &grid) {
    uint32_t block = blockIdx.x;
    place at;
    at.i0 = (int64_t)(block % grid.tiles_k) * TILE;
    block /= grid.tiles_k;
    at.m0 = (int64_t)(block % grid.tiles_m) * (TILE / 2);
    block /= grid.tiles_m;
    at.parity = block % 2;
    at.plane = block / 2;
    return at;
}

/* The copies that one thread makes in every step: always the same chunk of the same rows. */
template <int TILE, int THREADS, bool LONG> struct feeder {
    static constexpr int ROWS = TILE * 8 / THREADS; /* of each operand */
    const double *sines[LONG ? 1 : ROWS];
    const double *rows[ROWS];
    uint64_t index[LONG ? ROWS : 1]; /* into the line of sines, for the next step */
    int chunk, row;

    __device__ void init(const spectral_pass &grid, const place &at) {
        int thread = threadIdx.y * 32 + threadIdx.x;
        int64_t half = grid.sines.half, stride = grid.sines.stride;
        chunk = thread % 8;
        row = thread / 8;
        const double *matrix = grid.sines.matrix + at.parity * half * stride;
        const double *plane = grid.from + (2 * at.plane + at.parity) * grid.rows * stride;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            int r = row + i * (THREADS / 8), pair = r % (TILE / 2);
            int64_t m = min(at.m0 + pair, grid.rows - 1);
            m = r < TILE / 2 ? m : grid.rows - 1 - m;
            rows[i] = plane + m * stride;
            int64_t result = min(at.i0 + r, half - 1);
            if (LONG) {
                uint64_t k = 2 * (uint64_t)result + (uint64_t)at.parity + 1;
                index[LONG ? i : 0] = (2 * chunk + 1) * k % (2 * (uint64_t)grid.sines.length + 2);
            } else {
                sines[LONG ? 0 : i] = matrix + result * stride;
            }
        }
    }

    static __device__ int offset(int row, int chunk) {
        return row * STEP + 2 * (chunk ^ (row & 1) << 2);
    }

    /* Sines of one chunk from the line. */
    __device__ double2 gather(const spectral_pass &grid, const place &at, int i) {
        uint64_t turn = 2 * (uint64_t)grid.sines.length + 2;
        uint64_t result =
            min((uint64_t)at.i0 + row + i * (THREADS / 8), (uint64_t)grid.sines.half - 1);
        uint64_t k = 2 * result + (uint64_t)at.parity + 1;
        uint64_t now = index[LONG ? i : 0], next = now + k;
        next -= next >= turn ? turn : 0;
        index[LONG ? i : 0] = (now + STEP * k) % turn;
        return make_double2(grid.sines.line[now], grid.sines.line[next]);
    }

    /* Starts the copies of the step that begins at inner element j. */
    __device__ void feed(const spectral_pass &grid, const place &at, double *stage, int64_t j) {
        int64_t inner = j + 2 * chunk;
        bool zeros = inner >= grid.sines.stride;
        inner = zeros ? 0 : inner;
#pragma unroll
        for (int i = 0; i < ROWS; i++) {
            int r = row + i * (THREADS / 8);
            copy_start(stage + offset(TILE + r, chunk), rows[i] + inner, zeros);
            if (LONG) {
                *(double2 *)(stage + offset(r, chunk)) = gather(grid, at, i);
            } else {
                copy_start(stage + offset(r, chunk), sines[LONG ? 0 : i] + inner, zeros);
            }
        }
    }
};

/* Part of a tile that a warp computes: SLABS × 16 results of BANDS × 8 rows. */
template <int SLABS, int BANDS> struct product {
    double sum[SLABS][BANDS][4];

    __device__ void clear() {
#pragma unroll
        for (int i = 0; i < SLABS * BANDS * 4; i++) {
            sum[i / 4 / BANDS][i / 4 % BANDS][i % 4] = 0;
        }
    }

    /* Adds one step; a and b are the warp's first rows of the operands. */
    __device__ void add(const double *a, const double *b) {
        int g = threadIdx.x / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int part = 0; part < 2; part++) {
            int at = g * STEP + 2 * ((part ^ (g & 1)) * 4 + t);
            double fa[SLABS][4], fb[BANDS][2];
#pragma unroll
            for (int i = 0; i < SLABS; i++) {
                double2 top = *(const double2 *)(a + at + i * 16 * STEP);
                double2 bottom = *(const double2 *)(a + at + (i * 16 + 8) * STEP);
                fa[i][0] = top.x;
                fa[i][1] = bottom.x;
                fa[i][2] = top.y;
                fa[i][3] = bottom.y;
            }
#pragma unroll
            for (int i = 0; i < BANDS; i++) {
                double2 value = *(const double2 *)(b + at + i * 8 * STEP);
                fb[i][0] = value.x;
                fb[i][1] = value.y;
            }
#pragma unroll
            for (int i = 0; i < SLABS; i++) {
#pragma unroll
                for (int k = 0; k < BANDS; k++) {
                    dmma(sum[i][k], fa[i], fb[k]);
                }
            }
        }
    }

    /* Into rows of `width` elements, from the warp's corner on. */
    __device__ void stage(double *corner, int width) const {
        int g = threadIdx.x / 4, t = threadIdx.x % 4;
#pragma unroll
        for (int i = 0; i < SLABS; i++) {
#pragma unroll
            for (int k = 0; k < BANDS; k++) {
                double *to = corner + (i * 16 + g) * width + k * 8 + 2 * t;
                *(double2 *)to = make_double2(sum[i][k][0], sum[i][k][1]);
                *(double2 *)(to + 8 * width) = make_double2(sum[i][k][2], sum[i][k][3]);
            }
        }
    }
};

/* Stores result k of rows m and its mirror, which is itself in the middle. */
static __device__ void pair_store(const spectral_pass &grid, int64_t plane, int64_t k, int64_t m,
                                  double left, double right) {
    int64_t mirror = grid.rows - 1 - m, results = grid.sines.length;
    bool inside = m < grid.half;
    if (grid.result == SPECTRAL_ELEMENTS) {
        int64_t line = (plane * results + k) * grid.rows;
        if (inside) {
            element_store(grid.to, grid.fp64, line + m, left);
            element_store(grid.to, grid.fp64, line + mirror, right);
        }
        return;
    }
    if (m >= grid.stride) {
        return;
    }
    if (inside && grid.result == SPECTRAL_MODES) {
        left *= factor(grid.modes, k, m);
        right = m == mirror ? left : right * factor(grid.modes, k, mirror);
    }
    double *to = (double *)grid.to + (2 * plane * results + k) * grid.stride + m;
    to[0] = !inside ? 0.0 : m == mirror ? left : left + right;
    to[results * grid.stride] = inside && m != mirror ? left - right : 0.0;
}

template <int TILE, int THREADS, int ROUND>
static __device__ void tile_store(const spectral_pass &grid, const place &at, const double *staged,
                                  int first) {
    int thread = threadIdx.y * 32 + threadIdx.x;
#pragma unroll 1
    for (int i = thread; i < ROUND * (TILE / 2); i += THREADS) {
        int row = i / (TILE / 2), column = i % (TILE / 2);
        int64_t k = 2 * (at.i0 + first + row) + at.parity;
        const double *pair = staged + row * (TILE + PAD) + column;
        if (k < grid.sines.length) {
            pair_store(grid, at.plane, k, at.m0 + column, pair[0], pair[TILE / 2]);
        }
    }
}

/* TILE × TILE results of WARPS_K × WARPS_M warps; STAGES steps in flight. */
template <int TILE, int WARPS_K, int WARPS_M, int STAGES, bool LONG>
static __device__ __forceinline__ void pass(const spectral_pass &grid) {
    constexpr int THREADS = 32 * WARPS_K * WARPS_M, STAGE = 2 * TILE * STEP;
    constexpr int HIGH = TILE / WARPS_K, WIDE = TILE / WARPS_M;
    constexpr int ROUND = TILE > 64 ? HIGH : TILE; /* rows that are staged at once */
    static_assert(ROUND * (TILE + PAD) <= STAGES * STAGE, "staged results fit");
    extern __shared__ __align__(128) double memory[];
    int warp_k = threadIdx.y / WARPS_M, warp_m = threadIdx.y % WARPS_M;
    place at = place_find<TILE>(grid);
    feeder<TILE, THREADS, LONG> feeder;
    product<HIGH / 16, WIDE / 8> part;
    int64_t steps = (grid.sines.stride + STEP - 1) / STEP;
    feeder.init(grid, at);
    part.clear();
#pragma unroll 1
    for (int64_t i = 0; i < STAGES - 1; i++) {
        if (i < steps) {
            feeder.feed(grid, at, memory + i * STAGE, i * STEP);
        }
        copies_close();
    }
    bool stop = grid.poll && stopped(grid, blockIdx.x % POLL_BLOCKS == 0);
    int now = 0;
#pragma unroll 1
    for (int64_t i = 0; i < steps && !stop; i++) {
        copies_wait<STAGES - 2>();
        __syncthreads();
        if (i + STAGES - 1 < steps) {
            int free = now == 0 ? STAGES - 1 : now - 1;
            feeder.feed(grid, at, memory + free * STAGE, (i + STAGES - 1) * STEP);
        }
        copies_close();
        const double *stage = memory + now * STAGE;
        part.add(stage + warp_k * HIGH * STEP, stage + (TILE + warp_m * WIDE) * STEP);
        now = now + 1 == STAGES ? 0 : now + 1;
        if (LONG && i % POLL_STEPS == POLL_STEPS - 1) {
            stop = stopped(grid, true);
        }
    }
    copies_wait<0>();
    if (stop) {
        return;
    }
#pragma unroll 1
    for (int first = 0; first < TILE; first += ROUND) {
        __syncthreads();
        if (warp_k * HIGH / ROUND == first / ROUND) {
            part.stage(memory + (warp_k * HIGH - first) * (TILE + PAD) + warp_m * WIDE, TILE + PAD);
        }
        __syncthreads();
        tile_store<TILE, THREADS, ROUND>(grid, at, memory, first);
    }
}

extern "C" __global__ void __launch_bounds__(128)
    spectral_pass_32(const __grid_constant__ spectral_pass grid) {
    pass<32, 2, 2, 6, false>(grid);
}

extern "C" __global__ void __launch_bounds__(128, 2)
    spectral_pass_64(const __grid_constant__ spectral_pass grid) {
    pass<64, 2, 2, 4, false>(grid);
}

extern "C" __global__ void __launch_bounds__(256, 1)
    spectral_pass_128(const __grid_constant__ spectral_pass grid) {
    pass<128, 2, 4, 3, false>(grid);
}

extern "C" __global__ void __launch_bounds__(128, 2)
    spectral_pass_long(const __grid_constant__ spectral_pass grid) {
    pass<64, 2, 2, 4, true>(grid);
}
