/*
 * mandelbrot.h: arguments of the kernel `mandelbrot`, escape counts of z ← z² + c.
 *
 * For sample (row j, column i) the constant is c = (fma(i, dx, x0), fma(j, dy, y0)) in double; in
 * fp32 both parts are then rounded to float. Starting at z = 0 one step is, in this order and with
 * these fused operations on every backend (so that `count` is byte-identical everywhere):
 *     t = fma(-y, y, cx);  u = x + x;  y = fma(u, y, cy);  x = fma(x, x, t)
 * and |z|² is fma(x, x, y*y); escape_radius² is the product in double, in fp32 rounded to float.
 * count is the smallest n ≥ 1 with |z_n|² > escape_radius², -1 where there is none ≤ max_iter. A
 * backend may skip work only where the count stays the same.
 * The continuous value is n - log2(ln|z_n| / ln escape_radius), in (n-1, n] unless c itself is far
 * outside, with z_n as above (Hubbard-Douady potential; the Matplotlib showcase's formula), by the
 * arithmetic of kernels/mandelbrot_smooth.h; -1 inside. |z_n|² past the type's range, which only
 * constants from 2^64 (fp32) or 2^512 have, counts as the range's end.
 *
 * Several pictures of one size, each with its own view, are one launch: they lie one below the
 * other in `count` and `smooth`.
 *
 * Tolerance: equal bytes, of count and smooth. Against exact logarithms smooth is within 5e-7 and
 * half an ulp of float.
 */
#ifndef KILN_KERNELS_MANDELBROT_H
#define KILN_KERNELS_MANDELBROT_H

#include "kernels/kernels.h"

#include <stdint.h>

/** Where a picture lies. */
struct mandelbrot_view {
    double x0, y0; /* c of sample (0,0) */
    double dx, dy; /* steps; dy is negative in an image with y up */
};

struct mandelbrot_args {
    int32_t width, height;                  /* samples of a picture, ≥ 1 */
    int32_t views;                          /* pictures, 1 to GROUP_MAX */
    struct mandelbrot_view view[GROUP_MAX]; /* of each */
    int64_t max_iter;                       /* ≥ 1, ≤ INT32_MAX */
    double escape_radius;                   /* 2 … 2^40, in fp32 … 2^31 */
    int32_t fp64;                           /* 0: float, 1: double */
    int32_t continuous;                     /* 0: `smooth` receives (float)count */
    int32_t *count; /* device, views × height × width, row-major, or NULL */
    float *smooth;  /* device, views × height × width, row-major, or NULL */
};

#endif
