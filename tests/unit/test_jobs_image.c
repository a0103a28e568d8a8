/*
 * test_jobs_image.c: laplacian and jacobi on the CPU backend: against literal loops, through every
 * format, and back to the image that they started from.
 */
#include "compute/codecs/json.h"

#include "job_rig.h"

#include <math.h>
#include <stdio.h>

enum { WIDTH = 13, HEIGHT = 9, COUNT = WIDTH * HEIGHT };

static const struct job_type *jacobi, *laplacian;

static int setup(void **state) {
    jacobi = job_type_find("jacobi");
    laplacian = job_type_find("laplacian");
    return jacobi && laplacian ? rig_open(state) : -1;
}

/* A picture of edges and noise; channel k is shifted. */
static uint8_t sample(size_t i, size_t j, size_t k) {
    return (uint8_t)(i * 37 + j * j * 11 + k * 71 + (i > 4 ? 90 : 0));
}

/* Binary PGM or PPM of it; returns the size. */
static size_t make_image(uint8_t *out, size_t channels) {
    size_t size =
        (size_t)sprintf((char *)out, "P%c\n%d %d\n255\n", channels == 3 ? '6' : '5', WIDTH, HEIGHT);
    for (size_t i = 0; i < HEIGHT; i++)
        for (size_t j = 0; j < WIDTH; j++)
            for (size_t k = 0; k < channels; k++)
                out[size++] = sample(i, j, k);
    return size;
}

static int at(int i, int j, int k) {
    return i < 0 || j < 0 || i >= HEIGHT || j >= WIDTH ? 0
                                                       : sample((size_t)i, (size_t)j, (size_t)k);
}

static int stencil(int i, int j, int k) {
    return at(i - 1, j, k) + at(i + 1, j, k) + at(i, j - 1, k) + at(i, j + 1, k) - 4 * at(i, j, k);
}

static void laplacian_exact(void **state) {
    (void)state;
    uint8_t image[1024];
    struct rig grey, colour, scaled;
    size_t size = make_image(image, 1);
    rig_turn(&grey, laplacian, FORMAT_NPY, "", image, size);
    rig_turn(&scaled, laplacian, FORMAT_NPY, "scale=4&offset=0.5", image, size);
    const int32_t *b = rig_array(&grey, 'i', 4, HEIGHT, WIDTH, 0);
    const double *s = rig_array(&scaled, 'f', 8, HEIGHT, WIDTH, 0);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(b[i], stencil(i / WIDTH, i % WIDTH, 0));
        assert_true(s[i] == stencil(i / WIDTH, i % WIDTH, 0) / 4.0 + 0.5);
    }
    size = make_image(image, 3);
    rig_turn(&colour, laplacian, FORMAT_NPY, "", image, size);
    b = rig_array(&colour, 'i', 4, HEIGHT, WIDTH, 3);
    for (int i = 0; i < 3 * COUNT; i++)
        assert_int_equal(b[i], stencil(i / 3 / WIDTH, i / 3 % WIDTH, i % 3));
    rig_finish(&grey);
    rig_finish(&scaled);
    rig_finish(&colour);
}

/* A NumPy file of `count` elements as one row. */
static size_t make_npy(uint8_t *out, size_t capacity, const char *dtype, const void *values,
                       size_t count, size_t bytes) {
    const uint64_t shape[] = {1, count};
    size_t header = npy_write_header(out, capacity, dtype, shape, 2);
    assert_int_not_equal(header, 0);
    memcpy(out + header, values, bytes);
    return header + bytes;
}

static void laplacian_types(void **state) {
    (void)state;
    static const double reals[] = {0.1, -7e30, 3};
    static const int32_t wide[] = {268435455, -268435455, 1}, wider[] = {268435456, 0, 0};
    uint8_t file[512];
    struct rig rig;
    size_t size = make_npy(file, sizeof file, "<f8", reals, 3, sizeof reals);
    rig_turn(&rig, laplacian, FORMAT_NPY, "", file, size);
    const double *b = rig_array(&rig, 'f', 8, 1, 3, 0);
    assert_true(b[0] == -7e30 - 4 * 0.1 && b[1] == (0.1 + 3) + 28e30 && b[2] == -7e30 - 12);
    rig_finish(&rig);
    size = make_npy(file, sizeof file, "<i4", wide, 3, sizeof wide);
    rig_turn(&rig, laplacian, FORMAT_NPY, "", file, size);
    const int32_t *n = rig_array(&rig, 'i', 4, 1, 3, 0);
    assert_int_equal(n[0], -268435455 * 5);
    assert_int_equal(n[1], 268435456 + 268435455 * 4);
    rig_finish(&rig);
    size = make_npy(file, sizeof file, "<i4", wider, 3, sizeof wider);
    rig_init(&rig, laplacian, FORMAT_NPY, "");
    rig_input(&rig, file, size);
    assert_int_equal(rig_run(&rig), KILN_MALFORMED);
    assert_non_null(strstr(rig.detail, "268435455"));
    rig_finish(&rig);
}

/* image → laplacian → jacobi → image, grey and colour, through every pair of formats. */
static void round_trip(void **state) {
    (void)state;
    static const struct {
        enum format middle;
        const char *forward, *back;
    } rows[] = {
        {FORMAT_NPY, "", "iterations=4000"},
        {FORMAT_PNG, "", "iterations=4000&offset=32768"},
        {FORMAT_PGM, "", "iterations=4000&offset=32768&initial=zero"},
        {FORMAT_PGM, "scale=0.5&offset=30000",
         "iterations=4000&offset=30000&scale=0.5&precision=fp64"},
        {FORMAT_NPY, "scale=8&offset=3", "iterations=4000&scale=8&offset=3&precision=fp64"},
    };
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        uint8_t image[1024];
        size_t channels = i % 2 ? 3 : 1, size = make_image(image, channels);
        struct rig middle, end;
        rig_turn(&middle, laplacian, rows[i / 2].middle, rows[i / 2].forward, image, size);
        rig_turn(&end, jacobi, FORMAT_PGM, rows[i / 2].back, middle.result, middle.size);
        assert_int_equal(end.size, size); /* the same header */
        assert_memory_equal(end.result, image, size);
        rig_finish(&middle);
        rig_finish(&end);
    }
}

/* `sweeps` literal sweeps in float, as the kernel's header writes them. */
static void sweep(const float *b, float *x, int sweeps) {
    float next[COUNT];
    memcpy(x, b, sizeof next);
    for (int n = 0; n < sweeps; n++) {
        for (int i = 0; i < HEIGHT; i++) {
            for (int j = 0; j < WIDTH; j++) {
                const float *c = x + i * WIDTH + j;
                float up = i ? c[-WIDTH] : 0, down = i + 1 < HEIGHT ? c[WIDTH] : 0;
                float left = j ? c[-1] : 0, right = j + 1 < WIDTH ? c[1] : 0;
                next[i * WIDTH + j] = (((up + down) + (left + right)) - b[i * WIDTH + j]) * 0.25f;
            }
        }
        memcpy(x, next, sizeof next);
    }
}

static void jacobi_literal(void **state) {
    (void)state;
    static const int sweeps[] = {0, 1, 2, 3, 37};
    uint8_t image[1024];
    size_t size = make_image(image, 1);
    float b[COUNT], x[COUNT];
    for (int i = 0; i < COUNT; i++)
        b[i] = (float)(0.7 * (at(i / WIDTH, i % WIDTH, 0) - 100.25));
    for (size_t n = 0; n < sizeof sweeps / sizeof *sweeps; n++) {
        char query[64];
        struct rig rig;
        snprintf(query, sizeof query, "iterations=%d&scale=0.7&offset=100.25", sweeps[n]);
        rig_turn(&rig, jacobi, FORMAT_NPY, query, image, size);
        sweep(b, x, sweeps[n]);
        assert_memory_equal(rig_array(&rig, 'f', 4, HEIGHT, WIDTH, 0), x, sizeof x);
        rig_finish(&rig);
    }
}

static void jacobi_pictures(void **state) {
    (void)state;
    uint8_t image[1024];
    size_t size = make_image(image, 3);
    struct rig array, eight, sixteen;
    struct image_info info;
    int32_t planes[3 * COUNT];
    char why[128];
    const char *query = "iterations=3&scale=-300";
    rig_turn(&array, jacobi, FORMAT_NPY, query, image, size);
    rig_turn(&eight, jacobi, FORMAT_PNG, query, image, size);
    rig_turn(&sixteen, jacobi, FORMAT_PNG, "iterations=3&scale=-300&bits=16", image, size);
    const float *x = rig_array(&array, 'f', 4, HEIGHT, WIDTH, 3);
    const struct rig *pictures[] = {&eight, &sixteen};
    for (size_t p = 0; p < 2; p++) {
        double top = p ? 65535 : 255;
        assert_int_equal(image_probe(pictures[p]->result, pictures[p]->size, FORMAT_NONE, 1000,
                                     &info, why, sizeof why),
                         KILN_OK);
        assert_int_equal(info.depth, p ? 16 : 8);
        assert_int_equal(info.channels, 3);
        assert_int_equal(image_read(pictures[p]->result, pictures[p]->size, &info, SAMPLE_INT32, 0,
                                    1, planes, why, sizeof why),
                         KILN_OK);
        for (int i = 0; i < 3 * COUNT; i++)
            assert_true(planes[i % 3 * COUNT + i / 3] == nearbyint(fmin(fmax(x[i], 0), top)));
    }
    rig_finish(&array);
    rig_finish(&eight);
    rig_finish(&sixteen);
}

static double number(const struct rig *rig, const char *name) {
    struct json_value object, value;
    char why[128], key[64];
    size_t cursor = 0;
    if (json_check((const char *)rig->result, rig->size, &object, why, sizeof why) != KILN_OK)
        fail_msg("%s", why);
    while (json_next_member(&object, &cursor, key, sizeof key, &value))
        if (strcmp(key, name) == 0 && value.type == JSON_NUMBER)
            return json_number(&value);
    fail_msg("no number %s", name);
    return NAN;
}

static void jacobi_summary(void **state) {
    (void)state;
    uint8_t image[1024];
    size_t size = make_image(image, 1);
    struct rig middle, rig;
    rig_turn(&middle, laplacian, FORMAT_NPY, "", image, size);
    rig_turn(&rig, jacobi, FORMAT_JSON, "iterations=100000&precision=fp64&tolerance=1e-6",
             middle.result, middle.size);
    double sweeps = number(&rig, "sweeps"), sum = 0;
    assert_true(sweeps > 0 && sweeps < 100000 && fmod(sweeps, 256) == 0);
    assert_true(number(&rig, "residual") <= 1e-6);
    for (int i = 0; i < COUNT; i++)
        sum += at(i / WIDTH, i % WIDTH, 0);
    assert_true(fabs(number(&rig, "mean") - sum / COUNT) < 1e-3);
    assert_true(number(&rig, "width") == WIDTH && number(&rig, "channels") == 1);
    assert_true(number(&rig, "min") < number(&rig, "max"));
    rig_finish(&rig);
    rig_turn(&rig, jacobi, FORMAT_JSON, "iterations=5", middle.result, middle.size);
    assert_true(number(&rig, "sweeps") == 5 && number(&rig, "residual") > 0);
    rig_finish(&rig);
    rig_finish(&middle);
}

static void broken(void **state) {
    (void)state;
    const struct job_type *types[] = {jacobi, laplacian};
    for (size_t t = 0; t < 2; t++) {
        uint8_t image[1024];
        size_t size = make_image(image, 1);
        struct rig rig;
        rig_init(&rig, types[t], FORMAT_NPY, "");
        rig_input(&rig, image, size);
        rig.input.size = size - 1; /* truncated after the front looked */
        assert_int_equal(rig_run(&rig), KILN_MALFORMED);
        assert_true(rig.detail[0]);
        rig_finish(&rig);
        rig_init(&rig, types[t], FORMAT_NPY, "");
        rig_input(&rig, image, size);
        image[4] = '9'; /* another width than the front saw */
        assert_int_equal(rig_run(&rig), KILN_MALFORMED);
        assert_true(rig.detail[0]);
        rig_finish(&rig);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(laplacian_exact), cmocka_unit_test(laplacian_types),
        cmocka_unit_test(round_trip),      cmocka_unit_test(jacobi_literal),
        cmocka_unit_test(jacobi_pictures), cmocka_unit_test(jacobi_summary),
        cmocka_unit_test(broken),
    };
    return cmocka_run_group_tests(tests, setup, rig_close);
}
