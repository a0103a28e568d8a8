/*
 * Commands on their way: those of a kind travel with the inputs that it has and no others.
 */
#include "compute/worker/command.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 3

static void commands_fill(struct command *commands, const char *name) {
    const struct job_type *type = job_type_find(name);
    memset(commands, 0, GROUP_MAX * sizeof *commands);
    for (size_t i = 0; i < COUNT; i++) {
        commands[i].type = job_type_index(type);
        commands[i].result_size = 100 + i;
        memset(commands[i].params, (int)i + 1, sizeof commands[i].params);
        for (size_t j = 0; j < job_type_inputs(type); j++) {
            commands[i].inputs[j].offset = 1000 * i + j;
        }
    }
}

static void test_round(void **state) {
    static const char *const names[] = {"mandelbrot", "laplacian", "lombscargle"};
    static const size_t inputs[] = {0, 1, 1};
    static struct command before[GROUP_MAX], after[GROUP_MAX];
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        commands_fill(before, names[i]);
        memcpy(after, before, sizeof before);
        size_t size = commands_pack(after, COUNT);
        assert_int_equal(job_type_inputs(job_type_find(names[i])), inputs[i]);
        assert_int_equal(
            size, COUNT * (offsetof(struct command, inputs) + inputs[i] * sizeof(struct input)));
        memset((char *)after + size, 0xA5, sizeof after - size);
        assert_int_equal(commands_unpack(after, size), COUNT);
        for (size_t j = 0; j < COUNT; j++) {
            assert_memory_equal(&after[j], &before[j], size / COUNT);
        }
    }
}

static void test_broken(void **state) {
    static struct command commands[GROUP_MAX];
    (void)state;
    commands_fill(commands, "laplacian");
    size_t size = commands_pack(commands, COUNT);
    assert_int_equal(commands_unpack(commands, 0), 0);
    assert_int_equal(commands_unpack(commands, 3), 0);
    assert_int_equal(commands_unpack(commands, size / COUNT - 1), 0);
    assert_int_equal(commands_unpack(commands, size / COUNT + 1), 0);
    assert_int_equal(commands_unpack(commands, size / COUNT * (GROUP_MAX + 1)), 0);
    commands_fill(commands, "laplacian");
    commands[0].type = 4711; /* its own answer says so: it has no inputs */
    assert_int_equal(commands_unpack(commands, offsetof(struct command, inputs)), 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round),
        cmocka_unit_test(test_broken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
