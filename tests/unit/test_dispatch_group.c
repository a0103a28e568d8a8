/*
 * test_dispatch_group.c: jobs that have waited and run together (compute/dispatch/queue/group.c).
 *
 * One slot is held by a job at a gate while others queue up; then the gate opens. On a CPU nothing
 * is gathered unless asked for, so the rig asks.
 */
#include "tests/unit/dispatch_rig.h"

#define ARENA ((size_t)16 << 20)

enum { GATHER = 5, BYTES = 5000 };

struct scene {
    struct rig rig;
    struct call holder;
    struct trouble_shared *gate;
};

static void scene_open(struct scene *scene, int gather) {
    const struct dispatch_options options = {
        .slots = 1, .queue = 64, .deadline_s = 60, .gather = gather};
    rig_open_with(&scene->rig, options, ARENA);
    rig_wait_state(&scene->rig, "cpu:0", DEVICE_READY);
    call_init(&scene->holder, DEED_GATE, 1, 10);
    scene->gate = call_share(&scene->rig, &scene->holder);
    call_submit(&scene->rig, &scene->holder);
    rig_wait_begun(scene->gate);
}

/* Lets what waits run; the holder has ended afterwards. */
static void scene_go(struct scene *scene) {
    atomic_store(&scene->gate->open, 1);
    call_expect_filled(&scene->rig, &scene->holder);
}

static uint64_t gathered(struct scene *scene) {
    return rig_look(&scene->rig, "cpu:0").gathered;
}

static void fills_submit(struct scene *scene, struct call *calls, int count) {
    for (int i = 0; i < count; i++) {
        call_init(&calls[i], DEED_FILL, 100 + i, BYTES);
        call_submit(&scene->rig, &calls[i]);
    }
}

static void fills_expect(struct scene *scene, struct call *calls, int count) {
    for (int i = 0; i < count; i++) {
        call_expect_filled(&scene->rig, &calls[i]);
    }
}

static void what_waits_runs_together(void **state) {
    struct scene scene;
    struct call calls[12];
    (void)state;
    scene_open(&scene, GATHER);
    fills_submit(&scene, calls, 12);
    scene_go(&scene);
    fills_expect(&scene, calls, 12);
    assert_int_equal(gathered(&scene), 12); /* 5, 5 and 2 */
    rig_close(&scene.rig);
}

static void nothing_is_gathered_unless_it_suits(void **state) {
    struct scene scene;
    struct call calls[6];
    (void)state;
    scene_open(&scene, 0);
    fills_submit(&scene, calls, 6);
    scene_go(&scene);
    fills_expect(&scene, calls, 6);
    assert_int_equal(gathered(&scene), 0);
    rig_close(&scene.rig);
}

/* Others in between keep their own slots, and nobody waits for company. */
static void only_alike_jobs_run_together(void **state) {
    struct scene scene;
    struct call calls[6];
    (void)state;
    scene_open(&scene, GATHER);
    for (int i = 0; i < 6; i++) {
        call_init(&calls[i], DEED_FILL, i, i % 2 ? BYTES : BYTES + i + 1);
        call_submit(&scene.rig, &calls[i]);
    }
    scene_go(&scene);
    fills_expect(&scene, calls, 6);
    assert_int_equal(gathered(&scene), 3);
    rig_close(&scene.rig);
}

/* The device is shared fairly: free slots get their part of what waits. */
static void free_slots_share_what_waits(void **state) {
    struct scene scene;
    struct call calls[4], second;
    (void)state;
    const struct dispatch_options options = {
        .slots = 2, .queue = 64, .deadline_s = 60, .gather = GATHER};
    rig_open_with(&scene.rig, options, ARENA);
    rig_wait_state(&scene.rig, "cpu:0", DEVICE_READY);
    call_init(&scene.holder, DEED_GATE, 1, 10);
    scene.gate = call_share(&scene.rig, &scene.holder);
    call_submit(&scene.rig, &scene.holder);
    call_init(&second, DEED_FILL, 2, 10);
    call_submit(&scene.rig, &second);
    call_expect_filled(&scene.rig, &second);
    fills_submit(&scene, calls, 4); /* one by one into the free slot */
    fills_expect(&scene, calls, 4);
    scene_go(&scene);
    assert_true(gathered(&scene) < 4);
    rig_close(&scene.rig);
}

/* One task that cannot run with others costs them nothing. */
static void a_group_that_fails_runs_one_by_one(void **state) {
    struct scene scene;
    struct call calls[5];
    (void)state;
    scene_open(&scene, GATHER);
    for (int i = 0; i < 5; i++) {
        call_init(&calls[i], i == 2 ? DEED_APART : i == 3 ? DEED_LIE : DEED_FILL, i, BYTES);
        call_submit(&scene.rig, &calls[i]);
    }
    scene_go(&scene);
    for (int i = 0; i < 5; i++) {
        if (i == 3) {
            assert_int_equal(call_wait(&calls[i]), KILN_INTERNAL);
            call_finish(&scene.rig, &calls[i]);
        } else {
            call_expect_filled(&scene.rig, &calls[i]);
        }
    }
    assert_int_equal(gathered(&scene), 0);
    assert_int_equal(rig_look(&scene.rig, "cpu:0").respawns, 0);
    rig_close(&scene.rig);
}

/* A result beyond its bound spoils no other one. */
static void a_lie_in_a_group_is_found(void **state) {
    struct scene scene;
    struct call calls[4];
    (void)state;
    scene_open(&scene, GATHER);
    for (int i = 0; i < 4; i++) {
        call_init(&calls[i], i == 1 ? DEED_LIE : DEED_FILL, i, BYTES);
        call_submit(&scene.rig, &calls[i]);
    }
    scene_go(&scene);
    assert_int_equal(call_wait(&calls[1]), KILN_INTERNAL);
    call_finish(&scene.rig, &calls[1]);
    call_expect_filled(&scene.rig, &calls[0]);
    fills_expect(&scene, calls + 2, 2);
    rig_close(&scene.rig);
}

/* All of a group are suspects once their worker has died; only the guilty one fails. */
static void a_death_is_the_guilty_ones_alone(void **state) {
    static const enum deed deeds[] = {DEED_FILL, DEED_DIE, DEED_FILL, DEED_FAULT, DEED_FILL};
    struct scene scene;
    struct call calls[5];
    (void)state;
    scene_open(&scene, GATHER);
    for (int i = 0; i < 5; i++) {
        call_init(&calls[i], deeds[i], i, BYTES);
        call_submit(&scene.rig, &calls[i]);
    }
    scene_go(&scene);
    for (int i = 0; i < 5; i++) {
        if (deeds[i] == DEED_FILL) {
            call_expect_filled(&scene.rig, &calls[i]);
        } else {
            assert_int_equal(call_wait(&calls[i]), KILN_DEVICE_FAULT);
            call_finish(&scene.rig, &calls[i]);
        }
    }
    rig_close(&scene.rig);
}

/* Cancelled while it waits, or too late: either way it ends once, and the others are whole. */
static void one_of_a_group_may_be_cancelled(void **state) {
    struct scene scene;
    struct call calls[6];
    (void)state;
    scene_open(&scene, GATHER);
    fills_submit(&scene, calls, 6);
    assert_int_equal(dispatch_cancel(scene.rig.dispatch, &calls[2].job.id), KILN_OK);
    scene_go(&scene);
    assert_int_equal(call_wait(&calls[2]), KILN_REVOKED);
    call_finish(&scene.rig, &calls[2]);
    fills_expect(&scene, calls, 2);
    fills_expect(&scene, calls + 3, 3);
    assert_int_equal(gathered(&scene), 5);
    rig_close(&scene.rig);
}

/* Real pictures: the same bytes together as alone. */
static void pictures_are_the_same_together(void **state) {
    static const char *const edges[] = {"-2.25", "-2", "-1.5", "-0.75", "0", "0.5"};
    enum { COUNT = 6 };
    struct scene scene;
    struct call alone[COUNT], together[COUNT];
    (void)state;
    scene_open(&scene, COUNT);
    for (int i = 0; i < COUNT; i++) {
        call_picture(&together[i], edges[i]);
        call_submit(&scene.rig, &together[i]);
    }
    scene_go(&scene);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(call_wait(&together[i]), KILN_OK);
    }
    assert_int_equal(gathered(&scene), COUNT);
    for (int i = 0; i < COUNT; i++) {
        call_picture(&alone[i], edges[i]);
        call_submit(&scene.rig, &alone[i]);
        assert_int_equal(call_wait(&alone[i]), KILN_OK);
        assert_int_equal(together[i].job.result_size, alone[i].job.result_size);
        assert_memory_equal(arena_at(scene.rig.arena, together[i].job.result.offset),
                            arena_at(scene.rig.arena, alone[i].job.result.offset),
                            alone[i].job.result_size);
        call_finish(&scene.rig, &together[i]);
        call_finish(&scene.rig, &alone[i]);
    }
    assert_int_equal(gathered(&scene), COUNT);
    rig_close(&scene.rig);
}

int main(int count, char **arguments) {
    int role = rig_role(count, arguments);
    if (role >= 0) {
        return role;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_runs_together),
        cmocka_unit_test(nothing_is_gathered_unless_it_suits),
        cmocka_unit_test(only_alike_jobs_run_together),
        cmocka_unit_test(free_slots_share_what_waits),
        cmocka_unit_test(a_group_that_fails_runs_one_by_one),
        cmocka_unit_test(a_lie_in_a_group_is_found),
        cmocka_unit_test(a_death_is_the_guilty_ones_alone),
        cmocka_unit_test(one_of_a_group_may_be_cancelled),
        cmocka_unit_test(pictures_are_the_same_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
