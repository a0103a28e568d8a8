/*
 * test_rate_limit.c: buckets under a clock of the test's own, and counts of requests in hand.
 */
#include "server/auth/rate_limit.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#define SECOND UINT64_C(1000000000)
#define START  (5 * SECOND) /* a clock need not begin at 0 */

static void a_burst_is_taken_and_no_more(void **state) {
    (void)state;
    struct bucket bucket = {0};
    struct quota quota;
    for (uint64_t i = 0; i < 4; i++) {
        assert_true(bucket_take(&bucket, bucket_step(2), 4, START, &quota));
        assert_int_equal(quota.left, 3 - i);
        assert_int_equal(quota.full_s, (i + 2) / 2); /* half a second each */
        assert_int_equal(quota.wait_s, 0);
    }
    assert_false(bucket_take(&bucket, bucket_step(2), 4, START, &quota));
    assert_int_equal(quota.left, 0);
    assert_int_equal(quota.full_s, 2);
    assert_int_equal(quota.wait_s, 1); /* half a second, rounded up */
}

static void tokens_flow_in_at_the_rate(void **state) {
    (void)state;
    const uint64_t step = bucket_step(10);
    struct bucket bucket = {0};
    struct quota quota;
    assert_int_equal(step, SECOND / 10);
    for (int i = 0; i < 3; i++) {
        assert_true(bucket_take(&bucket, step, 3, START, &quota));
    }
    assert_false(bucket_take(&bucket, step, 3, START + step - 1, &quota));
    assert_true(bucket_take(&bucket, step, 3, START + step, &quota));
    assert_false(bucket_take(&bucket, step, 3, START + step, &quota));
    /* refusals take nothing: after a pause of two tokens there are two */
    assert_true(bucket_take(&bucket, step, 3, START + 3 * step, &quota));
    assert_int_equal(quota.left, 1);
    assert_true(bucket_take(&bucket, step, 3, START + 3 * step, &quota));
    assert_false(bucket_take(&bucket, step, 3, START + 3 * step, &quota));
    /* and after a long one no more than the bucket holds */
    for (int i = 0; i < 3; i++) {
        assert_true(bucket_take(&bucket, step, 3, START + 1000 * SECOND, &quota));
    }
    assert_false(bucket_take(&bucket, step, 3, START + 1000 * SECOND, &quota));
}

static void any_ten_seconds_hold_the_rate(void **state) {
    (void)state;
    struct bucket bucket = {0};
    struct quota quota;
    int taken = 0;
    for (uint64_t ms = 0; ms < 10000; ms++) {
        taken += bucket_take(&bucket, bucket_step(7), 5, START + ms * (SECOND / 1000), &quota);
    }
    assert_in_range(taken, 74, 75); /* 5 at once, 7 a second */
}

static void slow_rates_say_how_long_to_wait(void **state) {
    (void)state;
    struct bucket bucket = {0};
    struct quota quota;
    assert_true(bucket_take(&bucket, bucket_step(RATE_MIN), 1, START, &quota));
    assert_false(bucket_take(&bucket, bucket_step(RATE_MIN), 1, START, &quota));
    assert_int_equal(quota.wait_s, 1000);
    assert_false(bucket_take(&bucket, bucket_step(RATE_MIN), 1, START + 999 * SECOND, &quota));
    assert_int_equal(quota.wait_s, 1);
    assert_true(bucket_take(&bucket, bucket_step(RATE_MIN), 1, START + 1000 * SECOND, &quota));
}

static void the_largest_limits_do_not_overflow(void **state) {
    (void)state;
    struct bucket bucket = {0};
    struct quota quota;
    const uint64_t late = UINT64_C(300) * 365 * 86400 * SECOND; /* three centuries of uptime */
    assert_true(bucket_take(&bucket, bucket_step(RATE_MIN), BURST_MAX, late, &quota));
    assert_int_equal(quota.left, BURST_MAX - 1);
    assert_true(bucket_take(&bucket, bucket_step(RATE_MIN), BURST_MAX, late, &quota));
    assert_int_equal(quota.left, BURST_MAX - 2);
    assert_int_equal(quota.full_s, 2000);
}

static void a_smaller_bucket_after_a_reload_is_no_debt(void **state) {
    (void)state;
    struct bucket bucket = {0};
    struct quota quota;
    for (int i = 0; i < 1000; i++) {
        assert_true(bucket_take(&bucket, bucket_step(1), 1000, START, &quota));
    }
    assert_false(bucket_take(&bucket, bucket_step(1), 2, START, &quota));
    assert_int_equal(quota.wait_s, 1);
    assert_true(bucket_take(&bucket, bucket_step(1000), 2, START + 1000 * SECOND, &quota));
}

#define THREADS 4
#define TRIES   20000

struct crowd {
    struct bucket bucket;
    _Atomic uint64_t taken, running, most;
};

static void *crowd_run(void *argument) {
    struct crowd *crowd = argument;
    struct quota quota;
    for (int i = 0; i < TRIES; i++) {
        if (bucket_take(&crowd->bucket, bucket_step(1), 777, START, &quota)) {
            atomic_fetch_add(&crowd->taken, 1);
        }
        if (running_enter(&crowd->running, 3)) {
            uint64_t now = atomic_load(&crowd->running), most = atomic_load(&crowd->most);
            while (now > most && !atomic_compare_exchange_weak(&crowd->most, &most, now)) {
            }
            running_leave(&crowd->running);
        }
    }
    return NULL;
}

static void threads_share_a_bucket(void **state) {
    (void)state;
    static struct crowd crowd;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, crowd_run, &crowd), 0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(crowd.taken, 777); /* the clock stands still */
    assert_int_equal(crowd.running, 0);
    assert_true(crowd.most >= 1 &&
                crowd.most <= 3 + THREADS); /* refused ones are seen in passing */
}

static void requests_in_hand_are_counted(void **state) {
    (void)state;
    _Atomic uint64_t running = 0;
    assert_true(running_enter(&running, 2));
    assert_true(running_enter(&running, 2));
    assert_false(running_enter(&running, 2));
    assert_int_equal(running, 2);
    running_leave(&running);
    assert_true(running_enter(&running, 2));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_is_taken_and_no_more),
        cmocka_unit_test(tokens_flow_in_at_the_rate),
        cmocka_unit_test(any_ten_seconds_hold_the_rate),
        cmocka_unit_test(slow_rates_say_how_long_to_wait),
        cmocka_unit_test(the_largest_limits_do_not_overflow),
        cmocka_unit_test(a_smaller_bucket_after_a_reload_is_no_debt),
        cmocka_unit_test(threads_share_a_bucket),
        cmocka_unit_test(requests_in_hand_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
