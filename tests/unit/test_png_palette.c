/* test_png_palette.c: colours found, counted and given up. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/codecs/png/png_palette.h"

#include <stdlib.h>
#include <string.h>

#define PIXELS 300000 /* more than are sampled closely */

static uint8_t rgb[3 * PIXELS];
static uint8_t indices[PIXELS];

static uint32_t noise(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

static void color_put(size_t pixel, uint32_t color) {
    rgb[3 * pixel] = (uint8_t)color;
    rgb[3 * pixel + 1] = (uint8_t)(color >> 8);
    rgb[3 * pixel + 2] = (uint8_t)(color >> 16);
}

/* Pixels of `colors` different colours, in stretches and alone; each comes at least once. */
static void pixels_fill(size_t count, unsigned colors, uint32_t factor) {
    uint32_t seed = colors;
    for (size_t i = 0; i < count;) {
        uint32_t color = noise(&seed) % colors * factor;
        for (size_t k = noise(&seed) % 4 ? 1 : noise(&seed) % 90; k > 0 && i < count; k--) {
            color_put(i++, color);
        }
    }
    for (unsigned i = 0; i < colors && i < count; i++) {
        color_put((size_t)i * (count / colors), i * factor);
    }
}

/* Every index means its pixel's colour, no colour is there twice, exactly `colors` are used. */
static void palette_check(size_t count, unsigned colors) {
    struct palette palette;
    assert_true(palette_find(rgb, count, &palette, indices));
    assert_int_equal(palette.count, colors);
    for (size_t i = 0; i < count; i++) {
        assert_true(indices[i] < palette.count);
        assert_memory_equal(palette.colors[indices[i]], rgb + 3 * i, 3);
    }
    for (unsigned i = 0; i < palette.count; i++) {
        for (unsigned k = 0; k < i; k++) {
            assert_memory_not_equal(palette.colors[i], palette.colors[k], 3);
        }
    }
}

static void test_counts(void **state) {
    static const size_t sizes[] = {256, 257, 271, 4096, 5001, PIXELS};
    static const uint32_t factors[] = {1, 0x010101, 0x010203, 0xfe01, 0x10000};
    (void)state;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
            for (unsigned colors = 1; colors <= 256; colors += colors < 3 ? 1 : 23) {
                pixels_fill(sizes[s], colors, factors[f]);
                palette_check(sizes[s], colors);
            }
        }
    }
    for (size_t count = 1; count < 40; count++) {
        pixels_fill(count, (unsigned)count, 77);
        palette_check(count, (unsigned)count);
    }
}

static void test_too_many(void **state) {
    struct palette palette;
    (void)state;
    for (size_t place = 256; place < 5000; place += 31) { /* the 257th anywhere */
        pixels_fill(5000, 1, 0);
        for (uint32_t i = 0; i < 256; i++) {
            color_put(i, i * 99);
        }
        palette_check(5000, 256);
        color_put(place, 0xffffff);
        assert_false(palette_find(rgb, 5000, &palette, indices));
    }
    color_put(4999, 0xfffffe);
    assert_false(palette_find(rgb, 5000, &palette, indices));
}

/* Colours whose places in a hash table are the same, and more free places than they would fill. */
static void test_colliding(void **state) {
    uint32_t found = 0, seed = 1;
    (void)state;
    memset(rgb, 0, 3 * 4096);
    for (uint32_t color = 1; found < 255 && color < 1u << 24; color++) {
        if (color * 0x9e3779b1u >> 24 == 0x55) {
            color_put(16 * found++, color);
        }
    }
    assert_int_equal(found, 255);
    palette_check(4096, 256);
    for (size_t i = 0; i < 4096; i += 16) {
        memmove(rgb + 3 * (i + 1 + noise(&seed) % 15), rgb + 3 * i, 3);
    }
    palette_check(4096, 256);
}

static void test_order(void **state) {
    struct palette palette;
    uint32_t seed = 2;
    (void)state;
    for (size_t i = 0; i < PIXELS; i++) {
        color_put(i, noise(&seed) % 256 * 0x010101);
    }
    assert_true(palette_find(rgb, PIXELS, &palette, indices));
    for (unsigned i = 0; i < 256; i++) {
        assert_int_equal(palette.colors[i][1], i);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_too_many),
        cmocka_unit_test(test_colliding),
        cmocka_unit_test(test_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
