/*
 * lombscargle_nufft.c: the steps of nufft_simd.h over the pool.
 *
 * Few curves come one after the other, each of whose steps is spread over the pool; of many, each
 * is one thread's from begin to end. The arithmetic is the same.
 *
 * Samples are put into buckets of equal time, each wider than the window in every band. Buckets of
 * even number spread side by side, then those of odd number: no two write to the same cells, and
 * the order of additions does not depend on the number of threads.
 *
 * Bins whose equations are nearly singular are computed again by direct sums, which leave those
 * that are too near for these as well to kernels/lombscargle_basis.h.
 */
#include "kernels/cpu/lombscargle/lombscargle_nufft.h"
#include "kernels/cpu/device/plans.h"

#include <math.h>
#include <string.h>

#define BUCKETS_MAX    64
#define BUCKET_SAMPLES 256                 /* at least, on average */
#define BUCKET_CELLS   32                  /* at least */
#define TOGETHER_BYTES ((size_t)512 << 20) /* of spaces when threads have one each */
#define WEAK_SHARE     12 /* a tile with more than 1/12 weak bins is summed up directly */

/* What one curve at a time is computed in. */
struct nufft_space {
    double *t, *w, *wy;             /* its samples, bucket by bucket */
    size_t starts[BUCKETS_MAX + 1]; /* of the buckets */
    size_t buckets;
    struct nufft_sums grid;
    void *middle;
    struct nufft_sums sums[NUFFT_BANDS_MAX];
    struct nufft_harmonic harmonics[NUFFT_HARMONICS_MAX];
    /* Whose sums of weights these are, so that curves which share times and weights share them. */
    const struct lombscargle_curve *owner;
};

struct nufft {
    struct lombscargle_job *job;
    const struct nufft_shape *shape;
    const struct nufft_simd *simd;
    const struct window *window;
    const struct nufft_plan *plans[NUFFT_BANDS_MAX];
    struct nufft_harmonic harmonics[NUFFT_HARMONICS_MAX];
    struct nufft_space *spaces; /* one, or one for each thread */
    void **work;                /* of each thread */
    int64_t **weak;             /* of each thread */
    bool together;              /* one curve at a time on all threads */
};

/* One step of one curve. */
struct step {
    struct nufft *nufft;
    struct nufft_space *space;
    const struct curve *curve;
    int band;
    size_t parity;
    struct nufft_points points;
};

static bool cancelled(const struct step *step) {
    return stream_cancelled(step->nufft->job->stream);
}

static void step_run(const struct step *step, thread_pool_function *function, size_t chunks,
                     int slot) {
    struct step copy = *step;
    if (step->nufft->together) {
        thread_pool_run(step->nufft->job->stream->pool, function, &copy, chunks);
    } else {
        for (size_t i = 0; i < chunks; i++) {
            function(&copy, i, slot);
        }
    }
}

/* The first cell that bucket i and those after it write to; at the ends whole rows of the grid. */
static size_t bucket_cell(const struct step *step, size_t i) {
    const struct nufft_band *band = &step->nufft->shape->band[step->band].band;
    const size_t row = step->nufft->simd->plan_across(step->nufft->plans[step->band]);
    const double half = step->nufft->shape->half;
    if (i == 0) {
        return band->first / row * row;
    }
    if (i >= step->space->buckets) {
        return (band->last / row + 1) * row;
    }
    double t = half * (2 * (double)i / (double)step->space->buckets - 1);
    return (size_t)((double)(band->length / 2) + t * band->scale) - WINDOW_WIDTH / 2 - 2;
}

static void spread_chunk(void *context, size_t chunk, int slot) {
    const struct step *step = context;
    const struct nufft_space *space = step->space;
    const struct nufft_run_of_harmonics *run = &step->nufft->shape->band[step->band];
    size_t bucket = 2 * chunk + step->parity;
    (void)slot;
    if (cancelled(step)) {
        return;
    }
    if (step->parity == 0) {
        size_t first = bucket_cell(step, bucket), last = bucket_cell(step, bucket + 2);
        memset(space->grid.re + first, 0, (last - first) * sizeof(double));
        memset(space->grid.im + first, 0, (last - first) * sizeof(double));
    }
    step->nufft->simd->spread(step->nufft->window, &run->band, &step->points, space->starts[bucket],
                              space->starts[bucket + 1], run->values, space->grid);
}

static void columns_chunk(void *context, size_t chunk, int slot) {
    const struct step *step = context;
    const struct nufft *nufft = step->nufft;
    if (!cancelled(step)) {
        nufft->simd->columns(nufft->plans[step->band], &nufft->shape->band[step->band].band,
                             step->space->grid, chunk, step->space->middle, nufft->work[slot]);
    }
}

static void rows_chunk(void *context, size_t chunk, int slot) {
    const struct step *step = context;
    const struct nufft *nufft = step->nufft;
    if (!cancelled(step)) {
        nufft->simd->rows(nufft->plans[step->band], nufft->window,
                          &nufft->shape->band[step->band].band, chunk, step->space->middle,
                          nufft->work[slot], step->space->sums[step->band]);
    }
}

static void band_run(struct step *step, int slot) {
    const struct nufft *nufft = step->nufft;
    const struct nufft_plan *plan = nufft->plans[step->band];
    for (step->parity = 0; step->parity < 2; step->parity++) {
        step_run(step, spread_chunk, (step->space->buckets + 1 - step->parity) / 2, slot);
    }
    step_run(step, columns_chunk, nufft->simd->plan_across(plan) / nufft->simd->lanes, slot);
    step_run(step, rows_chunk, nufft->simd->plan_down(plan) / nufft->simd->lanes, slot);
}

/* Weak bins again, one by one or, where they are many, with their whole tile. */
static bool weak_repeat(const struct step *step, int64_t first, int64_t count, const int64_t *weak,
                        size_t found, int slot) {
    const struct lombscargle_job *job = step->nufft->job;
    if (found * WEAK_SHARE > (size_t)count) {
        return lombscargle_tile(job, step->curve, first, count, &job->spaces[slot]);
    }
    for (size_t i = 0; i < found; i++) {
        if ((i % 16 == 0 && cancelled(step)) ||
            !lombscargle_bin(job, step->curve, first + weak[i])) {
            return false;
        }
    }
    return true;
}

static void combine_chunk(void *context, size_t chunk, int slot) {
    const struct step *step = context;
    struct lombscargle_job *job = step->nufft->job;
    int64_t first = (int64_t)chunk * job->tile, count = job->args->nf - first;
    const struct nufft_tile tile = {
        .harmonics = step->space->harmonics,
        .model = &step->curve->model,
        .first = first,
        .count = count < job->tile ? count : job->tile,
        .blocks = step->nufft->shape->blocks,
        .power = step->curve->power + first,
        .weak = step->nufft->weak[slot],
    };
    if (cancelled(step)) {
        return;
    }
    size_t found = step->nufft->simd->combine(&tile);
    if (weak_repeat(step, first, tile.count, tile.weak, found, slot)) {
        lombscargle_advance(job);
    }
}

/* So many buckets that each spans BUCKET_CELLS in every band. */
static size_t buckets_choose(const struct nufft_shape *shape, size_t n) {
    size_t most = n / BUCKET_SAMPLES < BUCKETS_MAX ? n / BUCKET_SAMPLES : BUCKETS_MAX;
    for (int i = 0; i < shape->bands; i++) {
        size_t cells = (size_t)(2 * shape->half * shape->band[i].band.scale) / BUCKET_CELLS;
        most = cells < most ? cells : most;
    }
    return most > 1 ? most : 1;
}

/* Samples less their shift, bucket by bucket, each in the order given. */
static void points_fill(const struct step *step) {
    const struct lombscargle_args *args = step->nufft->job->args;
    const struct lombscargle_curve *from = step->curve->from;
    struct nufft_space *space = step->space;
    const double *t = args->t + from->t, *y = args->y + from->y, *w = args->w + from->w;
    const size_t n = (size_t)from->n;
    double half = step->nufft->shape->half, mine, shift = nufft_shift(t, n, &mine);
    double level = args->fit_mean ? from->y_mean : 0;
    size_t places[BUCKETS_MAX + 1] = {0};
    space->buckets = buckets_choose(step->nufft->shape, n);
    const double rate = (double)space->buckets / (2 * half);
#define BUCKET(i) (size_t) fmin(fmax((t[i] - shift + half) * rate, 0), (double)(space->buckets - 1))
    for (size_t i = 0; i < n; i++) {
        places[BUCKET(i) + 1]++;
    }
    for (size_t i = 0; i < space->buckets; i++) {
        places[i + 1] += places[i];
    }
    memcpy(space->starts, places, sizeof places);
    for (size_t i = 0; i < n; i++) {
        size_t place = places[BUCKET(i)]++;
        space->t[place] = t[i] - shift;
        space->w[place] = w[i];
        space->wy[place] = w[i] * (y[i] - level);
    }
#undef BUCKET
}

/* The same times and weights, in the same places. */
static bool curves_share(const struct lombscargle_curve *a, const struct lombscargle_curve *b) {
    return a != NULL && a->t == b->t && a->w == b->w && a->n == b->n;
}

static void curve_run(struct nufft *nufft, const struct curve *curve, struct nufft_space *space,
                      int slot) {
    struct step step = {
        .nufft = nufft,
        .space = space,
        .curve = curve,
        .points = {.t = space->t,
                   .w = space->w,
                   .wy = space->wy,
                   .rate = nufft->shape->df * nufft->shape->up / nufft->shape->down}};
    if (!(curve->model.yy > 0)) {
        for (int64_t k = 0; k < nufft->job->args->nf; k++) {
            curve->power[k] = (double)NAN;
        }
        for (size_t i = 0; i < nufft->job->tiles; i++) {
            lombscargle_advance(nufft->job);
        }
        return;
    }
    points_fill(&step);
    for (step.band = 0; step.band < nufft->shape->bands; step.band++) {
        if (nufft->shape->band[step.band].values || !curves_share(space->owner, curve->from)) {
            band_run(&step, slot);
        }
    }
    space->owner = curve->from;
    step_run(&step, combine_chunk, nufft->job->tiles, slot);
}

static void curve_chunk(void *context, size_t chunk, int slot) {
    struct nufft *nufft = context;
    if (!stream_cancelled(nufft->job->stream)) {
        curve_run(nufft, &nufft->job->curves[chunk], &nufft->spaces[slot], slot);
    }
}

void nufft_run(struct nufft *nufft) {
    const struct lombscargle_job *job = nufft->job;
    if (!nufft->together) {
        thread_pool_run(job->stream->pool, curve_chunk, nufft, job->count);
        return;
    }
    for (size_t i = 0; i < job->count && !stream_cancelled(job->stream); i++) {
        curve_run(nufft, &job->curves[i], nufft->spaces, 0);
    }
}

static enum kiln_status plans_find(struct nufft *nufft) {
    struct stream *stream = nufft->job->stream;
    for (int i = 0; i < nufft->shape->bands; i++) {
        size_t length = nufft->shape->band[i].band.length;
        nufft->plans[i] = plans_take(stream->device->plans, &nufft->simd->plans, length);
        if (nufft->plans[i] == NULL) {
            return stream_fail(stream, KILN_NO_MEMORY, "no memory for a transform of %zu", length);
        }
    }
    return KILN_OK;
}

static enum kiln_status filters_fill(struct nufft *nufft) {
    const struct nufft_shape *shape = nufft->shape;
    for (int h = 1; h <= 2 * shape->terms; h++) {
        struct nufft_harmonic *harmonic = &nufft->harmonics[h - 1];
        size_t count = (size_t)shape->blocks * (size_t)shape->taps[h - 1] * NUFFT_BLOCK;
        double *filters = stream_take(nufft->job->stream, count * sizeof *filters);
        int64_t *bases = stream_take(nufft->job->stream, (size_t)shape->blocks * sizeof *bases);
        if (filters == NULL || bases == NULL) {
            return KILN_NO_MEMORY;
        }
        nufft_filters(shape, nufft->window, h, filters, bases);
        *harmonic = (struct nufft_harmonic){
            .filter = filters,
            .base = bases,
            .step = NUFFT_BLOCK * shape->blocks * h * shape->down / shape->up,
            .taps = shape->taps[h - 1],
        };
    }
    return KILN_OK;
}

static bool sums_take(struct stream *stream, size_t count, struct nufft_sums *sums) {
    double *re = stream_take(stream, (count + 2 * NUFFT_PAD) * sizeof *re);
    double *im = stream_take(stream, (count + 2 * NUFFT_PAD) * sizeof *im);
    *sums = (struct nufft_sums){re + NUFFT_PAD, im + NUFFT_PAD};
    return re != NULL && im != NULL;
}

static bool space_fill(struct nufft *nufft, size_t samples, struct nufft_space *space) {
    const struct nufft_shape *shape = nufft->shape;
    struct stream *stream = nufft->job->stream;
    size_t longest = 0;
    bool room = true;
    *space = (struct nufft_space){
        .t = stream_take(stream, samples * sizeof(double)),
        .w = stream_take(stream, samples * sizeof(double)),
        .wy = stream_take(stream, samples * sizeof(double)),
    };
    memcpy(space->harmonics, nufft->harmonics, sizeof space->harmonics);
    for (int i = 0; room && i < shape->bands; i++) {
        const struct nufft_run_of_harmonics *run = &shape->band[i];
        longest = run->band.length > longest ? run->band.length : longest;
        room = sums_take(stream, run->band.count, &space->sums[i]);
        for (int h = run->anchor; h <= run->last; h++) {
            *(run->values ? &space->harmonics[h - 1].wy : &space->harmonics[h - 1].w) =
                space->sums[i];
        }
    }
    space->middle = stream_take(stream, longest * 2 * sizeof(double));
    return room && sums_take(stream, longest, &space->grid) && space->middle != NULL &&
           space->t != NULL && space->w != NULL && space->wy != NULL;
}

static enum kiln_status spaces_fill(struct nufft *nufft, size_t samples) {
    struct stream *stream = nufft->job->stream;
    size_t width = (size_t)thread_pool_width(stream->pool), bytes = 0;
    for (int i = 0; i < nufft->shape->bands; i++) {
        size_t mine = nufft->simd->plan_work(nufft->plans[i]);
        bytes = mine > bytes ? mine : bytes;
    }
    nufft->work = stream_take(stream, width * sizeof *nufft->work);
    nufft->weak = stream_take(stream, width * sizeof *nufft->weak);
    nufft->spaces = stream_take(stream, width * sizeof *nufft->spaces);
    if (nufft->work == NULL || nufft->weak == NULL || nufft->spaces == NULL) {
        return KILN_NO_MEMORY;
    }
    for (size_t i = 0; i < width; i++) {
        nufft->work[i] = stream_take(stream, bytes);
        nufft->weak[i] = stream_take(stream, (size_t)nufft->job->tile * sizeof(int64_t));
        if (nufft->work[i] == NULL || nufft->weak[i] == NULL ||
            ((i == 0 || !nufft->together) && !space_fill(nufft, samples, &nufft->spaces[i]))) {
            return KILN_NO_MEMORY;
        }
    }
    return KILN_OK;
}

/* Tiles that are whole both in rows of direct sums and in blocks of filters. */
static void tiles_choose(struct lombscargle_job *job, const struct nufft_shape *shape) {
    const int64_t rows = LOMBSCARGLE_RENEW * LOMBSCARGLE_ROW;
    int64_t grain = shape->blocks % 2 ? rows * shape->blocks : rows * (shape->blocks / 2);
    if (grain % (NUFFT_BLOCK * NUFFT_BLOCKS * shape->blocks) != 0) {
        grain = rows * shape->blocks;
    }
    job->tile = LOMBSCARGLE_TILE_MAX / grain * grain;
    job->tiles = (size_t)((job->args->nf - 1) / job->tile + 1);
}

enum kiln_status nufft_begin(struct lombscargle_job *job, const struct nufft_shape *shape,
                             size_t series, struct nufft **out) {
    const struct lombscargle_args *args = job->args;
    size_t width = (size_t)thread_pool_width(job->stream->pool), samples = (size_t)args->n;
    struct nufft *nufft = stream_take(job->stream, sizeof *nufft);
    if (nufft == NULL) {
        return KILN_NO_MEMORY;
    }
    *nufft = (struct nufft){
        .job = job,
        .shape = shape,
        .simd = nufft_simd_of(job->stream->isa),
        .window = window_get(),
        .together = series < 2 * width || shape->bytes > TOGETHER_BYTES / width,
    };
    *out = nufft;
    for (size_t i = 0; args->series > 0 && i < series; i++) {
        size_t mine = (size_t)args->curves[i].n;
        samples = i == 0 || mine > samples ? mine : samples;
    }
    tiles_choose(job, shape);
    enum kiln_status status = plans_find(nufft);
    if (status == KILN_OK) {
        status = filters_fill(nufft);
    }
    return status == KILN_OK ? spaces_fill(nufft, samples) : status;
}

void nufft_finish(struct nufft *nufft) {
    if (nufft == NULL) {
        return;
    }
    for (int i = 0; i < nufft->shape->bands; i++) {
        plans_give(nufft->job->stream->device->plans, nufft->plans[i]);
    }
}

const struct nufft_simd *nufft_simd_of(enum isa isa) {
    static const struct nufft_simd *const tables[ISA_COUNT] = {
#define X(isa) [ISA_##isa] = &nufft_##isa##_f64,
        KILN_CPU_ISAS(X)
#undef X
    };
    return tables[isa];
}
