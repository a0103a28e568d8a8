/*
 * lombscargle_nufft.c: plans and launches of lombscargle_nufft.h. Thread: the stream's.
 */
#include "kernels/cuda/lombscargle/lombscargle_nufft.h"

#include <math.h>

#define SUMS_BYTES  ((uint64_t)256 << 20) /* of a range */
#define SAMPLES_MAX ((uint64_t)INT32_MAX)
#define PARTS       4096 /* a curve's samples are so many items at least, */
#define PART_MIN    256  /* but items are not made smaller than this */
#define BLOCKS      8    /* a multiprocessor, of kernels that walk over the samples */
#define DENSE       16   /* samples a tile: so many are counted in shared memory first */
#define LENGTHS     8

/* Expected milliseconds, as measured on an H200 (bench/results): of a harmonic's launches, of a
   sample and of a cell. */
#define LAUNCHES_MS 0.032
#define SAMPLE_MS   70e-9
#define CELL_MS     23e-9

/* Powers of two from 2^7 to 2^11, and 1½ times those, where they are whole warps. */
static const int32_t lengths[LENGTHS] = {128, 256, 384, 512, 768, 1024, 1536, 2048};

static uint64_t divide_up(uint64_t a, uint64_t b) {
    return (a + b - 1) / b;
}

static uint64_t smaller(uint64_t a, uint64_t b) {
    return a < b ? a : b;
}

static uint64_t larger(uint64_t a, uint64_t b) {
    return a > b ? a : b;
}

static int columns_function(int32_t length) {
    return length > 1024 ? LOMBSCARGLE_NUFFT_LONG_COLUMNS : LOMBSCARGLE_NUFFT_SHORT_COLUMNS;
}

/* Frequencies that a grid of `length` rows holds. */
static uint64_t length_holds(int32_t length) {
    return (uint64_t)length * LOMBSCARGLE_NUFFT_ROW * 2 / 3;
}

static int32_t tiles_of(int32_t length) {
    return length * (LOMBSCARGLE_NUFFT_ROW / LOMBSCARGLE_NUFFT_TILE);
}

/* Warps of a block whose shared memory holds a number for each tile. */
static uint64_t counting_warps(int32_t tiles) {
    return larger(LOMBSCARGLE_NUFFT_WARPS, divide_up((uint64_t)tiles, LOMBSCARGLE_NUFFT_COUNTS));
}

/* The longest columns that a block's shared memory holds; 0: not even rows fit. */
static int32_t length_most(const struct stream *stream, int function) {
    const struct function *loaded = stream->device->functions[KERNEL_LOMBSCARGLE] + function;
    int32_t most = 0;
    if (loaded[LOMBSCARGLE_NUFFT_TRANSFORM_ROWS].resident[LOMBSCARGLE_NUFFT_WARPS] == 0 ||
        loaded[LOMBSCARGLE_NUFFT_SPREAD_BOTH].resident[LOMBSCARGLE_NUFFT_WARPS] == 0) {
        return 0;
    }
    for (int i = 0; i < LENGTHS; i++) {
        int warps = lengths[i] / LOMBSCARGLE_NUFFT_UNIT;
        uint64_t counters = counting_warps(tiles_of(lengths[i]));
        if (loaded[columns_function(lengths[i])].resident[warps] > 0 &&
            loaded[LOMBSCARGLE_NUFFT_COUNT].resident[counters] > 0) {
            most = lengths[i];
        }
    }
    return most;
}

static double work_of(const struct lombscargle_transform *transform, double samples, double series,
                      double nf, double terms) {
    double rounds = ceil(nf / (double)transform->range);
    double cells = (double)transform->job.length * LOMBSCARGLE_NUFFT_ROW;
    return rounds * terms *
           (2.0 * LAUNCHES_MS * series + 3.0 * (SAMPLE_MS * samples + CELL_MS * cells * series));
}

void lombscargle_transform_make(struct lombscargle_transform *transform, struct stream *stream,
                                int function, const struct lombscargle_args *args,
                                const struct lombscargle_curve *curves, uint64_t series) {
    uint64_t nf = (uint64_t)args->nf, terms = args->nterms > 0 ? (uint64_t)args->nterms : 1;
    int32_t most = length_most(stream, function), length = lengths[0];
    double samples = 0;
    *transform = (struct lombscargle_transform){.stream = stream, .function = function};
    for (uint64_t i = 0; i < series; i++) {
        transform->longest = larger(transform->longest, (uint64_t)curves[i].n);
        samples += (double)curves[i].n;
    }
    if (args->frequency != NULL || most == 0 || transform->longest > SAMPLES_MAX) {
        return;
    }
    uint64_t held = smaller(length_holds(most), SUMS_BYTES / (6 * terms * sizeof(double)));
    transform->range = divide_up(nf, divide_up(nf, held));
    for (int i = 0; length_holds(length) < transform->range; i++) {
        length = lengths[i];
    }
    transform->job = (struct lombscargle_nufft){
        .f0 = args->f0,
        .df = args->df,
        .length = length,
        .tiles = tiles_of(length),
    };
    transform->work = work_of(transform, samples, (double)series, (double)nf, (double)terms);
}

/* Items of a curve at most. */
static uint64_t items_most(const struct lombscargle_nufft *job, uint64_t n, uint64_t part) {
    return smaller((uint64_t)job->tiles, n) + n / part;
}

static uint64_t part_of(uint64_t n) {
    return larger(PART_MIN, divide_up(n, PARTS));
}

/* The next `size` bytes behind `base`, or NULL if there is none. */
static void *part_lay(uint8_t *base, uint64_t *at, uint64_t size) {
    void *part = base != NULL ? base + *at : NULL;
    *at += divide_up(size, STREAM_MEMORY_ALIGN) * STREAM_MEMORY_ALIGN;
    return part;
}

uint64_t lombscargle_transform_lay(struct lombscargle_transform *transform, void *memory) {
    struct lombscargle_nufft *job = &transform->job;
    uint64_t n = transform->longest, tiles = (uint64_t)job->tiles, at = 0;
    /* Shorter curves have shorter parts, so the most items may be those of any length. */
    uint64_t items = smaller(tiles, n) + smaller(n / PART_MIN, PARTS);
    uint64_t complexes = (uint64_t)job->length * LOMBSCARGLE_NUFFT_ROW * 2 * sizeof(double);
    job->totals = part_lay(memory, &at, sizeof *job->totals);
    job->counts = part_lay(memory, &at, tiles * sizeof *job->counts);
    transform->zeroed = at;
    job->places = part_lay(memory, &at, n * sizeof *job->places);
    job->order = part_lay(memory, &at, n * sizeof *job->order);
    job->firsts = part_lay(memory, &at, tiles * sizeof *job->firsts);
    job->spans = part_lay(memory, &at, tiles * sizeof *job->spans);
    job->items = part_lay(memory, &at, items * sizeof *job->items);
    job->roots = part_lay(memory, &at, LOMBSCARGLE_NUFFT_ROOTS * 2 * sizeof(double));
    job->patches = part_lay(memory, &at, items * 4 * LOMBSCARGLE_NUFFT_PATCH * sizeof(double));
    job->lines = part_lay(memory, &at, 2 * complexes);
    return at;
}

enum kiln_status lombscargle_transform_begin(const struct lombscargle_transform *transform) {
    struct stream *stream = transform->stream;
    CUdeviceptr memory = (CUdeviceptr)(uintptr_t)transform->job.totals;
    stream->busy = true;
    return stream_check(
        stream, driver.cuMemsetD8Async(memory, 0, (size_t)transform->zeroed, stream->handle),
        "clearing memory");
}

static enum kiln_status run(const struct lombscargle_transform *transform,
                            struct lombscargle_nufft *job, int which, uint64_t x, uint64_t y,
                            uint64_t warps) {
    struct shape shape = {.grid_x = (unsigned)x, .grid_y = (unsigned)y, .warps = (unsigned)warps};
    return stream_launch(transform->stream, KERNEL_LOMBSCARGLE, transform->function + which, &shape,
                         job, "lombscargle by transforms");
}

static enum kiln_status harmonic_run(const struct lombscargle_transform *transform,
                                     struct lombscargle_nufft *job) {
    const uint64_t warps = LOMBSCARGLE_NUFFT_WARPS, threads = 32 * warps;
    uint64_t n = (uint64_t)job->n, kinds = (uint64_t)job->kinds;
    uint64_t counters = counting_warps(job->tiles);
    uint64_t roots = divide_up(LOMBSCARGLE_NUFFT_ROOTS, threads);
    bool dense = n >= DENSE * (uint64_t)job->tiles;
    uint64_t walks = smaller(divide_up(n, threads),
                             BLOCKS * (uint64_t)transform->stream->device->multiprocessors);
    uint64_t items = items_most(job, n, job->part);
    int spread = job->kinds == 2 ? LOMBSCARGLE_NUFFT_SPREAD_BOTH : LOMBSCARGLE_NUFFT_SPREAD_WEIGHTS;
    const struct {
        int function;
        uint64_t x, y, warps;
    } steps[] = {
        {dense ? LOMBSCARGLE_NUFFT_COUNT : LOMBSCARGLE_NUFFT_COUNT_SPARSE,
         dense ? divide_up(n, 32 * counters * LOMBSCARGLE_NUFFT_EACH) : larger(walks, roots), 1,
         dense ? counters : warps},
        {LOMBSCARGLE_NUFFT_LAY, divide_up((uint64_t)job->tiles, threads), 1, warps},
        {LOMBSCARGLE_NUFFT_ORDER, walks, 1, warps},
        {spread, divide_up(items, LOMBSCARGLE_NUFFT_ITEMS), 1, warps},
        {columns_function(job->length), LOMBSCARGLE_NUFFT_ROW / LOMBSCARGLE_NUFFT_LINES, kinds,
         (uint64_t)job->length / LOMBSCARGLE_NUFFT_UNIT},
        {LOMBSCARGLE_NUFFT_TRANSFORM_ROWS, (uint64_t)job->length / LOMBSCARGLE_NUFFT_LINES, kinds,
         warps},
    };
    enum kiln_status status = KILN_OK;
    for (size_t i = 0; status == KILN_OK && i < sizeof steps / sizeof steps[0]; i++) {
        status = run(transform, job, steps[i].function, steps[i].x, steps[i].y, steps[i].warps);
    }
    return status;
}

/* What Σ w |y - level| cannot exceed, Σ w being 1; rounding of the caller's sums is allowed for. */
static double values_most(const struct lombscargle_curve *curve) {
    double squares = fmax(curve->yy, 0.0) + 0x1p-30 * curve->y_mean * curve->y_mean;
    return 4.0 * sqrt(squares);
}

enum kiln_status lombscargle_transform_run(struct lombscargle_transform *transform,
                                           const struct lombscargle_grid *grid,
                                           const struct lombscargle_curve *curve) {
    struct lombscargle_nufft job = transform->job;
    enum kiln_status status = KILN_OK;
    job.t = grid->t + curve->t;
    job.y = grid->y + curve->y;
    job.w = grid->w + curve->w;
    job.n = curve->n;
    job.part = (uint32_t)part_of((uint64_t)curve->n);
    job.level = grid->fit_mean ? curve->y_mean : 0.0;
    job.value_most = values_most(curve);
    job.first = grid->first;
    job.count = grid->count;
    for (int32_t h = 1; status == KILN_OK && h <= 2 * grid->nterms; h++) {
        double *values = grid->partial + 2 * (h - 1) * grid->count;
        double *weights = grid->partial + 2 * (grid->nterms + h - 1) * grid->count;
        if (stream_cancelled(transform->stream)) {
            return KILN_CANCELLED;
        }
        job.harmonic = h;
        job.last = h == 2 * grid->nterms;
        job.kinds = h <= grid->nterms ? 2 : 1;
        job.sums[0] = job.kinds == 2 ? values : weights;
        job.sums[1] = weights;
        status = harmonic_run(transform, &job);
    }
    return status;
}
