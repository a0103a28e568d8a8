/*
 * spectral_grid.h: what the launcher of `spectral` tells its kernels.
 *
 * A sine transform of length n is a product with sin(πjk/N), N = n + 1. The sines are symmetric in
 * j about N/2 for odd k and antisymmetric for even k, so a row is first folded into `half` sums
 * x_j + x_{N-j} and as many differences, and each half of the results needs a product of half the
 * size. A folded array is [plane][sums, differences][row][stride]; what lies past `half` is zero.
 *
 * A pass takes folded rows and gives their transform turned: result k of row m lies at row k,
 * column m, so that four passes transform both axes and back. Passes but the last fold their
 * result for the next one.
 */
#ifndef KILN_KERNELS_CUDA_SPECTRAL_SPECTRAL_GRID_H
#define KILN_KERNELS_CUDA_SPECTRAL_SPECTRAL_GRID_H

#include "kernels/cuda/spectral/chirp.h"
#include "kernels/spectral.h"

enum spectral_function {
    SPECTRAL_SINES,
    SPECTRAL_FOLD_FP32,
    SPECTRAL_FOLD_FP64,
    SPECTRAL_PASS_32,
    SPECTRAL_PASS_64,
    SPECTRAL_PASS_128,
    SPECTRAL_PASS_LONG,
    SPECTRAL_FILTER,
    SPECTRAL_LINES,
    SPECTRAL_FUNCTIONS
};

/** The sines of one length, in device memory. */
struct sine_table {
    int64_t length; /* n */
    int64_t half;   /* (n + 1) / 2 */
    int64_t stride; /* half, rounded up to even: rows are aligned to 16 bytes */
    double *matrix; /* [odd k, even k][half][stride]: sin(π(j+1)k/N), k = 2i+1, 2i+2; or NULL */
    double *line;   /* sin(πi/N) for i < 2N, where there is no matrix; else NULL */
    double *waves;  /* sin²(πk/2N), k = 1 … n */
    struct chirp_table chirp; /* instead of matrix and line; else its plan is 0 */
};

struct spectral_fold {
    int64_t rows, length, stride, half; /* rows: of one plane */
    int64_t planes;
    const void *from; /* planes × rows × length elements */
    double *to;       /* folded */
};

enum spectral_result {
    SPECTRAL_FOLDED,  /* folded for the next pass */
    SPECTRAL_MODES,   /* likewise, after the modes' factors */
    SPECTRAL_ELEMENTS /* elements of x */
};

/** What mode (k,l) is multiplied by: waves of both axes. */
struct spectral_modes {
    const double *along, *other;
    int64_t length, rows; /* of the axes */
    double scale;         /* takes out what transforms multiply by */
    int64_t iterations;
    int32_t start_zero;
};

struct spectral_pass {
    struct sine_table sines;       /* of the rows */
    int64_t rows, half, stride;    /* rows of a plane, and their folding */
    uint32_t tiles_k, tiles_m;     /* of one parity and plane: results, pairs of rows */
    const double *from;            /* folded */
    void *to;                      /* folded, or x */
    struct spectral_modes modes;   /* SPECTRAL_MODES */
    int32_t fp64;                  /* SPECTRAL_ELEMENTS */
    int32_t result;                /* enum spectral_result */
    int32_t poll;                  /* blocks look at the stop word */
    const volatile uint32_t *stop; /* host memory */
    volatile uint32_t *halt;       /* device memory, 0 before the first launch */
};

/** Lines through chirp convolutions, two a block at a time. What is turned for the next pass is
    [plane][result][stride]. */
struct spectral_lines {
    struct sine_table sines; /* of the lines */
    int64_t lines, planes;   /* lines: of a plane */
    void *from;              /* [plane][line][from_stride] */
    int64_t from_stride;
    void *to; /* turned, or elements of x */
    int64_t to_stride;
    double *kept; /* scratch: a complex line for each block */
    struct spectral_modes modes;
    int32_t from_fp64, to_fp64; /* double rather than float */
    int32_t result;             /* enum spectral_result; SPECTRAL_MODES: transformed back as well */
    const volatile uint32_t *stop; /* host memory */
    volatile uint32_t *halt;       /* device memory, 0 before the first launch */
};

#endif
