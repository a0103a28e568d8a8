/*
 * lombscargle.c: the periodograms of kernels/lombscargle.h.
 *
 * A grid is cut into tiles of rows of neighbouring frequencies, a list into runs; those of all
 * curves of a group are spread over the pool. The inner files (lombscargle_simd.h) add up the sums,
 * and from the sums to the power everything is in double. Where only peaks are wanted a group's
 * power lies in scratch.
 */
#include "kernels/lombscargle.h"
#include "kernels/cpu/lombscargle_peaks.h"
#include "kernels/cpu/lombscargle_simd.h"
#include "kernels/cpu/stream.h"
#include "kernels/lombscargle_power.h"

#include <math.h>
#include <string.h>

#define TILES_THREAD 4                  /* that a thread should have at least */
#define GROUP_BYTES  ((size_t)64 << 20) /* of power that is in scratch, or of copied samples */
#define GRID_MIN     128 /* frequencies: for fewer a tile computes too many in vain */

static const struct lombscargle_simd *const tables[ISA_COUNT][2] = {
#define X(isa) [ISA_##isa] = {&lombscargle_##isa##_f32, &lombscargle_##isa##_f64},
    KILN_CPU_ISAS(X)
#undef X
};

/* One curve of a group. */
struct curve {
    struct lombscargle_samples samples;
    struct lombscargle_model model;
    double weight; /* of all weights as `samples` has them */
    double *power;
    struct lombscargle_peak *peaks;
};

/* What one thread writes to. */
struct space {
    struct lombscargle_work work;
    double *sums; /* [frequency][sum] of one tile */
};

struct job {
    struct stream *stream;
    const struct lombscargle_args *args;
    const struct lombscargle_simd *simd;
    struct space *spaces; /* one for each thread */
    struct curve *curves;
    size_t count;       /* curves of the group */
    int64_t tile;       /* frequencies */
    size_t tiles;       /* of each curve */
    atomic_size_t done; /* tiles, of `chunks` */
    size_t chunks;
    int terms;
    bool listed;
};

/* f0 + k df as a sum of two doubles. */
static double grid_frequency(const struct lombscargle_args *args, double k, double *low) {
    double product = k * args->df;
    double product_low = fma(k, args->df, -product);
    double f = args->f0 + product;
    double back = f - args->f0;
    *low = (args->f0 - (f - back)) + (product - back) + product_low;
    return f;
}

/* From the products of one harmonic's weights (or values) to two of the sums at each frequency. */
static void products_combine(const double *products, int rows, int64_t count, double *sums,
                             int stride) {
    const int half = LOMBSCARGLE_OFFSETS;
    for (int64_t i = 0; i < rows; i++, products += 2 * LOMBSCARGLE_ROW) {
        const double *cosine = products, *sine = products + LOMBSCARGLE_ROW;
        for (int m = 0; m < half; m++) {
            int64_t above = i * LOMBSCARGLE_ROW + half + m, below = above - 2 * m - 1;
            if (below < count) {
                sums[below * stride] = cosine[m] + sine[half + m];
                sums[below * stride + 1] = sine[m] - cosine[half + m];
            }
            if (above < count) {
                sums[above * stride] = cosine[m] - sine[half + m];
                sums[above * stride + 1] = sine[m] + cosine[half + m];
            }
        }
    }
}

/* `count` neighbouring frequencies of a grid; false if cancelled. */
static bool grid_sums(const struct job *job, const struct curve *curve, int64_t first,
                      int64_t count, const struct space *space) {
    struct lombscargle_rows rows = {.df = job->args->df};
    rows.rows = (int)((count + 4 * LOMBSCARGLE_ROW - 1) / (4 * LOMBSCARGLE_ROW)) * 4;
    rows.f = grid_frequency(job->args, (double)first + LOMBSCARGLE_OFFSETS - 0.5, &rows.f_low);
    size_t half = 2 * (size_t)rows.rows * LOMBSCARGLE_ROW;
    int stride = LOMBSCARGLE_SUMS(job->terms);
    for (int h = 1; h <= 2 * job->terms; h++) {
        bool values = h <= job->terms;
        double *products = space->work.products, *sums = space->sums + 2 * (h - 1);
        memset(products, 0, (values ? 2 : 1) * half * sizeof *products);
        for (size_t at = 0; at < curve->samples.n; at += LOMBSCARGLE_BLOCK) {
            size_t n = curve->samples.n - at;
            if (stream_cancelled(job->stream))
                return false;
            job->simd->block(&curve->samples, at, n < LOMBSCARGLE_BLOCK ? n : LOMBSCARGLE_BLOCK,
                             &rows, h, values, &space->work);
        }
        products_combine(products, rows.rows, count, sums + 2 * job->terms, stride);
        if (values)
            products_combine(products + half, rows.rows, count, sums, stride);
    }
    return true;
}

static bool listed_sums(const struct job *job, const struct curve *curve, int64_t first,
                        int64_t count, double *sums) {
    size_t stride = LOMBSCARGLE_SUMS((size_t)job->terms);
    memset(sums, 0, (size_t)count * stride * sizeof *sums);
    for (int64_t k = 0; k < count; k++, sums += stride) {
        const double *list = job->args->frequency;
        double low = 0;
        double f = list ? list[first + k] : grid_frequency(job->args, (double)(first + k), &low);
        for (size_t at = 0; at < curve->samples.n; at += LOMBSCARGLE_BLOCK) {
            size_t n = curve->samples.n - at;
            if (at % (64 * LOMBSCARGLE_BLOCK) == 0 && stream_cancelled(job->stream))
                return false;
            job->simd->pair(&curve->samples, at, n < LOMBSCARGLE_BLOCK ? n : LOMBSCARGLE_BLOCK, f,
                            low, job->terms, sums);
        }
    }
    return true;
}

static double power_make(const struct curve *curve, const double *sums) {
    const struct lombscargle_model *model = &curve->model;
    double work[LOMBSCARGLE_WORK(LOMBSCARGLE_TERMS_MAX)];
    for (int i = 0; i < LOMBSCARGLE_SUMS(model->nterms); i++)
        work[i] = sums[i] / curve->weight;
    return lombscargle_normalized(model, model->nterms == 1
                                             ? lombscargle_power_one(model, work)
                                             : lombscargle_power_many(model, work, 1));
}

static void tile_run(void *context, size_t chunk, int slot) {
    struct job *job = context;
    const struct curve *curve = &job->curves[chunk / job->tiles];
    const struct space *space = &job->spaces[slot];
    int64_t first = (int64_t)(chunk % job->tiles) * job->tile, count = job->args->nf - first;
    count = count < job->tile ? count : job->tile;
    bool done = job->listed ? listed_sums(job, curve, first, count, space->sums)
                            : grid_sums(job, curve, first, count, space);
    if (!done)
        return;
    for (int64_t k = 0; k < count; k++)
        curve->power[first + k] = power_make(curve, space->sums + k * LOMBSCARGLE_SUMS(job->terms));
}

static void peaks_run(void *context, size_t chunk, int slot) {
    const struct job *job = context;
    const struct curve *curve = &job->curves[chunk];
    (void)slot;
    if (!stream_cancelled(job->stream))
        lombscargle_peaks_keep(curve->power, job->args->nf, curve->peaks, job->args->peak_count);
}

/* Copies a curve's samples; those added to fill its last vector weigh nothing. */
static enum kiln_status curve_fill(struct job *job, const struct lombscargle_curve *from,
                                   struct curve *to) {
    const struct lombscargle_args *args = job->args;
    size_t n = (size_t)from->n, padded, size;
    if (__builtin_add_overflow(n, LOMBSCARGLE_GRAIN - 1, &padded) ||
        __builtin_mul_overflow(padded, sizeof(double), &size))
        return stream_fail(job->stream, KILN_JOB_TOO_LARGE, "too many samples");
    padded -= padded % LOMBSCARGLE_GRAIN;
    double *t = stream_take(job->stream, padded * sizeof *t);
    char *w = stream_take(job->stream, padded * job->simd->element);
    char *wy = stream_take(job->stream, padded * job->simd->element);
    if (!t || !w || !wy)
        return KILN_NO_MEMORY;
    memcpy(t, args->t + from->t, n * sizeof *t);
    memset(t + n, 0, (padded - n) * sizeof *t);
    /* In float equal weights shall be exactly 1. With a floating mean YC - Y C is the sum over
       y - Y: taken off here, before values are rounded, a large mean costs no digits. */
    to->weight = args->fp32 ? (double)n : 1;
    job->simd->weigh(args->w + from->w, args->y + from->y, args->fit_mean ? from->y_mean : 0,
                     to->weight, n, w, wy);
    memset(w + n * job->simd->element, 0, (padded - n) * job->simd->element);
    memset(wy + n * job->simd->element, 0, (padded - n) * job->simd->element);
    to->samples = (struct lombscargle_samples){.n = padded, .t = t, .w = w, .wy = wy};
    to->model = (struct lombscargle_model){
        .yy = from->yy,
        .psd_factor = from->psd_factor,
        .rounding = args->fp32 ? LOMBSCARGLE_ROUNDING_FP32 : LOMBSCARGLE_ROUNDING_FP64,
        .fit_mean = args->fit_mean,
        .normalization = args->normalization,
        .nterms = job->terms,
    };
    return KILN_OK;
}

static enum kiln_status spaces_fill(struct job *job) {
    size_t width = (size_t)pool_width(job->stream->pool);
    size_t sums = (size_t)job->tile * LOMBSCARGLE_SUMS((size_t)job->terms);
    const size_t right = LOMBSCARGLE_BLOCK * LOMBSCARGLE_ROW, rows = LOMBSCARGLE_ROWS;
    job->spaces = stream_take(job->stream, width * sizeof *job->spaces);
    if (!job->spaces)
        return KILN_NO_MEMORY;
    for (size_t i = 0; i < width; i++) {
        struct space *space = &job->spaces[i];
        struct lombscargle_work *work = &space->work;
        *space = (struct space){.sums = stream_take(job->stream, sums * sizeof(double))};
        if (!job->listed) {
            work->left = stream_take(job->stream, LOMBSCARGLE_BLOCK * 4 * rows * sizeof(double));
            work->right = stream_take(job->stream, right * sizeof(double));
            work->products = stream_take(job->stream, 4 * rows * LOMBSCARGLE_ROW * sizeof(double));
        }
        if (!space->sums || (!job->listed && (!work->left || !work->right || !work->products)))
            return KILN_NO_MEMORY;
    }
    return KILN_OK;
}

/* A tile as large as leaves every thread a few. */
static void tiles_choose(struct job *job, size_t series) {
    const int64_t nf = job->args->nf;
    int64_t threads = (int64_t)pool_width(job->stream->pool) * TILES_THREAD;
    int64_t share = nf / (threads / (int64_t)(series < 64 ? series : 64) + 1);
    int64_t rows = share / LOMBSCARGLE_ROW / 4 * 4;
    job->listed = job->args->frequency || nf < GRID_MIN;
    rows = rows < 4 ? 4 : rows > LOMBSCARGLE_ROWS ? LOMBSCARGLE_ROWS : rows;
    job->tile = job->listed ? 16 : rows * LOMBSCARGLE_ROW;
    job->tiles = (size_t)((nf - 1) / job->tile + 1);
}

/* Curves from `first` on whose samples and power fit into GROUP_BYTES, at least one. */
static size_t group_size(const struct job *job, const struct lombscargle_curve *curves,
                         size_t series) {
    size_t bytes = 0, count = 0;
    while (count < series && (count == 0 || bytes < GROUP_BYTES)) {
        bytes += (size_t)curves[count].n * 24;
        bytes += job->args->power ? 0 : (size_t)job->args->nf * sizeof(double);
        count++;
    }
    return count;
}

/* Memory that is taken once for the largest group is used by all. */
static enum kiln_status group_run(struct job *job, const struct lombscargle_curve *curves,
                                  size_t first) {
    const struct lombscargle_args *args = job->args;
    enum kiln_status status = KILN_OK;
    job->curves = stream_take(job->stream, job->count * sizeof *job->curves);
    if (!job->curves)
        return KILN_NO_MEMORY;
    for (size_t i = 0; status == KILN_OK && i < job->count; i++) {
        struct curve *curve = &job->curves[i];
        status = curve_fill(job, &curves[i], curve);
        curve->power = args->power ? args->power + (first + i) * (size_t)args->nf
                                   : stream_take(job->stream, (size_t)args->nf * sizeof(double));
        curve->peaks = args->peaks ? args->peaks + (first + i) * (size_t)args->peak_count : NULL;
        if (status == KILN_OK && !curve->power)
            status = KILN_NO_MEMORY;
    }
    if (status != KILN_OK)
        return status;
    pool_run(job->stream->pool, tile_run, job, job->count * job->tiles);
    if (args->peaks && !stream_cancelled(job->stream))
        pool_run(job->stream->pool, peaks_run, job, job->count);
    return stream_cancelled(job->stream) ? KILN_CANCELLED : KILN_OK;
}

enum kiln_status lombscargle_launch(struct stream *stream, const void *arguments) {
    const struct lombscargle_args *args = arguments;
    const struct lombscargle_curve single = {
        .n = args->n, .y_mean = args->y_mean, .yy = args->yy, .psd_factor = args->psd_factor};
    const struct lombscargle_curve *curves = args->series > 0 ? args->curves : &single;
    size_t series = args->series > 0 ? (size_t)args->series : 1;
    struct job job = {
        .stream = stream,
        .args = args,
        .simd = tables[stream->isa][args->fp32 ? 0 : 1],
        .terms = args->nterms > 0 ? args->nterms : 1,
    };
    tiles_choose(&job, series);
    job.chunks = job.tiles * series;
    enum kiln_status status = spaces_fill(&job);
    for (size_t at = 0; status == KILN_OK && at < series; at += job.count) {
        struct memory_mark mark = memory_mark(&stream->scratch);
        job.count = group_size(&job, curves + at, series - at);
        status = group_run(&job, curves + at, at);
        memory_release(&stream->scratch, mark);
    }
    return status;
}
