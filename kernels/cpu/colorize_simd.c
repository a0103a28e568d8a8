/*
 * colorize_simd.c: runs of pixels for `colorize`; the compiler turns the loops into vectors.
 *
 * One column of samples of each pixel is worked on at a time (a stride of `supersample`), in
 * separate short loops over the run, so that each loop is simple enough for that.
 */
#include "kernels/cpu/colorize_simd.h"
#include "kernels/cpu/simd.h"

/* Number of thresholds 1…255 that are not above x; 0 for what is not a number. */
static inline int index_find(const float *threshold, float x) {
    int index = 0;
    for (int bit = 128; bit; bit >>= 1)
        index += x >= threshold[index + bit] ? bit : 0;
    return index;
}

static void indices_find(const struct colorize_run *run, const float *field, int *index) {
    const float *threshold = run->tables->threshold;
    for (int p = 0; p < run->pixels; p++)
        index[p] = index_find(threshold, field[(ptrdiff_t)p * run->supersample]);
}

static void colours_add(const struct colorize_run *run, const int *index, uint32_t (*sum)[3]) {
    for (int p = 0; p < run->pixels; p++) {
        const uint8_t *rgb = run->tables->rgb[index[p]];
        for (int channel = 0; channel < 3; channel++)
            sum[p][channel] += rgb[channel];
    }
}

static void run_plain(const struct colorize_run *run) {
    int index[COLORIZE_RUN];
    uint32_t sum[COLORIZE_RUN][3] = {{0}};
    int samples = run->supersample * run->supersample;
    for (int row = 0; row < run->supersample; row++) {
        for (int column = 0; column < run->supersample; column++) {
            indices_find(run, run->field + row * run->stride + column, index);
            colours_add(run, index, sum);
        }
    }
    for (int i = 0; i < 3 * run->pixels; i++) {
        uint32_t all = (&sum[0][0])[i];
        run->rgb[i] = samples == 1
                          ? (uint8_t)all
                          : (uint8_t)((2 * all + (uint32_t)samples) / (2 * (uint32_t)samples));
    }
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
static void shaded_add(const struct colorize_run *run, const int *index, const float *light,
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
    int index[COLORIZE_RUN];
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
    if (run->shade)
        run_shaded(run);
    else
        run_plain(run);
}

const struct colorize_simd SIMD_NAME(colorize) = {.run = run_pixels};
