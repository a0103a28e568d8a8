/*
 * mandelbrot_source.cuh: where a warp gets its samples from: the groups that it is dealt
 * (mandelbrot_grid.h), and its two queues in shared memory.
 *
 * Every function is called by whole warps; only the warp that owns a queue touches it.
 */
#ifndef KILN_CUDA_MANDELBROT_SOURCE_CUH
#define KILN_CUDA_MANDELBROT_SOURCE_CUH

#include "kernels/cuda/mandelbrot/mandelbrot_grid.h"
#include "kernels/cuda/mandelbrot/mandelbrot_step.cuh"

#define FULL 0xffffffffu
#define ROOM 64 /* of a queue: less than a warp's width wait when as many come */

/* A warp's share of the dealing; the same in every lane. */
struct source {
    uint32_t ahead; /* the next group, if `fetched` early; lane 0 only */
    uint32_t home;  /* the counter in use */
    bool fetched, more;
};

static __device__ __forceinline__ uint32_t group_dealt(uint32_t dealt, uint32_t home) {
    return gridDim.x * blockDim.y + dealt * MANDELBROT_COUNTERS + home;
}

static __device__ __forceinline__ void source_fetch(const mandelbrot_grid &grid, source &from,
                                                    unsigned lane) {
    if (lane == 0) {
        from.ahead =
            group_dealt(atomicAdd(grid.counters + from.home * MANDELBROT_SPREAD, 1u), from.home);
    }
}

/* Turns to a counter that has groups left; false where none has. */
static __device__ __forceinline__ bool source_turn(const mandelbrot_grid &grid, source &from,
                                                unsigned lane) {
    uint32_t dealt = __ldcg(grid.counters + lane * MANDELBROT_SPREAD);
    uint32_t left = __ballot_sync(FULL, group_dealt(dealt, lane) < grid.groups);
    uint32_t later = left & ~((2u << from.home) - 1);
    from.home = __ffs((int)(later ? later : left)) - 1;
    return left != 0;
}

/* The next group; from.more says whether there was one. `early`: fetch the one after it at once, so
   that nobody waits for it; a warp that will be busy must not hold one back from the others. */
static __device__ __forceinline__ uint32_t source_next(const mandelbrot_grid &grid, source &from,
                                                       unsigned lane, bool early) {
    uint32_t group;
    do {
        if (!from.fetched) {
            source_fetch(grid, from, lane);
        }
        from.fetched = false;
        group = __shfl_sync(FULL, from.ahead, 0);
    } while (group >= grid.groups && (from.more = source_turn(grid, from, lane)));
    if (from.more && early) {
        source_fetch(grid, from, lane);
        from.fetched = true;
    }
    return group;
}

/* Orbits that wait, last in first out. How many there are, its warp knows. */
template <typename T> struct queue {
    T cx[ROOM], cy[ROOM], x[ROOM], y[ROOM];
    uint32_t n[ROOM], index[ROOM];
};

template <typename T>
static __device__ __forceinline__ void queue_store(queue<T> &q, uint32_t at, const orbit<T> &o) {
    q.cx[at] = o.cx;
    q.cy[at] = o.cy;
    q.x[at] = o.x;
    q.y[at] = o.y;
    q.n[at] = o.n;
    q.index[at] = o.index;
}

template <typename T>
static __device__ __forceinline__ void queue_load(const queue<T> &q, uint32_t at, orbit<T> &o) {
    o.cx = q.cx[at];
    o.cy = q.cy[at];
    o.x = q.x[at];
    o.y = q.y[at];
    o.n = q.n[at];
    o.index = q.index[at];
}

/* Set bits below the lane's own. */
static __device__ __forceinline__ uint32_t rank_of(uint32_t bits, unsigned lane) {
    return (uint32_t)__popc(bits & ((1u << lane) - 1));
}

/* Appends the orbits of the lanes that ask for it. */
template <typename T>
static __device__ __forceinline__ void queue_push(queue<T> &q, uint32_t &held, bool asks,
                                                  const orbit<T> &o, unsigned lane) {
    uint32_t asking = __ballot_sync(FULL, asks);
    if (asking == 0) {
        return;
    }
    if (asks) {
        queue_store(q, held + rank_of(asking, lane), o);
    }
    held += (uint32_t)__popc(asking);
    __syncwarp();
}

/* Gives the lanes that ask for it the last ones; true in a lane that got one. */
template <typename T>
static __device__ __forceinline__ bool queue_pop(const queue<T> &q, uint32_t &held, bool asks,
                                                 orbit<T> &o, unsigned lane) {
    uint32_t asking = __ballot_sync(FULL, asks), rank = rank_of(asking, lane);
    bool gets = asks && rank < held;
    if (gets) {
        queue_load(q, held - 1 - rank, o);
    }
    held -= min(held, (uint32_t)__popc(asking));
    __syncwarp();
    return gets;
}

#endif
