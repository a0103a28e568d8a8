/*
 * lombscargle.c: the periodograms of kernels/lombscargle.h.
 *
 * A grid is cut into tiles of rows of neighbouring frequencies, a list into runs; those of all
 * curves of a group are spread over the pool. The inner files (lombscargle_simd.h) add up the sums,
 * and from the sums to the power everything is in double. Where only peaks are wanted a group's
 * power lies in scratch.
 */
#include "kernels/cpu/lombscargle/lombscargle_job.h"
#include "kernels/cpu/lombscargle/lombscargle_nufft.h"
#include "kernels/cpu/lombscargle/lombscargle_peaks.h"

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

static void tile_run(void *context, size_t chunk, int slot) {
    struct lombscargle_job *job = context;
    const struct curve *curve = &job->curves[chunk / job->tiles];
    int64_t first = (int64_t)(chunk % job->tiles) * job->tile, count = job->args->nf - first;
    if (lombscargle_tile(job, curve, first, count < job->tile ? count : job->tile,
                         &job->spaces[slot])) {
        lombscargle_advance(job);
    }
}

static void peaks_run(void *context, size_t chunk, int slot) {
    const struct lombscargle_job *job = context;
    const struct curve *curve = &job->curves[chunk];
    (void)slot;
    if (!stream_cancelled(job->stream)) {
        lombscargle_peaks_keep(curve->power, job->args->nf, job->args->fp32, curve->peaks,
                               job->args->peak_count);
    }
}

/* Copies a curve's samples; those added to fill its last vector weigh nothing. */
static enum kiln_status curve_fill(struct lombscargle_job *job,
                                   const struct lombscargle_curve *from, struct curve *to) {
    const struct lombscargle_args *args = job->args;
    size_t n = (size_t)from->n, padded, size;
    if (__builtin_add_overflow(n, LOMBSCARGLE_GRAIN - 1, &padded) ||
        __builtin_mul_overflow(padded, sizeof(double), &size)) {
        return stream_fail(job->stream, KILN_JOB_TOO_LARGE, "too many samples");
    }
    padded -= padded % LOMBSCARGLE_GRAIN;
    double *t = stream_take(job->stream, padded * sizeof *t);
    char *w = stream_take(job->stream, padded * job->simd->element);
    char *wy = stream_take(job->stream, padded * job->simd->element);
    if (t == NULL || w == NULL || wy == NULL) {
        return KILN_NO_MEMORY;
    }
    memcpy(t, args->t + from->t, n * sizeof *t);
    memset(t + n, 0, (padded - n) * sizeof *t);
    /* In float equal weights shall be exactly 1. With a floating mean YC - Y C is the sum over
       y - Y: taken off here, before values are rounded, a large mean costs no digits. */
    to->weight = args->fp32 ? (double)n : 1;
    job->simd->weigh(args->w + from->w, args->y + from->y, args->fit_mean ? from->y_mean : 0,
                     to->weight, n, w, wy);
    memset(w + n * job->simd->element, 0, (padded - n) * job->simd->element);
    memset(wy + n * job->simd->element, 0, (padded - n) * job->simd->element);
    to->from = from;
    to->samples = (struct lombscargle_samples){.n = padded, .t = t, .w = w, .wy = wy};
    to->model = (struct lombscargle_model){
        .yy = from->yy,
        .psd_factor = from->psd_factor,
        .weak = lombscargle_weak(args->fp32 ? LOMBSCARGLE_WEAK_FP32 : LOMBSCARGLE_WEAK_FP64,
                                 from->n, job->terms),
        .fit_mean = args->fit_mean,
        .normalization = args->normalization,
        .nterms = job->terms,
    };
    return KILN_OK;
}

static enum kiln_status spaces_fill(struct lombscargle_job *job) {
    size_t width = (size_t)thread_pool_width(job->stream->pool);
    size_t sums = (size_t)job->tile * LOMBSCARGLE_SUMS((size_t)job->terms);
    const size_t right = LOMBSCARGLE_BLOCK * LOMBSCARGLE_ROW, rows = LOMBSCARGLE_ROWS;
    job->spaces = stream_take(job->stream, width * sizeof *job->spaces);
    if (job->spaces == NULL) {
        return KILN_NO_MEMORY;
    }
    for (size_t i = 0; i < width; i++) {
        struct space *space = &job->spaces[i];
        struct lombscargle_work *work = &space->work;
        *space = (struct space){.sums = stream_take(job->stream, sums * sizeof(double))};
        if (!job->listed) {
            work->left = stream_take(job->stream, LOMBSCARGLE_BLOCK * 4 * rows * sizeof(double));
            work->right = stream_take(job->stream, right * sizeof(double));
            work->products = stream_take(job->stream, 4 * rows * LOMBSCARGLE_ROW * sizeof(double));
        }
        if (space->sums == NULL || (!job->listed && (work->left == NULL || work->right == NULL ||
                                                     work->products == NULL))) {
            return KILN_NO_MEMORY;
        }
    }
    return KILN_OK;
}

/* A tile as large as leaves every thread a few. */
static void tiles_choose(struct lombscargle_job *job, size_t series) {
    const int64_t nf = job->args->nf;
    int64_t threads = (int64_t)thread_pool_width(job->stream->pool) * TILES_THREAD;
    int64_t share = nf / (threads / (int64_t)(series < 64 ? series : 64) + 1);
    int64_t rows = share / LOMBSCARGLE_ROW / LOMBSCARGLE_RENEW * LOMBSCARGLE_RENEW;
    job->listed = job->args->frequency != NULL || nf < GRID_MIN;
    rows = rows < LOMBSCARGLE_RENEW  ? LOMBSCARGLE_RENEW
           : rows > LOMBSCARGLE_ROWS ? LOMBSCARGLE_ROWS
                                     : rows;
    job->tile = job->listed ? 16 : rows * LOMBSCARGLE_ROW;
    job->tiles = (size_t)((nf - 1) / job->tile + 1);
}

/* Curves from `first` on whose samples and power fit into GROUP_BYTES, at least one. */
static size_t group_size(const struct lombscargle_job *job, const struct lombscargle_curve *curves,
                         size_t series) {
    size_t bytes = 0, count = 0;
    while (count < series && (count == 0 || bytes < GROUP_BYTES)) {
        bytes += (size_t)curves[count].n * 24;
        bytes += job->args->power != NULL ? 0 : (size_t)job->args->nf * sizeof(double);
        count++;
    }
    return count;
}

/* Memory that is taken once for the largest group is used by all. */
static enum kiln_status group_run(struct lombscargle_job *job, struct nufft *nufft,
                                  const struct lombscargle_curve *curves, size_t first) {
    const struct lombscargle_args *args = job->args;
    enum kiln_status status = KILN_OK;
    job->curves = stream_take(job->stream, job->count * sizeof *job->curves);
    if (job->curves == NULL) {
        return KILN_NO_MEMORY;
    }
    for (size_t i = 0; status == KILN_OK && i < job->count; i++) {
        struct curve *curve = &job->curves[i];
        status = curve_fill(job, &curves[i], curve);
        curve->power = args->power != NULL
                           ? args->power + (first + i) * (size_t)args->nf
                           : stream_take(job->stream, (size_t)args->nf * sizeof(double));
        curve->peaks =
            args->peaks != NULL ? args->peaks + (first + i) * (size_t)args->peak_count : NULL;
        if (status == KILN_OK && curve->power == NULL) {
            status = KILN_NO_MEMORY;
        }
    }
    if (status != KILN_OK) {
        return status;
    }
    if (nufft != NULL) {
        nufft_run(nufft);
    } else {
        thread_pool_run(job->stream->pool, tile_run, job, job->count * job->tiles);
    }
    if (args->peaks != NULL && !stream_cancelled(job->stream)) {
        thread_pool_run(job->stream->pool, peaks_run, job, job->count);
    }
    return stream_cancelled(job->stream) ? KILN_CANCELLED : KILN_OK;
}

/* Whether the NUFFT is to be used: it must be able to, and be asked for or the faster one. */
static bool nufft_choose(const struct lombscargle_args *args,
                         const struct lombscargle_curve *curves, size_t series,
                         struct nufft_shape *shape) {
    bool chosen =
        args->method != LOMBSCARGLE_METHOD_DIRECT &&
        nufft_shape_make(args, curves, series, shape) &&
        (args->method == LOMBSCARGLE_METHOD_NUFFT || nufft_faster(args, curves, series, shape));
    if (args->method_used != NULL) {
        *args->method_used = chosen ? LOMBSCARGLE_METHOD_NUFFT : LOMBSCARGLE_METHOD_DIRECT;
    }
    return chosen;
}

enum kiln_status lombscargle_launch(struct stream *stream, const void *arguments) {
    const struct lombscargle_args *args = arguments;
    const struct lombscargle_curve single = {
        .n = args->n, .y_mean = args->y_mean, .yy = args->yy, .psd_factor = args->psd_factor};
    const struct lombscargle_curve *curves = args->series > 0 ? args->curves : &single;
    size_t series = args->series > 0 ? (size_t)args->series : 1;
    struct lombscargle_job job = {
        .stream = stream,
        .args = args,
        .simd = tables[stream->isa][args->fp32 ? 0 : 1],
        .terms = args->nterms > 0 ? args->nterms : 1,
    };
    struct nufft_shape shape;
    struct nufft *nufft = NULL;
    enum kiln_status status = KILN_OK;
    tiles_choose(&job, series);
    struct memory_mark start = memory_mark(&stream->scratch);
    if (nufft_choose(args, curves, series, &shape)) {
        status = nufft_begin(&job, &shape, series, &nufft);
    }
    if (status == KILN_NO_MEMORY) { /* direct sums need hardly any */
        nufft_finish(nufft);
        nufft = NULL;
        memory_release(&stream->scratch, start);
        stream->error[0] = '\0';
        tiles_choose(&job, series);
        if (args->method_used != NULL) {
            *args->method_used = LOMBSCARGLE_METHOD_DIRECT;
        }
        status = KILN_OK;
    }
    job.chunks = job.tiles * series;
    if (status == KILN_OK) {
        status = spaces_fill(&job);
    }
    for (size_t at = 0; status == KILN_OK && at < series; at += job.count) {
        struct memory_mark mark = memory_mark(&stream->scratch);
        job.count = group_size(&job, curves + at, series - at);
        status = group_run(&job, nufft, curves + at, at);
        memory_release(&stream->scratch, mark);
    }
    nufft_finish(nufft);
    return status;
}
