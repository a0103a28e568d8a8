/* test_npy.c: NumPy headers, good and hostile, elements of every type, and images of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/codecs/image.h"
#include "compute/codecs/npy.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char why[160];

/* A file of the given version: header text, then `data`. Returns its size. */
static size_t file_make(uint8_t *out, int version, const char *header, const void *data,
                        size_t data_size) {
    size_t length = strlen(header), at = 8;
    memcpy(out, "\x93NUMPY", 6);
    out[6] = (uint8_t)version;
    out[7] = 0;
    for (int i = 0; i < (version == 1 ? 2 : 4); i++) {
        out[at++] = (uint8_t)(length >> 8 * i);
    }
    memcpy(out + at, header, length);
    memcpy(out + at + length, data, data_size);
    return at + length + data_size;
}

static enum kiln_status parse(int version, const char *header, size_t data_size, bool whole,
                              struct npy *npy) {
    static const uint8_t zeros[4096];
    uint8_t *bytes = malloc(16 + strlen(header) + data_size);
    assert_non_null(bytes);
    size_t size = file_make(bytes, version, header, zeros, data_size);
    enum kiln_status status = npy_parse(bytes, size, whole, npy, why, sizeof why);
    free(bytes);
    return status;
}

static void test_headers(void **state) {
    static const struct {
        int version;
        const char *header;
        char kind;
        uint32_t item, dimensions;
        uint64_t count;
        bool swapped, fortran;
    } cases[] = {
        {1, "{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }  \n", 'f', 8, 2, 12, 0, 0},
        {2, "{'descr': '<f4', 'fortran_order': False, 'shape': (3,), }", 'f', 4, 1, 3, 0, 0},
        {3, "{\"shape\":(2,3,4),\"fortran_order\":True,\"descr\":\">i2\"}", 'i', 2, 3, 24, 1, 1},
        {1, "{'descr': '|u1', 'fortran_order': False, 'shape': (), }", 'u', 1, 0, 1, 0, 0},
        {1, "{'descr': '|b1', 'fortran_order': False, 'shape': (0, 5), }", 'b', 1, 2, 0, 0, 0},
        {1, "{'descr': '>i1', 'fortran_order': False, 'shape': (5L, 1L), }", 'i', 1, 2, 5, 0, 0},
        {1, "{'descr': 'u8', 'fortran_order': False, 'shape': (1, 1, 1, 1)}", 'u', 8, 4, 1, 0, 0},
        {1, "{'descr': '=f2', 'fortran_order': False, 'shape': (2, 2,)}", 'f', 2, 2, 4, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct npy npy;
        size_t bytes = (size_t)cases[i].count * cases[i].item;
        if (parse(cases[i].version, cases[i].header, bytes, true, &npy) != KILN_OK) {
            fail_msg("%s: %s", cases[i].header, why);
        }
        assert_int_equal(npy.kind, cases[i].kind);
        assert_int_equal(npy.item, cases[i].item);
        assert_int_equal(npy.dimensions, cases[i].dimensions);
        assert_int_equal(npy.count, cases[i].count);
        assert_int_equal(npy.swapped, cases[i].swapped);
        assert_int_equal(npy.fortran, cases[i].fortran);
        if (bytes > 0) {
            assert_int_equal(parse(cases[i].version, cases[i].header, bytes - 1, true, &npy),
                             KILN_MALFORMED);
        }
        assert_int_equal(parse(cases[i].version, cases[i].header, 0, false, &npy), KILN_OK);
    }
}

static void test_broken(void **state) {
#define REST "'fortran_order': False, 'shape': (1,)}"
    static const char *const cases[][2] = {
        {"", "dictionary"},
        {"{", "dictionary"},
        {"{}", "lacks"},
        {"[]", "dictionary"},
        {"{'descr': '|O', " REST, "type"},
        {"{'descr': '<c8', " REST, "type"},
        {"{'descr': '<f1', " REST, "type"},
        {"{'descr': '<f16', " REST, "type"},
        {"{'descr': '<i3', " REST, "type"},
        {"{'descr': '|i4', " REST, "type"},
        {"{'descr': '<U5', " REST, "type"},
        {"{'descr': '<M8[s]', " REST, "type"},
        {"{'descr': '', " REST, "type"},
        {"{'descr': '<', " REST, "type"},
        {"{'descr': [('a', '<f8')], " REST, "structured"},
        {"{'descr': '<f\\x38', " REST, "string"},
        {"{'descr': '<f8, " REST, "type"},
        {"{'descr': '<f8', 'descr': '<f8', " REST, "repeated"},
        {"{'descr': '<f8', 'x': 1, " REST, "unknown"},
        {"{'descr': '<f8', 'fortran_order': 0, 'shape': (1,)}", "boolean"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (-1,)}", "dimension"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3)}", "tuple"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': [3]}", "tuple"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (3 4)}", "tuple"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (,)}", "dimension"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1.5,)}", "tuple"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,1,1,1,1)}", "too many"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (18446744073709551616,)}", "too large"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4294967296,4294967296)}", "too large"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904,)}", "too large"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1000000,)}", "ends before"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)} x", "after"},
        {"{'descr': '<f8', 'fortran_order': False, 'shape': (1,)", "dictionary"},
    };
    struct npy npy;
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(parse(1, cases[i][0], 64, true, &npy), KILN_MALFORMED);
        if (strstr(why, cases[i][1]) == NULL) {
            fail_msg("%s: '%s' is not in '%s'", cases[i][0], cases[i][1], why);
        }
    }
    assert_int_equal(parse(4, "{'descr': '<f8', " REST, 8, true, &npy), KILN_MALFORMED);
    assert_int_equal(npy_parse("\x93NUMPY\x01\x00\xff\xff", 10, false, &npy, why, sizeof why),
                     KILN_MALFORMED);
    assert_int_equal(npy_parse("\x93NUMPY\x02\x00\xff\xff\xff\xff", 12, false, &npy, why, 160),
                     KILN_MALFORMED);
    assert_non_null(strstr(why, "too long"));
    assert_int_equal(npy_parse("\x93NUMPX\x01\x00\x00\x00", 10, true, &npy, why, sizeof why),
                     KILN_MALFORMED);
    assert_int_equal(npy_parse("", 0, true, &npy, why, sizeof why), KILN_MALFORMED);
#undef REST
}

/* Three elements of each type, given as bytes. */
static void test_elements(void **state) {
    static const struct {
        const char *type;
        uint8_t bytes[24];
        double values[3];
    } cases[] = {
        {"|b1", {0, 1, 7}, {0, 1, 1}},
        {"|u1", {0, 128, 255}, {0, 128, 255}},
        {"|i1", {0, 127, 255}, {0, 127, -1}},
        {"<u2", {1, 2, 255, 255, 0, 0}, {513, 65535, 0}},
        {">u2", {1, 2, 255, 255, 0, 0}, {258, 65535, 0}},
        {"<i2", {0, 128, 255, 255, 1, 0}, {-32768, -1, 1}},
        {">i2", {128, 0, 255, 255, 0, 1}, {-32768, -1, 1}},
        {"<u4", {1, 0, 0, 0, 255, 255, 255, 255, 0, 0, 0, 1}, {1, 4294967295.0, 16777216}},
        {">i4", {128, 0, 0, 0, 255, 255, 255, 255, 0, 0, 1, 0}, {-2147483648.0, -1, 256}},
        {">u8",
         {0, 0, 0, 0, 0, 0, 0, 9, 128, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0, 0, 0, 0, 1},
         {9, 9223372036854775808.0, 9007199254740992.0}},
        {"<i8",
         {255, 255, 255, 255, 255, 255, 255, 255, 0, 0, 0, 0, 0, 0, 0, 128, 2},
         {-1, -9223372036854775808.0, 2}},
        {"<f2", {0x00, 0x3c, 0x01, 0x80, 0xff, 0x7b}, {1, -0x1p-24, 65504}},
        {">f2", {0x7c, 0x00, 0xfc, 0x00, 0x35, 0x55}, {INFINITY, -INFINITY, 0x1.554p-2}},
        {"<f4", {0, 0, 128, 63, 0, 0, 0, 192, 0, 0, 128, 127}, {1, -2, INFINITY}},
        {">f4", {63, 128, 0, 0, 192, 0, 0, 0, 0, 0, 0, 1}, {1, -2, 0x1p-149}},
        {">f8",
         {0x3f, 0xf0, 0, 0, 0, 0, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1},
         {1, -2, 0x1p-1074}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t file[256];
        char header[128];
        struct npy npy;
        snprintf(header, sizeof header, "{'descr':'%s','fortran_order':False,'shape':(3,)}",
                 cases[i].type);
        size_t size = file_make(file, 1, header, cases[i].bytes, sizeof cases[i].bytes);
        assert_int_equal(npy_parse(file, size, true, &npy, why, sizeof why), KILN_OK);
        for (uint64_t k = 0; k < 3; k++) {
            if (npy_element(&npy, file, k) != cases[i].values[k]) {
                fail_msg("%s[%d] is %a", cases[i].type, (int)k, npy_element(&npy, file, k));
            }
        }
    }
}

/* Fortran order: the bytes 0, 1, 2 … run down the first dimension. */
static void test_fortran(void **state) {
    uint8_t file[256], data[24];
    struct npy npy;
    (void)state;
    for (int i = 0; i < 24; i++) {
        data[i] = (uint8_t)i;
    }
    size_t size = file_make(file, 1, "{'descr':'|u1','fortran_order':True,'shape':(2,3,4)}", data,
                            sizeof data);
    assert_int_equal(npy_parse(file, size, true, &npy, why, sizeof why), KILN_OK);
    for (uint64_t i = 0; i < 2; i++) {
        for (uint64_t j = 0; j < 3; j++) {
            for (uint64_t k = 0; k < 4; k++) {
                assert_true(npy_element(&npy, file, (i * 3 + j) * 4 + k) ==
                            (double)(i + 2 * (j + 3 * k)));
            }
        }
    }

    struct image_info info;
    int32_t planes[24];
    assert_int_equal(image_probe(file, size, FORMAT_NONE, 6, &info, why, sizeof why), KILN_OK);
    assert_int_equal(info.width, 3);
    assert_int_equal(info.height, 2);
    assert_int_equal(info.channels, 4);
    assert_int_equal(info.depth, 8);
    assert_int_equal(
        image_read(NULL, file, size, &info, SAMPLE_INT32, 1, 2, planes, why, sizeof why), KILN_OK);
    for (int i = 0; i < 2; i++) {
        for (int j = 0; j < 3; j++) {
            for (int k = 0; k < 4; k++) {
                assert_int_equal(planes[(k * 2 + i) * 3 + j], 2 * (i + 2 * (j + 3 * k) - 1));
            }
        }
    }
}

static enum kiln_status image_of(const char *header, const void *data, size_t data_size,
                                 enum sample sample, double scale, void *planes) {
    uint8_t file[512];
    struct image_info info;
    size_t size = file_make(file, 1, header, data, data_size);
    enum kiln_status status = image_probe(file, size, FORMAT_NPY, 100, &info, why, sizeof why);
    if (status == KILN_OK) {
        status = image_read(NULL, file, size, &info, sample, 0, scale, planes, why, sizeof why);
    }
    return status;
}

static void test_images(void **state) {
    union {
        double doubles[8];
        float floats[8];
        int32_t integers[8];
    } planes;
    const double reals[2] = {1.5, NAN}, halves[4] = {0.5, 1.5, 2.5, -0.5};
    const int64_t wide[2] = {1, INT64_C(1) << 31}, edge[2] = {INT32_MIN, INT32_MAX};
    (void)state;
#define SHAPE(type, shape) "{'descr':'" type "','fortran_order':False,'shape':" shape "}"
    assert_int_equal(image_of(SHAPE("<f8", "(1,2)"), reals, 16, SAMPLE_DOUBLE, 1, &planes),
                     KILN_MALFORMED);
    assert_non_null(strstr(why, "not finite"));
    assert_int_equal(image_of(SHAPE("<f8", "(1,1)"), reals, 8, SAMPLE_FLOAT, 1, &planes), KILN_OK);
    assert_true(planes.floats[0] == 1.5f);
    assert_int_equal(image_of(SHAPE("<f8", "(1,1)"), reals, 8, SAMPLE_FLOAT, 1e300, &planes),
                     KILN_MALFORMED); /* past a float's range */
    assert_int_equal(image_of(SHAPE("<i8", "(2,1)"), wide, 16, SAMPLE_INT32, 1, &planes),
                     KILN_MALFORMED);
    assert_int_equal(image_of(SHAPE("<i8", "(2,1)"), wide, 16, SAMPLE_DOUBLE, 1, &planes), KILN_OK);
    assert_true(planes.doubles[1] == 2147483648.0);
    assert_int_equal(image_of(SHAPE("<i8", "(2,1)"), edge, 16, SAMPLE_INT32, 1, &planes), KILN_OK);
    assert_int_equal(planes.integers[0], INT32_MIN);
    assert_int_equal(planes.integers[1], INT32_MAX);
    assert_int_equal(image_of(SHAPE("<f8", "(1,4)"), halves, 32, SAMPLE_INT32, 1, &planes),
                     KILN_OK);
    assert_int_equal(planes.integers[0], 0); /* halves go to the even neighbour */
    assert_int_equal(planes.integers[1], 2);
    assert_int_equal(planes.integers[2], 2);
    assert_int_equal(planes.integers[3], 0);

    static const char *const shapes[] = {SHAPE("|u1", "(4,)"),    SHAPE("|u1", "()"),
                                         SHAPE("|u1", "(1,1,5)"), SHAPE("|u1", "(0,4)"),
                                         SHAPE("|u1", "(1,2,0)"), SHAPE("|u1", "(1,1,2,2)")};
    for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++) {
        assert_int_equal(image_of(shapes[i], halves, 8, SAMPLE_INT32, 1, &planes), KILN_MALFORMED);
    }
#undef SHAPE
}

static void test_write(void **state) {
    uint8_t out[NPY_WRITE_MAX];
    const uint64_t shape[4] = {1250, 1500, 3, UINT64_MAX};
    struct npy npy;
    (void)state;
    for (uint32_t dimensions = 0; dimensions <= 3; dimensions++) {
        size_t size = npy_write_header(out, sizeof out, "<f4", shape, dimensions);
        assert_true(size > 0 && size % 64 == 0 && out[size - 1] == '\n');
        assert_int_equal(npy_parse(out, size, false, &npy, why, sizeof why), KILN_OK);
        assert_int_equal(npy.data, size);
        assert_int_equal(npy.dimensions, dimensions);
        assert_memory_equal(npy.shape, shape, dimensions * sizeof shape[0]);
        assert_int_equal(npy_write_header(out, size - 1, "<f4", shape, dimensions), 0);
    }
    size_t size = npy_write_header(out, sizeof out, "|u1", shape, 2);
    assert_memory_equal(out + 10,
                        "{'descr': '|u1', 'fortran_order': False, 'shape': (1250, 1500), }", 65);
    assert_int_equal(size, 128);
    assert_true(npy_write_header(out, sizeof out, "<f8",
                                 (const uint64_t[]){~0ull, ~0ull, ~0ull, ~0ull}, 4) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_headers),  cmocka_unit_test(test_broken),
        cmocka_unit_test(test_elements), cmocka_unit_test(test_fortran),
        cmocka_unit_test(test_images),   cmocka_unit_test(test_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
