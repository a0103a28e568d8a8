/*
 * jacobi.cu: literal Jacobi sweeps (kernels/jacobi.h), many of them between exchanges.
 *
 * One cooperative launch does the whole run, in one of three ways, `depth` sweeps a pass.
 *
 * Resident: each block keeps one tile for the whole run and takes only the frame from others. Every
 * cell travels as words of 32 bits beside the number of its pass, so a reader sees by the word
 * itself that it is the right one: no fence, flag or barrier is between writer and reader. There are
 * two pictures of such words, used in turn: who writes pass n has read all frames of pass n − 1, so
 * its neighbours had read those of n − 2.
 *
 * Marching: warps march down strips of the array (jacobi_march.cuh); all blocks meet after a pass.
 *
 * Streamed: blocks go through many tiles a pass. The tile's own part is written out, all blocks meet,
 * and the next pass reads anew. Passes write to two buffers in turn.
 *
 * All blocks agree on stopping: the host's word travels in the counter of the barrier, and the
 * residual of a check is complete at the barrier after it.
 */
#include "kernels/cuda/jacobi/jacobi_mail.cuh"
#include "kernels/cuda/jacobi/jacobi_march.cuh"
#include "kernels/cuda/jacobi/jacobi_passing.cuh"
#include "kernels/cuda/jacobi/jacobi_tile.cuh"

#define STOP (1ull << 48)

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
        to[i] = from != nullptr ? __ldcg(from + i) : (T)0;
    }
}

/* The thread's first cell in the first picture. */
template <typename T>
static __device__ unsigned long long *mail_place(const jacobi_grid &grid, const place &at) {
    int64_t line = at.plane * grid.height + at.row;
    return grid.mail + line * grid.pitch * (int)(sizeof(T) / 4) + at.column / ACROSS * 2;
}

/* Gives the tile's own part to whom it concerns and takes the frame from others. */
template <typename T, int ROWS>
INLINE void frame_exchange(const jacobi_grid &grid, const place &at, unsigned long long *mails,
                           unsigned pass, T (&x)[ROWS][ACROSS]) {
    constexpr int together = ROWS * (int)sizeof(T) > 16 ? 16 / (int)sizeof(T) : ROWS;
    int64_t line = grid.pitch * (int)(sizeof(T) / 4), step = grid.pitch / 2;
    int64_t planes = grid.tiles / grid.tiles_x / grid.tiles_y;
    mails += pass & 1 ? planes * grid.height * line : 0;
#pragma unroll
    for (int r = 0; r < ROWS; r++) {
        if (row_bits(at.own, r)) {
            mail_send<T>(mails + r * line, step, mail_of<T>(x[r], pass));
        }
    }
    unsigned wanted = at.inside & ~at.own;
#pragma unroll
    for (int first = 0; first < ROWS; first += together) {
        mail<T> in[together];
        bool missing[together], any;
#pragma unroll
        for (int r = 0; r < together && first + r < ROWS; r++) {
            in[r] = mail_of<T>(x[first + r], pass);
            missing[r] = row_bits(wanted, first + r) != 0;
        }
        do {
            any = false;
#pragma unroll
            for (int r = 0; r < together && first + r < ROWS; r++) {
                mail_receive<T>(mails + (first + r) * line, step, missing[r], in[r]);
            }
#pragma unroll
            for (int r = 0; r < together && first + r < ROWS; r++) {
                missing[r] = mail_missing<T>(in[r], pass);
                any |= missing[r];
            }
        } while (any);
#pragma unroll
        for (int r = 0; r < together && first + r < ROWS; r++) {
            cells_of(in[r].word, x[first + r]);
        }
    }
}

/* What both ways do around the sweeps of a pass. */
struct pass {
    int length;
    unsigned index;
    bool measure, look;
    uint32_t stop;
};

INLINE bool first_thread() {
    return threadIdx.x == 0 && threadIdx.y == 0;
}

static __device__ pass pass_begin(const jacobi_grid &grid, const progress &run) {
    pass pass = {0, run.passes, false, run.passes % grid.poll == grid.poll - 1, 0};
    pass.length = pass_length(grid, run, pass.measure);
    if (first_thread() && blockIdx.x == 0 && pass.look) {
        pass.stop = *grid.stop;
        *grid.progress = (uint32_t)((double)run.done / (double)grid.iterations * 65536.0);
    }
    if (first_thread() && blockIdx.x == 0 && pass.measure) {
        /* Last read two checks ago, next used after the coming barrier. */
        grid.shared->residual[(run.checks + 1) % 3] = 0;
    }
    return pass;
}

/* True where the run ends here. */
static __device__ bool pass_end(const jacobi_grid &grid, const pass &pass, bool together,
                                double worst, unsigned long long *goal, progress &run) {
    if (pass.measure) {
        residual_raise(worst, &grid.shared->residual[run.checks % 3]);
    }
    run.done += pass.length;
    run.passes++;
    bool end = run.done >= grid.iterations;
    if (together || pass.look || pass.measure) {
        end = meet(grid.shared, goal, pass.stop != 0) || end;
    }
    return (pass.measure && residual_check(grid, run)) || end;
}

static __device__ void report_begin(const jacobi_grid &grid, unsigned long long *goal) {
    if (first_thread()) {
        *goal = 0;
    }
    if (first_thread() && blockIdx.x == 0 && grid.report) {
        grid.report->residual = __longlong_as_double(0x7ff8000000000000ll);
    }
}

static __device__ void report_end(const jacobi_grid &grid, const progress &run) {
    if (first_thread() && blockIdx.x == 0 && grid.report) {
        grid.report->sweeps = run.done;
    }
}

template <typename T, int ROWS> static __device__ void resident(const jacobi_grid &grid) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ unsigned long long goal;
    borders<T> shared = {(uint4 *)memory, 0};
    T x[ROWS][ACROSS], b[ROWS][ACROSS];
    progress run = {0, 0, 0};
    place at = place_find<ROWS>(grid, blockIdx.x);
    cells_load(grid, at, (const T *)grid.start, x);
    cells_load(grid, at, (const T *)grid.b, b);
    unsigned long long *mails = mail_place<T>(grid, at);
    tile_kind kind = tile_begin(grid, at, b);
    report_begin(grid, &goal);
    for (bool end = grid.iterations == 0; !end;) {
        double worst = 0;
        pass pass = pass_begin(grid, run);
        tile_sweep(grid, shared, at, kind, x, b, pass.length, pass.measure, worst);
        end = pass_end(grid, pass, false, worst, &goal, run);
        if (!end) {
            frame_exchange(grid, at, mails, run.passes, x);
        }
    }
    cells_store(grid, at, (T *)grid.x, x);
    report_end(grid, run);
}

/* One pass over the block's tiles. */
template <typename T, int ROWS>
INLINE void tiles_sweep(const jacobi_grid &grid, passing::borders<T> *shared, unsigned &turn,
                        const T *source, T *target, const pass &pass, T (&x)[ROWS][ACROSS],
                        T (&b)[ROWS][ACROSS], double &worst) {
    for (uint32_t tile = blockIdx.x; tile < grid.tiles; tile += gridDim.x) {
        passing::place at = passing::place_find(grid, tile, blockDim.y * ROWS);
        passing::cells_load(grid, at, source, x);
        if (pass.index == 0 || grid.tiles > gridDim.x) {
            passing::cells_load(grid, at, (const T *)grid.b, b);
        }
        if (at.edge) {
            passing::sweeps<T, ROWS, true>(grid, shared, at, x, b, pass.length, pass.measure, turn,
                                           worst);
        } else {
            passing::sweeps<T, ROWS, false>(grid, shared, at, x, b, pass.length, pass.measure, turn,
                                            worst);
        }
        passing::cells_store(grid, at, target, x);
    }
}

template <typename T, int ROWS> static __device__ void streamed(const jacobi_grid &grid) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ unsigned long long goal;
    passing::borders<T> *shared = (passing::borders<T> *)memory;
    T x[ROWS][ACROSS], b[ROWS][ACROSS];
    unsigned turn = 0;
    const T *source = (const T *)grid.start;
    progress run = {0, 0, 0};
    report_begin(grid, &goal);
    for (bool end = grid.iterations == 0; !end;) {
        double worst = 0;
        pass pass = pass_begin(grid, run);
        T *target = (T *)grid.targets[run.passes & 1];
        tiles_sweep(grid, shared, turn, source, target, pass, x, b, worst);
        end = pass_end(grid, pass, true, worst, &goal, run);
        source = target;
    }
    if (source != (const T *)grid.x) {
        copy(grid, source, (T *)grid.x);
    }
    report_end(grid, run);
}

template <typename T> static __device__ bool b_fusible(const jacobi_grid &grid,
                                                      unsigned long long *goal) {
    int64_t planes = grid.tiles / grid.tiles_x / grid.tiles_y;
    if (!all_fusible<T>(grid, planes * grid.height * grid.width)) {
        atomicMax(&grid.shared->unfusible, 1ull);
    }
    meet(grid.shared, goal, false);
    return load_acquire(&grid.shared->unfusible) == 0;
}

template <typename T, int LEVELS>
static __device__ void marching(const jacobi_grid &grid) {
    extern __shared__ __align__(16) unsigned char memory[];
    __shared__ unsigned long long goal;
    uint4 *ring = (uint4 *)memory +
                  (threadIdx.y * (JACOBI_AHEAD + 1) * 4 * borders<T>::parts * 32 + threadIdx.x);
    uint32_t warp = __shfl_sync(FULL, blockIdx.x * blockDim.y + threadIdx.y, 0);
    leg<T> leg = {(const T *)grid.start, (const T *)grid.b, NULL, 0, false, false};
    progress run = {0, 0, 0};
    report_begin(grid, &goal);
    leg.fused = grid.iterations > 0 && b_fusible<T>(grid, &goal);
    for (bool end = grid.iterations == 0; !end;) {
        double worst = 0;
        pass pass = pass_begin(grid, run);
        leg.target = (T *)grid.targets[run.passes & 1];
        leg.length = pass.length;
        leg.measure = pass.measure;
        for (uint32_t i = warp; i < grid.tiles; i += gridDim.x * blockDim.y) {
            part_march<T, LEVELS>(grid, i, leg, ring, worst);
        }
        end = pass_end(grid, pass, true, worst, &goal, run);
        leg.source = leg.target;
    }
    if (leg.source != (const T *)grid.x) {
        copy(grid, leg.source, (T *)grid.x);
    }
    report_end(grid, run);
}

#define KERNEL(name, way, type, rows, threads)                                                     \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                       \
        name(const __grid_constant__ jacobi_grid grid) {                                           \
        way<type, rows>(grid);                                                                     \
    }

#define MARCH(name, type, levels, threads)                                                         \
    extern "C" __global__ void __launch_bounds__(threads, 1)                                       \
        name(const __grid_constant__ jacobi_grid grid) {                                           \
        marching<type, levels>(grid);                                                       \
    }

KERNEL(jacobi_fp32_4, resident, float, 4, 256)
KERNEL(jacobi_fp32_6, resident, float, 6, 256)
KERNEL(jacobi_fp32_8, resident, float, 8, 256)
MARCH(jacobi_fp32_marching, float, 8, 384)
KERNEL(jacobi_fp64_2, resident, double, 2, 256)
KERNEL(jacobi_fp64_4, resident, double, 4, 256)
KERNEL(jacobi_fp64_streamed, streamed, double, 4, 512)
