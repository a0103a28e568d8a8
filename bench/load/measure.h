/*
 * measure.h: one measurement: warm-up, windows until they agree, the figures.
 *
 * Threads: the main one.
 */
#ifndef KILN_BENCH_LOAD_MEASURE_H
#define KILN_BENCH_LOAD_MEASURE_H

#include "bench/load/engine.h"

/** How long, and when it is enough. */
struct effort {
    double warmup_s, window_s;
    double stable;      /* percent by which three windows in a row may differ; 0: one window */
    size_t windows_max; /* then the last three count, marked as not stable */
};

/** Milliseconds. */
struct quantiles {
    uint64_t count;
    double mean, p50, p90, p95, p99, p999, max;
};

struct named_quantiles {
    char name[ITEM_NAME_MAX];
    uint64_t done, faults; /* of a request */
    struct quantiles times;
};

/** The figures of one measurement. */
struct measure_point {
    size_t connections, threads, windows;
    double offered;     /* requests a second that were due; 0 in closed loop */
    double share;       /* percent of the peak that `offered` is; 0 unless in a sweep of rates */
    double rate;        /* right answers a second */
    double seconds;     /* of the windows */
    double client_busy; /* cores that the client used, of its threads: near 1 it measures itself */
    bool stable;
    uint64_t done, bytes, reconnects, faults[FAULTS_COUNT];
    uint64_t statuses[STATUSES_MAX];
    struct quantiles latency, service, job, overhead, transport;
    size_t phase_count, item_count;
    struct named_quantiles phases[PHASES_MAX], items[ITEMS_MAX];
};

uint64_t point_faults(const struct measure_point *point);

/** Measures. False with a sentence in `why` if it could not; faults of requests are part of the
    figures. */
bool measure(const struct load *load, const struct effort *effort, struct measure_point *point,
             char *why, size_t why_size);

#endif
