/*
 * mandelbrot_orbit.cuh: what one lane does with one sample: its first steps, its blocks of steps
 * without a test, and its answer.
 */
#ifndef KILN_CUDA_MANDELBROT_ORBIT_CUH
#define KILN_CUDA_MANDELBROT_ORBIT_CUH

#include "kernels/cuda/mandelbrot/mandelbrot_grid.h"
#include "kernels/cuda/mandelbrot/mandelbrot_step.cuh"

#define FIRST  40 /* steps of every sample: 100, 400, 1000, 10 000 are 40 and whole blocks */
#define STEPS  60 /* of a block; a multiple of the commonest periods */
#define LONGER 4  /* blocks between tests of orbits that are old */

enum state { EMPTY, RUNNING, LEFT, INSIDE };

/* A lane's orbit and what is remembered of it. */
template <typename T> struct lane_state {
    orbit<T> o;
    T start_x, start_y; /* before the last block; at o.n of then */
    T kept_x, kept_y;   /* an earlier point */
    uint32_t due;       /* when to renew it */
    uint32_t start_n;
    int state;
};

static __device__ __forceinline__ void answer(const mandelbrot_grid &grid, uint32_t index,
                                              int32_t count, float smooth) {
    if (grid.count != nullptr) {
        grid.count[index] = count;
    }
    if (grid.smooth != nullptr) {
        grid.smooth[index] = smooth;
    }
}

/* For an orbit that has left with step n. */
template <typename T>
static __device__ __forceinline__ void answer_left(const mandelbrot_grid &grid, uint32_t index,
                                                   uint32_t n, T norm2) {
    int32_t count = -1;
    float smooth = -1.0f;
    if (n <= grid.max_iter) {
        count = (int32_t)n;
        smooth = (float)n;
        if (grid.continuous) {
            smooth = mandelbrot_smooth(count, real<T>::fraction(norm2, grid.inverse));
        }
    }
    answer(grid, index, count, smooth);
}

/* Quotient and remainder; by the rounded inverse the quotient may be one too small. */
static __device__ __forceinline__ uint32_t divide(uint32_t number, uint32_t by, uint32_t reciprocal,
                                                  uint32_t &rest) {
    uint32_t quotient = __umulhi(number, reciprocal);
    rest = number - quotient * by;
    if (rest >= by) {
        rest -= by;
        quotient++;
    }
    return quotient;
}

/* Sample `index` of the pictures before its first step. */
template <typename T, bool MANY>
static __device__ __forceinline__ orbit<T> orbit_start(const mandelbrot_grid &grid,
                                                       uint32_t index) {
    uint32_t column, picture = 0, row = divide(index, grid.width, grid.reciprocal, column);
    if (MANY) {
        picture = divide(row, grid.height, grid.height_reciprocal, row);
    }
    const mandelbrot_view &view = grid.view[picture];
    orbit<T> o;
    o.cx = real<T>::from(__fma_rn((double)column, view.dx, view.x0));
    o.cy = real<T>::from(__fma_rn((double)row, view.dy, view.y0));
    o.x = o.y = 0;
    o.n = 0;
    o.index = index;
    return o;
}

/* A sample's first steps; false where they decide it. */
template <typename T, bool MANY>
static __device__ __forceinline__ bool survives(const mandelbrot_grid &grid, uint32_t index,
                                                T radius2, orbit<T> &o) {
    if (index >= grid.samples) {
        return false;
    }
    o = orbit_start<T, MANY>(grid, index);
    bool left = false, inside = surely_inside((float)o.cx, (float)o.cy);
    T norm2 = 0;
    if (!inside) {
        if (grid.may_return && may_return(o.cx, o.cy)) {
            left = orbit_follow_closely(o, FIRST, radius2, norm2);
        } else {
            left = orbit_follow(o, FIRST, radius2, norm2);
        }
    }
    if (!left && !inside && grid.max_iter > FIRST) {
        return true;
    }
    answer_left(grid, index, left ? o.n : ~0u, norm2);
    return false;
}

/* After a block that stayed inside. */
template <typename T>
static __device__ __forceinline__ void orbit_stayed(const mandelbrot_grid &grid, lane_state<T> &l) {
    if (l.o.n >= grid.max_iter || (l.o.x == l.kept_x && l.o.y == l.kept_y)) {
        l.state = INSIDE;
    }
    if (l.o.n >= l.due) {
        l.kept_x = l.o.x;
        l.kept_y = l.o.y;
        l.due = 2 * l.o.n;
    }
}

template <typename T>
static __device__ __forceinline__ void orbit_block(const mandelbrot_grid &grid, lane_state<T> &l,
                                                   uint32_t repeat, T radius2) {
    l.start_x = l.o.x;
    l.start_y = l.o.y;
    l.start_n = l.o.n;
    for (uint32_t r = repeat; r > 0; r--) {
#pragma unroll
        for (int s = 0; s < STEPS; s++) {
            step(l.o.x, l.o.y, l.o.cx, l.o.cy);
        }
    }
    l.o.n += STEPS * repeat;
    orbit_stayed(grid, l);
    if (outside(norm(l.o.x, l.o.y), radius2)) {
        l.state = LEFT;
    }
}

/* The same with a test each step, for warps with an orbit that may return. */
template <typename T>
static __device__ __forceinline__ void orbit_block_closely(const mandelbrot_grid &grid,
                                                           lane_state<T> &l, T radius2) {
    T norm2;
    if (orbit_follow_closely(l.o, l.o.n + STEPS, radius2, norm2)) {
        answer_left(grid, l.o.index, l.o.n, norm2);
        l.state = EMPTY;
    } else {
        orbit_stayed(grid, l);
    }
}

#endif
