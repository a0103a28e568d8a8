/*
 * test_gate.c: nobody is inside once a gate has closed, and nobody gets in afterwards.
 */
#include "server/jobs/gate.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define THREADS 8
#define ROUNDS  50

struct room {
    struct gate gate;
    _Atomic bool there;       /* what they are inside of */
    _Atomic uint32_t entered; /* times that any was inside */
    _Atomic uint32_t ghosts;  /* times that it was not there any more */
};

static void *visit(void *argument) {
    struct room *room = argument;
    while (gate_enter(&room->gate)) {
        bool again = gate_enter(&room->gate);
        atomic_fetch_add(&room->ghosts, !atomic_load(&room->there));
        atomic_fetch_add(&room->entered, 1);
        if (again) {
            gate_leave(&room->gate);
        }
        gate_leave(&room->gate);
    }
    return NULL;
}

static struct room *room_make(void) {
    struct room *room = aligned_alloc(_Alignof(struct room), sizeof *room);
    assert_non_null(room);
    memset(room, 0, sizeof *room);
    atomic_store(&room->there, true);
    return room;
}

static void closing_waits_for_those_inside(void **state) {
    (void)state;
    for (int i = 0; i < ROUNDS; i++) {
        struct room *room = room_make();
        pthread_t threads[THREADS];
        for (int t = 0; t < THREADS; t++) {
            assert_int_equal(pthread_create(&threads[t], NULL, visit, room), 0);
        }
        while (atomic_load(&room->entered) < THREADS) {
        }
        assert_true(gate_close(&room->gate));
        atomic_store(&room->there, false);
        for (int t = 0; t < THREADS; t++) {
            pthread_join(threads[t], NULL);
        }
        assert_int_equal(atomic_load(&room->ghosts), 0);
        free(room);
    }
}

static void it_closes_once(void **state) {
    struct room *room = room_make();
    (void)state;
    assert_true(gate_enter(&room->gate));
    gate_leave(&room->gate);
    assert_true(gate_close(&room->gate));
    assert_false(gate_enter(&room->gate));
    assert_false(gate_close(&room->gate));
    free(room);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(closing_waits_for_those_inside),
        cmocka_unit_test(it_closes_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
