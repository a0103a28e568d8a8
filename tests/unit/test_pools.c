/*
 * test_pools.c: what a stream of the CPU backend keeps between jobs, and what it gives back.
 */
#include "kernels/cpu/device/memory.h"
#include "kernels/cpu/device/stream.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#define MIB ((size_t)1 << 20)

struct rig {
    struct device *device;
    struct stream *stream;
};

static void rig_open(struct rig *rig, uint64_t max_bytes) {
    const struct device_options options = {.threads = 1, .max_bytes = max_bytes};
    char why[128];
    assert_int_equal(cpu_backend.open(0, &options, &rig->device, why, sizeof why), KILN_OK);
    assert_int_equal(cpu_backend.stream_create(rig->device, &rig->stream), KILN_OK);
}

static void rig_close(struct rig *rig) {
    cpu_backend.stream_destroy(rig->stream);
    assert_int_equal(rig->device->account.held, 0);
    cpu_backend.close(rig->device);
}

/* A job that takes `count` pieces of scratch; nothing of them is touched. */
static void pieces_take(struct rig *rig, int count, size_t bytes) {
    struct timing timing = {0};
    assert_int_equal(cpu_backend.begin(rig->stream, NULL), KILN_OK);
    for (int i = 0; i < count; i++) {
        assert_non_null(cpu_backend.reserve(rig->stream, bytes));
    }
    assert_int_equal(cpu_backend.finish(rig->stream, &timing), KILN_OK);
}

static size_t held(const struct rig *rig) {
    return rig->device->account.held;
}

/* From one job to the next, in one piece; until there has been none for a while. */
static void a_hot_stream_keeps_what_it_needs(void **state) {
    struct rig rig;
    (void)state;
    rig_open(&rig, 0);
    rig.device->account.limit = 4096 * MIB; /* whatever this machine has */
    pieces_take(&rig, 3, 40 * MIB);
    assert_true(cpu_backend.rest(rig.stream, false));
    size_t kept = held(&rig);
    assert_in_range(kept, 120 * MIB, 132 * MIB);
    for (int i = 0; i < 3; i++) {
        const void *chunk = rig.stream->scratch.newest;
        pieces_take(&rig, 3, 40 * MIB);
        assert_ptr_equal(rig.stream->scratch.newest, chunk); /* nothing was asked for */
        assert_true(cpu_backend.rest(rig.stream, false));
        assert_int_equal(held(&rig), kept);
    }
    assert_false(cpu_backend.rest(rig.stream, true));
    assert_int_equal(held(&rig), 0);
    pieces_take(&rig, 1, MIB);
    assert_false(cpu_backend.rest(rig.stream, false)); /* too little to speak of */
    assert_true(held(&rig) > 0);
    assert_false(cpu_backend.rest(rig.stream, true));
    assert_true(held(&rig) > 0);
    rig_close(&rig);
}

/* One very large job leaves nothing behind, nor do several streams together. */
static void a_large_job_leaves_nothing(void **state) {
    struct stream *other;
    struct rig rig;
    (void)state;
    rig_open(&rig, 0);
    rig.device->account.limit = 4096 * MIB;
    pieces_take(&rig, 1, MEMORY_KEEP + MIB);
    assert_false(cpu_backend.rest(rig.stream, false));
    assert_int_equal(held(&rig), 0);
    rig.device->account.limit = 400 * MIB;
    pieces_take(&rig, 1, 90 * MIB);
    assert_true(cpu_backend.rest(rig.stream, false));
    assert_int_equal(cpu_backend.stream_create(rig.device, &other), KILN_OK);
    struct rig beside = {rig.device, other};
    pieces_take(&beside, 1, 90 * MIB);
    assert_false(cpu_backend.rest(other, false)); /* a quarter is exceeded */
    assert_in_range(held(&rig), 90 * MIB, 94 * MIB);
    cpu_backend.stream_destroy(other);
    rig_close(&rig);
}

/* --device-memory, or the machine's, whichever is less. */
static void the_limit_is_the_smallest(void **state) {
    uint64_t total = cpu_memory_total();
    struct rig rig;
    (void)state;
    assert_true(total > 0);
    rig_open(&rig, 0);
    assert_int_equal(rig.device->account.limit, total);
    rig_close(&rig);
    rig_open(&rig, 64 * MIB);
    assert_int_equal(rig.device->account.limit, 64 * MIB);
    assert_int_equal(cpu_backend.begin(rig.stream, NULL), KILN_OK);
    assert_null(cpu_backend.reserve(rig.stream, 65 * MIB));
    rig_close(&rig);
    rig_open(&rig, UINT64_MAX);
    assert_int_equal(rig.device->account.limit, total);
    rig_close(&rig);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hot_stream_keeps_what_it_needs),
        cmocka_unit_test(a_large_job_leaves_nothing),
        cmocka_unit_test(the_limit_is_the_smallest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
