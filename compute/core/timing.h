/*
 * timing.h: the phases of one job, in milliseconds.
 *
 * upload, kernel and download are measured by the device's own clock (device events); queue,
 * encode and total by CLOCK_MONOTONIC. total runs from submission to the answer.
 */
#ifndef KILN_COMPUTE_CORE_TIMING_H
#define KILN_COMPUTE_CORE_TIMING_H

#include <stdint.h>

struct timing {
    double queue, upload, kernel, download, encode, total;
};

/** Adds the device's phases and encoding, not queue and total. */
void timing_add(struct timing *timing, const struct timing *more);

/** CLOCK_MONOTONIC in nanoseconds. The same in every process of the host. */
uint64_t clock_ns(void);

#endif
