/*
 * mandelbrot.c: launcher of `mandelbrot` (kernels/mandelbrot.h). Thread: the stream's.
 */
#include "kernels/mandelbrot.h"
#include "kernels/cuda/mandelbrot_grid.h"
#include "kernels/cuda/stream.h"

#include <math.h>

#define WARPS          8
#define SPAN_MIN       32
#define SPAN_MAX       1024
#define SPANS_PER_WARP 8 /* at least, where the picture is large: evens the warps' work out */

enum { MANDELBROT_FP32, MANDELBROT_FP64 };

extern const unsigned char kiln_image_mandelbrot[];

static const struct function_row functions[] = {
    [MANDELBROT_FP32] = {.name = "mandelbrot_fp32", .warps = WARPS},
    [MANDELBROT_FP64] = {.name = "mandelbrot_fp64", .warps = WARPS},
};

/* The longest span that still gives every warp its share. */
static uint32_t span_choose(uint64_t width, uint64_t samples, uint64_t warps) {
    uint32_t span = SPAN_MIN;
    while (span < SPAN_MAX && span < width && samples / (2 * span) >= warps * SPANS_PER_WARP) {
        span *= 2;
    }
    return span;
}

static enum kiln_status launch(struct stream *stream, const void *pointer) {
    const struct mandelbrot_args *args = pointer;
    int function = args->fp64 ? MANDELBROT_FP64 : MANDELBROT_FP32;
    uint64_t resident = stream_resident(stream, KERNEL_MANDELBROT, function, WARPS);
    uint64_t width = (uint64_t)args->width, height = (uint64_t)args->height;
    struct mandelbrot_grid grid = {
        .width = args->width,
        .x0 = args->x0,
        .y0 = args->y0,
        .dx = args->dx,
        .dy = args->dy,
        .radius2 = args->escape_radius * args->escape_radius,
        .inverse_log = (float)(1.0 / log(args->escape_radius)),
        .max_iter = (uint32_t)args->max_iter,
        .continuous = args->continuous,
        .span = span_choose(width, width * height, resident * WARPS),
        .stop = stream_stop_flag(stream),
        .count = args->count,
        .smooth = args->smooth,
    };
    grid.spans_per_row = (width + grid.span - 1) / grid.span;
    grid.spans = grid.spans_per_row * height;
    grid.counter = stream_zeroed(stream, sizeof *grid.counter);
    if (!grid.counter) {
        return stream->fault != KILN_OK ? stream->fault : KILN_NO_MEMORY;
    }
    uint64_t wanted = (grid.spans + WARPS - 1) / WARPS;
    struct shape shape = {
        .grid_x = (unsigned)(wanted < resident ? wanted : resident),
        .grid_y = 1,
        .warps = WARPS,
    };
    return stream_launch(stream, KERNEL_MANDELBROT, function, &shape, &grid, "mandelbrot");
}

const struct kernel_row mandelbrot_row = {
    .image = kiln_image_mandelbrot,
    .functions = functions,
    .count = 2,
    .launch = launch,
};
