/*
 * test_offload.c: loads of each kind, from many threads, whose turn it is, and the end.
 */
#include "server/core/offload.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>

#include <cmocka.h>

#define THREADS 4
#define EACH    5000

static struct offload *offload;
static _Atomic int ran;

static void count(struct offload_task *load) {
    ran++;
    free(load);
}

static struct offload_task *load_make(void (*run)(struct offload_task *load)) {
    struct offload_task *load = calloc(1, sizeof *load);
    assert_non_null(load);
    load->run = run;
    return load;
}

static void *push_many(void *argument) {
    (void)argument;
    for (int i = 0; i < EACH; i++) {
        struct offload_task *load = calloc(1, sizeof *load);
        load->run = count;
        if (!offload_push(offload, (enum offload_kind)(i % OFFLOAD_KINDS), load)) {
            free(load);
        }
    }
    return NULL;
}

/* Stopping works off everything that was taken, once each. */
static void everything_runs_once(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    ran = 0;
    assert_int_equal(offload_create(&offload), KILN_OK);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, push_many, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    offload_stop(offload);
    assert_int_equal(ran, THREADS * EACH);
    struct offload_task *late = load_make(count);
    assert_false(offload_push(offload, OFFLOAD_BODY, late));
    assert_false(offload_push(offload, OFFLOAD_COPY, late));
    free(late);
    offload_stop(offload);
    offload_destroy(offload);
    offload_destroy(NULL);
    offload_stop(NULL);
    assert_int_equal(ran, THREADS * EACH);
}

/* Pushes that meet the stop are taken and run, or neither. */
static void pushes_may_meet_the_stop(void **state) {
    (void)state;
    for (int round = 0; round < 50; round++) {
        pthread_t thread;
        assert_int_equal(offload_create(&offload), KILN_OK);
        assert_int_equal(pthread_create(&thread, NULL, push_many, NULL), 0);
        offload_stop(offload);
        pthread_join(thread, NULL);
        offload_destroy(offload);
    }
}

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t order_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int waiting;
static enum offload_kind order[16];
static size_t ordered;

static void wait_at_gate(struct offload_task *load) {
    waiting++;
    pthread_mutex_lock(&gate);
    pthread_mutex_unlock(&gate);
    free(load);
}

static void note(enum offload_kind kind) {
    pthread_mutex_lock(&order_lock);
    order[ordered++] = kind;
    pthread_mutex_unlock(&order_lock);
}

static void note_body(struct offload_task *load) {
    note(OFFLOAD_BODY);
    free(load);
}

static void note_copy(struct offload_task *load) {
    note(OFFLOAD_COPY);
    free(load);
}

static void bodies_come_first(void **state) {
    (void)state;
    ordered = 0;
    waiting = 0;
    assert_int_equal(offload_create(&offload), KILN_OK);
    pthread_mutex_lock(&gate);
    for (int i = 0; i < OFFLOAD_THREADS; i++) {
        assert_true(offload_push(offload, OFFLOAD_BODY, load_make(wait_at_gate)));
    }
    while (waiting < OFFLOAD_THREADS) {
    }
    for (int i = 0; i < 8; i++) {
        assert_true(offload_push(offload, OFFLOAD_COPY, load_make(note_copy)));
        assert_true(offload_push(offload, OFFLOAD_BODY, load_make(note_body)));
    }
    pthread_mutex_unlock(&gate);
    offload_destroy(offload);
    assert_int_equal(ordered, 16);
    /* all threads but one may be late with what they note */
    int bodies = 0;
    for (size_t i = 0; i < 8; i++) {
        bodies += order[i] == OFFLOAD_BODY;
    }
    assert_true(bodies >= 8 - (OFFLOAD_THREADS - 1));
}

/* However many long bodies there are, short ones are read; and long ones are not forgotten. */
static void long_bodies_leave_a_thread_for_short_ones(void **state) {
    (void)state;
    ran = ordered = 0;
    waiting = 0;
    assert_int_equal(offload_create(&offload), KILN_OK);
    pthread_mutex_lock(&gate);
    for (int i = 0; i < 3 * OFFLOAD_THREADS; i++) {
        assert_true(offload_push(offload, OFFLOAD_LONG, load_make(wait_at_gate)));
    }
    for (int i = 0; i < 100; i++) {
        assert_true(offload_push(offload, OFFLOAD_BODY, load_make(count)));
    }
    assert_true(offload_push(offload, OFFLOAD_COPY, load_make(note_copy)));
    while (ran < 100) { /* for ever where no thread is left */
        sched_yield();
    }
    assert_true(waiting < OFFLOAD_THREADS);
    assert_int_equal(ordered, 0); /* a copy may take long too */
    pthread_mutex_unlock(&gate);
    offload_destroy(offload);
    assert_int_equal(waiting, 3 * OFFLOAD_THREADS);
    assert_int_equal(ordered, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_runs_once),
        cmocka_unit_test(pushes_may_meet_the_stop),
        cmocka_unit_test(bodies_come_first),
        cmocka_unit_test(long_bodies_leave_a_thread_for_short_ones),
    };
    return cmocka_run_group_tests_name("offload", tests, NULL, NULL);
}
