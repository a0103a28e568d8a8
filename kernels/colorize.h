/*
 * colorize.h: arguments of the kernel `colorize`, a scalar field to RGB.
 *
 * value v = ((clamp(field, vmin, vmax) - vmin) / (vmax - vmin))^gamma (Matplotlib's PowerNorm with
 * fixed limits, so that neighbouring tiles agree); negative field (inside) and NaN count as 0. The
 * colour is lut[min(floor(v*256), 255)], Matplotlib's rule for a 256-entry colormap; where a colour
 * begins, colorize_thresholds (kernels/colorize_colour.h) says.
 * With `shade`, Matplotlib's LightSource(azimuth, altitude).shade(…, vert_exag, blend_mode="hsv")
 * with the contrast stretched from the fixed range [-cos(altitude), 1] instead of the picture's own
 * extremes. Gradients are central differences in samples; the field carries `apron` more samples on
 * every side so that they exist at the border (at least 1 with shade).
 * With `indexed` the kernel writes the index itself, a byte a pixel, for a picture with a palette;
 * only with supersample 1 and without shade (else KILN_UNSUPPORTED). Each pixel is the mean of its
 * supersample² samples' colours, rounded half up.
 *
 * Tolerance: equal bytes, by the arithmetic of kernels/colorize_colour.h; within 1 of 255 of
 * Matplotlib's formulas.
 */
#ifndef KILN_KERNELS_COLORIZE_H
#define KILN_KERNELS_COLORIZE_H

#include <stdint.h>

struct colorize_args {
    int32_t width, height; /* pixels of the picture */
    int32_t supersample;   /* samples a pixel along each axis, ≥ 1 */
    int32_t apron;         /* samples around the picture, ≥ 0 */
    const float *field; /* device, (height*supersample + 2*apron) × (width*supersample + 2*apron) */
    double vmin, vmax;  /* field values of the first and the last colour, 0 ≤ vmin < vmax */
    double gamma;       /* exponent, > 0 */
    int32_t shade;      /* 0 or 1 */
    double azimuth;     /* degrees clockwise from north */
    double altitude;    /* degrees above the horizon */
    double vert_exag;   /* factor on the field before gradients */
    int32_t indexed;    /* 0: RGB, 1: indices */
    const uint8_t *lut; /* device, 256 × RGB */
    uint8_t *rgb;       /* device, height × width × 3 (indexed: × 1) */
};

#endif
