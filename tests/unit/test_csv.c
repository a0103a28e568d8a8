/* test_csv.c: light curves as text, in the shapes that people have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/codecs/csv.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct result {
    enum kiln_status status;
    double t[16], y[16], dy[16];
    uint64_t rows;
    int columns;
    struct csv_missing missing;
    char why[192];
};

/* The first two or three columns of the table, or of `places` where it is not NULL. */
static enum kiln_status read_all(const char *text, size_t size, const struct column_map *places,
                                 uint64_t capacity, struct result *result) {
    double *const values[] = {result->t, result->y, result->dy};
    struct csv csv;
    enum kiln_status status = csv_open(&csv, text, size, result->why, sizeof result->why);
    if (status != KILN_OK) {
        return status;
    }
    result->columns = csv.table.count > 2 ? 3 : 2;
    struct column_map map = {{0, 1, csv.table.count > 2 ? 2 : COLUMN_NOWHERE}};
    return csv_read(&csv, places != NULL ? places : &map, values, capacity, &result->rows,
                    &result->missing, result->why, sizeof result->why);
}

/* Parses from memory that ends with the text, so that a step past it is seen by sanitizers. */
static struct result parse_places(const char *text, const struct column_map *places) {
    struct result result = {0};
    size_t size = strlen(text);
    char *copy = malloc(size + 1);
    assert_non_null(copy);
    memcpy(copy, text, size);
    result.status = read_all(copy, size, places, 16, &result);
    assert_true(result.rows <= csv_rows_bound(copy, size));
    free(copy);
    return result;
}

static struct result parse(const char *text) {
    return parse_places(text, NULL);
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
        if (result.status != KILN_OK) {
            fail_msg("case %zu: %s", i, result.why);
        }
        assert_int_equal(result.rows, 2);
        assert_int_equal(result.columns, 2);
        assert_true(result.t[0] == 1 && result.y[0] == 2);
        assert_true(result.t[1] == 3 && result.y[1] == 4.5);
    }
}

/* Columns that are not wanted may hold anything; a separator inside quotes separates nothing. */
static void test_extra_columns(void **state) {
    const struct column_map places = {{2, 4, 1}};
    (void)state;
    struct result result = parse_places("id;Sigma;TIME;filter;\"Mag\"\n"
                                        "7;0.5;1;red;2\n"
                                        "\"a; \"\"b\"\"\";0.25;\"3\";>!;\" 4 \"\n",
                                        &places);
    assert_int_equal(result.status, KILN_OK);
    assert_int_equal(result.rows, 2);
    assert_true(result.t[1] == 3 && result.y[1] == 4 && result.dy[1] == 0.25);

    const struct column_map blanks = {{1, 2, COLUMN_NOWHERE}};
    result = parse_places("name t y\n\"Smith, J.\" 1  2 \n b\t3 4\n", &blanks);
    assert_int_equal(result.status, KILN_OK);
    assert_int_equal(result.rows, 2);
    assert_true(result.t[0] == 1 && result.y[0] == 2 && result.t[1] == 3 && result.y[1] == 4);

    result = parse("t,y\n");
    assert_int_equal(result.status, KILN_OK);
    assert_int_equal(result.rows, 0);
}

static void test_headers(void **state) {
    static const struct {
        const char *text;
        bool header, comment;
        size_t columns;
    } cases[] = {
        {"t,y\n1,2\n", true, false, 2},
        {"1,2\n", false, false, 2},
        {",2,a\n", false, false, 3},
        {"nan,null\n", false, false, 2},
        {"V1,2458000.5,12\n", false, false, 3},
        {"# t y\n1,2\n", false, true, 2},
        {"# t, y\n1,2\n", false, true, 2},
        {"# seen from here\n1,2\n", false, false, 2},
        {"# 1 2\n1,2\n", false, false, 2},
        {"# t y\nmag,mjd\n1,2\n", true, false, 2},
        {",time,flux\n0,1,2\n", true, false, 3},
        {"t, in days\tflux\n1\t2\n", true, false, 2},
        {"t, y\n1 2\n", true, false, 2},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct csv csv;
        char why[192] = "";
        if (csv_open(&csv, cases[i].text, strlen(cases[i].text), why, sizeof why) != KILN_OK) {
            fail_msg("%s: %s", cases[i].text, why);
        }
        if (csv.table.header != cases[i].header || csv.table.comment != cases[i].comment ||
            csv.table.count != cases[i].columns) {
            fail_msg("%s: header %d, comment %d, %zu columns", cases[i].text, csv.table.header,
                     csv.table.comment, csv.table.count);
        }
    }
}

static void test_missing(void **state) {
    static const char *const words[] = {"",    "nan",  "NaN", "-nan", "null",  "None", "NA",
                                        "n/a", "\"\"", "--",  "-",    ">17.2", "<.5",  "  "};
    (void)state;
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        char text[64];
        snprintf(text, sizeof text, "t,y,dy\n# one\n1,2,3\n4,%s,6\n7,8,\n", words[i]);
        struct result result = parse(text);
        if (result.status != KILN_OK) {
            fail_msg("'%s': %s", words[i], result.why);
        }
        assert_int_equal(result.rows, 3);
        assert_true(isnan(result.y[1]) && result.t[1] == 4 && result.dy[1] == 6);
        assert_true(isnan(result.dy[2]) && result.y[2] == 8);
        assert_int_equal(result.missing.line, 4);
        assert_int_equal(result.missing.column, 1);
        assert_int_equal(result.missing.role, 1);
    }
    assert_int_equal(parse("1,2\n3,4\n").missing.line, 0);
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
        {"1,2\n3,2458-01-02\n", "line 2: column 2 is not a number: '2458-01-02'; dates"},
        {"a,\"b\n1,2\n", "line 1: the quotes of column 2 are not closed"},
        {"t,y\n1,\"2\"\"\n", "line 2: the quotes of column 2 are not closed"},
        {"t,y\n1,\"2\" 3\n", "line 2: the quotes of column 2 are not closed"},
        {"1,2\n3\n", "line 2: there are fewer"},
        {"1,2\n3,4,5\n", "line 2: there are more"},
        {"1,2\n\n# c\n3,x\n", "line 4: column 2 is not a number: 'x'"},
        {"t,y\n1,2,3\n", "line 2: there are more"},
        {"1,2\n0x10,3\n", "line 2: column 1"},
        {"1;2,5\n", "line 1: column 2 is not a number: '2,5'; decimals have a point"},
        {"1,2\n3,4 5\n", "line 2: column 2"},
        {"1,2\n3,\"4\n", "line 2: the quotes of column 2"},
        {"1,2\n3,\xff\x01\n", "line 2: column 2 is not a number: '\?\?'"},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct result result = parse(cases[i][0]);
        assert_int_equal(result.status, KILN_MALFORMED);
        if (strstr(result.why, cases[i][1]) == NULL) {
            fail_msg("'%s' is not in '%s'", cases[i][1], result.why);
        }
    }
}

static void test_capacity(void **state) {
    struct result result = {0};
    char wide[2 * COLUMNS_MAX + 3];
    (void)state;
    assert_int_equal(read_all("1,2\n3,4", 7, NULL, 1, &result), KILN_MALFORMED);
    assert_non_null(strstr(result.why, "line 2"));
    assert_int_equal(csv_rows_bound("", 0), 1);
    assert_int_equal(csv_rows_bound("1,2\n3,4\r\n5,6\r7,8", 16), 4);
    for (size_t i = 0; i < COLUMNS_MAX; i++) {
        memcpy(wide + 2 * i, "1,", 2);
    }
    memcpy(wide + 2 * COLUMNS_MAX - 1, "\n", 2);
    assert_int_equal(parse(wide).status, KILN_OK);
    memcpy(wide + 2 * COLUMNS_MAX - 1, ",1\n", 4);
    result = parse(wide);
    assert_int_equal(result.status, KILN_MALFORMED);
    assert_non_null(strstr(result.why, "more than 256 columns"));
}

/* `size` of `piece`, between two lines of numbers and one more. */
static struct result parse_long(char piece, size_t size, const char *after) {
    static const char before[] = "t,y\n1,2\n3,4,";
    struct result result = {0};
    size_t start = sizeof before - 1, all = start + size + strlen(after);
    char *text = malloc(all + 1);
    assert_non_null(text);
    memcpy(text, before, start);
    memset(text + start, piece, size);
    strcpy(text + start + size, after);
    result.status = read_all(text, all, NULL, 16, &result);
    free(text);
    return result;
}

static void test_long_lines(void **state) {
    static const char *const ends[] = {"", "\n5,6\n", "\r5,6\r", "\r\n5,6\r\n"};
    static const char pieces[] = {' ', 'x', '"', ',', '9', '#', '\0'};
    (void)state;
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        /* blanks to the end do no harm, however they lie to the strides of the look-out */
        for (size_t size = 65520; size < 65560; size++) {
            assert_int_equal(parse_long(' ', size, ends[i]).rows, i == 0 ? 2 : 3);
        }
        assert_int_equal(parse_long(' ', CSV_LINE_MAX - 8, ends[i]).status, KILN_OK);
        for (size_t j = 0; j < sizeof pieces; j++) {
            struct result result = parse_long(pieces[j], CSV_LINE_MAX, ends[i]);
            assert_int_equal(result.status, KILN_MALFORMED);
            if (strstr(result.why, "line 3: the line has more than 1048576 bytes") == NULL) {
                fail_msg("'%s'", result.why);
            }
        }
    }
    /* a first line, and a comment */
    char *text = calloc(1, CSV_LINE_MAX + 2);
    struct result result = {0};
    assert_non_null(text);
    for (size_t i = 0; i < sizeof pieces; i++) {
        memset(text, pieces[i], CSV_LINE_MAX + 1);
        result.status = read_all(text, CSV_LINE_MAX + 1, NULL, 16, &result);
        assert_int_equal(result.status, KILN_MALFORMED);
        assert_non_null(strstr(result.why, "line 1: the line has more"));
    }
    free(text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_separators), cmocka_unit_test(test_extra_columns),
        cmocka_unit_test(test_headers),    cmocka_unit_test(test_missing),
        cmocka_unit_test(test_specials),   cmocka_unit_test(test_broken),
        cmocka_unit_test(test_capacity),   cmocka_unit_test(test_long_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
