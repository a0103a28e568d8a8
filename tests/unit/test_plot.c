/*
 * test_plot.c: strokes, type, ticks and whole plots.
 */
#include "compute/plot/font.h"
#include "compute/plot/plot.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define SIDE 64u

static const struct color white = {255, 255, 255}, black = {0, 0, 0};

static struct raster raster_make(uint32_t width, uint32_t height) {
    struct raster raster;
    void *memory = malloc(raster_bytes(width, height));
    assert_non_null(memory);
    raster_init(&raster, width, height, memory, white);
    return raster;
}

/* Ink in pixels of full coverage. */
static double mask_sum(const struct raster *raster) {
    double sum = 0;
    for (size_t i = 0; i < (size_t)raster->width * raster->height; i++) {
        sum += raster->mask[i] / 255.0;
    }
    return sum;
}

static void test_stroke_covers_its_area(void **state) {
    (void)state;
    for (int angle = 0; angle < 360; angle += 15) {
        struct raster raster = raster_make(SIDE, SIDE);
        double dx = 20 * cos(angle * 0.0174532925), dy = 20 * sin(angle * 0.0174532925);
        raster_stroke(&raster, 32.3 - dx, 31.8 - dy, 32.3 + dx, 31.8 + dy, 3);
        double area = 40 * 3 + 3.14159265 * 1.5 * 1.5;
        assert_true(fabs(mask_sum(&raster) / area - 1) < 0.05);
        raster_paint(&raster, black, 1);
        assert_true(mask_sum(&raster) == 0);
        assert_int_equal(raster.pixels[3 * (32 * SIDE + 32)], 0);
        assert_int_equal(raster.pixels[0], 255);
        free(raster.pixels);
    }
}

static void test_box_covers_its_area(void **state) {
    struct raster raster = raster_make(SIDE, SIDE);
    (void)state;
    raster_box(&raster, 3.25, 7.5, 20.5, 9.75);
    assert_true(fabs(mask_sum(&raster) - 17.25 * 2.25) < 0.2);
    raster_paint(&raster, black, 0.5);
    assert_int_equal(raster.pixels[3 * (8 * SIDE + 10)], 127);
    free(raster.pixels);
}

/* Nothing outside the memory is touched (the sanitizers watch), nothing hangs. */
static void test_outside_is_cut(void **state) {
    static const double wild[] = {-1e300, -1e9, -1, 0, 63.5, 64, 65, 1e9, 1e300, NAN, INFINITY};
    const size_t count = sizeof wild / sizeof *wild;
    struct raster raster = raster_make(SIDE, SIDE);
    (void)state;
    for (size_t i = 0; i < count * count; i++) {
        raster_stroke(&raster, wild[i / count], 30, wild[i % count], 33, 2);
        raster_stroke(&raster, 30, wild[i / count], 33, wild[i % count], 2);
        raster_box(&raster, wild[i / count], 30, wild[i % count], 33);
        raster_cover(&raster, SIDE, (uint32_t)i, 1);
    }
    raster_paint(&raster, black, 1);
    assert_true(mask_sum(&raster) == 0);
    free(raster.pixels);
}

static void test_every_glyph_is_drawn(void **state) {
    const struct font font = {.size = 40, .weight = 0.085};
    (void)state;
    for (int byte = 0x20; byte < 0x80; byte++) {
        struct raster raster = raster_make(SIDE, SIDE);
        const char text[] = {(char)byte, 0};
        double width = font_width(&font, text);
        font_draw(&raster, &font, 10, 44, text);
        assert_true(width > 4 && width < 50);
        if (byte == ' ') {
            assert_true(mask_sum(&raster) == 0);
        } else {
            assert_true(mask_sum(&raster) > 8);
        }
        /* Within the advance, and between ascender and descender. */
        assert_true(byte == ' ' || raster.left >= 9);
        assert_true(raster.right <= 10 + width + 1);
        assert_true(byte == ' ' || raster.top >= 44 - 36);
        assert_true(raster.bottom <= 44 + 14);
        free(raster.pixels);
    }
}

static void test_text_advances(void **state) {
    const struct font font = {.size = 20, .weight = 0.085};
    (void)state;
    double zero = font_width(&font, "0");
    for (char digit = '1'; digit <= '9'; digit++) {
        assert_true(font_width(&font, (char[]){digit, 0}) == zero);
    }
    assert_true(fabs(font_width(&font, "ab") - font_width(&font, "a") - font_width(&font, "b")) <
                1e-9);
    assert_true(font_width(&font, "1" FONT_RAISE "2" FONT_LOWER) < 2 * zero);
    assert_true(font_width(&font, "") == 0);
}

/* A turned text is the level one, turned. */
static void test_turned_text(void **state) {
    struct raster level = raster_make(SIDE, SIDE), turned = raster_make(SIDE, SIDE);
    struct font font = {.size = 20, .weight = 0.1};
    (void)state;
    font_draw(&level, &font, 5, 40, "Fg" FONT_RAISE "2");
    font.turned = true;
    font_draw(&turned, &font, 40, SIDE - 5, "Fg" FONT_RAISE "2");
    for (uint32_t y = 0; y < SIDE; y++) {
        for (uint32_t x = 0; x < SIDE; x++) {
            int difference = level.mask[y * SIDE + x] - turned.mask[(SIDE - 1 - x) * SIDE + y];
            assert_true(abs(difference) <= 1);
        }
    }
    free(level.pixels);
    free(turned.pixels);
}

static bool one_two_five(double step) {
    double lead = step / pow(10, floor(log10(step) + 1e-9));
    return fabs(lead - 1) < 1e-6 || fabs(lead - 2) < 1e-6 || fabs(lead - 5) < 1e-6;
}

static void test_ticks(void **state) {
    static const double ranges[][2] = {{0, 1},          {0, 1e-12},      {0, 3e300},
                                       {0.01, 25},      {100, 100.0001}, {2457000.1, 2457000.7},
                                       {-3, 4},         {-1e-7, 2e-7},   {0, 0.00099},
                                       {0, 99999},      {0, 1e5},        {1e-300, 2e-300},
                                       {0, 7.77777e-5}, {9.995, 10.005}};
    (void)state;
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        for (int most = 3; most <= 12; most++) {
            struct plot_axis axis;
            char last[64] = "", label[64], note[64];
            plot_axis_choose(&axis, ranges[i][0], ranges[i][1], most);
            double slack = 1e-8 * (axis.high - axis.low);
            assert_true(one_two_five(axis.step));
            assert_in_range(axis.count, 1, most);
            plot_axis_note(&axis, note, sizeof note);
            assert_true((note[0] != 0) == (axis.exponent != 0 || axis.offset != 0));
            for (int k = 0; k < axis.count; k++) {
                double tick = plot_axis_tick(&axis, k), value;
                plot_axis_label(&axis, k, label, sizeof label);
                assert_true(tick >= axis.low - slack && tick <= axis.high + slack);
                assert_string_not_equal(label, last);
                assert_true(strlen(label) <= 9);
                value = strtod(label, NULL) * pow(10, axis.exponent) + axis.offset;
                assert_true(fabs(value - tick) <= 1e-3 * axis.step + 1e-15 * fabs(tick));
                strcpy(last, label);
            }
        }
    }
}

/* Draws into memory of exactly plot_bytes, and again; the pixels are the caller's to free. */
static struct raster plot_twice(const struct plot *plot) {
    struct raster raster, again;
    size_t area = (size_t)plot->width * plot->height * 3;
    void *one = malloc(plot_bytes(plot->width, plot->height));
    void *two = malloc(plot_bytes(plot->width, plot->height));
    assert_non_null(one);
    assert_non_null(two);
    memset(two, 0x5a, plot_bytes(plot->width, plot->height));
    plot_draw(plot, one, &raster);
    plot_draw(plot, two, &again);
    assert_memory_equal(raster.pixels, again.pixels, area);
    free(two);
    return raster;
}

/* Pixels of the curve's colour family: clearly more blue than red. */
static bool is_blue(const struct raster *raster, uint32_t x, uint32_t y) {
    const uint8_t *pixel = &raster->pixels[3 * ((size_t)y * raster->width + x)];
    return pixel[2] > pixel[0] + 60;
}

static struct plot plot_of(const double *y, uint64_t count) {
    return (struct plot){.width = 600,
                         .height = 300,
                         .title = "Best period 2, 3 samples",
                         .x_title = "Frequency (cycles per unit of time)",
                         .y_title = "Power (standard)",
                         .x0 = 0,
                         .dx = 1.0 / (double)count,
                         .y = y,
                         .count = count,
                         .mark_x = NAN,
                         .mark_y = NAN,
                         .mark_label = "period 2"};
}

/* One point of a million that stands out is seen, at its place. */
static void test_no_peak_is_lost(void **state) {
    const uint64_t count = 1000000;
    double *y = calloc(count, sizeof *y);
    (void)state;
    assert_non_null(y);
    y[250000] = 1;
    struct plot plot = plot_of(y, count);
    struct raster raster = plot_twice(&plot);
    uint32_t left = plot.width, right = 0, tall = 0;
    for (uint32_t x = 0; x < plot.width; x++) {
        uint32_t blue = 0;
        for (uint32_t y_pixel = 0; y_pixel < plot.height; y_pixel++) {
            blue += is_blue(&raster, x, y_pixel);
        }
        if (blue) {
            left = x < left ? x : left;
            right = x;
        }
        if (blue > 120) {
            tall++;
            assert_true(x > left + 110 && x < left + 150); /* at a quarter of about 530 */
        }
    }
    assert_in_range(tall, 1, 3);
    assert_true(right - left > 500);
    free(raster.pixels);
    free(y);
}

/* Gaps, infinities, single points, huge and tiny ranges, long texts: nothing breaks. */
static void test_extremes(void **state) {
    static const uint32_t sides[][2] = {{200, 200}, {4096, 200}, {200, 1000}, {1200, 600}};
    double values[50], x[50];
    (void)state;
    for (int i = 0; i < 96; i++) {
        int kind = i / 4 % 8;
        uint64_t count = i / 32 == 0 ? 50 : i / 32 == 1 ? 1 : 2;
        for (int k = 0; k < 50; k++) {
            values[k] = kind == 0   ? NAN
                        : kind == 1 ? INFINITY
                        : kind == 2 ? 1e-12 * k
                        : kind == 3 ? 1e308
                        : kind == 4 ? (k % 3 ? 0.5 : NAN)
                        : kind == 5 ? -1
                                    : 5e-324;
            x[k] = kind == 6 ? 1e300 : kind == 7 ? 1e-320 * k : k / 7;
        }
        struct plot plot = plot_of(values, count);
        plot.width = sides[i % 4][0];
        plot.height = sides[i % 4][1];
        plot.x = i % 3 ? x : NULL;
        plot.mark_x = plot.x != NULL ? x[0] : 0;
        plot.mark_y = values[0];
        plot.message = kind == 5 ? "No power" : NULL;
        plot.title = plot.mark_label =
            "A title that is much longer than any picture is wide, so that it has to be cut "
            "somewhere before its end, which nobody will ever see at all, whatever they do";
        struct raster raster = plot_twice(&plot);
        assert_int_equal(raster.pixels[0], 255); /* margins stay paper */
        assert_int_equal(raster.pixels[3 * (size_t)plot.width * plot.height - 1], 255);
        free(raster.pixels);
    }
}

/* No text touches the picture's edge: nothing is clipped. */
static void test_margins_stay_white(void **state) {
    double y[100];
    (void)state;
    for (int i = 0; i < 100; i++) {
        y[i] = 1e5 * exp(-0.01 * (i - 40) * (i - 40));
    }
    for (uint32_t width = 200; width < 1600; width += 190) {
        struct plot plot = plot_of(y, 100);
        plot.width = width;
        plot.height = 200 + width / 3;
        plot.dx = 1e-9;
        plot.x0 = width % 4 ? 0 : 1234.5;
        plot.mark_x = plot.x0 + 40 * plot.dx;
        plot.mark_y = 1e5;
        struct raster raster = plot_twice(&plot);
        for (uint32_t i = 0; i < plot.height; i++) {
            const uint8_t *row = &raster.pixels[3 * (size_t)i * width];
            assert_int_equal(row[0], 255);
            assert_int_equal(row[3 * width - 3], 255);
        }
        for (uint32_t i = 0; i < 3 * width; i++) {
            assert_int_equal(raster.pixels[i], 255);
            assert_int_equal(raster.pixels[3 * (size_t)width * (plot.height - 1) + i], 255);
        }
        free(raster.pixels);
    }
}

/* Writes into a text of exactly the bound, twice; the bytes are the caller's to free. */
static char *svg_twice(const struct plot *plot) {
    size_t room = plot_svg_bound(plot->width, plot->height) + 1;
    struct text one, two;
    text_init(&one, malloc(room), room);
    text_init(&two, malloc(room), room);
    plot_svg(plot, "a < b & c > d", &one);
    plot_svg(plot, "a < b & c > d", &two);
    assert_false(one.full);
    assert_int_equal(one.size, two.size);
    assert_memory_equal(one.data, two.data, one.size);
    assert_non_null(strstr(one.data, "<desc>a &lt; b &amp; c &gt; d</desc>"));
    assert_string_equal(one.data + one.size - 7, "</svg>\n");
    free(two.data);
    return one.data;
}

/* The curve's points as (x, y) pairs; returns how many, `count` at most. */
static size_t svg_points(const char *svg, double *x, double *y, size_t count) {
    const char *at = strstr(svg, "id=\"curve\" d=\"");
    size_t found = 0;
    assert_non_null(at);
    for (at += 14; *at != '"' && found < count;) {
        char command = *at, *end;
        if (command == 'V') {
            strtod(at + 1, &end);
        } else {
            assert_true(command == 'M' || command == 'L');
            x[found] = strtod(at + 1, &end);
            y[found++] = strtod(end, &end);
        }
        at = end;
    }
    assert_int_equal(*at, '"');
    return found;
}

/* A million points: few in the text, and the one that stands out among them. */
static void test_svg_loses_no_peak(void **state) {
    const uint64_t count = 1000000;
    static double px[8192], py[8192];
    double *y = calloc(count, sizeof *y);
    (void)state;
    assert_non_null(y);
    y[250000] = 1;
    struct plot plot = plot_of(y, count);
    char *svg = svg_twice(&plot);
    size_t points = svg_points(svg, px, py, 8192), best = 0, high = 0;
    assert_in_range(points, 500, 4 * 2 * 600);
    for (size_t i = 0; i < points; i++) {
        best = py[i] < py[best] ? i : best;
        high += py[i] < py[0] - 1;
        assert_true(i == 0 || px[i] >= px[i - 1]);
    }
    assert_int_equal(high, 1);
    double part = (px[best] - px[0]) / (px[points - 1] - px[0]);
    assert_true(fabs(part - 0.25) < 1e-4);
    free(svg);
    free(y);
}

/* Gaps part the curve, and a point between two gaps is there. */
static void test_svg_gaps(void **state) {
    double y[] = {1, 2, NAN, 3, NAN, INFINITY, 2};
    double px[8], py[8];
    (void)state;
    struct plot plot = plot_of(y, 7);
    char *svg = svg_twice(&plot);
    assert_int_equal(svg_points(svg, px, py, 8), 5);
    const char *curve = strstr(svg, "id=\"curve\"");
    int parts = 0;
    for (const char *at = curve + 14; *at != '"'; at++) {
        parts += *at == 'M';
    }
    assert_int_equal(parts, 3);
    assert_true(py[2] < py[1]);
    free(svg);
}

/* Whatever the numbers: within the bound, and no number that XML readers would stumble over. */
static void test_svg_extremes(void **state) {
    static const double levels[] = {NAN, INFINITY, -INFINITY, 1e308, 5e-324, -1, 0};
    double y[64], x[64];
    (void)state;
    for (size_t i = 0; i < 42; i++) {
        for (int k = 0; k < 64; k++) {
            y[k] = k % 3 == 0 ? levels[i % 7] : k;
            x[k] = i / 7 == 1 ? 1e300 : i / 7 == 2 ? 1e-320 * k : i / 7 == 3 ? k / 9 : 1e300 * k;
        }
        struct plot plot = plot_of(y, i / 7 == 4 ? 1 : 64);
        plot.x = i / 7 == 5 ? NULL : x;
        plot.width = i % 2 ? 4096 : 200;
        plot.height = i % 3 ? 200 : 4096;
        plot.mark_x = x[1];
        plot.mark_y = y[0];
        plot.title = plot.mark_label = "Period <1> & \x01"
                                       "-3\x02 \x7f \xff";
        char *svg = svg_twice(&plot);
        assert_non_null(strstr(svg, "<title>Period &lt;1&gt; &amp; ⁻³ × ?</title>"));
        assert_null(strstr(svg, "nan"));
        assert_null(strstr(svg, "inf"));
        free(svg);
    }
    /* every point of every strip matters: as long as it gets */
    const uint64_t count = 400000;
    double *rough = malloc(count * sizeof *rough);
    assert_non_null(rough);
    for (uint64_t i = 0; i < count; i++) {
        rough[i] = i % 5 == 4 ? NAN : (double)(i * 2654435761u % 1000003);
    }
    struct plot plot = plot_of(rough, count);
    plot.width = plot.height = 4096;
    free(svg_twice(&plot));
    free(rough);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_stroke_covers_its_area),
        cmocka_unit_test(test_box_covers_its_area),
        cmocka_unit_test(test_outside_is_cut),
        cmocka_unit_test(test_every_glyph_is_drawn),
        cmocka_unit_test(test_text_advances),
        cmocka_unit_test(test_turned_text),
        cmocka_unit_test(test_ticks),
        cmocka_unit_test(test_no_peak_is_lost),
        cmocka_unit_test(test_extremes),
        cmocka_unit_test(test_margins_stay_white),
        cmocka_unit_test(test_svg_loses_no_peak),
        cmocka_unit_test(test_svg_gaps),
        cmocka_unit_test(test_svg_extremes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
