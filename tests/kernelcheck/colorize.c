/*
 * colorize.c: checks of the kernel `colorize`: bytes equal to its header's arithmetic sample by
 * sample, which makes all backends equal, and within 1 of 255 of Matplotlib's formulas in double.
 *
 * For those, random samples stay clear of the field values where the colour index changes, since
 * there a rounding error may pick the neighbour's colour; the values that the contract fixes
 * (negative, 0, vmax and beyond, infinity, NaN) are always among them.
 */
#include "kernels/colorize_colour.h"
#include "tests/kernelcheck/check.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define RADIAN (3.14159265358979323846 / 180)

static double sample_position(const struct colorize_args *args, double field) {
    double x = field > args->vmin ? field : args->vmin;
    x = x > args->vmax ? args->vmax : x;
    return pow((x - args->vmin) / (args->vmax - args->vmin), args->gamma) * 256;
}

static int sample_index(const struct colorize_args *args, double field) {
    double at = floor(sample_position(args, field));
    return at > 255 ? 255 : (int)at;
}

static double height(const float *field, size_t at) {
    return field[at] > 0 ? (double)field[at] : 0;
}

/* Matplotlib's hillshade of one sample, 0 … 1. */
static double hillshade(const struct colorize_args *args, const float *field, size_t stride,
                        size_t at) {
    double azimuth = (90 - args->azimuth) * RADIAN, altitude = args->altitude * RADIAN;
    double e_dx = args->vert_exag * (height(field, at + 1) - height(field, at - 1)) / 2;
    double e_dy =
        args->vert_exag * (height(field, at + stride) - height(field, at - stride)) / 2 / -1;
    double size = sqrt(e_dx * e_dx + e_dy * e_dy + 1);
    double intensity = (-e_dx * cos(azimuth) * cos(altitude) - e_dy * sin(azimuth) * cos(altitude) +
                        sin(altitude)) /
                       size;
    double darkest = -cos(altitude);
    return fmin(fmax((intensity - darkest) / (1 - darkest), 0), 1);
}

static void hsv_from_rgb(const double rgb[3], double hsv[3]) {
    double most = fmax(fmax(rgb[0], rgb[1]), rgb[2]), least = fmin(fmin(rgb[0], rgb[1]), rgb[2]);
    double delta = most - least, hue = 0;
    if (delta > 0) {
        if (rgb[2] == most) {
            hue = 4 + (rgb[0] - rgb[1]) / delta;
        } else if (rgb[1] == most) {
            hue = 2 + (rgb[2] - rgb[0]) / delta;
        } else {
            hue = (rgb[1] - rgb[2]) / delta;
        }
    }
    hue /= 6;
    hsv[0] = hue - floor(hue);
    hsv[1] = most > 0 ? delta / most : 0;
    hsv[2] = most;
}

static void rgb_from_hsv(const double hsv[3], double rgb[3]) {
    int sector = (int)(hsv[0] * 6);
    double f = hsv[0] * 6 - sector, v = hsv[2], s = hsv[1];
    double p = v * (1 - s), q = v * (1 - s * f), t = v * (1 - s * (1 - f));
    const double rows[6][3] = {{v, t, p}, {q, v, p}, {p, v, t}, {p, q, v}, {t, p, v}, {v, p, q}};
    memcpy(rgb, rows[sector % 6], sizeof rows[0]);
}

static void blend(double rgb[3], double shade) {
    double hsv[3], light = 2 * shade - 1;
    hsv_from_rgb(rgb, hsv);
    if (fabs(hsv[1]) > 1e-10 && light > 0) {
        hsv[1] = (1 - light) * hsv[1];
    }
    if (fabs(hsv[1]) > 1e-10 && light < 0) {
        hsv[1] = (1 + light) * hsv[1] - light;
    }
    if (light > 0) {
        hsv[2] = (1 - light) * hsv[2] + light;
    }
    if (light < 0) {
        hsv[2] = (1 + light) * hsv[2];
    }
    hsv[1] = fmin(fmax(hsv[1], 0), 1);
    hsv[2] = fmin(fmax(hsv[2], 0), 1);
    rgb_from_hsv(hsv, rgb);
}

static void reference(const struct colorize_args *args, const float *field, const uint8_t *lut,
                      int i, int j, double pixel[3]) {
    size_t stride = (size_t)args->width * (size_t)args->supersample + 2 * (size_t)args->apron;
    int s = args->supersample;
    pixel[0] = pixel[1] = pixel[2] = 0;
    for (int k = 0; k < s * s; k++) {
        size_t at =
            (size_t)(args->apron + j * s + k / s) * stride + (size_t)(args->apron + i * s + k % s);
        double rgb[3];
        for (int c = 0; c < 3; c++) {
            rgb[c] = lut[3 * sample_index(args, (double)field[at]) + c] / 255.0;
        }
        if (args->shade) {
            blend(rgb, hillshade(args, field, stride, at));
        }
        for (int c = 0; c < 3; c++) {
            pixel[c] += rgb[c] * 255 / (s * s);
        }
    }
}

static size_t index_at(const struct colorize_args *args, int i, int j) {
    size_t stride = (size_t)args->width + 2 * (size_t)args->apron;
    return (size_t)(args->apron + j) * stride + (size_t)(args->apron + i);
}

/* By the header's arithmetic, one sample after another. */
struct exact {
    float thresholds[256];
    struct colorize_light light;
    struct colorize_hue hues[256];
};

static struct exact exact_of(const struct colorize_args *args, const uint8_t *lut) {
    struct exact exact = {.light = colorize_light_of(args)};
    colorize_thresholds(args, exact.thresholds);
    for (int k = 0; k < 256; k++) {
        colorize_hue_fill(&exact.hues[k], lut[3 * k], lut[3 * k + 1], lut[3 * k + 2]);
    }
    return exact;
}

static int exact_index(const struct exact *exact, float field) {
    int index = 0;
    while (index < 255 && field >= exact->thresholds[index + 1]) {
        index++;
    }
    return index;
}

static void shaded_add(const struct exact *exact, const float *at, size_t stride, float sum[3]) {
    const struct colorize_hue *hue = &exact->hues[exact_index(exact, *at)];
    float light = colorize_shine(&exact->light, colorize_height(at[-1]), colorize_height(at[1]),
                                 colorize_height(*(at - stride)), colorize_height(at[stride]));
    float value = hue->value, saturation = hue->saturation;
    colorize_blend(light, &value, &saturation);
    for (int c = 0; c < 3; c++) {
        sum[c] += colorize_channel(value, saturation, hue->weight[c]);
    }
}

/* The bytes of one pixel. */
static void exact_pixel(const struct exact *exact, const struct colorize_args *args,
                        const float *field, const uint8_t *lut, int i, int j, uint8_t *pixel) {
    size_t stride = (size_t)args->width * (size_t)args->supersample + 2 * (size_t)args->apron;
    int s = args->supersample, samples = s * s, sums[3] = {0, 0, 0};
    float shaded[3] = {0, 0, 0};
    for (int k = 0; k < samples; k++) {
        const float *at = field + (size_t)(args->apron + j * s + k / s) * stride +
                          (size_t)(args->apron + i * s + k % s);
        if (args->shade) {
            shaded_add(exact, at, stride, shaded);
        }
        for (int c = 0; c < 3; c++) {
            sums[c] += lut[3 * exact_index(exact, *at) + c];
        }
        pixel[0] = (uint8_t)exact_index(exact, *at);
    }
    for (int c = 0; c < 3 && !args->indexed; c++) {
        pixel[c] = args->shade ? colorize_level(shaded[c], 255.0f / (float)samples)
                               : (uint8_t)((2 * sums[c] + samples) / (2 * samples));
    }
}

static void compare_exact(struct check *check, const struct colorize_args *args, const float *field,
                          const uint8_t *lut) {
    const uint8_t *rgb = check_result(check, 0);
    const struct exact exact = exact_of(args, lut);
    size_t bytes = args->indexed ? 1 : 3;
    for (int j = 0; j < args->height; j++) {
        for (int i = 0; i < args->width; i++, rgb += bytes) {
            uint8_t pixel[3];
            exact_pixel(&exact, args, field, lut, i, j, pixel);
            if (memcmp(rgb, pixel, bytes) != 0) {
                check_fail(check, "row %d column %d: %d, by the header's arithmetic %d", j, i,
                           rgb[0], pixel[0]);
            }
        }
    }
}

static void compare(struct check *check, const struct colorize_args *args, const float *field,
                    const uint8_t *lut) {
    const uint8_t *rgb = check_result(check, 0);
    size_t bytes = args->indexed ? 1 : 3;
    for (int j = 0; j < args->height; j++) {
        for (int i = 0; i < args->width; i++) {
            double pixel[3];
            reference(args, field, lut, i, j, pixel);
            if (args->indexed) {
                pixel[0] = sample_index(args, (double)field[index_at(args, i, j)]);
            }
            for (size_t c = 0; c < bytes; c++) {
                int got = rgb[bytes * ((size_t)j * (size_t)args->width + (size_t)i) + c];
                double off = fabs(got - floor(pixel[c] + 0.5));
                /* without shading the means are of integers: exact */
                if (off > (args->shade ? 1 : 0) + 1e-6) {
                    check_fail(check, "row %d column %d channel %zu: %d, should be %.4f", j, i, c,
                               got, pixel[c]);
                }
            }
        }
    }
}

static float random_sample(struct check *check, const struct colorize_args *args) {
    const float most = (float)args->vmax;
    const float edges[] = {0, -1, -0.0f, most, 2 * most, NAN, 1e-30f, INFINITY};
    if (check_pick(check, 10) == 0) {
        return edges[check_pick(check, args->shade ? 7 : 8)]; /* no gradient of infinity */
    }
    for (;;) {
        float x = (float)(args->vmin +
                          (args->vmax - args->vmin) * pow(check_uniform(check, -0.1, 1.1), 3));
        double at = sample_position(args, (double)x);
        if (at <= 0 || at >= 256 || fabs(at - nearbyint(at)) > 1e-3) {
            return x;
        }
    }
}

/* At an edge between colours, one float below, or anywhere. */
static float any_sample(struct check *check, const struct colorize_args *args,
                        const float *thresholds) {
    float edge = thresholds[1 + check_pick(check, 255)];
    switch (check_pick(check, 4)) {
    case 0:
        return edge;
    case 1:
        return nextafterf(edge, 0);
    default:
        return (float)(args->vmax * pow(check_uniform(check, -0.1, 1.1), 5));
    }
}

/* `clear`: of the edges between colours, for the comparison with Matplotlib's formulas. */
static void run_case(struct check *check, struct colorize_args args, bool clear) {
    size_t columns = (size_t)args.width * (size_t)args.supersample + 2 * (size_t)args.apron;
    size_t rows = (size_t)args.height * (size_t)args.supersample + 2 * (size_t)args.apron;
    check_begin(check,
                "%dx%d, supersample %d, apron %d, from %g to %g, gamma %g, shade %d, indexed %d, "
                "azimuth %g, "
                "altitude %g, vert_exag %g, samples %s",
                args.width, args.height, args.supersample, args.apron, args.vmin, args.vmax,
                args.gamma, args.shade, args.indexed, args.azimuth, args.altitude, args.vert_exag,
                clear ? "clear of edges" : "anywhere");
    float *field = check_alloc(check, rows * columns * sizeof *field);
    uint8_t *lut = check_alloc(check, 768);
    float thresholds[256];
    colorize_thresholds(&args, thresholds);
    for (size_t i = 0; i < rows * columns; i++) {
        field[i] = clear ? random_sample(check, &args) : any_sample(check, &args, thresholds);
    }
    for (int i = 0; i < 768; i++) {
        lut[i] = check_pick(check, 8) == 0 ? (uint8_t)(255 * check_pick(check, 2))
                                           : (uint8_t)check_random(check);
    }
    for (int i = 0; i < 768; i += 96) {
        lut[i + 1] = lut[i + 2] = lut[i]; /* greys */
    }
    args.field = check_input(check, field, rows * columns * sizeof *field);
    args.lut = check_input(check, lut, 768);
    args.rgb =
        check_output(check, (size_t)args.width * (size_t)args.height * (args.indexed ? 1 : 3));
    if (check_launch(check, KERNEL_COLORIZE, &args)) {
        compare_exact(check, &args, field, lut);
        if (clear) {
            compare(check, &args, field, lut);
        }
    }
    check_end(check);
}

static void run_kind(struct check *check, const char *name, int shade, int indexed) {
    static const int sizes[][2] = {{1, 1},  {1, 9},   {11, 1},  {2, 2},   {17, 13},
                                   {64, 5}, {127, 3}, {128, 4}, {129, 7}, {300, 31}};
    static const double gammas[] = {0.3, 1, 0.05, 2.2, 10};
    check_group(check, name);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int k = 0; k < 10; k++) {
            struct colorize_args args = {
                .width = sizes[i][0],
                .height = sizes[i][1],
                .supersample = indexed ? 1 : 1 + k % 4,
                .apron = shade + k % 3,
                .vmin = k < 6 ? 0 : check_uniform(check, 0, 300),
                .vmax = k & 1 ? 400 : (k < 6 ? 0 : 300) + pow(10, check_uniform(check, -2, 6)),
                .gamma = gammas[check_pick(check, 5)],
                .shade = shade,
                .indexed = indexed,
                .azimuth = k < 3 ? 315 : check_uniform(check, 0, 360),
                .altitude = k < 3    ? 10
                            : k == 3 ? 90
                            : k == 4 ? 0
                                     : check_uniform(check, 0, 90),
                .vert_exag = k < 2    ? 1.5
                             : k == 2 ? 0
                                      : check_uniform(check, 0.001, 2),
            };
            run_case(check, args, true);
            run_case(check, args, false);
        }
    }
    check_group_end(check);
}

/* With gamma 1 and limit 256 colour k begins exactly at k. */
static void run_steps(struct check *check) {
    struct colorize_args args = {
        .width = 300, .height = 2, .supersample = 1, .vmax = 256, .gamma = 1};
    check_group(check, "exact steps");
    check_begin(check, "ramps of 0, 1, 2 … and just below");
    float *field = check_alloc(check, 600 * sizeof *field);
    uint8_t *lut = check_alloc(check, 768);
    for (int i = 0; i < 300; i++) {
        field[i] = (float)i;
        field[300 + i] = (float)i + 0.9375f;
    }
    for (int i = 0; i < 768; i++) {
        lut[i] = (uint8_t)(i / 3);
    }
    args.field = check_input(check, field, 600 * sizeof *field);
    args.lut = check_input(check, lut, 768);
    args.rgb = check_output(check, 1800);
    if (check_launch(check, KERNEL_COLORIZE, &args)) {
        compare_exact(check, &args, field, lut);
        compare(check, &args, field, lut);
    }
    check_end(check);
    check_group_end(check);
}

static void run(struct check *check) {
    run_kind(check, "plain", 0, 0);
    run_kind(check, "indices", 0, 1);
    run_steps(check);
    run_kind(check, "shaded", 1, 0);
}

static void bench(struct check *check) {
    for (int shade = 0; shade <= 1; shade++) {
        struct colorize_args args = {.width = 1500,
                                     .height = 1250,
                                     .supersample = 1,
                                     .apron = 1,
                                     .vmax = 400,
                                     .gamma = 0.3,
                                     .shade = shade,
                                     .azimuth = 315,
                                     .altitude = 10,
                                     .vert_exag = 1.5};
        size_t samples = 1502 * 1252;
        check_begin(check, "bench");
        float *field = check_alloc(check, samples * sizeof *field);
        uint8_t *lut = check_alloc(check, 768);
        for (size_t i = 0; i < samples; i++) {
            field[i] = random_sample(check, &args);
        }
        for (int i = 0; i < 768; i++) {
            lut[i] = (uint8_t)check_random(check);
        }
        args.field = check_input(check, field, samples * sizeof *field);
        args.lut = check_input(check, lut, 768);
        args.rgb = check_output(check, 1500 * 1250 * 3);
        double ms = check_bench(check, KERNEL_COLORIZE, &args);
        printf("colorize 1500x1250 %-6s %10.3f ms %8.2f Mpixels/s\n", shade ? "shaded" : "plain",
               ms, 1500 * 1250 / ms / 1e3);
        check_end(check);
    }
}

const struct kernel_check colorize_check = {.name = "colorize", .run = run, .bench = bench};
