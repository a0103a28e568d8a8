/*
 * spectral.c: launcher of `spectral` (kernels/spectral.h). Thread: the stream's.
 *
 * Small arrays are folded and take four passes of matrix products; large ones take three of chirp
 * convolutions (chirps.c). Passes of products go across, down, modes, across, down; each turns the
 * plane, so two folded arrays, one of rows and one of columns, take turns.
 */
#include "kernels/spectral.h"
#include "kernels/cuda/device/stream.h"
#include "kernels/cuda/spectral/chirps.h"
#include "kernels/cuda/spectral/sines.h"

#define FOLD_WARPS  8
#define FOLD_BLOCKS 8 /* a multiprocessor, at most */
#define POLL_BLOCKS 4 /* a multiprocessor: from here on blocks look at the stop word */

extern const unsigned char kiln_image_spectral[];

static const struct function_row functions[SPECTRAL_FUNCTIONS] = {
    [SPECTRAL_SINES] = {.name = "spectral_sines", .warps = 8},
    [SPECTRAL_FOLD_FP32] = {.name = "spectral_fold_fp32", .warps = FOLD_WARPS},
    [SPECTRAL_FOLD_FP64] = {.name = "spectral_fold_fp64", .warps = FOLD_WARPS},
    [SPECTRAL_PASS_32] = {.name = "spectral_pass_32", .warps = 4, .shared_per_warp = 12288},
    [SPECTRAL_PASS_64] = {.name = "spectral_pass_64", .warps = 4, .shared_per_warp = 16384},
    [SPECTRAL_PASS_128] = {.name = "spectral_pass_128", .warps = 8, .shared_per_warp = 12288},
    [SPECTRAL_PASS_LONG] = {.name = "spectral_pass_long", .warps = 4, .shared_per_warp = 16384},
    [SPECTRAL_FILTER] = {.name = "spectral_filter",
                         .warps = CHIRP_WARPS / 2,
                         .shared_per_warp = 2 * CHIRP_SHARED},
    [SPECTRAL_LINES] = {.name = "spectral_lines_run",
                        .warps = CHIRP_WARPS,
                        .shared_per_warp = CHIRP_SHARED},
};

/* Results of a tile's side, and how much of the tensor cores' rate it reaches, about. */
static const struct variant {
    int function;
    uint64_t tile;
    double rate;
} variants[] = {
    {SPECTRAL_PASS_32, 32, 0.55},
    {SPECTRAL_PASS_64, 64, 0.85},
    {SPECTRAL_PASS_128, 128, 1.0},
};
static const struct variant variant_long = {SPECTRAL_PASS_LONG, 64, 0.2};

struct solve {
    const struct spectral_args *args;
    struct sine_table across, down;
    double *rows, *columns; /* folded: [plane][2][height][…], [plane][2][width][…] */
    uint32_t *halt;
};

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

static uint64_t blocks_of(const struct spectral_pass *pass, uint64_t planes, uint64_t tile) {
    return divide_up((uint64_t)pass->sines.half, tile) * divide_up((uint64_t)pass->half, tile / 2) *
           2 * planes;
}

/* The variant whose busiest multiprocessor has least to do. */
static const struct variant *variant_choose(const struct stream *stream,
                                            const struct spectral_pass *pass, uint64_t planes) {
    const struct variant *best = NULL;
    double least = 0;
    if (pass->sines.matrix == NULL) {
        return &variant_long;
    }
    for (size_t i = 0; i < sizeof variants / sizeof *variants; i++) {
        uint64_t tile = variants[i].tile;
        uint64_t turns =
            divide_up(blocks_of(pass, planes, tile), (uint64_t)stream->device->multiprocessors);
        double cost = (double)turns * (double)(tile * tile) / variants[i].rate;
        if (best == NULL || cost < least) {
            best = &variants[i];
            least = cost;
        }
    }
    return best;
}

static enum kiln_status pass_launch(struct stream *stream, struct spectral_pass *pass,
                                    uint64_t planes) {
    const struct variant *variant = variant_choose(stream, pass, planes);
    uint64_t blocks = blocks_of(pass, planes, variant->tile);
    if (stream_cancelled(stream)) {
        return KILN_CANCELLED;
    }
    if (blocks > INT32_MAX) {
        return KILN_JOB_TOO_LARGE;
    }
    pass->tiles_k = (uint32_t)divide_up((uint64_t)pass->sines.half, variant->tile);
    pass->tiles_m = (uint32_t)divide_up((uint64_t)pass->half, variant->tile / 2);
    pass->stop = stream_stop_flag(stream);
    pass->poll = blocks > POLL_BLOCKS * (uint64_t)stream->device->multiprocessors;
    struct shape shape = {.grid_x = (unsigned)blocks,
                          .grid_y = 1,
                          .warps = (unsigned)functions[variant->function].warps};
    return stream_launch(stream, KERNEL_SPECTRAL, variant->function, &shape, pass, "spectral");
}

static enum kiln_status fold_launch(struct stream *stream, const struct solve *solve) {
    const struct spectral_args *args = solve->args;
    struct spectral_fold fold = {
        .rows = args->height,
        .length = args->width,
        .stride = solve->across.stride,
        .half = solve->across.half,
        .planes = args->planes,
        .from = args->b,
        .to = solve->rows,
    };
    uint64_t elements = (uint64_t)(fold.planes * fold.rows * fold.stride);
    uint64_t blocks = divide_up(elements, 32 * FOLD_WARPS);
    uint64_t most = (uint64_t)stream->device->multiprocessors * FOLD_BLOCKS;
    struct shape shape = {
        .grid_x = (unsigned)(blocks < most ? blocks : most), .grid_y = 1, .warps = FOLD_WARPS};
    return stream_launch(stream, KERNEL_SPECTRAL,
                         args->fp64 ? SPECTRAL_FOLD_FP64 : SPECTRAL_FOLD_FP32, &shape, &fold,
                         "spectral fold");
}

/* Rows to columns, or with `down` columns to rows. */
static struct spectral_pass pass_of(const struct solve *solve, bool down,
                                    enum spectral_result result) {
    const struct sine_table *along = down ? &solve->down : &solve->across;
    const struct sine_table *other = down ? &solve->across : &solve->down;
    double sides = ((double)solve->args->width + 1) * ((double)solve->args->height + 1);
    return (struct spectral_pass){
        .sines = *along,
        .rows = other->length,
        .half = other->half,
        .stride = other->stride,
        .from = down ? solve->columns : solve->rows,
        .to = result == SPECTRAL_ELEMENTS ? solve->args->x
              : down                      ? solve->rows
                                          : solve->columns,
        .modes = {.along = along->waves,
                  .other = other->waves,
                  .length = along->length,
                  .rows = other->length,
                  .scale = 4 / sides,
                  .iterations = solve->args->iterations,
                  .start_zero = solve->args->start_zero},
        .fp64 = solve->args->fp64,
        .result = (int32_t)result,
        .halt = solve->halt,
    };
}

/* Doubles of a folded array; 0 where they are too many. */
static size_t folded_size(const struct spectral_args *args, int64_t rows,
                          const struct sine_table *table) {
    size_t size;
    if (__builtin_mul_overflow((size_t)rows * 2, (size_t)table->stride, &size) ||
        __builtin_mul_overflow(size, (size_t)args->planes, &size) || size > INT64_MAX / 16) {
        return 0;
    }
    return size * sizeof(double);
}

static enum kiln_status solve_prepare(struct stream *stream, struct solve *solve) {
    const struct spectral_args *args = solve->args;
    enum kiln_status status = sines_take(stream, args->width, &solve->across);
    if (status == KILN_OK) {
        status = sines_take(stream, args->height, &solve->down);
    }
    if (status != KILN_OK) {
        return status;
    }
    size_t rows = folded_size(args, args->height, &solve->across);
    size_t columns = folded_size(args, args->width, &solve->down);
    if (rows == 0 || columns == 0) {
        return KILN_JOB_TOO_LARGE;
    }
    solve->rows = stream_reserve(stream, rows);
    solve->columns = solve->rows != NULL ? stream_reserve(stream, columns) : NULL;
    solve->halt = stream_zeroed(stream, sizeof *solve->halt);
    if (solve->columns == NULL || solve->halt == NULL) {
        return stream->fault != KILN_OK ? stream->fault : KILN_NO_MEMORY;
    }
    return KILN_OK;
}

static enum kiln_status products_run(struct stream *stream, const struct spectral_args *args) {
    static const enum spectral_result results[] = {SPECTRAL_FOLDED, SPECTRAL_MODES, SPECTRAL_FOLDED,
                                                   SPECTRAL_ELEMENTS};
    struct solve solve = {.args = args};
    enum kiln_status status = solve_prepare(stream, &solve);
    if (status == KILN_OK) {
        status = fold_launch(stream, &solve);
    }
    for (int i = 0; status == KILN_OK && i < 4; i++) {
        struct spectral_pass pass = pass_of(&solve, i % 2, results[i]);
        status = pass_launch(stream, &pass, (uint64_t)solve.args->planes);
    }
    return status;
}

static enum kiln_status launch(struct stream *stream, const void *args) {
    return (chirps_better(stream, args) ? chirps_run : products_run)(stream, args);
}

const struct kernel_row spectral_row = {
    .image = kiln_image_spectral,
    .functions = functions,
    .count = SPECTRAL_FUNCTIONS,
    .launch = launch,
    .kept = {.device_size = sizeof(struct sines),
             .device_init = sines_init,
             .device_finish = sines_finish,
             .stream_size = sizeof(struct sines_held),
             .release = sines_give},
};
