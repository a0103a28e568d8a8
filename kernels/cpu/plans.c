/*
 * plans.c: a small table under one lock.
 *
 * A plan is made outside the lock, since a long one takes milliseconds; two threads that make the
 * same one at once both keep theirs, and the older is found first.
 */
#include "kernels/cpu/plans.h"
#include "kernels/cpu/nufft_simd.h"
#include "kernels/cpu/spectral_simd.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct entry {
    void *plan;
    enum plan_kind kind;
    size_t length;
    int users;
    uint64_t last; /* when it was taken, in takes */
};

struct plans {
    const struct spectral_simd *spectral;
    const struct nufft_simd *nufft;
    pthread_mutex_t lock;
    uint64_t takes;
    struct entry entries[PLANS_MAX];
};

static void *plan_create(const struct plans *plans, enum plan_kind kind, size_t length) {
    return kind == PLAN_SINE ? (void *)plans->spectral->plan_create(length)
                             : (void *)plans->nufft->plan_create(length);
}

static void plan_destroy(const struct plans *plans, enum plan_kind kind, void *plan) {
    if (kind == PLAN_SINE)
        plans->spectral->plan_destroy(plan);
    else
        plans->nufft->plan_destroy(plan);
}

struct plans *plans_create(enum isa isa) {
    struct plans *plans = calloc(1, sizeof *plans);
    if (!plans)
        return NULL;
    plans->spectral = spectral_simd_of(isa);
    plans->nufft = nufft_simd_of(isa);
    pthread_mutex_init(&plans->lock, NULL);
    return plans;
}

void plans_destroy(struct plans *plans) {
    if (!plans)
        return;
    for (size_t i = 0; i < PLANS_MAX; i++)
        if (plans->entries[i].plan)
            plan_destroy(plans, plans->entries[i].kind, plans->entries[i].plan);
    pthread_mutex_destroy(&plans->lock);
    free(plans);
}

static void *take_kept(struct plans *plans, enum plan_kind kind, size_t length) {
    void *plan = NULL;
    pthread_mutex_lock(&plans->lock);
    for (size_t i = 0; !plan && i < PLANS_MAX; i++) {
        struct entry *entry = &plans->entries[i];
        if (entry->plan && entry->kind == kind && entry->length == length) {
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

static void *keep(struct plans *plans, enum plan_kind kind, void *plan, size_t length) {
    struct entry old = {.plan = plan, .kind = kind};
    pthread_mutex_lock(&plans->lock);
    struct entry *entry = place(plans);
    if (entry) {
        old = *entry;
        *entry = (struct entry){plan, kind, length, 1, ++plans->takes};
    }
    pthread_mutex_unlock(&plans->lock);
    if (old.plan)
        plan_destroy(plans, old.kind, old.plan);
    return entry ? plan : NULL;
}

const void *plans_take(struct plans *plans, enum plan_kind kind, size_t length) {
    void *plan = take_kept(plans, kind, length);
    if (plan)
        return plan;
    plan = plan_create(plans, kind, length);
    return plan ? keep(plans, kind, plan, length) : NULL;
}

void plans_give(struct plans *plans, const void *plan) {
    if (!plan)
        return;
    pthread_mutex_lock(&plans->lock);
    for (size_t i = 0; i < PLANS_MAX; i++)
        if (plans->entries[i].plan == plan)
            plans->entries[i].users--;
    pthread_mutex_unlock(&plans->lock);
}
