/*
 * schedule_sim.h: devices of several slots, keys that send jobs, and virtual time, around the fair
 * queue. Fast and exact: the same seed gives the same schedule on every machine.
 */
#ifndef KILN_TESTS_SCHEDULE_SIM_H
#define KILN_TESTS_SCHEDULE_SIM_H

#include "compute/schedule/admission.h"
#include "compute/schedule/fair_queue.h"

#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SIM_SLOTS_MAX 16

struct sim_job {
    struct fair_job fair;
    double length; /* seconds that it takes */
    double arrival, start, end;
    double told; /* wait that was expected when it came */
    uint64_t key;
    double weight;
    enum fair_class class;
    int lane;
};

/* Jobs in the order of their arrivals, and who runs. */
struct sim {
    struct fair_queue *queue;
    struct sim_job *jobs;
    size_t count, arrived;
    struct sim_job *slot[SIM_SLOTS_MAX];
    uint64_t mask[SIM_SLOTS_MAX]; /* lanes that the slot's device serves; 0: all */
    int slots, busy;
    double now;
    double shorts;    /* the last free slot is for jobs up to so many seconds; 0: for all */
    bool uncorrected; /* what a job did take is not told */
    double tick;      /* every so often what runs is told; 0: never */
    double told;
    struct drain drain;
};

static inline double sim_random(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return ((double)(*seed >> 11) + 0.5) * 0x1p-53;
}

static inline double sim_exponential(uint64_t *seed, double mean) {
    return -mean * log(sim_random(seed));
}

static inline double sim_normal(uint64_t *seed) {
    return sqrt(-2 * log(sim_random(seed))) * cos(6.283185307179586 * sim_random(seed));
}

/* Log-normal lengths: many short ones, few long ones, none above `most`. */
static inline double sim_length(uint64_t *seed, double median, double sigma, double most) {
    return fmin(median * exp(sigma * sim_normal(seed)), most);
}

static inline int sim_by_arrival(const void *a, const void *b) {
    double one = ((const struct sim_job *)a)->arrival, other = ((const struct sim_job *)b)->arrival;
    return one < other ? -1 : one > other;
}

static enum fair_verdict sim_judge(void *context, struct fair_job *fair) {
    struct sim *sim = context;
    bool last = sim->slots - sim->busy == 1;
    return sim->shorts > 0 && last && fair->estimate > sim->shorts ? FAIR_PASS : FAIR_TAKE;
}

/* When a job that waits will start, as far as is known now. */
static inline double sim_expected(const struct sim *sim, const struct sim_job *job) {
    double seconds = fair_queue_ahead(sim->queue, &job->fair).seconds;
    for (int i = 0; i < sim->slots; i++) {
        const struct sim_job *one = sim->slot[i];
        seconds += one != NULL ? run_left(one->fair.estimate, sim->now - one->start) : 0;
    }
    return sim->busy < sim->slots ? 0 : seconds / drain_rate(&sim->drain);
}

static inline void sim_fill(struct sim *sim) {
    for (int i = 0; i < sim->slots; i++) {
        uint64_t mask = sim->mask[i] != 0 ? sim->mask[i] : ~UINT64_C(0);
        struct fair_job *fair =
            sim->slot[i] == NULL ? fair_queue_take(sim->queue, mask, sim_judge, sim) : NULL;
        if (fair != NULL) {
            struct sim_job *job = (struct sim_job *)fair;
            job->start = sim->now;
            job->end = sim->now + job->length;
            sim->slot[i] = job;
            sim->busy++;
        }
    }
}

static inline void sim_tell(struct sim *sim) {
    for (int i = 0; i < sim->slots && !sim->uncorrected; i++) {
        if (sim->slot[i] != NULL) {
            fair_queue_used(sim->queue, &sim->slot[i]->fair, sim->now - sim->slot[i]->start);
        }
    }
}

/* One event: an arrival, an end or a tick. False: there are none left, or it would be after
   `until`. */
static inline bool sim_step(struct sim *sim, double until) {
    double next = sim->arrived < sim->count ? sim->jobs[sim->arrived].arrival : INFINITY;
    int ends = -1;
    for (int i = 0; i < sim->slots; i++) {
        if (sim->slot[i] != NULL && sim->slot[i]->end < next) {
            next = sim->slot[i]->end;
            ends = i;
        }
    }
    if (next > until || next == INFINITY) {
        return false;
    }
    if (sim->tick > 0 && sim->told + sim->tick < next) {
        sim->told = sim->now = fmax(sim->told + sim->tick, sim->now);
        sim_tell(sim);
        return true;
    }
    sim->now = next;
    if (ends >= 0) {
        struct sim_job *job = sim->slot[ends];
        sim->drain.slots = sim->slots;
        drain_add(&sim->drain, job->fair.estimate, job->length);
        fair_queue_end(sim->queue, &job->fair, sim->uncorrected ? job->fair.charged : job->length);
        sim->slot[ends] = NULL;
        sim->busy--;
    } else {
        struct sim_job *job = &sim->jobs[sim->arrived++];
        double weight = job->weight > 0 ? job->weight : 1;
        bool in = fair_queue_push(sim->queue, &job->fair, job->class, job->key, weight, job->lane);
        assert(in);
        (void)in;
        sim->drain.slots = sim->slots;
        job->told = sim_expected(sim, job);
    }
    sim_fill(sim);
    return true;
}

static inline void sim_run(struct sim *sim, double until) {
    while (sim_step(sim, until)) {
    }
}

static inline int sim_by_value(const void *a, const void *b) {
    double one = *(const double *)a, other = *(const double *)b;
    return one < other ? -1 : one > other;
}

/* The share's quantile of the waits of jobs whose key lies in first … last. */
static inline double sim_wait(const struct sim *sim, uint64_t first, uint64_t last, double share) {
    double *waits = malloc((sim->count + 1) * sizeof *waits);
    size_t count = 0;
    assert(waits != NULL);
    for (size_t i = 0; i < sim->count; i++) {
        const struct sim_job *job = &sim->jobs[i];
        if (job->key >= first && job->key <= last && job->end > 0) {
            waits[count++] = job->start - job->arrival;
        }
    }
    qsort(waits, count, sizeof *waits, sim_by_value);
    double wait = count > 0 ? waits[(size_t)(share * (double)(count - 1))] : 0;
    free(waits);
    return wait;
}

/* Seconds of slots that a key has used until `until`. */
static inline double sim_used(const struct sim *sim, uint64_t key, double until) {
    double used = 0;
    for (size_t i = 0; i < sim->count; i++) {
        const struct sim_job *job = &sim->jobs[i];
        if (job->key == key && job->end > 0 && job->start < until) {
            used += fmin(job->end, until) - job->start;
        }
    }
    return used;
}

#endif
