/*
 * test_throttle.c: unknown keys by address, under a clock of the test's own.
 */
#include "server/auth/throttle.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define START  (7 * SECOND)

static struct address address_at(uint64_t number) {
    return (struct address){{number, 4}};
}

static void a_minute_has_so_many(void **state) {
    (void)state;
    struct auth_throttle *strangers = auth_throttle_create(6);
    uint64_t wait;
    assert_non_null(strangers);
    for (int i = 0; i < 6; i++) {
        assert_true(auth_throttle_pass(strangers, address_at(1), START, &wait));
        assert_int_equal(wait, 0);
    }
    assert_false(auth_throttle_pass(strangers, address_at(1), START, &wait));
    assert_int_equal(wait, 10);
    assert_false(auth_throttle_pass(strangers, address_at(1), START + 4 * SECOND, &wait));
    assert_int_equal(wait, 6);
    /* who waits as told is let pass, once; refusals cost nothing */
    assert_true(auth_throttle_pass(strangers, address_at(1), START + 10 * SECOND, &wait));
    assert_false(auth_throttle_pass(strangers, address_at(1), START + 10 * SECOND, &wait));
    /* others never notice */
    assert_true(auth_throttle_pass(strangers, address_at(2), START + 10 * SECOND, &wait));
    assert_true(
        auth_throttle_pass(strangers, (struct address){{1, 6}}, START + 10 * SECOND, &wait));
    /* and after a quiet minute there are six again, no more */
    int passed = 0;
    for (int i = 0; i < 20; i++) {
        passed += auth_throttle_pass(strangers, address_at(1), START + 600 * SECOND, &wait);
    }
    assert_int_equal(passed, 6);
    auth_throttle_destroy(strangers);
}

static void none_is_no_limit(void **state) {
    (void)state;
    struct auth_throttle *strangers = auth_throttle_create(0);
    uint64_t wait = 5;
    assert_non_null(strangers);
    for (int i = 0; i < 1000; i++) {
        assert_true(auth_throttle_pass(strangers, address_at(1), START, &wait));
        assert_int_equal(wait, 0);
    }
    auth_throttle_destroy(strangers);
    auth_throttle_destroy(NULL);
}

/* Any number of addresses fits: the quiet ones are forgotten, one that goes on is not. */
static void many_addresses_share_the_room(void **state) {
    (void)state;
    struct auth_throttle *strangers = auth_throttle_create(2);
    uint64_t wait, now = START;
    int passed = 0;
    assert_non_null(strangers);
    for (uint64_t i = 0; i < 200000; i++, now += SECOND / 1000) {
        assert_true(auth_throttle_pass(strangers, address_at(1000 + i), now, &wait));
        if (i % 100 == 0) { /* ten a second */
            passed += auth_throttle_pass(strangers, address_at(1), now, &wait);
        }
    }
    /* 200 seconds: two at once and one every half minute, were it never forgotten; each bucket that
       is emptied stands for a minute, and four newer ones in its set are what it takes to lose it
     */
    assert_true(passed >= 8);
    assert_true(passed < 2000);
    auth_throttle_destroy(strangers);
}

#define THREADS 4

static struct auth_throttle *shared;
static _Atomic int let;

static void *knock(void *argument) {
    uint64_t wait;
    (void)argument;
    for (int i = 0; i < 20000; i++) {
        let += auth_throttle_pass(shared, address_at(1), START, &wait);
        auth_throttle_pass(shared, address_at((uint64_t)i), START, &wait);
    }
    return NULL;
}

static void threads_count_together(void **state) {
    (void)state;
    pthread_t threads[THREADS];
    shared = auth_throttle_create(50);
    assert_non_null(shared);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, knock, NULL), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    /* one token may go to the same address from the second call */
    assert_true(let >= 46 && let <= 50);
    auth_throttle_destroy(shared);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_minute_has_so_many),
        cmocka_unit_test(none_is_no_limit),
        cmocka_unit_test(many_addresses_share_the_room),
        cmocka_unit_test(threads_count_together),
    };
    return cmocka_run_group_tests_name("strangers", tests, NULL, NULL);
}
