/*
 * lombscargle.c: the direct periodogram of kernels/lombscargle.h.
 *
 * Tiles of RESEED neighbouring frequencies are spread over the pool. In a grid the trigonometry of
 * a tile's first frequency is turned on to the others by rotation; with a list of frequencies each
 * is a tile of its own. From the seven sums to the power everything is in double.
 */
#include "kernels/lombscargle.h"
#include "kernels/cpu/lombscargle_simd.h"
#include "kernels/cpu/stream.h"

#include <math.h>
#include <string.h>

#define RESEED      64 /* most frequencies from one evaluation of sines and cosines */
#define RESEED_FP32 32 /* in float, where rotation loses digits sooner */
#define CHUNK_PAIRS ((size_t)1 << 16) /* samples × frequencies that are worth a chunk */

static const struct lombscargle_simd *const tables[ISA_COUNT][2] = {
#define X(isa) [ISA_##isa] = {&lombscargle_##isa##_f32, &lombscargle_##isa##_f64},
    KILN_CPU_ISAS(X)
#undef X
};

struct job {
    struct stream *stream;
    const struct lombscargle_args *args;
    const struct lombscargle_simd *simd;
    struct lombscargle_samples samples;
    int64_t tile, chunk; /* frequencies */
    atomic_size_t done;  /* chunks, of `chunks` */
    size_t chunks;
};

/* p of the normal equations, clamped to what it can be; NaN where it is not defined. */
static double power_standard(const struct lombscargle_args *args, const double *sum) {
    double yc = sum[SUM_YC], ys = sum[SUM_YS];
    double cc = sum[SUM_CC], cs = sum[SUM_CS], ss = sum[SUM_SS];
    if (args->fit_mean) {
        double c = sum[SUM_C], s = sum[SUM_S];
        cc -= c * c;
        cs -= c * s;
        ss -= s * s;
    }
    /* What rounding leaves of sums whose terms have weight 1 in all. */
    const double rounding = args->fp32 ? 0x1p-16 : 0x1p-45;
    double most = fmax(cc, ss), d = cc * ss - cs * cs;
    if (!(most > rounding) || !(args->yy > 0))
        return (double)NAN;
    double p = d > rounding * (cc + ss)
                   ? (ss * yc * yc + cc * ys * ys - 2 * cs * yc * ys) / (args->yy * d)
                   : (cc >= ss ? yc * yc / cc : ys * ys / ss) / args->yy;
    return p < 0 ? 0 : p > 1 ? 1 : p;
}

static double power_normalize(const struct lombscargle_args *args, double p) {
    switch ((enum lombscargle_normalization)args->normalization) {
    case LOMBSCARGLE_MODEL:
        return p / (1 - p);
    case LOMBSCARGLE_LOG:
        return -log1p(-p);
    case LOMBSCARGLE_PSD:
        return p * args->psd_factor;
    case LOMBSCARGLE_STANDARD:
        break;
    }
    return p;
}

/* f0 + k df as a sum of two doubles. */
static double grid_frequency(const struct lombscargle_args *args, int64_t k, double *low) {
    double steps = (double)k, product = steps * args->df;
    double product_low = fma(steps, args->df, -product);
    double f = args->f0 + product;
    double back = f - args->f0;
    *low = (args->f0 - (f - back)) + (product - back) + product_low;
    return f;
}

/* `count` ≤ RESEED neighbouring frequencies; false if cancelled. */
static bool tile_run(const struct job *job, int64_t first, int count) {
    const struct lombscargle_args *args = job->args;
    double sums[RESEED][SUM_COUNT];
    memset(sums, 0, sizeof sums);
    double low = 0;
    double f = args->frequency ? args->frequency[first] : grid_frequency(args, first, &low);
    for (size_t at = 0; at < job->samples.n; at += LOMBSCARGLE_BLOCK) {
        size_t n = job->samples.n - at;
        if (stream_cancelled(job->stream))
            return false;
        job->simd->sums(&job->samples, at, n < LOMBSCARGLE_BLOCK ? n : LOMBSCARGLE_BLOCK, f, low,
                        count, sums);
    }
    for (int k = 0; k < count; k++)
        args->power[first + k] = power_normalize(args, power_standard(args, sums[k]));
    return true;
}

static void chunk_run(void *context, size_t chunk, int slot) {
    (void)slot;
    struct job *job = context;
    int64_t first = (int64_t)chunk * job->chunk, end = job->args->nf - first;
    end = first + (end < job->chunk ? end : job->chunk);
    int64_t tile = job->tile;
    for (int64_t k = first; k < end; k += tile) {
        if (!tile_run(job, k, (int)(end - k < tile ? end - k : tile)))
            return;
    }
    size_t done = atomic_fetch_add_explicit(&job->done, 1, memory_order_relaxed) + 1;
    control_advance(job->stream->control, done, job->chunks);
}

/* Copies the samples into whole vectors; those added weigh nothing. */
static enum kiln_status samples_fill(struct job *job) {
    const struct lombscargle_args *args = job->args;
    size_t n = (size_t)args->n, lanes = job->simd->lanes, padded, size;
    if (__builtin_add_overflow(n, lanes - 1, &padded) ||
        __builtin_mul_overflow(padded, sizeof(double), &size))
        return stream_fail(job->stream, KILN_JOB_TOO_LARGE, "too many samples");
    padded -= padded % lanes;
    size = padded * job->simd->element;
    double *t = stream_take(job->stream, padded * sizeof *t);
    char *root = stream_take(job->stream, size), *value = stream_take(job->stream, size);
    job->samples.step_c = stream_take(job->stream, size);
    job->samples.step_s = stream_take(job->stream, size);
    if (!t || !root || !value || !job->samples.step_c || !job->samples.step_s)
        return KILN_NO_MEMORY;
    memcpy(t, args->t, n * sizeof *t);
    memset(t + n, 0, (padded - n) * sizeof *t);
    /* With a floating mean YC - Y C is the sum over y - Y: taken off here, before values are
       rounded and multiplied, a large mean costs no digits. */
    job->simd->weigh(args->w, args->y, args->fit_mean ? args->y_mean : 0, n, root, value);
    size_t used = n * job->simd->element;
    memset(root + used, 0, size - used);
    memset(value + used, 0, size - used);
    job->samples.n = padded;
    job->samples.t = t;
    job->samples.root = root;
    job->samples.value = value;
    job->simd->prepare(&job->samples, args->frequency ? 0 : args->df);
    return KILN_OK;
}

enum kiln_status lombscargle_launch(struct stream *stream, const void *arguments) {
    const struct lombscargle_args *args = arguments;
    struct job job = {
        .stream = stream,
        .args = args,
        .simd = tables[stream->isa][args->fp32 ? 0 : 1],
    };
    enum kiln_status status = samples_fill(&job);
    if (status != KILN_OK)
        return status;
    size_t tiles = CHUNK_PAIRS / RESEED / job.samples.n;
    job.tile = args->frequency ? 1 : args->fp32 ? RESEED_FP32 : RESEED;
    job.chunk = RESEED * (int64_t)(tiles ? tiles : 1);
    job.chunks = (size_t)((args->nf - 1) / job.chunk + 1);
    pool_run(stream->pool, chunk_run, &job, job.chunks);
    return stream_cancelled(stream) ? KILN_CANCELLED : KILN_OK;
}
