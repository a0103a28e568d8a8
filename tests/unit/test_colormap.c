/*
 * test_colormap.c: colour tables against values read off Matplotlib 3.6.3 and 3.11.2, and their
 * names.
 */
#include "compute/plot/colormap.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* matplotlib.colormaps[name]((i + 0.5) / 256, bytes=True) at i = 0, 64, 128, 200, 255, and the sum
   of all 768 numbers. */
static const struct {
    const char *name;
    uint8_t colours[5][3];
    unsigned sum;
} known[] = {
    {"viridis",
     {{68, 1, 84}, {58, 82, 139}, {32, 144, 140}, {112, 206, 86}, {253, 231, 36}},
     84207},
    {"hot", {{10, 0, 0}, {178, 0, 0}, {255, 91, 0}, {255, 255, 38}, {255, 255, 255}}, 91061},
    {"gray", {{0, 0, 0}, {64, 64, 64}, {128, 128, 128}, {200, 200, 200}, {255, 255, 255}}, 97848},
    {"twilight",
     {{225, 216, 226}, {97, 116, 186}, {47, 20, 54}, {187, 106, 88}, {225, 216, 225}},
     97837},
    {"jet", {{0, 0, 127}, {0, 128, 255}, {124, 255, 121}, {255, 118, 0}, {127, 0, 0}}, 94891},
    {"coolwarm",
     {{58, 76, 192}, {141, 175, 253}, {221, 220, 219}, {240, 139, 109}, {179, 3, 38}},
     132727},
    {"tab10",
     {{31, 119, 180}, {44, 160, 44}, {140, 86, 75}, {127, 127, 127}, {23, 190, 207}},
     96120},
};

static void colours(void **state) {
    (void)state;
    static const size_t at[] = {0, 64, 128, 200, 255};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++) {
        uint8_t lut[COLORMAP_BYTES];
        unsigned sum = 0;
        int32_t index = colormap_find(known[i].name);
        assert_true(index >= 0);
        colormap_fill(index, lut);
        for (size_t k = 0; k < 5; k++) {
            assert_memory_equal(lut + 3 * at[k], known[i].colours[k], 3);
        }
        for (size_t k = 0; k < COLORMAP_BYTES; k++) {
            sum += lut[k];
        }
        assert_int_equal(sum, known[i].sum);
    }
}

static void reversed(void **state) {
    (void)state;
    for (int32_t i = 0; colormap_names[i] != NULL; i += 2) {
        uint8_t lut[COLORMAP_BYTES], back[COLORMAP_BYTES];
        char name[64];
        strcpy(name, colormap_names[i]);
        strcat(name, "_r");
        assert_non_null(colormap_names[i + 1]);
        assert_string_equal(colormap_names[i + 1], name);
        assert_int_equal(colormap_find(name), i + 1);
        colormap_fill(i, lut);
        colormap_fill(i + 1, back);
        for (size_t k = 0; k < COLORMAP_COLORS; k++) {
            assert_memory_equal(lut + 3 * k, back + 3 * (COLORMAP_COLORS - 1 - k), 3);
        }
    }
}

static void names(void **state) {
    (void)state;
    static const char *const wanted[] = {
        "viridis",  "plasma",  "inferno", "magma",   "cividis", "twilight", "twilight_shifted",
        "turbo",    "hot",     "gray",    "bone",    "copper",  "jet",      "cubehelix",
        "coolwarm", "seismic", "ocean",   "terrain", "hsv",     "rainbow",  "gist_earth",
        "tab20c",   "Set3",    "Accent",  "Paired",  "grey",    "berlin",   "okabe_ito",
    };
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_true(colormap_find(wanted[i]) >= 0);
    }
    int32_t count = 0;
    for (; colormap_names[count] != NULL; count++) {
        assert_int_equal(colormap_find(colormap_names[count]), count);
    }
    assert_int_equal(count, 182); /* all of Matplotlib 3.11 */
    assert_int_equal(colormap_find("Viridis"), -1);
    assert_int_equal(colormap_find(""), -1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(colours),
        cmocka_unit_test(reversed),
        cmocka_unit_test(names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
