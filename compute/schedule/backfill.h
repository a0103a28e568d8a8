/*
 * backfill.h: when a job that waits for a device's memory will have it, and who may pass it
 * meanwhile (EASY backfill, Lifka 1995).
 *
 * The first job in fair order that lacks memory gets a reservation: the time at which enough will
 * be free if every run ends by its estimate, and what is spare beside it then. Another job may pass
 * if it ends before that time or fits into the spare. Estimates can be wrong; so the first such
 * time is a promise, and once it is over nothing passes: the job then waits for what runs, and no
 * longer.
 *
 * Times are seconds from any fixed start. Threads: none of its own; one device, one pass.
 */
#ifndef KILN_COMPUTE_SCHEDULE_BACKFILL_H
#define KILN_COMPUTE_SCHEDULE_BACKFILL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** What runs on the device. */
struct backfill_run {
    double end; /* by its estimate; earlier than now: overdue, it may end at any time */
    uint64_t bytes;
};

/** A reservation; all zero: there is none, and everything passes. */
struct backfill {
    double start; /* when the memory will be there */
    uint64_t spare;
    bool reserved, closed;
};

/** Reserves `need` bytes, of which `available` are free now and the others when `runs` end (the
    array is sorted). `promise` is the job's own, 0 before its first call. False: it would not fit
    with all of them gone, and there is no reservation. */
bool backfill_reserve(struct backfill *backfill, uint64_t available, struct backfill_run *runs,
                      size_t count, uint64_t need, double now, double *promise);

/** Whether a job of `bytes` (which are free) that would end at `end` may pass; if so, it is
    taken to be running. */
bool backfill_pass(struct backfill *backfill, uint64_t bytes, double end);

#endif
