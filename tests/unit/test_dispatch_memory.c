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
        call_init(waiting[i], DEED_FILL, i, 330 * KIB);
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

static void call_holder(struct call *call, uint64_t number) {
    call->job.holder = (struct holder){{number, 1}, "a client"};
}

/* Input and result together have to leave the arena's reserve, whatever else it holds now: what
   does not is refused at once and told the figures. Just below, it runs. */
static void what_can_never_fit_is_refused_at_once(void **state) {
    struct rig rig;
    struct call call;
    (void)state;
    rig_open(&rig, 1, 16, 60, 1 << 20);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    int64_t most = (int64_t)arena_most(rig.arena);
    struct arena_stats stats;
    arena_stats(rig.arena, &stats); /* the daemon's own blocks */
    assert_true(stats.used > 0);
    call_init(&call, DEED_FILL, 1, most - (int64_t)stats.used + 1);
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_JOB_TOO_LARGE);
    assert_non_null(strstr(call.job.detail, "--arena"));
    for (uint64_t holder = 0; holder < 2; holder++) {
        call_init(&call, DEED_FILL, 1, most - (int64_t)stats.used);
        call_holder(&call, holder);
        call_submit(&rig, &call);
        call_expect_filled(&rig, &call);
    }
    call_init(&call, DEED_FILL, 1, most - (int64_t)stats.used - 4096 + 1);
    call_share(&rig, &call);
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_JOB_TOO_LARGE);
    call.job.plan.result_bytes--;
    struct trouble_params params = {.deed = DEED_FILL, .bytes = most - (int64_t)stats.used - 4096};
    memcpy(call.job.params, &params, sizeof params);
    call_submit(&rig, &call);
    call_expect_filled(&rig, &call);
    rig_close(&rig);
}

/* An input in the middle leaves no piece that is long enough on either side. */
static void a_result_that_cannot_lie_beside_its_input(void **state) {
    struct rig rig;
    struct call call;
    struct block before;
    (void)state;
    rig_open(&rig, 1, 16, 60, 1 << 20);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    assert_int_equal(arena_take(rig.arena, 480 * KIB, &before), KILN_OK);
    call_init(&call, DEED_FILL, 1, 700 * KIB);
    assert_int_equal(arena_take(rig.arena, 80 * KIB, &call.job.body), KILN_OK);
    arena_give(rig.arena, &before);
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_NO_MEMORY);
    assert_non_null(strstr(call.job.detail, "beside the input"));
    call_finish(&rig, &call);
    rig_close(&rig);
}

/* A client that does not take its result holds the room that the next large job needs. Smaller ones
   behind that, its own and others', go past. */
static void what_waits_for_room_stops_nobody(void **state) {
    struct rig rig;
    struct call unread, large, small[4];
    struct dispatch_stats stats;
    (void)state;
    rig_open(&rig, 1, 16, 60, 1 << 20);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    call_init(&unread, DEED_FILL, 1, 500 * KIB);
    call_holder(&unread, 1);
    call_submit(&rig, &unread);
    assert_int_equal(call_wait(&unread), KILN_OK); /* and is not given back */
    call_init(&large, DEED_FILL, 2, 600 * KIB);
    call_holder(&large, 2);
    call_submit(&rig, &large);
    for (int i = 0; i < 4; i++) {
        call_init(&small[i], DEED_FILL, 10 + i, 100 * KIB);
        call_holder(&small[i], 2 + (uint64_t)i % 2);
        call_submit(&rig, &small[i]);
        call_expect_filled(&rig, &small[i]);
    }
    dispatch_stats(rig.dispatch, &stats);
    assert_int_equal(stats.queued, 1);
    assert_false(large.done);
    call_finish(&rig, &unread);
    call_expect_filled(&rig, &large);
    rig_close(&rig);
}

/* One client's unread results stop its own next ones and no other's. */
static void a_client_that_has_its_share_waits_alone(void **state) {
    enum { MOST = 24, QUEUE = 64 };
    struct rig rig;
    struct call held[MOST], other;
    struct dispatch_stats stats;
    int done = 0;
    (void)state;
    rig_open(&rig, 1, QUEUE, 60, 1 << 20);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    for (int i = 0; i < MOST; i++) {
        call_init(&held[i], DEED_FILL, i, 60 * KIB);
        call_holder(&held[i], 1);
        call_submit(&rig, &held[i]);
    }
    call_init(&other, DEED_FILL, 99, 60 * KIB);
    call_holder(&other, 2);
    call_submit(&rig, &other);
    call_expect_filled(&rig, &other);
    dispatch_stats(rig.dispatch, &stats);
    assert_int_equal(stats.running, 0);
    done = (int)stats.completed - 1;
    assert_in_range(done, 9, 11); /* two thirds of 17 */
    assert_int_equal(stats.queued, MOST - done);
    for (int i = 0; i < MOST; i++) { /* as they are taken, the others follow */
        call_expect_filled(&rig, &held[i]);
    }
    rig_close(&rig);
}

/* In a full queue, jobs that wait for room leave half of it to those that wait for the device. */
static void waiting_for_room_leaves_half_the_queue(void **state) {
    enum { QUEUE = 8 };
    struct rig rig;
    struct call unread, gate, held[QUEUE], another, other;
    struct dispatch_stats stats;
    (void)state;
    rig_open(&rig, 1, QUEUE, 60, 1 << 20);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    call_init(&unread, DEED_FILL, 1, 500 * KIB);
    call_holder(&unread, 1);
    call_submit(&rig, &unread);
    assert_int_equal(call_wait(&unread), KILN_OK);
    for (int i = 0; i < QUEUE; i++) {
        call_init(&held[i], DEED_FILL, i, 300 * KIB);
        call_holder(&held[i], 1);
        call_submit(&rig, &held[i]);
    }
    dispatch_stats(rig.dispatch, &stats);
    assert_int_equal(stats.queued, QUEUE);
    call_init(&another, DEED_FILL, 2, 300 * KIB); /* would wait for room too */
    call_holder(&another, 1);
    assert_int_equal(dispatch_submit(rig.dispatch, &another.job), KILN_BUSY);
    call_init(&gate, DEED_GATE, 1, 5000);
    struct trouble_shared *shared = call_share(&rig, &gate);
    call_submit(&rig, &gate);
    rig_wait_begun(shared);
    call_init(&other, DEED_FILL, 2, 5000); /* waits for the device */
    call_holder(&other, 2);
    call_submit(&rig, &other);
    dispatch_stats(rig.dispatch, &stats);
    assert_int_equal(stats.queued, QUEUE);
    assert_int_equal(call_wait(&held[QUEUE - 1]), KILN_NO_MEMORY); /* the youngest gave way */
    call_finish(&rig, &held[QUEUE - 1]);
    atomic_store(&shared->open, 1);
    call_expect_filled(&rig, &gate);
    call_expect_filled(&rig, &other);
    call_finish(&rig, &unread);
    for (int i = 0; i < QUEUE - 1; i++) {
        call_expect_filled(&rig, &held[i]);
    }
    rig_close(&rig);
}

/* Not a page is left, and the worker dies: the next one's canary needs none of it. */
static void a_full_arena_leaves_devices_ready(void **state) {
    struct rig rig;
    struct call call;
    struct block blocks[512];
    char why[128];
    int count = 0;
    (void)state;
    rig_open(&rig, 1, 16, 60, 1 << 20);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    while (arena_take(rig.arena, 1, &blocks[count]) == KILN_OK) {
        count++;
    }
    rig_kill_worker(&rig);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    assert_true(dispatch_ready(rig.dispatch, why, sizeof why));
    while (count > 0) {
        arena_give(rig.arena, &blocks[--count]);
    }
    call_init(&call, DEED_FILL, 1, 5000);
    call_submit(&rig, &call);
    call_expect_filled(&rig, &call);
    rig_close(&rig);
}

/* The answer "no memory" comes while the dispatcher ends: the job is not queued again. Nobody turns
   it, so that the answer is still to be read then. */
static void a_shortage_at_the_end_is_the_end(void **state) {
    struct rig rig;
    struct call call;
    (void)state;
    const struct dispatch_options options = {
        .slots = 1, .queue = 16, .deadline_s = 60, .driven = true};
    rig_open_with(&rig, options, 1 << 20);
    while (rig_look(&rig, "cpu:0").state != DEVICE_READY) {
        dispatch_turn(rig.dispatch);
        sleep_ms(1);
    }
    call_init(&call, DEED_SHORT, 1000, 5000);
    struct trouble_shared *shared = call_share(&rig, &call);
    call_submit(&rig, &call);
    rig_wait_begun(shared);
    sleep_ms(100); /* its answer follows; later, it would find the worker gone */
    dispatch_destroy(rig.dispatch);
    assert_true(call.done);
    assert_int_equal(call.job.status, KILN_DRAINING);
    call_finish(&rig, &call);
    arena_destroy(rig.arena);
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
        cmocka_unit_test(what_can_never_fit_is_refused_at_once),
        cmocka_unit_test(a_result_that_cannot_lie_beside_its_input),
        cmocka_unit_test(what_waits_for_room_stops_nobody),
        cmocka_unit_test(a_client_that_has_its_share_waits_alone),
        cmocka_unit_test(waiting_for_room_leaves_half_the_queue),
        cmocka_unit_test(a_full_arena_leaves_devices_ready),
        cmocka_unit_test(a_shortage_at_the_end_is_the_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
