/*
 * test_jobs_mandelbrot.c: results of the mandelbrot job on the CPU backend: counts that are known,
 * arrays, statistics, pictures, and tiles that fit together.
 */
#include "compute/codecs/json.h"
#include "compute/plot/colormap.h"

#include "job_rig.h"

#include <math.h>
#include <stdio.h>

static const struct job_type *mandelbrot;

static int setup(void **state) {
    mandelbrot = job_type_find("mandelbrot");
    return mandelbrot != NULL ? rig_open(state) : -1;
}

/* Escape counts of single points at radius 2 (|z|² > 4, z0 = 0), checked elsewhere in binary128. */
static void known_counts(void **state) {
    (void)state;
    static const struct {
        const char *window; /* one pixel whose centre is the point */
        int32_t count;
    } rows[] = {
        {"xmin=-1.75&xmax=0.25&ymin=-0.9&ymax=1.1", 33},       /* -0.75 + 0.1 i */
        {"xmin=-1.75&xmax=0.25&ymin=-0.99&ymax=1.01", 315},    /* -0.75 + 0.01 i */
        {"xmin=-1.75&xmax=0.25&ymin=-0.999&ymax=1.001", 3143}, /* -0.75 + 0.001 i */
        {"xmin=0&xmax=0.52&ymin=-1&ymax=1", 30},               /* 0.26 */
        {"xmin=0&xmax=0.5002&ymin=-1&ymax=1", 312},            /* 0.2501 */
        {"xmin=-3&xmax=-1&ymin=-1&ymax=1", -1},                /* -2 */
        {"xmin=-1&xmax=1&ymin=0&ymax=2", -1},                  /* i */
        {"xmin=-1.75&xmax=0.25&ymin=-1&ymax=1", -1},           /* -0.75 */
        {"xmin=0&xmax=0.5&ymin=-1&ymax=1", -1},                /* 0.25 */
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct rig rig;
        char query[256];
        snprintf(query, sizeof query,
                 "width=1&height=1&max_iter=4000&escape_radius=2&precision=fp64&field=count&%s",
                 rows[i].window);
        rig_make(&rig, mandelbrot, FORMAT_NPY, query);
        const int32_t *count = rig_array(&rig, 'i', 4, 1, 1, 0);
        assert_int_equal(*count, rows[i].count);
        rig_finish(&rig);
    }
}

#define SMALL "width=61&height=37&max_iter=200"

static void arrays(void **state) {
    (void)state;
    struct rig counts, smooth, plain, raw;
    rig_make(&counts, mandelbrot, FORMAT_NPY, SMALL "&field=count");
    rig_make(&smooth, mandelbrot, FORMAT_NPY, SMALL "&supersample=4");
    rig_make(&plain, mandelbrot, FORMAT_NPY, SMALL "&smooth=false");
    rig_make(&raw, mandelbrot, FORMAT_RAW, SMALL "&field=count");
    const int32_t *n = rig_array(&counts, 'i', 4, 37, 61, 0);
    const float *s = rig_array(&smooth, 'f', 4, 37, 61, 0);
    const float *p = rig_array(&plain, 'f', 4, 37, 61, 0);
    size_t inside = 0;
    for (size_t i = 0; i < 37 * 61; i++) {
        inside += n[i] < 0;
        assert_true(p[i] == (float)n[i]);
        assert_true(n[i] < 0 ? s[i] == -1
                             : s[i] > (float)n[i] - 1.01f && s[i] <= (float)n[i] + 0.01f);
    }
    assert_true(inside > 0 && inside < 37 * 61);
    assert_int_equal(raw.size, 37 * 61 * 4);
    assert_memory_equal(raw.result, n, raw.size);
    for (size_t i = 0; i < 37; i++) { /* the window is symmetric: row 0 mirrors the last */
        assert_memory_equal(n + 61 * i, n + 61 * (36 - i), 61 * 4);
    }
    rig_finish(&counts);
    rig_finish(&smooth);
    rig_finish(&plain);
    rig_finish(&raw);
}

/* Row 0 is at ymax: an upper half alone equals the upper half of the whole. */
static void orientation(void **state) {
    (void)state;
    struct rig whole, upper;
    rig_make(&whole, mandelbrot, FORMAT_NPY,
             "width=32&height=32&xmin=-2&xmax=2&ymin=-1&ymax=3&field=count&precision=fp64");
    rig_make(&upper, mandelbrot, FORMAT_NPY,
             "width=32&height=16&xmin=-2&xmax=2&ymin=1&ymax=3&field=count&precision=fp64");
    assert_memory_equal(rig_array(&whole, 'i', 4, 32, 32, 0), rig_array(&upper, 'i', 4, 16, 32, 0),
                        16 * 32 * 4);
    rig_finish(&whole);
    rig_finish(&upper);
}

/* A number among the members of the result's top level. */
static double number(const struct json_value *object, const char *name) {
    size_t cursor = 0;
    char key[64];
    struct json_value value;
    while (json_next_member(object, &cursor, key, sizeof key, &value)) {
        if (strcmp(key, name) == 0 && value.type == JSON_NUMBER) {
            return json_number(&value);
        }
    }
    fail_msg("no number %s", name);
    return NAN;
}

static struct json_value parse(const struct rig *rig) {
    struct json_value object;
    char why[128];
    if (json_check((const char *)rig->result, rig->size, &object, why, sizeof why) != KILN_OK) {
        fail_msg("%s", why);
    }
    return object;
}

static struct json_value child(const struct json_value *object, const char *name) {
    size_t cursor = 0;
    char key[64];
    struct json_value value = {0};
    while (json_next_member(object, &cursor, key, sizeof key, &value)) {
        if (strcmp(key, name) == 0) {
            return value;
        }
    }
    fail_msg("no member %s", name);
    return value;
}

static void statistics(void **state) {
    (void)state;
    struct rig rig, counts;
    char text[64];
    uint64_t sum = 0, inside = 0;
    rig_make(&rig, mandelbrot, FORMAT_JSON, SMALL);
    rig_make(&counts, mandelbrot, FORMAT_NPY, SMALL "&field=count");
    const int32_t *n = rig_array(&counts, 'i', 4, 37, 61, 0);
    for (size_t i = 0; i < 37 * 61; i++) {
        inside += n[i] < 0;
        sum += n[i] < 0 ? 200 : (uint64_t)n[i];
    }
    struct json_value object = parse(&rig);
    assert_true(number(&object, "width") == 61 && number(&object, "height") == 37);
    assert_true(number(&object, "inside") == (double)inside);
    assert_true(number(&object, "escaped") == 37 * 61 - (double)inside);
    assert_true(number(&object, "iterations") == (double)sum);
    assert_true(number(&object, "ulps") > 1e5);
    assert_int_equal(child(&object, "limited").type, JSON_FALSE);
    assert_true(number(&object, "count_min") >= 1 && number(&object, "count_max") <= 200);
    struct json_value id = child(&object, "job"), parameters = child(&object, "parameters");
    json_string(&id, text, sizeof text);
    assert_string_equal(text, "1234abcd-0000-0000-0000-000000000000");
    assert_true(number(&parameters, "max_iter") == 200);
    struct json_value timing = child(&object, "timing");
    double total = number(&timing, "total");
    double phases = number(&timing, "kernel") + number(&timing, "download") +
                    number(&timing, "encode") + number(&timing, "upload");
    assert_true(total > 0 && phases > 0 && phases <= total + 0.01);
    /* the run closed the last phase itself; the worker's finish added nothing to it */
    assert_true(fabs(rig.timing.encode - number(&timing, "encode")) <= 0.0001);
    rig_finish(&rig);
    rig_make(&rig, mandelbrot, FORMAT_JSON,
             "width=2&height=2&xmin=-0.1&xmax=0.1&ymin=-0.1&ymax=0.1");
    object = parse(&rig);
    assert_int_equal(child(&object, "count_mean").type, JSON_NULL);
    rig_finish(&rig);
    rig_finish(&counts);
}

/* The picture's pixels, interleaved into memory that the caller frees. */
static uint8_t *pixels(const struct rig *rig, uint32_t width, uint32_t height) {
    struct image_info info;
    char why[128];
    size_t count = (size_t)width * height;
    assert_int_equal(
        image_probe(rig->result, rig->size, FORMAT_PNG, 1u << 22, &info, why, sizeof why), KILN_OK);
    assert_true(info.width == width && info.height == height);
    assert_true(info.channels == 3 && info.depth == 8);
    int32_t *planes = malloc(count * 3 * sizeof *planes);
    uint8_t *rgb = malloc(count * 3);
    assert_true(planes != NULL && rgb != NULL);
    assert_int_equal(image_read(NULL, rig->result, rig->size, &info, SAMPLE_INT32, 0, 1, planes,
                                why, sizeof why),
                     KILN_OK);
    for (size_t i = 0; i < 3 * count; i++) {
        rgb[i] = (uint8_t)planes[i % 3 * count + i / 3];
    }
    free(planes);
    return rgb;
}

static void picture(void **state) {
    (void)state;
    struct rig rig, again, counts;
    uint8_t lut[COLORMAP_BYTES];
    const char *query = SMALL "&smooth=false&gamma=1&colormap=viridis_r";
    rig_make(&rig, mandelbrot, FORMAT_PNG, query);
    rig_make(&again, mandelbrot, FORMAT_PNG, query);
    rig_make(&counts, mandelbrot, FORMAT_NPY, SMALL "&field=count");
    assert_int_equal(rig.size, again.size);
    assert_memory_equal(rig.result, again.result, rig.size);
    const char *canonical = rig_canonical(&rig);
    assert_non_null(memmem(rig.result, rig.size, "kiln:parameters", 16));
    assert_non_null(memmem(rig.result, rig.size, canonical, strlen(canonical)));
    const int32_t *n = rig_array(&counts, 'i', 4, 37, 61, 0);
    uint8_t *rgb = pixels(&rig, 61, 37);
    colormap_fill(colormap_find("viridis_r"), lut);
    for (size_t i = 0; i < 37 * 61; i++) {
        int entry = n[i] < 0 ? 0 : n[i] * 256 / 200;
        entry = entry > 255 ? 255 : entry;
        for (size_t k = 0; k < 3; k++) {
            assert_in_range(rgb[3 * i + k] + 1, lut[3 * entry + (int)k],
                            lut[3 * entry + (int)k] + 2);
        }
    }
    free(rgb);
    rig_finish(&rig);
    rig_finish(&again);
    rig_finish(&counts);
}

/* A picture's colours by vmin and vmax do not depend on max_iter, but for points that it decides.
 */
static void brightness(void **state) {
    (void)state;
    struct rig few, many, counts;
    rig_make(&few, mandelbrot, FORMAT_PNG, SMALL "&vmin=2&vmax=50&colormap=viridis");
    rig_make(&many, mandelbrot, FORMAT_PNG,
             "width=61&height=37&max_iter=20000&vmin=2&vmax=50&colormap=viridis");
    rig_make(&counts, mandelbrot, FORMAT_NPY, SMALL "&field=count");
    const int32_t *n = rig_array(&counts, 'i', 4, 37, 61, 0);
    uint8_t *one = pixels(&few, 61, 37), *other = pixels(&many, 61, 37), lut[COLORMAP_BYTES];
    colormap_fill(colormap_find("viridis"), lut);
    for (size_t i = 0; i < 37 * 61; i++) {
        if (n[i] >= 0) {
            assert_memory_equal(one + 3 * i, other + 3 * i, 3);
        }
        if (n[i] == 1 || n[i] == 2) {
            assert_memory_equal(one + 3 * i, lut, 3);
        }
        if (n[i] > 51) {
            assert_memory_equal(one + 3 * i, lut + COLORMAP_BYTES - 3, 3);
        }
    }
    free(one);
    free(other);
    rig_finish(&few);
    rig_finish(&many);
    rig_finish(&counts);
}

/* A tile with these parameters, decoded. */
static uint8_t *tile(const char *z, const char *x, const char *name, const char *query,
                     uint32_t side) {
    const char *const captures[] = {z, x, name};
    struct rig rig;
    rig_init(&rig, mandelbrot, FORMAT_PNG, query);
    assert_int_equal(mandelbrot->paths[0].bind(captures, rig.params, &rig.complaints), KILN_OK);
    assert_int_equal(rig_run(&rig), KILN_OK);
    uint8_t *rgb = pixels(&rig, side, side);
    rig_finish(&rig);
    return rgb;
}

/* The four tiles of level 1 are the quarters of level 0 at twice the pixels, to the last bit. */
static void seams(void **state) {
    (void)state;
    static const char *const queries[] = {"max_iter=100", "max_iter=100&shade=true&supersample=2"};
    for (size_t q = 0; q < sizeof queries / sizeof *queries; q++) {
        uint8_t *root = tile("0", "0", "0@2x.png", queries[q], 512);
        for (size_t t = 0; t < 4; t++) {
            uint8_t *quarter =
                tile("1", t % 2 ? "1" : "0", t / 2 ? "1.png" : "0.png", queries[q], 256);
            for (size_t i = 0; i < 256; i++) {
                assert_memory_equal(quarter + i * 768,
                                    root + ((t / 2 * 256 + i) * 512 + t % 2 * 256) * 3, 768);
            }
            free(quarter);
        }
        free(root);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(known_counts), cmocka_unit_test(arrays),  cmocka_unit_test(orientation),
        cmocka_unit_test(statistics),   cmocka_unit_test(picture), cmocka_unit_test(brightness),
        cmocka_unit_test(seams),
    };
    return cmocka_run_group_tests(tests, setup, rig_close);
}
