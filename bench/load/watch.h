/*
 * watch.h: what a daemon holds, before and after: the search for leaks.
 *
 * Sources: /proc of the given process and its children (resident and anonymous memory, descriptors,
 * threads), and the gauges of its /metrics whose names speak of memory, the arena, a cache or
 * connections. Linux only. Threads: the main one.
 */
#ifndef KILN_BENCH_LOAD_WATCH_H
#define KILN_BENCH_LOAD_WATCH_H

#include "bench/load/target.h"

#include <stdint.h>
#include <stdio.h>

#define WATCH_PROCESSES_MAX 16
#define WATCH_GAUGES_MAX    64

struct watch_process {
    int pid;
    char name[32];
    uint64_t resident, anonymous; /* bytes */
    uint64_t descriptors, threads;
};

struct watch_gauge {
    char name[120]; /* with its labels */
    double value;
};

struct watch {
    size_t processes, gauges;
    struct watch_process process[WATCH_PROCESSES_MAX];
    struct watch_gauge gauge[WATCH_GAUGES_MAX];
};

/** False with a sentence in `why`. */
bool watch_take(struct watch *watch, int pid, const struct target *target, char *why,
                size_t why_size);

/** Reads gauges from the text of /metrics; returns how many it kept. */
size_t watch_gauges_read(struct watch *watch, const char *text);

/** How much may differ. */
struct watch_limits {
    uint64_t memory;      /* growth of one process' anonymous memory, bytes */
    uint64_t device;      /* growth of our pools, or loss of a GPU's free memory, bytes */
    uint64_t descriptors; /* growth of one process */
};

/** Prints both and the difference as a Markdown table; returns how many rows break a limit. A
   process that is gone or new is one. Arena in use, without what a cache holds, must not grow at
   all. */
size_t watch_compare(FILE *file, const struct watch *before, const struct watch *after,
                     const struct watch_limits *limits);

#endif
