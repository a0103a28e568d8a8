/*
 * test_booking.c: times that refused clients are given, what is held for who comes back, and the
 * limits in seconds around them.
 */
#include "compute/schedule/admission.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static unsigned make(struct bookings *bookings, double now, uint64_t client, double seconds,
                     double rate, double behind) {
    return booking_make(bookings, now, &(struct booker){client, 0, seconds}, rate, behind);
}

static bool find(struct bookings *bookings, double now, uint64_t client, uint64_t mark,
                 double seconds) {
    return booking_find(bookings, now, &(struct booker){client, mark, seconds});
}

/* Places one behind the other: the sum of what is booked, divided by the rate. */
static void in_turn(void **state) {
    (void)state;
    struct bookings *bookings = bookings_create(100);
    unsigned last = 0;
    for (uint64_t client = 1; client <= 40; client++) {
        unsigned after = make(bookings, 100, client, 1, 2, 0);
        assert_true(after >= last && after <= client + 2);
        last = after;
    }
    assert_in_range(last, 20, 30); /* 40 seconds of work at 2 a second */
    /* so much more waits than may: all of it later */
    assert_in_range(make(bookings, 100, 99, 1, 2, 100), 50, 80);
    assert_int_equal(make(bookings, 100, 98, 1e6, 2, 0), BOOKING_HORIZON);
    struct booking_counts counts = bookings_count(bookings, 100);
    assert_int_equal(counts.made, 41);
    assert_int_equal(counts.loose, 1);
    bookings_destroy(bookings);
}

/* Held from its time on, for as long as the grace; found by its client alone, for its work. */
static void held_and_found(void **state) {
    (void)state;
    struct bookings *bookings = bookings_create(10);
    unsigned after = make(bookings, 50.5, 7, 4, 2, 0);
    double due = 50.5 + after;
    assert_true(bookings_held(bookings, due - 0.6) == 0);
    assert_false(find(bookings, due - 0.6, 7, 0, 4));
    assert_true(bookings_held(bookings, due) == 4);
    assert_false(find(bookings, due, 8, 0, 4));
    assert_false(find(bookings, due, 7, 0, 6.1));
    assert_true(find(bookings, due + BOOKING_GRACE, 7, 0, 4.1));
    booking_end(bookings, due + BOOKING_GRACE, &(struct booker){7, 0, 4.1}, true);
    assert_false(find(bookings, due + BOOKING_GRACE, 7, 0, 4));
    assert_true(bookings_held(bookings, due + BOOKING_GRACE) == 0);
    after = make(bookings, 70, 7, 4, 2, 0);
    assert_true(bookings_held(bookings, 70 + after + BOOKING_GRACE + 0.1) == 0);
    struct booking_counts counts = bookings_count(bookings, 200);
    assert_int_equal(counts.kept, 1);
    assert_int_equal(counts.missed, 1);
    bookings_destroy(bookings);
}

/* Of two requests of a client, each finds its own place; another one only what its owner is late
   for. */
static void marked(void **state) {
    (void)state;
    struct bookings *bookings = bookings_create(10);
    const struct booker one = {7, 11, 2}, other = {7, 12, 1};
    double due = 20 + booking_make(bookings, 20, &one, 4, 0);
    booking_make(bookings, 20, &other, 4, 0);
    due = fmax(due, 21); /* both times are the same second */
    assert_false(find(bookings, due, 7, 13, 1));
    assert_true(find(bookings, due, 7, 0, 1)); /* not known which */
    booking_end(bookings, due, &other, true);
    assert_false(find(bookings, due, 7, 12, 1));
    assert_true(find(bookings, due, 7, 11, 2));
    assert_false(find(bookings, due + 0.9, 7, 13, 1));
    assert_true(find(bookings, due + 1.1, 7, 13, 1));
    bookings_destroy(bookings);
}

/* Clients that book and never come: others' times stay near, and soon nothing is held for them. */
static void never_back(void **state) {
    (void)state;
    struct bookings *bookings = bookings_create(5000);
    unsigned flood = 0;
    for (int i = 0; i < 1000; i++) {
        unsigned after = make(bookings, 10, 1, 1, 2, 0);
        flood = after > flood ? after : flood;
    }
    assert_true(flood > 500);
    assert_in_range(make(bookings, 10, 2, 1, 2, 0), 1, 4);
    for (uint64_t client = 3; client < 6; client++) {
        assert_in_range(make(bookings, 10, client, 0.2, 2, 0), 1, 4);
    }
    for (double now = 11; now < 400; now += 1) {
        make(bookings, now, 1, 1, 2, 0);
    }
    assert_true(bookings_held(bookings, 3000) == 0);
    struct booking_counts before = bookings_count(bookings, 3000);
    assert_in_range(make(bookings, 3000, 1, 1, 2, 0), 1, 3);
    assert_int_equal(bookings_count(bookings, 3000).loose, before.loose + 1);
    assert_true(bookings_held(bookings, 3003) == 0);
    bookings_destroy(bookings);
}

/* Many addresses that come once each fill the table and no more; who comes then has a time. */
static void full_table(void **state) {
    (void)state;
    struct bookings *bookings = bookings_create(64);
    for (uint64_t client = 0; client < 1000; client++) {
        assert_in_range(make(bookings, 5, client, 0.01, 2, 0), 1, 20);
    }
    assert_in_range(bookings_count(bookings, 5).made, 60, 64);
    /* when they are over there is room again */
    make(bookings, 500, 2000, 0.01, 2, 0);
    assert_in_range(bookings_count(bookings, 500).made, 61, 65);
    bookings_destroy(bookings);
}

/* One client with work of no size at all does not fill the table either. */
static void tiny_work(void **state) {
    (void)state;
    struct bookings *bookings = bookings_create(100);
    for (int i = 0; i < 1000; i++) {
        make(bookings, 5, 1, 1e-9, 2, 0);
    }
    assert_in_range(bookings_count(bookings, 5).made, 40, 50);
    make(bookings, 5, 2, 1, 2, 0);
    assert_in_range(bookings_count(bookings, 5).made, 41, 51);
    bookings_destroy(bookings);
}

/* Clients that book, come early, late, twice or never: each booking ends in one way, and what is
   held is never more than what was booked. */
static void random_calls(void **state) {
    (void)state;
    uint64_t random = 99;
    for (int round = 0; round < 10; round++) {
        struct bookings *bookings = bookings_create(200);
        double now = 1000, booked = 0;
        for (int call = 0; call < 20000; call++) {
            random = random * 6364136223846793005u + 1442695040888963407u;
            struct booker booker = {.client = random >> 60,
                                    .mark = random >> 57 & 7,
                                    .seconds = 0.1 + (random >> 50 & 7)};
            now += (double)(random >> 40 & 255) / 500;
            if (booking_find(bookings, now, &booker)) {
                booking_end(bookings, now, &booker, random >> 39 & 1);
            } else if (random >> 38 & 1) {
                uint64_t made = bookings_count(bookings, now).made;
                unsigned after = booking_make(bookings, now, &booker, 1 + (random >> 36 & 3), 0);
                assert_in_range(after, 1, BOOKING_HORIZON);
                booked += bookings_count(bookings, now).made > made ? booker.seconds : 0;
            }
            assert_true(bookings_held(bookings, now) >= 0);
            assert_true(bookings_held(bookings, now) <= booked + 1e-6);
        }
        struct booking_counts counts = bookings_count(bookings, now + 2 * BOOKING_HORIZON);
        assert_true(counts.kept > 0 && counts.broken > 0 && counts.missed > 0);
        assert_int_equal(counts.made, counts.kept + counts.broken + counts.missed);
        assert_true(bookings_held(bookings, now + 2 * BOOKING_HORIZON) == 0);
        bookings_destroy(bookings);
    }
}

/* A clock far ahead empties the calendar. */
static void long_after(void **state) {
    (void)state;
    struct bookings *bookings = bookings_create(64);
    for (int i = 0; i < 10; i++) {
        make(bookings, 5, 1, 100, 1, 0);
    }
    for (double now = 1e5; now < 3e6; now += 12345) {
        assert_in_range(make(bookings, now, 2, 1, 2, 0), 1, 3);
    }
    bookings_destroy(bookings);
}

/* ---- limits ---- */

static void quota(void **state) {
    (void)state;
    struct quota quota = {.seconds = 60, .window = 3600};
    assert_true(quota_left(&quota, 0) == 60);
    quota_spend(&quota, 0, 50);
    assert_float_equal(quota_left(&quota, 0), 10, 1e-9);
    assert_float_equal(quota_wait(&quota, 0, 20), 600, 1e-6);
    assert_float_equal(quota_left(&quota, 600), 20, 1e-9);
    quota_spend(&quota, 600, 40); /* used more than it had claimed */
    assert_float_equal(quota_left(&quota, 600), -20, 1e-9);
    quota_spend(&quota, 600, -30);
    assert_float_equal(quota_left(&quota, 600), 10, 1e-9);
    assert_true(quota_wait(&quota, 0, 61) == INFINITY);
    assert_float_equal(quota_left(&quota, 1e6), 60, 1e-9);
    const struct quota none = {0};
    assert_true(quota_left(&none, 5) == INFINITY && quota_wait(&none, 5, 1e9) == 0);
}

/* Measured where slots are busy: idle time does not count, nor one odd job for long. */
static void drain(void **state) {
    (void)state;
    struct drain drain = {.slots = 2};
    assert_true(drain_rate(&drain) == 2);
    for (int i = 0; i < 500; i++) {
        drain_add(&drain, 1, 2);
    }
    assert_float_equal(drain_rate(&drain), 1, 0.01);
    for (int i = 0; i < 1500; i++) {
        drain_add(&drain, 1, 0.5);
    }
    assert_float_equal(drain_rate(&drain), 4, 0.1);
    drain_add(&drain, 1, 1e6); /* the machine was asleep */
    assert_true(drain_rate(&drain) > 3);
    drain.slots = 0;
    assert_true(drain_rate(&drain) > 0);
    assert_true(run_left(10, 2) == 8 && run_left(10, 9.9) == 1 && run_left(1, 100) == 10);
}

static struct admission_request request_at(double now, double estimate) {
    return (struct admission_request){
        .now = now, .estimate = estimate, .client = 1, .latest = INFINITY, .part = 1};
}

static void verdicts(void **state) {
    (void)state;
    const struct admission_limits limits = {.job = 50, .backlog = 100};
    const struct drain drain = {.slots = 2};
    struct bookings *bookings = bookings_create(64);
    struct quota mine = {.seconds = 20, .window = 100};
    struct admission_request request = request_at(0, 10);
    assert_int_equal(admission_ask(&limits, &drain, bookings, &request).verdict, ADMISSION_YES);
    request.estimate = 51;
    assert_int_equal(admission_ask(&limits, &drain, bookings, &request).verdict,
                     ADMISSION_EXPENSIVE);
    request = request_at(0, 15);
    request.quota = &mine;
    assert_int_equal(admission_ask(&limits, &drain, bookings, &request).verdict, ADMISSION_YES);
    assert_float_equal(quota_left(&mine, 0), 5, 1e-9);
    struct admission_answer answer = admission_ask(&limits, &drain, bookings, &request);
    assert_int_equal(answer.verdict, ADMISSION_QUOTA);
    assert_int_equal(answer.retry, 50);
    request.estimate = 21;
    assert_int_equal(admission_ask(&limits, &drain, bookings, &request).verdict,
                     ADMISSION_EXPENSIVE);
    request = request_at(0, 10);
    request.waiting = 95;
    answer = admission_ask(&limits, &drain, bookings, &request);
    assert_int_equal(answer.verdict, ADMISSION_BACKLOG);
    assert_in_range(answer.retry, 3, 12); /* five seconds too many, two done a second */
    request = request_at(0, 1);
    request.waiting = request.own = 80;
    assert_int_equal(admission_ask(&limits, &drain, bookings, &request).verdict, ADMISSION_SHARE);
    request.client = 2;
    request.own = 1;
    assert_int_equal(admission_ask(&limits, &drain, bookings, &request).verdict, ADMISSION_YES);
    request.ahead = 40;
    request.latest = 30;
    answer = admission_ask(&limits, &drain, bookings, &request);
    assert_int_equal(answer.verdict, ADMISSION_YES);
    assert_float_equal(answer.wait, 20, 1e-9);
    request.latest = 20;
    assert_int_equal(admission_ask(&limits, &drain, bookings, &request).verdict, ADMISSION_LATE);
    request.latest = 0.5;
    assert_int_equal(admission_ask(&limits, &drain, bookings, &request).verdict,
                     ADMISSION_EXPENSIVE);
    bookings_destroy(bookings);
}

/* Refused, told when, and let in then, before newcomers. */
static void booked_before_newcomers(void **state) {
    (void)state;
    const struct admission_limits limits = {.job = 50, .backlog = 100};
    const struct drain drain = {.slots = 2};
    struct bookings *bookings = bookings_create(64);
    struct admission_request request = request_at(0, 10);
    request.waiting = 99;
    struct admission_answer answer = admission_ask(&limits, &drain, bookings, &request);
    assert_int_equal(answer.verdict, ADMISSION_BACKLOG);
    struct admission_request other = request_at(answer.retry, 10);
    other.client = 2;
    other.waiting = 85;
    assert_int_equal(admission_ask(&limits, &drain, bookings, &other).verdict, ADMISSION_BACKLOG);
    request.now = answer.retry;
    request.waiting = 100; /* less was done than was thought */
    assert_int_equal(admission_ask(&limits, &drain, bookings, &request).verdict, ADMISSION_YES);
    assert_int_equal(bookings_count(bookings, request.now).kept, 1);
    bookings_destroy(bookings);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(in_turn),      cmocka_unit_test(held_and_found),
        cmocka_unit_test(marked),       cmocka_unit_test(never_back),
        cmocka_unit_test(full_table),   cmocka_unit_test(tiny_work),
        cmocka_unit_test(random_calls), cmocka_unit_test(long_after),
        cmocka_unit_test(quota),        cmocka_unit_test(drain),
        cmocka_unit_test(verdicts),     cmocka_unit_test(booked_before_newcomers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
