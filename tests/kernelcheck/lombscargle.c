/*
 * lombscargle.c: checks of the kernel `lombscargle` against the sums in long double.
 *
 * The accuracy of the header is asked for in every bin: where the normal equations are not well
 * conditioned the reference is least squares in quadruple precision.
 */
#include "tests/kernelcheck/lombscargle.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static struct bin reference(const struct lombscargle_args *args, const struct curve *curve,
                            double f0, double k, double df) {
    long double f = (long double)f0 + (long double)k * (long double)df;
    long double yc = 0, ys = 0, c = 0, s = 0, cc = 0, cs = 0, ss = 0;
    for (int j = 0; j < curve->n; j++) {
        long double turns = f * (long double)curve->t[j];
        long double phase = TWO_PI * (turns - rintl(turns)), w = curve->w[j];
        long double cosine = cosl(phase), sine = sinl(phase);
        yc += w * curve->y[j] * cosine;
        ys += w * curve->y[j] * sine;
        c += w * cosine;
        s += w * sine;
        cc += w * cosine * cosine;
        cs += w * cosine * sine;
        ss += w * sine * sine;
    }
    if (args->fit_mean) {
        yc -= args->y_mean * c;
        ys -= args->y_mean * s;
        cc -= c * c;
        cs -= c * s;
        ss -= s * s;
    }
    long double d = cc * ss - cs * cs;
    long double p = (ss * yc * yc + cc * ys * ys - 2 * cs * yc * ys) / (args->yy * d);
    if (!(d > 1e-6L * (cc + ss))) {
        return curve_power(curve, args->fit_mean, 1, args->yy, f0, k, df);
    }
    return (struct bin){(double)p, (double)(d / (cc + ss))};
}

static void compare(struct check *check, const struct lombscargle_args *args,
                    const struct curve *curve, const double *frequency) {
    const double *power = check_result(check, 0);
    const double error = args->fp32 ? 5e-6 : 1e-9;
    for (int64_t k = 0; k < args->nf; k++) {
        struct bin bin = frequency != NULL ? reference(args, curve, frequency[k], 0, 0)
                                           : reference(args, curve, args->f0, (double)k, args->df);
        if (!power_right(args->normalization, args->psd_factor, power[k], bin.p, error)) {
            check_fail(check, "bin %lld: power %.17g, should be standard %.17g (condition %.2g)",
                       (long long)k, power[k], bin.p, bin.condition);
        }
    }
}

void curve_fill(struct check *check, const struct curve *curve, double span, bool centre) {
    double f = check_uniform(check, 0, 5), total = 0, mean = 0;
    int equal = check_pick(check, 2);
    for (int j = 0; j < curve->n; j++) {
        curve->t[j] = j > 0 && check_pick(check, 32) == 0 ? curve->t[j - 1]
                                                          : check_uniform(check, -span, span);
        curve->y[j] = sin((double)TWO_PI * f * curve->t[j]) + check_uniform(check, -1, 1) + 0.3;
        curve->w[j] = equal                                 ? 1
                      : j > 2 && check_pick(check, 16) == 0 ? 0
                                                            : check_uniform(check, 0.1, 9);
        total += curve->w[j];
    }
    for (int j = 0; j < curve->n; j++) {
        curve->w[j] /= total;
        mean += curve->w[j] * curve->y[j];
    }
    for (int j = 0; centre && j < curve->n; j++) {
        curve->y[j] -= mean;
    }
}

struct curve curve_random(struct check *check, int n, double span, bool centre) {
    struct curve curve = {n, check_alloc(check, sizeof(double) * (size_t)n),
                          check_alloc(check, sizeof(double) * (size_t)n),
                          check_alloc(check, sizeof(double) * (size_t)n)};
    curve_fill(check, &curve, span, centre);
    return curve;
}

void curve_measure(const struct curve *curve, int fit_mean, double *y_mean, double *yy) {
    *y_mean = *yy = 0;
    for (int j = 0; j < curve->n; j++) {
        *y_mean += curve->w[j] * curve->y[j];
    }
    for (int j = 0; j < curve->n; j++) {
        *yy += curve->w[j] * curve->y[j] * curve->y[j];
    }
    if (fit_mean) {
        *yy -= *y_mean * *y_mean;
    }
}

static void args_fill(struct check *check, struct lombscargle_args *args,
                      const struct curve *curve) {
    size_t size = sizeof(double) * (size_t)curve->n;
    args->n = curve->n;
    args->t = check_input(check, curve->t, size);
    args->y = check_input(check, curve->y, size);
    args->w = check_input(check, curve->w, size);
    curve_measure(curve, args->fit_mean, &args->y_mean, &args->yy);
}

struct setup {
    int n, nf;
    double span, f0, df; /* df 0: a list of frequencies */
};

static void run_case(struct check *check, const struct setup *setup, int fp32, int variant) {
    struct lombscargle_args args = {.nf = setup->nf,
                                    .f0 = setup->f0,
                                    .df = setup->df,
                                    .fit_mean = variant & 1,
                                    .normalization = variant >> 1 & 3,
                                    .fp32 = fp32,
                                    .psd_factor = 17.5};
    bool centre = variant & 8;
    check_begin(check,
                "n %d, nf %d, span %g, f0 %g, df %g, fit_mean %d, normalization %d, %s, "
                "centred %d",
                setup->n, setup->nf, setup->span, setup->f0, setup->df, args.fit_mean,
                args.normalization, fp32 ? "fp32" : "fp64", centre);
    struct curve curve = curve_random(check, setup->n, setup->span, centre);
    args_fill(check, &args, &curve);
    double *frequency = NULL;
    if (setup->df == 0) {
        frequency = check_alloc(check, sizeof(double) * (size_t)setup->nf);
        for (int k = 0; k < setup->nf; k++) {
            frequency[k] = check_uniform(check, 0, setup->f0);
        }
        args.frequency = check_input(check, frequency, sizeof(double) * (size_t)setup->nf);
    }
    args.power = check_output(check, sizeof(double) * (size_t)setup->nf);
    if (check_launch(check, KERNEL_LOMBSCARGLE, &args)) {
        compare(check, &args, &curve, frequency);
    }
    check_end(check);
}

static void run_precision(struct check *check, int fp32) {
    static const struct setup setups[] = {
        {4, 1, 10, 0.7, 0.1},          {5, 3, 10, 0.7, 0.1},
        {7, 65, 100, 0.01, 0.003},     {16, 64, 50, 0.1, 0.01},
        {33, 127, 1000, 0, 1e-4},      {165, 200, 300, 0.02, 0.0007},
        {511, 63, 4000, 99.9, 1e-5},   {513, 40, 4000, 0.5, 0.777},
        {1024, 129, 750, 20, 3e-4},    {4096, 64, 4000, 99, 0.015},
        {100, 50, 4000, 100, 0},       {1030, 17, 20, 3, 0},
        {64, 1, 4000, 100, 0},         {300, 70, 1500, 5, -0.05},
        {40, 3000, 400, 0.01, 0.0011}, /* rotation must be renewed on the way */
        {70, 9000, 2000, 0, 0.0111},   /* several tiles */
        {1025, 4100, 4000, 90, 0.002},
    };
    check_group(check, fp32 ? "random, fp32" : "random, fp64");
    for (size_t i = 0; i < sizeof setups / sizeof setups[0]; i++) {
        for (int variant = (int)i % 2; variant<16; variant += setups[i].n> 1000 ? 5 : 1) {
            run_case(check, &setups[i], fp32, variant);
        }
    }
    check_group_end(check);
}

/* One bin of a fixed curve whose answer is known: NaN, or a one-parameter fit. */
static void run_bin(struct check *check, int n, const double *t, const double *y, double f,
                    int fit_mean, int fp32, double wanted) {
    struct lombscargle_args args = {.nf = 1, .f0 = f, .df = 0, .fit_mean = fit_mean, .fp32 = fp32};
    check_begin(check, "n %d, f %g, fit_mean %d, %s", n, f, fit_mean, fp32 ? "fp32" : "fp64");
    struct curve curve = {n, check_alloc(check, sizeof(double) * (size_t)n),
                          check_alloc(check, sizeof(double) * (size_t)n),
                          check_alloc(check, sizeof(double) * (size_t)n)};
    for (int j = 0; j < n; j++) {
        curve.t[j] = t[j];
        curve.y[j] = y[j];
        curve.w[j] = 1.0 / n;
    }
    args_fill(check, &args, &curve);
    args.power = check_output(check, sizeof(double));
    if (check_launch(check, KERNEL_LOMBSCARGLE, &args)) {
        double power = *(const double *)check_result(check, 0);
        bool same = isnan(wanted) ? isnan(power) : fabs(power - wanted) <= (fp32 ? 1e-5 : 1e-9);
        if (!same) {
            check_fail(check, "power %.17g, should be %.17g", power, wanted);
        }
    }
    check_end(check);
}

static void run_singular(struct check *check) {
    static const double t[] = {-0.5, 0.5, 1.5, -1.5}, y[] = {1, 3, 2, 4}, level[] = {2, 2, 2, 2};
    const double none = (double)NAN;
    check_group(check, "singular bins");
    for (int fp32 = 0; fp32 <= 1; fp32++) {
        for (int n = 1; n <= 4; n++) {
            double sum = 0, squares = 0;
            for (int j = 0; j < n; j++) {
                sum += y[j] / n;
                squares += y[j] * y[j] / n;
            }
            /* f = 0: the sine is lost; with a mean the cosine too. (n = 1 has no variance, yy = 0.)
             */
            run_bin(check, n, t, y, 0, 0, fp32, sum * sum / squares);
            run_bin(check, n, t, y, 0, 1, fp32, none);
            /* f = 1: all phases coincide at half a turn */
            run_bin(check, n, t, y, 1, 0, fp32, sum * sum / squares);
            run_bin(check, n, t, y, 1, 1, fp32, none);
            run_bin(check, n, t, level, 0, 0, fp32, 1);
        }
        /* Two samples: a mean and one of cosine and sine fit both. */
        run_bin(check, 2, t, y, 0.25, 1, fp32, 1);
        run_bin(check, 2, t, y, 0.25, 0, fp32, 1);
    }
    check_group_end(check);
}

static void run(struct check *check) {
    run_precision(check, 0);
    run_precision(check, 1);
    run_singular(check);
    lombscargle_weak_run(check);
    lombscargle_batch_run(check);
    lombscargle_nufft_run(check);
}

static void bench_one(struct check *check, int n, int64_t nf, int fp32) {
    struct lombscargle_args args = {.nf = nf, .f0 = 1e-3, .df = 1e-5, .fit_mean = 1, .fp32 = fp32};
    check_begin(check, "bench");
    struct curve curve = curve_random(check, n, 750, true);
    args_fill(check, &args, &curve);
    args.power = check_output(check, sizeof(double) * (size_t)nf);
    double ms = check_bench(check, KERNEL_LOMBSCARGLE, &args);
    printf("lombscargle %d x %lld %s %12.3f ms %8.2f Gpairs/s\n", n, (long long)nf,
           fp32 ? "fp32" : "fp64", ms, (double)n * (double)nf / ms / 1e6);
    fflush(stdout);
    check_end(check);
}

static void bench(struct check *check) {
    for (int fp32 = 0; fp32 <= 1; fp32++) {
        bench_one(check, 165, 1 << 17, fp32);
        bench_one(check, 1024, 1 << 17, fp32);
        bench_one(check, 1024, 1 << 20, fp32);
        bench_one(check, 3000, 1000000, fp32);
    }
    lombscargle_weak_bench(check);
    lombscargle_batch_bench(check);
    lombscargle_nufft_bench(check);
}

const struct kernel_check lombscargle_check = {.name = "lombscargle", .run = run, .bench = bench};
