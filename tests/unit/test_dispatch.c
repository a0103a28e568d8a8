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

/* ---- death ---- */

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

static void clients_on_many_threads_are_served(void **state) {
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
        return;
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

/* ---- looking at jobs, and cancelling them ---- */

struct seen {
    struct job_view views[8];
    size_t count;
    struct dispatch *dispatch;
};

static void seen_each(const struct job_view *view, void *context) {
    struct seen *seen = context;
    struct dispatch_stats stats;
    dispatch_stats(seen->dispatch, &stats); /* takes the lock: it must be free */
    assert_true(seen->count < 8);
    seen->views[seen->count++] = *view;
}

static struct seen rig_jobs(struct rig *rig) {
    struct seen seen = {.dispatch = rig->dispatch};
    size_t total = 0;
    assert_int_equal(dispatch_jobs(rig->dispatch, seen_each, &seen, &total), KILN_OK);
    assert_int_equal(total, seen.count);
    return seen;
}

static void jobs_are_shown_until_they_end(void **state) {
    struct rig rig;
    struct call calls[3];
    struct trouble_shared *shared[3];
    struct job_view view;
    (void)state;
    rig_open(&rig, 1, 4, 60, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    assert_int_equal(rig_jobs(&rig).count, 0);
    for (int i = 0; i < 3; i++) {
        call_init(&calls[i], DEED_GATE, i, 100);
        shared[i] = call_share(&rig, &calls[i]);
        snprintf(calls[i].job.device, sizeof calls[i].job.device, "%s", i == 2 ? "cpu" : "");
        call_submit(&rig, &calls[i]);
    }
    rig_wait_begun(shared[0]);
    struct seen seen = rig_jobs(&rig);
    assert_int_equal(seen.count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(seen.views[i].id, calls[i].job.id);
        assert_int_equal(seen.views[i].running, i == 0);
        assert_string_equal(seen.views[i].type, "trouble");
        assert_string_equal(seen.views[i].device, i == 0 ? "cpu:0" : i == 2 ? "cpu" : "");
        assert_int_equal(seen.views[i].attempt, 0);
        assert_true(seen.views[i].progress >= 0 && seen.views[i].progress <= 1);
        assert_true(seen.views[i].cost == 1);
        assert_true(seen.views[i].age_s >= seen.views[i].running_s);
    }
    assert_true(dispatch_job(rig.dispatch, calls[1].job.id, &view));
    assert_int_equal(view.id, calls[1].job.id);
    assert_false(view.running);
    assert_false(dispatch_job(rig.dispatch, calls[2].job.id + 1000, &view));
    for (int i = 0; i < 3; i++) {
        atomic_store(&shared[i]->open, 1);
        call_expect_filled(&rig, &calls[i]);
        assert_false(dispatch_job(rig.dispatch, calls[i].job.id, &view));
    }
    assert_int_equal(rig_jobs(&rig).count, 0);
    rig_close(&rig);
}

static void a_job_is_cancelled_by_its_number(void **state) {
    struct rig rig;
    struct call calls[2], after;
    struct trouble_shared *shared[2];
    struct dispatch_stats stats;
    (void)state;
    rig_open(&rig, 1, 4, 60, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    assert_int_equal(dispatch_cancel(rig.dispatch, 1u << 30), KILN_NOT_FOUND);
    for (int i = 0; i < 2; i++) {
        call_init(&calls[i], DEED_GATE, i, 100);
        shared[i] = call_share(&rig, &calls[i]);
        call_submit(&rig, &calls[i]);
    }
    rig_wait_begun(shared[0]);
    for (int i = 1; i >= 0; i--) { /* the waiting one first */
        assert_int_equal(dispatch_cancel(rig.dispatch, calls[i].job.id), KILN_OK);
        assert_int_equal(call_wait(&calls[i]), KILN_REVOKED);
        assert_true(strlen(calls[i].job.detail) > 0);
        assert_int_equal(calls[i].job.result.size, 0);
        assert_int_equal(dispatch_cancel(rig.dispatch, calls[i].job.id), KILN_NOT_FOUND);
        call_finish(&rig, &calls[i]);
    }
    dispatch_stats(rig.dispatch, &stats);
    assert_int_equal(stats.cancelled, 2);
    assert_int_equal(stats.failed, 0);
    call_init(&after, DEED_FILL, 5, 100);
    call_submit(&rig, &after);
    call_expect_filled(&rig, &after);
    rig_close(&rig);
}

/* Its worker is killed while it is being cancelled: it is not run again. */
static void a_cancelled_job_is_not_retried(void **state) {
    struct rig rig;
    struct call call;
    (void)state;
    rig_open(&rig, 1, 4, 60, ARENA);
    rig_wait_state(&rig, "cpu:0", DEVICE_READY);
    call_init(&call, DEED_HANG, 1, 100);
    struct trouble_shared *shared = call_share(&rig, &call);
    call_submit(&rig, &call);
    rig_wait_begun(shared);
    assert_int_equal(dispatch_cancel(rig.dispatch, call.job.id), KILN_OK);
    assert_int_equal(dispatch_cancel(rig.dispatch, call.job.id), KILN_OK); /* not ended yet */
    rig_kill_worker(&rig);
    assert_int_equal(call_wait(&call), KILN_REVOKED);
    assert_int_equal(atomic_load(&shared->tries), 1);
    call_finish(&rig, &call);
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
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_NO_DEVICE);
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
    snprintf(call.job.device, sizeof call.job.device, "cpu:0");
    assert_int_equal(dispatch_submit(rig.dispatch, &call.job), KILN_NO_DEVICE);
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
        cmocka_unit_test(a_job_comes_back_with_result_and_timing),
        cmocka_unit_test(a_real_kind_gives_the_same_bytes_twice),
        cmocka_unit_test(a_full_queue_refuses),
        cmocka_unit_test(a_result_larger_than_the_arena_is_refused),
        cmocka_unit_test(jobs_wait_for_memory),
        cmocka_unit_test(a_lying_result_size_is_an_internal_error),
        cmocka_unit_test(killed_workers_cost_no_answer),
        cmocka_unit_test(clients_on_many_threads_are_served),
        cmocka_unit_test(a_job_whose_worker_died_runs_again),
        cmocka_unit_test(only_the_guilty_fails),
        cmocka_unit_test(suspects_run_alone),
        cmocka_unit_test(deadlines_end_running_and_waiting_jobs),
        cmocka_unit_test(a_job_that_does_not_stop_is_ended_with_its_worker),
        cmocka_unit_test(an_expired_job_ends_before_its_worker_does),
        cmocka_unit_test(a_hang_up_cancels_running_and_waiting_jobs),
        cmocka_unit_test(jobs_are_shown_until_they_end),
        cmocka_unit_test(a_job_is_cancelled_by_its_number),
        cmocka_unit_test(a_cancelled_job_is_not_retried),
        cmocka_unit_test(draining_finishes_what_it_has),
        cmocka_unit_test(destroying_completes_everything),
        cmocka_unit_test(unknown_devices_are_refused),
        cmocka_unit_test(a_missing_device_says_why),
        cmocka_unit_test(a_device_that_keeps_dying_is_given_up),
        cmocka_unit_test(jobs_that_keep_killing_do_not_cost_the_device),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
