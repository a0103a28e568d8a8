/*
 * plans.c: a small table under one lock.
 *
 * A plan is made outside the lock, since a long one takes milliseconds; two threads that make the
 * same one at once both keep theirs, and the older is found first.
 */
#include "kernels/cpu/plans.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct entry {
    struct dst *plan;
    size_t length;
    int users;
    uint64_t last; /* when it was taken, in takes */
};

struct plans {
    const struct spectral_simd *simd;
    pthread_mutex_t lock;
    uint64_t takes;
    struct entry entries[PLANS_MAX];
};

struct plans *plans_create(const struct spectral_simd *simd) {
    struct plans *plans = calloc(1, sizeof *plans);
    if (!plans)
        return NULL;
    plans->simd = simd;
    pthread_mutex_init(&plans->lock, NULL);
    return plans;
}

void plans_destroy(struct plans *plans) {
    if (!plans)
        return;
    for (size_t i = 0; i < PLANS_MAX; i++)
        if (plans->entries[i].plan)
            plans->simd->plan_destroy(plans->entries[i].plan);
    pthread_mutex_destroy(&plans->lock);
    free(plans);
}

static struct dst *take_kept(struct plans *plans, size_t length) {
    struct dst *plan = NULL;
    pthread_mutex_lock(&plans->lock);
    for (size_t i = 0; !plan && i < PLANS_MAX; i++) {
        struct entry *entry = &plans->entries[i];
        if (entry->plan && entry->length == length) {
            entry->users++;
            entry->last = ++plans->takes;
            plan = entry->plan;
        }
    }
    pthread_mutex_unlock(&plans->lock);
    return plan;
}

/* The place for a new plan: an empty one, else that of the plan unused longest; NULL if all are in
   use. Under the lock. */
static struct entry *place(struct plans *plans) {
    struct entry *best = NULL;
    for (size_t i = 0; i < PLANS_MAX; i++) {
        struct entry *entry = &plans->entries[i];
        if (!entry->plan)
            return entry;
        if (entry->users == 0 && (!best || entry->last < best->last))
            best = entry;
    }
    return best;
}

static struct dst *keep(struct plans *plans, struct dst *plan, size_t length) {
    struct dst *old = plan;
    pthread_mutex_lock(&plans->lock);
    struct entry *entry = place(plans);
    if (entry) {
        old = entry->plan;
        *entry = (struct entry){plan, length, 1, ++plans->takes};
    }
    pthread_mutex_unlock(&plans->lock);
    if (old)
        plans->simd->plan_destroy(old);
    return entry ? plan : NULL;
}

const struct dst *plans_take(struct plans *plans, size_t length) {
    struct dst *plan = take_kept(plans, length);
    if (plan)
        return plan;
    plan = plans->simd->plan_create(length);
    return plan ? keep(plans, plan, length) : NULL;
}

void plans_give(struct plans *plans, const struct dst *plan) {
    if (!plan)
        return;
    pthread_mutex_lock(&plans->lock);
    for (size_t i = 0; i < PLANS_MAX; i++)
        if (plans->entries[i].plan == plan)
            plans->entries[i].users--;
    pthread_mutex_unlock(&plans->lock);
}
