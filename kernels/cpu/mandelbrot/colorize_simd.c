/*
 * colorize_simd.c: runs of pixels for `colorize`; the compiler turns the loops into vectors.
 *
 * One column of samples of each pixel is worked on at a time (a stride of `supersample`), in
 * separate short loops over the run, so that each loop is simple enough for that.
 */
#include "kernels/cpu/mandelbrot/colorize_simd.h"
#include "kernels/cpu/device/simd.h"

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
        for (int step = 0; step < tables->steps; step++) {
            at += x >= threshold[at + 1];
        }
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
        for (int p = 0; p < run->pixels; p++) {
            index[p] += -(int32_t)(x[p] >= threshold[index[p] + bit]) & bit;
        }
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
        for (int p = 0; p < run->pixels; p++) {
            sum[channel][p] = (2 * sum[channel][p] + samples) / (2 * samples);
        }
    }
    for (int p = 0; p < run->pixels; p++) {
        for (int channel = 0; channel < 3; channel++) {
            run->rgb[3 * p + channel] = (uint8_t)sum[channel][p];
        }
    }
}

static void run_indexed(const struct colorize_run *run) {
    int32_t index[COLORIZE_RUN];
    indices_find(run, run->field, index);
    for (int p = 0; p < run->pixels; p++) {
        run->rgb[p] = (uint8_t)index[p];
    }
}

/* Inlined with each step, so that samples side by side are loaded as vectors. */
static inline __attribute__((always_inline)) void
light_fill(const struct colorize_run *run, const float *field, float *light, const ptrdiff_t step) {
    const struct colorize_light source = run->tables->light;
    const ptrdiff_t stride = run->stride;
    for (int p = 0; p < run->pixels; p++) {
        const float *at = field + p * step;
        light[p] = colorize_shine(&source, colorize_height(at[-1]), colorize_height(at[1]),
                                  colorize_height(at[-stride]), colorize_height(at[stride]));
    }
}

static void light_find(const struct colorize_run *run, const float *field, float *light) {
    if (run->supersample == 1) {
        light_fill(run, field, light, 1);
    } else {
        light_fill(run, field, light, run->supersample);
    }
}

static void shaded_add(const struct colorize_run *run, const int32_t *index, const float *light,
                       float (*sum)[COLORIZE_RUN]) {
    const struct colorize_tables *tables = run->tables;
    for (int p = 0; p < run->pixels; p++) {
        float value = tables->value[index[p]], saturation = tables->saturation[index[p]];
        colorize_blend(light[p], &value, &saturation);
        for (int channel = 0; channel < 3; channel++) {
            sum[channel][p] +=
                colorize_channel(value, saturation, tables->weight[channel][index[p]]);
        }
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
            run->rgb[3 * p + channel] = colorize_level(sum[channel][p], scale);
        }
    }
}

static void run_pixels(const struct colorize_run *run) {
    if (run->indexed) {
        run_indexed(run);
    } else if (run->shade) {
        run_shaded(run);
    } else {
        run_plain(run);
    }
}

const struct colorize_simd SIMD_NAME(colorize) = {.run = run_pixels};
