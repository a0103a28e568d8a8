/*
 * chirps.c: three launches: rows, columns there and back, rows.
 *
 * The first two turn what they have made, so that every launch works on contiguous lines: arrays of
 * columns and of rows, whose lines have even lengths in memory, take turns. As many blocks as the
 * device holds at once go through all pairs of lines.
 */
#include "kernels/cuda/spectral/chirps.h"
#include "kernels/cuda/spectral/sines.h"

/* Costs of one multiprocessor in products and sums of its tensor cores, as measured on an H200. */
#define PASS_COST     72.0  /* an element of a convolution and a pass */
#define LAUNCH_COST   2.4e6 /* a transform's share of starting, waiting and filling the device */
#define PRODUCTS_COST 5.0e6 /* likewise, the matrix products of all four transforms */

struct solve {
    const struct spectral_args *args;
    struct sine_table across, down;
    double *rows, *columns; /* [plane][height][even width], [plane][width][even height] */
    double *kept;
    uint32_t *halt;
};

static int64_t even(int64_t length) {
    return length + length % 2;
}

/* Blocks that work on lines of a plan at once; 0 where the device holds none. */
static unsigned blocks_of(const struct stream *stream, const struct chirp_plan *plan, int64_t lines,
                          int64_t planes) {
    const struct function *function = &stream->device->functions[KERNEL_SPECTRAL][SPECTRAL_LINES];
    int64_t most = (int64_t)function->resident[plan->warps] * stream->device->multiprocessors;
    int64_t pairs = (lines + 1) / 2 * planes;
    return (unsigned)(pairs < most ? pairs : most);
}

/* What a transform of all lines costs; 0 where it cannot be. */
static double cost_of(const struct stream *stream, int64_t length, int64_t lines, int64_t planes) {
    struct chirp_plan plan;
    unsigned blocks = chirp_plan_make(&plan, length) ? blocks_of(stream, &plan, lines, planes) : 0;
    if (blocks == 0) {
        return 0;
    }
    double pairs = (double)((lines + 1) / 2) * (double)planes / stream->device->multiprocessors;
    double passes = 2 * (2 * plan.stages + 1);
    return LAUNCH_COST + (pairs > 1 ? pairs : 1) * plan.size * passes * PASS_COST;
}

bool chirps_better(const struct stream *stream, const struct spectral_args *args) {
    double width = args->width, height = args->height;
    double rows = cost_of(stream, args->width, args->height, args->planes);
    double columns = cost_of(stream, args->height, args->width, args->planes);
    double products = width * height * (width + height) * args->planes;
    return rows > 0 && columns > 0 &&
           2 * (rows + columns) < PRODUCTS_COST + products / stream->device->multiprocessors;
}

static enum kiln_status solve_prepare(struct stream *stream, struct solve *solve) {
    const struct spectral_args *args = solve->args;
    enum kiln_status status = sines_take_chirp(stream, args->width, &solve->across);
    if (status == KILN_OK) {
        status = sines_take_chirp(stream, args->height, &solve->down);
    }
    if (status != KILN_OK) {
        return status;
    }
    /* Lengths with a plan are short: only the planes can be too many. */
    size_t rows = (size_t)(args->height * even(args->width));
    size_t columns = (size_t)(args->width * even(args->height));
    if ((size_t)args->planes > INT64_MAX / 64 / (rows > columns ? rows : columns)) {
        return KILN_JOB_TOO_LARGE;
    }
    unsigned across = blocks_of(stream, &solve->across.chirp.plan, args->height, args->planes);
    unsigned down = blocks_of(stream, &solve->down.chirp.plan, args->width, args->planes);
    size_t kept_across = (size_t)across * (size_t)args->width;
    size_t kept_down = (size_t)down * (size_t)args->height;
    size_t kept = kept_across > kept_down ? kept_across : kept_down;
    solve->rows = stream_reserve(stream, rows * (size_t)args->planes * sizeof(double));
    solve->columns = stream_reserve(stream, columns * (size_t)args->planes * sizeof(double));
    solve->kept = stream_reserve(stream, 2 * kept * sizeof(double));
    solve->halt = stream_zeroed(stream, sizeof *solve->halt);
    if (solve->rows == NULL || solve->columns == NULL || solve->kept == NULL ||
        solve->halt == NULL) {
        return stream->fault != KILN_OK ? stream->fault : KILN_NO_MEMORY;
    }
    return KILN_OK;
}

static struct spectral_lines rows_of(const struct solve *solve, bool back) {
    const struct spectral_args *args = solve->args;
    return (struct spectral_lines){
        .sines = solve->across,
        .lines = args->height,
        .from = back ? solve->rows : (void *)(uintptr_t)args->b,
        .from_stride = back ? even(args->width) : args->width,
        .to = back ? args->x : solve->columns,
        .to_stride = even(args->height),
        .from_fp64 = back || args->fp64,
        .to_fp64 = args->fp64,
        .result = back ? SPECTRAL_ELEMENTS : SPECTRAL_FOLDED,
    };
}

static struct spectral_lines columns_of(const struct solve *solve) {
    const struct spectral_args *args = solve->args;
    return (struct spectral_lines){
        .sines = solve->down,
        .lines = args->width,
        .from = solve->columns,
        .from_stride = even(args->height),
        .to = solve->rows,
        .to_stride = even(args->width),
        .modes = {.along = solve->down.waves,
                  .other = solve->across.waves,
                  .length = args->height,
                  .rows = args->width,
                  .scale = 4 / (((double)args->width + 1) * ((double)args->height + 1)),
                  .iterations = args->iterations,
                  .start_zero = args->start_zero},
        .from_fp64 = 1,
        .result = SPECTRAL_MODES,
    };
}

static enum kiln_status lines_launch(struct stream *stream, const struct solve *solve,
                                     struct spectral_lines lines) {
    const struct chirp_plan *plan = &lines.sines.chirp.plan;
    if (stream_cancelled(stream)) {
        return KILN_CANCELLED;
    }
    lines.planes = solve->args->planes;
    lines.kept = solve->kept;
    lines.stop = stream_stop_flag(stream);
    lines.halt = solve->halt;
    struct shape shape = {.grid_x = blocks_of(stream, plan, lines.lines, lines.planes),
                          .grid_y = 1,
                          .warps = (unsigned)plan->warps};
    return stream_launch(stream, KERNEL_SPECTRAL, SPECTRAL_LINES, &shape, &lines, "spectral lines");
}

enum kiln_status chirps_run(struct stream *stream, const struct spectral_args *args) {
    struct solve solve = {.args = args};
    enum kiln_status status = solve_prepare(stream, &solve);
    if (status == KILN_OK) {
        status = lines_launch(stream, &solve, rows_of(&solve, false));
    }
    if (status == KILN_OK) {
        status = lines_launch(stream, &solve, columns_of(&solve));
    }
    if (status == KILN_OK) {
        status = lines_launch(stream, &solve, rows_of(&solve, true));
    }
    return status;
}
