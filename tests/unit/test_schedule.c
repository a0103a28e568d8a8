/*
 * test_schedule.c: what the queue, backfill and bookings do together over minutes of virtual time,
 * beside simpler policies. Prints the tables of bench/results; what they must show is asserted.
 */
#include "compute/schedule/admission.h"
#include "compute/schedule/backfill.h"
#include "tests/unit/schedule_sim.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#define SLOTS  2
#define MEDIAN 0.2 /* of a job's seconds; the mean is twice that */
#define SIGMA  1.2
#define MOST   5.0 /* the longest job */
#define SEEDS  8

enum policy { FIFO, DRR, SFQ, POLICIES };

/* ---- one key floods ---- */

struct flood {
    enum policy policy;
    double error;  /* estimates are wrong by exp(normal × this) */
    double shorts; /* the last slot is kept for jobs up to so long */
    bool uncorrected;
};

struct waits {
    double light50, light99, heavy50, longest, end;
    double told50, told90; /* factor that the wait told to who came was off by */
};

/* Key 0 brings 2000 jobs at once, seven others a third of what the slots can do. */
static void flood_fill(struct sim *sim, const struct flood *flood, uint64_t seed) {
    double longest = 2000 * 0.4 / SLOTS * 1.5;
    sim->count = 2000;
    sim->jobs = calloc(2000 + 4000, sizeof *sim->jobs);
    for (size_t i = 0; i < 2000; i++) {
        sim->jobs[i].key = 0;
    }
    for (uint64_t key = 1; key <= 7; key++) {
        double at = 0;
        while ((at += sim_exponential(&seed, 7 * 0.4 / (0.3 * SLOTS))) < longest / 1.5 &&
               sim->count < 6000) {
            sim->jobs[sim->count++] = (struct sim_job){.key = key, .arrival = at};
        }
    }
    for (size_t i = 0; i < sim->count; i++) {
        struct sim_job *job = &sim->jobs[i];
        job->length = sim_length(&seed, MEDIAN, SIGMA, MOST);
        job->fair.estimate = job->length * exp(flood->error * sim_normal(&seed));
    }
    qsort(sim->jobs, sim->count, sizeof *sim->jobs, sim_by_arrival);
}

/* First come, first served is one key for all. */
static void flood_queue(struct sim *sim, uint64_t *keys) {
    for (size_t i = 0; i < sim->count; i++) {
        keys[i] = sim->jobs[i].key;
        sim->jobs[i].key = 0;
    }
    sim_run(sim, INFINITY);
    for (size_t i = 0; i < sim->count; i++) {
        sim->jobs[i].key = keys[i];
    }
}

/* Deficit round robin of eight keys by estimates, for comparison. */
static void drr_run(struct sim *sim, double quantum) {
    size_t next[8] = {0}, done = 0;
    double deficit[8] = {0};
    int turn = 0;
    while (done < sim->count) {
        int free = -1;
        double now = INFINITY;
        for (int i = 0; i < sim->slots; i++) {
            double at = sim->slot[i] != NULL ? sim->slot[i]->end : 0;
            if (at < now) {
                now = at;
                free = i;
            }
        }
        sim->now = fmax(sim->now, now);
        struct sim_job *job = NULL;
        double soonest = INFINITY;
        for (int looks = 0; looks < 8 * 64 && job == NULL; looks++) {
            while (next[turn] < sim->count && sim->jobs[next[turn]].key != (uint64_t)turn) {
                next[turn]++;
            }
            struct sim_job *head = next[turn] < sim->count ? &sim->jobs[next[turn]] : NULL;
            if (head != NULL && head->arrival <= sim->now && head->fair.estimate <= deficit[turn]) {
                job = head;
                deficit[turn] -= head->fair.estimate;
                next[turn]++;
            } else {
                bool waits = head != NULL && head->arrival <= sim->now;
                soonest = head != NULL && !waits ? fmin(soonest, head->arrival) : soonest;
                deficit[turn] = waits ? deficit[turn] : 0;
                turn = (turn + 1) % 8;
                deficit[turn] += quantum;
            }
        }
        if (job == NULL) {
            sim->now = soonest;
            continue;
        }
        job->start = sim->now;
        job->end = sim->now + job->length;
        sim->slot[free] = job;
        done++;
    }
}

/* How well waits of a second and more were told, as factors. */
static double told_wrong(const struct sim *sim, double share) {
    double *factors = calloc(sim->count, sizeof *factors);
    size_t count = 0;
    for (size_t i = 0; i < sim->count; i++) {
        const struct sim_job *job = &sim->jobs[i];
        double wait = job->start - job->arrival;
        if (job->told > 0 && fmax(wait, job->told) >= 1) {
            factors[count++] = exp(fabs(log(fmax(wait, 0.1) / fmax(job->told, 0.1))));
        }
    }
    qsort(factors, count, sizeof *factors, sim_by_value);
    double factor = count > 0 ? factors[(size_t)(share * (double)(count - 1))] : 1;
    free(factors);
    return factor;
}

static struct waits flood_run(const struct flood *flood) {
    struct waits waits = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct sim sim = {.slots = SLOTS, .shorts = flood->shorts, .tick = 0.25};
        sim.uncorrected = flood->uncorrected;
        sim.queue = fair_queue_create(16, 1);
        flood_fill(&sim, flood, seed * 7717);
        uint64_t *keys = calloc(sim.count, sizeof *keys);
        if (flood->policy == FIFO) {
            flood_queue(&sim, keys);
        } else if (flood->policy == DRR) {
            drr_run(&sim, 0.5);
        } else {
            sim_run(&sim, INFINITY);
        }
        waits.light50 += sim_wait(&sim, 1, 7, 0.5) / SEEDS;
        waits.light99 += sim_wait(&sim, 1, 7, 0.99) / SEEDS;
        waits.heavy50 += sim_wait(&sim, 0, 0, 0.5) / SEEDS;
        waits.told50 += told_wrong(&sim, 0.5) / SEEDS;
        waits.told90 += told_wrong(&sim, 0.9) / SEEDS;
        for (size_t i = 0; i < sim.count; i++) {
            waits.longest = fmax(waits.longest, sim.jobs[i].length);
            waits.end = fmax(waits.end, sim.jobs[i].end);
        }
        free(keys);
        free(sim.jobs);
        fair_queue_destroy(sim.queue);
    }
    return waits;
}

static void one_key_floods(void **state) {
    (void)state;
    static const struct {
        const char *name;
        struct flood flood;
    } rows[] = {
        {"first come, first served", {FIFO, 0, 0, false}},
        {"deficit round robin, quantum 0.5 s", {DRR, 0, 0, false}},
        {"start-time fair", {SFQ, 0, 0, false}},
        {"the same, estimates wrong by e (log-normal)", {SFQ, 1, 0, false}},
        {"the same, not corrected", {SFQ, 1, 0, true}},
        {"estimates wrong by 5", {SFQ, 1.609, 0, false}},
        {"start-time fair, a slot kept for work under 0.25 s", {SFQ, 0, 0.25, false}},
        {"the same, estimates wrong by e", {SFQ, 1, 0.25, false}},
    };
    printf("\n| one key dumps 2000 jobs, %d slots, longest %.1f s | light p50 | light p99 | heavy "
           "p50 | all done | wait told off by p50 / p90 |\n|---|---|---|---|---|---|\n",
           SLOTS, MOST);
    struct waits fifo = {0};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct waits waits = flood_run(&rows[i].flood);
        printf("| %s | %.2f s | %.2f s | %.0f s | %.0f s | ", rows[i].name, waits.light50,
               waits.light99, waits.heavy50, waits.end);
        printf(rows[i].flood.policy == SFQ ? "%.2f / %.2f |\n" : "– |\n", waits.told50,
               waits.told90);
        if (rows[i].flood.policy == FIFO) {
            fifo = waits;
        } else if (rows[i].flood.policy == SFQ) {
            assert_true(waits.light99 * 20 < fifo.light99);
            /* what a kept slot takes from long jobs is in the table: that is why none is kept */
            assert_true(rows[i].flood.shorts > 0 || waits.light99 < 2 * waits.longest);
            /* with estimates that are wrong by 5 nobody can tell */
            assert_true(rows[i].flood.shorts > 0 || rows[i].flood.error > 1 ||
                        (waits.told50 < 1.5 && waits.told90 < 3));
            assert_true(rows[i].flood.shorts > 0 || waits.end < 1.02 * fifo.end);
        }
    }
}

/* Key 1's jobs take five times what they claim. Share of the slots, key 1 to key 0. */
static double cheat(bool uncorrected) {
    struct sim sim = {.slots = SLOTS, .count = 8000, .uncorrected = uncorrected};
    uint64_t seed = 99;
    sim.queue = fair_queue_create(16, 1);
    sim.jobs = calloc(sim.count, sizeof *sim.jobs);
    for (size_t i = 0; i < sim.count; i++) {
        double claim = sim_length(&seed, MEDIAN, SIGMA, MOST);
        sim.jobs[i] = (struct sim_job){
            .key = i % 2, .fair = {.estimate = claim}, .length = i % 2 ? 5 * claim : claim};
    }
    sim_run(&sim, 300);
    double share = sim_used(&sim, 1, 300) / sim_used(&sim, 0, 300);
    free(sim.jobs);
    fair_queue_destroy(sim.queue);
    return share;
}

static void claims_too_little(void **state) {
    (void)state;
    double without = cheat(true), with = cheat(false);
    printf("\n| jobs 5 times as long as they claim | share against an honest key |\n|---|---|\n"
           "| not corrected | %.2f : 1 |\n| corrected | %.2f : 1 |\n",
           without, with);
    assert_true(without > 4);
    assert_true(with > 0.9 && with < 1.1);
}

/* ---- overload ---- */

enum retry_policy { RETRY_SECOND, RETRY_ALONE, RETRY_CHAIN, RETRY_BOOKED, RETRY_POLICIES };

static const char *const retry_names[] = {
    "constant 1 s",
    "until this job alone would fit",
    "one chain of places (book += estimate / drain), jitter 10 %",
    "booked by client, held",
};

struct asker {
    double at; /* of its next try */
    double length, estimate;
    uint64_t client;
    int tries;
    double first; /* of its first try */
    struct order_node node;
    struct fair_job fair;
    double end;
};

struct overload {
    enum retry_policy policy;
    double factor; /* of what the slots can do */
    double seconds, limit, error;
    int clients;
    double absent; /* of them never come back */
    int flood;     /* connections more of a client that tries and never comes back: a second */
};

struct outcome {
    double first;        /* share of first returns that were accepted */
    double kept;         /* of promises */
    double tries;        /* of who was accepted */
    double used;         /* of the slots, while there was too much */
    double wait, wait90; /* p50 and p90 from first try to start of work */
    double longest;      /* Retry-After */
};

struct shop {
    struct asker *askers;
    struct order arrivals, running;
    struct fair_queue *queue;
    struct bookings *bookings;
    struct drain drain;
    double now, chain, used;
    uint64_t seed, returns, first_kept;
    struct asker *slot[SLOTS];
    size_t count;
};

static enum fair_verdict any_job(void *context, struct fair_job *job) {
    (void)context, (void)job;
    return FAIR_TAKE;
}

static double shop_waiting(const struct shop *shop) {
    double left = fair_queue_waiting(shop->queue, FAIR_CLASSES).seconds;
    for (int i = 0; i < SLOTS; i++) {
        const struct asker *one = shop->slot[i];
        left += one != NULL ? run_left(one->estimate, shop->now - (one->end - one->length)) : 0;
    }
    return left;
}

static void shop_fill(struct shop *shop) {
    for (int i = 0; i < SLOTS; i++) {
        struct fair_job *fair =
            shop->slot[i] == NULL ? fair_queue_take(shop->queue, 1, any_job, NULL) : NULL;
        if (fair != NULL) {
            struct asker *one = (struct asker *)((char *)fair - offsetof(struct asker, fair));
            one->end = shop->now + one->length;
            shop->slot[i] = one;
        }
    }
}

/* What simpler policies answer; 0: accepted. */
static double simple_ask(struct shop *shop, const struct overload *load, struct asker *one) {
    double rate = drain_rate(&shop->drain), waiting = shop_waiting(shop);
    if (waiting + one->estimate <= load->limit) {
        return 0;
    }
    switch (load->policy) {
    case RETRY_SECOND:
        return 1;
    case RETRY_ALONE:
        return fmax(1, ceil((waiting + one->estimate - load->limit) / rate));
    default:
        shop->chain = fmax(shop->chain, shop->now) + one->estimate / rate;
        return fmax(1, ceil((shop->chain - shop->now) * (0.9 + 0.2 * sim_random(&shop->seed))));
    }
}

static double shop_ask(struct shop *shop, const struct overload *load, struct asker *one) {
    if (load->policy != RETRY_BOOKED) {
        return simple_ask(shop, load, one);
    }
    const struct admission_limits limits = {.job = 1e9, .backlog = load->limit};
    struct admission_request request = {
        .now = shop->now,
        .estimate = fmin(one->estimate, load->limit),
        .client = one->client,
        .mark = (uint64_t)(one - shop->askers) + 1,
        .waiting = shop_waiting(shop),
        .own = fair_queue_waiting_of(shop->queue, one->client).seconds,
        .latest = INFINITY,
        .part = 1,
    };
    struct admission_answer answer = admission_ask(&limits, &shop->drain, shop->bookings, &request);
    return answer.verdict == ADMISSION_YES ? 0 : answer.retry;
}

static void asker_try(struct shop *shop, const struct overload *load, struct asker *one,
                      struct outcome *outcome) {
    double retry = shop_ask(shop, load, one);
    one->tries++;
    if (one->tries == 2) {
        shop->returns++;
        shop->first_kept += retry == 0;
    }
    if (retry > 0) {
        outcome->longest = fmax(outcome->longest, one->client != UINT64_MAX ? retry : 0);
        bool gone = one->client == UINT64_MAX || (double)(one->client % 100) < 100 * load->absent;
        if (!gone && one->tries < 200) { /* comes back a little late, as a network has it */
            order_insert(&shop->arrivals, &one->node,
                         shop->now + retry + 0.05 * sim_random(&shop->seed),
                         (uint64_t)(one - shop->askers));
        }
        return;
    }
    one->fair.estimate = one->estimate;
    bool in = fair_queue_push(shop->queue, &one->fair, FAIR_NORMAL, one->client, 1, 0);
    assert_true(in);
    shop_fill(shop);
}

static void shop_end(struct shop *shop, int slot, double until) {
    struct asker *one = shop->slot[slot];
    double start = one->end - one->length;
    shop->used += fmax(0, fmin(one->end, until) - start);
    fair_queue_end(shop->queue, &one->fair, one->length);
    drain_add(&shop->drain, one->estimate, one->length);
    shop->slot[slot] = NULL;
    shop_fill(shop);
}

static void shop_run(struct shop *shop, const struct overload *load, struct outcome *outcome) {
    for (;;) {
        struct order_node *node = order_first(&shop->arrivals);
        double next = node != NULL ? node->key : INFINITY;
        int ends = -1;
        for (int i = 0; i < SLOTS; i++) {
            if (shop->slot[i] != NULL && shop->slot[i]->end < next) {
                next = shop->slot[i]->end;
                ends = i;
            }
        }
        if (next == INFINITY) {
            return;
        }
        shop->now = next;
        if (ends >= 0) {
            shop_end(shop, ends, load->seconds);
        } else {
            order_remove(&shop->arrivals, node);
            asker_try(shop, load, (struct asker *)((char *)node - offsetof(struct asker, node)),
                      outcome);
        }
    }
}

/* Askers of the first `seconds`: honest ones at `factor` times what the slots can do. */
static void shop_open(struct shop *shop, const struct overload *load) {
    double mean = MEDIAN * exp(SIGMA * SIGMA / 2) * 0.93; /* cut off at MOST */
    size_t honest = (size_t)(load->factor * load->seconds * SLOTS / mean);
    shop->count = honest + (size_t)(load->flood * load->seconds);
    shop->askers = calloc(shop->count, sizeof *shop->askers);
    shop->queue = fair_queue_create(shop->count, 1);
    shop->bookings = bookings_create(16384);
    shop->drain.slots = SLOTS;
    for (size_t i = 0; i < shop->count; i++) {
        struct asker *one = &shop->askers[i];
        one->length = sim_length(&shop->seed, MEDIAN, SIGMA, MOST);
        one->estimate = one->length * exp(load->error * sim_normal(&shop->seed));
        one->client = i < honest ? (uint64_t)(sim_random(&shop->seed) * load->clients) : UINT64_MAX;
        one->first = load->seconds * sim_random(&shop->seed);
        order_insert(&shop->arrivals, &one->node, one->first, i);
    }
}

static struct outcome overload_run(const struct overload *load) {
    struct outcome outcome = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct shop shop = {.seed = seed * 6007};
        size_t accepted = 0, tries = 0;
        shop_open(&shop, load);
        shop_run(&shop, load, &outcome);
        double *waits = calloc(shop.count, sizeof *waits);
        for (size_t i = 0; i < shop.count; i++) {
            const struct asker *one = &shop.askers[i];
            if (one->end > 0 && one->client != UINT64_MAX) {
                waits[accepted++] = one->end - one->length - one->first;
                tries += (size_t)one->tries;
            }
        }
        qsort(waits, accepted, sizeof *waits, sim_by_value);
        struct booking_counts counts = bookings_count(shop.bookings, shop.now);
        outcome.first += (double)shop.first_kept / fmax(1, (double)shop.returns) / SEEDS;
        outcome.kept +=
            (double)counts.kept / fmax(1, (double)(counts.kept + counts.broken)) / SEEDS;
        outcome.tries += (double)tries / (double)accepted / SEEDS;
        outcome.used += shop.used / load->seconds / SLOTS / SEEDS;
        outcome.wait += waits[accepted / 2] / SEEDS;
        outcome.wait90 += waits[accepted * 9 / 10] / SEEDS;
        free(waits);
        free(shop.askers);
        fair_queue_destroy(shop.queue);
        bookings_destroy(shop.bookings);
    }
    return outcome;
}

static struct outcome overload_row(const char *name, const struct overload *load) {
    struct outcome outcome = overload_run(load);
    printf("| %s | %.0f %% | %.2f | %.1f %% | %.0f / %.0f s | %.0f s |\n", name,
           100 * outcome.first, outcome.tries, 100 * outcome.used, outcome.wait, outcome.wait90,
           outcome.longest);
    return outcome;
}

static void table_head(const char *what) {
    printf("\n| %s | first returns accepted | tries | slots busy | wait p50 / p90 | longest "
           "Retry-After "
           "|\n|---|---|---|---|---|---|\n",
           what);
}

static void retry_after_is_kept(void **state) {
    (void)state;
    static const struct {
        const char *name;
        struct overload load;
    } cases[] = {
        {"3 times, 1000 clients, estimates wrong by 1.5", {0, 3, 60, 20, 0.4, 1000, 0, 0}},
        {"the same for 10 minutes", {0, 3, 600, 20, 0.4, 1000, 0, 0}},
        {"3 times, 8 keys", {0, 3, 60, 20, 0.4, 8, 0, 0}},
        {"3 times, estimates wrong by e, backlog of 60 s", {0, 3, 60, 60, 1, 1000, 0, 0}},
        {"1.3 times, 5 minutes", {0, 1.3, 300, 20, 0.4, 1000, 0, 0}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        table_head(cases[i].name);
        for (int policy = 0; policy < RETRY_POLICIES; policy++) {
            struct overload load = cases[i].load;
            load.policy = (enum retry_policy)policy;
            struct outcome outcome = overload_row(retry_names[policy], &load);
            if (policy == RETRY_BOOKED) {
                assert_true(outcome.first >= 0.8 && outcome.kept >= 0.8);
                assert_true(outcome.used > 0.97);
            }
        }
    }
}

/* Clients that never come back, and one that books a hundred times a second and never comes. */
static void absent_clients(void **state) {
    (void)state;
    struct overload load = {RETRY_BOOKED, 3, 60, 20, 0.4, 1000, 0, 0};
    table_head("3 times, and clients that do not come back");
    struct outcome none = overload_row("all come back", &load);
    load.absent = 0.3;
    struct outcome some = overload_row("30 % of the clients never do", &load);
    load.absent = 0;
    load.flood = 100;
    struct outcome flood =
        overload_row("and one more that sends 100 a second and never does", &load);
    assert_true(some.used > 0.97 && flood.used > 0.97);
    assert_true(some.first >= 0.8 && flood.first >= 0.8);
    assert_true(flood.wait < 2.5 * none.wait);
    load.policy = RETRY_CHAIN;
    overload_row("the same with one chain of places", &load);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_key_floods),
        cmocka_unit_test(claims_too_little),
        cmocka_unit_test(retry_after_is_kept),
        cmocka_unit_test(absent_clients),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
