/*
 * jacobi.c: checks of the kernel `jacobi` against the literal loop: equal bytes.
 */
#include "kernels/jacobi.h"
#include "tests/kernelcheck/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The literal loop on one plane; returns the largest change of the last sweep. */
#define REFERENCE(name, type)                                                                      \
    static double name(int width, int height, const type *b, type *x, type *next) {                \
        double most = 0;                                                                           \
        for (int i = 0; i < height; i++) {                                                         \
            for (int j = 0; j < width; j++) {                                                      \
                size_t at = (size_t)i * (size_t)width + (size_t)j;                                 \
                type up = i > 0 ? x[at - (size_t)width] : 0;                                       \
                type down = i + 1 < height ? x[at + (size_t)width] : 0;                            \
                type left = j > 0 ? x[at - 1] : 0, right = j + 1 < width ? x[at + 1] : 0;          \
                next[at] = (((up + down) + (left + right)) - b[at]) * (type)0.25;                  \
                most = fmax(most, fabs((double)next[at] - (double)x[at]));                         \
            }                                                                                      \
        }                                                                                          \
        memcpy(x, next, (size_t)width *(size_t)height * sizeof *x);                                \
        return most;                                                                               \
    }
REFERENCE(sweep_float, float)
REFERENCE(sweep_double, double)

enum start { START_ZERO, START_B, START_OTHER };

/* What B and the start are made of besides ordinary numbers. */
enum values { VALUES_WIDE, VALUES_TINY, VALUES_HUGE, VALUES_NONE, VALUES_SMALL_B };

struct setup {
    int width, height, planes, fp64;
    int64_t iterations;
    double tolerance;
    enum start start;
    enum values values;
};

static double one_sweep(const struct setup *setup, const char *b, char *x, char *next) {
    size_t plane = (size_t)setup->width * (size_t)setup->height *
                   (setup->fp64 ? sizeof(double) : sizeof(float));
    double most = 0;
    for (int p = 0; p < setup->planes; p++) {
        const void *bp = b + (size_t)p * plane;
        void *xp = x + (size_t)p * plane;
        double change =
            setup->fp64 ? sweep_double(setup->width, setup->height, bp, xp, (double *)(void *)next)
                        : sweep_float(setup->width, setup->height, bp, xp, (float *)(void *)next);
        most = fmax(most, change);
    }
    return most;
}

/* Runs the reference in place of x; the report is what the kernel's should be. */
static struct jacobi_report reference(const struct setup *setup, const char *b, char *x,
                                      char *next) {
    struct jacobi_report report = {0, (double)NAN};
    while (report.sweeps < setup->iterations) {
        double change = one_sweep(setup, b, x, next);
        report.sweeps++;
        if (setup->tolerance > 0) {
            report.residual = change;
        }
        if (setup->tolerance > 0 && report.sweeps % JACOBI_CHECK == 0 &&
            change <= setup->tolerance) {
            break;
        }
    }
    return report;
}

/* Every kind has what may trouble a backend that rounds less often than the header says: results
   below the normal range, sums that overflow though their quarter does not, elements that are no
   number, and B so small that a quarter of it is inexact. */
static double edge(struct check *check, enum values values, int fp64) {
    static const double wide[] = {0, -0.0, 1, -1, 255, 1e30, -1e30, 1e-30, 0.1};
    double tiny = fp64 ? 0x1p-1074 : 0x1p-149, huge = fp64 ? 0x1p1023 : 0x1p127;
    const double kinds[][4] = {
        [VALUES_TINY] = {tiny, -3 * tiny, 0x1p23 * tiny, -0.0},
        [VALUES_HUGE] = {huge, -huge, 1.5 * huge, 0.75 * huge},
        [VALUES_NONE] = {(double)INFINITY, -(double)INFINITY, (double)INFINITY, 1},
        [VALUES_SMALL_B] = {5 * tiny, 0x1p25 * tiny, -0x1p25 * tiny, -7 * tiny},
    };
    if (values == VALUES_WIDE) {
        return wide[check_pick(check, 9)];
    }
    return kinds[values][check_pick(check, 4)];
}

static void fill(struct check *check, void *data, size_t count, int fp64, enum values values) {
    bool all = values == VALUES_TINY || values == VALUES_SMALL_B;
    for (size_t i = 0; i < count; i++) {
        double v = all || check_pick(check, 16) == 0 ? edge(check, values, fp64)
                                                     : check_uniform(check, -1000, 1000);
        if (fp64) {
            ((double *)data)[i] = v;
        } else {
            ((float *)data)[i] = (float)v;
        }
    }
}

static void compare(struct check *check, const struct setup *setup, const void *wanted,
                    const struct jacobi_report *report) {
    size_t count = (size_t)setup->width * (size_t)setup->height * (size_t)setup->planes;
    const void *got = check_result(check, 0);
    size_t size = setup->fp64 ? sizeof(double) : sizeof(float);
    for (size_t i = 0; i < count; i++) {
        if (memcmp((const char *)got + i * size, (const char *)wanted + i * size, size) == 0) {
            continue;
        }
        double g = setup->fp64 ? ((const double *)got)[i] : (double)((const float *)got)[i];
        double w = setup->fp64 ? ((const double *)wanted)[i] : (double)((const float *)wanted)[i];
        if (isnan(g) && isnan(w)) { /* which of two that are no numbers is not promised */
            continue;
        }
        check_fail(check, "element %zu is %.17g, should be %.17g", i, g, w);
        return;
    }
    struct jacobi_report told;
    memcpy(&told, check_result(check, 1), sizeof told);
    if (told.sweeps != report->sweeps) {
        check_fail(check, "reports %lld sweeps, should be %lld", (long long)told.sweeps,
                   (long long)report->sweeps);
    }
    bool nan_wanted = isnan(report->residual), nan_told = isnan(told.residual);
    if (nan_wanted != nan_told ||
        (!nan_wanted && fabs(told.residual - report->residual) > 1e-6 * report->residual)) {
        check_fail(check, "reports residual %.9g, should be %.9g", told.residual, report->residual);
    }
}

static void run_case(struct check *check, const struct setup *setup) {
    size_t count = (size_t)setup->width * (size_t)setup->height * (size_t)setup->planes;
    size_t size = count * (setup->fp64 ? sizeof(double) : sizeof(float));
    check_begin(check, "%dx%d, %d planes, %s, %lld sweeps, tolerance %g, start %d", setup->width,
                setup->height, setup->planes, setup->fp64 ? "double" : "float",
                (long long)setup->iterations, setup->tolerance, (int)setup->start);
    void *b = check_alloc(check, size), *start = check_alloc(check, size);
    void *next = check_alloc(check, size);
    fill(check, b, count, setup->fp64, setup->values);
    if (setup->start == START_OTHER) {
        fill(check, start, count, setup->fp64, setup->values);
    }
    struct jacobi_args args = {
        setup->width,     setup->height, setup->planes, setup->fp64, setup->iterations,
        setup->tolerance, NULL,          NULL,          NULL,        NULL};
    args.b = check_input(check, b, size);
    if (setup->start == START_B) {
        args.start = args.b;
        memcpy(start, b, size);
    } else if (setup->start == START_OTHER) {
        void *copy = check_alloc(check, size);
        memcpy(copy, start, size);
        args.start = check_input(check, copy, size);
    }
    args.x = check_output(check, size);
    args.report = check_output(check, sizeof *args.report);
    if (check_launch(check, KERNEL_JACOBI, &args)) {
        struct jacobi_report report = reference(setup, b, start, next);
        compare(check, setup, start, &report);
    }
    check_end(check);
}

static void run_sizes(struct check *check, int fp64) {
    static const int sizes[][3] = {{1, 1, 1},   {1, 37, 1},   {53, 1, 2},   {2, 2, 1},
                                   {3, 3, 3},   {16, 16, 1},  {17, 15, 2},  {31, 33, 1},
                                   {64, 63, 3}, {67, 129, 1}, {129, 66, 1}, {401, 97, 1}};
    static const int counts[] = {0, 1, 2, 3, 4, 5, 7, 8, 9, 17, 33, 100};
    check_group(check, fp64 ? "sizes, double" : "sizes, float");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (size_t k = 0; k < sizeof counts / sizeof counts[0]; k++) {
            struct setup setup = {sizes[i][0],
                                  sizes[i][1],
                                  sizes[i][2],
                                  fp64,
                                  counts[k],
                                  0,
                                  (enum start)check_pick(check, 3),
                                  VALUES_WIDE};
            run_case(check, &setup);
        }
    }
    check_group_end(check);
}

/* Pictures that are cut into tiles both ways. */
static void run_large(struct check *check, int fp64) {
    static const int sizes[][3] = {{400, 266, 1}, {1500, 40, 1}, {1024, 150, 1}, {37, 1200, 2}};
    check_group(check, fp64 ? "tiled, double" : "tiled, float");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int iterations = 11; iterations <= 64; iterations += 53) {
            struct setup setup = {sizes[i][0], sizes[i][1], sizes[i][2], fp64,
                                  iterations,  0,           START_B,     VALUES_WIDE};
            run_case(check, &setup);
        }
    }
    struct setup lasting = {400, 266, 1, fp64, 1003, 0, START_OTHER, VALUES_WIDE};
    run_case(check, &lasting);
    check_group_end(check);
}

/* Starts from zero on small grids converge fast; a tolerance that one check meets with room. */
static void run_tolerance(struct check *check, int fp64) {
    static const double tolerances[] = {1e-1, 1e-3, 3e-5, 1e30};
    static const int64_t iterations[] = {1, 2, 100, 255, 256, 257, 511, 3000};
    check_group(check, fp64 ? "tolerance, double" : "tolerance, float");
    for (size_t i = 0; i < 4; i++) {
        for (size_t k = 0; k < 8; k++) {
            struct setup setup = {23,
                                  19,
                                  1 + check_pick(check, 3),
                                  fp64,
                                  iterations[k],
                                  tolerances[i],
                                  START_ZERO,
                                  VALUES_WIDE};
            run_case(check, &setup);
        }
    }
    struct setup wide = {300, 111, 1, fp64, 600, 1e-9, START_B, VALUES_WIDE};
    run_case(check, &wide);
    check_group_end(check);
}

/* Numbers at the ends of the range. */
static void run_range(struct check *check, int fp64) {
    check_group(check, fp64 ? "range, double" : "range, float");
    for (int values = VALUES_TINY; values <= VALUES_SMALL_B; values++) {
        for (int start = START_ZERO; start <= START_OTHER; start++) {
            for (int iterations = 1; iterations <= 33; iterations += 16) {
                struct setup setup = {
                    57, 43, 1, fp64, iterations, 0, (enum start)start, (enum values)values};
                run_case(check, &setup);
            }
        }
    }
    check_group_end(check);
}

/* Several threads, several planes of each size, and more batches than fit a band. */
static void run_shared(struct check *check, int fp64) {
    static const int sizes[][3] = {{130, 131, 1}, {33, 700, 1}, {90, 120, 2}, {90, 120, 3},
                                   {90, 120, 5},  {16, 90, 24}, {2100, 9, 1}};
    check_group(check, fp64 ? "shared, double" : "shared, float");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int iterations = 50; iterations <= 301; iterations += 251) {
            struct setup setup = {sizes[i][0], sizes[i][1], sizes[i][2], fp64,
                                  iterations,  0,           START_OTHER, VALUES_WIDE};
            run_case(check, &setup);
        }
    }
    check_group_end(check);
}

/* One run of each way and kind: tiles with neighbours, ragged columns, streamed, a residual. */
static void run_quick(struct check *check) {
    static const struct setup setups[] = {{150, 70, 1, 0, 40, 0, START_B, VALUES_WIDE},
                                          {149, 70, 2, 1, 40, 0, START_OTHER, VALUES_WIDE},
                                          {5, 5, 150, 0, 5, 0, START_B, VALUES_WIDE},
                                          {5, 5, 150, 1, 5, 0, START_B, VALUES_WIDE},
                                          {23, 19, 1, 0, 257, 1e-9, START_ZERO, VALUES_WIDE},
                                          {45, 40, 1, 0, 20, 0, START_OTHER, VALUES_TINY},
                                          {45, 40, 1, 0, 20, 0, START_OTHER, VALUES_HUGE}};
    check_group(check, "quick");
    for (size_t i = 0; i < sizeof setups / sizeof setups[0]; i++) {
        run_case(check, &setups[i]);
    }
    check_group_end(check);
}

static void run(struct check *check) {
    if (check->quick) {
        run_quick(check);
        return;
    }
    for (int fp64 = 0; fp64 <= 1; fp64++) {
        run_sizes(check, fp64);
        run_large(check, fp64);
        run_tolerance(check, fp64);
        run_range(check, fp64);
        run_shared(check, fp64);
    }
}

static void bench_one(struct check *check, int width, int height, int fp64, int64_t iterations) {
    size_t size = (size_t)width * (size_t)height * (fp64 ? sizeof(double) : sizeof(float));
    check_begin(check, "bench");
    void *b = check_alloc(check, size);
    fill(check, b, (size_t)width * (size_t)height, fp64, VALUES_WIDE);
    struct jacobi_args args = {width, height, 1, fp64, iterations, 0, NULL, NULL, NULL, NULL};
    args.b = args.start = check_input(check, b, size);
    args.x = check_output(check, size);
    double ms = check_bench(check, KERNEL_JACOBI, &args);
    printf("jacobi %dx%d %s, %lld sweeps %12.3f ms %8.2f Gcells/s\n", width, height,
           fp64 ? "fp64" : "fp32", (long long)iterations, ms,
           (double)width * height * (double)iterations / ms / 1e6);
    fflush(stdout);
    check_end(check);
}

static void bench(struct check *check) {
    bench_one(check, 400, 266, 0, 150000);
    bench_one(check, 400, 266, 1, 150000);
    bench_one(check, 8192, 8192, 0, 64);
    bench_one(check, 8192, 8192, 1, 64);
}

const struct kernel_check jacobi_check = {.name = "jacobi", .run = run, .bench = bench};
