/*
 * colorize.c: launcher of `colorize` (kernels/colorize.h). Thread: the stream's.
 */
#include "kernels/colorize.h"
#include "kernels/cuda/device/stream.h"
#include "kernels/cuda/mandelbrot/colorize_grid.h"

#include <stdio.h>

#define WARPS     8
#define PER_BLOCK (32 * WARPS * COLORIZE_PIXELS)

enum { COLORIZE_PLAIN, COLORIZE_SHADED, COLORIZE_INDEXED };

extern const unsigned char kiln_image_colorize[];

/* Device memory of a stream: costly, and they rarely change. */
struct thresholds {
    float values[256];
};

/* Host memory of a stream: what they are of. */
struct scale {
    double vmin, vmax, gamma;
};

static const struct function_row functions[] = {
    [COLORIZE_PLAIN] = {.name = "colorize_plain", .warps = WARPS},
    [COLORIZE_SHADED] = {.name = "colorize_shaded", .warps = WARPS},
    [COLORIZE_INDEXED] = {.name = "colorize_indexed", .warps = WARPS},
};

/* Brings the stream's thresholds up to date. The driver copies pageable memory before it returns.
 */
static enum kiln_status thresholds_fill(struct stream *stream, const struct colorize_args *args) {
    const struct kept kept = stream_kept(stream, KERNEL_COLORIZE);
    struct scale *scale = kept.state;
    if (scale->vmin == args->vmin && scale->vmax == args->vmax && scale->gamma == args->gamma) {
        return KILN_OK;
    }
    float values[256];
    colorize_thresholds(args, values);
    CUdeviceptr address = (CUdeviceptr)(uintptr_t)kept.memory;
    CUresult result = driver.cuMemcpyHtoDAsync(address, values, sizeof values, stream->handle);
    bool copied = result == CUDA_SUCCESS;
    stream->busy = true;
    *scale = (struct scale){args->vmin, copied ? args->vmax : 0.0, args->gamma};
    return stream_check(stream, result, "upload");
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
    const struct thresholds *thresholds = stream_kept(stream, KERNEL_COLORIZE).memory;
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
        .light = colorize_light_of(args),
        .vmin = (float)args->vmin,
        .inverse_range = (float)(1.0 / (args->vmax - args->vmin)),
        .gamma = (float)args->gamma,
        .thresholds = thresholds->values,
    };
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
    .kept = {.stream_size = sizeof(struct scale), .stream_memory = sizeof(struct thresholds)},
};
