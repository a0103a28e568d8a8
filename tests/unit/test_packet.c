/*
 * test_packet.c: packets leave when the dispatcher's lock is released; what their socket does not
 * take waits again or ends (compute/dispatch/state).
 */
#include "compute/dispatch/state/run_queue.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static const struct job_type type = {.name = "any"};
const struct job_type *const job_types[] = {&type, NULL};

/* A queue with one device whose worker is this test. */
struct bench {
    struct arena *arena;
    struct run_queue queue;
    struct supervisor *supervisor;
    int worker; /* the other end of job_fd */
    struct job job[4];
};

static int bench_open(void **state) {
    struct bench *bench = calloc(1, sizeof *bench);
    int fds[2];
    assert_int_equal(arena_create(1 << 20, &bench->arena), KILN_OK);
    bench->queue.arena = bench->arena;
    assert_int_equal(run_queue_init(&bench->queue), KILN_OK);
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK, 0, fds), 0);
    struct supervisor *supervisor = bench->supervisor = &bench->queue.supervisors[0];
    bench->queue.count = 1;
    bench->queue.sweep_ns = UINT64_MAX;
    bench->worker = fds[1];
    assert_int_equal(
        arena_take(bench->arena, PLACES_MAX * sizeof(struct control), &supervisor->control),
        KILN_OK);
    supervisor->flight.control = arena_at(bench->arena, supervisor->control.offset);
    supervisor->flight.slots = 4;
    supervisor->phase = WORKER_SERVING;
    supervisor->process = 1;
    supervisor->job_fd = fds[0];
    supervisor->pidfd = supervisor->control_fd = -1;
    for (int i = 0; i < 4; i++) {
        bench->job[i] = (struct job){.type = &type, .number = (uint64_t)i, .worker = -1};
        bench->job[i].id.bytes[0] = (uint8_t)(i + 1);
    }
    *state = bench;
    return 0;
}

static int bench_close(void **state) {
    struct bench *bench = *state;
    supervisor_close_jobs(bench->supervisor);
    close(bench->worker);
    run_queue_finish(&bench->queue);
    arena_destroy(bench->arena);
    free(bench);
    return 0;
}

static void put(struct bench *bench, int job) {
    struct job *jobs[] = {&bench->job[job]};
    assert_int_equal(packets_put(&bench->queue.packets, bench->supervisor, jobs, 1), KILN_OK);
}

/* Jobs 0 … count - 1, each in a packet of its own, until the socket is full. */
static void socket_fill(struct bench *bench) {
    char bytes[1024] = "";
    setsockopt(bench->supervisor->job_fd, SOL_SOCKET, SO_SNDBUF, &(int){1}, sizeof(int));
    while (send(bench->supervisor->job_fd, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
    }
}

static void packets_leave_with_the_lock(void **state) {
    struct bench *bench = *state;
    struct command commands[GROUP_MAX];
    run_queue_lock(&bench->queue);
    put(bench, 0);
    put(bench, 1);
    assert_int_equal(recv(bench->worker, commands, sizeof commands, 0), -1);
    assert_int_equal(bench->job[0].state, JOB_RUNNING);
    run_queue_unlock(&bench->queue);
    for (int i = 0; i < 2; i++) {
        assert_int_equal(recv(bench->worker, commands, sizeof commands, 0),
                         offsetof(struct command, inputs)); /* the kind has no input */
        assert_true(job_id_equal(&commands->id, &bench->job[i].id));
        assert_true(in_flight_holds(&bench->supervisor->flight, commands->place,
                                    commands->generation, &commands->id));
    }
    assert_int_equal(atomic_load(&bench->supervisor->sending), 0);
}

/* A full socket costs a job nothing but time: it waits where it was, and is no suspect. */
static void full_socket_lets_jobs_wait(void **state) {
    struct bench *bench = *state;
    struct run_queue *queue = &bench->queue;
    socket_fill(bench);
    bench->job[1].worker = 3;
    run_queue_lock(queue);
    put(bench, 1);
    put(bench, 0);
    run_queue_unlock(queue);
    assert_int_equal(queue->waiting.count, 2);
    assert_ptr_equal(queue->waiting.head, &bench->job[0]); /* in their old order */
    assert_int_equal(bench->job[1].state, JOB_QUEUED);
    assert_int_equal(bench->job[1].attempt, 0);
    assert_int_equal(bench->job[1].worker, 3);
    assert_int_equal(bench->job[0].worker, -1);
    assert_int_equal(bench->supervisor->flight.running, 0);
    assert_int_equal(bench->supervisor->flight.busy, 0);
    assert_int_equal(bench->supervisor->phase, WORKER_SERVING);
    assert_true(queue->starved);
    assert_true(queue->sweep_ns < UINT64_MAX);
}

static void cancelled_before_it_left(void **state) {
    struct bench *bench = *state;
    struct run_queue *queue = &bench->queue;
    socket_fill(bench);
    run_queue_lock(queue);
    put(bench, 0);
    put(bench, 1);
    in_flight_cancel(&bench->supervisor->flight, 0, JOB_CANCELLING);
    in_flight_cancel(&bench->supervisor->flight, 1, JOB_EXPIRING);
    run_queue_unlock(queue);
    assert_int_equal(queue->waiting.count, 0);
    assert_int_equal(queue->ended.count, 2);
    assert_int_equal(bench->job[0].status, KILN_CANCELLED);
    assert_int_equal(bench->job[1].status, KILN_DEADLINE);
    assert_int_equal(bench->supervisor->flight.running, 0);
}

static void canary_that_did_not_leave(void **state) {
    struct bench *bench = *state;
    struct job *canary = &bench->supervisor->canary;
    *canary = (struct job){.type = &type, .worker = -1};
    socket_fill(bench);
    run_queue_lock(&bench->queue);
    assert_int_equal(packets_put(&bench->queue.packets, bench->supervisor, &canary, 1), KILN_OK);
    bench->supervisor->canary_running = true;
    run_queue_unlock(&bench->queue);
    assert_false(bench->supervisor->canary_running);
    assert_int_equal(bench->queue.waiting.count, 0);
}

/* The process is gone: it is replaced, and its jobs have not died with it. */
static void closed_socket_has_the_worker_replaced(void **state) {
    struct bench *bench = *state;
    close(bench->worker);
    bench->worker = -1;
    run_queue_lock(&bench->queue);
    put(bench, 0);
    run_queue_unlock(&bench->queue);
    assert_int_equal(bench->supervisor->phase, WORKER_DYING);
    assert_int_equal(bench->queue.waiting.count, 1);
    assert_int_equal(bench->job[0].attempt, 0);
}

/* What another process's jobs do in the same slot is not this packet's matter. */
static void late_failure_touches_no_later_process(void **state) {
    struct bench *bench = *state;
    struct run_queue *queue = &bench->queue;
    socket_fill(bench);
    run_queue_lock(queue);
    put(bench, 0);
    in_flight_clear(&bench->supervisor->flight, 0); /* lost with its process */
    bench->supervisor->process++;
    struct job *later[] = {&bench->job[1]};
    in_flight_put(&bench->supervisor->flight, 0, later, (int[]){0}, 1);
    run_queue_unlock(queue);
    assert_int_equal(queue->waiting.count, 0);
    assert_ptr_equal(bench->supervisor->flight.place[0].job, &bench->job[1]);
}

static void answers_name_one_stay_in_a_place(void **state) {
    struct bench *bench = *state;
    struct in_flight *flight = &bench->supervisor->flight;
    run_queue_lock(&bench->queue);
    put(bench, 0);
    const struct job_id *id = &bench->job[0].id;
    uint32_t generation = flight->place[0].generation;
    assert_true(in_flight_holds(flight, 0, generation, id));
    assert_false(in_flight_holds(flight, 0, generation - 1, id));
    assert_false(in_flight_holds(flight, 1, generation, id));
    assert_false(in_flight_holds(flight, PLACES_MAX, generation, id));
    assert_false(in_flight_holds(flight, UINT32_MAX, generation, id));
    assert_false(in_flight_holds(flight, 0, generation, &bench->job[1].id));
    in_flight_clear(flight, 0);
    assert_false(in_flight_holds(flight, 0, generation, id));
    put(bench, 0); /* once more: the same job, another run */
    assert_false(in_flight_holds(flight, 0, generation, id));
    assert_true(in_flight_holds(flight, 0, generation + 1, id));
    run_queue_unlock(&bench->queue);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(packets_leave_with_the_lock, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(full_socket_lets_jobs_wait, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(cancelled_before_it_left, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(canary_that_did_not_leave, bench_open, bench_close),
        cmocka_unit_test_setup_teardown(closed_socket_has_the_worker_replaced, bench_open,
                                        bench_close),
        cmocka_unit_test_setup_teardown(late_failure_touches_no_later_process, bench_open,
                                        bench_close),
        cmocka_unit_test_setup_teardown(answers_name_one_stay_in_a_place, bench_open, bench_close),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
