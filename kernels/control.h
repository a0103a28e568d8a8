/*
 * control.h: what the front and a running job tell each other: stop, and how far it is.
 *
 * One block for each slot, in memory that both processes see. The front zeroes it before a job and
 * sets `cancel`; the kernels raise `progress`, which never falls during a job.
 *
 * Threads: any, on both sides.
 */
#ifndef KILN_KERNELS_CONTROL_H
#define KILN_KERNELS_CONTROL_H

#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#define CONTROL_FULL 65536u /* progress of a job that is done */

struct control {
    _Alignas(64) _Atomic uint32_t cancel; /* not 0: give the job up */
    _Atomic uint32_t progress;            /* share of the job's work, in 1/CONTROL_FULL */
};

/** Raises progress to this, unless it is there already. */
static inline void control_raise(struct control *control, uint32_t progress) {
    uint32_t seen = atomic_load_explicit(&control->progress, memory_order_relaxed);
    while (seen < progress &&
           !atomic_compare_exchange_weak_explicit(&control->progress, &seen, progress,
                                                  memory_order_relaxed, memory_order_relaxed)) {
    }
}

/** Tells that `done` ≤ `total` (> 0) parts of the work are done. NULL is allowed. */
static inline void control_advance(struct control *control, uint64_t done, uint64_t total) {
    if (control != NULL) {
        control_raise(control, (uint32_t)((double)done / (double)total * CONTROL_FULL));
    }
}

#endif
