/*
 * spectral.c: the closed form of the Jacobi iterate against what it stands for.
 *
 * Small iterates are compared with literal sweeps in double, the limit by its own equation, which
 * holds for one X only, and long runs with the sums over all modes, by plain products with sines in
 * long double.
 */
#include "kernels/spectral.h"
#include "tests/kernelcheck/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TOLERANCE_FP64 1e-9
#define TOLERANCE_FP32 1e-6

struct setup {
    int width, height, planes, fp64;
    int64_t iterations;
    int start_zero;
    bool alias; /* x is b's own memory */
};

/* Element (i,j) of a plane; zero outside. */
static double at(const struct setup *setup, const double *x, int i, int j) {
    bool inside = i >= 0 && j >= 0 && i < setup->height && j < setup->width;
    return inside ? x[(size_t)i * (size_t)setup->width + (size_t)j] : 0;
}

static double update(const struct setup *setup, const double *b, const double *x, int i, int j) {
    double sum = at(setup, x, i - 1, j) + at(setup, x, i + 1, j) + at(setup, x, i, j - 1) +
                 at(setup, x, i, j + 1);
    return (sum - at(setup, b, i, j)) / 4;
}

static size_t plane_of(const struct setup *setup) {
    return (size_t)setup->width * (size_t)setup->height;
}

static void *memory(size_t size) {
    void *block = calloc(1, size);
    if (block == NULL) {
        fprintf(stderr, "kernelcheck: no memory for %zu bytes\n", size);
        exit(1);
    }
    return block;
}

/* The iterate of one plane by literal sweeps, into x. */
static void sweeps(const struct setup *setup, const double *b, double *x) {
    size_t count = plane_of(setup);
    double *next = memory(count * sizeof *next);
    for (size_t i = 0; i < count; i++) {
        x[i] = setup->start_zero ? 0 : b[i];
    }
    for (int64_t n = 0; n < setup->iterations; n++) {
        for (int i = 0; i < setup->height; i++) {
            for (int j = 0; j < setup->width; j++) {
                next[(size_t)i * (size_t)setup->width + (size_t)j] = update(setup, b, x, i, j);
            }
        }
        memcpy(x, next, count * sizeof *next);
    }
    free(next);
}

/* sin(πi/N) for i < 2N. */
static double *sines_of(int length) {
    size_t turn = 2 * ((size_t)length + 1);
    double *sines = memory(turn * sizeof *sines);
    for (size_t i = 0; i < turn; i++) {
        sines[i] = (double)sinl(acosl(-1.0L) * (long double)i / (long double)(length + 1));
    }
    return sines;
}

/* y = Σ_j x_j sin(π(j+1)(k+1)/N) along rows; results are turned: y is width × height. */
static void transform(int height, int width, const double *x, const double *sines, double *y) {
    size_t turn = 2 * ((size_t)width + 1);
    double *row = memory((size_t)width * sizeof *row);
    for (int k = 0; k < width; k++) {
        for (int j = 0; j < width; j++) {
            row[j] = sines[((size_t)j + 1) * ((size_t)k + 1) % turn];
        }
        for (int i = 0; i < height; i++) {
            const double *line = x + (size_t)i * (size_t)width;
            double sum = 0;
            for (int j = 0; j < width; j++) {
                sum += line[j] * row[j];
            }
            y[(size_t)k * (size_t)height + (size_t)i] = sum;
        }
    }
    free(row);
}

static double mode_factor(const struct setup *setup, int k, int l) {
    long double pi = acosl(-1.0L);
    long double down = cosl(pi * (k + 1) / (setup->height + 1));
    long double across = cosl(pi * (l + 1) / (setup->width + 1));
    long double eigenvalue = (down + across) / 2;
    long double left = setup->iterations < 0 ? 0 : powl(eigenvalue, (long double)setup->iterations);
    long double gone = (1 - left) / (1 - eigenvalue);
    return (double)((setup->start_zero ? 0 : left) - gone / 4);
}

/* The iterate of one plane by its modes, into x. */
static void modes(const struct setup *setup, const double *b, double *x) {
    int width = setup->width, height = setup->height;
    double *across = sines_of(width), *down = sines_of(height);
    double *turned = memory(plane_of(setup) * sizeof *turned);
    double scale = 4 / ((width + 1.0) * (height + 1.0));
    transform(height, width, b, across, turned);
    transform(width, height, turned, down, x);
    for (int k = 0; k < height; k++) {
        for (int l = 0; l < width; l++) {
            x[(size_t)k * (size_t)width + (size_t)l] *= scale * mode_factor(setup, k, l);
        }
    }
    transform(height, width, x, across, turned);
    transform(width, height, turned, down, x);
    free(across);
    free(down);
    free(turned);
}

static double largest(const double *x, size_t count) {
    double most = 0;
    for (size_t i = 0; i < count; i++) {
        most = fmax(most, fabs(x[i]));
    }
    return most;
}

static void plane_compare(struct check *check, const struct setup *setup, const double *wanted,
                          const double *got) {
    size_t count = plane_of(setup);
    double allowed = largest(wanted, count) * (setup->fp64 ? TOLERANCE_FP64 : TOLERANCE_FP32);
    for (size_t i = 0; i < count; i++) {
        if (!(fabs(got[i] - wanted[i]) <= allowed)) {
            check_fail(check, "element %zu is %.17g, should be %.17g within %.3g", i, got[i],
                       wanted[i], allowed);
            return;
        }
    }
}

/* X of n = ∞ is what one more sweep does not change. Rounding to float moves each side by half a
   unit of the largest element. */
static void limit_compare(struct check *check, const struct setup *setup, const double *b,
                          const double *got) {
    double allowed =
        largest(got, plane_of(setup)) * (setup->fp64 ? TOLERANCE_FP64 : TOLERANCE_FP32);
    for (int i = 0; i < setup->height; i++) {
        for (int j = 0; j < setup->width; j++) {
            double change = update(setup, b, got, i, j) - at(setup, got, i, j);
            if (!(fabs(change) <= allowed)) {
                check_fail(check, "a sweep would change (%d,%d) by %.3g, more than %.3g", i, j,
                           change, allowed);
                return;
            }
        }
    }
}

/* Elements as doubles. */
static void widen(const struct setup *setup, const void *from, double *to) {
    size_t count = plane_of(setup) * (size_t)setup->planes;
    for (size_t i = 0; i < count; i++) {
        to[i] = setup->fp64 ? ((const double *)from)[i] : (double)((const float *)from)[i];
    }
}

static void compare(struct check *check, const struct setup *setup, const double *b,
                    bool by_modes) {
    size_t count = plane_of(setup);
    double *got = memory(count * (size_t)setup->planes * sizeof *got);
    double *wanted = memory(count * sizeof *wanted);
    widen(setup, check_result(check, 0), got);
    for (int p = 0; p < setup->planes; p++) {
        const double *plane = b + (size_t)p * count, *result = got + (size_t)p * count;
        if (by_modes) {
            modes(setup, plane, wanted);
        } else if (setup->iterations != SPECTRAL_INFINITE) {
            sweeps(setup, plane, wanted);
        }
        if (by_modes || setup->iterations != SPECTRAL_INFINITE) {
            plane_compare(check, setup, wanted, result);
        } else {
            limit_compare(check, setup, plane, result);
        }
    }
    free(wanted);
    free(got);
}

static size_t fill(struct check *check, const struct setup *setup, void *b) {
    size_t count = plane_of(setup) * (size_t)setup->planes;
    for (size_t i = 0; i < count; i++) {
        double v = check_uniform(check, -1000, 1000);
        if (setup->fp64) {
            ((double *)b)[i] = v;
        } else {
            ((float *)b)[i] = (float)v;
        }
    }
    return count * (setup->fp64 ? sizeof(double) : sizeof(float));
}

static struct spectral_args args_of(const struct setup *setup) {
    return (struct spectral_args){
        .width = setup->width,
        .height = setup->height,
        .planes = setup->planes,
        .fp64 = setup->fp64,
        .iterations = setup->iterations,
        .start_zero = setup->start_zero,
    };
}

static void run_case(struct check *check, const struct setup *setup, bool by_modes) {
    size_t count = plane_of(setup) * (size_t)setup->planes;
    check_begin(check, "%dx%d, %d planes, %s, %lld iterations, from %s", setup->width,
                setup->height, setup->planes, setup->fp64 ? "double" : "float",
                (long long)setup->iterations, setup->start_zero ? "zero" : "b");
    void *b = check_alloc(check, count * sizeof(double));
    double *wide = check_alloc(check, count * sizeof *wide);
    size_t size = fill(check, setup, b);
    widen(setup, b, wide);
    struct spectral_args args = args_of(setup);
    args.b = check_input(check, b, size);
    args.x = check_output(check, size);
    if (check_launch(check, KERNEL_SPECTRAL, &args)) {
        compare(check, setup, wide, by_modes);
    }
    check_end(check);
}

static const int64_t iterations[] = {0, 1, 2, 7, 1000, SPECTRAL_INFINITE};

static void run_sizes(struct check *check, int fp64) {
    static const int sizes[][3] = {{1, 1, 1},   {1, 1, 3},   {1, 2, 1},   {2, 1, 3},   {1, 37, 1},
                                   {53, 1, 3},  {64, 1, 1},  {2, 2, 1},   {3, 2, 3},   {7, 5, 1},
                                   {16, 16, 3}, {17, 31, 1}, {31, 33, 3}, {32, 63, 1}, {61, 67, 1},
                                   {66, 30, 3}, {97, 101, 1}};
    check_group(check, fp64 ? "sizes, double" : "sizes, float");
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (size_t n = 0; n < sizeof iterations / sizeof *iterations; n++) {
            for (int zero = 0; zero < 2; zero++) {
                struct setup setup = {sizes[i][0],   sizes[i][1], sizes[i][2], fp64,
                                      iterations[n], zero,        false};
                run_case(check, &setup, false);
            }
        }
    }
    check_group_end(check);
}

/* Sizes at which backends cut their work otherwise. */
static void run_large(struct check *check, int fp64) {
    static const struct setup setups[] = {
        {400, 266, 1, 0, 150000, 0, false}, {400, 266, 3, 0, 150000, 1, false},
        {400, 266, 1, 0, -1, 0, false},     {257, 510, 2, 0, 3, 0, false},
        {700, 611, 3, 0, 1000, 0, false},   {1, 1201, 1, 0, 77, 0, false},
        {1022, 130, 2, 0, 20000, 1, false},
    };
    check_group(check, fp64 ? "modes, double" : "modes, float");
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
        struct setup setup = setups[i];
        setup.fp64 = fp64;
        run_case(check, &setup, true);
    }
    check_group_end(check);
}

/* Long lines and areas that are too large for sums over all modes: the limit needs none, and few
   sweeps are made literally. */
static void run_areas(struct check *check, int fp64) {
    static const struct setup setups[] = {
        {20011, 1, 1, 0, SPECTRAL_INFINITE, 0, false},
        {1, 30000, 1, 0, SPECTRAL_INFINITE, 0, false},
        {3, 12345, 1, 0, SPECTRAL_INFINITE, 0, false},
        {2047, 96, 1, 0, SPECTRAL_INFINITE, 0, false},
        {1500, 1250, 3, 0, SPECTRAL_INFINITE, 0, false},
        {2049, 1999, 1, 0, 3, 0, false},
        {1801, 2500, 2, 0, 2, 1, false},
        {2048, 4096, 1, 0, SPECTRAL_INFINITE, 0, false},
        {1900, 6200, 1, 0, 1, 0, false},
    };
    check_group(check, fp64 ? "large, double" : "large, float");
    for (size_t i = 0; i < sizeof setups / sizeof *setups; i++) {
        struct setup setup = setups[i];
        setup.fp64 = fp64;
        run_case(check, &setup, false);
    }
    check_group_end(check);
}

/* x may be b: the launch is made once, since the second one would start from the first one's
   result, and must give what separate arrays give. */
static void alias_case(struct check *check, const struct setup *setup) {
    const struct backend *backend = check->backend;
    size_t count = plane_of(setup) * (size_t)setup->planes;
    check_begin(check, "%dx%d, %d planes, %s, x is b", setup->width, setup->height, setup->planes,
                setup->fp64 ? "double" : "float");
    void *b = check_alloc(check, count * sizeof(double));
    size_t size = fill(check, setup, b);
    void *copy = check_alloc(check, size), *back = check_alloc(check, size);
    memcpy(copy, b, size);
    struct spectral_args args = args_of(setup), same = args;
    args.b = check_input(check, b, size);
    args.x = check_output(check, size);
    same.b = check_input(check, copy, size);
    same.x = (void *)(uintptr_t)same.b;
    if (check_launch(check, KERNEL_SPECTRAL, &args)) {
        if (backend->launch(check->stream, KERNEL_SPECTRAL, &same) != KILN_OK ||
            backend->download(check->stream, back, same.x, size) != KILN_OK ||
            backend->wait(check->stream) != KILN_OK) {
            check_fail(check, "launch: %s", backend->error(check->stream));
        } else if (memcmp(back, check_result(check, 0), size) != 0) {
            check_fail(check, "another result than with separate arrays");
        }
    }
    check_end(check);
}

static void run_alias(struct check *check, int fp64) {
    check_group(check, fp64 ? "x is b, double" : "x is b, float");
    for (int n = 0; n < 4; n++) {
        struct setup setup = {30 + 57 * n, 20 + 31 * n, 1 + 2 * (n % 2), fp64, 50, 0, true};
        alias_case(check, &setup);
    }
    check_group_end(check);
}

/* More lengths than a device keeps tables of, some of them again, some within one job. */
static void run_lengths(struct check *check) {
    check_group(check, "many lengths");
    for (int n = 0; n < 150; n++) {
        struct setup setup = {1 + n, 1 + 7 * n % 90, 1, 1, 5, 0, false};
        run_case(check, &setup, false);
    }
    check_group_end(check);
}

static void run(struct check *check) {
    for (int fp64 = 0; fp64 <= 1; fp64++) {
        run_sizes(check, fp64);
        run_large(check, fp64);
        run_areas(check, fp64);
        run_alias(check, fp64);
    }
    run_lengths(check);
}

static void bench_one(struct check *check, int width, int height, int fp64, int64_t count) {
    struct setup setup = {width, height, 1, fp64, count, 0, false};
    check_begin(check, "bench");
    void *b = check_alloc(check, plane_of(&setup) * sizeof(double));
    size_t size = fill(check, &setup, b);
    struct spectral_args args = args_of(&setup);
    args.b = check_input(check, b, size);
    args.x = check_output(check, size);
    double ms = check_bench(check, KERNEL_SPECTRAL, &args);
    printf("spectral %dx%d %s, %lld iterations %12.4f ms\n", width, height, fp64 ? "fp64" : "fp32",
           (long long)count, ms);
    fflush(stdout);
    check_end(check);
}

static void bench(struct check *check) {
    bench_one(check, 400, 266, 1, 150000);
    bench_one(check, 400, 266, 0, 150000);
    bench_one(check, 512, 512, 1, SPECTRAL_INFINITE);
    bench_one(check, 1024, 1024, 1, 150000);
    bench_one(check, 1500, 1250, 1, 150000);
    bench_one(check, 2048, 2048, 1, 150000);
    bench_one(check, 3000, 3000, 1, 150000);
    bench_one(check, 4096, 4096, 1, 150000);
    bench_one(check, 4096, 4096, 0, SPECTRAL_INFINITE);
    bench_one(check, 8192, 8192, 1, 150000);
}

const struct kernel_check spectral_check = {.name = "spectral", .run = run, .bench = bench};
