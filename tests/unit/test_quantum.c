/*
 * test_quantum.c: a picture and its Laplacian as PNG and PGM, there and back without a word about
 * offset, scale and depth; and what is taken of the text that carries them.
 */
#include "job_rig.h"

#include <math.h>
#include <stdio.h>

enum { WIDTH = 21, HEIGHT = 17, COUNT = WIDTH * HEIGHT };

static const struct job_type *jacobi, *laplacian;

static int setup(void **state) {
    jacobi = job_type_find("jacobi");
    laplacian = job_type_find("laplacian");
    return jacobi != NULL && laplacian != NULL ? rig_open(state) : -1;
}

/* ---- the text ---- */

static void text_is_read_whole_or_not_at_all(void **state) {
    (void)state;
    static const struct {
        const char *text;
        bool good;
        struct quantum quantum;
    } rows[] = {
        {"offset=32768&scale=1&bits=8", true, {32768, 1, 8}},
        {"offset=-0.5&scale=-2e-3", true, {-0.5, -2e-3, 0}},
        {"offset=1&scale=4&bits=16", true, {1, 4, 16}},
        {"offset=1&scale=4&bits=12", false, {0, 0, 0}},
        {"offset=1&scale=4&bits=", false, {0, 0, 0}},
        {"offset=1&scale=4&", false, {0, 0, 0}},
        {"offset=1&scale=4 ", false, {0, 0, 0}},
        {" offset=1&scale=4", false, {0, 0, 0}},
        {"offset=1&scale=0", false, {0, 0, 0}},
        {"offset=1&scale=1e-400", false, {0, 0, 0}},
        {"offset=1e400&scale=1", false, {0, 0, 0}},
        {"offset=nan&scale=1", false, {0, 0, 0}},
        {"offset=1", false, {0, 0, 0}},
        {"scale=1&offset=1", false, {0, 0, 0}},
        {"", false, {0, 0, 0}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct quantum quantum = {0};
        assert_int_equal(quantum_read(rows[i].text, strlen(rows[i].text), &quantum), rows[i].good);
        assert_true(quantum.offset == rows[i].quantum.offset &&
                    quantum.scale == rows[i].quantum.scale && quantum.bits == rows[i].quantum.bits);
    }
    const struct quantum longest = {-1.2345678901234567e-300, -1.2345678901234567e-300, 16};
    struct quantum again;
    char text[QUANTUM_MAX];
    quantum_print(&longest, text);
    assert_true(quantum_read(text, strlen(text), &again));
    assert_true(again.offset == longest.offset && again.scale == longest.scale &&
                again.bits == longest.bits);
}

/* ---- there and back ---- */

/* A binary Netpbm picture of samples up to `top`, smooth or not; returns the size. */
static size_t picture_make(uint8_t *out, unsigned channels, unsigned top, bool smooth,
                           uint16_t *samples) {
    size_t size = (size_t)(channels % 2 == 1
                               ? sprintf((char *)out, "P%c\n%d %d\n%u\n", channels == 1 ? '5' : '6',
                                         WIDTH, HEIGHT, top)
                               : sprintf((char *)out,
                                         "P7\nWIDTH %d\nHEIGHT %d\nDEPTH %u\nMAXVAL %u\nENDHDR\n",
                                         WIDTH, HEIGHT, channels, top));
    uint32_t noise = 1;
    for (unsigned i = 0; i < COUNT; i++) {
        for (unsigned k = 0; k < channels; k++) {
            noise = noise * 1664525 + 1013904223;
            unsigned slope = 40 * (i % WIDTH) + 25 * (i / WIDTH) + k;
            unsigned value = smooth ? slope % (top + 1) : (noise >> 8) % (top + 1);
            if (top > 255) {
                out[size++] = (uint8_t)(value >> 8);
            }
            out[size++] = (uint8_t)value;
            samples[i * channels + k] = (uint16_t)value;
        }
    }
    return size;
}

/* Largest difference of the rig's picture from the samples. */
static double difference(const struct rig *rig, unsigned channels, unsigned depth,
                         const uint16_t *samples) {
    struct image_info info;
    static int32_t planes[4 * COUNT];
    char why[128];
    double most = 0;
    assert_int_equal(
        image_probe(rig->result, rig->size, FORMAT_NONE, COUNT, &info, why, sizeof why), KILN_OK);
    assert_int_equal(info.depth, depth);
    assert_int_equal(info.channels, channels);
    assert_true(info.quantum.scale == 0); /* it is no Laplacian any more */
    assert_int_equal(image_read(NULL, rig->result, rig->size, &info, SAMPLE_INT32, 0, 1, planes,
                                why, sizeof why),
                     KILN_OK);
    for (unsigned i = 0; i < COUNT; i++) {
        for (unsigned k = 0; k < channels; k++) {
            most = fmax(most, fabs((double)planes[k * COUNT + i] - samples[i * channels + k]));
        }
    }
    return most;
}

static struct quantum quantum_of(const struct rig *rig) {
    struct image_info info;
    char why[128];
    assert_int_equal(
        image_probe(rig->result, rig->size, FORMAT_NONE, COUNT, &info, why, sizeof why), KILN_OK);
    return info.quantum;
}

static void pictures_come_back(void **state) {
    (void)state;
    static const struct {
        unsigned top, depth;
        bool smooth;
        double scale; /* of the Laplacian */
        double error; /* allowed: half a step of each sample goes through the inverse */
    } rows[] = {{255, 8, false, 1, 0},
                {65535, 16, true, 1, 0},
                {65535, 16, false, 8, 60},
                {1, 8, false, 1, 0}};
    static const enum format formats[] = {FORMAT_PNG, FORMAT_PGM};
    static uint8_t image[64 + 8 * COUNT];
    static uint16_t samples[4 * COUNT];
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        for (unsigned channels = 1; channels <= 4; channels++) {
            size_t size = picture_make(image, channels, rows[r].top, rows[r].smooth, samples);
            for (size_t f = 0; f < 2; f++) {
                struct rig there, back;
                rig_turn(&there, laplacian, formats[f], "", image, size);
                assert_true(there.remarks.picture && there.remarks.clamped == 0);
                struct quantum quantum = quantum_of(&there);
                assert_true(quantum.offset == 32768 && quantum.scale == rows[r].scale);
                assert_int_equal(quantum.bits, rows[r].depth);
                rig_turn(&back, jacobi, formats[f], "", there.result, there.size);
                double error = difference(&back, channels, rows[r].depth, samples);
                if (error > rows[r].error) {
                    fail_msg("top %u, %u channels: off by %g", rows[r].top, channels, error);
                }
                assert_true(back.remarks.iterated && back.remarks.left == 0);
                rig_finish(&there);
                rig_finish(&back);
            }
        }
    }
}

/* What the request says wins, and what is lost by it is told. */
static void requests_win(void **state) {
    (void)state;
    static uint8_t image[64 + 2 * COUNT];
    static uint16_t samples[COUNT];
    struct rig there, back;
    size_t size = picture_make(image, 1, 65535, true, samples);
    rig_turn(&there, laplacian, FORMAT_PNG, "", image, size);
    rig_turn(&back, jacobi, FORMAT_PNG, "offset=0", there.result, there.size);
    assert_true(back.remarks.clamped == COUNT); /* a white or black picture */
    rig_finish(&back);
    rig_turn(&back, jacobi, FORMAT_PNG, "bits=8", there.result, there.size);
    assert_true(back.remarks.clamped > 0 && back.remarks.clamped < COUNT);
    rig_finish(&back);
    rig_turn(&back, jacobi, FORMAT_PNG, "iterations=2", there.result, there.size);
    assert_true(back.remarks.iterated && back.remarks.left > REMARK_CONVERGED);
    assert_non_null(strstr(rig_canonical(&back), "offset=32768&scale=1&"));
    rig_finish(&back);
    rig_finish(&there);
    size = picture_make(image, 1, 65535, false, samples);
    rig_turn(&there, laplacian, FORMAT_PNG, "scale=1", image, size); /* too small, as asked for */
    assert_true(there.remarks.clamped > 0 && quantum_of(&there).scale == 1);
    rig_finish(&there);
}

static void floating_ones_use_the_range(void **state) {
    (void)state;
    char file[512 + 8 * COUNT];
    double *values = malloc(COUNT * sizeof *values);
    const uint64_t shape[] = {HEIGHT, WIDTH};
    struct rig there, back;
    size_t head = npy_write_header((uint8_t *)file, sizeof file, "<f8", shape, 2);
    for (int i = 0; i < COUNT; i++) {
        values[i] = 0.5 + 0.5 * sin(i * i);
    }
    memcpy(file + head, values, COUNT * sizeof *values);
    rig_turn(&there, laplacian, FORMAT_PNG, "", file, head + COUNT * sizeof *values);
    assert_true(there.remarks.clamped == 0);
    assert_true(quantum_of(&there).scale < 1e-3 && quantum_of(&there).bits == 0);
    rig_turn(&back, jacobi, FORMAT_NPY, "precision=fp64", there.result, there.size);
    const double *x = rig_array(&back, 'f', 8, HEIGHT, WIDTH, 0);
    for (int i = 0; i < COUNT; i++) {
        assert_true(fabs(x[i] - values[i]) < 2e-3);
    }
    assert_false(back.remarks.picture);
    free(values);
    rig_finish(&there);
    rig_finish(&back);
}

/* Whatever else a file holds, it is no such text. */
static void broken_texts_say_nothing(void **state) {
    (void)state;
    static uint8_t image[64 + COUNT];
    static uint16_t samples[COUNT];
    struct rig there;
    size_t size = picture_make(image, 1, 255, false, samples), at = 33;
    rig_turn(&there, laplacian, FORMAT_PNG, "", image, size);
    while (memcmp(there.result + at + 8, QUANTUM_KEY, sizeof QUANTUM_KEY) != 0) {
        at += 12 + (size_t)(there.result[at + 2] << 8 | there.result[at + 3]);
    }
    assert_true(quantum_of(&there).scale == 1);
    there.result[at + 8 + sizeof QUANTUM_KEY + 7] ^= 1; /* the checksum is wrong now */
    assert_true(quantum_of(&there).scale == 0);
    rig_finish(&there);
    static const char *const heads[] = {
        "P5\n# kiln:quantization offset=1&scale=2\n1 1\n255\nx",
        "P5\n# kiln:quantization offset=1&scale=2 \n1 1\n255\nx",
        "P5\n#kiln:quantization offset=1&scale=2\n1 1\n255\nx",
        "P5\n1 1\n# kiln:quantization offset=1&scale=2\n255\nx",
        "P5\n# kiln:quantization offset=1&scale=2&bits=8\r\n1 1\n255\nx",
    };
    for (size_t i = 0; i < sizeof heads / sizeof *heads; i++) {
        struct image_info info;
        char why[128];
        assert_int_equal(
            image_probe(heads[i], strlen(heads[i]), FORMAT_NONE, 9, &info, why, sizeof why),
            KILN_OK);
        assert_true(info.quantum.scale == (i == 0 ? 2 : 0));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_is_read_whole_or_not_at_all),
        cmocka_unit_test(pictures_come_back),
        cmocka_unit_test(requests_win),
        cmocka_unit_test(floating_ones_use_the_range),
        cmocka_unit_test(broken_texts_say_nothing),
    };
    return cmocka_run_group_tests_name("quantum", tests, setup, rig_close);
}
