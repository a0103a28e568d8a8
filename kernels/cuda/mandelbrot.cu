/*
 * mandelbrot.cu: escape counts (kernels/mandelbrot.h).
 *
 * A warp takes 32 neighbouring samples at a time and makes their FIRST steps with a test each: most
 * samples of most pictures are decided then, side by side. The others wait in the warp's queue for
 * a lane that is free; such a lane iterates one of them to its end, so that a warp is never held by
 * its slowest sample:
 *   - STEPS steps run without a test; the test at their end looks only whether the orbit has left
 *     by then (once outside it cannot come back, see `careful`). The exact step is found by running
 *     the same block again from its saved start.
 *   - Decided lanes wait until what their idling has cost equals what a refill costs; then all are
 *     finished and refilled together.
 *   - Constants inside the main cardioid or the period-2 disc are not iterated, except in a rim
 * where rounding could matter: there the orbit is left to decide.
 *   - An orbit that meets one of its own earlier points again, to the last bit, never leaves (Brent
 *     1980: the point kept is renewed at each doubling of the count). A block's length is a
 * multiple of the commonest periods, so that one block shows them.
 */
#include "kernels/cuda/mandelbrot_grid.h"

#define FULL  0xffffffffu
#define FIRST 32 /* steps with a test each that every sample makes */
#define STEPS 60 /* of a block; a multiple of the commonest periods */
#define PART  10 /* of a block when it is repeated */
#define WASTE 24 /* lane-blocks that may idle before a refill: what a refill costs */
/* Blocks between looks at the stop word: it lies in the host's memory and answers about a million
   times a second, all warps together. */
#define POLL ((1u << 21) / STEPS)
#define RIM  1e-3f /* of the multiplier; sqrt of float's rounding is 2.4e-4 */

enum state { EMPTY, RUNNING, ESCAPED, INSIDE };

template <typename T> struct real;

template <> struct real<float> {
    static __device__ float from(double value) {
        return __double2float_rn(value);
    }
    static __device__ float fma(float a, float b, float c) {
        return __fmaf_rn(a, b, c);
    }
    static __device__ float add(float a, float b) {
        return __fadd_rn(a, b);
    }
    static __device__ float mul(float a, float b) {
        return __fmul_rn(a, b);
    }
    static __device__ float log2_norm(float norm2) {
        return __log2f(norm2);
    }
};

template <> struct real<double> {
    static __device__ double from(double value) {
        return value;
    }
    static __device__ double fma(double a, double b, double c) {
        return __fma_rn(a, b, c);
    }
    static __device__ double add(double a, double b) {
        return __dadd_rn(a, b);
    }
    static __device__ double mul(double a, double b) {
        return __dmul_rn(a, b);
    }
    static __device__ float log2_norm(double norm2) {
        return norm2 < 1e38 ? __log2f((float)norm2) : (float)log2(norm2);
    }
};

/* One step, and |z|², in the order that kernels/mandelbrot.h fixes. */
template <typename T> static __device__ __forceinline__ void step(T &x, T &y, T cx, T cy) {
    T t = real<T>::fma(-y, y, cx);
    T u = real<T>::add(x, x);
    y = real<T>::fma(u, y, cy);
    x = real<T>::fma(x, x, t);
}

template <typename T> static __device__ __forceinline__ T norm(T x, T y) {
    return real<T>::fma(x, x, real<T>::mul(y, y));
}

/* Within 3 ulp, for 0 and more. */
static __device__ __forceinline__ float root(float x) {
    return x * rsqrtf(fmaxf(x, 1e-30f));
}

/* Is c well inside the main cardioid (multiplier 1 - sqrt(1-4c)) or the period-2 disc (4(c+1))? */
static __device__ __forceinline__ bool surely_inside(float cx, float cy) {
    if (fabsf(cy) > 0.66f || fabsf(cx + 0.4375f) > 0.8125f) {
        return false; /* spares most warps the rest */
    }
    float a = 1.0f - 4.0f * cx;
    float m = root(a * a + 16.0f * cy * cy);
    float multiplier2 = 1.0f - 2.0f * root(fmaxf(0.5f * (m + a), 0.0f)) + m;
    float disc = (cx + 1.0f) * (cx + 1.0f) + cy * cy;
    return multiplier2 <= (1.0f - RIM) * (1.0f - RIM) ||
           disc <= 0.0625f * (1.0f - RIM) * (1.0f - RIM);
}

/* Where a sample lies. */
struct place {
    uint64_t index;
    uint32_t column, row;
};

/* A warp's source of samples; the same in every lane. */
struct source {
    place first;     /* of the group in hand */
    uint32_t queued; /* its samples that wait for a lane, one bit each */
    uint32_t ahead;  /* the group after it, if `fetched` early; lane 0 only */
    uint32_t home;   /* the counter in use */
    bool fetched, more;
};

static __device__ __forceinline__ uint32_t group_fetch(const mandelbrot_grid &grid, uint32_t home,
                                                       unsigned lane) {
    uint32_t dealt = lane == 0 ? atomicAdd(grid.counters + home * MANDELBROT_SPREAD, 1u) : 0;
    return gridDim.x * blockDim.y + dealt * MANDELBROT_COUNTERS + home;
}

/* Turns to a counter that has groups left; false where none has. */
static __device__ bool source_turn(const mandelbrot_grid &grid, source &from, unsigned lane) {
    uint32_t dealt = __ldcg(grid.counters + lane * MANDELBROT_SPREAD);
    uint32_t group = gridDim.x * blockDim.y + dealt * MANDELBROT_COUNTERS + lane;
    uint32_t left = __ballot_sync(FULL, group < grid.groups);
    uint32_t later = left & ~((2u << from.home) - 1);
    from.home = __ffs((int)(later ? later : left)) - 1;
    return left != 0;
}

static __device__ __forceinline__ void place_wrap(const mandelbrot_grid &grid, place &at) {
    while (at.column >= (uint32_t)grid.width) {
        at.column -= (uint32_t)grid.width;
        at.row++;
    }
}

/* The next group. `early`: fetch the one after it at once, so that nobody waits for it; a
   warp with long orbits in hand must not hold one back from the others. */
static __device__ __forceinline__ void source_next(const mandelbrot_grid &grid, source &from,
                                                   unsigned lane, bool early) {
    uint32_t group;
    do {
        if (!from.fetched) {
            from.ahead = group_fetch(grid, from.home, lane);
        }
        from.fetched = false;
        group = __shfl_sync(FULL, from.ahead, 0);
    } while (group >= grid.groups && (from.more = source_turn(grid, from, lane)));
    if (!from.more) {
        return;
    }
    if (early) {
        from.ahead = group_fetch(grid, from.home, lane);
        from.fetched = true;
    }
    uint64_t index = (uint64_t)group * 32;
    /* The quotient by the inverse may be off by one. */
    int64_t row = (int64_t)((double)(int64_t)index * grid.inverse_width);
    row -= row * grid.width > (int64_t)index;
    from.first = {index, (uint32_t)((int64_t)index - row * grid.width), (uint32_t)row};
    place_wrap(grid, from.first);
}

/* Sample number `offset` of the group in hand. */
static __device__ __forceinline__ place place_of(const mandelbrot_grid &grid, const source &from,
                                                 uint32_t offset) {
    place at = {from.first.index + offset, from.first.column + offset, from.first.row};
    place_wrap(grid, at);
    return at;
}

static __device__ __forceinline__ void answer(const mandelbrot_grid &grid, uint64_t index,
                                              int32_t count, float smooth) {
    if (grid.count) {
        grid.count[index] = count;
    }
    if (grid.smooth) {
        grid.smooth[index] = smooth;
    }
}

template <typename T>
static __device__ __forceinline__ void answer_left(const mandelbrot_grid &grid, uint64_t index,
                                                   uint32_t n, T norm2) {
    float smooth = (float)n;
    if (n > grid.max_iter) {
        answer(grid, index, -1, -1.0f);
        return;
    }
    if (grid.continuous) {
        smooth -= __log2f(real<T>::log2_norm(norm2) * grid.inverse_log2);
    }
    answer(grid, index, (int32_t)n, smooth);
}

/* One lane's sample on its way. */
template <typename T> struct orbit {
    T cx, cy, x, y;
    T start_x, start_y; /* before the last block */
    T kept_x, kept_y;   /* an earlier point */
    uint32_t n, due;    /* steps done; when to renew `kept` or to end */
    uint64_t index;
    int state;
    bool careful; /* |c| ≈ 2 and radius ≈ 2: rounding could bring z back over the border */
};

template <typename T>
static __device__ __forceinline__ void orbit_start(const mandelbrot_grid &grid, orbit<T> &o,
                                                   const place &at) {
    o.cx = real<T>::from(__fma_rn((double)at.column, grid.dx, grid.x0));
    o.cy = real<T>::from(__fma_rn((double)at.row, grid.dy, grid.y0));
    o.index = at.index;
    o.x = o.y = o.kept_x = o.kept_y = 0;
    o.n = 0;
}

/* A sample's first steps; false where they decide it. */
template <typename T>
static __device__ __forceinline__ bool survives(const mandelbrot_grid &grid, const place &at,
                                                T radius2) {
    if (at.index >= grid.samples) {
        return false;
    }
    orbit<T> o;
    orbit_start(grid, o, at);
    bool left = false, inside = surely_inside((float)o.cx, (float)o.cy);
    T norm2 = 0;
    if (!inside) {
#pragma unroll 4
        while (!left && o.n < FIRST) {
            step(o.x, o.y, o.cx, o.cy);
            norm2 = norm(o.x, o.y);
            left = norm2 > radius2;
            o.n++;
        }
    }
    if (left) {
        answer_left(grid, at.index, o.n, norm2);
    } else if (inside || grid.max_iter <= FIRST) {
        answer(grid, at.index, -1, -1.0f);
        inside = true;
    }
    return !left && !inside;
}

/* Has it come back to the point kept? */
template <typename T> static __device__ __forceinline__ bool orbit_repeats(const orbit<T> &o) {
    return o.x == o.kept_x && o.y == o.kept_y;
}

/* After a block that stayed inside, when n is due or the orbit repeats itself. */
template <typename T>
static __device__ __forceinline__ void orbit_stayed(const mandelbrot_grid &grid, orbit<T> &o) {
    if (o.n >= grid.max_iter || orbit_repeats(o)) {
        o.state = INSIDE;
    } else if (o.n >= o.due) {
        o.kept_x = o.x;
        o.kept_y = o.y;
        o.due = min(2 * o.n, grid.max_iter);
    }
}

/* True where something has happened. */
template <typename T>
static __device__ __forceinline__ bool orbit_block(const mandelbrot_grid &grid, orbit<T> &o,
                                                   T radius2) {
    o.start_x = o.x;
    o.start_y = o.y;
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        step(o.x, o.y, o.cx, o.cy);
    }
    o.n += STEPS;
    bool left = !(norm(o.x, o.y) <= radius2) || o.careful; /* also where it has become NaN */
    return left || o.n >= o.due || orbit_repeats(o);
}

/* What has happened. */
template <typename T>
static __device__ __forceinline__ void orbit_settle(const mandelbrot_grid &grid, orbit<T> &o,
                                                    T radius2) {
    if (!(norm(o.x, o.y) <= radius2) || o.careful) {
        o.state = ESCAPED;
        o.n -= STEPS;
    } else {
        orbit_stayed(grid, o);
    }
}

/* Runs the last block again: to the part in which the orbit leaves, then with a test each step, and
   writes the answer. A careful orbit may turn out to have stayed inside. */
template <typename T>
static __device__ __forceinline__ void orbit_replay(const mandelbrot_grid &grid, orbit<T> &o,
                                                    T radius2) {
    T norm2 = 0;
    uint32_t s = 0;
    bool left = o.careful;
    o.x = o.start_x;
    o.y = o.start_y;
    while (!left && s < STEPS - PART) {
        T x = o.x, y = o.y;
#pragma unroll
        for (int i = 0; i < PART; i++) {
            step(x, y, o.cx, o.cy);
        }
        left = !(norm(x, y) <= radius2);
        if (!left) {
            o.x = x;
            o.y = y;
            s += PART;
        }
    }
    left = false;
    while (!left && s < STEPS) {
        step(o.x, o.y, o.cx, o.cy);
        norm2 = norm(o.x, o.y);
        left = norm2 > radius2;
        s++;
    }
    o.n += s;
    if (left) {
        answer_left(grid, o.index, o.n, norm2);
        o.state = EMPTY;
    } else {
        o.state = RUNNING;
        orbit_stayed(grid, o);
    }
}

/* Position of the set bit with `rank` set bits below it. */
static __device__ __forceinline__ uint32_t bit_find(uint32_t bits, uint32_t rank) {
    uint32_t at = 0;
#pragma unroll
    for (uint32_t half = 16; half > 0; half /= 2) {
        uint32_t below = __popc(bits & ((1u << half) - 1));
        bool above = rank >= below;
        at += above ? half : 0;
        rank -= above ? below : 0;
        bits >>= above ? half : 0;
    }
    return at;
}

/* Gives every free lane a sample, as long as there are any. */
template <typename T>
static __device__ __forceinline__ void refill(const mandelbrot_grid &grid, orbit<T> &o,
                                              source &from, unsigned lane, T radius2) {
    uint32_t want;
    while ((want = __ballot_sync(FULL, o.state == EMPTY)) != 0) {
        if (from.queued == 0) {
            if (from.more) {
                source_next(grid, from, lane, want == FULL);
            }
            if (!from.more) {
                return;
            }
            from.queued = __ballot_sync(FULL, survives(grid, place_of(grid, from, lane), radius2));
            continue;
        }
        uint32_t below = (1u << lane) - 1, rank = __popc(want & below);
        if (o.state == EMPTY && rank < __popc(from.queued)) {
            orbit_start(grid, o, place_of(grid, from, bit_find(from.queued, rank)));
            o.due = min((uint32_t)STEPS, grid.max_iter);
            o.careful = grid.radius2 < 4.05 && !(norm(o.cx, o.cy) <= (T)3.99);
            o.state = RUNNING;
        }
        /* As many as there were lanes have gone, the lowest. */
        bool stays = (from.queued >> lane & 1) && __popc(from.queued & below) >= __popc(want);
        from.queued = __ballot_sync(FULL, stays);
    }
}

/* Runs the lanes' orbits until a refill pays; false where the job was stopped. */
template <typename T>
static __device__ __forceinline__ bool run(const mandelbrot_grid &grid, orbit<T> &o, T radius2,
                                           unsigned running, unsigned limit, unsigned &blocks,
                                           unsigned lane) {
    unsigned waste = 0;
    do {
        bool event = o.state == RUNNING && orbit_block(grid, o, radius2);
        if (__any_sync(FULL, event)) {
            if (event) {
                orbit_settle(grid, o, radius2);
            }
            running = __ballot_sync(FULL, o.state == RUNNING);
        }
        waste += 32 - __popc(running);
        if (++blocks % POLL == 0) {
            unsigned stop = lane == 0 ? *grid.stop : 0;
            if (__shfl_sync(FULL, stop, 0) != 0) {
                return false;
            }
        }
    } while (running != 0 && waste < limit);
    return true;
}

template <typename T> static __device__ void mandelbrot(const mandelbrot_grid &grid) {
    unsigned lane = threadIdx.x;
    unsigned warp = blockIdx.x * blockDim.y + threadIdx.y;
    if (warp == 0) {
        grid.next[lane * MANDELBROT_SPREAD] = 0;
    }
    T radius2 = real<T>::from(grid.radius2);
    source from = {};
    from.ahead = warp;
    from.home = warp % MANDELBROT_COUNTERS;
    from.fetched = from.more = true;
    orbit<T> o;
    o.state = EMPTY;
    unsigned blocks = warp * 61 % POLL, running; /* they look one after another */
    do {
        if (o.state == ESCAPED) {
            orbit_replay(grid, o, radius2);
        }
        if (o.state == INSIDE) {
            answer(grid, o.index, -1, -1.0f);
            o.state = EMPTY;
        }
        refill(grid, o, from, lane, radius2);
        running = __ballot_sync(FULL, o.state == RUNNING);
        /* At the end, when nothing can be refilled, waiting costs nothing. */
    } while (running != 0 && run(grid, o, radius2, running, from.more ? WASTE : ~0u, blocks, lane));
}

extern "C" __global__ void __launch_bounds__(256, 4)
    mandelbrot_fp32(const __grid_constant__ mandelbrot_grid grid) {
    mandelbrot<float>(grid);
}

extern "C" __global__ void __launch_bounds__(256, 4)
    mandelbrot_fp64(const __grid_constant__ mandelbrot_grid grid) {
    mandelbrot<double>(grid);
}
