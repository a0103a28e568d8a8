/*
 * test_expression.c: limits and messages of array expressions, what a program is made of, and what
 * the validator refuses. Types, values and shapes are held against NumPy (tests/oracle).
 */
#include "compute/expression/expression.h"
#include "compute/expression/validate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static struct expression_program program;
static struct expression_names names;
static struct expression_error error;

static const struct expression_input inputs[] = {
    {"a", EXPRESSION_F32, 2, {30, 40}, {40, 1}},
    {"b", EXPRESSION_F32, 1, {40}, {1}},
    {"n", EXPRESSION_I8, 1, {40}, {1}},
};

static enum kiln_status compile(const char *text) {
    return expression_compile(text, strlen(text), inputs, 3, &program, &names, &error);
}

/* `head`, then `count` times `part`, then `count` times `tail`. */
static const char *repeated(const char *head, const char *part, int count, const char *tail) {
    static char text[20000];
    size_t used = (size_t)snprintf(text, sizeof text, "%s", head);
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", part);
    }
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, sizeof text - used, "%s", tail);
    }
    return text;
}

static void refused(const char *text, const char *part) {
    assert_int_equal(compile(text), KILN_INVALID);
    if (strstr(error.text, part) == NULL) {
        fail_msg("\"%s\" instead of \"%s\"", error.text, part);
    }
}

static void test_limits(void **state) {
    (void)state;
    assert_int_equal(compile(repeated("a", "+a", EXPRESSION_NODES, "")), KILN_OK);
    refused(repeated("a", "+a", EXPRESSION_NODES + 1, ""), "more than 256 operators");
    assert_int_equal(compile("((((((((((((((((((((a))))))))))))))))))))"), KILN_OK);
    refused(repeated("", "(", 30, "a)"), "nests more than 64");
    refused(repeated("2**", "-", 70, "a"), "nests more than 64");
    refused(repeated("a+", "                ", 300, "a"), "longer than 4096 bytes");
    char many[2000] = "";
    for (int i = 0; i < EXPRESSION_LOCALS + 1; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "n%d=%d;", i, i);
    }
    refused(many, "more than 32 names");
    many[0] = '\0';
    for (int i = 0; i < EXPRESSION_OUTPUTS + 1; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "n%d=%d;", i, i);
    }
    refused(many, "more than 16 results");
    many[0] = '\0';
    for (int i = 0; i < EXPRESSION_TEMPORARIES + 1; i++) {
        snprintf(many + strlen(many), sizeof many - strlen(many), "%ssum(a+%d)", i ? "+" : "", i);
    }
    refused(many, "intermediate arrays");
}

static void test_inputs(void **state) {
    (void)state;
    struct expression_input bad[2] = {inputs[0], inputs[0]};
    assert_int_equal(expression_compile("a", 1, bad, 2, &program, &names, &error), KILN_INVALID);
    assert_non_null(strstr(error.text, "twice"));
    bad[0].name = "1a";
    assert_int_equal(expression_compile("a", 1, bad, 1, &program, &names, &error), KILN_INVALID);
    bad[0] = inputs[0];
    bad[0].shape[0] = INT64_MAX;
    assert_int_equal(expression_compile("a", 1, bad, 1, &program, &names, &error), KILN_INVALID);
    bad[0].shape[0] = -1;
    assert_int_equal(expression_compile("a", 1, bad, 1, &program, &names, &error), KILN_INVALID);
    /* (2^30, 1) with (1, 2^30) would be 2^60 elements */
    struct expression_input wide[2] = {
        {"a", EXPRESSION_I8, 2, {1 << 30, 1}, {1, 1}},
        {"b", EXPRESSION_I8, 2, {1, 1 << 30}, {1, 1}},
    };
    assert_int_equal(expression_compile("a+b", 3, wide, 2, &program, &names, &error), KILN_INVALID);
    assert_non_null(strstr(error.text, "2^40"));
}

/* Equal parts are computed once, neighbouring dimensions are one loop, and what is broadcast is
   computed for its own elements only. */
static void test_programs(void **state) {
    (void)state;
    assert_int_equal(compile("(a*a + 1) * (a*a + 1)"), KILN_OK);
    assert_int_equal(program.instructions, 3);
    assert_int_equal(program.stages, 1);
    assert_int_equal(program.stage[0].dims, 1);
    assert_int_equal(program.stage[0].shape[0], 1200);
    assert_int_equal(program.cost, 3 * 1200);
    assert_int_equal(compile("a + sqrt(b)"), KILN_OK);
    assert_int_equal(program.stages, 2);
    assert_int_equal(program.cost, 1200 + 40);
    assert_int_equal(compile("s = sum(a); m = max(a); l = min(a)"), KILN_OK);
    assert_int_equal(program.stages, 1);
    assert_string_equal(names.output[1], "m");
    assert_int_equal(compile("t = 3; t += 1; a += t; b * 2"), KILN_OK); /* a is not asked for */
    assert_int_equal(program.outputs, 1);
    assert_int_equal(program.instructions, 1);
    assert_string_equal(names.output[0], "result");
}

static void test_messages(void **state) {
    (void)state;
    refused("a + sqr(b)", "\"sqrt\"?");
    assert_int_equal(error.column, 5);
    refused("n + 300", "does not fit int8 (-128 … 127)");
    assert_int_equal(error.column, 5);
    refused("a + bb", "there is no array \"bb\"; \"b\"?");
    refused("a < b < 1", "a < b and b < c");
    refused("n += a", "float32 cannot be kept in place of int8");
    refused("b += a", "shape (30, 40) cannot be kept in place of shape (40,)");
    refused("sum(a, axis=2)", "axis 2 of an array with 2 dimensions");
    refused("a = ", "the text ends where a value should stand");
    refused("1/0", "divided by 0");
    refused("2**2000", "too large");
    refused("__import__('os')", "no function");
    refused("a.__class__", "no attributes");
}

static void test_validator(void **state) {
    (void)state;
    static struct expression_program good;
    assert_int_equal(compile("m = mean(a, axis=0); d = where(a > b, a - m, 1)"), KILN_OK);
    assert_null(expression_validate(&program));
    good = program;
#define BROKEN(change)                                                                             \
    program = good;                                                                                \
    change;                                                                                        \
    assert_non_null(expression_validate(&program))
    BROKEN(program.schema++);
    BROKEN(program.cost--);
    BROKEN(program.stages--);
    BROKEN(program.stages = UINT16_MAX);
    BROKEN(program.instruction[0].op = EXPRESSION_OP_COUNT);
    BROKEN(program.instruction[0].type = EXPRESSION_TYPE_COUNT);
    BROKEN(program.instruction[0].to = 255);
    BROKEN(program.access[0].array = EXPRESSION_ARRAYS);
    BROKEN(program.access[0].strides[0]++);
    BROKEN(program.access[0].strides[0] = INT64_MAX);
    BROKEN(program.access[0].strides[0] = -1);
    BROKEN(program.array[0].elements--);
    BROKEN(program.array[3].elements = INT64_MAX);
    BROKEN(program.stage[0].shape[0]++);
    BROKEN(program.stage[0].accesses = 65);
    BROKEN(program.stage[0].kept = 9);
    BROKEN(program.stage[1].first_instruction = UINT16_MAX);
    BROKEN(program.stage[1].instructions = 0);
    BROKEN(program.constants = 0);
#undef BROKEN
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_limits),    cmocka_unit_test(test_inputs),
        cmocka_unit_test(test_programs),  cmocka_unit_test(test_messages),
        cmocka_unit_test(test_validator),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
