/*
 * options.h: the command line of kiln-bench, from one table.
 */
#ifndef KILN_BENCH_LOAD_OPTIONS_H
#define KILN_BENCH_LOAD_OPTIONS_H

#include "bench/load/report.h"

#define SWEEP_MAX 64

struct load_options {
    const char *url, *title;
    const char *scenario; /* file; or else one request: */
    const char *method, *path, *body, *body_file;
    char headers[4096];
    double expect;
    double connections, threads, rate, count, seed, first;
    bool constant;
    double duration, warmup, stable, windows, timeout, spin;
    const char *sweep;
    enum report_kind kind;
    double steps[SWEEP_MAX]; /* connections, or percents of the peak */
    size_t step_count;
    const char *json, *svg;
    double watch, leak_memory, leak_device, leak_descriptors;
    bool allow_errors, help;
};

/** False with a sentence in `why`. The texts stay argv's. */
bool options_read(struct load_options *options, int argc, char **argv, char *why, size_t why_size);
void options_help(FILE *file);

#endif
