/*
 * lombscargle_batch.c: several curves, several terms and peaks of the kernel `lombscargle`.
 *
 * Power is compared with least squares (lombscargle_exact.c), peaks with what the definition gives
 * for the power of the same launch, byte for byte.
 */
#include "kernels/lombscargle.h"
#include "kernels/lombscargle_rank.h"
#include "tests/kernelcheck/lombscargle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Curves of one case: several lengths; every second one has the first one's times and, if also
   their lengths agree, its weights. */
struct batch {
    struct lombscargle_args args;
    struct lombscargle_curve *curves;
    struct curve *series;
    double *t, *y, *w;
    int count;
    int level; /* a curve that is said to have no variance, or -1 */
};

static void batch_fill(struct check *check, struct batch *batch, int longest, double span,
                       bool shared) {
    size_t total = (size_t)longest * (size_t)batch->count;
    size_t count = (size_t)batch->count;
    batch->t = check_alloc(check, total * sizeof(double));
    batch->y = check_alloc(check, total * sizeof(double));
    batch->w = check_alloc(check, total * sizeof(double));
    batch->curves = check_alloc(check, count * sizeof *batch->curves);
    batch->series = check_alloc(check, count * sizeof *batch->series);
    int64_t at = 0;
    for (int i = 0; i < batch->count; i++) {
        int n = shared || i == 0 ? longest : 13 + check_pick(check, longest - 12);
        struct curve *series = &batch->series[i];
        struct lombscargle_curve *curve = &batch->curves[i];
        *series = (struct curve){n, batch->t + at, batch->y + at, batch->w + at};
        *curve = (struct lombscargle_curve){.n = n, .t = at, .y = at, .w = at};
        curve_fill(check, series, span, i % 3 != 0);
        if (shared && i > 0) {
            series->t = batch->t;
            curve->t = 0;
        }
        if (shared && i % 2) {
            series->w = batch->w;
            curve->w = 0;
        }
        curve_measure(series, batch->args.fit_mean, &curve->y_mean, &curve->yy);
        curve->yy = i == batch->level ? 0 : curve->yy;
        curve->psd_factor = 3 + i;
        at += n;
    }
    struct lombscargle_args *args = &batch->args;
    args->n = at;
    args->t = check_input(check, batch->t, (size_t)at * sizeof(double));
    args->y = check_input(check, batch->y, (size_t)at * sizeof(double));
    args->w = check_input(check, batch->w, (size_t)at * sizeof(double));
    args->series = batch->count;
    args->curves = batch->curves;
    args->device_curves = check_input(check, batch->curves, count * sizeof *batch->curves);
}

static void power_compare(struct check *check, const struct batch *batch, const double *power) {
    const struct lombscargle_args *args = &batch->args;
    const double error = args->fp32 ? 2e-5 : 1e-9;
    for (int i = 0; i < batch->count; i++) {
        const struct lombscargle_curve *curve = &batch->curves[i];
        /* Long double is slow: some bins of every curve. */
        for (int64_t k = check_pick(check, 7); k < args->nf; k += 1 + args->nf / 24) {
            struct bin bin = curve_power(&batch->series[i], args->fit_mean, args->nterms, curve->yy,
                                         args->f0, (double)k, args->df);
            double value = power[i * args->nf + k];
            bin.p = curve->yy > 0 ? bin.p : (double)NAN;
            if (!power_right(args->normalization, curve->psd_factor, value, bin.p, error)) {
                check_fail(check,
                           "curve %d, bin %lld: power %.17g, should be standard %.17g (condition "
                           "%g)",
                           i, (long long)k, value, bin.p, bin.condition);
            }
        }
    }
}

static int by_strength(const void *left, const void *right, void *context) {
    const struct lombscargle_peak *a = left, *b = right;
    int fp32 = *(const int32_t *)context;
    int64_t first = lombscargle_rank(a->power, fp32), second = lombscargle_rank(b->power, fp32);
    if (first != second) {
        return first > second ? -1 : 1;
    }
    return a->index < b->index ? -1 : 1;
}

/* All peaks by the definition, strongest first; returns how many. */
static int64_t peaks_define(const double *power, int64_t nf, int32_t fp32,
                            struct lombscargle_peak *peaks) {
    int64_t count = 0;
    for (int64_t k = 0; k < nf; k++) {
        int64_t before = k, after = k;
        while (before > 0 && power[before - 1] == power[k]) {
            before--;
        }
        while (after + 1 < nf && power[after + 1] == power[k]) {
            after++;
        }
        bool above = before == 0 || !(power[before - 1] > power[k]);
        above = above && (after + 1 == nf || !(power[after + 1] > power[k]));
        if (isnan(power[k]) || !above || k != before + (after - before) / 2) {
            continue;
        }
        peaks[count++] = (struct lombscargle_peak){power[k], k > 0 ? power[k - 1] : (double)NAN,
                                                   k + 1 < nf ? power[k + 1] : (double)NAN, k};
    }
    qsort_r(peaks, (size_t)count, sizeof *peaks, by_strength, &fp32);
    return count;
}

static bool same(double a, double b) {
    return a == b || (isnan(a) && isnan(b));
}

static void peaks_compare(struct check *check, const struct batch *batch, const double *power,
                          const struct lombscargle_peak *peaks) {
    const struct lombscargle_args *args = &batch->args;
    struct lombscargle_peak *all = malloc((size_t)args->nf * sizeof *all);
    if (all == NULL) {
        exit(1);
    }
    for (int i = 0; i < batch->count; i++) {
        int64_t count = peaks_define(power + i * args->nf, args->nf, args->fp32, all);
        for (int k = 0; k < args->peak_count; k++, peaks++) {
            struct lombscargle_peak none = {(double)NAN, (double)NAN, (double)NAN, -1};
            struct lombscargle_peak want = k < count ? all[k] : none;
            if (peaks->index != want.index || !same(peaks->power, want.power) ||
                !same(peaks->before, want.before) || !same(peaks->after, want.after)) {
                check_fail(check,
                           "curve %d, peak %d: bin %lld, %.17g (%.17g, %.17g), should be bin %lld, "
                           "%.17g (%.17g, %.17g)",
                           i, k, (long long)peaks->index, peaks->power, peaks->before, peaks->after,
                           (long long)want.index, want.power, want.before, want.after);
            }
        }
    }
    free(all);
}

struct plan {
    int count, longest, terms, peaks;
    int64_t nf;
    double span, f0, df;
    bool shared;
};

static void batch_run(struct check *check, const struct plan *plan, int fp32, int variant) {
    struct batch batch = {.count = plan->count, .level = -1};
    batch.args = (struct lombscargle_args){.nf = plan->nf,
                                           .f0 = plan->f0,
                                           .df = plan->df,
                                           .fit_mean = variant & 1,
                                           .normalization = variant >> 1 & 3,
                                           .fp32 = fp32,
                                           .nterms = plan->terms,
                                           .peak_count = plan->peaks};
    check_begin(check,
                "%d curves of up to %d%s, nf %lld, f0 %g, df %g, nterms %d, peaks %d, fit_mean %d, "
                "normalization %d, %s",
                plan->count, plan->longest, plan->shared ? " at shared times" : "",
                (long long)plan->nf, plan->f0, plan->df, plan->terms, plan->peaks,
                batch.args.fit_mean, batch.args.normalization, fp32 ? "fp32" : "fp64");
    batch_fill(check, &batch, plan->longest, plan->span, plan->shared);
    size_t bins = (size_t)plan->count * (size_t)plan->nf;
    size_t peaks = (size_t)plan->count * (size_t)plan->peaks * sizeof(struct lombscargle_peak);
    batch.args.power = check_output(check, bins * sizeof(double));
    if (peaks) {
        batch.args.peaks = check_output(check, peaks);
    }
    if (check_launch(check, KERNEL_LOMBSCARGLE, &batch.args)) {
        const double *power = check_result(check, 0);
        power_compare(check, &batch, power);
        if (peaks) {
            peaks_compare(check, &batch, power, check_result(check, 1));
        }
        /* Without power the same peaks must come. */
        double *kept = batch.args.power;
        struct lombscargle_peak *first = check_alloc(check, peaks ? peaks : 1);
        if (peaks) {
            memcpy(first, check_result(check, 1), peaks);
            batch.args.power = NULL;
            if (check_launch(check, KERNEL_LOMBSCARGLE, &batch.args) &&
                memcmp(first, check_result(check, 1), peaks) != 0) {
                check_fail(check, "other peaks where the power is not asked for");
            }
            batch.args.power = kept;
        }
    }
    check_end(check);
}

static void run_batches(struct check *check, int fp32) {
    static const struct plan plans[] = {
        {1, 40, 1, 3, 200, 30, 0.01, 0.004, false},  {7, 90, 1, 64, 700, 40, 0, 0.003, false},
        {5, 130, 1, 1, 4200, 60, 0.01, 0.002, true}, {3, 500, 1, 10, 9000, 4000, 0.5, 1e-4, false},
        {40, 30, 1, 5, 150, 100, 0.1, 0.01, false},  {2, 64, 1, 2, 1, 20, 0.3, 0.1, false},
        {3, 60, 1, 0, 130, 20, 0.3, 0.05, true},
    };
    check_group(check, fp32 ? "batches and peaks, fp32" : "batches and peaks, fp64");
    for (size_t i = 0; i < sizeof plans / sizeof plans[0]; i++) {
        for (int variant = (int)i % 2; variant < 8; variant += 3) {
            batch_run(check, &plans[i], fp32, variant);
        }
    }
    check_group_end(check);
}

static void run_terms(struct check *check, int fp32) {
    check_group(check, fp32 ? "several terms, fp32" : "several terms, fp64");
    for (int terms = 2; terms <= LOMBSCARGLE_TERMS_MAX; terms++) {
        const struct plan one = {1, 300, terms, 2, 500, 50, 0.02, 0.01, false};
        const struct plan few = {3, 200, terms, 4, 140, 900, 2, 0.013, terms % 2};
        const struct plan many = {2, 60, terms, 3, 8500, 30, 0.1, 0.0007, true};
        const struct plan tiny = {2, 100, terms, 0, 5, 90, 0.7, 0.013, false};
        for (int variant = terms % 2; variant < 8; variant += 3) {
            batch_run(check, &one, fp32, variant);
            batch_run(check, &few, fp32, variant);
            batch_run(check, &tiny, fp32, variant);
            batch_run(check, &many, fp32, variant);
        }
    }
    check_group_end(check);
}

/* Runs of equal bins, bins that are not defined, and a curve without variance. */
static void run_plateaus(struct check *check) {
    static const double levels[][2] = {{0.25, 0}, {0, 0}, {0, 0.02}};
    check_group(check, "plateaus and gaps");
    for (int i = 0; i < 3; i++) {
        for (int nf = 1; nf < 400; nf += 1 + nf / 2) {
            struct batch batch = {.count = 2, .level = 1};
            batch.args = (struct lombscargle_args){.nf = nf,
                                                   .f0 = levels[i][0],
                                                   .df = levels[i][1],
                                                   .fit_mean = 1,
                                                   .nterms = 1,
                                                   .peak_count = 4};
            check_begin(check, "f0 %g, df %g, nf %d", levels[i][0], levels[i][1], nf);
            batch_fill(check, &batch, 30, 20, false);
            batch.args.power = check_output(check, 2 * (size_t)nf * sizeof(double));
            batch.args.peaks = check_output(check, 8 * sizeof(struct lombscargle_peak));
            if (check_launch(check, KERNEL_LOMBSCARGLE, &batch.args)) {
                const double *power = check_result(check, 0);
                peaks_compare(check, &batch, power, check_result(check, 1));
                for (int k = 0; k < nf; k++) {
                    if (!isnan(power[nf + k]) || (levels[i][0] == 0 && !isnan(power[0]))) {
                        check_fail(check, "bin %d should not be defined", k);
                    }
                }
            }
            check_end(check);
        }
    }
    check_group_end(check);
}

/* Whole times and a grid that is symmetric about 1/2 and has period 1: each peak has aliases, equal
   but for rounding, and the first is the one below 1/2. */
static void run_aliases(struct check *check) {
    check_group(check, "aliases");
    for (int variant = 0; variant < 8; variant++) {
        const int period = 400 + 100 * (variant & 1), n = 61;
        struct batch batch = {.count = 3, .level = -1};
        batch.args = (struct lombscargle_args){.nf = 5 * period,
                                               .f0 = 0.5 / period,
                                               .df = 1.0 / period,
                                               .fit_mean = variant & 1,
                                               .normalization = variant >> 1 & 3,
                                               .nterms = 1,
                                               .peak_count = 7};
        check_begin(check, "period %d, normalization %d", period, batch.args.normalization);
        batch_fill(check, &batch, n, 20, true);
        for (int k = 0; k < n; k++) {
            batch.t[k] = k - n / 2;
        }
        batch.args.t = check_input(check, batch.t, (size_t)batch.args.n * sizeof(double));
        batch.args.power = check_output(check, 15 * (size_t)period * sizeof(double));
        batch.args.peaks = check_output(check, 21 * sizeof(struct lombscargle_peak));
        if (check_launch(check, KERNEL_LOMBSCARGLE, &batch.args)) {
            const struct lombscargle_peak *peaks = check_result(check, 1);
            peaks_compare(check, &batch, check_result(check, 0), peaks);
            for (int i = 0; i < 3; i++) {
                if (peaks[7 * i].index >= period / 2) {
                    check_fail(check, "curve %d: bin %lld is an alias of a lower one", i,
                               (long long)peaks[7 * i].index);
                }
            }
        }
        check_end(check);
    }
    check_group_end(check);
}

void lombscargle_batch_run(struct check *check) {
    for (int fp32 = 0; fp32 <= 1; fp32++) {
        run_batches(check, fp32);
        run_terms(check, fp32);
    }
    run_plateaus(check);
    run_aliases(check);
}

static void bench_one(struct check *check, int count, int n, int64_t nf, int terms, int fp32) {
    struct batch batch = {.count = count, .level = -1};
    batch.args = (struct lombscargle_args){.nf = nf,
                                           .f0 = 1e-3,
                                           .df = 1e-5,
                                           .fit_mean = 1,
                                           .fp32 = fp32,
                                           .nterms = terms,
                                           .peak_count = 10};
    check_begin(check, "bench");
    batch_fill(check, &batch, n, 750, true);
    batch.args.peaks = check_output(check, 10 * (size_t)count * sizeof(struct lombscargle_peak));
    double ms = check_bench(check, KERNEL_LOMBSCARGLE, &batch.args);
    printf("lombscargle %d curves of %d x %lld, nterms %d, peaks %s %12.3f ms %8.2f Gpairs/s\n",
           count, n, (long long)nf, terms, fp32 ? "fp32" : "fp64", ms,
           (double)count * n * (double)nf / ms / 1e6);
    fflush(stdout);
    check_end(check);
}

void lombscargle_batch_bench(struct check *check) {
    bool large = strcmp(check->backend->name, "cpu") != 0;
    for (int fp32 = 0; fp32 <= 1; fp32++) {
        bench_one(check, 1, 1024, 1 << 17, 1, fp32);
        bench_one(check, 1, 1024, 1 << 17, 3, fp32);
        bench_one(check, large ? 1000 : 10, 165, large ? 1000000 : 100000, 1, fp32);
        bench_one(check, large ? 10000 : 100, 100, 10000, 1, fp32);
    }
}
