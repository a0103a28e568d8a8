/*
 * schedule.c: what the arithmetic of the queue costs a job, in nanoseconds of processor time.
 *
 *   bench_schedule     one line a call: what, how many there are, median of ROUNDS
 */
#include "compute/schedule/admission.h"
#include "compute/schedule/cost_model.h"
#include "compute/schedule/fair_queue.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ROUNDS 9
#define CALLS  20000

static double nanoseconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return one < other ? -1 : one > other;
}

static void line(const char *what, size_t there, double *rounds) {
    qsort(rounds, ROUNDS, sizeof *rounds, by_value);
    printf("| %s | %zu | %.0f |\n", what, there, rounds[ROUNDS / 2]);
}

static enum fair_verdict any_job(void *context, struct fair_job *job) {
    (void)context, (void)job;
    return FAIR_TAKE;
}

/* `waiting` jobs of `keys` keys wait; one comes, one is taken, one ends. */
static void queue_time(size_t keys, size_t waiting) {
    struct fair_queue *queue = fair_queue_create(keys + 1, 9);
    struct fair_job *jobs = calloc(waiting + 1, sizeof *jobs);
    double passes[ROUNDS], asks[ROUNDS], sum = 0;
    for (size_t i = 0; i < waiting; i++) {
        jobs[i].estimate = 0.01 + (double)(i % 7);
        fair_queue_push(queue, &jobs[i], FAIR_NORMAL, i % keys, 1, 0);
    }
    struct fair_job *spare = &jobs[waiting];
    for (int round = 0; round < ROUNDS; round++) {
        double start = nanoseconds();
        for (size_t i = 0; i < CALLS; i++) {
            *spare = (struct fair_job){.estimate = 0.1};
            fair_queue_push(queue, spare, FAIR_NORMAL, i * 7919 % keys, 1, 0);
            spare = fair_queue_take(queue, 1, any_job, NULL);
            fair_queue_end(queue, spare, 0.12);
        }
        passes[round] = (nanoseconds() - start) / CALLS;
        struct fair_job last = {.estimate = 1};
        fair_queue_push(queue, &last, FAIR_BATCH, 1, 1, 0);
        start = nanoseconds();
        for (size_t i = 0; i < 100; i++) {
            sum += fair_queue_ahead(queue, &last).seconds;
        }
        asks[round] = (nanoseconds() - start) / 100;
        fair_queue_remove(queue, &last);
    }
    printf("| push, take and end; %zu keys | %zu | ", keys, waiting);
    qsort(passes, ROUNDS, sizeof *passes, by_value);
    printf("%.0f |\n", passes[ROUNDS / 2]);
    printf("| place of a job; %zu keys | %zu | ", keys, waiting);
    qsort(asks, ROUNDS, sizeof *asks, by_value);
    printf("%.0f |\n", asks[ROUNDS / 2] + 0 * sum);
    free(jobs);
    fair_queue_destroy(queue);
}

/* Refusals and returns while `most` bookings stand. */
static void admission_time(size_t most) {
    const struct admission_limits limits = {.job = 1e6, .backlog = 100};
    const struct drain drain = {.slots = 8};
    struct bookings *bookings = bookings_create(most * 2 + CALLS * ROUNDS);
    double rounds[ROUNDS], now = 5;
    struct admission_request request = {
        .now = now, .estimate = 0.01, .waiting = 101, .latest = INFINITY, .part = 1};
    for (size_t i = 0; i < most; i++) {
        request.client = i % 1000;
        admission_ask(&limits, &drain, bookings, &request);
    }
    for (int round = 0; round < ROUNDS; round++) {
        double start = nanoseconds();
        for (size_t i = 0; i < CALLS; i++) {
            request.now = now += 0.0005;
            request.client = i * 7919 % 1000;
            admission_ask(&limits, &drain, bookings, &request);
        }
        rounds[round] = (nanoseconds() - start) / CALLS;
    }
    line("a refusal with its booking; 1000 clients", most, rounds);
    bookings_destroy(bookings);
}

static void cost_time(void) {
    static const struct work_variant table[] = {{"one", {1e-4, 1e-9, 1e-9, 1e-9, 1e-9, 1e-9}},
                                                {NULL}};
    static const struct work_variant *const tables[] = {table};
    struct cost_model *model = cost_model_create(tables, 1, 1);
    double estimates[ROUNDS], learns[ROUNDS], sum = 0;
    for (int round = 0; round < ROUNDS; round++) {
        struct work work = {.ways = 1};
        double start = nanoseconds();
        for (size_t i = 0; i < CALLS; i++) {
            work.way[0].steps[i % WORK_STEPS] = (double)(i * 1000);
            cost_learn(model, 0, 0, &work.way[0], 1e-3 + 1e-6 * (double)(i % 1000));
        }
        learns[round] = (nanoseconds() - start) / CALLS;
        start = nanoseconds();
        for (size_t i = 0; i < CALLS; i++) {
            work.way[0].steps[1] = (double)i;
            sum += cost_estimate(model, 0, 0, &work).seconds;
        }
        estimates[round] = (nanoseconds() - start) / CALLS + 0 * sum;
    }
    line("seconds of a job from its steps", 1, estimates);
    line("learning from one", 1, learns);
    cost_model_destroy(model);
}

int main(void) {
    printf("| call | waiting | ns |\n|---|--:|--:|\n");
    queue_time(1, 10);
    queue_time(8, 256);
    queue_time(8, 100000);
    queue_time(1000, 100000);
    admission_time(10000);
    cost_time();
    return 0;
}
