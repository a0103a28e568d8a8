/*
 * jacobi.c: literal Jacobi sweeps (kernels/jacobi.h), several at a time per tile.
 *
 * Planes are copied into rows of whole cache lines. A batch of sweeps cuts each plane into tiles
 * (bands of rows, and strips of columns where rows are long); a tile is worked on with a halo of as
 * many rows and columns as the batch has sweeps, recomputed by both neighbours, so that tiles meet
 * only between batches. Inside a tile, passes of JACOBI_LEVELS sweeps go through the first-level
 * cache (jacobi_simd.h) between two private copies. Every element takes the same sums in the same
 * order as in the literal loop, so the bytes are the same.
 */
#include "kernels/jacobi.h"
#include "kernels/cpu/jacobi_simd.h"
#include "kernels/cpu/stream.h"

#include <math.h>
#include <string.h>

#define LINE           ((size_t)64)
#define SWEEPS_MAX     32                  /* of a batch */
#define STRIP_BYTES    ((size_t)2048)      /* much longer rows are cut */
#define BAND_BYTES     ((size_t)512 << 10) /* of a tile: its copies stay in the second-level cache */
#define COPY_ROWS      ((size_t)256)
#define CACHE_BYTES    ((size_t)8 << 20) /* planes beyond this are in memory: longer batches */
#define PARALLEL_CELLS ((size_t)16384)   /* smaller problems stay on the calling thread */

static const struct jacobi_simd *const tables[ISA_COUNT][2] = {
#define X(isa) [ISA_##isa] = {&jacobi_##isa##_f32, &jacobi_##isa##_f64},
    KILN_CPU_ISAS(X)
#undef X
};

struct problem {
    struct stream *stream;
    const struct jacobi_simd *simd;
    size_t width, height, planes;
    size_t element;                /* bytes */
    size_t stride;                 /* bytes of a padded row */
    size_t plane;                  /* bytes of a padded plane */
    char *now, *next, *b;          /* padded planes */
    size_t bands, strips;          /* tiles of a plane */
    size_t band_rows, strip_width; /* bytes for strip_width */
    size_t sweeps_most;            /* of a batch */
    size_t halo;                   /* bytes of columns on either side of a strip */
    char *scratch;                 /* one part for each slot */
    size_t scratch_size;           /* bytes of a part */
    size_t copy_size;              /* bytes of a private copy in it */
    char *zero;                    /* a row of zeros */
    int sweeps;                    /* of this batch */
    double *changes;               /* for each row band of the residual */
};

static size_t round_up(size_t size, size_t to) {
    return (size + to - 1) / to * to;
}

static size_t smaller(size_t a, size_t b) {
    return a < b ? a : b;
}

/* Rows copied between packed and padded arrays. */
struct copy {
    const struct problem *problem;
    char *padded;
    const char *from; /* packed source, or NULL: zeros */
    char *to;         /* packed target: the padded rows are the source */
};

static void copy_run(void *context, size_t chunk, int slot) {
    (void)slot;
    const struct copy *copy = context;
    const struct problem *problem = copy->problem;
    size_t row = problem->width * problem->element, rows = problem->height * problem->planes;
    size_t end = smaller((chunk + 1) * COPY_ROWS, rows);
    for (size_t r = chunk * COPY_ROWS; r < end; r++) {
        char *padded = copy->padded + r * problem->stride;
        if (copy->to) {
            memcpy(copy->to + r * row, padded, row);
            continue;
        }
        size_t filled = copy->from ? row : 0;
        if (copy->from)
            memcpy(padded, copy->from + r * row, row);
        memset(padded + filled, 0, problem->stride - filled);
    }
}

static void copy_rows(const struct problem *problem, char *padded, const char *from, char *to) {
    struct copy copy = {problem, padded, from, to};
    size_t rows = problem->height * problem->planes;
    pool_run(problem->stream->pool, copy_run, &copy, (rows + COPY_ROWS - 1) / COPY_ROWS);
}

/* Chooses tiles: one for each thread where that suffices, none larger than the second-level cache.
 */
static void tiles_choose(struct problem *problem) {
    size_t cells = problem->width * problem->height * problem->planes;
    size_t threads = (size_t)pool_width(problem->stream->pool);
    if (cells < PARALLEL_CELLS)
        threads = 1;
    bool wide = problem->stride > STRIP_BYTES + STRIP_BYTES / 2;
    problem->strips = wide ? (problem->stride + STRIP_BYTES / 2) / STRIP_BYTES : 1;
    problem->strip_width =
        round_up((problem->stride + problem->strips - 1) / problem->strips, LINE);
    problem->strips = (problem->stride + problem->strip_width - 1) / problem->strip_width;

    size_t tiles = problem->planes * problem->strips;
    size_t bands = (threads + tiles - 1) / tiles;
    size_t fewest = (problem->height * problem->strip_width + BAND_BYTES - 1) / BAND_BYTES;
    if (bands < fewest)
        bands = fewest;
    if (tiles == 1)
        bands = round_up(bands, threads); /* one left over would let the others wait */
    size_t most = (problem->height + 15) / 16;
    bands = smaller(bands, most);
    problem->band_rows = (problem->height + bands - 1) / bands;
    problem->bands = (problem->height + problem->band_rows - 1) / problem->band_rows;
    bool cut = problem->bands > 1 || problem->strips > 1;
    size_t batch = problem->plane * problem->planes > CACHE_BYTES ? 16 : 8;
    problem->sweeps_most = cut ? (problem->band_rows < 32 ? 4 : batch) : SWEEPS_MAX;
    problem->halo = round_up(problem->sweeps_most * problem->element, LINE);
}

static bool scratch_take(struct problem *problem) {
    size_t columns = problem->strip_width + 2 * problem->halo;
    size_t rows = problem->band_rows + 2 * problem->sweeps_most;
    size_t ring = 3 * (JACOBI_LEVELS - 1) * columns;
    problem->copy_size = rows * columns;
    problem->scratch_size = round_up(ring + 2 * problem->copy_size, 4096) + LINE;
    size_t all, size;
    if (__builtin_mul_overflow(problem->plane, problem->planes, &all) ||
        __builtin_mul_overflow(problem->scratch_size, (size_t)pool_width(problem->stream->pool),
                               &size))
        return false;
    problem->now = stream_take(problem->stream, all);
    problem->next = stream_take(problem->stream, all);
    problem->b = stream_take(problem->stream, all);
    problem->scratch = stream_take(problem->stream, size);
    problem->zero = stream_take(problem->stream, columns);
    problem->changes =
        stream_take(problem->stream, problem->bands * problem->planes * sizeof *problem->changes);
    if (!problem->now || !problem->next || !problem->b || !problem->scratch || !problem->zero ||
        !problem->changes)
        return false;
    memset(problem->zero, 0, columns);
    return true;
}

/* A tile's place in its plane; columns in bytes. */
struct tile {
    size_t plane;              /* offset of the plane, bytes */
    size_t row, row_end;       /* rows it yields */
    size_t left, left_end;     /* columns it yields */
    size_t column, column_end; /* with the halo */
};

static struct tile tile_at(const struct problem *problem, size_t index) {
    struct tile tile;
    size_t band = index % problem->bands, strip = index / problem->bands % problem->strips;
    tile.plane = index / problem->bands / problem->strips * problem->plane;
    tile.row = band * problem->band_rows;
    tile.row_end = smaller(tile.row + problem->band_rows, problem->height);
    tile.left = strip * problem->strip_width;
    tile.left_end = smaller(tile.left + problem->strip_width, problem->stride);
    tile.column = tile.left > problem->halo ? tile.left - problem->halo : 0;
    tile.column_end = smaller(tile.left_end + problem->halo, problem->stride);
    return tile;
}

/* All sweeps of the batch for one tile. */
static void tile_run(void *context, size_t index, int slot) {
    const struct problem *problem = context;
    if (stream_cancelled(problem->stream))
        return;
    struct tile tile = tile_at(problem, index);
    char *scratch = problem->scratch + (size_t)slot * problem->scratch_size;
    size_t wide = tile.column_end - tile.column;
    size_t offset = tile.plane + tile.column;
    ptrdiff_t stride = (ptrdiff_t)(problem->stride / problem->element);
    ptrdiff_t columns = (ptrdiff_t)(wide / problem->element);
    ptrdiff_t height = (ptrdiff_t)problem->height;
    size_t inside =
        problem->width * problem->element - smaller(tile.column, problem->width * problem->element);
    char *copies[2] = {scratch, scratch + problem->copy_size};
    struct jacobi_pass pass = {
        .source = {problem->now + offset, stride, 0},
        .b = {problem->b + offset, stride, 0},
        .top = 0,
        .bottom = height,
        .columns = (size_t)columns,
        .inside = smaller(inside / problem->element, (size_t)columns),
        .ring = scratch + 2 * problem->copy_size,
        .zero = problem->zero,
    };
    int left = problem->sweeps;
    for (int turn = 0; left > 0; turn = !turn) {
        pass.levels = left < JACOBI_LEVELS ? left : JACOBI_LEVELS;
        left -= pass.levels;
        ptrdiff_t first = (ptrdiff_t)tile.row - left, last = (ptrdiff_t)tile.row_end + left;
        pass.first = first > 0 ? first : 0;
        pass.last = last < height ? last : height;
        pass.keep = 0;
        pass.keep_end = pass.columns;
        pass.target = (struct jacobi_rows){copies[turn], columns, pass.first};
        if (left == 0) {
            pass.target = (struct jacobi_rows){problem->next + offset, stride, 0};
            pass.keep = (tile.left - tile.column) / problem->element;
            pass.keep_end = (tile.left_end - tile.column) / problem->element;
        }
        problem->simd->pass(&pass);
        pass.source = pass.target;
    }
}

static void batch_run(struct problem *problem, int sweeps) {
    problem->sweeps = sweeps;
    pool_run(problem->stream->pool, tile_run, problem,
             problem->bands * problem->strips * problem->planes);
    char *now = problem->now;
    problem->now = problem->next;
    problem->next = now;
}

static void change_run(void *context, size_t index, int slot) {
    (void)slot;
    const struct problem *problem = context;
    size_t band = index % problem->bands;
    size_t row = band * problem->band_rows;
    size_t rows = smaller(problem->band_rows, problem->height - row);
    size_t offset = index / problem->bands * problem->plane + row * problem->stride;
    problem->changes[index] = problem->simd->change(problem->now + offset, problem->next + offset,
                                                    rows * problem->stride / problem->element);
}

/* max |X' - X| of the sweep just made, where it was a batch of its own. */
static double residual(struct problem *problem) {
    size_t count = problem->bands * problem->planes;
    pool_run(problem->stream->pool, change_run, problem, count);
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, problem->changes[i]);
    return most;
}

/* Sweeps until the end, the tolerance or cancellation. With a tolerance the last sweep before each
   check is a batch of its own, so that both iterates are at hand. */
static struct jacobi_report sweep(struct problem *problem, const struct jacobi_args *args) {
    struct jacobi_report report = {0, (double)NAN};
    bool checking = args->tolerance > 0;
    while (report.sweeps < args->iterations && !stream_cancelled(problem->stream)) {
        int64_t end = args->iterations;
        if (checking) {
            int64_t check = (report.sweeps / JACOBI_CHECK + 1) * JACOBI_CHECK;
            end = check < end ? check : end;
        }
        int64_t left = end - report.sweeps;
        bool last = checking && left == 1;
        if (checking && left > 1)
            left--;
        if (left > (int64_t)problem->sweeps_most)
            left = (int64_t)problem->sweeps_most;
        batch_run(problem, (int)left);
        report.sweeps += left;
        control_advance(problem->stream->control, (uint64_t)report.sweeps,
                        (uint64_t)args->iterations);
        if (!last)
            continue;
        report.residual = residual(problem);
        if (report.sweeps % JACOBI_CHECK == 0 && report.residual <= args->tolerance)
            break;
    }
    return report;
}

static enum kiln_status problem_init(struct problem *problem, struct stream *stream,
                                     const struct jacobi_args *args) {
    *problem = (struct problem){
        .stream = stream,
        .simd = tables[stream->isa][args->fp64 ? 1 : 0],
        .width = (size_t)args->width,
        .height = (size_t)args->height,
        .planes = (size_t)args->planes,
        .element = args->fp64 ? sizeof(double) : sizeof(float),
    };
    problem->stride = round_up(problem->width * problem->element, LINE);
    if (problem->stride % 4096 == 0)
        problem->stride += LINE; /* rows one page apart would share their cache sets */
    if (__builtin_mul_overflow(problem->stride, problem->height, &problem->plane))
        return stream_fail(stream, KILN_JOB_TOO_LARGE, "the array is too large");
    tiles_choose(problem);
    return scratch_take(problem) ? KILN_OK : KILN_NO_MEMORY;
}

enum kiln_status jacobi_launch(struct stream *stream, const void *arguments) {
    const struct jacobi_args *args = arguments;
    struct problem problem;
    enum kiln_status status = problem_init(&problem, stream, args);
    if (status != KILN_OK)
        return status;
    copy_rows(&problem, problem.now, args->start, NULL);
    copy_rows(&problem, problem.b, args->b, NULL);
    struct jacobi_report report = sweep(&problem, args);
    copy_rows(&problem, problem.now, NULL, args->x);
    if (args->report)
        *args->report = report;
    return stream_cancelled(stream) ? KILN_CANCELLED : KILN_OK;
}
