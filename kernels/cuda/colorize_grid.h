/*
 * colorize_grid.h: what the launcher of `colorize` tells its kernel.
 *
 * The colour's index is the number of thresholds that the field has reached: thresholds[k] is the
 * least float f with floor((f / limit)^gamma * 256) ≥ k, so that no power is taken on the device
 * and no rounding there can move a colour. thresholds[0] is 0.
 */
#ifndef KILN_CUDA_COLORIZE_GRID_H
#define KILN_CUDA_COLORIZE_GRID_H

#include <stdint.h>

struct colorize_grid {
    int64_t width, height; /* pixels */
    int64_t stride;        /* samples a row of the field */
    int32_t supersample, apron;
    const float *field;
    const uint8_t *lut;
    uint8_t *rgb;
    int32_t shade;
    float east, north, up;   /* unit vector towards the light */
    float floor, range;      /* intensity is (light - floor) / range, in 0 … 1 */
    float half_exaggeration; /* vert_exag / 2: of a central difference */
    float thresholds[256];
};

#endif
