/*
 * colorize_colour.h: the arithmetic of `colorize`, for every backend: where colours begin, where
 * the light stands, and what it makes of a sample.
 *
 * Nothing is fused, so that loops over samples are vectors on any processor. Hue stays when
 * Matplotlib blends in HSV, so that a channel c of a colour with value v, least channel m and
 * saturation s becomes v' (1 - s' w) with the weight w = (v - c) / (v - m): no conversion to hue
 * and back. C11 and device code, the same bytes from both (kernels/elementary.h).
 */
#ifndef KILN_KERNELS_COLORIZE_COLOUR_H
#define KILN_KERNELS_COLORIZE_COLOUR_H

#include "kernels/colorize.h"
#include "kernels/elementary.h"

/** From heights to light. */
struct colorize_light {
    float east, north, up; /* unit vector towards the light */
    float darkest, spread; /* intensity is stretched from [darkest, darkest + 1/spread] */
    float slope;           /* vert_exag / 2: differences across two samples to gradients */
};

/** What blending needs of a colour. */
struct colorize_hue {
    float weight[3], saturation, value;
};

/** Ground: inside (negative) and NaN are 0. */
ELEMENTARY_INLINE float colorize_height(float field) {
    return field > 0.0f ? field : 0.0f;
}

/** Light that falls on a sample, by the heights around it (rows go down): Matplotlib's hillshade
    mapped to -1 (shadow) … 1. */
ELEMENTARY_INLINE float colorize_shine(const struct colorize_light *light, float left, float right,
                                       float above, float below) {
    float dx = (right - left) * light->slope, dy = (below - above) * light->slope;
    float intensity = (light->north * dy - light->east * dx + light->up) *
                      elementary_rsqrt(dx * dx + dy * dy + 1.0f);
    intensity = (intensity - light->darkest) * light->spread;
    intensity = intensity > 0.0f ? intensity : 0.0f;
    intensity = intensity < 1.0f ? intensity : 1.0f;
    return 2.0f * intensity - 1.0f;
}

ELEMENTARY_INLINE void colorize_hue_fill(struct colorize_hue *hue, int red, int green, int blue) {
    int most = red > green ? red : green, least = red < green ? red : green;
    most = most > blue ? most : blue;
    least = least < blue ? least : blue;
    float chroma = most > least ? (float)(most - least) : 1.0f; /* of a grey: weights are 0 */
    hue->value = (float)most / 255.0f;
    hue->saturation = (float)(most - least) / (most > 0 ? (float)most : 1.0f);
    hue->weight[0] = (float)(most - red) / chroma;
    hue->weight[1] = (float)(most - green) / chroma;
    hue->weight[2] = (float)(most - blue) / chroma;
}

/** Value and saturation of a colour in that light: Matplotlib's blend_hsv with its default
   extremes, where lit samples go to white and dark ones to black. */
ELEMENTARY_INLINE void colorize_blend(float light, float *value, float *saturation) {
    float lit = light > 0.0f ? light : 0.0f, dark = light < 0.0f ? -light : 0.0f;
    float keep = 1.0f - (lit + dark);
    *value = keep * *value + lit;
    *saturation = keep * *saturation + dark;
}

/** A channel of a blended colour, 0 … 1. */
ELEMENTARY_INLINE float colorize_channel(float value, float saturation, float weight) {
    return value * (1.0f - saturation * weight);
}

/** The byte of a channel summed over samples in row-major order; scale = 255 / samples. */
ELEMENTARY_INLINE uint8_t colorize_level(float sum, float scale) {
    float level = sum * scale + 0.5f;
    level = level > 0.0f ? level : 0.0f;
    return (uint8_t)(int32_t)(level < 255.0f ? level : 255.0f);
}

#ifndef __CUDACC__
/** Writes the least field values of the colours 1 to 255, ascending and above 0; [0] is 0. A value
    within 2^-40 below the edge between two colours is the upper one's, which makes edges that are
    numbers of few digits exact. */
static inline void colorize_thresholds(const struct colorize_args *args, float thresholds[256]) {
    const double exponent = 1 / args->gamma;
    thresholds[0] = 0;
    for (int k = 1; k < 256; k++) {
        double share = elementary_exp2(elementary_log2(k / 256.0) * exponent);
        double edge = args->vmin + (args->vmax - args->vmin) * share;
        edge -= edge * 0x1p-40;
        float value = (float)edge;
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        bits += bits == 0 || (double)value < edge; /* the next float */
        memcpy(&thresholds[k], &bits, sizeof bits);
    }
}

static inline struct colorize_light colorize_light_of(const struct colorize_args *args) {
    double low = elementary_cosine(args->altitude);
    return (struct colorize_light){
        .east = (float)(elementary_sine(args->azimuth) * low),
        .north = (float)(elementary_cosine(args->azimuth) * low),
        .up = (float)elementary_sine(args->altitude),
        .darkest = (float)-low,
        .spread = (float)(1 / (1 + low)),
        .slope = (float)(args->vert_exag / 2),
    };
}
#endif

#endif
