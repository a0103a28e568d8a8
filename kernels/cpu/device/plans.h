/*
 * plans.h: the transform plans of a device, kept by maker and length.
 *
 * Making a plan costs far more than using it, so every plan stays with the device until PLANS_MAX
 * of them are there; then the one unused longest gives way.
 *
 * Threads: any. Ownership: a plan taken stays valid until it is given back.
 */
#ifndef KILN_KERNELS_CPU_DEVICE_PLANS_H
#define KILN_KERNELS_CPU_DEVICE_PLANS_H

#include <stddef.h>

#define PLANS_MAX 64

struct plans;

/** How plans of one sort are made; its address names the sort. */
struct plan_maker {
    /** NULL without memory. */
    void *(*create)(size_t length);
    void (*destroy)(void *plan);
};

/** NULL without memory. */
struct plans *plans_create(void);
/** No plan may be in use. NULL is allowed. */
void plans_destroy(struct plans *plans);
/** The plan of this length; NULL without memory, or where all places are in use. */
const void *plans_take(struct plans *plans, const struct plan_maker *maker, size_t length);
/** NULL is allowed. */
void plans_give(struct plans *plans, const void *plan);

#endif
