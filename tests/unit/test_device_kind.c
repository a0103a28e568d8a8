/*
 * test_device_kind.c: names of devices, and that the table of kinds is complete.
 */
#include "compute/worker/device_kind.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

static void names(void **state) {
    (void)state;
    static const struct {
        const char *name, *kind;
        int index;
    } good[] = {{"cpu", "cpu", 0},
                {"cpu:0", "cpu", 0},
                {"cuda", "cuda", 0},
                {"cuda:12", "cuda", 12},
                {"cuda:999", "cuda", 999}};
    static const char *const bad[] = {"",        "c",      "cud",      "cudax",
                                      "cuda:",   "cuda:x", "cuda:1x",  "cuda:1000",
                                      "cuda:-1", "CUDA:0", "cuda:0:0", "auto"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        int index = -1;
        const struct device_kind *kind = device_kind_find(good[i].name, &index);
        assert_non_null(kind);
        assert_string_equal(kind->name, good[i].kind);
        assert_int_equal(index, good[i].index);
    }
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        int index = -1;
        assert_null(device_kind_find(bad[i], &index));
        assert_int_equal(index, -1);
    }
}

static void matches(void **state) {
    (void)state;
    assert_true(device_kind_matches("cuda:1", ""));
    assert_true(device_kind_matches("cuda:1", "cuda"));
    assert_true(device_kind_matches("cuda:1", "cuda:1"));
    assert_false(device_kind_matches("cuda:1", "cuda:0"));
    assert_false(device_kind_matches("cuda:12", "cuda:1"));
    assert_false(device_kind_matches("cpu:0", "cuda"));
}

/* Each kind has either code linked in or a module, and says how many jobs it runs at a time; one
   and only one stands in where nothing better is there. */
static void table(void **state) {
    (void)state;
    int fallbacks = 0;
    for (const struct device_kind *kind = device_kinds; kind->name != NULL; kind++) {
        assert_true((kind->builtin != NULL) != (kind->module != NULL));
        assert_non_null(kind->title);
        for (int cores = 1; cores < 200; cores++) {
            assert_in_range(kind->slots(cores), 1, 64);
        }
        assert_ptr_equal(device_kind_find(kind->name, NULL), kind);
        fallbacks += kind->fallback;
    }
    assert_int_equal(fallbacks, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names),
        cmocka_unit_test(matches),
        cmocka_unit_test(table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
