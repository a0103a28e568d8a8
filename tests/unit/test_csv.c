/* test_csv.c: light curves as text, in the shapes that people have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/codecs/csv.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct result {
    enum kiln_status status;
    double t[16], y[16], dy[16];
    uint64_t rows;
    int columns;
    char why[160];
};

/* Parses from memory that ends with the text, so that a step past it is seen by sanitizers. */
static struct result parse(const char *text) {
    struct result result = {0};
    size_t size = strlen(text);
    char *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    result.status = csv_read(copy, size, result.t, result.y, result.dy, 16, &result.rows,
                             &result.columns, result.why, sizeof result.why);
    assert_true(result.rows <= csv_rows_bound(copy, size));
    free(copy);
    return result;
}

static void test_separators(void **state) {
    static const char *const texts[] = {"1,2\n3,4.5\n",
                                        "1;2\n3;4.5",
                                        "1\t2\n3\t4.5\n",
                                        "1 2\n3   4.5 \n",
                                        "1, 2\n3 ,4.5\n",
                                        "1,2\r\n3,4.5\r\n",
                                        "1,2\r3,4.5\r",
                                        "\n\n1,2\n\n3,4.5\n\n",
                                        "# t y\n1,2\n  # more\n3,4.5\n",
                                        "\xef\xbb\xbf"
                                        "1,2\n3,4.5",
                                        "+1,2e0\n.3e1,45e-1\n",
                                        "\"1\",\"2\"\n\"3\",\" 4.5 \"\n",
                                        "1,2,\n3,4.5,\n",
                                        "t,y\n1,2\n3,4.5",
                                        "\"YEAR\",\"SUNACTIVITY\"\n1,2\n3,4.5\n",
                                        "Time (days),Flux\n1,2\n3,4.5\n"};
    (void)state;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        struct result result = parse(texts[i]);
        if (result.status != KILN_OK)
            fail_msg("case %zu: %s", i, result.why);
        assert_int_equal(result.rows, 2);
        assert_int_equal(result.columns, 2);
        assert_true(result.t[0] == 1 && result.y[0] == 2);
        assert_true(result.t[1] == 3 && result.y[1] == 4.5);
    }
}

static void test_header_names(void **state) {
    (void)state;
    struct result result = parse("id;Sigma;TIME;filter;\"Mag\"\n7;0.5;1;red;2\n8;0.25;3;;4\n");
    assert_int_equal(result.status, KILN_OK);
    assert_int_equal(result.rows, 2);
    assert_int_equal(result.columns, 3);
    assert_true(result.t[1] == 3 && result.y[1] == 4 && result.dy[1] == 0.25);

    result = parse("a,b,c,d\n1,2,3,4\n"); /* unknown names: the first three columns */
    assert_int_equal(result.status, KILN_OK);
    assert_int_equal(result.columns, 3);
    assert_true(result.t[0] == 1 && result.y[0] == 2 && result.dy[0] == 3);

    result = parse("name,t,y\n\"Smith, J.\",1,2\n"); /* a separator inside quotes */
    assert_int_equal(result.status, KILN_OK);
    assert_int_equal(result.columns, 2);
    assert_true(result.t[0] == 1 && result.y[0] == 2);

    result = parse("t,y\n");
    assert_int_equal(result.status, KILN_OK);
    assert_int_equal(result.rows, 0);
}

static void test_specials(void **state) {
    (void)state;
    struct result result = parse("nan,1\n1,NaN\n-inf,+Infinity\n");
    assert_int_equal(result.status, KILN_OK);
    assert_int_equal(result.rows, 3);
    assert_true(isnan(result.t[0]) && isnan(result.y[1]));
    assert_true(result.t[2] == -INFINITY && result.y[2] == INFINITY);
}

static void test_broken(void **state) {
    static const char *const cases[][2] = {
        {"", "no lines"},
        {"\n# only\n", "no lines"},
        {"1\n2\n", "line 1: two or three"},
        {"t\n1\n", "line 1: two or three"},
        {"1,2,3,4\n", "line 1: 4 columns"},
        {"1,2\n3\n", "line 2: there are fewer"},
        {"1,2\n3,4,5\n", "line 2: there are more"},
        {"1,2\n\n# c\n3,x\n", "line 4: column 2 is not a number: 'x'"},
        {"1,2\r\n3,\r\n", "line 2: column 2 is empty"},
        {"t,y\n1,2,3\n", "line 2: there are more"},
        {"1,2\n0x10,3\n", "line 2: column 1"},
        {"1;2,5\n", "line 1: column 2"},
        {"1,2\n3,4 5\n", "line 2: column 2"},
        {"1,2\n3,\"4\n", "line 2: column 2"},
        {"1,2\n3,\xff\x01\n", "line 2: column 2 is not a number: '\?\?'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct result result = parse(cases[i][0]);
        assert_int_equal(result.status, KILN_MALFORMED);
        if (!strstr(result.why, cases[i][1]))
            fail_msg("'%s' is not in '%s'", cases[i][1], result.why);
    }
}

static void test_capacity(void **state) {
    double t[1], y[1], dy[1];
    uint64_t rows;
    int columns;
    char why[80];
    (void)state;
    assert_int_equal(csv_read("1,2\n3,4", 7, t, y, dy, 1, &rows, &columns, why, sizeof why),
                     KILN_MALFORMED);
    assert_non_null(strstr(why, "line 2"));
    assert_int_equal(csv_rows_bound("", 0), 1);
    assert_int_equal(csv_rows_bound("1,2\n3,4\r\n5,6\r7,8", 16), 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_separators), cmocka_unit_test(test_header_names),
        cmocka_unit_test(test_specials),   cmocka_unit_test(test_broken),
        cmocka_unit_test(test_capacity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
