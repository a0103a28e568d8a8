/*
 * test_status.c: the table of statuses is complete and consistent.
 */
#include "compute/core/status.h"

#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void every_row_is_complete(void **state) {
    (void)state;
    for (int i = 0; i < KILN_STATUS_COUNT; i++) {
        const struct status_row *row = status_row((enum kiln_status)i);
        assert_true(row->http == 200 || (row->http >= 400 && row->http < 600));
        assert_true(strlen(row->title) > 5);
        assert_true(strlen(row->help) > 40);
        assert_int_equal(row->help[strlen(row->help) - 1], '.');
        for (const char *c = row->slug; *c; c++) {
            assert_true(islower((unsigned char)*c) || *c == '-');
        }
        assert_ptr_equal(status_by_slug(row->slug), row); /* so slugs are unique too */
    }
    assert_string_equal(status_row(KILN_NO_DEVICE)->symbol, "NO_DEVICE");
}

static void strange_values_are_internal_errors(void **state) {
    (void)state;
    const struct status_row *internal = status_row(KILN_INTERNAL);
    assert_int_equal(internal->http, 500);
    assert_ptr_equal(status_row((enum kiln_status)KILN_STATUS_COUNT), internal);
    assert_ptr_equal(status_row((enum kiln_status) - 1), internal);
    assert_ptr_equal(status_row((enum kiln_status)INT32_MAX), internal);
}

static void unknown_slugs_are_not_found(void **state) {
    (void)state;
    assert_null(status_by_slug(""));
    assert_null(status_by_slug("no-such-slug"));
    assert_null(status_by_slug("INTERNAL"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_is_complete),
        cmocka_unit_test(strange_values_are_internal_errors),
        cmocka_unit_test(unknown_slugs_are_not_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
