/*
 * test_dispatch_loss.c: workers that die, and what becomes of their jobs and of the device
 * (dispatch_rig.h).
 */
#include "dispatch_rig.h"

#define MIB   (1u << 20)
#define ARENA (32 * MIB)

static void killed_workers_cost_no_answer(void **state) {
    enum { COUNT = 300, ROUNDS = 3 };
    struct rig rig;
    static struct call calls[COUNT];
    (void)state;
    rig_open(&rig, 4, COUNT, 120, ARENA);
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < COUNT; i++) {
            call_init(&calls[i], DEED_FILL, round * COUNT + i, 20000);
            call_submit(&rig, &calls[i]);
        }
        assert_int_equal(call_wait(&calls[COUNT / 10]), KILN_OK);
        rig_kill_worker(&rig);
        for (int i = 0; i < COUNT; i++) {
            call_expect_filled(&rig, &calls[i]);
        }
    }
    assert_true(rig_look(&rig, "cpu:0").respawns >= ROUNDS);
    rig_close(&rig);
}

/* Closed loops of several clients, as HTTP threads are, with a worker killed under them. */
struct client {
    struct rig *rig;
    int64_t seed;
    int wrong;
};

static void *client_run(void *argument) {
    enum { JOBS = 150, BYTES = 6000 };
    struct client *client = argument;
    for (int i = 0; i < JOBS; i++) {
        struct call call;
        call_init(&call, DEED_FILL, client->seed + i, BYTES);
        call_share(client->rig, &call);
        client->wrong += dispatch_submit(client->rig->dispatch, &call.job) != KILN_OK ||
                         call_wait(&call) != KILN_OK || call.job.result_size != BYTES;
        const uint8_t *bytes = arena_at(client->rig->arena, call.job.result.offset);
        for (int64_t j = 0; call.job.result_size && j < BYTES; j++) {
            client->wrong += bytes[j] != trouble_byte(client->seed + i, j);
        }
        call_finish(client->rig, &call);
    }
    return NULL;
}

static void connections_on_many_threads_are_served(void **state) {
    enum { CLIENTS = 6 };
    struct rig rig;
    struct client clients[CLIENTS];
    pthread_t threads[CLIENTS];
    struct dispatch_stats stats;
    (void)state;
    rig_open(&rig, 3, CLIENTS, 120, ARENA);
    for (int i = 0; i < CLIENTS; i++) {
        clients[i] = (struct client){.rig = &rig, .seed = 1000 * i};
        assert_int_equal(pthread_create(&threads[i], NULL, client_run, &clients[i]), 0);
    }
    do {
        sleep_ms(1);
        dispatch_stats(rig.dispatch, &stats);
    } while (stats.completed < 100);
    rig_kill_worker(&rig);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(clients[i].wrong, 0);
    }
    dispatch_stats(rig.dispatch, &stats);
    assert_int_equal(stats.completed, stats.submitted);
    assert_int_equal(stats.failed + stats.refused + stats.cancelled, 0);
    assert_int_equal(stats.running + stats.queued, 0);
    rig_close(&rig);
}

static void a_job_whose_worker_died_runs_again(void **state) {
    struct rig rig;
    struct call call;
    struct dispatch_stats stats;
    (void)state;
    rig_open(&rig, 2, 4, 60, ARENA);
    call_init(&call, DEED_DIE_ONCE, 3, 9000);
    struct trouble_shared *shared = call_share(&rig, &call);
    call_submit(&rig, &call);
    assert_int_equal(call_wait(&call), KILN_OK);
    assert_int_equal(atomic_load(&shared->tries), 2);
    assert_int_equal(call.job.attempt, 1);
    dispatch_stats(rig.dispatch, &stats);
    assert_int_equal(stats.retried, 1);
    call_expect_filled(&rig, &call);
    rig_close(&rig);
}

/* One that kills every worker and one that faults, with innocents before, beside and after. */
static void only_the_guilty_fails(void **state) {
    enum { COUNT = 40 };
    static const enum deed deeds[] = {DEED_DIE, DEED_FAULT};
    struct rig rig;
    struct call guilty, calls[COUNT];
    (void)state;
    rig_open(&rig, 3, 100, 120, ARENA);
    for (size_t k = 0; k < sizeof deeds / sizeof *deeds; k++) {
        call_init(&guilty, deeds[k], 1, 4096);
        struct trouble_shared *shared = call_share(&rig, &guilty);
        for (int i = 0; i < COUNT; i++) {
            if (i == COUNT / 4) {
                call_submit(&rig, &guilty);
            }
            call_init(&calls[i], DEED_FILL, i, 30000);
            call_submit(&rig, &calls[i]);
        }
        assert_int_equal(call_wait(&guilty), KILN_DEVICE_FAULT);
        assert_int_equal(atomic_load(&shared->tries), 2);
        assert_non_null(strstr(guilty.job.detail, "cpu:0"));
        if (deeds[k] == DEED_FAULT) {
            assert_non_null(strstr(guilty.job.detail, "illegal address"));
        }
        for (int i = 0; i < COUNT; i++) {
            call_expect_filled(&rig, &calls[i]);
        }
        call_finish(&rig, &guilty);
    }
    rig_close(&rig);
}

/* Two suspects that wait at gates must never be in the worker at the same time. */
static void suspects_run_alone(void **state) {
    struct rig rig;
    struct call calls[3];
    struct trouble_shared *gates[3];
    (void)state;
    rig_open(&rig, 3, 10, 60, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    for (int i = 0; i < 2; i++) {
        call_init(&calls[i], DEED_GATE, i, 100);
        gates[i] = call_share(&rig, &calls[i]);
        call_submit(&rig, &calls[i]);
        rig_wait_begun(gates[i]);
    }
    rig_kill_worker(&rig);
    call_init(&calls[2], DEED_FILL, 2, 100); /* an innocent behind them */
    call_submit(&rig, &calls[2]);
    while (atomic_load(&gates[0]->tries) + atomic_load(&gates[1]->tries) < 3) {
        sleep_ms(1);
    }
    sleep_ms(50); /* long enough for a second one to be sent, were that allowed */
    assert_int_equal(atomic_load(&gates[0]->tries), 2);
    assert_int_equal(atomic_load(&gates[1]->tries), 1);
    assert_int_equal(rig_look(&rig, "cpu:0").running, 1);
    atomic_store(&gates[0]->open, 1);
    atomic_store(&gates[1]->open, 1);
    for (int i = 0; i < 3; i++) {
        call_expect_filled(&rig, &calls[i]);
    }
    rig_close(&rig);
}

/* Workers that die without any job again and again: the device is given up for now, and jobs fail
   instead of waiting until their deadline. */
static void a_device_that_keeps_dying_is_given_up(void **state) {
    struct rig rig;
    struct call call;
    (void)state;
    rig_open(&rig, 1, 16, 600, ARENA);
    for (int i = 0; i < 5; i++) {
        rig_wait_state(&rig, "cpu:0", DEVICE_READY);
        rig_kill_worker(&rig);
    }
    assert_int_equal(rig_look(&rig, "cpu:0").state, DEVICE_UNAVAILABLE);
    assert_non_null(strstr(rig_look(&rig, "cpu:0").reason, "died 5 times"));
    call_init(&call, DEED_FILL, 0, 100);
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_NO_DEVICE);
    assert_true(call.job.detail[0] != '\0');
    rig_close(&rig);
}

/* Jobs that kill two workers each are to blame themselves: the device stays. */
static void jobs_that_keep_killing_do_not_cost_the_device(void **state) {
    struct rig rig;
    struct call calls[8];
    (void)state;
    rig_open(&rig, 1, 16, 600, ARENA);
    for (int i = 0; i < 8; i++) {
        call_init(&calls[i], DEED_DIE, i, 100);
        call_submit(&rig, &calls[i]);
    }
    for (int i = 0; i < 8; i++) {
        assert_int_equal(call_wait(&calls[i]), KILN_DEVICE_FAULT);
        assert_true(calls[i].job.detail[0] != '\0');
    }
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    rig_close(&rig);
}

int main(int count, char **arguments) {
    int role = rig_role(count, arguments);
    if (role >= 0) {
        return role;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(killed_workers_cost_no_answer),
        cmocka_unit_test(connections_on_many_threads_are_served),
        cmocka_unit_test(a_job_whose_worker_died_runs_again),
        cmocka_unit_test(only_the_guilty_fails),
        cmocka_unit_test(suspects_run_alone),
        cmocka_unit_test(a_device_that_keeps_dying_is_given_up),
        cmocka_unit_test(jobs_that_keep_killing_do_not_cost_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
