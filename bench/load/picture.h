/*
 * picture.h: latency over load as an SVG picture that reads on light and on dark pages.
 */
#ifndef KILN_BENCH_LOAD_PICTURE_H
#define KILN_BENCH_LOAD_PICTURE_H

#include "bench/load/report.h"

/** Draws p50 and p99 over right answers a second. At least one point with answers, else false. */
bool picture_write(FILE *file, const struct report *report);

#endif
