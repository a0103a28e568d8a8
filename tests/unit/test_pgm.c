/* test_pgm.c: the Netpbm formats, read and written. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/codecs/image.h"

#include <stdlib.h>
#include <string.h>

static char why[160];
static struct image_info info;
static int32_t planes[64];

/* Reads from memory that ends with the file, so that a step past it is seen by sanitizers. */
static enum kiln_status read_bytes(const void *bytes, size_t size) {
    uint8_t *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    memset(planes, 0x7f, sizeof planes);
    enum kiln_status status = image_probe(copy, size, FORMAT_NONE, 16, &info, why, sizeof why);
    if (status == KILN_OK) {
        status = image_read(NULL, copy, size, &info, SAMPLE_INT32, 0, 1, planes, why, sizeof why);
    }
    free(copy);
    return status;
}

#define READ(text) read_bytes(text, sizeof text - 1)

static void planes_check(uint32_t width, uint32_t height, uint32_t channels, uint32_t depth,
                         const int32_t *expected) {
    assert_int_equal(info.format, FORMAT_PGM);
    assert_int_equal(info.width, width);
    assert_int_equal(info.height, height);
    assert_int_equal(info.channels, channels);
    assert_int_equal(info.depth, depth);
    assert_memory_equal(planes, expected, width * height * channels * sizeof *expected);
}

static void test_good(void **state) {
    (void)state;
    assert_int_equal(READ("P2\n# a comment\n3 2 # more\n255\n0 1 2\n3 # mid\n4 255"), KILN_OK);
    planes_check(3, 2, 1, 8, (const int32_t[]){0, 1, 2, 3, 4, 255});
    assert_int_equal(READ("P2#c\n2 1 1000 007 1000\n"), KILN_OK);
    planes_check(2, 1, 1, 16, (const int32_t[]){7, 1000});
    assert_int_equal(READ("P3 1 2 15 1 2 3 4 5 15"), KILN_OK);
    planes_check(1, 2, 3, 8, (const int32_t[]){1, 4, 2, 5, 3, 15});
    assert_int_equal(READ("P5\n2 2\n255\n\x01\x02\xff\x00"), KILN_OK);
    planes_check(2, 2, 1, 8, (const int32_t[]){1, 2, 255, 0});
    assert_int_equal(READ("P5 2 1 65535\n\x01\x02\xff\xff"), KILN_OK);
    planes_check(2, 1, 1, 16, (const int32_t[]){258, 65535});
    assert_int_equal(READ("P5 1 1 256\n\x01\x00 what follows is ignored"), KILN_OK);
    planes_check(1, 1, 1, 16, (const int32_t[]){256});
    assert_int_equal(READ("P6\n# c\n2 1\n255\nabcdef"), KILN_OK);
    planes_check(2, 1, 3, 8, (const int32_t[]){'a', 'd', 'b', 'e', 'c', 'f'});
    assert_int_equal(READ("P7\n# c\nHEIGHT 1\nWIDTH 2\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\n"
                          "ENDHDR\nabcdefgh"),
                     KILN_OK);
    planes_check(2, 1, 4, 8, (const int32_t[]){'a', 'e', 'b', 'f', 'c', 'g', 'd', 'h'});
    assert_int_equal(READ("P7\nWIDTH 1\nHEIGHT 1\nDEPTH 2\nMAXVAL 300\nENDHDR\n\x01\x02\x00\x09"),
                     KILN_OK);
    planes_check(1, 1, 2, 16, (const int32_t[]){258, 9});
}

static void test_broken(void **state) {
    static const struct {
        const char *text, *problem;
    } cases[] = {
        {"P5\n", "three numbers"},
        {"P5x1 1 255\nx", "three numbers"},
        {"P5\n1 1\n", "three numbers"},
        {"P5\n1 -1 255\nxx", "three numbers"},
        {"P5\n4294967296 1 255\nxx", "three numbers"},
        {"P5\n1 1 255", "after its header"},
        {"P5\n0 1 255\nx", "at least 1"},
        {"P5\n1 1 0\nx", "maxval"},
        {"P5\n1 1 65536\nxx", "maxval"},
        {"P5\n2 2 255\nxyz", "ends before"},
        {"P5\n2 1 256\nxyz", "ends before"},
        {"P6\n1 1 255\nxy", "ends before"},
        {"P5\n4294967295 4294967295 255\nxy", "ends before"},
        {"P2\n4294967295 4294967295 255\n1 2", "ends before"},
        {"P2\n2 2 255\n1 2 3", "ends before"},
        {"P2\n2 1 255\n1 256", "row 0"},
        {"P2\n2 1 255\n1 x23", "row 0"},
        {"P2\n1 2 255\n1   #3", "row 1"},
        {"P5\n2 1 9\n\x09\x0a", "row 0 has a sample above"},
        {"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 5\nMAXVAL 255\nENDHDR\nabcde", "1 to 4 channels"},
        {"P7\nWIDTH 1\nHEIGHT 1\nMAXVAL 255\nENDHDR\nabcde", "1 to 4 channels"},
        {"P7\nWIDTH 1\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR\na", "WIDTH"},
        {"P7\nCOLOR 1\nENDHDR\na", "unknown line"},
        {"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\n", "no ENDHDR"},
        {"P7\nWIDTH 1\nHEIGHT 1\nDEPTH 1\nMAXVAL 255\nENDHDR a", "alone"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(read_bytes(cases[i].text, strlen(cases[i].text)), KILN_MALFORMED);
        if (strstr(why, cases[i].problem) == NULL) {
            fail_msg("%s: '%s' is not in '%s'", cases[i].text, cases[i].problem, why);
        }
    }
    assert_int_equal(READ("P5\n5 4 255\n01234567890123456789"), KILN_INVALID);
    assert_int_equal(READ("P4\n1 1\nx"), KILN_MEDIA_TYPE);
    assert_int_equal(READ("P"), KILN_MEDIA_TYPE);
}

static void test_header_changed(void **state) {
    char file[] = "P5\n2 2\n255\nabcd";
    (void)state;
    assert_int_equal(image_probe(file, sizeof file - 1, FORMAT_PGM, 16, &info, why, 160), KILN_OK);
    file[3] = '1';
    assert_int_equal(
        image_read(NULL, file, sizeof file - 1, &info, SAMPLE_INT32, 0, 1, planes, why, sizeof why),
        KILN_MALFORMED);
    assert_non_null(strstr(why, "changed"));
}

static void test_write(void **state) {
    static const uint8_t bytes[16] = {0, 1, 2, 255, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    static const uint16_t words[16] = {0, 1, 256, 65535, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    (void)state;
    for (uint32_t channels = 1; channels <= 4; channels++) {
        for (uint32_t depth = 8; depth <= 16; depth += 8) {
            uint8_t out[512];
            uint64_t size = 0, bound = pgm_bound(2, 2, channels, depth);
            struct picture picture = {
                2, 2, channels, depth, depth == 8 ? (const void *)bytes : words, NULL, NULL};
            assert_true(bound <= sizeof out);
            assert_int_equal(pgm_write(&picture, out, bound, &size), KILN_OK);
            assert_true(size <= bound);
            assert_int_equal(pgm_write(&picture, out, size - 1, &size), KILN_INTERNAL);
            assert_int_equal(read_bytes(out, size), KILN_OK);
            assert_int_equal(info.depth, depth);
            assert_int_equal(info.channels, channels);
            for (uint32_t c = 0; c < channels; c++) {
                for (uint32_t i = 0; i < 4; i++) {
                    assert_int_equal(planes[c * 4 + i], depth == 8 ? bytes[i * channels + c]
                                                                   : words[i * channels + c]);
                }
            }
        }
    }
    uint8_t out[32];
    uint64_t size;
    struct picture grey = {1, 2, 1, 8, "ab", NULL, NULL};
    assert_int_equal(pgm_write(&grey, out, sizeof out, &size), KILN_OK);
    assert_int_equal(size, 13);
    assert_memory_equal(out, "P5\n1 2\n255\nab", 13);
    assert_int_equal(pgm_bound(UINT32_MAX, UINT32_MAX, 4, 16), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_header_changed),
        cmocka_unit_test(test_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
