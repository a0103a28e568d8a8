/*
 * canary.h: a kind's own example of itself as something that can be run.
 *
 * Workers run every kind's canary to warm up; the front sends one through the normal way to learn
 * whether a device still answers. Both read the kind's `canary_query` through its field table.
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_JOBS_CANARY_H
#define KILN_COMPUTE_JOBS_CANARY_H

#include "compute/jobs/job.h"

#define CANARY_DATA_MAX 65536u

/** Fills `params` (JOB_PARAMS_MAX bytes, 16-byte aligned), `inputs` (INPUTS_MAX) and `plan` for the
   kind's canary; `data` (CANARY_DATA_MAX bytes, 4096-byte aligned) receives its inputs and may be
   NULL for kinds without one. `data_size` is 0 where there is none. Errors: KILN_UNSUPPORTED where
   the kind has no canary, KILN_INTERNAL (logged) where its own table refuses it. */
enum kiln_status canary_prepare(const struct job_type *type, void *params, struct input *inputs,
                                uint8_t *data, size_t *data_size, struct plan *plan);

#endif
