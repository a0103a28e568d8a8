/*
 * jacobi.c: literal Jacobi sweeps (kernels/jacobi.h).
 *
 * Planes are copied into the lifted layout (jacobi_simd.h), swept there two sweeps at a time
 * (jacobi_pairs.c), and copied back. An odd sweep, and the sweep whose residual is asked for, goes
 * from one array to another. Every element takes the same sums in the same order as in the literal
 * loop; the last two roundings are one where the values allow it, which the bounds of B and of the
 * start tell beforehand.
 */
#include "kernels/jacobi.h"
#include "kernels/cpu/jacobi/jacobi_grid.h"

#include <math.h>
#include <string.h>

#define LINE           ((size_t)64)
#define COPY_ROWS      ((size_t)64)
#define BOUNDS_COUNT   ((size_t)65536) /* elements looked at in one piece */
#define PARALLEL_CELLS ((size_t)16384) /* smaller problems stay on the calling thread */

static const struct jacobi_simd *const tables[ISA_COUNT][2] = {
#define X(isa) [ISA_##isa] = {&jacobi_##isa##_f32, &jacobi_##isa##_f64},
    KILN_CPU_ISAS(X)
#undef X
};

struct problem {
    struct jacobi_grid grid;
    char *next;      /* like x, or NULL where no single sweep is made */
    size_t chunks;   /* of a plane, for what goes over its rows once */
    size_t rows;     /* of a chunk */
    double *changes; /* of each chunk */
    double tolerance;
};

static size_t round_up(size_t size, size_t to) {
    return (size + to - 1) / to * to;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Rows copied between packed and lifted arrays. */
struct copy {
    const struct jacobi_grid *grid;
    char *lifted;
    const char *from; /* packed source, or NULL: zeros */
    char *to;         /* packed target: the lifted rows are the source */
    bool scaled;
};

static void row_copy(const struct copy *copy, size_t index) {
    const struct jacobi_grid *grid = copy->grid;
    size_t row = grid->width * grid->element;
    char *lifted =
        jacobi_row(grid, copy->lifted, index / grid->height, (ptrdiff_t)(index % grid->height));
    if (copy->to != NULL) {
        grid->simd->lower(copy->to + index * row, lifted, grid->width, grid->vectors);
        return;
    }
    size_t filled = copy->from != NULL ? grid->vectors * grid->simd->lanes * grid->element : 0;
    if (copy->from != NULL) {
        grid->simd->lift(lifted, copy->from + index * row, grid->width, grid->vectors,
                         copy->scaled);
    }
    memset(lifted + filled, 0, grid->stride - filled);
}

static void copy_run(void *context, size_t chunk, int slot) {
    (void)slot;
    const struct copy *copy = context;
    size_t rows = copy->grid->height * copy->grid->planes;
    size_t end = smaller((chunk + 1) * COPY_ROWS, rows);
    for (size_t r = chunk * COPY_ROWS; r < end; r++) {
        row_copy(copy, r);
    }
}

static void copy_rows(const struct copy *copy) {
    size_t rows = copy->grid->height * copy->grid->planes;
    thread_pool_run(copy->grid->stream->pool, copy_run, (void *)(uintptr_t)copy,
                    (rows + COPY_ROWS - 1) / COPY_ROWS);
}

/* The rows around the planes of a lifted array. */
static void surround(const struct jacobi_grid *grid, char *array) {
    for (size_t p = 0; p < grid->planes; p++) {
        char *above = jacobi_row(grid, array, p, -JACOBI_ABOVE);
        char *below = jacobi_row(grid, array, p, (ptrdiff_t)grid->height);
        memset(above, 0, JACOBI_ABOVE * grid->stride);
        memset(below, 0, grid->plane - (size_t)(below - above));
    }
}

struct look {
    const struct jacobi_grid *grid;
    const char *data;
    size_t count;
    struct jacobi_bounds *bounds; /* of each piece */
};

static void look_run(void *context, size_t piece, int slot) {
    (void)slot;
    const struct look *look = context;
    size_t first = piece * BOUNDS_COUNT;
    look->bounds[piece] = look->grid->simd->bounds(look->data + first * look->grid->element,
                                                   smaller(BOUNDS_COUNT, look->count - first));
}

/* Bounds of a packed array; {infinity, 0} without memory. */
static struct jacobi_bounds bounds_of(const struct jacobi_grid *grid, const void *data) {
    struct jacobi_bounds all = {0, (double)INFINITY};
    size_t count = grid->width * grid->height * grid->planes;
    size_t pieces = (count + BOUNDS_COUNT - 1) / BOUNDS_COUNT;
    if (data == NULL) {
        return all;
    }
    struct look look = {grid, data, count, stream_take(grid->stream, pieces * sizeof all)};
    if (look.bounds == NULL) {
        return (struct jacobi_bounds){(double)INFINITY, 0};
    }
    thread_pool_run(grid->stream->pool, look_run, &look, pieces);
    for (size_t i = 0; i < pieces; i++) {
        all.most = fmax(all.most, look.bounds[i].most);
        all.least = fmin(all.least, look.bounds[i].least);
    }
    return all;
}

/* Whether the quarter may be rounded together with the difference: |X| grows by a quarter of |B| a
   sweep, and by what is rounded. */
static bool may_fuse(const struct jacobi_grid *grid, const struct jacobi_args *args) {
    const struct jacobi_simd *simd = grid->simd;
    if (!simd->can_fuse) {
        return false;
    }
    struct jacobi_bounds b = bounds_of(grid, args->b), start = b;
    if (args->start != args->b) {
        start = bounds_of(grid, args->start);
    }
    double sweeps = (double)args->iterations;
    double most = (start.most + b.most * (1 + sweeps / 4)) * exp(sweeps * simd->growth);
    return b.least >= simd->tiny && most <= simd->largest;
}

static void sweep_run(void *context, size_t index, int slot) {
    (void)slot;
    const struct problem *problem = context;
    const struct jacobi_grid *grid = &problem->grid;
    size_t plane = index / problem->chunks, row = index % problem->chunks * problem->rows;
    ptrdiff_t first = (ptrdiff_t)row;
    struct jacobi_sweep sweep = {
        .to = jacobi_row(grid, problem->next, plane, first),
        .from = jacobi_row(grid, grid->x, plane, first),
        .b = jacobi_row(grid, grid->b, plane, first),
        .mask = grid->mask,
        .stride = grid->stride / grid->element,
        .vectors = grid->vectors,
        .rows = smaller(problem->rows, grid->height - row),
    };
    grid->simd->sweep[grid->fused](&sweep);
    if (problem->tolerance > 0) {
        problem->changes[index] =
            grid->simd->change(sweep.to, sweep.from, sweep.rows * sweep.stride);
    }
}

/* One sweep; with a tolerance the most that it changed. */
static double sweep_single(struct problem *problem) {
    struct jacobi_grid *grid = &problem->grid;
    thread_pool_run(grid->stream->pool, sweep_run, problem, problem->chunks * grid->planes);
    char *x = grid->x;
    grid->x = problem->next;
    problem->next = x;
    double most = 0;
    for (size_t i = 0; problem->tolerance > 0 && i < problem->chunks * grid->planes; i++) {
        most = fmax(most, problem->changes[i]);
    }
    return most;
}

/* Sweeps until the end, the tolerance or cancellation. The last sweep before each check is a single
   one, so that both iterates are at hand. */
static enum kiln_status sweep_all(struct problem *problem, const struct jacobi_args *args,
                                  struct jacobi_report *report) {
    struct stream *stream = problem->grid.stream;
    struct memory_mark mark = memory_mark(&stream->scratch);
    *report = (struct jacobi_report){0, (double)NAN};
    while (report->sweeps < args->iterations && !stream_cancelled(stream)) {
        int64_t left = args->iterations - report->sweeps;
        if (args->tolerance > 0) {
            left = left < JACOBI_CHECK ? left : JACOBI_CHECK;
        }
        int64_t singles = args->tolerance > 0 ? 2 - left % 2 : left % 2;
        struct jacobi_progress progress = {(uint64_t)report->sweeps, (uint64_t)args->iterations};
        enum kiln_status status =
            jacobi_pairs(&problem->grid, (uint64_t)(left - singles) / 2, progress);
        if (status != KILN_OK) {
            return status;
        }
        memory_release(&stream->scratch, mark);
        for (int64_t i = 0; i < singles && !stream_cancelled(stream); i++) {
            report->residual = sweep_single(problem);
        }
        if (stream_cancelled(stream)) {
            break; /* not all of them were made */
        }
        report->sweeps += left;
        control_advance(stream->control, (uint64_t)report->sweeps, (uint64_t)args->iterations);
        if (args->tolerance > 0 && report->sweeps % JACOBI_CHECK == 0 &&
            report->residual <= args->tolerance) {
            break;
        }
    }
    if (!(args->tolerance > 0)) {
        report->residual = (double)NAN;
    }
    return stream_cancelled(stream) ? KILN_CANCELLED : KILN_OK;
}

static enum kiln_status shape(struct problem *problem) {
    struct jacobi_grid *grid = &problem->grid;
    grid->vectors = (grid->width + grid->simd->lanes - 1) / grid->simd->lanes;
    grid->stride = round_up(grid->vectors * grid->simd->lanes * grid->element, LINE);
    if (grid->stride % 4096 == 0) {
        grid->stride += LINE; /* rows one page apart would share their cache sets */
    }
    grid->groups = (grid->height + 2 + grid->simd->rows - 1) / grid->simd->rows;
    size_t rows = JACOBI_ABOVE + grid->groups * grid->simd->rows;
    if (__builtin_mul_overflow(grid->stride, rows, &grid->plane)) {
        return stream_fail(grid->stream, KILN_JOB_TOO_LARGE, "the array is too large");
    }
    bool small = grid->width * grid->height * grid->planes < PARALLEL_CELLS;
    grid->threads = small ? 1 : thread_pool_width(grid->stream->pool);
    problem->rows = grid->height / (size_t)grid->threads + 1;
    problem->rows = smaller(problem->rows, (PARALLEL_CELLS + grid->width) / grid->width);
    problem->chunks = (grid->height + problem->rows - 1) / problem->rows;
    return KILN_OK;
}

/* Bits of the columns that are inside, and a row of zeros. */
static void mask_fill(const struct jacobi_grid *grid) {
    size_t row = grid->vectors * grid->simd->lanes * grid->element;
    memset(grid->mask, 0, 2 * row);
    for (size_t lane = 0; lane < grid->simd->lanes; lane++) {
        for (size_t j = 0; j < grid->vectors && lane * grid->vectors + j < grid->width; j++) {
            memset(grid->mask + (j * grid->simd->lanes + lane) * grid->element, 0xff,
                   grid->element);
        }
    }
}

static enum kiln_status problem_init(struct problem *problem, struct stream *stream,
                                     const struct jacobi_args *args) {
    *problem = (struct problem){.tolerance = args->tolerance};
    problem->grid = (struct jacobi_grid){
        .stream = stream,
        .simd = tables[stream->isa][args->fp64 ? 1 : 0],
        .width = (size_t)args->width,
        .height = (size_t)args->height,
        .planes = (size_t)args->planes,
        .element = args->fp64 ? sizeof(double) : sizeof(float),
    };
    struct jacobi_grid *grid = &problem->grid;
    enum kiln_status status = shape(problem);
    size_t all;
    if (status != KILN_OK) {
        return status;
    }
    if (__builtin_mul_overflow(grid->plane, grid->planes, &all)) {
        return stream_fail(stream, KILN_JOB_TOO_LARGE, "the array is too large");
    }
    bool single = args->iterations % 2 != 0 || args->tolerance > 0;
    grid->x = stream_take(stream, all);
    grid->b = stream_take(stream, all);
    grid->mask = stream_take(stream, 2 * grid->vectors * grid->simd->lanes * grid->element);
    problem->changes =
        stream_take(stream, problem->chunks * grid->planes * sizeof *problem->changes);
    if (single) {
        problem->next = stream_take(stream, all);
    }
    if (grid->x == NULL || grid->b == NULL || grid->mask == NULL || problem->changes == NULL ||
        (single && problem->next == NULL)) {
        return KILN_NO_MEMORY;
    }
    mask_fill(grid);
    return KILN_OK;
}

enum kiln_status jacobi_launch(struct stream *stream, const void *arguments) {
    const struct jacobi_args *args = arguments;
    struct problem problem;
    struct jacobi_report report;
    enum kiln_status status = problem_init(&problem, stream, args);
    if (status != KILN_OK) {
        return status;
    }
    struct jacobi_grid *grid = &problem.grid;
    grid->fused = may_fuse(grid, args);
    copy_rows(&(struct copy){grid, grid->x, args->start, NULL, false});
    copy_rows(&(struct copy){grid, grid->b, args->b, NULL, grid->fused});
    surround(grid, grid->x);
    surround(grid, grid->b);
    if (problem.next != NULL) {
        copy_rows(&(struct copy){grid, problem.next, NULL, NULL, false});
        surround(grid, problem.next);
    }
    status = sweep_all(&problem, args, &report);
    if (status != KILN_OK) {
        return status;
    }
    copy_rows(&(struct copy){grid, grid->x, NULL, args->x, false});
    if (args->report != NULL) {
        *args->report = report;
    }
    return KILN_OK;
}
