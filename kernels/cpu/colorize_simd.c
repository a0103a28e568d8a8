/*
 * colorize_simd.c: runs of pixels for `colorize`; the compiler turns the loops into vectors.
 *
 * One column of samples of each pixel is worked on at a time (a stride of `supersample`), in
 * separate short loops over the run, so that each loop is simple enough for that.
 */
#include "kernels/cpu/colorize_simd.h"
#include "kernels/cpu/simd.h"

/* For each pixel the number of thresholds 1…255 that are not above its sample; 0 for what is not a
   number. This way by the table of starts. */
static void indices_count(const struct colorize_run *run, const float *field, int32_t *index) {
    const struct colorize_tables *tables = run->tables;
    const float *threshold = tables->threshold;
    for (int p = 0; p < run->pixels; p++) {
        float x = field[(ptrdiff_t)p * run->supersample];
        uint32_t bits;
        memcpy(&bits, &x, sizeof bits);
        uint32_t entry = bits >> COLORIZE_SHIFT;
        entry = entry < tables->first ? tables->first : entry > tables->last ? tables->last : entry;
        int32_t at = tables->start[entry - tables->first];
        for (int step = 0; step < tables->steps; step++)
            at += x >= threshold[at + 1];
        index[p] = x >= threshold[1] ? at : 0; /* negative ones have large bits */
    }
}

/* The same by bisection of all pixels side by side. */
static void indices_bisect(const struct colorize_run *run, const float *field, int32_t *index) {
    const float *threshold = run->tables->threshold;
    float x[COLORIZE_RUN];
    for (int p = 0; p < run->pixels; p++) {
        x[p] = field[(ptrdiff_t)p * run->supersample];
        index[p] = 0;
    }
    for (int32_t bit = 128; bit; bit >>= 1) {
        for (int p = 0; p < run->pixels; p++)
            index[p] += -(int32_t)(x[p] >= threshold[index[p] + bit]) & bit;
    }
}

static void indices_find(const struct colorize_run *run, const float *field, int32_t *index) {
    (run->tables->steps ? indices_count : indices_bisect)(run, field, index);
}

static void colours_add(const struct colorize_run *run, const int32_t *index,
                        uint32_t (*sum)[COLORIZE_RUN]) {
    for (int p = 0; p < run->pixels; p++) {
        uint32_t colour = run->tables->packed[index[p]];
        sum[0][p] += colour & 255;
        sum[1][p] += colour >> 8 & 255;
        sum[2][p] += colour >> 16;
    }
}

static void run_plain(const struct colorize_run *run) {
    int32_t index[COLORIZE_RUN];
    uint32_t sum[3][COLORIZE_RUN] = {{0}};
    uint32_t samples = (uint32_t)(run->supersample * run->supersample);
    for (int row = 0; row < run->supersample; row++) {
        for (int column = 0; column < run->supersample; column++) {
            indices_find(run, run->field + row * run->stride + column, index);
            colours_add(run, index, sum);
        }
    }
    for (int channel = 0; channel < 3 && samples > 1; channel++) {
        for (int p = 0; p < run->pixels; p++)
            sum[channel][p] = (2 * sum[channel][p] + samples) / (2 * samples);
    }
    for (int p = 0; p < run->pixels; p++) {
        for (int channel = 0; channel < 3; channel++)
            run->rgb[3 * p + channel] = (uint8_t)sum[channel][p];
    }
}

static void run_indexed(const struct colorize_run *run) {
    int32_t index[COLORIZE_RUN];
    indices_find(run, run->field, index);
    for (int p = 0; p < run->pixels; p++)
        run->rgb[p] = (uint8_t)index[p];
}

/* Inside (negative) and NaN are level ground. */
static inline float height(float field) {
    return field > 0 ? field : 0;
}

/* Light on each sample as Matplotlib's hillshade gives it, mapped to -1 (dark) … 1. */
static void light_find(const struct colorize_run *run, const float *field, float *light) {
    const struct colorize_tables *tables = run->tables;
    const float lx = tables->light[0], ly = tables->light[1], lz = tables->light[2];
    const float darkest = tables->darkest, spread = tables->spread, slope = tables->slope;
    const ptrdiff_t stride = run->stride;
    const int step = run->supersample;
    for (int p = 0; p < run->pixels; p++) {
        const float *at = field + (ptrdiff_t)p * step;
        float dx = (height(at[1]) - height(at[-1])) * slope;
        float dy = (height(at[stride]) - height(at[-stride])) * slope; /* rows go down */
        float intensity = (ly * dy - lx * dx + lz) / sqrtf(dx * dx + dy * dy + 1);
        intensity = (intensity - darkest) * spread;
        intensity = intensity < 0 ? 0 : intensity > 1 ? 1 : intensity;
        light[p] = 2 * intensity - 1;
    }
}

/* Matplotlib's blend_hsv with its default extremes: lit samples go to white, dark ones to black. */
static void shaded_add(const struct colorize_run *run, const int32_t *index, const float *light,
                       float (*sum)[COLORIZE_RUN]) {
    const struct colorize_tables *tables = run->tables;
    for (int p = 0; p < run->pixels; p++) {
        float s = tables->saturation[index[p]], v = tables->value[index[p]];
        float lit = light[p] > 0 ? light[p] : 0, dark = light[p] < 0 ? -light[p] : 0;
        float keep = 1 - (lit + dark);
        float shaded = s > 1e-10f ? keep * s + dark : s;
        float value = keep * v + lit;
        for (int channel = 0; channel < 3; channel++)
            sum[channel][p] += value * (1 - shaded * tables->weight[channel][index[p]]);
    }
}

static void run_shaded(const struct colorize_run *run) {
    int32_t index[COLORIZE_RUN];
    float light[COLORIZE_RUN];
    float sum[3][COLORIZE_RUN] = {{0}};
    float scale = 255.0f / (float)(run->supersample * run->supersample);
    for (int row = 0; row < run->supersample; row++) {
        for (int column = 0; column < run->supersample; column++) {
            const float *field = run->field + row * run->stride + column;
            indices_find(run, field, index);
            light_find(run, field, light);
            shaded_add(run, index, light, sum);
        }
    }
    for (int p = 0; p < run->pixels; p++) {
        for (int channel = 0; channel < 3; channel++) {
            float level = sum[channel][p] * scale + 0.5f;
            run->rgb[3 * p + channel] = (uint8_t)(int)(level > 255 ? 255 : level > 0 ? level : 0);
        }
    }
}

static void run_pixels(const struct colorize_run *run) {
    if (run->indexed)
        run_indexed(run);
    else if (run->shade)
        run_shaded(run);
    else
        run_plain(run);
}

const struct colorize_simd SIMD_NAME(colorize) = {.run = run_pixels};
