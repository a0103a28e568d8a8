/*
 * mandelbrot.cu: escape counts (kernels/mandelbrot.h).
 *
 * Each lane iterates one sample and takes another when that is decided, so that a warp is never held
 * by its slowest sample:
 *   - STEPS steps run without a test; the test at their end looks only whether the orbit has left
 *     by then (once outside it cannot come back, see `careful`). The exact step is found by running
 *     the same block again from its saved start, with a test each step.
 *   - Decided lanes wait until what their idling has cost equals what a refill costs; then all are
 *     finished and refilled together.
 *   - Constants inside the main cardioid or the period-2 disc are not iterated, except in a rim where
 *     rounding could matter: there the orbit is left to decide.
 *   - An orbit that meets one of its own earlier points again, to the last bit, never leaves
 *     (Brent 1980: the point kept is renewed at each doubling of the count).
 */
#include "kernels/cuda/mandelbrot_grid.h"

#define FULL  0xffffffffu
#define STEPS 16
#define WASTE 96          /* lane-blocks that may idle before a refill: what a refill costs */
#define POLL  4096        /* blocks between looks at the stop word */
#define RIM   1e-3f       /* of the multiplier; sqrt of float's rounding is 2.4e-4 */

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
    static __device__ float log_norm(float norm2) {
        return logf(norm2);
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
    static __device__ float log_norm(double norm2) {
        return norm2 < 1e38 ? logf((float)norm2) : (float)log(norm2);
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

/* Is c well inside the main cardioid (multiplier 1 - sqrt(1-4c)) or the period-2 disc (4(c+1))? */
static __device__ __forceinline__ bool surely_inside(float cx, float cy) {
    float a = 1.0f - 4.0f * cx;
    float m = sqrtf(a * a + 16.0f * cy * cy);
    float multiplier2 = 1.0f - 2.0f * sqrtf(fmaxf(0.5f * (m + a), 0.0f)) + m;
    float disc = (cx + 1.0f) * (cx + 1.0f) + cy * cy;
    return multiplier2 <= (1.0f - RIM) * (1.0f - RIM) ||
           disc <= 0.0625f * (1.0f - RIM) * (1.0f - RIM);
}

/* A warp's source of samples. All members are the same in every lane, `ahead` excepted. */
struct source {
    uint64_t first, row; /* index of the span's next sample in the picture; its row */
    uint32_t column, left;
    unsigned long long ahead; /* lane 0: the span after this one */
    bool more;
};

static __device__ __forceinline__ void source_next(const mandelbrot_grid &grid, source &from,
                                                   unsigned lane, unsigned long long warps) {
    unsigned long long id = __shfl_sync(FULL, from.ahead, 0);
    if (id >= grid.spans) {
        from.more = false;
        return;
    }
    if (lane == 0) {
        /* Used one span later, so that nobody waits for the answer. */
        from.ahead = atomicAdd(grid.counter, 1ull) + warps;
    }
    uint64_t row = grid.spans <= 0xffffffffull ? (uint32_t)id / (uint32_t)grid.spans_per_row
                                               : id / grid.spans_per_row;
    int64_t column = (int64_t)(id - row * grid.spans_per_row) * grid.span;
    int64_t left = grid.width - column;
    from.row = row;
    from.column = (uint32_t)column;
    from.first = row * (uint64_t)grid.width + (uint64_t)column;
    from.left = left < (int64_t)grid.span ? (uint32_t)left : grid.span;
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

/* One lane's sample on its way. */
template <typename T> struct orbit {
    T cx, cy, x, y;
    T start_x, start_y; /* before the last block */
    T kept_x, kept_y;   /* an earlier point */
    uint32_t n, renew;  /* steps done before the last block or after it; when to renew `kept` */
    uint64_t index;
    int state;
    bool careful; /* |c| ≈ 2 and radius ≈ 2: rounding could bring z back over the border */
};

template <typename T>
static __device__ __forceinline__ void orbit_start(const mandelbrot_grid &grid, orbit<T> &o,
                                                   uint64_t index, uint32_t column, uint64_t row) {
    o.cx = real<T>::from(__fma_rn((double)column, grid.dx, grid.x0));
    o.cy = real<T>::from(__fma_rn((double)row, grid.dy, grid.y0));
    o.index = index;
    if (surely_inside((float)o.cx, (float)o.cy)) {
        answer(grid, index, -1, -1.0f);
        return;
    }
    o.x = o.y = o.kept_x = o.kept_y = 0;
    o.n = 0;
    o.renew = STEPS;
    o.careful = grid.radius2 < 4.05 && !(norm(o.cx, o.cy) <= (T)3.99);
    o.state = RUNNING;
}

/* After a block that stayed inside: n has been raised. */
template <typename T>
static __device__ __forceinline__ void orbit_stayed(const mandelbrot_grid &grid, orbit<T> &o) {
    if (o.n >= grid.max_iter || (o.x == o.kept_x && o.y == o.kept_y)) {
        o.state = INSIDE;
    } else if (o.n >= o.renew) {
        o.kept_x = o.x;
        o.kept_y = o.y;
        o.renew = 2 * o.n;
    }
}

template <typename T>
static __device__ __forceinline__ void orbit_block(const mandelbrot_grid &grid, orbit<T> &o,
                                                   T radius2) {
    o.start_x = o.x;
    o.start_y = o.y;
#pragma unroll
    for (int s = 0; s < STEPS; s++) {
        step(o.x, o.y, o.cx, o.cy);
    }
    if (!(norm(o.x, o.y) <= radius2) || o.careful) { /* also where it has become NaN */
        o.state = ESCAPED;
    } else {
        o.n += STEPS;
        orbit_stayed(grid, o);
    }
}

/* Runs the last block again with a test each step, and writes the answer. A careful orbit may turn
   out to have stayed inside. */
template <typename T>
static __device__ __forceinline__ void orbit_replay(const mandelbrot_grid &grid, orbit<T> &o,
                                                    T radius2) {
    T norm2 = 0;
    uint32_t s = 0;
    bool left = false;
    o.x = o.start_x;
    o.y = o.start_y;
    while (!left && s < STEPS) {
        step(o.x, o.y, o.cx, o.cy);
        norm2 = norm(o.x, o.y);
        left = norm2 > radius2;
        s++;
    }
    o.n += s;
    if (!left) {
        o.state = RUNNING;
        orbit_stayed(grid, o);
    } else if (o.n > grid.max_iter) {
        o.state = INSIDE;
    } else {
        float smooth = (float)o.n;
        if (grid.continuous) {
            float ratio = 0.5f * real<T>::log_norm(norm2) * grid.inverse_log;
            smooth = (float)((double)o.n - (double)log2f(ratio));
        }
        answer(grid, o.index, (int32_t)o.n, smooth);
        o.state = EMPTY;
    }
}

/* Gives every lane that has none a sample, as long as there are any. */
template <typename T>
static __device__ __forceinline__ void refill(const mandelbrot_grid &grid, orbit<T> &o,
                                              source &from, unsigned lane,
                                              unsigned long long warps) {
    unsigned want;
    while ((want = __ballot_sync(FULL, o.state == EMPTY)) != 0 && from.more) {
        if (from.left == 0) {
            source_next(grid, from, lane, warps);
            continue;
        }
        uint32_t rank = __popc(want & ((1u << lane) - 1));
        if (o.state == EMPTY && rank < from.left) {
            orbit_start(grid, o, from.first + rank, from.column + rank, from.row);
        }
        uint32_t taken = min((uint32_t)__popc(want), from.left);
        from.first += taken;
        from.column += taken;
        from.left -= taken;
    }
}

template <typename T> static __device__ void mandelbrot(const mandelbrot_grid &grid) {
    unsigned lane = threadIdx.x;
    unsigned long long warps = (unsigned long long)gridDim.x * blockDim.y;
    unsigned long long warp = (unsigned long long)blockIdx.x * blockDim.y + threadIdx.y;
    T radius2 = real<T>::from(grid.radius2);
    source from = {0, 0, 0, 0, warp, true};
    orbit<T> o;
    o.state = EMPTY;
    unsigned blocks = 0;
    while (true) {
        if (o.state == ESCAPED) {
            orbit_replay(grid, o, radius2);
        }
        if (o.state == INSIDE) {
            answer(grid, o.index, -1, -1.0f);
            o.state = EMPTY;
        }
        refill(grid, o, from, lane, warps);
        unsigned running = __ballot_sync(FULL, o.state == RUNNING);
        if (running == 0) {
            return;
        }
        /* At the end, when nothing can be refilled, waiting costs nothing. */
        unsigned waste = 0, limit = from.more ? WASTE : ~0u;
        do {
            if (o.state == RUNNING) {
                orbit_block(grid, o, radius2);
            }
            running = __ballot_sync(FULL, o.state == RUNNING);
            waste += 32 - __popc(running);
            if (++blocks % POLL == 0) {
                unsigned stop = lane == 0 ? *grid.stop : 0;
                if (__shfl_sync(FULL, stop, 0) != 0) {
                    return;
                }
            }
        } while (running != 0 && waste < limit);
    }
}

extern "C" __global__ void __launch_bounds__(256, 4)
    mandelbrot_fp32(const __grid_constant__ mandelbrot_grid grid) {
    mandelbrot<float>(grid);
}

extern "C" __global__ void __launch_bounds__(256, 4)
    mandelbrot_fp64(const __grid_constant__ mandelbrot_grid grid) {
    mandelbrot<double>(grid);
}
