/*
 * cost_model.h: seconds of a job on a device, learned from those before it.
 *
 * For each variant of each kind on each device a row holds the numbers of work.h, fitted to the
 * measured times: least squares of relative errors, with weights from what was predicted (so that
 * the mean of measured / predicted is 1), half of what was learned forgotten every 32 jobs, held
 * close to what was believed before where there is nothing to learn from. One odd time moves a row
 * by a bounded amount; a lasting change is followed within some jobs.
 *
 * A row without measurements believes the kind's table, times how much slower this device's other
 * rows have turned out than theirs.
 *
 * Threads: none of its own; the caller's lock. Memory: all rows at create. An estimate takes some
 * ten nanoseconds, learning about a microsecond.
 */
#ifndef KILN_COMPUTE_SCHEDULE_COST_MODEL_H
#define KILN_COMPUTE_SCHEDULE_COST_MODEL_H

#include "compute/schedule/work.h"

#include <stdbool.h>
#include <stdint.h>

struct cost_model;

struct cost {
    double seconds;
    double high; /* that about nine jobs in ten stay below */
    int way;     /* of the work, that this is for */
};

/** What is kept of a row: enough to go on from. */
struct cost_row {
    double seconds[1 + WORK_STEPS];
    double spread;  /* that seven of ten |log(measured / predicted)| stay below */
    uint64_t count; /* jobs that it has learned from */
};

/** `kinds` tables of variants (constant, not copied), for devices 0 … `devices` - 1. NULL: no
 * memory.
 */
struct cost_model *cost_model_create(const struct work_variant *const *variants, int kinds,
                                     int devices);
void cost_model_destroy(struct cost_model *model);

/** What a job of this kind would take on this device. */
struct cost cost_estimate(const struct cost_model *model, int kind, int device,
                          const struct work *work);

/** A job has taken `seconds` > 0 of a slot of the device; `way`: as cost_estimate said. */
void cost_learn(struct cost_model *model, int kind, int device, const struct work_way *way,
                double seconds);

/** Reads a row. False: it has learned nothing. */
bool cost_row_read(const struct cost_model *model, int kind, int variant, int device,
                   struct cost_row *row);
/** Puts a row back that was read before, by this or an earlier run, in place of what is there.
   False, and nothing is changed, where its numbers cannot be. */
bool cost_row_write(struct cost_model *model, int kind, int variant, int device,
                    const struct cost_row *row);

#endif
