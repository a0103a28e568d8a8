/* test_json.c: the strict JSON reader: what it must take, what it must refuse, and walking. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/codecs/json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct json_value value; /* of the text checked last */
static char why[160];
static char *copy; /* ends with the text, so that sanitizers see a step past it */

static enum kiln_status check_bytes(const char *text, size_t size) {
    free(copy);
    copy = malloc(size + 1);
    assert_non_null(copy);
    copy = realloc(copy, size ? size : 1);
    memcpy(copy, text, size);
    why[0] = '\0';
    return json_check(copy, size, &value, why, sizeof why);
}

static enum kiln_status check(const char *text) {
    return check_bytes(text, strlen(text));
}

static void test_good(void **state) {
    static const struct {
        const char *text;
        enum json_type type;
    } cases[] = {
        {"null", JSON_NULL},
        {" true ", JSON_TRUE},
        {"\t\r\nfalse", JSON_FALSE},
        {"0", JSON_NUMBER},
        {"-0", JSON_NUMBER},
        {"-1.5E+3", JSON_NUMBER},
        {"1e-999", JSON_NUMBER},
        {"0e1", JSON_NUMBER},
        {"\"\"", JSON_STRING},
        {"\"\\\"\\\\\\/\\b\\f\\n\\r\\t\\u00e9\\uD83D\\uDE00\"", JSON_STRING},
        {"\"\x7f\xc2\x80\xef\xbf\xbf\xf4\x8f\xbf\xbf\"", JSON_STRING},
        {"[]", JSON_ARRAY},
        {"[1, [2, {\"a\": []}], \"]\"]", JSON_ARRAY},
        {"{}", JSON_OBJECT},
        {"{\"a\":1,\"b\":{\"a\":1,\"a\":2},\"\":null}", JSON_OBJECT},
        {"[1]\n", JSON_ARRAY},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (check(cases[i].text) != KILN_OK) {
            fail_msg("%s: %s", cases[i].text, why);
        }
        assert_int_equal(value.type, cases[i].type);
    }
    assert_int_equal(check(" [ 1 ] \n"), KILN_OK);
    assert_int_equal(value.size, 5);
}

static void test_bad(void **state) {
    static const char *const cases[][2] = {
        {"", "line 1, column 1: the text ends"},
        {"   ", "ends"},
        {"nul", "value"},
        {"NaN", "JSON has no NaN"},
        {"Infinity", "no infinity; null stands for"},
        {"-Infinity", "digit"},
        {"True", "value"},
        {"01", "start with 0"},
        {"-", "digit"},
        {"+1", "value"},
        {".5", "value"},
        {"1.", "after the decimal point"},
        {"1e", "exponent"},
        {"1e+", "exponent"},
        {"0x1", "after the end"},
        {"1e999", "range"},
        {"-1e309", "range"},
        {"[1,]", "line 1, column 4: a value"},
        {"[1 2]", "comma or ]"},
        {"[1", "ends"},
        {"[", "ends"},
        {"]", "value"},
        {"{\"a\":1,}", "key in quotes"},
        {"{\"a\" 1}", "colon"},
        {"{\"a\":}", "value"},
        {"{a:1}", "key in quotes"},
        {"{\"a\":1 \"b\":2}", "comma or }"},
        {"{\"a\":1]", "comma or }"},
        {"[1}", "comma or ]"},
        {"{'a':1}", "key in quotes"},
        {"{\"a\":1,\n \"b\":2, \"a\":3}", "line 2, column 9: the key was given before"},
        {"{\"a\":1,\"\\u0061\":3}", "given before"},
        {"\"a", "does not end"},
        {"\"a\\", "does not end"},
        {"\"\\x\"", "escape"},
        {"\"\\u12g4\"", "hexadecimal"},
        {"\"\\u12", "hexadecimal"},
        {"\"\\ud800\"", "surrogate"},
        {"\"\\ud800\\u0041\"", "surrogate"},
        {"\"\\udc00\"", "surrogate"},
        {"\"a\nb\"", "control character"},
        {"\"\xff\"", "UTF-8"},
        {"\"\xc0\x80\"", "UTF-8"},
        {"\"\xed\xa0\x80\"", "UTF-8"},
        {"\"\xf4\x90\x80\x80\"", "UTF-8"},
        {"\"\xe2\x82\"", "UTF-8"},
        {"\xef\xbb\xbf{}", "value"},
        {"1 2", "after the end"},
        {"{} x", "after the end"},
        {"[1] // c", "after the end"},
        {"\f1", "value"},
        {"\"\xc3\xa9\xc3\xa9\" 1", "column 6"}, /* columns are characters */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        assert_int_equal(check(cases[i][0]), KILN_MALFORMED);
        if (strstr(why, cases[i][1]) == NULL) {
            fail_msg("%s: '%s' is not in '%s'", cases[i][0], cases[i][1], why);
        }
    }
    assert_int_equal(check_bytes("[1]\0", 4), KILN_MALFORMED);
    assert_int_equal(check_bytes("\"a\0b\"", 5), KILN_MALFORMED);
}

static void test_bounds(void **state) {
    static char text[300000];
    (void)state;
    memset(text, '[', 64);
    memset(text + 64, ']', 64);
    assert_int_equal(check_bytes(text, 128), KILN_OK);
    memset(text, '[', 65);
    memset(text + 65, ']', 65);
    assert_int_equal(check_bytes(text, 130), KILN_MALFORMED);
    memset(text, '[', sizeof text);
    assert_int_equal(check_bytes(text, sizeof text), KILN_MALFORMED);
    for (size_t members = 256; members <= 257; members++) {
        size_t at = 0;
        for (size_t i = 0; i < members; i++) {
            at += (size_t)sprintf(text + at, "%c\"key%zu\":1", i ? ',' : '{', i);
        }
        text[at++] = '}';
        assert_int_equal(check_bytes(text, at), members == 256 ? KILN_OK : KILN_MALFORMED);
    }
    memset(text, '9', 308);
    assert_int_equal(check_bytes(text, 308), KILN_OK);
    memset(text, '9', 400);
    assert_int_equal(check_bytes(text, 400), KILN_MALFORMED);
}

static void test_members(void **state) {
    struct json_value member;
    char key[8], text[32];
    size_t cursor = 0;
    (void)state;
    assert_int_equal(check(" { \"a\" : [1, {\"x\": \"}\"}] , \"b\\u00e9\":\"q\\\"\\\\\" ,"
                           "\"a\\u0000b\":-1.5e1, \"verylongkey\":null,\"12345\xc3\xa9yz\":true} "),
                     KILN_OK);
    assert_true(json_next_member(&value, &cursor, key, sizeof key, &member));
    assert_string_equal(key, "a");
    assert_int_equal(member.type, JSON_ARRAY);
    assert_int_equal(member.size, 15);
    assert_true(json_next_member(&value, &cursor, key, sizeof key, &member));
    assert_string_equal(key, "b\xc3\xa9");
    assert_int_equal(json_string(&member, text, sizeof text), 3);
    assert_string_equal(text, "q\"\\");
    assert_true(json_next_member(&value, &cursor, key, sizeof key, &member));
    assert_string_equal(key, "a\xef\xbf\xbd"
                             "b"); /* no shorter key in disguise */
    assert_true(json_number(&member) == -15);
    assert_true(json_next_member(&value, &cursor, key, sizeof key, &member));
    assert_string_equal(key, "very\xe2\x80\xa6");
    assert_int_equal(member.type, JSON_NULL);
    assert_true(json_next_member(&value, &cursor, key, sizeof key, &member));
    assert_string_equal(key, "1234\xe2\x80\xa6");
    assert_int_equal(member.type, JSON_TRUE);
    assert_false(json_next_member(&value, &cursor, key, sizeof key, &member));

    cursor = 0;
    assert_int_equal(check("{ }"), KILN_OK);
    assert_false(json_next_member(&value, &cursor, key, sizeof key, &member));
}

static void test_elements(void **state) {
    struct json_value element;
    size_t cursor = 0, count = 0;
    static const enum json_type types[] = {JSON_NUMBER, JSON_STRING, JSON_ARRAY,
                                           JSON_OBJECT, JSON_NULL,   JSON_TRUE};
    (void)state;
    assert_int_equal(check("[ 1,\"a,]\", [2,[3]] ,{\"]\":[]},null , true]"), KILN_OK);
    while (json_next_element(&value, &cursor, &element)) {
        assert_int_equal(element.type, types[count++]);
    }
    assert_int_equal(count, 6);
    cursor = 0;
    assert_int_equal(check("[]"), KILN_OK);
    assert_false(json_next_element(&value, &cursor, &element));
}

static void test_string(void **state) {
    char out[16];
    (void)state;
    assert_int_equal(check("\"\\u0041\\u00e9\\u20ac\\ud83d\\ude00\""), KILN_OK);
    assert_int_equal(json_string(&value, out, sizeof out), 10);
    assert_string_equal(out, "A\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
    assert_int_equal(json_string(&value, out, 6), 10); /* cut between characters */
    assert_string_equal(out, "A\xc3\xa9");
    assert_int_equal(json_string(&value, out, 0), 10);
    assert_int_equal(check("\"a\\u0000b\""), KILN_OK);
    assert_int_equal(json_string(&value, out, sizeof out), 3);
    assert_memory_equal(out, "a\0b", 4);
}

static void test_numbers(void **state) {
    double out[4] = {0};
    size_t bad = 99;
    (void)state;
    assert_int_equal(check("[1, -2.5,3e2 ,\n0.1]"), KILN_OK);
    assert_int_equal(json_numbers(&value, false, out, 4, &bad), 4);
    assert_true(out[0] == 1 && out[1] == -2.5 && out[2] == 300 && out[3] == 0.1);
    out[1] = 7;
    assert_int_equal(json_numbers(&value, false, out, 1, &bad), 4);
    assert_true(out[1] == 7);
    assert_int_equal(check("[]"), KILN_OK);
    assert_int_equal(json_numbers(&value, false, out, 4, &bad), 0);
    static const char *const others[] = {"[1,2,null]", "[1,2,\"3\"]", "[1,2,[3]]", "[1,2,true,4]"};
    for (size_t i = 0; i < 4; i++) {
        assert_int_equal(check(others[i]), KILN_OK);
        assert_int_equal(json_numbers(&value, false, out, 4, &bad), SIZE_MAX);
        assert_int_equal(bad, 2);
    }
}

static void test_member(void **state) {
    (void)state;
    assert_int_equal(check("{\"a\":1,\"b\":{\"c\":2.5},\"a\":3,\"\\u0062c\":[]}"), KILN_MALFORMED);
    assert_int_equal(check("{\"a\":1,\"b\":{\"c\":2.5},\"\\u0062c\":[]}"), KILN_OK);
    struct json_value object = value, inner = json_member(&object, "b");
    struct json_value number = json_member(&inner, "c"), array = json_member(&object, "bc");
    assert_true(json_number(&number) == 2.5);
    assert_int_equal(array.type, JSON_ARRAY);
    assert_int_equal(json_member(&object, "c").type, JSON_NULL);
    assert_int_equal(json_member(&number, "c").type, JSON_NULL);
    assert_int_equal(json_member(&array, "c").type, JSON_NULL);
}

static int copy_free(void **state) {
    (void)state;
    free(copy);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),     cmocka_unit_test(test_bad),
        cmocka_unit_test(test_bounds),   cmocka_unit_test(test_members),
        cmocka_unit_test(test_elements), cmocka_unit_test(test_string),
        cmocka_unit_test(test_numbers),  cmocka_unit_test(test_member),
    };
    return cmocka_run_group_tests(tests, NULL, copy_free);
}
