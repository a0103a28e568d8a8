/*
 * test_fair_queue.c: exact small cases, and what must hold of every schedule: nobody idles beside
 * work, shares follow weights, nobody waits for ever, and a key that floods or claims too little
 * gains nothing.
 */
#include "tests/unit/schedule_sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static enum fair_verdict take_any(void *context, struct fair_job *job) {
    (void)context, (void)job;
    return FAIR_TAKE;
}

#define ALL (~UINT64_C(0))

static struct fair_job *take(struct fair_queue *queue) {
    return fair_queue_take(queue, ALL, take_any, NULL);
}

static void push(struct fair_queue *queue, struct fair_job *job, uint64_t key, double estimate) {
    *job = (struct fair_job){.estimate = estimate};
    assert_true(fair_queue_push(queue, job, FAIR_NORMAL, key, 1, 0));
}

/* Keys take turns, each by its seconds; within a key first come, first served. */
static void turns(void **state) {
    (void)state;
    struct fair_queue *queue = fair_queue_create(4, 1);
    struct fair_job a[4], b[2];
    for (int i = 0; i < 4; i++) {
        push(queue, &a[i], 1, 1);
    }
    for (int i = 0; i < 2; i++) {
        push(queue, &b[i], 2, 2);
    }
    struct fair_job *order[] = {&a[0], &b[0], &a[1], &a[2], &b[1], &a[3]};
    double ahead[] = {0, 1, 3, 4, 5, 7};
    for (size_t i = 0; i < 6; i++) {
        assert_float_equal(fair_queue_ahead(queue, order[i]).seconds, ahead[i], 1.001);
    }
    for (size_t i = 0; i < 6; i++) {
        assert_ptr_equal(take(queue), order[i]);
    }
    assert_null(take(queue));
    assert_int_equal(fair_queue_waiting(queue, FAIR_CLASSES).jobs, 0);
    fair_queue_destroy(queue);
}

/* A job that took ten times its claim puts its key back by what it took, before its end already. */
static void correction(void **state) {
    (void)state;
    struct fair_queue *queue = fair_queue_create(4, 1);
    struct fair_job a[3], b[12];
    for (int i = 0; i < 3; i++) {
        push(queue, &a[i], 1, 1);
    }
    for (int i = 0; i < 12; i++) {
        push(queue, &b[i], 2, 1);
    }
    assert_ptr_equal(take(queue), &a[0]);
    fair_queue_used(queue, &a[0], 4);
    for (int i = 0; i < 4; i++) {
        assert_ptr_equal(take(queue), &b[i]);
    }
    fair_queue_end(queue, &a[0], 8); /* a has had 8 */
    for (int i = 4; i < 8; i++) {
        assert_ptr_equal(take(queue), &b[i]);
    }
    assert_ptr_equal(take(queue), &a[1]);
    fair_queue_end(queue, &a[1], 0); /* its worker was lost, say: nothing was used */
    assert_ptr_equal(take(queue), &a[2]);
    fair_queue_destroy(queue);
}

/* A return goes to the head of its line and costs nothing; a removal leaves no trace. */
static void back_and_out(void **state) {
    (void)state;
    struct fair_queue *queue = fair_queue_create(4, 2);
    struct fair_job a[3];
    for (int i = 0; i < 3; i++) {
        push(queue, &a[i], 1, 5);
    }
    assert_ptr_equal(take(queue), &a[0]);
    fair_queue_return(queue, &a[0]);
    fair_queue_remove(queue, &a[1]);
    assert_int_equal(fair_queue_waiting_of(queue, 1).jobs, 2);
    assert_float_equal(fair_queue_waiting_of(queue, 1).seconds, 10, 1e-9);
    assert_ptr_equal(take(queue), &a[0]);
    assert_ptr_equal(take(queue), &a[2]);
    assert_int_equal(fair_queue_waiting_of(queue, 2).jobs, 0);
    fair_queue_destroy(queue);
}

/* Who comes late starts at the present, neither before those who wait nor behind their past; who
   was idle has saved nothing up. */
static void latecomer(void **state) {
    (void)state;
    struct fair_queue *queue = fair_queue_create(4, 1);
    struct fair_job a[20], b[20];
    for (int i = 0; i < 20; i++) {
        push(queue, &a[i], 1, 1);
    }
    for (int i = 0; i < 10; i++) {
        assert_ptr_equal(take(queue), &a[i]);
    }
    for (int i = 0; i < 20; i++) {
        push(queue, &b[i], 2, 1);
    }
    int of_b = 0;
    for (int i = 0; i < 10; i++) {
        struct fair_job *job = take(queue);
        of_b += job >= b && job < b + 20;
    }
    assert_in_range(of_b, 5, 6);
    fair_queue_destroy(queue);
}

/* The same for one that has been here before. */
static void returner(void **state) {
    (void)state;
    struct fair_queue *queue = fair_queue_create(4, 1);
    struct fair_job a[30], b[10];
    push(queue, &b[0], 2, 1);
    fair_queue_end(queue, take(queue), 1);
    for (int i = 0; i < 30; i++) {
        push(queue, &a[i], 1, 1);
    }
    for (int i = 0; i < 9; i++) {
        take(queue);
    }
    for (int i = 0; i < 10; i++) {
        push(queue, &b[i], 2, 1);
    }
    int of_b = 0;
    for (int i = 0; i < 10; i++) {
        struct fair_job *job = take(queue);
        of_b += job >= b && job < b + 10;
    }
    assert_in_range(of_b, 5, 6);
    fair_queue_destroy(queue);
}

/* Lanes: a device gets what it serves only, and what nobody serves holds nobody up. */
static void lanes(void **state) {
    (void)state;
    struct fair_queue *queue = fair_queue_create(4, 3);
    struct fair_job any = {.estimate = 1}, one = {.estimate = 1}, two = {.estimate = 1};
    assert_true(fair_queue_push(queue, &two, FAIR_INTERACTIVE, 1, 1, 2));
    assert_true(fair_queue_push(queue, &one, FAIR_NORMAL, 1, 1, 1));
    assert_true(fair_queue_push(queue, &any, FAIR_NORMAL, 1, 1, 0));
    assert_ptr_equal(fair_queue_take(queue, 3, take_any, NULL), &one);
    assert_ptr_equal(fair_queue_take(queue, 3, take_any, NULL), &any);
    assert_null(fair_queue_take(queue, 3, take_any, NULL));
    assert_ptr_equal(fair_queue_take(queue, 5, take_any, NULL), &two);
    fair_queue_destroy(queue);
}

static enum fair_verdict not_this(void *context, struct fair_job *job) {
    return job == context ? FAIR_PASS : FAIR_TAKE;
}

static enum fair_verdict not_behind_this(void *context, struct fair_job *job) {
    return job == context ? FAIR_STOP : FAIR_TAKE;
}

static void judged(void **state) {
    (void)state;
    struct fair_queue *queue = fair_queue_create(4, 1);
    struct fair_job a[2], b;
    push(queue, &a[0], 1, 1);
    push(queue, &a[1], 1, 1);
    push(queue, &b, 2, 1);
    assert_null(fair_queue_take(queue, ALL, not_behind_this, &a[0]));
    assert_ptr_equal(fair_queue_take(queue, ALL, not_this, &a[0]), &a[1]);
    assert_ptr_equal(fair_queue_take(queue, ALL, not_this, &a[0]), &b);
    assert_ptr_equal(take(queue), &a[0]);
    fair_queue_destroy(queue);
}

/* Limits: the earliest first, waiting or running; removal takes them along. */
static void limits(void **state) {
    (void)state;
    struct fair_queue *queue = fair_queue_create(4, 1);
    struct fair_job a[3];
    for (int i = 0; i < 3; i++) {
        push(queue, &a[i], 1, 1);
        fair_queue_limit(queue, &a[i], 10 - i);
    }
    assert_ptr_equal(fair_queue_earliest(queue), &a[2]);
    fair_queue_remove(queue, &a[2]);
    assert_ptr_equal(fair_queue_earliest(queue), &a[1]);
    assert_ptr_equal(take(queue), &a[0]);
    fair_queue_limit(queue, &a[0], 3);
    assert_ptr_equal(fair_queue_earliest(queue), &a[0]);
    fair_queue_end(queue, &a[0], 1);
    fair_queue_limit(queue, &a[1], INFINITY);
    assert_null(fair_queue_earliest(queue));
    fair_queue_destroy(queue);
}

/* More keys than places: refused while all have jobs; debts are forgotten last. */
static void full(void **state) {
    (void)state;
    struct fair_queue *queue = fair_queue_create(2, 1);
    struct fair_job a, b, c = {.estimate = 1};
    push(queue, &a, 1, 50);
    push(queue, &b, 2, 1);
    assert_false(fair_queue_push(queue, &c, FAIR_NORMAL, 3, 1, 0));
    assert_ptr_equal(take(queue), &a);
    assert_ptr_equal(take(queue), &b);
    fair_queue_end(queue, &a, 50);
    fair_queue_end(queue, &b, 1);
    push(queue, &c, 3, 1); /* in place of 2, which owes less */
    push(queue, &a, 1, 1);
    assert_ptr_equal(take(queue), &c); /* 1 still has 49 seconds to wait for */
    fair_queue_destroy(queue);
    /* of two classes, too */
    struct fair_job d = {.estimate = 50}, e = {.estimate = 1};
    queue = fair_queue_create(2, 1);
    assert_true(fair_queue_push(queue, &d, FAIR_BATCH, 1, 1, 0));
    assert_true(fair_queue_push(queue, &e, FAIR_INTERACTIVE, 2, 1, 0));
    while ((d.state == FAIR_WAITING || e.state == FAIR_WAITING) && take(queue) != NULL) {
    }
    fair_queue_end(queue, &d, 50);
    fair_queue_end(queue, &e, 1);
    c = (struct fair_job){.estimate = 1}; /* of batch, in place of 2: 1 still owes */
    assert_true(fair_queue_push(queue, &c, FAIR_BATCH, 3, 1, 0));
    struct fair_job more = {.estimate = 1};
    assert_true(fair_queue_push(queue, &more, FAIR_BATCH, 3, 1, 0));
    d = (struct fair_job){.estimate = 1};
    assert_true(fair_queue_push(queue, &d, FAIR_BATCH, 1, 1, 0));
    assert_ptr_equal(take(queue), &c);
    assert_ptr_equal(take(queue), &more);
    fair_queue_destroy(queue);
}

/* ---- properties ---- */

/* No slot that serves a lane is free while a job waits in it. */
static void assert_no_idling(struct sim *sim) {
    for (int i = 0; i < sim->slots; i++) {
        if (sim->slot[i] == NULL) {
            assert_null(fair_queue_take(sim->queue, sim->mask[i], take_any, NULL));
        }
    }
}

static void random_schedules(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 60; seed++) {
        uint64_t random = seed * 7919;
        struct sim sim = {.slots = 1 + (int)(seed % 5), .count = 600};
        sim.queue = fair_queue_create(64, 4);
        sim.jobs = calloc(sim.count, sizeof *sim.jobs);
        sim.tick = seed % 2 ? 0.5 : 0;
        for (int i = 0; i < sim.slots; i++) {
            sim.mask[i] = i == 0 ? 15 : 1 | UINT64_C(2) << i % 3;
        }
        double total = 0;
        for (size_t i = 0; i < sim.count; i++) {
            double length = sim_length(&random, 0.2, 1.5, 20);
            sim.jobs[i] = (struct sim_job){
                .fair = {.estimate = length * exp(sim_normal(&random))},
                .length = length,
                .arrival = 60 * sim_random(&random),
                .key = (uint64_t)(12 * sim_random(&random)),
                .weight = 1 + (double)(i % 3),
                .class = (enum fair_class)(3 * sim_random(&random)),
                .lane = (int)(4 * sim_random(&random)),
            };
            total += length;
        }
        qsort(sim.jobs, sim.count, sizeof *sim.jobs, sim_by_arrival);
        while (sim_step(&sim, INFINITY)) {
            assert_no_idling(&sim);
        }
        for (size_t i = 0; i < sim.count; i++) { /* all have run, once, after they came */
            assert_true(sim.jobs[i].end > 0 && sim.jobs[i].start >= sim.jobs[i].arrival);
            assert_int_equal(sim.jobs[i].fair.state, FAIR_OUT);
        }
        assert_true(sim.now <= 60 + total);
        assert_int_equal(fair_queue_waiting(sim.queue, FAIR_CLASSES).jobs, 0);
        assert_true(fair_queue_waiting(sim.queue, FAIR_CLASSES).seconds == 0);
        free(sim.jobs);
        fair_queue_destroy(sim.queue);
    }
}

/* Three keys that always have work, weights 1, 2, 3, one of which claims a fifth of what it takes:
   while all wait, what each has used differs from its share by at most a job of each slot. */
static void shares_follow_weights(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 30; seed++) {
        uint64_t random = seed * 104729;
        struct sim sim = {.slots = 2, .count = 3000, .tick = 0.1};
        sim.queue = fair_queue_create(8, 1);
        sim.jobs = calloc(sim.count, sizeof *sim.jobs);
        for (size_t i = 0; i < sim.count; i++) {
            double length = sim_length(&random, 0.2, 1.2, 4);
            uint64_t key = i % 3;
            sim.jobs[i] = (struct sim_job){
                .fair = {.estimate = key == seed % 3 ? length / 5 : length},
                .length = length,
                .key = key,
                .weight = (double)key + 1,
            };
        }
        double until = 120;
        sim_run(&sim, until);
        for (uint64_t key = 0; key < 3; key++) {
            assert_true(fair_queue_waiting_of(sim.queue, key).jobs > 0);
            double share = 2 * until * ((double)key + 1) / 6;
            assert_float_equal(sim_used(&sim, key, until), share, 2 * 4 + 1);
        }
        free(sim.jobs);
        fair_queue_destroy(sim.queue);
    }
}

/* Classes that all have work share 16 : 4 : 1, and the least one is never left out. */
static void classes(void **state) {
    (void)state;
    struct sim sim = {.slots = 1, .count = 6000};
    sim.queue = fair_queue_create(8, 1);
    sim.jobs = calloc(sim.count, sizeof *sim.jobs);
    for (size_t i = 0; i < sim.count; i++) {
        sim.jobs[i] = (struct sim_job){.fair = {.estimate = 0.1},
                                       .length = 0.1,
                                       .key = i % 3,
                                       .class = (enum fair_class)(i % 3)};
    }
    sim_run(&sim, 210);
    assert_float_equal(sim_used(&sim, FAIR_INTERACTIVE, 210), 160, 0.5);
    assert_float_equal(sim_used(&sim, FAIR_NORMAL, 210), 40, 0.5);
    assert_float_equal(sim_used(&sim, FAIR_BATCH, 210), 10, 0.5);
    free(sim.jobs);
    fair_queue_destroy(sim.queue);
}

/* A key whose device was away for long does not have it for itself afterwards. */
static void no_saving_up(void **state) {
    (void)state;
    struct fair_queue *queue = fair_queue_create(4, 2);
    static struct fair_job a[200], b[2000];
    for (int i = 0; i < 200; i++) { /* lane 1, which nobody serves at first */
        a[i] = (struct fair_job){.estimate = 1};
        assert_true(fair_queue_push(queue, &a[i], FAIR_NORMAL, 1, 1, 1));
    }
    for (int i = 0; i < 2000; i++) {
        push(queue, &b[i], 2, 1);
    }
    for (int i = 0; i < 1000; i++) {
        struct fair_job *job = fair_queue_take(queue, 1, take_any, NULL);
        fair_queue_end(queue, job, 1);
    }
    int of_b = 0;
    for (int i = 0; i < 60; i++) {
        struct fair_job *job = take(queue);
        of_b += job >= b && job < b + 2000;
        fair_queue_end(queue, job, 1);
    }
    assert_in_range(of_b, (60 - FAIR_LAG) / 2 - 1, 30);
    fair_queue_destroy(queue);
}

/* Calls in any order that is allowed, against plain counts; places, keys and limits come and go. */
static void random_calls(void **state) {
    (void)state;
    enum { JOBS = 200, KEYS = 12, PLACES = 8 };
    static struct fair_job jobs[JOBS];
    static uint64_t key_of[JOBS];
    static enum fair_class class_of[JOBS];
    for (uint64_t seed = 1; seed <= 20; seed++) {
        uint64_t random = seed * 65537;
        struct fair_queue *queue = fair_queue_create(PLACES, 3);
        size_t refused = 0;
        memset(jobs, 0, sizeof jobs);
        for (int call = 0; call < 5000; call++) {
            int i = (int)(JOBS * sim_random(&random));
            struct fair_job *job = &jobs[i];
            double dice = sim_random(&random);
            if (job->state == FAIR_OUT) {
                *job = (struct fair_job){.estimate = sim_exponential(&random, 1) + 1e-6};
                key_of[i] = (uint64_t)(KEYS * sim_random(&random));
                class_of[i] = (enum fair_class)(3 * sim_random(&random));
                refused += !fair_queue_push(queue, job, class_of[i], key_of[i], 1 + dice,
                                            (int)(3 * sim_random(&random)));
            } else if (dice < 0.2) {
                fair_queue_limit(queue, job, dice < 0.02 ? INFINITY : 1000 * dice);
            } else if (job->state == FAIR_WAITING && dice < 0.4) {
                fair_queue_remove(queue, job);
            } else if (job->state == FAIR_WAITING) {
                uint64_t mask = 1 + (uint64_t)(7 * sim_random(&random));
                struct fair_ahead ahead = fair_queue_ahead(queue, job);
                assert_true(ahead.jobs < JOBS && ahead.seconds >= 0);
                struct fair_job *taken = fair_queue_take(queue, mask, take_any, NULL);
                assert_true(taken == NULL ||
                            (taken->state == FAIR_RUNNING && (mask >> taken->lane & 1)));
            } else if (dice < 0.4) {
                fair_queue_used(queue, job, 4 * dice);
            } else if (dice < 0.5) {
                fair_queue_return(queue, job);
            } else {
                fair_queue_end(queue, job, 3 * dice);
            }
            struct fair_total waiting[KEYS] = {{0}}, all = {0};
            double earliest = INFINITY;
            for (int k = 0; k < JOBS; k++) {
                if (jobs[k].state == FAIR_WAITING) {
                    waiting[key_of[k]].jobs++;
                    waiting[key_of[k]].seconds += jobs[k].estimate;
                    all.jobs++;
                }
                if (jobs[k].state != FAIR_OUT && order_contains(&jobs[k].clock)) {
                    earliest = fmin(earliest, jobs[k].limit);
                }
            }
            struct fair_job *first = fair_queue_earliest(queue);
            assert_true(earliest == INFINITY ? first == NULL : first->limit == earliest);
            assert_int_equal(fair_queue_waiting(queue, FAIR_CLASSES).jobs, all.jobs);
            for (uint64_t key = 0; key < KEYS; key++) {
                struct fair_total of = fair_queue_waiting_of(queue, key);
                assert_int_equal(of.jobs, waiting[key].jobs);
                assert_float_equal(of.seconds, waiting[key].seconds, 1e-6);
            }
        }
        assert_true(refused > 0); /* more keys and classes than places */
        fair_queue_destroy(queue);
    }
}

/* What is told of a waiting job's place comes true when nothing else arrives: to within a job of
   each key, and what the other classes get while that runs. */
static void places_come_true(void **state) {
    (void)state;
    for (uint64_t seed = 1; seed <= 40; seed++) {
        enum { JOBS = 300, KEYS = 9 };
        static struct fair_job jobs[JOBS];
        static struct fair_ahead told[JOBS];
        static enum fair_class class_of[JOBS];
        uint64_t random = seed * 31337;
        struct fair_queue *queue = fair_queue_create(KEYS * FAIR_CLASSES, 1);
        const double others[FAIR_CLASSES] = {21.0 / 16, 21.0 / 4, 21};
        double most = 0, seconds = 0, wrong = 0;
        for (int i = 0; i < JOBS; i++) {
            double estimate = sim_length(&random, 0.2, 1, 3);
            most = fmax(most, estimate);
            jobs[i] = (struct fair_job){.estimate = estimate};
            enum fair_class class = class_of[i] =
                seed % 2 ? FAIR_NORMAL : (enum fair_class)(3 * sim_random(&random));
            uint64_t key = (uint64_t)(KEYS * sim_random(&random));
            assert_true(fair_queue_push(queue, &jobs[i], class, key, 1 + (double)(key % 2), 0));
        }
        for (int i = 0; i < JOBS; i++) {
            told[i] = fair_queue_ahead(queue, &jobs[i]);
        }
        for (size_t taken = 0; taken < JOBS; taken++) {
            struct fair_job *job = take(queue);
            const struct fair_ahead *ahead = &told[job - jobs];
            double part = seed % 2 ? 1 : others[class_of[job - jobs]];
            assert_true(fabs(ahead->seconds - seconds) <= KEYS * most * part);
            wrong += fabs(ahead->seconds - seconds) / JOBS;
            seconds += job->estimate;
        }
        assert_true(wrong < 0.1 * seconds);
        fair_queue_destroy(queue);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(turns),
        cmocka_unit_test(correction),
        cmocka_unit_test(back_and_out),
        cmocka_unit_test(latecomer),
        cmocka_unit_test(returner),
        cmocka_unit_test(lanes),
        cmocka_unit_test(judged),
        cmocka_unit_test(limits),
        cmocka_unit_test(full),
        cmocka_unit_test(random_schedules),
        cmocka_unit_test(shares_follow_weights),
        cmocka_unit_test(classes),
        cmocka_unit_test(no_saving_up),
        cmocka_unit_test(random_calls),
        cmocka_unit_test(places_come_true),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
