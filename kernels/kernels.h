/*
 * kernels.h: the one list of kernels.
 *
 * Every backend has one file for each row of KILN_KERNELS; the arguments, shapes, units and
 * tolerance of `name` stand in kernels/<file>.h. Rows of KILN_KERNELS_OFFERED are what a backend
 * may have: ask its `offers` (backend.h). X(symbol, name, argument struct)
 */
#ifndef KILN_KERNELS_KERNELS_H
#define KILN_KERNELS_KERNELS_H

#define KILN_KERNELS(X)                                                                            \
    X(MANDELBROT, mandelbrot, struct mandelbrot_args)                                              \
    X(COLORIZE, colorize, struct colorize_args)                                                    \
    X(JACOBI, jacobi, struct jacobi_args)                                                          \
    X(SPECTRAL, spectral, struct spectral_args)                                                    \
    X(LAPLACIAN, laplacian, struct laplacian_args)                                                 \
    X(LOMBSCARGLE, lombscargle, struct lombscargle_args)

#define KILN_KERNELS_OFFERED(X) X(PNG, png, struct png_args)

/** Most pictures, or jobs, that one launch takes together. */
#define GROUP_MAX 16

enum kernel_id {
#define X(symbol, name, args) KERNEL_##symbol,
    KILN_KERNELS(X) KILN_KERNELS_OFFERED(X)
#undef X
        KERNEL_COUNT
};

#endif
