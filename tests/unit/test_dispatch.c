/*
 * test_dispatch.c: queue and supervision, with real worker processes on the CPU (dispatch_rig.h).
 */
#include "dispatch_rig.h"

#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/wait.h>

#define MIB   (1u << 20)
#define ARENA (32 * MIB)

/* ---- the good way ---- */

static void a_job_comes_back_with_result_and_timing(void **state) {
    struct rig rig;
    struct call call;
    (void)state;
    rig_open(&rig, 2, 16, 60, ARENA);
    call_init(&call, DEED_FILL, 7, 100000);
    call_submit(&rig, &call);
    assert_int_equal(call_wait(&call), KILN_OK);
    assert_string_equal(call.job.device_name, "cpu:0");
    assert_true(call.job.timing.total > 0);
    assert_true(call.job.timing.total >= call.job.timing.queue);
    assert_true(call.job.timing.encode > 0);
    assert_int_equal(call.job.result.size, 102400); /* trimmed to pages */
    call_expect_filled(&rig, &call);
    rig_close(&rig);
}

static void a_real_kind_gives_the_same_bytes_twice(void **state) {
    struct rig rig;
    struct call calls[2];
    (void)state;
    rig_open(&rig, 2, 16, 60, ARENA);
    for (int i = 0; i < 2; i++) {
        call_picture(&calls[i], "-2.25");
        call_submit(&rig, &calls[i]);
    }
    assert_int_equal(call_wait(&calls[0]), KILN_OK);
    assert_int_equal(call_wait(&calls[1]), KILN_OK);
    assert_true(calls[0].job.result_size > 64 * 48 * 4);
    assert_int_equal(calls[0].job.result_size, calls[1].job.result_size);
    const void *first = arena_at(rig.arena, calls[0].job.result.offset);
    assert_memory_equal(first, "\x93NUMPY", 6);
    assert_memory_equal(first, arena_at(rig.arena, calls[1].job.result.offset),
                        calls[0].job.result_size);
    call_finish(&rig, &calls[0]);
    call_finish(&rig, &calls[1]);
    rig_close(&rig);
}

/* ---- bounds ---- */

static void a_full_queue_refuses(void **state) {
    struct rig rig;
    struct call running, waiting[2], refused;
    struct dispatch_stats stats;
    (void)state;
    rig_open(&rig, 1, 2, 60, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    call_init(&running, DEED_GATE, 1, 10);
    struct trouble_shared *gate = call_share(&rig, &running);
    call_submit(&rig, &running);
    rig_wait_begun(gate);
    for (int i = 0; i < 2; i++) {
        call_init(&waiting[i], DEED_FILL, i, 5000);
        call_submit(&rig, &waiting[i]);
    }
    call_init(&refused, DEED_FILL, 9, 5000);
    assert_int_equal(dispatch_submit(rig.dispatch, &refused.job), KILN_BUSY);
    assert_int_equal(refused.job.result.size, 0);
    dispatch_stats(rig.dispatch, &stats);
    assert_int_equal(stats.queued, 2);
    assert_int_equal(stats.running, 1);
    assert_int_equal(stats.refused, 1);
    atomic_store(&gate->open, 1);
    call_expect_filled(&rig, &running);
    call_expect_filled(&rig, &waiting[0]);
    call_expect_filled(&rig, &waiting[1]);
    assert_int_equal(refused.calls, 0);
    rig_close(&rig);
}

static void a_result_larger_than_the_arena_is_refused(void **state) {
    struct rig rig;
    struct call call;
    (void)state;
    rig_open(&rig, 1, 2, 60, MIB);
    call_init(&call, DEED_FILL, 1, 2 * MIB);
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_JOB_TOO_LARGE);
    assert_true(call.job.detail[0] != '\0');
    rig_close(&rig);
}

/* More results than the arena holds at once: the rest waits until the first are given back. */
static void jobs_wait_for_memory(void **state) {
    enum { COUNT = 12 };
    struct rig rig;
    struct call calls[COUNT];
    (void)state;
    rig_open(&rig, 2, COUNT, 60, MIB);
    for (int i = 0; i < COUNT; i++) {
        call_init(&calls[i], DEED_FILL, i, 400000);
        call_submit(&rig, &calls[i]);
    }
    for (int i = 0; i < COUNT; i++) {
        call_expect_filled(&rig, &calls[i]);
    }
    rig_close(&rig);
}

static void a_lying_result_size_is_an_internal_error(void **state) {
    struct rig rig;
    struct call call;
    (void)state;
    rig_open(&rig, 1, 2, 60, ARENA);
    call_init(&call, DEED_LIE, 1, 4096);
    call_submit(&rig, &call);
    assert_int_equal(call_wait(&call), KILN_INTERNAL);
    assert_int_equal(call.job.result.size, 0);
    assert_int_equal(call.job.result_size, 0);
    rig_close(&rig);
}

/* ---- time ---- */

static void deadlines_end_running_and_waiting_jobs(void **state) {
    struct rig rig;
    struct call running, waiting, later;
    (void)state;
    rig_open(&rig, 1, 4, 0.5, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    struct look before = rig_look(&rig, "cpu:0");
    call_init(&running, DEED_GATE, 1, 100);
    call_share(&rig, &running);
    call_init(&waiting, DEED_FILL, 2, 100);
    call_submit(&rig, &running);
    call_submit(&rig, &waiting);
    assert_int_equal(call_wait(&running), KILN_DEADLINE);
    assert_int_equal(call_wait(&waiting), KILN_DEADLINE);
    assert_true(running.job.timing.total >= 500);
    call_finish(&rig, &running);
    call_finish(&rig, &waiting);
    /* It stopped when it was asked to: nobody had to die, and the slot is free again. */
    assert_int_equal(rig_look(&rig, "cpu:0").pid, before.pid);
    do {
        call_init(&later, DEED_FILL, 3, 100);
        call_submit(&rig, &later);
    } while (call_wait(&later) == KILN_DEADLINE);
    call_expect_filled(&rig, &later);
    rig_close(&rig);
}

static void a_job_that_does_not_stop_is_ended_with_its_worker(void **state) {
    struct rig rig;
    struct call stuck, innocent;
    (void)state;
    rig_open(&rig, 2, 4, 2, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    struct look before = rig_look(&rig, "cpu:0");
    call_init(&stuck, DEED_HANG, 1, 100);
    struct trouble_shared *shared = call_share(&rig, &stuck);
    call_submit(&rig, &stuck);
    rig_wait_begun(shared);
    /* Beside it when its worker is killed (2.5 s), with time left of its own (until 4.3 s). */
    sleep_ms(2300);
    call_init(&innocent, DEED_GATE, 2, 100);
    struct trouble_shared *gate = call_share(&rig, &innocent);
    call_submit(&rig, &innocent);
    assert_int_equal(call_wait(&stuck), KILN_DEADLINE);
    assert_int_equal(atomic_load(&shared->tries), 1);
    atomic_store(&gate->open, 1);
    enum kiln_status status = call_wait(&innocent);
    assert_true(status == KILN_OK || status == KILN_DEADLINE); /* the latter on a slow machine */
    assert_int_equal(innocent.job.attempt, 0);
    assert_int_not_equal(rig_look(&rig, "cpu:0").pid, before.pid);
    call_finish(&rig, &stuck);
    call_finish(&rig, &innocent);
    rig_close(&rig);
}

/* Holds on to the process: killed, it stops on its way out until the holder is gone.
   0 where that is not allowed. */
static pid_t holder_start(pid_t held) {
    int ends[2];
    char byte = 0;
    assert_int_equal(pipe(ends), 0);
    pid_t holder = fork();
    if (holder == 0) {
        if (ptrace(PTRACE_SEIZE, held, NULL, PTRACE_O_TRACEEXIT) == 0 &&
            write(ends[1], &byte, 1) == 1) {
            pause();
        }
        _exit(0);
    }
    close(ends[1]);
    bool holds = holder > 0 && read(ends[0], &byte, 1) == 1;
    close(ends[0]);
    if (holder > 0 && !holds) {
        waitpid(holder, NULL, 0);
    }
    return holds ? holder : 0;
}

static bool lacking; /* something that a test needs is not here: the program's exit code is 77 */

/* A process that uses a GPU may take long to end. Who waits for its job does not wait for that. */
static void an_expired_job_ends_before_its_worker_does(void **state) {
    struct rig rig;
    struct call stuck;
    (void)state;
    rig_open(&rig, 1, 4, 1, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    pid_t worker = rig_look(&rig, "cpu:0").pid;
    pid_t holder = holder_start(worker);
    if (holder == 0) {
        print_message("no process may be traced here: skipped\n");
        rig_close(&rig);
        lacking = true;
        skip();
    }
    call_init(&stuck, DEED_HANG, 1, 100);
    call_share(&rig, &stuck);
    uint64_t began = clock_ns();
    call_submit(&rig, &stuck);
    assert_int_equal(call_wait(&stuck), KILN_DEADLINE);
    print_message("  answered %.3f s after the deadline of 1 s, before its worker had ended\n",
                  (double)(clock_ns() - began) * 1e-9 - 1);
    struct look look = rig_look(&rig, "cpu:0");
    assert_int_equal(look.pid, worker); /* not gone yet */
    assert_int_equal(look.state, DEVICE_RESTARTING);
    kill(holder, SIGKILL);
    waitpid(holder, NULL, 0);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    call_finish(&rig, &stuck);
    rig_close(&rig); /* and its blocks were given back */
}

static void a_hang_up_cancels_running_and_waiting_jobs(void **state) {
    struct rig rig;
    struct call calls[2], after;
    int clients[2][2];
    struct dispatch_stats stats;
    (void)state;
    rig_open(&rig, 1, 4, 60, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, clients[i]), 0);
        call_init(&calls[i], DEED_GATE, i, 100);
        call_share(&rig, &calls[i]);
        calls[i].job.watch_fd = clients[i][0];
        call_submit(&rig, &calls[i]);
    }
    close(clients[1][1]); /* the waiting one first */
    assert_int_equal(call_wait(&calls[1]), KILN_CANCELLED);
    assert_false(calls[0].done);
    close(clients[0][1]);
    assert_int_equal(call_wait(&calls[0]), KILN_CANCELLED);
    dispatch_stats(rig.dispatch, &stats);
    assert_int_equal(stats.cancelled, 2);
    assert_int_equal(stats.failed, 0);
    call_init(&after, DEED_FILL, 5, 100);
    call_submit(&rig, &after);
    call_expect_filled(&rig, &after);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(calls[i].job.result.size, 0);
        call_finish(&rig, &calls[i]);
        close(clients[i][0]);
    }
    rig_close(&rig);
}

/* ---- the end ---- */

static void draining_finishes_what_it_has(void **state) {
    struct rig rig;
    struct call running, waiting, refused;
    char why[128];
    (void)state;
    rig_open(&rig, 1, 4, 60, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    assert_true(dispatch_ready(rig.dispatch, why, sizeof why));
    call_init(&running, DEED_GATE, 1, 100);
    struct trouble_shared *gate = call_share(&rig, &running);
    call_init(&waiting, DEED_FILL, 2, 100);
    call_submit(&rig, &running);
    call_submit(&rig, &waiting);
    dispatch_drain(rig.dispatch);
    call_init(&refused, DEED_FILL, 3, 100);
    assert_int_equal(dispatch_submit(rig.dispatch, &refused.job), KILN_DRAINING);
    assert_false(dispatch_ready(rig.dispatch, why, sizeof why));
    assert_true(why[0] != '\0');
    assert_false(dispatch_wait_idle(rig.dispatch, 0.01));
    atomic_store(&gate->open, 1);
    assert_true(dispatch_wait_idle(rig.dispatch, 60));
    assert_true(running.done && waiting.done);
    call_expect_filled(&rig, &running);
    call_expect_filled(&rig, &waiting);
    rig_close(&rig);
}

static void destroying_completes_everything(void **state) {
    struct rig rig;
    struct call stuck, gated, waiting;
    (void)state;
    rig_open(&rig, 2, 4, 60, ARENA);
    call_init(&stuck, DEED_HANG, 1, 100);
    struct trouble_shared *shared = call_share(&rig, &stuck);
    call_init(&gated, DEED_GATE, 2, 100);
    call_share(&rig, &gated);
    call_init(&waiting, DEED_FILL, 3, 100);
    call_submit(&rig, &stuck);
    call_submit(&rig, &gated);
    call_submit(&rig, &waiting);
    rig_wait_begun(shared);
    int pid = rig_look(&rig, "cpu:0").pid;
    dispatch_destroy(rig.dispatch);
    struct call *all[] = {&stuck, &gated, &waiting};
    for (int i = 0; i < 3; i++) {
        assert_true(all[i]->done);
        assert_int_equal(all[i]->calls, 1);
        assert_int_equal(all[i]->job.status, KILN_DRAINING);
        call_finish(&rig, all[i]);
    }
    assert_int_equal(kill(pid, 0), -1); /* gone and reaped */
    rig.dispatch = NULL;
    rig_close(&rig);
}

/* ---- devices ---- */

static void unknown_devices_are_refused(void **state) {
    static const char *const wrong[] = {"", "gpu", "cpu:1", "cuda:x", "cpu,", "cpu:0,tpu:1"};
    struct arena *arena;
    struct rig rig;
    struct call call;
    (void)state;
    assert_int_equal(arena_create(MIB, &arena), KILN_OK);
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct dispatch *dispatch;
        const struct dispatch_options options = {
            .program = "/proc/self/exe", .devices = wrong[i], .queue = 1, .arena = arena};
        assert_int_equal(dispatch_create(&options, &dispatch), KILN_INVALID);
        assert_null(dispatch);
    }
    arena_destroy(arena);
    rig_open(&rig, 1, 4, 60, ARENA);
    assert_true(dispatch_knows(rig.dispatch, "cpu:0"));
    assert_true(dispatch_knows(rig.dispatch, "cpu"));
    assert_false(dispatch_knows(rig.dispatch, "cp"));
    assert_false(dispatch_knows(rig.dispatch, "tpu:0"));
    call_init(&call, DEED_FILL, 1, 100);
    snprintf(call.job.device, sizeof call.job.device, "tpu:0");
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_INCAPABLE);
    assert_non_null(strstr(call.job.detail, "tpu:0"));
    rig_close(&rig);
}

/* A device that was asked for but is not there is listed with the reason and takes no jobs. */
static void a_missing_device_says_why(void **state) {
    struct rig rig;
    struct call call;
    char why[256];
    (void)state;
    assert_int_equal(arena_create(ARENA, &rig.arena), KILN_OK);
    const struct dispatch_options options = {.program = "/proc/self/exe",
                                             .devices = "cuda:99",
                                             .queue = 4,
                                             .deadline_s = 60,
                                             .arena = rig.arena};
    assert_int_equal(dispatch_create(&options, &rig.dispatch), KILN_OK);
    struct look cuda = rig_look(&rig, "cuda:99");
    assert_true(cuda.found);
    assert_int_equal(cuda.state, DEVICE_UNAVAILABLE);
    assert_true(cuda.reason[0] != '\0');
    struct look cpu = rig_look(&rig, "cpu:0");
    assert_true(cpu.found);
    assert_int_equal(cpu.state, DEVICE_OFF);
    assert_false(dispatch_ready(rig.dispatch, why, sizeof why));
    assert_non_null(strstr(why, "cuda:99"));
    call_init(&call, DEED_FILL, 1, 100);
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_NO_DEVICE);
    /* who names one that is not in use, or not there, waits for nothing */
    snprintf(call.job.device, sizeof call.job.device, "cpu:0");
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_INCAPABLE);
    assert_non_null(strstr(call.job.detail, "cpu:0 is not in use (--device)"));
    snprintf(call.job.device, sizeof call.job.device, "cuda:99");
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_INCAPABLE);
    assert_non_null(strstr(call.job.detail, "cuda:99 is not available: "));
    rig_close(&rig);
}

int main(int count, char **arguments) {
    int role = rig_role(count, arguments);
    if (role >= 0) {
        return role;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_job_comes_back_with_result_and_timing),
        cmocka_unit_test(a_real_kind_gives_the_same_bytes_twice),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(a_result_larger_than_the_arena_is_refused),
        cmocka_unit_test(jobs_wait_for_memory),
        cmocka_unit_test(a_lying_result_size_is_an_internal_error),
        cmocka_unit_test(deadlines_end_running_and_waiting_jobs),
        cmocka_unit_test(a_job_that_does_not_stop_is_ended_with_its_worker),
        cmocka_unit_test(an_expired_job_ends_before_its_worker_does),
        cmocka_unit_test(a_hang_up_cancels_running_and_waiting_jobs),
        cmocka_unit_test(draining_finishes_what_it_has),
        cmocka_unit_test(destroying_completes_everything),
        cmocka_unit_test(unknown_devices_are_refused),
        cmocka_unit_test(a_missing_device_says_why),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    return failed == 0 && lacking ? 77 : failed;
}
