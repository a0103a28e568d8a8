/*
 * backfill.c: one reservation a device.
 *
 * Threads: the caller's.
 */
#include "compute/schedule/backfill.h"

/* By their ends. There are as many as a device has places. */
static void runs_sort(struct backfill_run *runs, size_t count) {
    for (size_t i = 1; i < count; i++) {
        struct backfill_run run = runs[i];
        size_t at = i;
        for (; at > 0 && runs[at - 1].end > run.end; at--) {
            runs[at] = runs[at - 1];
        }
        runs[at] = run;
    }
}

bool backfill_reserve(struct backfill *backfill, uint64_t available, struct backfill_run *runs,
                      size_t count, uint64_t need, double now, double *promise) {
    double start = now;
    size_t ended = 0;
    runs_sort(runs, count);
    while (available < need && ended < count) {
        available += runs[ended].bytes;
        start = runs[ended].end > start ? runs[ended].end : start;
        ended++;
    }
    if (available < need) {
        *backfill = (struct backfill){0};
        return false;
    }
    /* what ends at the same moment is spare too */
    for (; ended < count && runs[ended].end <= start; ended++) {
        available += runs[ended].bytes;
    }
    if (*promise == 0) {
        *promise = start;
    }
    *backfill = (struct backfill){
        .start = start,
        .spare = available - need,
        .reserved = true,
        .closed = now >= *promise,
    };
    return true;
}

bool backfill_pass(struct backfill *backfill, uint64_t bytes, double end) {
    if (!backfill->reserved || (!backfill->closed && end <= backfill->start)) {
        return true;
    }
    if (backfill->closed || bytes > backfill->spare) {
        return false;
    }
    backfill->spare -= bytes;
    return true;
}
