/*
 * lombscargle_basis.c: power of weak bins (kernels/lombscargle_basis.h), one at a time: a pass over
 * the samples for each node, and one for the sums.
 *
 * What the nodes before have at a sample is computed again for each node: a thread needs no memory,
 * and such bins are few.
 *
 * Threads: those of the pool that compute tiles.
 */
#include "kernels/cpu/lombscargle/lombscargle_basis_simd.h"
#include "kernels/cpu/lombscargle/lombscargle_job.h"

#include <math.h>

#define LOOK ((size_t)1 << 13) /* samples between looks at the control */

static const struct basis_simd *const tables[ISA_COUNT] = {
#define X(isa) [ISA_##isa] = &basis_##isa##_f64,
    KILN_CPU_ISAS(X)
#undef X
};

/* A curve's samples as they were given. */
struct samples {
    const double *t, *w, *y;
    size_t n;
};

static double span_of(const struct samples *samples) {
    double low = INFINITY, high = -INFINITY;
    for (size_t j = 0; j < samples->n; j++) {
        if (!(samples->w[j] > 0)) {
            continue;
        }
        low = samples->t[j] < low ? samples->t[j] : low;
        high = samples->t[j] > high ? samples->t[j] : high;
    }
    return high > low ? high - low : 0;
}

/* Adds the next node; false where there is none, or the job is cancelled. */
static bool node_add(const struct lombscargle_job *job, const struct samples *samples,
                     struct lombscargle_basis *basis) {
    const struct basis_simd *simd = tables[job->stream->isa];
    struct basis_block block;
    double most = 0, product = 0;
    size_t node = 0;
    for (size_t at = 0; at < samples->n; at += BASIS_BLOCK) {
        size_t left = samples->n - at, n = left < BASIS_BLOCK ? left : BASIS_BLOCK;
        if (at % LOOK == 0 && stream_cancelled(job->stream)) {
            return false;
        }
        simd->products(basis, samples->t + at, n, &block);
        for (size_t j = 0; j < n; j++) {
            double weighted = samples->w[at + j] * block.product[j] * block.product[j];
            if (weighted > most) {
                most = weighted;
                product = block.product[j];
                node = at + j;
            }
        }
    }
    if (most > 0) {
        basis_node(basis, samples->t[node], product);
    }
    return most > 0;
}

bool lombscargle_weak_bin(const struct lombscargle_job *job, const struct curve *curve, int64_t k,
                          double f, double f_low) {
    const struct lombscargle_args *args = job->args;
    const struct lombscargle_curve *from = curve->from;
    const struct samples samples = {args->t + from->t, args->w + from->w, args->y + from->y,
                                    (size_t)from->n};
    const double level = args->fit_mean ? from->y_mean : 0;
    double normal[LOMBSCARGLE_NORMAL(LOMBSCARGLE_BASIS_MAX)] = {0};
    struct lombscargle_basis basis;
    struct basis_block block;
    basis_begin(&basis, job->terms, f, f_low, span_of(&samples));
    basis.samples = 0;
    for (size_t j = 0; j < samples.n; j++) {
        basis.samples += samples.w[j] > 0;
    }
    while (basis.nodes < basis.size && node_add(job, &samples, &basis)) {
    }
    for (size_t at = 0; at < samples.n; at += BASIS_BLOCK) {
        size_t left = samples.n - at, n = left < BASIS_BLOCK ? left : BASIS_BLOCK;
        if (at % LOOK == 0 && stream_cancelled(job->stream)) {
            return false;
        }
        tables[job->stream->isa]->normal(&basis, samples.t + at, samples.w + at, samples.y + at,
                                         level, n, &block, normal);
    }
    double p = basis_power(&curve->model, &basis, normal);
    curve->power[k] = lombscargle_normalized(&curve->model, p);
    return true;
}
