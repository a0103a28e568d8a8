/*
 * lombscargle_direct.c: the sums of every sample at every frequency of a tile, and their power.
 *
 * Threads: tiles run on the pool, each with the space of its thread.
 */
#include "kernels/cpu/lombscargle/lombscargle_job.h"

#include <math.h>
#include <string.h>

/* f0 + k df as a sum of two doubles. */
static double grid_frequency(const struct lombscargle_args *args, double k, double *low) {
    double product = k * args->df;
    double product_low = fma(k, args->df, -product);
    double f = args->f0 + product;
    double back = f - args->f0;
    *low = (args->f0 - (f - back)) + (product - back) + product_low;
    return f;
}

static double frequency_of(const struct lombscargle_args *args, int64_t k, double *low) {
    *low = 0;
    return args->frequency != NULL ? args->frequency[k] : grid_frequency(args, (double)k, low);
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
static bool grid_sums(const struct lombscargle_job *job, const struct curve *curve, int64_t first,
                      int64_t count, const struct space *space) {
    const int64_t grain = LOMBSCARGLE_RENEW * LOMBSCARGLE_ROW;
    const struct lombscargle_rows rows = {
        .f0 = job->args->f0,
        .df = job->args->df,
        .k = (double)first + LOMBSCARGLE_OFFSETS - 0.5,
        .rows = (int)((count + grain - 1) / grain) * LOMBSCARGLE_RENEW,
    };
    size_t half = 2 * (size_t)rows.rows * LOMBSCARGLE_ROW;
    int stride = LOMBSCARGLE_SUMS(job->terms);
    for (int h = 1; h <= 2 * job->terms; h++) {
        bool values = h <= job->terms;
        double *products = space->work.products, *sums = space->sums + 2 * (h - 1);
        memset(products, 0, (values ? 2 : 1) * half * sizeof *products);
        for (size_t at = 0; at < curve->samples.n; at += LOMBSCARGLE_BLOCK) {
            size_t n = curve->samples.n - at;
            if (stream_cancelled(job->stream)) {
                return false;
            }
            job->simd->block(&curve->samples, at, n < LOMBSCARGLE_BLOCK ? n : LOMBSCARGLE_BLOCK,
                             &rows, h, values, &space->work);
        }
        products_combine(products, rows.rows, count, sums + 2 * job->terms, stride);
        if (values) {
            products_combine(products + half, rows.rows, count, sums, stride);
        }
    }
    return true;
}

static bool listed_sums(const struct lombscargle_job *job, const struct curve *curve, int64_t first,
                        int64_t count, double *sums) {
    size_t stride = LOMBSCARGLE_SUMS((size_t)job->terms);
    memset(sums, 0, (size_t)count * stride * sizeof *sums);
    for (int64_t k = 0; k < count; k++, sums += stride) {
        double low, f = frequency_of(job->args, first + k, &low);
        for (size_t at = 0; at < curve->samples.n; at += LOMBSCARGLE_BLOCK) {
            size_t n = curve->samples.n - at;
            if (at % (64 * LOMBSCARGLE_BLOCK) == 0 && stream_cancelled(job->stream)) {
                return false;
            }
            job->simd->pair(&curve->samples, at, n < LOMBSCARGLE_BLOCK ? n : LOMBSCARGLE_BLOCK, f,
                            low, job->terms, sums);
        }
    }
    return true;
}

/* From the sums, or by itself where they do not give it. */
static bool power_make(const struct lombscargle_job *job, const struct curve *curve, int64_t k,
                       const double *sums) {
    const struct lombscargle_model *model = &curve->model;
    double work[LOMBSCARGLE_WORK(LOMBSCARGLE_TERMS_MAX)], f_low, f;
    for (int i = 0; i < LOMBSCARGLE_SUMS(model->nterms); i++) {
        work[i] = sums[i] / curve->weight;
    }
    double p = model->nterms == 1 ? lombscargle_power_one(model, work)
                                  : lombscargle_power_many(model, work, 1);
    if (p != LOMBSCARGLE_WEAK) {
        curve->power[k] = lombscargle_normalized(model, p);
        return true;
    }
    f = frequency_of(job->args, k, &f_low);
    return lombscargle_weak_bin(job, curve, k, f, f_low);
}

bool lombscargle_tile(const struct lombscargle_job *job, const struct curve *curve, int64_t first,
                      int64_t count, const struct space *space) {
    bool done = job->listed ? listed_sums(job, curve, first, count, space->sums)
                            : grid_sums(job, curve, first, count, space);
    for (int64_t k = 0; done && k < count; k++) {
        done = power_make(job, curve, first + k, space->sums + k * LOMBSCARGLE_SUMS(job->terms));
    }
    return done;
}

bool lombscargle_bin(const struct lombscargle_job *job, const struct curve *curve, int64_t k) {
    double sums[LOMBSCARGLE_SUMS_MAX];
    return listed_sums(job, curve, k, 1, sums) && power_make(job, curve, k, sums);
}
