/*
 * lombscargle_weak.c: bins of the kernel `lombscargle` whose normal equations are near to singular
 * or singular: frequencies far below 1/T, around those at which regular samples repeat themselves,
 * few samples, repeated times; every method, and peaks of several curves.
 */
#include "tests/kernelcheck/lombscargle.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum sampling { RANDOM, REGULAR, NIGHTS, REPEATED, SAMPLINGS };
static const char *const samplings[SAMPLINGS] = {"random times", "regular times", "nights",
                                                 "repeated times"};

struct setup {
    enum sampling sampling;
    int n, terms;
    double span;   /* of the times */
    double f0, df; /* df 0: a list of f0 (1 + 2^-k) */
    int64_t nf;
};

static void samples_fill(struct check *check, const struct setup *setup,
                         const struct curve *curve) {
    double total = 0;
    for (int j = 0; j < curve->n; j++) {
        double at = setup->sampling == REGULAR ? (double)j / curve->n : check_uniform(check, 0, 1);
        curve->t[j] = setup->span * (at - 0.5);
        if (setup->sampling == NIGHTS) {
            curve->t[j] = floor(curve->t[j]) + 1e-3 * check_uniform(check, 0, 1);
        }
        if (setup->sampling == REPEATED && j > 4) {
            curve->t[j] = curve->t[j % 5];
        }
        curve->y[j] = sin(9 * curve->t[j] / setup->span) + check_uniform(check, -1, 1) + 0.2;
        curve->w[j] = check_uniform(check, 0.2, 3);
        total += curve->w[j];
    }
    for (int j = 0; j < curve->n; j++) {
        curve->w[j] /= total;
    }
}

static void weak_compare(struct check *check, const struct lombscargle_args *args,
                         const struct curve *curve, const double *list, const double *power) {
    const double error = args->fp32 ? 2e-5 : 1e-9;
    for (int64_t k = 0; k < args->nf; k += k < 8 ? 1 : 8 * (args->nf / 128 + 1)) {
        struct bin bin =
            list != NULL ? curve_power(curve, args->fit_mean, args->nterms, args->yy, list[k], 0, 0)
                         : curve_power(curve, args->fit_mean, args->nterms, args->yy, args->f0,
                                       (double)k, args->df);
        bin.p = args->yy > 0 ? bin.p : (double)NAN;
        if (!power_right(args->normalization, args->psd_factor, power[k], bin.p, error)) {
            check_fail(check, "bin %lld: power %.17g, should be standard %.17g (condition %.2g)",
                       (long long)k, power[k], bin.p, bin.condition);
        }
    }
}

/* A curve by itself, and as the second of two, with the same peaks. */
static void setup_run(struct check *check, const struct setup *setup, int fp32, int fit_mean,
                      int method) {
    struct lombscargle_args args = {.nf = setup->nf,
                                    .f0 = setup->f0,
                                    .df = setup->df,
                                    .fit_mean = fit_mean,
                                    .normalization = (setup->n + setup->terms + method) % 4,
                                    .fp32 = fp32,
                                    .nterms = setup->terms,
                                    .method = method,
                                    .psd_factor = 17.5,
                                    .peak_count = 3};
    check_begin(check,
                "%s, n %d, span %g, f0 %.17g, df %g, nf %lld, nterms %d, fit_mean %d, "
                "normalization %d, method %d, %s",
                samplings[setup->sampling], setup->n, setup->span, setup->f0, setup->df,
                (long long)setup->nf, setup->terms, fit_mean, args.normalization, method,
                fp32 ? "fp32" : "fp64");
    size_t n = (size_t)setup->n, nf = (size_t)setup->nf;
    double *arrays = check_alloc(check, 3 * n * sizeof *arrays);
    double *list = setup->df == 0 ? check_alloc(check, nf * sizeof *list) : NULL;
    const struct curve curve = {setup->n, arrays, arrays + n, arrays + 2 * n};
    samples_fill(check, setup, &curve);
    for (size_t k = 0; list != NULL && k < nf; k++) {
        list[k] = setup->f0 * (1 + ldexp(1, -(int)k));
    }
    args.n = curve.n;
    args.t = check_input(check, curve.t, n * sizeof(double));
    args.y = check_input(check, curve.y, n * sizeof(double));
    args.w = check_input(check, curve.w, n * sizeof(double));
    args.frequency = list != NULL ? check_input(check, list, nf * sizeof *list) : NULL;
    curve_measure(&curve, fit_mean, &args.y_mean, &args.yy);
    const struct lombscargle_curve one = {curve.n, 0, 0, 0, args.y_mean, args.yy, args.psd_factor};
    struct lombscargle_curve *curves = check_alloc(check, 2 * sizeof *curves);
    curves[0] = curves[1] = one;
    args.power = check_output(check, 2 * nf * sizeof(double));
    args.peaks = check_output(check, 6 * sizeof(struct lombscargle_peak));
    args.series = 2;
    args.curves = curves;
    args.device_curves = check_input(check, curves, 2 * sizeof *curves);
    if (check_launch(check, KERNEL_LOMBSCARGLE, &args)) {
        const double *power = check_result(check, 0);
        const struct lombscargle_peak *peaks = check_result(check, 1);
        weak_compare(check, &args, &curve, list, power);
        if (memcmp(power, power + nf, nf * sizeof *power) != 0) {
            check_fail(check, "two equal curves have different powers");
        }
        for (int i = 0; i < 3; i++) {
            if (peaks[i].index >= 0 && peaks[i].power != power[peaks[i].index]) {
                check_fail(check, "peak %d has not the power of its bin", i);
            }
        }
    }
    check_end(check);
}

static void run_low(struct check *check, int fp32) {
    check_group(check, fp32 ? "far below 1/T, fp32" : "far below 1/T, fp64");
    for (int terms = 1; terms <= LOMBSCARGLE_TERMS_MAX; terms++) {
        /* As low as the reference reaches. */
        static const double lowest[] = {0, 1e-6, 1e-3, 0.01, 0.03, 0.05, 0.1};
        const double f = lowest[terms];
        const struct setup setups[] = {
            {RANDOM, 40, terms, 1, f, 0, 12},         {RANDOM, 40, terms, 1, f, 0.01, 150},
            {RANDOM, 300, terms, 700, f / 700, 0, 3}, {RANDOM, 300, terms, 700, f / 700, 1e-4, 900},
            {REPEATED, 60, terms, 30, f / 30, 0, 5},  {NIGHTS, 90, terms, 60, f / 60, 0.002, 200},
        };
        for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
            for (int mean = 0; mean <= 1; mean++) {
                for (int method = LOMBSCARGLE_METHOD_DIRECT; method <= LOMBSCARGLE_METHOD_NUFFT;
                     method++) {
                    setup_run(check, &setups[i], fp32, mean, method);
                }
            }
        }
    }
    check_group_end(check);
}

/* Around k / dt, and k / dt over small whole numbers; nights around a cycle a day. */
static void run_aliases(struct check *check, int fp32) {
    static const double places[] = {1, 0.5, 1 / 3.0, 0.25, 0.4};
    check_group(check, fp32 ? "aliases, fp32" : "aliases, fp64");
    for (int terms = 1; terms <= LOMBSCARGLE_TERMS_MAX; terms++) {
        for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
            /* 50 samples 0.1 apart: df is 1/64 of 1/T. */
            const double f = 10 * places[i], df = 1 / 320.0, off = terms > 3 ? 0.05 : 1e-3;
            const struct setup setups[] = {
                {REGULAR, 50, terms, 5, f, df, 130},
                {REGULAR, 50, terms, 5, f - 64 * df, df, 130},
                {REGULAR, 50, terms, 5, f + off, 0.02, 20},
                {NIGHTS, 70, terms, 90, 2 * places[i] + off * 0.3, 0.001, 150},
            };
            for (size_t k = 0; k < sizeof setups / sizeof *setups; k++) {
                setup_run(check, &setups[k], fp32, (int)(i + k) % 2,
                          1 + (int)(i + (size_t)terms) % 2);
            }
        }
    }
    check_group_end(check);
}

static void run_few(struct check *check, int fp32) {
    check_group(check, fp32 ? "few samples, fp32" : "few samples, fp64");
    for (int n = 1; n <= 15; n++) {
        for (int terms = 1; terms <= LOMBSCARGLE_TERMS_MAX; terms += 1 + n % 2) {
            const struct setup random = {RANDOM, n, terms, 3, 0.3, 0.01, 140};
            const struct setup repeated = {REPEATED, n, terms, 3, 0.3, 0.11, 20};
            const struct setup zero = {RANDOM, n, terms, 3, 0, 0, 1};
            for (int mean = 0; mean <= 1; mean++) {
                setup_run(check, &random, fp32, mean, 1 + n % 2);
                setup_run(check, &repeated, fp32, mean, LOMBSCARGLE_METHOD_DIRECT);
                setup_run(check, &zero, fp32, mean, LOMBSCARGLE_METHOD_DIRECT);
            }
        }
    }
    check_group_end(check);
}

void lombscargle_weak_run(struct check *check) {
    for (int fp32 = 0; fp32 <= 1; fp32++) {
        run_low(check, fp32);
        run_aliases(check, fp32);
        run_few(check, fp32);
    }
}

/* Automatic grids, which begin at a tenth of 1/T. */
static void bench_one(struct check *check, int n, int terms, int fp32) {
    const int64_t nf = 100000;
    const struct setup setup = {RANDOM, n, terms, 1000, 1e-4, 2e-4, nf};
    struct lombscargle_args args = {.n = n,
                                    .nf = nf,
                                    .f0 = setup.f0,
                                    .df = setup.df,
                                    .fit_mean = 1,
                                    .fp32 = fp32,
                                    .nterms = terms};
    check_begin(check, "bench");
    double *arrays = check_alloc(check, 3 * (size_t)n * sizeof *arrays);
    const struct curve curve = {n, arrays, arrays + n, arrays + 2 * n};
    samples_fill(check, &setup, &curve);
    args.t = check_input(check, curve.t, (size_t)n * sizeof(double));
    args.y = check_input(check, curve.y, (size_t)n * sizeof(double));
    args.w = check_input(check, curve.w, (size_t)n * sizeof(double));
    curve_measure(&curve, 1, &args.y_mean, &args.yy);
    args.power = check_output(check, (size_t)nf * sizeof(double));
    double ms = check_bench(check, KERNEL_LOMBSCARGLE, &args);
    printf("lombscargle %d x %lld from 0.1/T, nterms %d, %s %12.3f ms\n", n, (long long)nf, terms,
           fp32 ? "fp32" : "fp64", ms);
    fflush(stdout);
    check_end(check);
}

void lombscargle_weak_bench(struct check *check) {
    for (int fp32 = 0; fp32 <= 1; fp32++) {
        for (int terms = 1; terms <= 6; terms += terms == 1 ? 2 : 3) {
            bench_one(check, 200, terms, fp32);
            bench_one(check, 3000, terms, fp32);
        }
    }
}
