/*
 * colorize_grid.h: what the launcher of `colorize` tells its kernel.
 *
 * The colour's index is the number of thresholds (colorize_thresholds) that the field has reached,
 * so that no rounding on the device can move a colour: a power is only its first guess.
 */
#ifndef KILN_KERNELS_CUDA_MANDELBROT_COLORIZE_GRID_H
#define KILN_KERNELS_CUDA_MANDELBROT_COLORIZE_GRID_H

#include "kernels/colorize_colour.h"

#include <stdint.h>

#define COLORIZE_PIXELS 4 /* of a thread at a time: their bytes are whole words */

struct colorize_grid {
    int64_t width;  /* pixels */
    int64_t pixels; /* of the picture */
    double inverse_width;
    int64_t stride; /* samples a row of the field */
    int32_t supersample, apron;
    const float *field;
    const uint8_t *lut;
    uint8_t *rgb;
    struct colorize_light light;
    float vmin, inverse_range, gamma; /* for a first guess */
    const float *thresholds;          /* 256 */
    int32_t aligned;                  /* rgb by words */
};

#endif
