/*
 * sweep.h: one measurement after another over connections or over rates.
 */
#ifndef KILN_BENCH_LOAD_SWEEP_H
#define KILN_BENCH_LOAD_SWEEP_H

#include "bench/load/options.h"

/** Threads that suit so many connections on this machine; `wanted` if not 0. */
size_t threads_choose(size_t wanted, size_t connections);

/** Measures every step of options->steps into `points` (room for SWEEP_MAX). For rates the peak in
    closed loop is found first, with 1, 2, 4 … up to options->connections connections. `count`
   points were measured, also where it ends with false and a sentence in `why`. */
bool sweep_connections(const struct load_options *options, const struct load *load,
                       const struct effort *effort, struct measure_point *points, size_t *count,
                       char *why, size_t why_size);
bool sweep_rates(const struct load_options *options, const struct load *load,
                 const struct effort *effort, struct measure_point *points, size_t *count,
                 double *peak, char *why, size_t why_size);

#endif
