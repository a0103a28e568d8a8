/*
 * lombscargle.c: launcher of `lombscargle` (kernels/lombscargle.h). Thread: the stream's.
 */
#include "kernels/lombscargle.h"
#include "kernels/cuda/lombscargle_grid.h"
#include "kernels/cuda/stream.h"

#define WARPS      4
#define THREADS    (32 * WARPS)
#define PER_THREAD 8   /* frequencies of a regular grid */
#define SLICE_MIN  128 /* samples: less is not worth the second kernel */
#define SLICES_MAX 4096

enum { GRID_FP64, GRID_FP32, LIST_FP64, LIST_FP32, FINISH };

extern const unsigned char kiln_image_lombscargle[];

static const struct function_row functions[] = {
    [GRID_FP64] = {.name = "lombscargle_fp64", .warps = WARPS},
    [GRID_FP32] = {.name = "lombscargle_fp32", .warps = WARPS},
    [LIST_FP64] = {.name = "lombscargle_list_fp64", .warps = WARPS},
    [LIST_FP32] = {.name = "lombscargle_list_fp32", .warps = WARPS},
    [FINISH] = {.name = "lombscargle_finish", .warps = WARPS},
};

/* Cuts the samples where the frequencies alone do not fill the device. */
static void slices_choose(struct lombscargle_grid *grid, uint64_t blocks, uint64_t resident) {
    uint64_t n = (uint64_t)grid->n;
    uint64_t wanted = blocks < resident ? resident / blocks : 1;
    uint64_t most = (n + SLICE_MIN - 1) / SLICE_MIN;
    uint64_t slices = wanted < most ? wanted : most;
    slices = slices < SLICES_MAX ? slices : SLICES_MAX;
    uint64_t slice = (n + slices - 1) / slices;
    grid->slice = (int64_t)slice;
    grid->slices = (int32_t)((n + slice - 1) / slice);
}

static enum kiln_status partial_take(struct stream *stream, struct lombscargle_grid *grid) {
    if (grid->slices == 1) {
        return KILN_OK;
    }
    /* At most SLICES_MAX blocks' worth of frequencies here: far from an overflow. */
    size_t size = (size_t)grid->slices * LOMBSCARGLE_SUMS * (size_t)grid->nf * sizeof(double);
    grid->partial = stream_reserve(stream, size);
    return grid->partial ? KILN_OK : stream->fault != KILN_OK ? stream->fault : KILN_NO_MEMORY;
}

static enum kiln_status launch(struct stream *stream, const void *pointer) {
    const struct lombscargle_args *args = pointer;
    if (args->series > 0 || args->nterms > 1 || args->peaks) {
        return KILN_UNSUPPORTED;
    }
    int function = args->frequency ? (args->fp32 ? LIST_FP32 : LIST_FP64)
                                   : (args->fp32 ? GRID_FP32 : GRID_FP64);
    struct lombscargle_grid grid = {
        .n = args->n,
        .nf = args->nf,
        .t = args->t,
        .y = args->y,
        .w = args->w,
        .f0 = args->f0,
        .df = args->df,
        .frequency = args->frequency,
        .y_mean = args->y_mean,
        .yy = args->yy,
        .psd_factor = args->psd_factor,
        .weight = args->fp32 ? (double)args->n : 1.0,
        .rounding = args->fp32 ? 0x1p-16 : 0x1p-45,
        .fit_mean = args->fit_mean,
        .normalization = args->normalization,
        .power = args->power,
        .stop = stream_stop_flag(stream),
    };
    uint64_t per_block = args->frequency ? THREADS : THREADS * PER_THREAD;
    uint64_t nf = (uint64_t)args->nf, blocks = (nf + per_block - 1) / per_block;
    if (blocks > INT32_MAX) {
        return KILN_JOB_TOO_LARGE;
    }
    slices_choose(&grid, blocks, stream_resident(stream, KERNEL_LOMBSCARGLE, function, WARPS));
    enum kiln_status status = partial_take(stream, &grid);
    struct shape shape = {
        .grid_x = (unsigned)blocks, .grid_y = (unsigned)grid.slices, .warps = WARPS};
    if (status == KILN_OK) {
        status = stream_launch(stream, KERNEL_LOMBSCARGLE, function, &shape, &grid, "lombscargle");
    }
    if (status == KILN_OK && grid.partial) {
        shape.grid_x = (unsigned)((nf + THREADS - 1) / THREADS);
        shape.grid_y = 1;
        status = stream_launch(stream, KERNEL_LOMBSCARGLE, FINISH, &shape, &grid, "lombscargle");
    }
    return status;
}

const struct kernel_row lombscargle_row = {
    .image = kiln_image_lombscargle,
    .functions = functions,
    .count = 5,
    .launch = launch,
};
