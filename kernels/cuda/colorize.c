/*
 * colorize.c: launcher of `colorize` (kernels/colorize.h). Thread: the stream's.
 */
#include "kernels/colorize.h"
#include "kernels/cuda/colorize_grid.h"
#include "kernels/cuda/stream.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WARPS      8
#define THREADS    (32 * WARPS)
#define GRID_X_MAX 65536

extern const unsigned char kiln_image_colorize[];

static const struct function_row functions[] = {{.name = "colorize", .warps = WARPS}};

static int reached(double value, double limit, double gamma) {
    double clamped = value < limit ? value : limit;
    return (int)floor(pow(clamped / limit, gamma) * 256.0);
}

/* The least float of colour k or a later one: near limit (k/256)^(1/gamma), and then by the rule
   itself, which decides where both sides are exact. */
static float threshold(int k, double limit, double gamma) {
    double exact = limit * pow(k / 256.0, 1.0 / gamma);
    if (!(exact < FLT_MAX)) {
        return INFINITY;
    }
    float value = (float)exact;
    for (int i = 0; i < 4 && reached((double)value, limit, gamma) < k; i++) {
        value = nextafterf(value, INFINITY);
    }
    for (int i = 0; i < 4 && value > 0.0f; i++) {
        float below = nextafterf(value, 0.0f);
        if (reached((double)below, limit, gamma) < k) {
            break;
        }
        value = below;
    }
    return value;
}

static void thresholds_fill(struct stream *stream, const struct colorize_args *args) {
    struct threshold_cache *cache = &stream->thresholds;
    if (cache->limit == args->limit && cache->gamma == args->gamma) {
        return;
    }
    cache->values[0] = 0.0f;
    for (int k = 1; k < 256; k++) {
        cache->values[k] = threshold(k, args->limit, args->gamma);
    }
    cache->limit = args->limit;
    cache->gamma = args->gamma;
}

static void light_fill(struct colorize_grid *grid, const struct colorize_args *args) {
    const double degree = 0.017453292519943295;
    double azimuth = (90.0 - args->azimuth) * degree, altitude = args->altitude * degree;
    grid->east = (float)(cos(azimuth) * cos(altitude));
    grid->north = (float)(sin(azimuth) * cos(altitude));
    grid->up = (float)sin(altitude);
    grid->floor = (float)-cos(altitude);
    grid->range = (float)(1.0 + cos(altitude));
    grid->half_exaggeration = (float)(args->vert_exag * 0.5);
}

static enum kiln_status launch(struct stream *stream, const void *pointer) {
    const struct colorize_args *args = pointer;
    if (args->shade && args->apron < 1) {
        snprintf(stream->error, sizeof stream->error, "shading needs an apron of one sample");
        return KILN_UNSUPPORTED;
    }
    struct colorize_grid grid = {
        .width = args->width,
        .height = args->height,
        .stride = (int64_t)args->width * args->supersample + 2 * (int64_t)args->apron,
        .supersample = args->supersample,
        .apron = args->apron,
        .field = args->field,
        .lut = args->lut,
        .rgb = args->rgb,
        .shade = args->shade,
    };
    thresholds_fill(stream, args);
    memcpy(grid.thresholds, stream->thresholds.values, sizeof grid.thresholds);
    light_fill(&grid, args);
    int64_t across = (grid.width + THREADS - 1) / THREADS;
    across = across < GRID_X_MAX ? across : GRID_X_MAX;
    /* A block makes several rows: its palette costs as much as a row. */
    int64_t resident = 4 * (int64_t)stream_resident(stream, KERNEL_COLORIZE, 0, WARPS);
    int64_t down = (resident + across - 1) / across;
    down = down < grid.height ? down : grid.height;
    struct shape shape = {.grid_x = (unsigned)across,
                          .grid_y = (unsigned)(down < 65535 ? down : 65535),
                          .warps = WARPS};
    return stream_launch(stream, KERNEL_COLORIZE, 0, &shape, &grid, "colorize");
}

const struct kernel_row colorize_row = {
    .image = kiln_image_colorize,
    .functions = functions,
    .count = 1,
    .launch = launch,
};
