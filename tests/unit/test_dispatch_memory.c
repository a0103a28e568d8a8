/*
 * test_dispatch_memory.c: what waits for memory, and what is refused, with real worker processes on
 * the CPU (dispatch_rig.h).
 */
#include "dispatch_rig.h"

#define KIB   1024
#define ARENA (32u << 20)

/* A call that takes `bytes` of device memory. */
static void call_sized(struct call *call, enum deed deed, int64_t seed, uint64_t bytes) {
    call_init(call, deed, seed, 5000);
    call->job.plan.device_bytes = bytes;
}

static void what_no_device_can_hold_is_refused(void **state) {
    struct rig rig;
    struct call call;
    (void)state;
    const struct dispatch_options options = {
        .slots = 2, .queue = 16, .deadline_s = 60, .device_bytes = 1 << 20};
    rig_open_with(&rig, options, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    call_sized(&call, DEED_FILL, 1, (1 << 20) + 1);
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_JOB_TOO_LARGE);
    assert_non_null(strstr(call.job.detail, "cpu:0"));
    assert_int_equal(call.calls, 0);
    call_sized(&call, DEED_FILL, 1, 1 << 20);
    call_submit(&rig, &call);
    call_expect_filled(&rig, &call);
    rig_close(&rig);
}

/* Without a limit of ours it is the machine's memory. */
static void the_device_says_how_much_it_has(void **state) {
    struct rig rig;
    struct call call;
    (void)state;
    rig_open(&rig, 1, 16, 60, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    call_sized(&call, DEED_FILL, 1, UINT64_C(1) << 60);
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_JOB_TOO_LARGE);
    rig_close(&rig);
}

/* Two that do not fit beside each other run one after the other, though there is a slot; what fits
   goes in between. */
static void what_does_not_fit_now_waits(void **state) {
    struct rig rig;
    struct call first, second, third;
    struct dispatch_stats stats;
    (void)state;
    const struct dispatch_options options = {
        .slots = 2, .queue = 16, .deadline_s = 60, .device_bytes = 1 << 20};
    rig_open_with(&rig, options, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    call_sized(&first, DEED_GATE, 1, 600 * KIB);
    struct trouble_shared *gate = call_share(&rig, &first);
    call_submit(&rig, &first);
    rig_wait_begun(gate);
    call_sized(&second, DEED_FILL, 2, 600 * KIB);
    call_submit(&rig, &second);
    call_sized(&third, DEED_FILL, 3, 400 * KIB);
    call_submit(&rig, &third);
    call_expect_filled(&rig, &third);
    dispatch_stats(rig.dispatch, &stats);
    assert_int_equal(stats.running, 1);
    assert_int_equal(stats.queued, 1);
    assert_false(second.done);
    atomic_store(&gate->open, 1);
    call_expect_filled(&rig, &first);
    call_expect_filled(&rig, &second);
    rig_close(&rig);
}

/* Other slots give back what they keep; after a try for each of them it is an error. */
static void a_shortage_is_tried_again(void **state) {
    struct rig rig;
    struct call passing, lasting;
    (void)state;
    rig_open(&rig, 2, 16, 60, ARENA);
    call_init(&passing, DEED_SHORT, 3, 5000);
    struct trouble_shared *shared = call_share(&rig, &passing);
    call_submit(&rig, &passing);
    assert_int_equal(call_wait(&passing), KILN_OK);
    assert_int_equal(atomic_load(&shared->tries), 4);
    call_finish(&rig, &passing);
    call_init(&lasting, DEED_SHORT, 1000, 5000);
    shared = call_share(&rig, &lasting);
    call_submit(&rig, &lasting);
    assert_int_equal(call_wait(&lasting), KILN_NO_MEMORY);
    assert_int_equal(atomic_load(&shared->tries), 4);
    assert_int_equal(lasting.job.attempt, 0); /* it is no suspect */
    call_finish(&rig, &lasting);
    rig_close(&rig);
}

/* The arena has room for one result at a time; the second job has an input and waits. */
static void inputs_wait_for_room(void **state) {
    struct rig rig;
    struct call first, second;
    (void)state;
    rig_open(&rig, 2, 16, 60, 1 << 20);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    call_init(&first, DEED_GATE, 1, 600 * KIB);
    struct trouble_shared *gate = call_share(&rig, &first);
    call_submit(&rig, &first);
    rig_wait_begun(gate);
    call_init(&second, DEED_FILL, 2, 600 * KIB);
    call_share(&rig, &second);
    call_submit(&rig, &second);
    struct dispatch_stats stats;
    dispatch_stats(rig.dispatch, &stats); /* the job itself is the dispatcher's now */
    assert_int_equal(stats.queued, 1);
    atomic_store(&gate->open, 1);
    call_expect_filled(&rig, &first);
    call_expect_filled(&rig, &second);
    rig_close(&rig);
}

/* Two inputs leave no room for either result: the younger one gives way. */
static void inputs_do_not_lock_each_other(void **state) {
    struct rig rig;
    struct call first, elder, younger;
    (void)state;
    rig_open(&rig, 1, 16, 60, 1 << 20);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    call_init(&first, DEED_GATE, 1, 5000);
    struct trouble_shared *gate = call_share(&rig, &first);
    call_submit(&rig, &first);
    rig_wait_begun(gate);
    struct call *const waiting[] = {&elder, &younger};
    for (int i = 0; i < 2; i++) {
        call_init(waiting[i], DEED_FILL, i, 500 * KIB);
        assert_int_equal(arena_take(rig.arena, 350 * KIB, &waiting[i]->job.body), KILN_OK);
        memset(arena_at(rig.arena, waiting[i]->job.body.offset), 0, 4096);
    }
    call_submit(&rig, &elder);
    call_submit(&rig, &younger);
    atomic_store(&gate->open, 1);
    call_expect_filled(&rig, &first);
    assert_int_equal(call_wait(&younger), KILN_NO_MEMORY);
    call_finish(&rig, &younger);
    call_expect_filled(&rig, &elder);
    rig_close(&rig);
}

/* Where nothing runs that could give room back, a job with an input is refused at once. */
static void nothing_to_wait_for(void **state) {
    struct rig rig;
    struct call call;
    struct block taken;
    (void)state;
    rig_open(&rig, 1, 16, 60, 1 << 20);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    assert_int_equal(arena_take(rig.arena, 700 * KIB, &taken), KILN_OK);
    call_init(&call, DEED_FILL, 1, 500 * KIB);
    call_share(&rig, &call);
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_NO_MEMORY);
    arena_give(rig.arena, &taken);
    call_submit(&rig, &call);
    call_expect_filled(&rig, &call);
    rig_close(&rig);
}

int main(int count, char **arguments) {
    int code = rig_role(count, arguments);
    if (code >= 0) {
        return code;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_no_device_can_hold_is_refused),
        cmocka_unit_test(the_device_says_how_much_it_has),
        cmocka_unit_test(what_does_not_fit_now_waits),
        cmocka_unit_test(a_shortage_is_tried_again),
        cmocka_unit_test(inputs_wait_for_room),
        cmocka_unit_test(inputs_do_not_lock_each_other),
        cmocka_unit_test(nothing_to_wait_for),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
