/*
 * mandelbrot.cu: escape counts (kernels/mandelbrot.h).
 *
 * A warp takes 32 neighbouring samples at a time and follows their FIRST steps closely: most samples
 * of most pictures are decided then, side by side. The others wait in the warp's queue until there
 * are enough to fill its lanes; then each lane iterates one of them to its end, so that a warp is
 * never held by its slowest sample:
 *   - A block of STEPS steps, or LONGER times as many where orbits have become old, runs without a
 *     test; the one at its end looks only whether the orbit has left by then. Those that have wait,
 *     with the point where the block began, until 32 can be followed to the very step.
 *   - Ended lanes wait until what their idling has cost equals what a refill costs.
 *   - Constants inside the main cardioid or the period-2 disc are not iterated, except in a rim
 *     where rounding could matter: there the orbit is left to decide.
 *   - An orbit that meets one of its own earlier points again, to the last bit, never leaves (Brent
 *     1980: the point kept is renewed at each doubling of the count). A block's length is a
 *     multiple of the commonest periods, so that one block shows them.
 *   - When nothing is left to deal, a block's warps go on in step and share what still runs: it is
 *     packed into fewer and fewer warps, which then have the multiprocessor to themselves.
 */
#include "kernels/cuda/mandelbrot/mandelbrot_grid.h"
#include "kernels/cuda/mandelbrot/mandelbrot_orbit.cuh"
#include "kernels/cuda/mandelbrot/mandelbrot_source.cuh"
#include "kernels/cuda/mandelbrot/mandelbrot_step.cuh"

#define OLD    1200 /* steps after which an orbit is likely to make as many again */
#define SHARE  5    /* one young orbit in so many does not keep a warp from longer blocks */
#define WASTE  8    /* lanes times blocks that may idle before a refill: what a refill costs */
#define LOOK   32   /* blocks between looks around */
/* Clocks between looks of a block at the stop word, about 2 ms: it lies in the host's memory and
   answers about a million times a second, all blocks together. */
#define STOP_CLOCKS (1u << 22)

/* What a block's warps share; touched by atomics only, but `cursor` at first. */
struct team {
    uint32_t ready;   /* warps that will get nothing more */
    uint32_t looked;  /* clock of the last look at the stop word */
    uint32_t stopped; /* it was set */
    uint32_t cursor;  /* orbits packed so far */
};

/* The same in every lane. */
struct warp_state {
    unsigned lane;
    uint32_t waiting, leaving; /* orbits in the queues */
    uint32_t blocks;           /* made, for LOOK */
    uint32_t repeat;           /* STEPS in a block */
    bool ready;
};

/* Gives every free lane an orbit, as long as there are any. */
template <typename T, bool MANY>
static __device__ __forceinline__ void refill(const mandelbrot_grid &grid, lane_state<T> &l,
                                              warp_state &w, source &from, queue<T> &waiting,
                                              T radius2) {
    bool empty = l.state == EMPTY;
    uint32_t want = (uint32_t)__popc(__ballot_sync(FULL, empty));
    while (from.more && w.waiting < want) {
        uint32_t group = source_next(grid, from, w.lane, want == 32 && w.waiting < 16);
        if (from.more) {
            orbit<T> o;
            bool stays = survives<T, MANY>(grid, group * 32 + w.lane, radius2, o);
            queue_push(waiting, w.waiting, stays, o, w.lane);
        }
    }
    if (queue_pop(waiting, w.waiting, empty, l.o, w.lane)) {
        l.kept_x = l.o.x;
        l.kept_y = l.o.y;
        l.due = 0;
        l.state = RUNNING;
    }
}

/* Finds the step in which orbits have left, for as many as a warp has lanes. */
template <typename T>
static __device__ __forceinline__ void leave(const mandelbrot_grid &grid, const queue<T> &leaving,
                                          uint32_t &held, unsigned lane, T radius2) {
    orbit<T> o;
    T norm2;
    if (queue_pop(leaving, held, true, o, lane)) {
        orbit_follow(o, o.n + STEPS * LONGER, radius2, norm2);
        answer_left(grid, o.index, o.n, norm2);
    }
}

/* Frees the lanes that have ended. */
template <typename T>
static __device__ __forceinline__ void settle(const mandelbrot_grid &grid, lane_state<T> &l,
                                              warp_state &w, queue<T> &leaving, T radius2) {
    if (w.leaving >= 32) {
        leave(grid, leaving, w.leaving, w.lane, radius2);
    }
    if (l.state == INSIDE) {
        answer(grid, l.o.index, -1, -1.0f);
        l.state = EMPTY;
    }
    bool left = l.state == LEFT;
    if (left) {
        l.o.x = l.start_x;
        l.o.y = l.start_y;
        l.o.n = l.start_n;
        l.state = EMPTY;
    }
    queue_push(leaving, w.leaving, left, l.o, w.lane);
}

/* Drops everything where the job was stopped; false then. */
template <typename T>
static __device__ __forceinline__ bool look_around(const mandelbrot_grid &grid, team &shared,
                                                lane_state<T> &l, warp_state &w) {
    uint32_t stopped = 0;
    if (w.lane == 0) {
        uint32_t now = (uint32_t)clock(), last = atomicAdd(&shared.looked, 0u);
        if (now - last >= STOP_CLOCKS && atomicCAS(&shared.looked, last, now) == last &&
            *grid.stop != 0) {
            atomicExch(&shared.stopped, 1u);
        }
        stopped = atomicAdd(&shared.stopped, 0u);
    }
    if (__shfl_sync(FULL, stopped, 0) == 0) {
        return true;
    }
    l.state = EMPTY;
    w.waiting = w.leaving = 0;
    return false;
}

/* How long the next blocks are. */
template <typename T>
static __device__ __forceinline__ void repeat_choose(const lane_state<T> &l, warp_state &w) {
    bool runs = l.state == RUNNING;
    uint32_t running = __ballot_sync(FULL, runs), young = __ballot_sync(FULL, runs && l.o.n < OLD);
    w.repeat = SHARE * __popc(young) <= __popc(running) ? LONGER : 1;
}

/* One block of every lane that runs; `close`: with a test each step. */
template <typename T>
static __device__ __forceinline__ void advance(const mandelbrot_grid &grid, lane_state<T> &l,
                                               uint32_t repeat, bool close, T radius2) {
    if (l.state == RUNNING) {
        if (close) {
            orbit_block_closely(grid, l, radius2);
        } else {
            orbit_block(grid, l, repeat, radius2);
        }
    }
}

template <typename T>
static __device__ __forceinline__ bool must_be_close(const mandelbrot_grid &grid,
                                                     const lane_state<T> &l) {
    return grid.may_return &&
           __any_sync(FULL, l.state == RUNNING && may_return(l.o.cx, l.o.cy));
}

/* Runs the lanes' orbits until a refill pays, or until all warps are ready; false then. */
template <typename T>
static __device__ __forceinline__ bool run(const mandelbrot_grid &grid, team &shared,
                                           lane_state<T> &l, warp_state &w, source &from,
                                           T radius2) {
    uint32_t waste = 0, running, limit = w.ready ? ~0u : WASTE;
    bool close = must_be_close(grid, l);
    repeat_choose(l, w);
    do {
        if (w.ready) {
            uint32_t ready = w.lane == 0 ? atomicAdd(&shared.ready, 0u) : 0;
            if (__shfl_sync(FULL, ready, 0) == blockDim.y) {
                return false;
            }
        }
        advance(grid, l, w.repeat, close, radius2);
        running = __ballot_sync(FULL, l.state == RUNNING);
        waste += (32 - (uint32_t)__popc(running)) * w.repeat;
        if (++w.blocks % LOOK == 0) {
            repeat_choose(l, w);
            from.more = look_around(grid, shared, l, w) && from.more;
        }
    } while (running != 0 && waste < limit);
    return true;
}

/* Gives the block's `total` running orbits to its first lanes. */
template <typename T>
static __device__ __forceinline__ void pack(team &shared, lane_state<T> &l, const warp_state &w,
                                            queue<T> *queues, uint32_t total) {
    uint32_t running = __ballot_sync(FULL, l.state == RUNNING), base = 0;
    if (w.lane == 0) {
        base = atomicAdd(&shared.cursor, (uint32_t)__popc(running));
    }
    base = __shfl_sync(FULL, base, 0) + rank_of(running, w.lane);
    if (l.state == RUNNING) {
        queue_store(queues[base / 32], base % 32, l.o);
    }
    __syncthreads();
    l.state = EMPTY;
    if (threadIdx.y * 32 + w.lane < total) {
        queue_load(queues[threadIdx.y], w.lane, l.o);
        l.kept_x = l.o.x;
        l.kept_y = l.o.y;
        l.due = 2 * l.o.n;
        l.state = RUNNING;
    }
    if (threadIdx.y == 0 && w.lane == 0) {
        shared.cursor = 0;
    }
}

/* The end, when every warp of the block has nothing but what runs in its lanes. */
template <typename T>
static __device__ __forceinline__ void run_together(const mandelbrot_grid &grid, team &shared,
                                                    lane_state<T> &l, warp_state &w,
                                                    queue<T> *waiting, queue<T> &leaving,
                                                    T radius2) {
    uint32_t total, warps = blockDim.y;
    while ((total = (uint32_t)__syncthreads_count(l.state == RUNNING)) != 0) {
        if (total <= 32 * (warps - 1)) {
            warps = (total + 31) / 32;
            pack(shared, l, w, waiting, total);
        }
        if (__any_sync(FULL, l.state == RUNNING)) {
            repeat_choose(l, w);
            advance(grid, l, w.repeat, must_be_close(grid, l), radius2);
            settle(grid, l, w, leaving, radius2);
            if (++w.blocks % LOOK == 0) {
                look_around(grid, shared, l, w);
            }
        }
    }
}

/* MANY: several pictures, each with a view of its own. */
template <typename T, bool MANY>
static __device__ __forceinline__ void mandelbrot(const mandelbrot_grid &grid) {
    __shared__ queue<T> waiting[MANDELBROT_WARPS], leaving[MANDELBROT_WARPS];
    __shared__ team shared;
    uint32_t warp = blockIdx.x * blockDim.y + threadIdx.y;
    warp_state w = {threadIdx.x, 0, 0, 0, 1, false};
    if (warp == 0) {
        grid.next[w.lane * MANDELBROT_SPREAD] = 0;
    }
    if (threadIdx.y == 0 && w.lane == 0) {
        /* Blocks look one after another. */
        uint32_t lag = STOP_CLOCKS / gridDim.x * blockIdx.x;
        shared = {0, (uint32_t)clock() - lag, 0, 0};
    }
    __syncthreads();
    T radius2 = real<T>::from(grid.radius2);
    source from = {warp, warp % MANDELBROT_COUNTERS, true, true};
    lane_state<T> l;
    l.state = EMPTY;
    uint32_t running;
    do {
        settle(grid, l, w, leaving[threadIdx.y], radius2);
        refill<T, MANY>(grid, l, w, from, waiting[threadIdx.y], radius2);
        if (!w.ready && !from.more && w.waiting == 0) {
            w.ready = true;
            if (w.lane == 0) {
                atomicAdd(&shared.ready, 1u);
            }
        }
        running = __ballot_sync(FULL, l.state == RUNNING);
    } while (running != 0 && run(grid, shared, l, w, from, radius2));
    settle(grid, l, w, leaving[threadIdx.y], radius2);
    run_together(grid, shared, l, w, waiting, leaving[threadIdx.y], radius2);
    while (w.leaving > 0) {
        leave(grid, leaving[threadIdx.y], w.leaving, w.lane, radius2);
    }
}

extern "C" __global__ void __launch_bounds__(32 * MANDELBROT_WARPS, 5)
    mandelbrot_fp32(const __grid_constant__ mandelbrot_grid grid) {
    mandelbrot<float, false>(grid);
}

extern "C" __global__ void __launch_bounds__(32 * MANDELBROT_WARPS, 3)
    mandelbrot_fp64(const __grid_constant__ mandelbrot_grid grid) {
    mandelbrot<double, false>(grid);
}

extern "C" __global__ void __launch_bounds__(32 * MANDELBROT_WARPS, 5)
    mandelbrot_views_fp32(const __grid_constant__ mandelbrot_grid grid) {
    mandelbrot<float, true>(grid);
}

extern "C" __global__ void __launch_bounds__(32 * MANDELBROT_WARPS, 3)
    mandelbrot_views_fp64(const __grid_constant__ mandelbrot_grid grid) {
    mandelbrot<double, true>(grid);
}
