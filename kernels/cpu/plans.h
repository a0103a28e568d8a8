/*
 * plans.h: the transform plans of a device, kept by length.
 *
 * Making a plan costs far more than using it, so every plan stays with the device until PLANS_MAX
 * of them are there; then the one unused longest gives way.
 *
 * Threads: any. Ownership: a plan taken stays valid until it is given back.
 */
#ifndef KILN_KERNELS_CPU_PLANS_H
#define KILN_KERNELS_CPU_PLANS_H

#include "kernels/cpu/spectral_simd.h"

#define PLANS_MAX 64

struct plans;

/** NULL without memory. */
struct plans *plans_create(const struct spectral_simd *simd);
/** No plan may be in use. NULL is allowed. */
void plans_destroy(struct plans *plans);
/** The plan of this length; NULL without memory, or where all places are in use. */
const struct dst *plans_take(struct plans *plans, size_t length);
void plans_give(struct plans *plans, const struct dst *plan);

#endif
