/*
 * test_json_conformance.c: RFC 8259 case by case: texts that a reader must take, must refuse, and
 * those that the RFC leaves to it.
 *
 * Where the RFC leaves it open this reader is strict: a lone surrogate, a number beyond a double, a
 * mark of byte order, a key twice at the top and a depth over 64 are refused. Written down here, so
 * that a change of mind is seen.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/codecs/json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct row {
    const char *text;
    size_t size;
};
#define T(text)                                                                                    \
    { text, sizeof(text) - 1 }

static const struct row must_accept[] = {
    /* structure */
    T("[]"),
    T("{}"),
    T("[[]]"),
    T("[{}]"),
    T("{\"\":{}}"),
    T("[[[[[[]]]]]]"),
    T("[ ]"),
    T("{ }"),
    T("[1,2]"),
    T("[1 , 2]"),
    T("[1\n,\n2]"),
    T("[null,1,\"1\",{}]"),
    T("[[],[[]]]"),
    T("{\"a\":1,\"b\":2}"),
    T("{\"a\" : 1 , \"b\" : [ ] }"),
    T("{\"a\":{\"a\":{\"a\":1}}}"),
    T("{\"\":0}"),
    T("{\"a\":[]}"),
    T("{\"a b\":1}"),
    T("{\"A\":1,\"a\":2}"),
    /* blanks */
    T(" []"),
    T("[] "),
    T("\t[]\r\n"),
    T("\n\n{\n}\n"),
    T(" 1 "),
    T("\r1\r"),
    T("[\t1\r\n]"),
    /* values at the top */
    T("null"),
    T("true"),
    T("false"),
    T("0"),
    T("\"\""),
    T("\"a\""),
    T("-1"),
    T(" \"x\" "),
    /* numbers */
    T("[0]"),
    T("[-0]"),
    T("[1]"),
    T("[-1]"),
    T("[10]"),
    T("[123456789]"),
    T("[0.5]"),
    T("[-0.5]"),
    T("[1.0]"),
    T("[0.0]"),
    T("[1e2]"),
    T("[1E2]"),
    T("[1e+2]"),
    T("[1E+2]"),
    T("[1e-2]"),
    T("[1E-2]"),
    T("[1.5e2]"),
    T("[0e1]"),
    T("[0e+1]"),
    T("[0E0]"),
    T("[-0e-0]"),
    T("[1e00]"),
    T("[1e-00001]"),
    T("[123.456e78]"),
    T("[20e1]"),
    T("[0.1]"),
    T("[1.7976931348623157e308]"),
    T("[4.9e-324]"),
    T("[9007199254740993]"),
    T("[18446744073709551616]"),
    T("[0.3333333333333333333333333333333333333333333333333]"),
    T("[-123123123123123123123123123123]"),
    T("[0.000000000000000000000000000000000000001]"),
    /* strings */
    T("[\"\"]"),
    T("[\" \"]"),
    T("[\"\\\"\"]"),
    T("[\"\\\\\"]"),
    T("[\"\\/\"]"),
    T("[\"/\"]"),
    T("[\"\\b\\f\\n\\r\\t\"]"),
    T("[\"\\u0000\"]"),
    T("[\"\\u0041\"]"),
    T("[\"\\u00e9\"]"),
    T("[\"\\uABCD\\uabcd\"]"),
    T("[\"\\uD83D\\uDE00\"]"),
    T("[\"\\ud834\\udd1e\"]"),
    T("[\"\\uDBFF\\uDFFF\"]"),
    T("[\"\\uFFFF\"]"),
    T("[\"\\uFFFE\"]"),
    T("[\"\\uFDD0\"]"),
    T("[\"\\u2028\\u2029\"]"),
    T("[\"\\\\u0041\"]"),
    T("[\"\\\\a\"]"),
    T("[\"\\\\n\"]"),
    T("[\"\x7f\"]"),
    T("[\"\xc3\xa9\"]"),
    T("[\"\xc2\x80\"]"),
    T("[\"\xdf\xbf\"]"),
    T("[\"\xe0\xa0\x80\"]"),
    T("[\"\xed\x9f\xbf\"]"),
    T("[\"\xee\x80\x80\"]"),
    T("[\"\xef\xbf\xbf\"]"),
    T("[\"\xf0\x90\x80\x80\"]"),
    T("[\"\xf4\x8f\xbf\xbf\"]"),
    T("[\"\xe2\x80\xa8\xe2\x80\xa9\"]"),
    T("[\"\xef\xbb\xbf\"]"),
    T("[\"'\"]"),
    T("[\"/* no comment */\"]"),
    T("[\"]\",\"}\",\":\",\",\"]"),
    T("{\"\\u0061\":1}"),
    T("{\"\\\"\":1}"),
    T("{\"\xc3\xa9\":1}"),
    T("{\"\\u0000\":1}"),
    T("[\"new\\u000Aline\"]"),
};

static const struct row must_refuse[] = {
    /* nothing, or too much */
    T(""),
    T(" "),
    T("\n"),
    T("[] []"),
    T("[]{}"),
    T("{}{}"),
    T("{}x"),
    T("[]]"),
    T("{}}"),
    T("1 2"),
    T("null null"),
    T("\"a\" \"b\""),
    T("[1]x"),
    T("{\"a\":1}#"),
    T("[],"),
    T(",[]"),
    T("[]\0"),
    T("{}\0{}"),
    T("\0"),
    T("[1]\0[2]"),
    T("1\0"),
    /* brackets */
    T("["),
    T("]"),
    T("{"),
    T("}"),
    T("[1"),
    T("[1,"),
    T("[,"),
    T("[,1]"),
    T("[1,,2]"),
    T("[1,]"),
    T("[1,,]"),
    T("[,]"),
    T("[1}"),
    T("{\"a\":1]"),
    T("[1 2]"),
    T("[[1]"),
    T("[1]]"),
    T("[1:2]"),
    T("[\"a\":1]"),
    T("[{]"),
    T("[}"),
    T("{]"),
    T("[\"a\",\n4\n,1,"),
    T("[[[["),
    T("[{\"a\":[{\"a\":"),
    T("{\"a\":1,"),
    T("(1)"),
    T("<null>"),
    T("[1;2]"),
    T("[\"a\" \"b\"]"),
    /* objects */
    T("{,}"),
    T("{\"a\"}"),
    T("{\"a\":}"),
    T("{:1}"),
    T("{1:1}"),
    T("{a:1}"),
    T("{'a':1}"),
    T("{\"a\" 1}"),
    T("{\"a\":1 \"b\":2}"),
    T("{\"a\":1,}"),
    T("{\"a\":1,,\"b\":2}"),
    T("{,\"a\":1}"),
    T("{\"a\":1,\"b\"}"),
    T("{\"a\":1:2}"),
    T("{\"a\"::1}"),
    T("{null:1}"),
    T("{[]:1}"),
    T("{\"a\",1}"),
    T("{\"a\":1;\"b\":2}"),
    T("{\"a\":\"b\"}/**/"),
    T("{\"a\":\"b\"}//"),
    T("{/**/}"),
    T("{\"a\":/*x*/1}"),
    T("//x\n{}"),
    T("#x\n{}"),
    T("{\"a\":1}\n,"),
    T("{\"x\"::\"b\"}"),
    T("{\"a\" b}"),
    T("{9999E9999:1}"),
    T("{\"a\":1=2}"),
    /* words */
    T("nul"),
    T("nulll"),
    T("Null"),
    T("NULL"),
    T("tru"),
    T("True"),
    T("TRUE"),
    T("fals"),
    T("False"),
    T("nan"),
    T("NaN"),
    T("-NaN"),
    T("inf"),
    T("Infinity"),
    T("-Infinity"),
    T("undefined"),
    T("[nul]"),
    T("[truth]"),
    T("[fals"),
    T("x"),
    T("[x]"),
    T("*"),
    T("&"),
    T("true1"),
    T("null0"),
    T("truefalse"),
    T("n\0ull"),
    T("tr\nue"),
    /* numbers */
    T("[-]"),
    T("[+]"),
    T("[+1]"),
    T("[++1]"),
    T("[--1]"),
    T("[- 1]"),
    T("[01]"),
    T("[-01]"),
    T("[00]"),
    T("[012]"),
    T("[0x1]"),
    T("[0X1F]"),
    T("[1x]"),
    T("[0b1]"),
    T("[.1]"),
    T("[-.1]"),
    T("[1.]"),
    T("[-1.]"),
    T("[1.e1]"),
    T("[.]"),
    T("[1..2]"),
    T("[1.2.3]"),
    T("[1e]"),
    T("[1E]"),
    T("[1e+]"),
    T("[1e-]"),
    T("[1e.5]"),
    T("[1e1.5]"),
    T("[1ee2]"),
    T("[1e+-2]"),
    T("[e1]"),
    T("[0e]"),
    T("[0e+]"),
    T("[0.e1]"),
    T("[1 000]"),
    T("[1,000.]"),
    T("[1_000]"),
    T("[1'0]"),
    T("[1a]"),
    T("[-a]"),
    T("[1 e2]"),
    T("[1e 2]"),
    T("[\xef\xbc\x91]"),
    T("[1\xc2\xa0]"),
    T("[2.e+3]"),
    T("[2.e-3]"),
    T("[-1x]"),
    T("[1f]"),
    T("[1L]"),
    T("[0.1.2]"),
    T("[1\0]"),
    T("[-Infinity]"),
    T("[-NaN]"),
    T("[1/2]"),
    T("[\xd9\xa1]"),
    /* strings */
    T("\""),
    T("[\"]"),
    T("[\"a]"),
    T("\"a"),
    T("'a'"),
    T("['a']"),
    T("[a\"]"),
    T("[\"a\"b\"]"),
    T("`a`"),
    T("[\"\\\"]"),
    T("[\"\\a\"]"),
    T("[\"\\x41\"]"),
    T("[\"\\'\"]"),
    T("[\"\\0\"]"),
    T("[\"\\U0041\"]"),
    T("[\"\\u\"]"),
    T("[\"\\u0\"]"),
    T("[\"\\u00\"]"),
    T("[\"\\u004\"]"),
    T("[\"\\u004g\"]"),
    T("[\"\\u00 4\"]"),
    T("[\"\\u+041\"]"),
    T("[\"\\u-041\"]"),
    T("[\"\\ \"]"),
    T("[\"\\\n\"]"),
    T("[\"\\\t\"]"),
    T("[\"\n\"]"),
    T("[\"\t\"]"),
    T("[\"\r\"]"),
    T("[\"\x01\"]"),
    T("[\"\x1f\"]"),
    T("[\"\0\"]"),
    T("[\"a\0b\"]"),
    T("{\"a\0\":1}"),
    T("{\"\n\":1}"),
    T("[\"\\\xc3\xa9\"]"),
    T("[\\u0041]"),
    T("\\n"),
    T("[\"\\u{41}\"]"),
    T("[\"\\v\"]"),
    T("[\"\\e\"]"),
    T("[\"\\u12\""),
    T("[\"\\"),
    T("[\"\\u"),
    T("[\"\\ud83d\\u"),
    /* UTF-8 */
    T("[\"\x80\"]"),
    T("[\"\xbf\"]"),
    T("[\"\xc3\"]"),
    T("[\"\xc3("),
    T("[\"\xc0\xaf\"]"),
    T("[\"\xc1\xbf\"]"),
    T("[\"\xe0\x80\xaf\"]"),
    T("[\"\xe0\x9f\xbf\"]"),
    T("[\"\xf0\x80\x80\xaf\"]"),
    T("[\"\xf0\x8f\xbf\xbf\"]"),
    T("[\"\xed\xa0\x80\"]"),
    T("[\"\xed\xbf\xbf\"]"),
    T("[\"\xed\xa0\xbd\xed\xb8\x80\"]"),
    T("[\"\xf4\x90\x80\x80\"]"),
    T("[\"\xf5\x80\x80\x80\"]"),
    T("[\"\xf8\x88\x80\x80\x80\"]"),
    T("[\"\xfc\x84\x80\x80\x80\x80\"]"),
    T("[\"\xfe\"]"),
    T("[\"\xff\"]"),
    T("[\"\xe2\x82\"]"),
    T("[\"\xf0\x9f\x98\"]"),
    T("[\"\xe9\"]"),
    T("[\xc3\xa9]"),
    T("\xc3\xa9"),
    T("[\"\xc3\"\xa9]"),
    T("{\"\xff\":1}"),
    T("[]\xff"),
    T("\xff\xfe[\0]\0"),
    T("\xfe\xff\0[\0]"),
    T("[\0\"\0a\0\"\0]\0"),
    T("\0\0\0["),
    T("[\xa0]"),
    T("\xc2\xa0[]"),
    T("[]\xe2\x80\xa8"),
    T("\x0b[]"),
    T("\x0c[]"),
    T("[\x0c]"),
    T("[\xe2\x81\xa0]"),
    T("[\x1b]"),
    T("\xef\xbb"),
    T("[\x7f]"),
};

/* Left open by the RFC; what this reader does. */
static const struct {
    struct row row;
    bool taken;
} either[] = {
    {T("\xef\xbb\xbf{}"), false},
    {T("[1e999]"), false},
    {T("[-1e999]"), false},
    {T("[1.8e308]"), false},
    {T("[1e-999]"), true},
    {T("[0e999999]"), true},
    {T("[\"\\uD800\"]"), false},
    {T("[\"\\uDC00\"]"), false},
    {T("[\"\\uD800\\uD800\"]"), false},
    {T("[\"\\uD800a\"]"), false},
    {T("[\"\\uD800\\n\"]"), false},
    {T("[\"\\uDE00\\uD83D\"]"), false},
    {T("[\"\\uD83D\\u0041\"]"), false},
    {T("{\"a\":1,\"a\":1}"), false},
    {T("{\"a\":1,\"a\":2}"), false},
    {T("{\"a\":1,\"\\u0061\":2}"), false},
    {T("{\"a\":{\"b\":1,\"b\":2}}"), true},
    {T("[{\"b\":1,\"b\":2}]"), true},
};

static enum kiln_status check(const struct row *row, char *why, size_t why_size) {
    struct json_value value;
    char *exact = malloc(row->size > 0 ? row->size : 1); /* sanitizers see a step past it */
    assert_non_null(exact);
    memcpy(exact, row->text, row->size);
    why[0] = '\0';
    enum kiln_status status = json_check(exact, row->size, &value, why, why_size);
    free(exact);
    return status;
}

/* Prints what went wrong; 1 if something did. */
static int row_wrong(const struct row *row, bool wanted) {
    char why[160];
    enum kiln_status status = check(row, why, sizeof why);
    if (status == (wanted ? KILN_OK : KILN_MALFORMED) && (wanted || why[0] != '\0')) {
        return 0;
    }
    print_message("%s, though it must%s be: %.*s (%s)\n", status == KILN_OK ? "taken" : "refused",
                  wanted ? "" : " not", (int)row->size, row->text, why);
    return 1;
}

static void conformance(void **state) {
    size_t good = sizeof must_accept / sizeof must_accept[0];
    size_t bad = sizeof must_refuse / sizeof must_refuse[0];
    size_t open = sizeof either / sizeof either[0];
    int wrong = 0;
    (void)state;
    for (size_t i = 0; i < good; i++) {
        wrong += row_wrong(&must_accept[i], true);
    }
    for (size_t i = 0; i < bad; i++) {
        wrong += row_wrong(&must_refuse[i], false);
    }
    for (size_t i = 0; i < open; i++) {
        wrong += row_wrong(&either[i].row, either[i].taken);
    }
    print_message(
        "acceptance: JSON conformance suite | %zu texts must be taken, %zu refused, %zu "
        "either: %d wrong | every must-reject refused as malformed, no must-accept called "
        "malformed | %s\n",
        good, bad, open, wrong, wrong == 0 ? "yes" : "NO");
    assert_int_equal(wrong, 0);
}

/* Every text that must be taken, cut anywhere: never taken for something else by accident, except
   numbers and what ends in blanks; and never read past its end. */
static void prefixes(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof must_accept / sizeof must_accept[0]; i++) {
        for (size_t size = 0; size < must_accept[i].size; size++) {
            const struct row row = {must_accept[i].text, size};
            char why[160];
            char first = row.text[strspn(row.text, " \t\r\n")];
            if (check(&row, why, sizeof why) == KILN_OK) {
                char last = row.text[must_accept[i].size - 1];
                assert_true(strchr(" \t\r\n", last) != NULL || (first >= '0' && first <= '9'));
            }
        }
    }
}

static void depths(void **state) {
    static char text[200001];
    (void)state;
    for (int depth = 1; depth <= 100000; depth = depth < 70 ? depth + 1 : depth * 10) {
        for (int kind = 0; kind < 2; kind++) {
            size_t size = 0;
            for (int i = 0; i < depth; i++) {
                text[size++] = kind == 0 ? '[' : '{';
                if (kind == 1 && i + 1 < depth && size + 4 < sizeof text) {
                    memcpy(text + size, "\"\":", 3);
                    size += 3;
                }
                if (size > sizeof text / 2) {
                    break;
                }
            }
            for (int i = 0; i < depth && size < sizeof text; i++) {
                text[size++] = kind == 0 ? ']' : '}';
            }
            const struct row row = {text, size};
            assert_int_equal(row_wrong(&row, depth <= JSON_DEPTH_MAX), 0);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(conformance),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(depths),
    };
    return cmocka_run_group_tests_name("json_conformance", tests, NULL, NULL);
}
