/* test_text.c: the text builder, decimals in both directions, names of formats. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/codecs/format.h"
#include "compute/core/decimal.h"
#include "compute/core/text.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t random_state = 88172645463325252u;

static uint64_t random_bits(void) {
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state * UINT64_C(0x2545F4914F6CDD1D);
}

/* Significant digits of a decimal, without zeros at either end. */
static int digits_count(const char *text) {
    int count = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (count == 0 && *text == '0')) {
            continue;
        }
        count++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return count - zeros;
}

static void double_check(double value) {
    char ours[DECIMAL_MAX], theirs[64];
    int precision = 0;
    if (!isfinite(value)) {
        return;
    }
    size_t length = decimal_print(value, ours);
    assert_int_equal(length, strlen(ours));
    double back = strtod(ours, NULL), read = 0;
    assert_memory_equal(&back, &value, sizeof value);
    assert_int_equal(decimal_read(ours, length, &read), length);
    assert_memory_equal(&read, &value, sizeof value);
    do {
        snprintf(theirs, sizeof theirs, "%.*e", precision++, value);
    } while (strtod(theirs, NULL) != value);
    assert_true(digits_count(ours) <= digits_count(theirs)); /* less, beside a power of two */
}

static void float_check(float value) {
    char ours[DECIMAL_MAX], theirs[64];
    int precision = 0;
    if (!isfinite(value)) {
        return;
    }
    decimal_print_float(value, ours);
    float back = strtof(ours, NULL);
    assert_memory_equal(&back, &value, sizeof value);
    do {
        snprintf(theirs, sizeof theirs, "%.*e", precision++, (double)value);
    } while (strtof(theirs, NULL) != value);
    assert_true(digits_count(ours) <= digits_count(theirs)); /* less, beside a power of two */
}

static void test_double_literals(void **state) {
    static const struct {
        double value;
        const char *text;
    } cases[] = {
        {0.0, "0"},
        {-0.0, "-0"},
        {1.0, "1"},
        {-17.0, "-17"},
        {0.1, "0.1"},
        {1.0 / 3, "0.3333333333333333"},
        {100.0, "100"},
        {123456.789, "123456.789"},
        {1e20, "100000000000000000000"},
        {1e21, "1e21"},
        {-1.5e300, "-1.5e300"},
        {1e-6, "0.000001"},
        {1.25e-6, "0.00000125"},
        {1e-7, "1e-7"},
        {-1.5e-7, "-1.5e-7"},
        {5e-324, "5e-324"},
        {DBL_MAX, "1.7976931348623157e308"},
        {DBL_MIN, "2.2250738585072014e-308"},
        {9007199254740993.0, "9007199254740992"},
        {9223372036854775808.0, "9223372036854776000"},
        {1e23, "1e23"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char data[64];
        struct text text;
        text_init(&text, data, sizeof data);
        text_double(&text, cases[i].value);
        assert_string_equal(data, cases[i].text);
    }
}

static void test_double_shortest(void **state) {
    (void)state;
    for (int e = -1074; e < 1024; e++) {
        double value = ldexp(1.0, e);
        double_check(value);
        double_check(nextafter(value, 0.0));
        double_check(nextafter(value, INFINITY));
        double_check(-3 * value);
    }
    for (int e = -308; e <= 308; e++) {
        double_check(pow(10.0, e));
    }
    for (int i = 0; i < 20000; i++) {
        uint64_t bits = random_bits(), subnormal = bits & UINT64_C(0x800fffffffffffff);
        double value;
        memcpy(&value, &bits, sizeof value);
        double_check(value);
        memcpy(&value, &subnormal, sizeof value);
        double_check(value);
        double_check((double)(random_bits() % 100000000) / 10000.0);
        double_check((double)(random_bits() >> (random_bits() % 64)));
    }
}

static void test_float_shortest(void **state) {
    char data[64];
    struct text text;
    (void)state;
    text_init(&text, data, sizeof data);
    text_float(&text, 0.1f);
    text_string(&text, " ");
    text_float(&text, FLT_MAX);
    text_string(&text, " ");
    text_float(&text, 16777216.0f);
    text_string(&text, " ");
    text_float(&text, NAN);
    assert_string_equal(data, "0.1 3.4028235e38 16777216 null");
    for (int e = -149; e < 128; e++) {
        float value = ldexpf(1.0f, e);
        float_check(value);
        float_check(nextafterf(value, 0.0f));
        float_check(nextafterf(value, INFINITY));
    }
    for (int i = 0; i < 50000; i++) {
        uint32_t bits = (uint32_t)(random_bits() >> 32);
        float value;
        memcpy(&value, &bits, sizeof value);
        float_check(value);
    }
}

static void read_check(const char *text) {
    double ours = -1, theirs = strtod(text, NULL);
    assert_int_equal(decimal_read(text, strlen(text), &ours), strlen(text));
    if (memcmp(&ours, &theirs, sizeof ours) != 0) {
        fail_msg("%.60s is read as %a, not %a", text, ours, theirs);
    }
}

static void test_read(void **state) {
    static const char *const cases[] = {
        "0",
        "-0",
        "0.0e5",
        "1",
        ".5",
        "5.",
        "-1.5e3",
        "1e22",
        "1e23",
        "9007199254740993",
        "9007199254740992.99999",
        "1.7976931348623157e308",
        "1.7976931348623158e308",
        "1.7976931348623159e308",
        "1e400",
        "-1e400",
        "1e99999999999999999999",
        "1e-400",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "4.9e-324",
        "2.2250738585072011e-308",
        "2.2250738585072014e-308",
        "0.000000000000000000000000000000000000001234567890123456789012",
        "123456789012345678901234567890",
        "18446744073709551616e-20",
        "6.02214076E+23"};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        read_check(cases[i]);
    }
    for (int i = 0; i < 50000; i++) {
        char text[80];
        unsigned long long a = random_bits() >> (random_bits() % 64), b = random_bits();
        snprintf(text, sizeof text, "%llu.%llue%d", a, b, (int)(random_bits() % 700) - 370);
        read_check(text);
        snprintf(text, sizeof text, "-0.%llu", b);
        read_check(text);
    }
}

/* Midpoints of neighbouring doubles, exactly and a hair beside them. */
static void test_read_midpoints(void **state) {
    static char text[1600];
    (void)state;
    for (int i = 0; i < 2000; i++) {
        uint64_t bits = random_bits() & ~(UINT64_C(1) << 63);
        double value;
        memcpy(&value, &bits, sizeof value);
        if (!isfinite(value) || value > 1e307) {
            continue;
        }
        long double middle = ((long double)value + (long double)nextafter(value, INFINITY)) / 2;
        int length = snprintf(text, sizeof text - 8, "%.1100Lf", middle);
        read_check(text);
        strcpy(text + length, "0001");
        read_check(text);
    }
}

static void test_read_syntax(void **state) {
    static const struct {
        const char *text;
        size_t length;
        double value;
    } cases[] = {{"", 0, 0},   {"-", 0, 0},    {"e5", 0, 0},      {".", 0, 0},
                 {"1e", 1, 1}, {"1e+", 1, 1},  {"1.5x", 3, 1.5},  {"1,5", 1, 1},
                 {"+2", 2, 2}, {"0x10", 1, 0}, {"1.2.3", 3, 1.2}, {"nan", 0, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        double value = 0;
        assert_int_equal(decimal_read(cases[i].text, strlen(cases[i].text), &value),
                         cases[i].length);
        assert_true(value == cases[i].value);
    }
    double value = 0;
    assert_int_equal(decimal_read("12345", 3, &value), 3); /* the size is the end */
    assert_true(value == 123);
}

static void test_integer(void **state) {
    char data[64];
    struct text text;
    (void)state;
    text_init(&text, data, sizeof data);
    text_integer(&text, INT64_MIN);
    text_string(&text, " ");
    text_integer(&text, INT64_MAX);
    text_string(&text, " ");
    text_integer(&text, 0);
    assert_string_equal(data, "-9223372036854775808 9223372036854775807 0");
}

static void test_full(void **state) {
    char data[8];
    struct text text;
    (void)state;
    text_init(&text, data, sizeof data);
    text_string(&text, "12345");
    assert_false(text.full);
    text_format(&text, "%s", "6789");
    assert_true(text.full);
    assert_int_equal(text.size, 7);
    assert_string_equal(data, "1234567");
    text_string(&text, "");
    text_integer(&text, 1);
    assert_string_equal(data, "1234567");

    text_init(&text, data, 6);
    text_string(&text, "abcde"); /* fits exactly */
    assert_false(text.full);
    text_bytes(&text, "f", 1);
    assert_true(text.full);
    assert_string_equal(data, "abcde");
    text_init(&text, data, 1);
    text_double(&text, 0.5);
    assert_true(text.full);
    assert_int_equal(text.size, 0);
}

static void test_json_string(void **state) {
    static const struct {
        const char *in;
        size_t size;
        const char *out;
    } cases[] = {
        {"plain", 5, "\"plain\""},
        {"a\"b\\c/", 6, "\"a\\\"b\\\\c/\""},
        {"\b\f\n\r\t\x01\x1f\x7f", 8, "\"\\b\\f\\n\\r\\t\\u0001\\u001f\\u007f\""},
        {"a\0b", 3, "\"a\\u0000b\""},
        {"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80", 9, "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\""},
        {"\xff", 1, "\"\xef\xbf\xbd\""},
        {"\xc0\x80", 2, "\"\xef\xbf\xbd\xef\xbf\xbd\""},
        {"x\xe2\x82", 3, "\"x\xef\xbf\xbd\xef\xbf\xbd\""},
        {"\xed\xa0\x80y", 4, "\"\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdy\""},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char data[128];
        struct text text;
        text_init(&text, data, sizeof data);
        text_json_string(&text, cases[i].in, cases[i].size);
        assert_string_equal(data, cases[i].out);
    }
}

static void test_formats(void **state) {
    (void)state;
    assert_int_equal(format_by_name("png"), FORMAT_PNG);
    assert_int_equal(format_by_name("raw"), FORMAT_RAW);
    assert_int_equal(format_by_name("PNG"), FORMAT_NONE);
    assert_int_equal(format_by_name(""), FORMAT_NONE);
    assert_int_equal(format_by_media("image/png"), FORMAT_PNG);
    assert_int_equal(format_by_media("Image/SVG+xml; charset=utf-8"), FORMAT_SVG);
    assert_int_equal(format_by_media("Application/JSON; charset=utf-8"), FORMAT_JSON);
    assert_int_equal(format_by_media("text/csv;header=present"), FORMAT_CSV);
    assert_int_equal(format_by_media("image/x-portable-pixmap"), FORMAT_PGM);
    assert_int_equal(format_by_media("image/x-portable-anymap"), FORMAT_PGM);
    assert_int_equal(format_by_media("application/npy"), FORMAT_NPY);
    assert_int_equal(format_by_media("image/pngx"), FORMAT_NONE);
    assert_int_equal(format_by_media("image/pn"), FORMAT_NONE);
    assert_int_equal(format_by_media(""), FORMAT_NONE);
    assert_string_equal(format_row(FORMAT_NPY)->media, "application/x-npy");
    assert_string_equal(format_row(FORMAT_NONE)->name, "");
    assert_string_equal(format_row((enum format)99)->name, "");
    assert_string_equal(format_row((enum format) - 1)->media, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_double_literals), cmocka_unit_test(test_double_shortest),
        cmocka_unit_test(test_float_shortest),  cmocka_unit_test(test_read),
        cmocka_unit_test(test_read_midpoints),  cmocka_unit_test(test_read_syntax),
        cmocka_unit_test(test_integer),         cmocka_unit_test(test_full),
        cmocka_unit_test(test_json_string),     cmocka_unit_test(test_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
