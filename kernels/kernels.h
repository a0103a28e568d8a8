/*
 * kernels.h: the one list of kernels.
 *
 * A backend has a file for each row that it can run, and says in its `kernels` which these are
 * (backend.h); the plan of a job says which it needs (compute/jobs/job.h). Arguments, shapes, units
 * and tolerance of `name` stand in kernels/<name>.h. X(symbol, name, argument struct)
 */
#ifndef KILN_KERNELS_KERNELS_H
#define KILN_KERNELS_KERNELS_H

#include <stdint.h>

#define KILN_KERNELS(X)                                                                            \
    X(MANDELBROT, mandelbrot, struct mandelbrot_args)                                              \
    X(COLORIZE, colorize, struct colorize_args)                                                    \
    X(JACOBI, jacobi, struct jacobi_args)                                                          \
    X(SPECTRAL, spectral, struct spectral_args)                                                    \
    X(LAPLACIAN, laplacian, struct laplacian_args)                                                 \
    X(LOMBSCARGLE, lombscargle, struct lombscargle_args)                                           \
    X(PNG, png, struct png_args)                                                                   \
    X(EXPRESSION, expression, struct expression_args)

/** Most pictures, or jobs, that one launch takes together. */
#define GROUP_MAX 16

enum kernel_id {
#define X(symbol, name, args) KERNEL_##symbol,
    KILN_KERNELS(X)
#undef X
        KERNEL_COUNT
};

/** Sets of kernels are masks of these. */
#define KERNEL_BIT(symbol) ((uint32_t)1 << KERNEL_##symbol)
#define KERNELS_ALL        (((uint32_t)1 << KERNEL_COUNT) - 1)

#endif
