/*
 * colorize_grid.h: what the launcher of `colorize` tells its kernel.
 *
 * The colour's index is the number of thresholds that the field has reached: thresholds[k] is the
 * least float f with floor((f / limit)^gamma * 256) ≥ k, so that no rounding on the device can move
 * a colour: a power is only its first guess. thresholds[0] is 0.
 */
#ifndef KILN_CUDA_COLORIZE_GRID_H
#define KILN_CUDA_COLORIZE_GRID_H

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
    float east, north, up; /* unit vector towards the light */
    float floor;           /* intensity is (light - floor) * inverse_range, in 0 … 1 */
    float inverse_range;
    float half_exaggeration;    /* vert_exag / 2: of a central difference */
    float inverse_limit, gamma; /* for a first guess */
    const float *thresholds;    /* 256 */
    int32_t aligned;            /* rgb by words */
};

#endif
