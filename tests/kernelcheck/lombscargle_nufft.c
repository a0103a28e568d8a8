/*
 * lombscargle_nufft.c: method NUFFT of the kernel `lombscargle`, against least squares
 * (lombscargle_exact.c) at some bins and against direct sums at all of them.
 *
 * A backend may compute what its NUFFT cannot take by direct sums; it must say so.
 */
#include "tests/kernelcheck/lombscargle.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXACT_MAX 512 /* samples that long double takes */

enum sampling { RANDOM, NIGHTS, REGULAR, SORTED, FAR, SAMPLINGS };
static const char *const samplings[SAMPLINGS] = {"random times", "nights", "regular times",
                                                 "sorted times", "times far from 0"};

struct layout {
    enum sampling sampling;
    int count, n, terms;
    bool shared; /* times and every second curve's weights */
    int64_t nf;
    double span, f0, df;
};

struct series {
    struct lombscargle_args args;
    struct lombscargle_curve *curves;
    double *t, *y, *w;
};

static int by_value(const void *left, const void *right) {
    const double *a = left, *b = right;
    return (*a > *b) - (*a < *b);
}

static void times_fill(struct check *check, const struct layout *layout, double *t, int n) {
    for (int j = 0; j < n; j++) {
        double night = floor(check_uniform(check, -layout->span, layout->span));
        t[j] = layout->sampling == NIGHTS    ? night + 0.3 * check_uniform(check, 0, 1)
               : layout->sampling == REGULAR ? layout->span * (2.0 * j / n - 1)
                                             : check_uniform(check, -layout->span, layout->span);
        if (j > 0 && layout->sampling != REGULAR && check_pick(check, 20) == 0) {
            t[j] = t[check_pick(check, j)];
        }
        if (layout->sampling == FAR) {
            t[j] += 2457000;
        }
    }
    if (layout->sampling == SORTED) {
        qsort(t, (size_t)n, sizeof *t, by_value);
    }
}

static void curve_make(struct check *check, const struct layout *layout, struct series *series,
                       int i) {
    struct lombscargle_curve *curve = &series->curves[i];
    double *y = series->y + curve->y, *t = series->t + curve->t, *w = series->w + curve->w;
    double f = check_uniform(check, layout->f0, layout->f0 + layout->df * (double)layout->nf);
    double total = 0;
    int n = (int)curve->n;
    if (curve->t == curve->y) {
        times_fill(check, layout, t, n);
    }
    if (curve->w == curve->y) {
        for (int j = 0; j < n; j++) {
            total += w[j] = j > 2 && check_pick(check, 30) == 0 ? 0 : check_uniform(check, 0.2, 3);
        }
        for (int j = 0; j < n; j++) {
            w[j] /= total;
        }
    }
    for (int j = 0; j < n; j++) {
        y[j] = 0.7 + sin((double)TWO_PI * f * t[j] + i) + check_uniform(check, -1, 1);
    }
    const struct curve same = {n, t, y, w};
    curve_measure(&same, series->args.fit_mean, &curve->y_mean, &curve->yy);
    curve->psd_factor = 2 + i;
}

static void series_fill(struct check *check, const struct layout *layout, struct series *series) {
    size_t count = (size_t)layout->count, total = count * (size_t)layout->n;
    struct lombscargle_args *args = &series->args;
    series->t = check_alloc(check, total * sizeof(double));
    series->y = check_alloc(check, total * sizeof(double));
    series->w = check_alloc(check, total * sizeof(double));
    series->curves = check_alloc(check, count * sizeof *series->curves);
    int64_t at = 0;
    for (int i = 0; i < layout->count; i++) {
        int n = i == 0 || layout->shared ? layout->n : 1 + check_pick(check, layout->n);
        series->curves[i] = (struct lombscargle_curve){.n = n,
                                                       .t = layout->shared ? 0 : at,
                                                       .y = at,
                                                       .w = layout->shared && i % 2 == 0 ? 0 : at};
        curve_make(check, layout, series, i);
        at += n;
    }
    args->n = at;
    args->t = check_input(check, series->t, (size_t)at * sizeof(double));
    args->y = check_input(check, series->y, (size_t)at * sizeof(double));
    args->w = check_input(check, series->w, (size_t)at * sizeof(double));
    args->y_mean = series->curves[0].y_mean;
    args->yy = series->curves[0].yy;
    args->psd_factor = series->curves[0].psd_factor;
    if (layout->count == 1) {
        return;
    }
    args->series = layout->count;
    args->curves = series->curves;
    args->device_curves = check_input(check, series->curves, count * sizeof *series->curves);
}

/* Error of standard power that is allowed. */
static double tolerance(const struct series *series) {
    return series->args.fp32 ? 2e-5 : 1e-9;
}

static void exact_compare(struct check *check, const struct series *series, int i,
                          const double *power) {
    const struct lombscargle_args *args = &series->args;
    const struct lombscargle_curve *from = &series->curves[i];
    const struct curve curve = {(int)from->n, series->t + from->t, series->y + from->y,
                                series->w + from->w};
    if (curve.n > EXACT_MAX) {
        return;
    }
    for (int64_t k = check_pick(check, 5); k < args->nf; k += 1 + args->nf / 20) {
        struct bin bin = curve_power(&curve, args->fit_mean, args->nterms, from->yy, args->f0,
                                     (double)k, args->df);
        bin.p = from->yy > 0 ? bin.p : (double)NAN;
        if (!power_right(args->normalization, from->psd_factor, power[k], bin.p,
                         tolerance(series))) {
            check_fail(check,
                       "curve %d, bin %lld: power %.17g, should be standard %.17g (condition %g)",
                       i, (long long)k, power[k], bin.p, bin.condition);
        }
    }
}

/* Every bin; what is undefined for one method is so for the other. */
static void direct_compare(struct check *check, const struct series *series, int i,
                           const double *power, const double *direct) {
    const struct lombscargle_args *args = &series->args;
    for (int64_t k = 0; k < args->nf; k++) {
        double psd_factor = series->curves[i].psd_factor;
        double b = power_standard(args->normalization, psd_factor, direct[k]);
        if (!power_right(args->normalization, psd_factor, power[k], b, tolerance(series))) {
            check_fail(check, "curve %d, bin %lld: power %.17g, directly %.17g", i, (long long)k,
                       power[k], direct[k]);
        }
    }
}

static void layout_run(struct check *check, const struct layout *layout, int fp32, int variant) {
    struct series series = {.args = {.nf = layout->nf,
                                     .f0 = layout->f0,
                                     .df = layout->df,
                                     .fit_mean = variant & 1,
                                     .normalization = variant >> 1 & 3,
                                     .fp32 = fp32,
                                     .nterms = layout->terms,
                                     .method = LOMBSCARGLE_METHOD_NUFFT}};
    struct lombscargle_args *args = &series.args;
    int32_t used = -1;
    size_t bytes = (size_t)layout->count * (size_t)layout->nf * sizeof(double);
    check_begin(check,
                "%s, %d curves of up to %d%s, nterms %d, nf %lld, span %g, f0 %g, df %g, fit_mean "
                "%d, normalization %d, %s",
                samplings[layout->sampling], layout->count, layout->n,
                layout->shared ? " at shared times" : "", layout->terms, (long long)layout->nf,
                layout->span, layout->f0, layout->df, args->fit_mean, args->normalization,
                fp32 ? "fp32" : "fp64");
    series_fill(check, layout, &series);
    args->power = check_output(check, bytes);
    args->method_used = &used;
    double *power = check_alloc(check, bytes);
    if (check_launch(check, KERNEL_LOMBSCARGLE, args)) {
        memcpy(power, check_result(check, 0), bytes);
        if (used != LOMBSCARGLE_METHOD_NUFFT && used != LOMBSCARGLE_METHOD_DIRECT) {
            check_fail(check, "method used: %d", used);
        }
        args->method = LOMBSCARGLE_METHOD_DIRECT;
        if (check_launch(check, KERNEL_LOMBSCARGLE, args)) {
            if (used != LOMBSCARGLE_METHOD_DIRECT) {
                check_fail(check, "direct sums are said to be method %d", used);
            }
            const double *direct = check_result(check, 0);
            for (int i = 0; i < layout->count; i++) {
                exact_compare(check, &series, i, power + i * layout->nf);
                direct_compare(check, &series, i, power + i * layout->nf, direct + i * layout->nf);
            }
        }
    }
    check_end(check);
}

static void run_grids(struct check *check, int fp32) {
    static const struct layout layouts[] = {
        {RANDOM, 1, 1, 1, false, 300, 40, 0.01, 0.003},
        {RANDOM, 1, 2, 1, false, 500, 40, 0.01, 0.003},
        {SORTED, 1, 3, 1, false, 500, 40, 0.01, 0.003},
        {RANDOM, 1, 40, 1, false, 1, 40, 0.3, 0.003},
        {RANDOM, 1, 40, 1, false, 2, 40, 0, 0.003},
        {RANDOM, 1, 100, 1, false, 77, 10, 5, 1e-3},
        {RANDOM, 1, 500, 1, false, 4000, 400, 0.0001, 0.00025},
        {NIGHTS, 1, 400, 1, false, 30000, 500, 0.0001, 0.0002},
        {NIGHTS, 1, 2000, 1, false, 9000, 500, 0.99, 0.00001},
        {REGULAR, 1, 300, 1, false, 6000, 150, 0.0005, 0.0005},
        {REGULAR, 1, 64, 1, false, 3000, 32, 0, 0.004},
        {SORTED, 1, 5000, 1, false, 20000, 4000, 50, 0.000025},
        {SORTED, 1, 450, 1, false, 100000, 750, 0.001, 0.00025},
        {RANDOM, 1, 300, 1, false, 5000, 4000, 99, 0.0001},
        {RANDOM, 1, 300, 1, false, 5000, 4000, 95, 0.00000001},
        {FAR, 1, 350, 1, false, 8000, 30, 0.01, 0.0003},
        {RANDOM, 1, 200, 1, false, 3000, 100, 0.3, 0.004}, /* steps wider than the window bridges */
        {RANDOM, 1, 200, 1, false, 3000, 100, 0.3, 0.013},
        {RANDOM, 1, 200, 1, false, 500, 1000, 0.3, 0.5}, /* and far wider */
        {RANDOM, 9, 120, 1, false, 3000, 60, 0.001, 0.0006},
        {NIGHTS, 30, 60, 1, true, 2000, 100, 0.001, 0.0007},
    };
    check_group(check, fp32 ? "nufft, fp32" : "nufft, fp64");
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        for (int variant = (int)i % 3; variant < 8; variant += check->quick || fp32 ? 5 : 3) {
            layout_run(check, &layouts[i], fp32, variant);
        }
    }
    check_group_end(check);
}

static void run_terms(struct check *check) {
    check_group(check, "nufft, several terms");
    for (int terms = 2; terms <= LOMBSCARGLE_TERMS_MAX; terms++) {
        const struct layout wide = {RANDOM, 1, 250, terms, false, 3000, 50, 0.003, 0.001};
        const struct layout high = {NIGHTS, 1, 300, terms, false, 700, 300, 7.3, 0.0003};
        const struct layout few = {SORTED, 5, 90, terms, terms % 2, 900, 40, 0.1, 0.004};
        const struct layout steps = {RANDOM, 1, 80, terms, false, 200, 40, 0.1, 0.03};
        layout_run(check, &wide, 0, terms);
        layout_run(check, &high, 0, terms + 1);
        layout_run(check, &few, terms % 2, terms + 3);
        layout_run(check, &steps, 0, terms + 2);
    }
    check_group_end(check);
}

/* Bins that are singular by construction, on grids: what is NaN directly is NaN here too. */
static void run_singular(struct check *check) {
    check_group(check, "nufft, singular bins");
    for (int n = 1; n <= 4; n++) {
        for (int64_t nf = 2; nf <= 300; nf *= 4) {
            const double t[] = {-0.5, 0.5, 1.5, -1.5}, y[] = {1, 3, 2, 4};
            const struct curve curve = {n, (double[]){t[0], t[1], t[2], t[3]},
                                        (double[]){y[0], y[1], y[2], y[3]},
                                        (double[]){1.0 / n, 1.0 / n, 1.0 / n, 1.0 / n}};
            struct lombscargle_args args = {.n = n,
                                            .nf = nf,
                                            .df = 1.0 / 64,
                                            .fit_mean = 1,
                                            .nterms = 1,
                                            .method = LOMBSCARGLE_METHOD_NUFFT};
            check_begin(check, "n %d, nf %lld", n, (long long)nf);
            size_t size = (size_t)n * sizeof(double);
            curve_measure(&curve, 1, &args.y_mean, &args.yy);
            args.t = check_input(check, curve.t, size);
            args.y = check_input(check, curve.y, size);
            args.w = check_input(check, curve.w, size);
            args.power = check_output(check, (size_t)nf * sizeof(double));
            if (check_launch(check, KERNEL_LOMBSCARGLE, &args)) {
                const double *power = check_result(check, 0);
                for (int64_t k = 0; k < nf; k += 64) {
                    if (!isnan(power[k])) {
                        check_fail(check, "bin %lld should not be defined: %.17g", (long long)k,
                                   power[k]);
                    }
                }
                for (int64_t k = 0; k < nf; k++) {
                    if (!isnan(power[k]) && !(power[k] >= 0 && power[k] <= 1)) {
                        check_fail(check, "bin %lld: %.17g", (long long)k, power[k]);
                    }
                }
            }
            check_end(check);
        }
    }
    check_group_end(check);
}

void lombscargle_nufft_run(struct check *check) {
    run_grids(check, 0);
    run_grids(check, 1);
    run_terms(check);
    run_singular(check);
}

static void bench_one(struct check *check, const struct layout *layout, int method) {
    static const char *const names[] = {"auto", "direct", "nufft"};
    int32_t used = -1;
    struct series series = {.args = {.nf = layout->nf,
                                     .f0 = layout->f0,
                                     .df = layout->df,
                                     .fit_mean = 1,
                                     .nterms = layout->terms,
                                     .method = method,
                                     .method_used = &used,
                                     .peak_count = 10}};
    check_begin(check, "bench");
    series_fill(check, layout, &series);
    series.args.peaks =
        check_output(check, 10 * (size_t)layout->count * sizeof(struct lombscargle_peak));
    double ms = check_bench(check, KERNEL_LOMBSCARGLE, &series.args);
    printf("lombscargle %d curves of %d x %lld, T df %.3g, nterms %d, %s (%s) %12.3f ms\n",
           layout->count, layout->n, (long long)layout->nf, 2 * layout->span * layout->df,
           layout->terms, names[method], used >= 0 && used <= 2 ? names[used] : "?", ms);
    fflush(stdout);
    check_end(check);
}

void lombscargle_nufft_bench(struct check *check) {
    bool large = strcmp(check->backend->name, "cpu") != 0;
    const struct layout layouts[] = {
        {SORTED, 1, 3000, 1, false, 1000000, 750, 0.01, 2.5e-5},
        {SORTED, 1, 3000, 1, false, 1000000, 750, 0.0001, 1 / 7500.0},
        {SORTED, 1, 3000, 3, false, 1000000, 750, 0.01, 2.5e-5},
        {SORTED, 1, 10000, 1, false, 100000, 750, 0.0001, 1 / 7500.0},
        {SORTED, 1, 1000, 1, false, 10000, 750, 0.0001, 1 / 7500.0},
        {SORTED, 1, 100, 1, false, 1000, 750, 0.0001, 1 / 7500.0},
        {RANDOM, 1, 1000000, 1, false, 1000000, 750, 0.01, 2.5e-5},
        {SORTED, large ? 1000 : 100, 165, 1, false, large ? 1000000 : 100000, 750, 0.01, 2.5e-5},
        {SORTED, 100, 165, 1, true, 100000, 750, 0.01, 2.5e-5},
    };
    for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++) {
        if ((double)layouts[i].n * (double)layouts[i].nf < 4e9 || large) {
            bench_one(check, &layouts[i], LOMBSCARGLE_METHOD_DIRECT);
        }
        bench_one(check, &layouts[i], LOMBSCARGLE_METHOD_NUFFT);
        bench_one(check, &layouts[i], LOMBSCARGLE_METHOD_AUTO);
    }
}
