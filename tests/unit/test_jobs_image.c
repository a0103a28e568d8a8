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
    return jacobi != NULL && laplacian != NULL ? rig_open(state) : -1;
}

/* A picture of edges and noise; channel k is shifted. */
static uint8_t sample(size_t i, size_t j, size_t k) {
    return (uint8_t)(i * 37 + j * j * 11 + k * 71 + (i > 4 ? 90 : 0));
}

/* Binary PGM or PPM of it; returns the size. */
static size_t make_image(uint8_t *out, size_t channels) {
    size_t size =
        (size_t)sprintf((char *)out, "P%c\n%d %d\n255\n", channels == 3 ? '6' : '5', WIDTH, HEIGHT);
    for (size_t i = 0; i < HEIGHT; i++) {
        for (size_t j = 0; j < WIDTH; j++) {
            for (size_t k = 0; k < channels; k++) {
                out[size++] = sample(i, j, k);
            }
        }
    }
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
    for (int i = 0; i < 3 * COUNT; i++) {
        assert_int_equal(b[i], stencil(i / 3 / WIDTH, i / 3 % WIDTH, i % 3));
    }
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
    for (int i = 0; i < COUNT; i++) {
        b[i] = (float)(0.7 * (at(i / WIDTH, i % WIDTH, 0) - 100.25));
    }
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
        assert_int_equal(image_read(NULL, pictures[p]->result, pictures[p]->size, &info,
                                    SAMPLE_INT32, 0, 1, planes, why, sizeof why),
                         KILN_OK);
        for (int i = 0; i < 3 * COUNT; i++) {
            assert_true(planes[i % 3 * COUNT + i / 3] == nearbyint(fmin(fmax(x[i], 0), top)));
        }
    }
    rig_finish(&array);
    rig_finish(&eight);
    rig_finish(&sixteen);
}

static double number(const struct rig *rig, const char *name) {
    struct json_value object, value;
    char why[128], key[64];
    size_t cursor = 0;
    if (json_check((const char *)rig->result, rig->size, &object, why, sizeof why) != KILN_OK) {
        fail_msg("%s", why);
    }
    while (json_next_member(&object, &cursor, key, sizeof key, &value)) {
        if (strcmp(key, name) == 0 && value.type == JSON_NUMBER) {
            return json_number(&value);
        }
    }
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
    for (int i = 0; i < COUNT; i++) {
        sum += at(i / WIDTH, i % WIDTH, 0);
    }
    assert_true(fabs(number(&rig, "mean") - sum / COUNT) < 1e-3);
    assert_true(number(&rig, "width") == WIDTH && number(&rig, "channels") == 1);
    assert_true(number(&rig, "min") < number(&rig, "max"));
    rig_finish(&rig);
    rig_turn(&rig, jacobi, FORMAT_JSON, "iterations=5", middle.result, middle.size);
    assert_true(number(&rig, "sweeps") == 5 && number(&rig, "residual") > 0);
    rig_finish(&rig);
    rig_finish(&middle);
}

/* The closed form against sweeps in double, from both starts. */
static void jacobi_exact(void **state) {
    (void)state;
    static const char *const queries[] = {"iterations=1", "iterations=2&initial=zero",
                                          "iterations=37", "iterations=1000&initial=zero"};
    uint8_t image[1024];
    size_t size = make_image(image, 3);
    for (size_t n = 0; n < sizeof queries / sizeof *queries; n++) {
        char query[128];
        struct rig swept, exact, narrow;
        snprintf(query, sizeof query, "%s&precision=fp64&offset=100", queries[n]);
        rig_turn(&swept, jacobi, FORMAT_NPY, query, image, size);
        snprintf(query, sizeof query, "%s&precision=fp64&offset=100&method=exact", queries[n]);
        rig_turn(&exact, jacobi, FORMAT_NPY, query, image, size);
        snprintf(query, sizeof query, "%s&offset=100&method=exact", queries[n]);
        rig_turn(&narrow, jacobi, FORMAT_NPY, query, image, size);
        const double *wanted = rig_array(&swept, 'f', 8, HEIGHT, WIDTH, 3);
        const double *got = rig_array(&exact, 'f', 8, HEIGHT, WIDTH, 3);
        const float *rounded = rig_array(&narrow, 'f', 4, HEIGHT, WIDTH, 3);
        double most = 0;
        for (int i = 0; i < 3 * COUNT; i++) {
            most = fmax(most, fabs(wanted[i]));
        }
        for (int i = 0; i < 3 * COUNT; i++) {
            assert_true(fabs(got[i] - wanted[i]) <= 1e-9 * most);
            assert_true(fabs((double)rounded[i] - wanted[i]) <= 1e-6 * most);
        }
        rig_finish(&swept);
        rig_finish(&exact);
        rig_finish(&narrow);
    }
}

/* direct gives the picture back, whatever the iterations and the start. */
static void jacobi_direct(void **state) {
    (void)state;
    static const char *const queries[] = {"method=direct&offset=32768",
                                          "method=direct&offset=32768&iterations=1",
                                          "method=direct&offset=32768&initial=zero"};
    uint8_t image[1024];
    size_t size = make_image(image, 3);
    struct rig middle, end;
    rig_turn(&middle, laplacian, FORMAT_PNG, "", image, size);
    for (size_t n = 0; n < sizeof queries / sizeof *queries; n++) {
        rig_turn(&end, jacobi, FORMAT_PGM, queries[n], middle.result, middle.size);
        assert_int_equal(end.size, size);
        assert_memory_equal(end.result, image, size);
        rig_finish(&end);
    }
    rig_finish(&middle);
}

/* What is left of a check: the text of the parameters, or of the complaint. */
static void checked(const char *query, const char *field, struct text *text, char *buffer,
                    size_t room) {
    uint8_t image[1024];
    size_t size = make_image(image, 1);
    struct rig rig;
    rig_init(&rig, jacobi, FORMAT_NPY, query);
    rig_input(&rig, image, size);
    rig_check(&rig);
    text_init(text, buffer, room);
    if (field != NULL) {
        assert_int_equal(rig.complaints.count, 1);
        assert_string_equal(rig.complaints.rows[0].field, field);
        return;
    }
    assert_int_equal(rig.complaints.count, 0);
    fields_print_query(jacobi->fields, rig.params, text);
}

static void jacobi_methods(void **state) {
    (void)state;
    static const struct {
        const char *query, *same; /* another query of the same parameters, or the field at fault */
        bool fault;
    } rows[] = {
        {"iterations=7", "iterations=7&method=sweeps", false},
        {"iterations=7&method=auto", "iterations=7&method=sweeps", false},
        {"iterations=150000&method=auto", "method=exact", false},
        {"method=auto&tolerance=0.5", "method=sweeps&tolerance=0.5", false},
        {"method=direct&iterations=5&initial=zero", "method=direct&iterations=900000000", false},
        {"method=exact&tolerance=0.5", "tolerance", true},
        {"method=direct&tolerance=0.5", "tolerance", true},
        {"iterations=1000001", "iterations", true},
        {"iterations=1000001&method=auto&tolerance=1", "iterations", true},
        {"iterations=1000001&method=auto", "iterations=1000001&method=exact", false},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char one[1024], two[1024];
        struct text first, second;
        checked(rows[i].query, rows[i].fault ? rows[i].same : NULL, &first, one, sizeof one);
        if (rows[i].fault) {
            continue;
        }
        checked(rows[i].same, NULL, &second, two, sizeof two);
        assert_int_equal(first.size, second.size);
        assert_string_equal(one, two);
    }
}

static bool noted(const struct rig *rig) {
    return memmem(rig->result, rig->size, "\"note\"", 6) != NULL;
}

static void jacobi_convergence(void **state) {
    (void)state;
    uint8_t image[1024];
    size_t size = make_image(image, 1);
    double slowest = (cos(M_PI / (HEIGHT + 1)) + cos(M_PI / (WIDTH + 1))) / 2;
    struct rig rig;
    static const char *const methods[] = {"sweeps", "exact"};
    for (size_t m = 0; m < 2; m++) {
        for (int n = 10; n <= 1000; n *= 10) {
            char query[64];
            snprintf(query, sizeof query, "iterations=%d&method=%s", n, methods[m]);
            rig_turn(&rig, jacobi, FORMAT_JSON, query, image, size);
            double left = number(&rig, "convergence");
            assert_true(fabs(left - pow(slowest, n)) <= 1e-12);
            assert_true(number(&rig, "sweeps") == n);
            assert_int_equal(noted(&rig), left > 0.01);
            rig_finish(&rig);
        }
    }
    rig_turn(&rig, jacobi, FORMAT_JSON, "method=direct&precision=fp64", image, size);
    assert_true(number(&rig, "convergence") == 0 && !noted(&rig));
    assert_true(number(&rig, "residual") < 1e-9);
    rig_finish(&rig);
    rig_turn(&rig, jacobi, FORMAT_JSON, "iterations=0", image, size);
    assert_true(number(&rig, "convergence") == 1 && noted(&rig));
    rig_finish(&rig);
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
        cmocka_unit_test(jacobi_exact),    cmocka_unit_test(jacobi_direct),
        cmocka_unit_test(jacobi_methods),  cmocka_unit_test(jacobi_convergence),
        cmocka_unit_test(broken),
    };
    return cmocka_run_group_tests(tests, setup, rig_close);
}
