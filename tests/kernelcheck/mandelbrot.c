/*
 * mandelbrot.c: checks of the kernel `mandelbrot`: counts equal to the literal loop with the
 * header's fused operations, continuous values equal to its arithmetic (so that all backends are)
 * and near those in double, and known counts.
 */
#include "kernels/mandelbrot.h"
#include "kernels/mandelbrot_smooth.h"
#include "tests/kernelcheck/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The literal loop; |z|² at the end in *size. */
static int32_t count_float(const struct mandelbrot_args *args, float cx, float cy, double *size) {
    float x = 0, y = 0, limit = (float)(args->escape_radius * args->escape_radius);
    for (int64_t n = 1; n <= args->max_iter; n++) {
        float t = fmaf(-y, y, cx), u = x + x;
        y = fmaf(u, y, cy);
        x = fmaf(x, x, t);
        float m = fmaf(x, x, y * y);
        *size = (double)m;
        if (m > limit) {
            return (int32_t)n;
        }
    }
    return -1;
}

static int32_t count_double(const struct mandelbrot_args *args, double cx, double cy,
                            double *size) {
    double x = 0, y = 0, limit = args->escape_radius * args->escape_radius;
    for (int64_t n = 1; n <= args->max_iter; n++) {
        double t = fma(-y, y, cx), u = x + x;
        y = fma(u, y, cy);
        x = fma(x, x, t);
        *size = fma(x, x, y * y);
        if (*size > limit) {
            return (int32_t)n;
        }
    }
    return -1;
}

/* Without fused operations and with more digits: for constants whose count is known. */
static int32_t count_long(long double cx, long double cy, int64_t max_iter) {
    long double x = 0, y = 0;
    for (int64_t n = 1; n <= max_iter; n++) {
        long double next = x * x - y * y + cx;
        y = 2 * x * y + cy;
        x = next;
        if (x * x + y * y > 4) {
            return (int32_t)n;
        }
    }
    return -1;
}

static float exact_smooth(const struct mandelbrot_args *args, int32_t count, double size) {
    float inverse = mandelbrot_inverse(args->escape_radius);
    return mandelbrot_smooth(count, args->fp64 ? mandelbrot_fraction_f64(size, inverse)
                                               : mandelbrot_fraction_f32((float)size, inverse));
}

/* Row j of all pictures' rows. */
static void compare_one(struct check *check, const struct mandelbrot_args *args, int i, int j,
                        const int32_t *count, const float *smooth) {
    const struct mandelbrot_view *view = &args->view[j / args->height];
    double cx = fma(i, view->dx, view->x0), cy = fma(j % args->height, view->dy, view->y0);
    double size = 0;
    size_t at = (size_t)j * (size_t)args->width + (size_t)i;
    int32_t wanted = args->fp64 ? count_double(args, cx, cy, &size)
                                : count_float(args, (float)cx, (float)cy, &size);
    if (count != NULL && count[at] != wanted) {
        check_fail(check, "row %d column %d, c = %.17g%+.17gi: count %d, should be %d", j, i, cx,
                   cy, count[at], wanted);
    }
    if (smooth == NULL) {
        return;
    }
    double value = wanted;
    bool continuous = wanted > 0 && args->continuous;
    if (continuous) {
        value = wanted - log2(0.5 * log(size) / log(args->escape_radius));
    }
    float exact = continuous ? exact_smooth(args, wanted, size) : (float)wanted;
    if (memcmp(&smooth[at], &exact, sizeof exact) != 0) {
        check_fail(check, "row %d column %d, c = %.17g%+.17gi: smooth %.9g, the arithmetic's %.9g",
                   j, i, cx, cy, (double)smooth[at], (double)exact);
    }
    double tolerance = continuous ? 5e-7 + fabs(value) * 0x1p-24 : 0;
    if (!(fabs((double)smooth[at] - value) <= tolerance)) {
        check_fail(check, "row %d column %d, c = %.17g%+.17gi: smooth %.9g, should be %.9g", j, i,
                   cx, cy, (double)smooth[at], value);
    }
}

enum wants { WANTS_BOTH, WANTS_COUNT, WANTS_SMOOTH };

static void run_case(struct check *check, struct mandelbrot_args args, enum wants wants) {
    size_t samples = (size_t)args.width * (size_t)args.height * (size_t)args.views;
    const struct mandelbrot_view *view = &args.view[args.views - 1];
    check_begin(check,
                "%d of %dx%d, the last at (%.17g, %.17g) step (%.17g, %.17g), %lld iterations, "
                "radius %g, %s, continuous %d, output %d",
                args.views, args.width, args.height, view->x0, view->y0, view->dx, view->dy,
                (long long)args.max_iter, args.escape_radius, args.fp64 ? "fp64" : "fp32",
                args.continuous, (int)wants);
    int index = 0, count_at = -1, smooth_at = -1;
    if (wants != WANTS_SMOOTH) {
        args.count = check_output(check, samples * sizeof *args.count);
        count_at = index++;
    }
    if (wants != WANTS_COUNT) {
        args.smooth = check_output(check, samples * sizeof *args.smooth);
        smooth_at = index++;
    }
    if (check_launch(check, KERNEL_MANDELBROT, &args)) {
        const int32_t *count = count_at < 0 ? NULL : check_result(check, count_at);
        const float *smooth = smooth_at < 0 ? NULL : check_result(check, smooth_at);
        for (int j = 0; j < args.views * args.height; j++) {
            for (int i = 0; i < args.width; i++) {
                compare_one(check, &args, i, j, count, smooth);
            }
        }
    }
    check_end(check);
}

struct view {
    double x, y, width; /* centre and width */
};

static const struct view views[] = {
    {-0.75, 0, 3},                                 /* everything */
    {-0.75, 0.1, 0.02},                            /* between head and body */
    {-0.743643887037151, 0.131825904205330, 1e-4}, /* spirals */
    {0.2501, 0, 1e-3},                             /* the cusp */
    {-2, 0, 0.02},                                 /* the tip, |c| near 2 */
    {-1.7687788, 0.0017389, 0.01},                 /* a small copy */
    {-0.125, 0.6495190528383290, 0.01},            /* root of the period-3 bulb */
    {0, 0, 12},                                    /* mostly far outside */
    {-0.1, 0, 0.2},                                /* all inside */
};
#define VIEWS ((int)(sizeof views / sizeof views[0]))

static struct mandelbrot_args view_args(const struct view *view, int width, int height) {
    double step = view->width / width;
    return (struct mandelbrot_args){
        .width = width,
        .height = height,
        .views = 1,
        .view = {{
            .x0 = view->x - 0.5 * view->width + 0.5 * step,
            .y0 = view->y + 0.5 * step * height - 0.5 * step,
            .dx = step,
            .dy = -step,
        }},
        .max_iter = 200,
        .escape_radius = 1024,
        .continuous = 1,
    };
}

static void run_shapes(struct check *check, int fp64) {
    static const int sizes[][2] = {{1, 1},  {1, 7},   {13, 1},  {2, 3},   {17, 19},
                                   {64, 8}, {65, 33}, {1, 601}, {523, 3}, {101, 67}};
    check_group(check, fp64 ? "shapes, fp64" : "shapes, fp32");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int wants = WANTS_BOTH; wants <= WANTS_SMOOTH; wants++) {
            struct mandelbrot_args args =
                view_args(&views[check_pick(check, 3)], sizes[i][0], sizes[i][1]);
            args.fp64 = fp64;
            args.continuous = check_pick(check, 2);
            run_case(check, args, (enum wants)wants);
        }
    }
    check_group_end(check);
}

static void run_views(struct check *check, int fp64) {
    static const int64_t iterations[] = {1, 2, 31, 32, 33, 63, 64, 65, 400, 1500};
    static const double radii[] = {2, 2.005, 2.5, 4, 1024, 0x1p31, 0x1p40};
    check_group(check, fp64 ? "views, fp64" : "views, fp32");
    for (int v = 0; v < VIEWS; v++) {
        for (int i = 0; i < 10; i++) {
            struct mandelbrot_args args = view_args(&views[v], 31, 23);
            args.fp64 = fp64;
            args.max_iter = iterations[i];
            args.escape_radius = radii[check_pick(check, fp64 ? 7 : 6)];
            args.continuous = i & 1;
            run_case(check, args, WANTS_BOTH);
        }
    }
    check_group_end(check);
}

/* More samples than a device works on at once, in rows that no power of two divides. */
static void run_large(struct check *check, int fp64) {
    check_group(check, fp64 ? "large, fp64" : "large, fp32");
    struct mandelbrot_args args = view_args(&views[0], 1499, 1251);
    args.fp64 = fp64;
    run_case(check, args, WANTS_BOTH);
    args.max_iter = 2000;
    args.width = 501;
    run_case(check, args, WANTS_BOTH);
    check_group_end(check);
}

/* Random windows whose centres lie near the border. */
static void run_random(struct check *check, int fp64) {
    check_group(check, fp64 ? "random windows, fp64" : "random windows, fp32");
    for (int i = 0; i < 24; i++) {
        double angle = check_uniform(check, 0, 6.283185307179586), bulge = 0.5 - 0.5 * cos(angle);
        struct view view = {0.25 + bulge * cos(angle), bulge * sin(angle), 0};
        view.width = pow(10, check_uniform(check, fp64 ? -12 : -5, 0));
        struct mandelbrot_args args =
            view_args(&view, 1 + check_pick(check, 70), 1 + check_pick(check, 20));
        args.fp64 = fp64;
        args.max_iter = 1 + check_pick(check, 900);
        args.escape_radius = i & 1 ? 2 : check_uniform(check, 2, 3);
        run_case(check, args, WANTS_BOTH);
    }
    check_group_end(check);
}

/* Several pictures at once, from one row to more than a device works on at a time. */
static void run_groups(struct check *check, int fp64) {
    static const int sizes[][2] = {{1, 1}, {7, 1}, {1, 9}, {33, 5}, {64, 64}, {101, 67}};
    check_group(check, fp64 ? "several pictures, fp64" : "several pictures, fp32");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int count = 1; count <= GROUP_MAX; count += i < 4 ? 1 : 5) {
            struct mandelbrot_args args = view_args(&views[0], sizes[i][0], sizes[i][1]);
            args.views = count;
            args.fp64 = fp64;
            args.escape_radius = count & 1 ? 1024 : 2;
            for (int k = 0; k < count; k++) {
                args.view[k] =
                    view_args(&views[check_pick(check, VIEWS)], sizes[i][0], sizes[i][1]).view[0];
            }
            run_case(check, args, (enum wants)(count % 3));
        }
    }
    check_group_end(check);
}

static void run_point(struct check *check, double x, double y, int64_t max_iter, int32_t wanted) {
    struct mandelbrot_args args = {.width = 1,
                                   .height = 1,
                                   .views = 1,
                                   .view = {{.x0 = x, .y0 = y}},
                                   .max_iter = max_iter,
                                   .escape_radius = 2,
                                   .fp64 = 1};
    check_begin(check, "c = %.17g%+.17gi, %lld iterations", x, y, (long long)max_iter);
    args.count = check_output(check, sizeof *args.count);
    if (check_launch(check, KERNEL_MANDELBROT, &args)) {
        const int32_t *count = check_result(check, 0);
        if (*count != wanted) {
            check_fail(check, "count %d, known is %d", *count, wanted);
        }
        if (count_long(x, y, max_iter) != wanted) {
            check_fail(check, "the reference gives %d, known is %d", count_long(x, y, max_iter),
                       wanted);
        }
    }
    check_end(check);
}

/* -3/4 + i/10^k and 1/4 + 1/10^2k escape after about pi 10^k steps; the others never. */
static void run_known(struct check *check) {
    static const int32_t seahorse[] = {33, 315, 3143, 31417, 314160};
    static const int32_t cusp[] = {30, 312, 3140, 31414, 314157};
    static const double never[][2] = {{-2, 0}, {0, 1}, {0.25, 0}, {-0.75, 0}, {0, 0}, {-1, 0}};
    check_group(check, "known counts");
    for (int k = 1; k <= 5; k++) {
        run_point(check, -0.75, pow(10, -k), 400000, seahorse[k - 1]);
        run_point(check, 0.25 + pow(10, -2 * k), 0, 400000, cusp[k - 1]);
        run_point(check, -0.75, pow(10, -k), seahorse[k - 1], seahorse[k - 1]);
        run_point(check, -0.75, pow(10, -k), seahorse[k - 1] - 1, -1);
    }
    for (size_t i = 0; i < sizeof never / sizeof never[0]; i++) {
        run_point(check, never[i][0], never[i][1], 300000, -1);
    }
    check_group_end(check);
}

static void run(struct check *check) {
    for (int fp64 = 0; fp64 <= 1; fp64++) {
        run_shapes(check, fp64);
        run_views(check, fp64);
        run_large(check, fp64);
        run_random(check, fp64);
        run_groups(check, fp64);
    }
    run_known(check);
}

/* Steps that the literal loop would make, by the counts. */
static double steps_total(const int32_t *count, size_t samples, int64_t max_iter) {
    double steps = 0;
    for (size_t i = 0; i < samples; i++) {
        steps += count[i] < 0 ? (double)max_iter : count[i];
    }
    return steps;
}

static void bench_one(struct check *check, const char *name, struct mandelbrot_args args) {
    size_t samples = (size_t)args.width * (size_t)args.height * (size_t)args.views;
    check_begin(check, "bench");
    args.count = check_output(check, samples * sizeof *args.count);
    args.smooth = check_output(check, samples * sizeof *args.smooth);
    if (check_launch(check, KERNEL_MANDELBROT, &args)) {
        double steps = steps_total(check_result(check, 0), samples, args.max_iter);
        double ms = check_bench(check, KERNEL_MANDELBROT, &args);
        printf("mandelbrot %-9s %dx%dx%lld %s %10.3f ms %8.2f Giterations/s of the literal loop\n",
               name, args.width, args.height, (long long)args.max_iter, args.fp64 ? "fp64" : "fp32",
               ms, steps / ms / 1e6);
        fflush(stdout);
    }
    check_end(check);
}

/* `launch` is the cost of any launch. `late` has one orbit in a thousand that stays (fp32; none in
   fp64) and takes 15 000 steps in the mean, so that a kernel must make those of the literal loop.
 */
static void bench(struct check *check) {
    static const struct {
        const char *name;
        int width, height;
        int64_t max_iter;
        struct view view;
    } rows[] = {
        {"launch", 32, 1, 1, {-0.75, 0, 3}},
        {"seed", 1500, 1250, 400, {-0.75, 0, 3}},
        {"seed", 3840, 2160, 10000, {-0.75, 0, 3}},
        {"late", 1920, 1080, 100000, {0.37502780710078198, -0.21387531831934678, 2e-6}},
        {"tile", 256, 256, 400, {-0.75, 0, 3}},
    };
    for (int fp64 = 0; fp64 <= 1; fp64++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            struct mandelbrot_args args = view_args(&rows[i].view, rows[i].width, rows[i].height);
            args.fp64 = fp64;
            args.max_iter = rows[i].max_iter;
            bench_one(check, rows[i].name, args);
        }
        struct mandelbrot_args args = view_args(&rows[4].view, 256, 256);
        args.fp64 = fp64;
        args.max_iter = 400;
        args.views = GROUP_MAX;
        for (int i = 1; i < GROUP_MAX; i++) {
            args.view[i] = args.view[0];
        }
        bench_one(check, "16 tiles", args);
    }
}

const struct kernel_check mandelbrot_check = {.name = "mandelbrot", .run = run, .bench = bench};
