/*
 * colorize.c: launcher of `colorize` (kernels/colorize.h). Thread: the stream's.
 */
#include "kernels/colorize.h"
#include "kernels/cuda/colorize_grid.h"
#include "kernels/cuda/stream.h"

#include <float.h>
#include <math.h>
#include <stdio.h>

#define WARPS     8
#define PER_BLOCK (32 * WARPS * COLORIZE_PIXELS)

enum { COLORIZE_PLAIN, COLORIZE_SHADED, COLORIZE_INDEXED };

extern const unsigned char kiln_image_colorize[];

static const struct function_row functions[] = {
    [COLORIZE_PLAIN] = {.name = "colorize_plain", .warps = WARPS},
    [COLORIZE_SHADED] = {.name = "colorize_shaded", .warps = WARPS},
    [COLORIZE_INDEXED] = {.name = "colorize_indexed", .warps = WARPS},
};

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

/* Brings the stream's thresholds up to date. The driver copies pageable memory before it returns.
 */
static enum kiln_status thresholds_fill(struct stream *stream, const struct colorize_args *args) {
    if (stream->limit == args->limit && stream->gamma == args->gamma) {
        return KILN_OK;
    }
    float values[256] = {0.0f};
    for (int k = 1; k < 256; k++) {
        values[k] = threshold(k, args->limit, args->gamma);
    }
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)stream->kept->thresholds;
    CUresult result = driver.cuMemcpyHtoDAsync(address, values, sizeof values, stream->handle);
    bool copied = result == CUDA_SUCCESS;
    stream->busy = true;
    stream->limit = copied ? args->limit : 0.0;
    stream->gamma = args->gamma;
    return stream_check(stream, result, "upload");
}

static void light_fill(struct colorize_grid *grid, const struct colorize_args *args) {
    const double degree = 0.017453292519943295;
    double azimuth = (90.0 - args->azimuth) * degree, altitude = args->altitude * degree;
    grid->east = (float)(cos(azimuth) * cos(altitude));
    grid->north = (float)(sin(azimuth) * cos(altitude));
    grid->up = (float)sin(altitude);
    grid->floor = (float)-cos(altitude);
    grid->inverse_range = (float)(1.0 / (1.0 + cos(altitude)));
    grid->half_exaggeration = (float)(args->vert_exag * 0.5);
}

static enum kiln_status launch(struct stream *stream, const void *pointer) {
    const struct colorize_args *args = pointer;
    if (args->shade && args->apron < 1) {
        snprintf(stream->error, sizeof stream->error, "shading needs an apron of one sample");
        return KILN_UNSUPPORTED;
    }
    if (args->indexed && (args->shade || args->supersample > 1)) {
        snprintf(stream->error, sizeof stream->error, "an index cannot be a mean of colours");
        return KILN_UNSUPPORTED;
    }
    enum kiln_status status = thresholds_fill(stream, args);
    if (status != KILN_OK) {
        return status;
    }
    struct colorize_grid grid = {
        .width = args->width,
        .pixels = (int64_t)args->width * args->height,
        .inverse_width = 1.0 / args->width,
        .stride = (int64_t)args->width * args->supersample + 2 * (int64_t)args->apron,
        .supersample = args->supersample,
        .apron = args->apron,
        .field = args->field,
        .lut = args->lut,
        .rgb = args->rgb,
        .aligned = (uintptr_t)args->rgb % 4 == 0,
        .inverse_limit = (float)(1.0 / args->limit),
        .gamma = (float)args->gamma,
        .thresholds = stream->kept->thresholds,
    };
    light_fill(&grid, args);
    int function = args->indexed ? COLORIZE_INDEXED
                   : args->shade ? COLORIZE_SHADED
                                 : COLORIZE_PLAIN;
    int64_t wanted = (grid.pixels + PER_BLOCK - 1) / PER_BLOCK;
    int64_t resident = (int64_t)stream_resident(stream, KERNEL_COLORIZE, function, WARPS);
    struct shape shape = {
        .grid_x = (unsigned)(wanted < resident ? wanted : resident),
        .grid_y = 1,
        .warps = WARPS,
    };
    return stream_launch(stream, KERNEL_COLORIZE, function, &shape, &grid, "colorize");
}

const struct kernel_row colorize_row = {
    .image = kiln_image_colorize,
    .functions = functions,
    .count = 3,
    .launch = launch,
};
