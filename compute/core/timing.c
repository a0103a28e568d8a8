/*
 * timing.c: the one clock of every process of the daemon, and sums of phases. Any thread.
 */
#include "compute/core/timing.h"

#include <time.h>

void timing_add(struct timing *timing, const struct timing *more) {
    timing->upload += more->upload;
    timing->kernel += more->kernel;
    timing->download += more->download;
    timing->encode += more->encode;
}

uint64_t clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}
