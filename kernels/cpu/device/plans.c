/*
 * plans.c: a small table under one lock.
 *
 * A plan is made outside the lock, since a long one takes milliseconds; two threads that make the
 * same one at once both keep theirs, and the older is found first.
 */
#include "kernels/cpu/device/plans.h"

#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>

struct entry {
    void *plan;
    const struct plan_maker *maker;
    size_t length;
    int users;
    uint64_t last; /* when it was taken, in takes */
};

struct plans {
    pthread_mutex_t lock;
    uint64_t takes;
    struct entry entries[PLANS_MAX];
};

struct plans *plans_create(void) {
    struct plans *plans = calloc(1, sizeof *plans);
    if (plans == NULL) {
        return NULL;
    }
    pthread_mutex_init(&plans->lock, NULL);
    return plans;
}

void plans_destroy(struct plans *plans) {
    if (plans == NULL) {
        return;
    }
    for (size_t i = 0; i < PLANS_MAX; i++) {
        if (plans->entries[i].plan != NULL) {
            plans->entries[i].maker->destroy(plans->entries[i].plan);
        }
    }
    pthread_mutex_destroy(&plans->lock);
    free(plans);
}

static void *take_kept(struct plans *plans, const struct plan_maker *maker, size_t length) {
    void *plan = NULL;
    pthread_mutex_lock(&plans->lock);
    for (size_t i = 0; plan == NULL && i < PLANS_MAX; i++) {
        struct entry *entry = &plans->entries[i];
        if (entry->plan != NULL && entry->maker == maker && entry->length == length) {
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
        if (entry->plan == NULL) {
            return entry;
        }
        if (entry->users == 0 && (best == NULL || entry->last < best->last)) {
            best = entry;
        }
    }
    return best;
}

static void *keep(struct plans *plans, const struct plan_maker *maker, void *plan, size_t length) {
    struct entry old = {.plan = plan, .maker = maker};
    pthread_mutex_lock(&plans->lock);
    struct entry *entry = place(plans);
    if (entry != NULL) {
        old = *entry;
        *entry = (struct entry){plan, maker, length, 1, ++plans->takes};
    }
    pthread_mutex_unlock(&plans->lock);
    if (old.plan != NULL) {
        old.maker->destroy(old.plan);
    }
    return entry != NULL ? plan : NULL;
}

const void *plans_take(struct plans *plans, const struct plan_maker *maker, size_t length) {
    void *plan = take_kept(plans, maker, length);
    if (plan != NULL) {
        return plan;
    }
    plan = maker->create(length);
    return plan != NULL ? keep(plans, maker, plan, length) : NULL;
}

void plans_give(struct plans *plans, const void *plan) {
    if (plan == NULL) {
        return;
    }
    pthread_mutex_lock(&plans->lock);
    for (size_t i = 0; i < PLANS_MAX; i++) {
        if (plans->entries[i].plan == plan) {
            plans->entries[i].users--;
        }
    }
    pthread_mutex_unlock(&plans->lock);
}
