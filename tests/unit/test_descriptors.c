/*
 * test_descriptors.c: what is kept back of the limit of open files.
 */
#include "server/descriptors.h"
#include "server/http/connections/connections.h"

#include <setjmp.h>
#include <stdarg.h>
#include <unistd.h>

#include <cmocka.h>

/* Whatever the numbers: all connections, all that linger and all that is kept fit into the limit.
 */
static void everything_fits(void **state) {
    static const uint64_t limits[] = {0, 1, 16, 32, 64, 100, 256, 1024, 65536, 1048576};
    static const uint64_t wanted[] = {2, 100, 4096, 1000000};
    struct descriptors plan;
    (void)state;
    for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
        for (size_t j = 0; j < sizeof wanted / sizeof *wanted; j++) {
            for (uint64_t loops = 1; loops <= 64; loops *= 4) {
                bool good = descriptors_plan(limits[i], 12, loops, 2, wanted[j], &plan);
                assert_int_equal(good, limits[i] >= plan.kept + 2);
                assert_true(plan.kept > 12 + loops + 2 * 3);
                if (good) {
                    assert_true(plan.connections >= 2 && plan.connections <= wanted[j]);
                    assert_true(plan.lingers <= CLIENT_LINGERS);
                    assert_true(plan.kept + plan.connections + plan.lingers <= limits[i]);
                }
            }
        }
    }
}

static void plenty_takes_nothing_away(void **state) {
    struct descriptors plan;
    (void)state;
    assert_true(descriptors_plan(65536, 20, 4, 8, 4096, &plan));
    assert_int_equal(plan.connections, 4096);
    assert_int_equal(plan.lingers, CLIENT_LINGERS);
}

static void open_ones_are_counted(void **state) {
    uint64_t before = descriptors_open();
    int fd = dup(STDERR_FILENO);
    (void)state;
    assert_true(fd >= 0);
    assert_int_equal(descriptors_open(), before + 1);
    close(fd);
    assert_int_equal(descriptors_open(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_fits),
        cmocka_unit_test(plenty_takes_nothing_away),
        cmocka_unit_test(open_ones_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
