/*
 * test_single_flight.c: leading, following, handing over, being deserted; and many threads at it.
 */
#include "server/cache/single_flight.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static struct single_flight flights;

static int setup(void **state) {
    (void)state;
    single_flight_init(&flights);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    for (size_t i = 0; i < SINGLE_FLIGHT_BUCKETS; i++) {
        if (flights.buckets[i] != NULL) {
            return -1;
        }
    }
    single_flight_finish(&flights);
    return 0;
}

/* All keys of these tests share a bucket. */
static struct waiter waiter_of(uint64_t key, uint64_t until_ns) {
    return (struct waiter){.key = {.high = key, .low = 7}, .fd = -1, .until_ns = until_ns};
}

static void lead_and_follow(void **state) {
    (void)state;
    struct waiter one = waiter_of(1, 10), two = waiter_of(1, 20), three = waiter_of(1, 30);
    struct waiter other = waiter_of(2, 10);
    assert_true(single_flight_enter(&flights, &one));
    assert_true(single_flight_enter(&flights, &other));
    assert_false(single_flight_enter(&flights, &two));
    assert_false(single_flight_enter(&flights, &three));
    struct waiter *list = single_flight_end(&flights, &one);
    assert_ptr_equal(list, &two);
    assert_ptr_equal(list->next, &three);
    assert_null(three.next);
    assert_null(single_flight_end(&flights, &other));
    assert_true(single_flight_enter(&flights, &one)); /* a new flight */
    assert_null(single_flight_end(&flights, &one));
}

static void hand_over(void **state) {
    (void)state;
    struct waiter waiters[5], *late;
    for (uint64_t i = 0; i < 5; i++) {
        waiters[i] = waiter_of(1, 10 * (i + 1));
        assert_int_equal(single_flight_enter(&flights, &waiters[i]), i == 0);
    }
    /* at 25 the time of the second is over too */
    struct waiter *heir = single_flight_pass(&flights, &waiters[0], 25, &late);
    assert_ptr_equal(heir, &waiters[2]);
    assert_ptr_equal(late, &waiters[1]);
    assert_null(late->next);
    struct waiter another = waiter_of(1, 60);
    assert_false(single_flight_enter(&flights, &another)); /* joins the heir */
    struct waiter *list = single_flight_end(&flights, heir);
    assert_ptr_equal(list, &waiters[3]);
    assert_ptr_equal(list->next, &waiters[4]);
    assert_ptr_equal(list->next->next, &another);
    assert_null(another.next);
}

static void requests_are_found_by_their_ids(void **state) {
    (void)state;
    struct waiter one = waiter_of(1, 10), two = waiter_of(1, 20), three = waiter_of(1, 30);
    one.request_id = "one", two.request_id = "two", three.request_id = "three";
    two.owner = 2, three.owner = 3;
    assert_true(single_flight_enter(&flights, &one));
    assert_false(single_flight_has(&flights, &one, "two", 0));
    assert_false(single_flight_enter(&flights, &two));
    assert_false(single_flight_enter(&flights, &three));
    assert_true(single_flight_has(&flights, &one, "two", 0));
    assert_true(single_flight_has(&flights, &one, "three", 3));
    assert_false(single_flight_has(&flights, &one, "three", 2));
    assert_false(single_flight_has(&flights, &one, "one", 0)); /* the job's own */
    assert_false(single_flight_has(&flights, &one, "", 0));
    single_flight_end(&flights, &one);
    assert_false(single_flight_has(&flights, &one, "two", 0));
}

static void nobody_has_time(void **state) {
    (void)state;
    struct waiter one = waiter_of(1, 10), two = waiter_of(1, 20), *late;
    assert_true(single_flight_enter(&flights, &one));
    assert_null(single_flight_pass(&flights, &one, 100, &late)); /* without followers */
    assert_null(late);
    assert_true(single_flight_enter(&flights, &one));
    assert_false(single_flight_enter(&flights, &two));
    assert_null(single_flight_pass(&flights, &one, 100, &late));
    assert_ptr_equal(late, &two);
    assert_true(single_flight_enter(&flights, &one));
    assert_null(single_flight_end(&flights, &one));
}

/* Clients leave one after the other, in any order; the last one ends the flight. */
static void desertion(void **state) {
    (void)state;
    enum { COUNT = 150 }; /* more than are asked about at once */
    struct waiter waiters[COUNT], late;
    int near[COUNT], fd = -1;
    for (int i = 0; i < COUNT; i++) {
        int pair[2];
        assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);
        near[i] = pair[1];
        waiters[i] = waiter_of(1, 10);
        waiters[i].fd = pair[0];
        single_flight_enter(&flights, &waiters[i]);
    }
    assert_false(single_flight_deserted(&flights, &waiters[0], &fd));
    assert_int_equal(fd, waiters[0].fd);
    for (int i = 0; i < COUNT - 1; i++) {
        close(near[i]);
    }
    assert_false(single_flight_deserted(&flights, &waiters[0], &fd));
    assert_int_equal(fd, waiters[COUNT - 1].fd);
    close(near[COUNT - 1]);
    assert_true(single_flight_deserted(&flights, &waiters[0], &fd));
    /* nobody joins it any more, and its end leaves the new flight alone */
    late = waiter_of(1, 10);
    assert_true(single_flight_enter(&flights, &late));
    assert_ptr_equal(single_flight_end(&flights, &waiters[0]), &waiters[1]);
    struct waiter follower = waiter_of(1, 10);
    assert_false(single_flight_enter(&flights, &follower));
    assert_ptr_equal(single_flight_end(&flights, &late), &follower);
    for (int i = 0; i < COUNT; i++) {
        close(waiters[i].fd);
    }
}

/* ---- threads ---- */

#define THREADS 6
#define ROUNDS  20000

/* A waiter that a leader lets go. */
struct client {
    struct waiter waiter;
    _Atomic bool free;
};

static _Atomic unsigned leaders, followers, let_go;

static void *thread_run(void *argument) {
    struct client client;
    (void)argument;
    for (unsigned i = 0; i < ROUNDS; i++) {
        client.waiter = waiter_of(i % 3, 1);
        atomic_store(&client.free, false);
        if (!single_flight_enter(&flights, &client.waiter)) {
            atomic_fetch_add(&followers, 1);
            while (!atomic_load(&client.free)) {
                sched_yield();
            }
            continue;
        }
        atomic_fetch_add(&leaders, 1);
        int fd;
        if (single_flight_deserted(&flights, &client.waiter, &fd)) { /* while others join */
            abort();
        }
        struct waiter *next;
        for (struct waiter *at = single_flight_end(&flights, &client.waiter); at != NULL;
             at = next) {
            next = at->next;
            atomic_fetch_add(&let_go, 1);
            atomic_store(&((struct client *)(void *)at)->free, true);
        }
    }
    return NULL;
}

static void threads(void **state) {
    (void)state;
    pthread_t running[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&running[i], NULL, thread_run, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(running[i], NULL);
    }
    assert_int_equal(leaders + followers, THREADS * ROUNDS);
    assert_int_equal(followers, let_go);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(lead_and_follow, setup, teardown),
        cmocka_unit_test_setup_teardown(hand_over, setup, teardown),
        cmocka_unit_test_setup_teardown(requests_are_found_by_their_ids, setup, teardown),
        cmocka_unit_test_setup_teardown(nobody_has_time, setup, teardown),
        cmocka_unit_test_setup_teardown(desertion, setup, teardown),
        cmocka_unit_test_setup_teardown(threads, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
