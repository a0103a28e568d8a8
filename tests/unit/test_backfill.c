/*
 * test_backfill.c: who may pass a job that waits for a device's memory. Exact cases, and random
 * schedules in which jobs that need nearly all of the memory come among many small ones.
 */
#include "compute/schedule/backfill.h"
#include "compute/schedule/fair_queue.h"
#include "tests/unit/schedule_sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static void start_and_spare(void **state) {
    (void)state;
    struct backfill backfill;
    double promise = 0;
    struct backfill_run runs[] = {{30, 2}, {10, 3}, {20, 4}, {20, 1}};
    assert_true(backfill_reserve(&backfill, 1, runs, 4, 5, 5, &promise));
    assert_true(backfill.start == 20 && promise == 20); /* 1 + 3 at 10, 1 + 3 + 4 + 1 at 20 */
    assert_int_equal(backfill.spare, 4);
    assert_true(backfill_pass(&backfill, 100, 20)); /* over by then */
    assert_false(backfill_pass(&backfill, 5, 21));
    assert_true(backfill_pass(&backfill, 3, 21)); /* beside it */
    assert_false(backfill_pass(&backfill, 3, 21));
    assert_true(backfill_pass(&backfill, 1, 99));
    assert_false(backfill_reserve(&backfill, 1, runs, 4, 12, 5, &promise)); /* never */
    assert_true(backfill_pass(&backfill, 100, 1e9));
}

/* Runs take longer than they should: the start moves, the promise does not, and nothing passes once
   it is over. */
static void promise_is_over(void **state) {
    (void)state;
    struct backfill backfill;
    double promise = 0;
    struct backfill_run runs[] = {{10, 6}};
    assert_true(backfill_reserve(&backfill, 2, runs, 1, 5, 0, &promise));
    runs[0].end = 15;
    assert_true(backfill_reserve(&backfill, 2, runs, 1, 5, 9, &promise));
    assert_true(backfill.start == 15 && promise == 10);
    assert_true(backfill_pass(&backfill, 1, 14));
    assert_true(backfill_reserve(&backfill, 2, runs, 1, 5, 10, &promise));
    assert_false(backfill_pass(&backfill, 1, 11));
    runs[0].end = 8; /* overdue: at any moment */
    assert_true(backfill_reserve(&backfill, 2, runs, 1, 5, 12, &promise));
    assert_true(backfill.start == 12);
    assert_false(backfill_pass(&backfill, 1, 12.5));
}

/* ---- random schedules ---- */

#define MEMORY 100
#define SLOTS  8

struct device {
    struct fair_queue *queue;
    struct sim_job *slot[SLOTS];
    uint64_t bytes[SLOTS];
    const uint64_t *need; /* of each job */
    struct sim_job *jobs;
    double *promise;
    struct backfill backfill;
    double now;
    bool reserving;
};

static uint64_t memory_free(const struct device *device) {
    uint64_t left = MEMORY;
    for (int i = 0; i < SLOTS; i++) {
        left -= device->slot[i] != NULL ? device->bytes[i] : 0;
    }
    return left;
}

static enum fair_verdict memory_judge(void *context, struct fair_job *fair) {
    struct device *device = context;
    size_t number = (size_t)((struct sim_job *)fair - device->jobs);
    uint64_t left = memory_free(device), need = device->need[number];
    if (need > left) {
        struct backfill_run runs[SLOTS];
        size_t count = 0;
        for (int i = 0; i < SLOTS; i++) {
            struct sim_job *one = device->slot[i];
            if (one != NULL) {
                runs[count++] =
                    (struct backfill_run){one->start + one->fair.estimate, device->bytes[i]};
            }
        }
        if (device->reserving && !device->backfill.reserved) {
            backfill_reserve(&device->backfill, left, runs, count, need, device->now,
                             &device->promise[number]);
        }
        return device->backfill.closed ? FAIR_STOP : FAIR_PASS;
    }
    return backfill_pass(&device->backfill, need, device->now + fair->estimate) ? FAIR_TAKE
                                                                                : FAIR_PASS;
}

static void device_fill(struct device *device) {
    device->backfill = (struct backfill){0};
    for (int i = 0; i < SLOTS; i++) {
        struct fair_job *fair = device->slot[i] == NULL
                                    ? fair_queue_take(device->queue, 1, memory_judge, device)
                                    : NULL;
        if (fair != NULL) {
            struct sim_job *job = (struct sim_job *)fair;
            job->start = device->now;
            job->end = device->now + job->length;
            device->slot[i] = job;
            device->bytes[i] = device->need[job - device->jobs];
        }
    }
}

struct outcome {
    double large, longest, small, late, used;
};

/* 60 seconds in which small jobs could fill the device by themselves, and a large one comes now and
   then from another key. `late`: the longest that a large one waited after its promise. */
static struct outcome device_run(uint64_t seed, bool reserving, double error) {
    enum { JOBS = 6000 };
    static struct sim_job jobs[JOBS];
    static uint64_t need[JOBS];
    static double promise[JOBS];
    struct outcome outcome = {0};
    struct device device = {.jobs = jobs, .need = need, .promise = promise, .reserving = reserving};
    size_t arrived = 0, larges = 0;
    double work = 0;
    device.queue = fair_queue_create(16, 1);
    for (size_t i = 0; i < JOBS; i++) {
        bool large = i % 600 == 599;
        double length = large ? 1 : sim_length(&seed, 0.05, 0.8, 1);
        jobs[i] = (struct sim_job){.length = length,
                                   .arrival = 60 * (double)i / JOBS,
                                   .key = large ? 9 : i % 4,
                                   .fair = {.estimate = length * exp(error * sim_normal(&seed))}};
        need[i] = large ? 90 : 5 + (uint64_t)(10 * sim_random(&seed));
        promise[i] = 0;
        work += length * (double)need[i] / MEMORY;
    }
    for (;;) {
        double next = arrived < JOBS ? jobs[arrived].arrival : INFINITY;
        int ends = -1;
        for (int i = 0; i < SLOTS; i++) {
            if (device.slot[i] != NULL && device.slot[i]->end < next) {
                next = device.slot[i]->end;
                ends = i;
            }
        }
        if (next == INFINITY) {
            break;
        }
        device.now = next;
        if (ends >= 0) {
            fair_queue_end(device.queue, &device.slot[ends]->fair, device.slot[ends]->length);
            device.slot[ends] = NULL;
        } else {
            struct sim_job *job = &jobs[arrived++];
            assert_true(fair_queue_push(device.queue, &job->fair, FAIR_NORMAL, job->key, 1, 0));
        }
        device_fill(&device);
    }
    for (size_t i = 0; i < JOBS; i++) {
        double wait = jobs[i].start - jobs[i].arrival;
        assert_true(jobs[i].end > 0);
        if (need[i] == 90) {
            outcome.large += wait;
            larges++;
            outcome.longest = fmax(outcome.longest, wait);
            outcome.late = fmax(outcome.late, promise[i] > 0 ? jobs[i].start - promise[i] : 0);
        } else {
            outcome.small += wait / JOBS;
        }
    }
    outcome.large /= (double)larges;
    outcome.used = work / device.now;
    fair_queue_destroy(device.queue);
    return outcome;
}

static void large_among_small(void **state) {
    (void)state;
    static const struct {
        const char *name;
        bool reserving;
        double error;
    } rows[] = {
        {"whatever fits passes", false, 0},
        {"reservation", true, 0},
        {"reservation, estimates wrong by e", true, 1},
        {"reservation, estimates wrong by 5", true, 1.609},
    };
    printf(
        "\n| a job of 90 %% of the memory each 6 s among small ones | its wait, mean / longest | "
        "small jobs' mean wait | memory used |\n|---|---|---|---|\n");
    struct outcome free_for_all = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct outcome sum = {0};
        for (uint64_t seed = 1; seed <= 10; seed++) {
            struct outcome one = device_run(seed * 99991, rows[i].reserving, rows[i].error);
            sum.large += one.large / 10;
            sum.small += one.small / 10;
            sum.used += one.used / 10;
            sum.longest = fmax(sum.longest, one.longest);
            sum.late = fmax(sum.late, one.late);
        }
        printf("| %s | %.2f / %.2f s | %.2f s | %.0f %% |\n", rows[i].name, sum.large, sum.longest,
               sum.small, 100 * sum.used);
        if (rows[i].reserving) {
            assert_true(sum.late <= 1.0001); /* the longest run */
            assert_true(sum.longest < free_for_all.longest / 2);
        } else {
            free_for_all = sum;
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(start_and_spare),
        cmocka_unit_test(promise_is_over),
        cmocka_unit_test(large_among_small),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
