/*
 * test_words.c: words with commas between.
 */
#include "compute/core/words.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* The words of a text in brackets; the text lies at the end of its memory. */
static void expect_words(const char *text, const char *want) {
    size_t size = strlen(text);
    char *bytes = malloc(size > 0 ? size : 1), got[256] = "";
    assert_non_null(bytes);
    memcpy(bytes, text, size);
    for (struct words words = words_of(bytes, size); words_next(&words);) {
        snprintf(got + strlen(got), sizeof got - strlen(got), "[%.*s]", (int)words.size,
                 words.word);
    }
    assert_string_equal(got, want);
    free(bytes);
}

static void test_words(void **state) {
    (void)state;
    expect_words("", "[]");
    expect_words(",", "[][]");
    expect_words("a", "[a]");
    expect_words("cpu,cuda:0", "[cpu][cuda:0]");
    expect_words(" a b ,\tc\t, ,d ", "[a b][c][][d]");
    expect_words("a,", "[a][]");
    expect_words("\na", "[\na]");
}

static void test_has(void **state) {
    static const char text[] = "memory, cpu,cpuset";
    (void)state;
    assert_true(words_have(text, sizeof text - 1, "cpu"));
    assert_true(words_have(text, sizeof text - 1, "cpuset"));
    assert_false(words_have(text, sizeof text - 2, "cpuset"));
    assert_false(words_have(text, sizeof text - 1, "mem"));
    assert_false(words_have(text, sizeof text - 1, "Cpu"));
    assert_false(words_have(text, sizeof text - 1, ""));
    assert_true(words_have("", 0, ""));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_has),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
