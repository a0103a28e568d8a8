/*
 * mandelbrot_smooth.h: the continuous value of an orbit that has left, for every backend.
 *
 * n - log2(ln|z| / ln R) with ln|z| / ln R = log2 |z|² · inverse, inverse = 1 / log2 R² as a float.
 * C11 and device code, the same bytes from both (kernels/elementary.h).
 */
#ifndef KILN_KERNELS_MANDELBROT_SMOOTH_H
#define KILN_KERNELS_MANDELBROT_SMOOTH_H

#include "kernels/elementary.h"

/** log2(ln|z| / ln R) of |z|² > R² ≥ 4; error below 5e-7 where it is at most 1. */
ELEMENTARY_INLINE float mandelbrot_fraction_f32(float norm2, float inverse) {
    return elementary_log2f(elementary_log2f(norm2) * inverse);
}

ELEMENTARY_INLINE float mandelbrot_fraction_f64(double norm2, float inverse) {
    return elementary_log2f(elementary_log2d(norm2) * inverse);
}

ELEMENTARY_INLINE float mandelbrot_smooth(int32_t count, float fraction) {
    return (float)count - fraction;
}

#ifndef __CUDACC__
static inline float mandelbrot_inverse(double escape_radius) {
    return (float)(0.5 / elementary_log2(escape_radius));
}
#endif

#endif
