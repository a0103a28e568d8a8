/*
 * mandelbrot_step.cuh: arithmetic of one sample: steps in the order that kernels/mandelbrot.h
 * fixes, the search for the step in which an orbit leaves, and the test that spares inside points.
 */
#ifndef KILN_CUDA_MANDELBROT_STEP_CUH
#define KILN_CUDA_MANDELBROT_STEP_CUH

#include "kernels/mandelbrot_smooth.h"

#include <stdint.h>

#define STRIDE 4     /* steps between tests where an orbit is followed closely */
#define RIM    1e-3f /* of the multiplier; sqrt of float's rounding is 2.4e-4 */

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
    static __device__ float fraction(float norm2, float inverse) {
        return mandelbrot_fraction_f32(norm2, inverse);
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
    static __device__ float fraction(double norm2, float inverse) {
        return mandelbrot_fraction_f64(norm2, inverse);
    }
};

/* A sample's orbit: its constant, z and the steps made. */
template <typename T> struct orbit {
    T cx, cy, x, y;
    uint32_t n, index;
};

template <typename T> static __device__ __forceinline__ void step(T &x, T &y, T cx, T cy) {
    T t = real<T>::fma(-y, y, cx);
    T u = real<T>::add(x, x);
    y = real<T>::fma(u, y, cy);
    x = real<T>::fma(x, x, t);
}

template <typename T> static __device__ __forceinline__ T norm(T x, T y) {
    return real<T>::fma(x, x, real<T>::mul(y, y));
}

/* Not inside; NaN, which follows infinity, is outside. */
template <typename T> static __device__ __forceinline__ bool outside(T norm2, T radius2) {
    return !(norm2 <= radius2);
}

/* Where the radius ≈ 2 (grid.may_return) and |c| ≈ 2, rounding could bring z back over the border.
   Elsewhere an orbit that has left is outside for ever: it need not be tested at each step. */
template <typename T> static __device__ __forceinline__ bool may_return(T cx, T cy) {
    return !(norm(cx, cy) <= (T)3.99);
}

/* Goes on to the step in which it leaves, or at least `limit` steps; true where it has left. A test
   every STRIDE steps; the points between are kept and tell the step. */
template <typename T>
static __device__ __forceinline__ bool orbit_follow(orbit<T> &o, uint32_t limit, T radius2,
                                                    T &norm2) {
    T x[STRIDE], y[STRIDE];
    x[0] = o.x;
    y[0] = o.y;
    bool left;
#pragma unroll 1
    do {
#pragma unroll
        for (int s = 0; s < STRIDE; s++) {
            T next_x = s ? x[s] : o.x, next_y = s ? y[s] : o.y;
            step(next_x, next_y, o.cx, o.cy);
            if (s + 1 < STRIDE) {
                x[s + 1] = next_x;
                y[s + 1] = next_y;
            } else {
                o.x = next_x;
                o.y = next_y;
            }
        }
        o.n += STRIDE;
        norm2 = norm(o.x, o.y);
        left = outside(norm2, radius2);
    } while (!left && o.n < limit);
    if (left) {
#pragma unroll
        for (int s = STRIDE - 1; s > 0; s--) {
            T earlier = norm(x[s], y[s]);
            if (outside(earlier, radius2)) {
                norm2 = earlier;
                o.n--;
            }
        }
    }
    return left;
}

/* The same with a test each step, for orbits that may return. */
template <typename T>
static __device__ __forceinline__ bool orbit_follow_closely(orbit<T> &o, uint32_t limit, T radius2,
                                                            T &norm2) {
    bool left = false;
#pragma unroll 1
    while (!left && o.n < limit) {
        step(o.x, o.y, o.cx, o.cy);
        norm2 = norm(o.x, o.y);
        left = norm2 > radius2;
        o.n++;
    }
    return left;
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

#endif
