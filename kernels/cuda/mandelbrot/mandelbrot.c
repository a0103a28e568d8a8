/*
 * mandelbrot.c: launcher of `mandelbrot` (kernels/mandelbrot.h). Thread: the stream's.
 */
#include "kernels/mandelbrot.h"
#include "kernels/cuda/device/stream.h"
#include "kernels/cuda/mandelbrot/mandelbrot_grid.h"
#include "kernels/mandelbrot_smooth.h"

#include <stdio.h>
#include <string.h>

#define WARPS       MANDELBROT_WARPS
#define BLOCKS      4 /* a multiprocessor: as many as fill it; more orbits at once end later */
#define SAMPLES_MAX (UINT32_MAX - 31) /* so that a group's last index is one */

enum { MANDELBROT_FP32, MANDELBROT_FP64, MANDELBROT_VIEWS_FP32, MANDELBROT_VIEWS_FP64 };

extern const unsigned char kiln_image_mandelbrot[];

/* Device memory of a stream. */
struct counters {
    uint32_t words[2][MANDELBROT_WORDS]; /* used in turn: a launch clears the other's */
};

/* Host memory of a stream. */
struct turn {
    int zero; /* which counters are 0 */
};

static const struct function_row functions[] = {
    [MANDELBROT_FP32] = {.name = "mandelbrot_fp32", .warps = WARPS},
    [MANDELBROT_FP64] = {.name = "mandelbrot_fp64", .warps = WARPS},
    [MANDELBROT_VIEWS_FP32] = {.name = "mandelbrot_views_fp32", .warps = WARPS},
    [MANDELBROT_VIEWS_FP64] = {.name = "mandelbrot_views_fp64", .warps = WARPS},
};

/* Blocks that the device works on at once. */
static uint64_t blocks_choose(const struct stream *stream, int function) {
    uint64_t resident = stream_resident(stream, KERNEL_MANDELBROT, function, WARPS);
    uint64_t enough = (uint64_t)stream->device->multiprocessors * BLOCKS;
    return resident < enough ? resident : enough;
}

static uint32_t reciprocal(int32_t number) {
    return number > 1 ? (uint32_t)(((uint64_t)1 << 32) / (uint32_t)number) : UINT32_MAX;
}

static enum kiln_status launch(struct stream *stream, const void *pointer) {
    const struct mandelbrot_args *args = pointer;
    int function = args->views > 1 ? (args->fp64 ? MANDELBROT_VIEWS_FP64 : MANDELBROT_VIEWS_FP32)
                                   : (args->fp64 ? MANDELBROT_FP64 : MANDELBROT_FP32);
    uint64_t samples = (uint64_t)args->width * (uint64_t)args->height * (uint64_t)args->views;
    uint64_t groups = (samples + 31) / 32, blocks = blocks_choose(stream, function);
    if (samples > SAMPLES_MAX) {
        snprintf(stream->error, sizeof stream->error, "more than %lu samples",
                 (unsigned long)SAMPLES_MAX);
        return KILN_UNSUPPORTED;
    }
    const struct kept kept = stream_kept(stream, KERNEL_MANDELBROT);
    struct counters *counters = kept.memory;
    struct turn *turn = kept.state;
    struct mandelbrot_grid grid = {
        .samples = (uint32_t)samples,
        .groups = (uint32_t)groups,
        .width = (uint32_t)args->width,
        .reciprocal = reciprocal(args->width),
        .height = (uint32_t)args->height,
        .height_reciprocal = reciprocal(args->height),
        .radius2 = args->escape_radius * args->escape_radius,
        .inverse = mandelbrot_inverse(args->escape_radius),
        .max_iter = (uint32_t)args->max_iter,
        .may_return = args->escape_radius * args->escape_radius < 4.05,
        .continuous = args->continuous && args->smooth != NULL,
        .counters = counters->words[turn->zero],
        .next = counters->words[!turn->zero],
        .stop = stream_stop_flag(stream),
        .count = args->count,
        .smooth = args->smooth,
    };
    memcpy(grid.view, args->view, (size_t)args->views * sizeof *grid.view);
    uint64_t wanted = (groups + WARPS - 1) / WARPS;
    struct shape shape = {
        .grid_x = (unsigned)(wanted < blocks ? wanted : blocks),
        .grid_y = 1,
        .warps = WARPS,
    };
    enum kiln_status status =
        stream_launch(stream, KERNEL_MANDELBROT, function, &shape, &grid, "mandelbrot");
    if (status == KILN_OK) {
        turn->zero = !turn->zero;
    }
    return status;
}

const struct kernel_row mandelbrot_row = {
    .image = kiln_image_mandelbrot,
    .functions = functions,
    .count = sizeof functions / sizeof functions[0],
    .launch = launch,
    .kept = {.stream_size = sizeof(struct turn), .stream_memory = sizeof(struct counters)},
};
