/*
 * laplacian.c: checks of the kernel `laplacian`: equal bytes (a NaN is a NaN).
 */
#include "kernels/laplacian.h"
#include "tests/kernelcheck/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

/* X at row i, column j of a plane, zero outside. */
#define AT(x, i, j)                                                                                \
    ((i) < 0 || (j) < 0 || (i) >= args->height || (j) >= args->width                               \
         ? 0                                                                                       \
         : (x)[(size_t)(i) * (size_t)args->width + (size_t)(j)])

static int32_t reference_int(const struct laplacian_args *args, const int32_t *x, int i, int j) {
    return ((AT(x, i - 1, j) + AT(x, i + 1, j)) + (AT(x, i, j - 1) + AT(x, i, j + 1))) -
           4 * AT(x, i, j);
}

static double reference_real(const struct laplacian_args *args, const double *x, int i, int j) {
    return ((AT(x, i - 1, j) + AT(x, i + 1, j)) + (AT(x, i, j - 1) + AT(x, i, j + 1))) -
           4 * AT(x, i, j);
}

static int32_t random_int(struct check *check) {
    static const int32_t edges[] = {0, 1, -1, 255, 65535, (1 << 28) - 1, -(1 << 28) + 1};
    if (check_pick(check, 4) == 0) {
        return edges[check_pick(check, 7)];
    }
    return (int32_t)(check_random(check) % (1u << 29)) - (1 << 28) + 1;
}

static double random_real(struct check *check) {
    static const double edges[] = {0, -0.0, 1, -1, 1e308, -1e300, 5e-324, INFINITY, -INFINITY, NAN};
    if (check_pick(check, 16) == 0) {
        return edges[check_pick(check, 10)];
    }
    return ldexp(check_uniform(check, -1, 1), check_pick(check, 80) - 40);
}

static bool same(double a, double b) {
    return (a != a && b != b) || memcmp(&a, &b, sizeof a) == 0;
}

static void compare(struct check *check, const struct laplacian_args *args, const void *x) {
    size_t plane = (size_t)args->width * (size_t)args->height;
    const void *result = check_result(check, 0);
    for (int p = 0; p < args->planes; p++) {
        for (int i = 0; i < args->height; i++) {
            for (int j = 0; j < args->width; j++) {
                size_t at = (size_t)p * plane + (size_t)i * (size_t)args->width + (size_t)j;
                double wanted, got;
                if (args->real) {
                    wanted = reference_real(args, (const double *)x + (size_t)p * plane, i, j);
                    got = ((const double *)result)[at];
                } else {
                    wanted = reference_int(args, (const int32_t *)x + (size_t)p * plane, i, j);
                    got = ((const int32_t *)result)[at];
                }
                if (!same(wanted, got)) {
                    check_fail(check, "plane %d row %d column %d: %.17g, should be %.17g", p, i, j,
                               got, wanted);
                }
            }
        }
    }
}

static void run_case(struct check *check, int width, int height, int planes, int real) {
    struct laplacian_args args = {width, height, planes, real, NULL, NULL};
    size_t count = (size_t)width * (size_t)height * (size_t)planes;
    size_t size = count * (real ? sizeof(double) : sizeof(int32_t));
    check_begin(check, "%dx%d, %d planes, %s", width, height, planes, real ? "double" : "int32");
    void *x = check_alloc(check, size);
    for (size_t i = 0; i < count; i++) {
        if (real) {
            ((double *)x)[i] = random_real(check);
        } else {
            ((int32_t *)x)[i] = random_int(check);
        }
    }
    args.x = check_input(check, x, size);
    args.b = check_output(check, size);
    if (check_launch(check, KERNEL_LAPLACIAN, &args)) {
        compare(check, &args, x);
    }
    check_end(check);
}

static void run(struct check *check) {
    static const int sizes[][3] = {
        {1, 1, 1},   {1, 2, 1},   {2, 1, 2},  {1, 67, 1},  {131, 1, 3},   {2, 2, 1},    {3, 5, 2},
        {17, 31, 1}, {16, 16, 3}, {33, 7, 4}, {64, 64, 1}, {257, 101, 3}, {1021, 67, 1}};
    for (int real = 0; real <= 1; real++) {
        check_group(check, real ? "double" : "int32");
        for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
            run_case(check, sizes[i][0], sizes[i][1], sizes[i][2], real);
        }
        check_group_end(check);
    }
}

static void bench(struct check *check) {
    const int side = 4096;
    for (int real = 0; real <= 1; real++) {
        struct laplacian_args args = {side, side, 1, real, NULL, NULL};
        size_t size = (size_t)side * (size_t)side * (real ? 8 : 4);
        check_begin(check, "bench");
        void *x = check_alloc(check, size);
        memset(x, 1, size);
        args.x = check_input(check, x, size);
        args.b = check_output(check, size);
        double ms = check_bench(check, KERNEL_LAPLACIAN, &args);
        printf("laplacian %dx%d %-6s %10.3f ms %8.2f Gcells/s\n", side, side,
               real ? "double" : "int32", ms, (double)side * side / ms / 1e6);
        check_end(check);
    }
}

const struct kernel_check laplacian_check = {.name = "laplacian", .run = run, .bench = bench};
