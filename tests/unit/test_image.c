/* test_image.c: recognition, limits, sample conversion, quantizing and interleaving of planes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/codecs/image.h"
#include "compute/core/thread_pool.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char why[160];

static void test_recognition(void **state) {
    static const char *const strangers[] = {"", "P", "GIF89a", "P4 1 1\n", "\x89PN", "{}", "P71"};
    struct image_info info;
    (void)state;
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        assert_int_equal(
            image_probe(strangers[i], strlen(strangers[i]), FORMAT_NONE, 9, &info, why, sizeof why),
            KILN_MEDIA_TYPE);
    }
    static const enum format others[] = {FORMAT_JSON, FORMAT_CSV, FORMAT_RAW, FORMAT_COUNT};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        assert_int_equal(image_probe("P5 1 1 255 x", 12, others[i], 9, &info, why, sizeof why),
                         KILN_MEDIA_TYPE);
    }
    assert_int_equal(image_probe("P5 1 1 255 x", 12, FORMAT_PNG, 9, &info, why, sizeof why),
                     KILN_MALFORMED);
    assert_int_equal(image_probe("P5 3 3 255 123456789", 20, FORMAT_NONE, 9, &info, why, 160),
                     KILN_OK);
    assert_int_equal(image_probe("P5 3 3 255 123456789", 20, FORMAT_NONE, 8, &info, why, 160),
                     KILN_INVALID);
    assert_string_equal(why, "3 × 3 pixels are more than this daemon's 8 (--max-pixels)");
    info = (struct image_info){.format = FORMAT_JSON, .width = 1, .height = 1, .channels = 1};
    int32_t plane[1];
    assert_int_equal(image_read(NULL, "{}", 2, &info, SAMPLE_INT32, 0, 1, plane, why, sizeof why),
                     KILN_MEDIA_TYPE);
}

static void test_samples(void **state) {
    static const char file[] = "P5 3 2 65535\n\0\0\0\1\xff\xff\x80\0\0\2\0\3";
    static const double pixels[] = {0, 1, 65535, 32768, 2, 3};
    struct image_info info;
    int32_t integers[6];
    float floats[6];
    double doubles[6];
    (void)state;
    size_t size = sizeof file - 1;
    assert_int_equal(image_probe(file, size, FORMAT_NONE, 6, &info, why, sizeof why), KILN_OK);
    assert_int_equal(
        image_read(NULL, file, size, &info, SAMPLE_INT32, 32768, -2.5, integers, why, 160),
        KILN_OK);
    assert_int_equal(
        image_read(NULL, file, size, &info, SAMPLE_FLOAT, 0.1, 1.0 / 3, floats, why, 160), KILN_OK);
    assert_int_equal(
        image_read(NULL, file, size, &info, SAMPLE_DOUBLE, 0.1, 1.0 / 3, doubles, why, 160),
        KILN_OK);
    for (int i = 0; i < 6; i++) {
        assert_int_equal(integers[i], (int32_t)rint(-2.5 * (pixels[i] - 32768)));
        assert_true(doubles[i] == 1.0 / 3 * (pixels[i] - 0.1));
        assert_true(floats[i] == (float)(1.0 / 3 * (pixels[i] - 0.1)));
    }
    assert_int_equal(
        image_read(NULL, file, size, &info, SAMPLE_INT32, 0, 32768.0, integers, why, 160), KILN_OK);
    assert_int_equal(integers[2], 65535 * 32768);
    assert_int_equal(
        image_read(NULL, file, size, &info, SAMPLE_INT32, 0, 32769.0, integers, why, 160),
        KILN_MALFORMED); /* 65535 × 32769 = 2^31 + 32767 */
    assert_int_equal(
        image_read(NULL, file, size, &info, SAMPLE_DOUBLE, 0, INFINITY, doubles, why, 160),
        KILN_MALFORMED);
    assert_int_equal(image_read(NULL, file, size, &info, SAMPLE_FLOAT, NAN, 1, floats, why, 160),
                     KILN_MALFORMED);
}

/* The definition, in the library's words. */
static int quantized(double value, double offset, double scale, double top) {
    double rounded = nearbyint(value / scale + offset);
    return isnan(rounded) ? 0 : (int)fmin(fmax(rounded, 0.0), top);
}

static void test_quantize(void **state) {
    static const double edges[] = {0,
                                   0.5,
                                   1.5,
                                   2.5,
                                   0.49999999999999994,
                                   254.5,
                                   255.5,
                                   255.49,
                                   65534.5,
                                   65535.5,
                                   -0.5,
                                   -0.51,
                                   1e300,
                                   -1e300,
                                   128,
                                   65535,
                                   65536,
                                   -1,
                                   255,
                                   256,
                                   0.1,
                                   3.7,
                                   1e-320,
                                   4503599627370497.5};
    enum { COUNT = sizeof edges / sizeof edges[0] + 3 };
    double doubles[COUNT * 2];
    float floats[COUNT * 2];
    int32_t integers[COUNT * 2];
    uint8_t bytes[COUNT * 2];
    uint16_t words[COUNT * 2];
    static const double transforms[][2] = {{0, 1}, {32768, 1}, {128, -2.5}, {0.5, 3}};
    (void)state;
    for (int i = 0; i < COUNT * 2; i++) {
        int k = i % COUNT;
        doubles[i] = k < COUNT - 3    ? edges[k]
                     : k == COUNT - 3 ? NAN
                     : k == COUNT - 2 ? INFINITY
                                      : -INFINITY;
        floats[i] = (float)doubles[i];
        integers[i] = k * 9999 - 120000;
    }
    for (size_t t = 0; t < sizeof transforms / sizeof transforms[0]; t++) {
        double offset = transforms[t][0], scale = transforms[t][1];
        const void *planes[] = {integers, floats, doubles};
        for (int s = 0; s < 3; s++) {
            /* two channels of COUNT × 1: interleaved on the way */
            planes_quantize(NULL, planes[s], (enum sample)s, COUNT, 1, 2, 8, offset, scale, bytes);
            planes_quantize(NULL, planes[s], (enum sample)s, COUNT, 1, 2, 16, offset, scale, words);
            for (int i = 0; i < COUNT * 2; i++) {
                double value = s == 0 ? integers[i] : s == 1 ? (double)floats[i] : doubles[i];
                int at = i % COUNT * 2 + i / COUNT;
                assert_int_equal(bytes[at], quantized(value, offset, scale, 255));
                assert_int_equal(words[at], quantized(value, offset, scale, 65535));
            }
        }
    }
}

static void test_interleave(void **state) {
    (void)state;
    for (size_t element = 1; element <= 8; element *= 2) {
        for (uint32_t channels = 1; channels <= 4; channels++) {
            uint8_t planes[5 * 3 * 4 * 8], out[5 * 3 * 4 * 8 + 1];
            size_t total = 15 * channels * element;
            for (size_t i = 0; i < total; i++) {
                planes[i] = (uint8_t)(i * 37 + 11);
            }
            uint64_t aligned[5 * 3 * 4], result[5 * 3 * 4 + 1];
            memcpy(aligned, planes, total);
            memset(result, 0xee, sizeof result);
            planes_interleave(NULL, aligned, element, 5, 3, channels, result);
            memcpy(out, result, total + 1);
            for (size_t i = 0; i < 15; i++) {
                for (uint32_t c = 0; c < channels; c++) {
                    assert_memory_equal(out + (i * channels + c) * element,
                                        planes + (c * 15 + i) * element, element);
                }
            }
            assert_int_equal(out[total], 0xee);
        }
    }
}

/* A PAM of 700 × 500 × 4 with the given maxval, its samples a pattern below 100. */
static uint8_t *large_make(unsigned top, size_t *size) {
    enum { COUNT = 700 * 500 * 4 };
    uint8_t *file = malloc(128 + COUNT);
    assert_non_null(file);
    int head =
        sprintf((char *)file,
                "P7\nWIDTH 700\nHEIGHT 500\nDEPTH 4\nMAXVAL %u\nTUPLTYPE RGB_ALPHA\nENDHDR\n", top);
    for (size_t i = 0; i < COUNT; i++) {
        file[(size_t)head + i] = (uint8_t)(i * 7 % 97);
    }
    *size = (size_t)head + COUNT;
    return file;
}

/* Threads change nothing: neither the samples and pixels nor what is said of a bad row. */
static void test_pool(void **state) {
    enum { COUNT = 700 * 500 * 4 };
    struct thread_pool *pool = NULL, *pools[] = {NULL, NULL};
    struct image_info info;
    char whys[2][160] = {"", ""};
    float *planes[2];
    uint8_t *pixels[2];
    size_t size;
    (void)state;
    assert_int_equal(thread_pool_create(4, &pool), KILN_OK);
    pools[1] = pool;
    for (unsigned top = 96; top >= 95; top--) {
        uint8_t *file = large_make(top, &size);
        assert_int_equal(image_probe(file, size, FORMAT_NONE, COUNT, &info, why, sizeof why),
                         KILN_OK);
        for (int i = 0; i < 2; i++) {
            planes[i] = malloc(COUNT * sizeof(float));
            pixels[i] = malloc(COUNT * sizeof(float));
            assert_non_null(planes[i]);
            assert_non_null(pixels[i]);
            enum kiln_status status = image_read(pools[i], file, size, &info, SAMPLE_FLOAT, 3, 0.5,
                                                 planes[i], whys[i], sizeof whys[i]);
            assert_int_equal(status, top == 96 ? KILN_OK : KILN_MALFORMED);
        }
        assert_string_equal(whys[0], whys[1]);
        assert_int_equal(whys[0][0] != '\0', top == 95);
        for (int i = 0; i < 2 && top == 96; i++) {
            planes_quantize(pools[i], planes[i], SAMPLE_FLOAT, 700, 500, 4, 8, 3, 0.5, pixels[i]);
        }
        if (top == 96) {
            assert_memory_equal(planes[0], planes[1], COUNT * sizeof(float));
            assert_memory_equal(pixels[0], pixels[1], COUNT);
            assert_memory_equal(pixels[1], file + size - COUNT, COUNT);
            for (int i = 0; i < 2; i++) {
                planes_interleave(pools[i], planes[0], sizeof(float), 700, 500, 4, pixels[i]);
            }
            assert_memory_equal(pixels[0], pixels[1], COUNT * sizeof(float));
        }
        for (int i = 0; i < 2; i++) {
            free(planes[i]);
            free(pixels[i]);
        }
        free(file);
    }
    thread_pool_destroy(pool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_recognition), cmocka_unit_test(test_samples),
        cmocka_unit_test(test_quantize),    cmocka_unit_test(test_interleave),
        cmocka_unit_test(test_pool),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
