/*
 * colorize_simd.h: what the inner file of `colorize` offers, and the tables it works with.
 *
 * Colours go by thresholds instead of powers, so that the index of a sample is the number of
 * thresholds not above it. A table over the leading bits of a float tells where to start counting,
 * so that few steps remain (`steps`); thresholds that crowd within one entry (gamma far above 1)
 * are bisected instead.
 */
#ifndef KILN_KERNELS_CPU_MANDELBROT_COLORIZE_SIMD_H
#define KILN_KERNELS_CPU_MANDELBROT_COLORIZE_SIMD_H

#include "kernels/colorize_colour.h"
#include "kernels/cpu/device/isa.h"

#include <stddef.h>
#include <stdint.h>

#define COLORIZE_SHIFT   17 /* bits of a float that the table of starts leaves out */
#define COLORIZE_BUCKETS 16384
#define COLORIZE_STEPS   4

struct colorize_tables {
    float threshold[257];              /* [0] unused, ascending; [256] is NaN: never reached */
    uint32_t first, last;              /* leading bits of the first and the last threshold */
    int steps;                         /* thresholds within one entry at most; 0: bisect */
    uint8_t start[COLORIZE_BUCKETS];   /* thresholds up to the least float of entry first + i */
    uint32_t packed[256];              /* red | green << 8 | blue << 16 */
    float saturation[256], value[256]; /* 0 … 1 */
    float weight[3][256];
    struct colorize_light light;
};

/** A run of pixels of one row of the picture. */
struct colorize_run {
    const struct colorize_tables *tables;
    const float *field; /* sample of the first pixel's first row and column */
    ptrdiff_t stride;   /* samples from one row of the field to the next */
    int supersample;
    int pixels; /* 1 … COLORIZE_RUN */
    int shade;
    int indexed; /* a pixel is one byte, its index */
    uint8_t *rgb;
};

#define COLORIZE_RUN 128

struct colorize_simd {
    void (*run)(const struct colorize_run *run);
};

#define X(isa) extern const struct colorize_simd colorize_##isa##_f32;
KILN_CPU_ISAS(X)
#undef X

#endif
