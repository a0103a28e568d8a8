/*
 * tally.h: what one thread counted during one window, and the sum over threads.
 *
 * Times in nanoseconds. `latency` runs from the moment a request was due (open loop) or sent
 * (closed loop) to the last byte of its answer; `service` from its sending. Only right answers are
 * in the histograms: a fast refusal must not look like speed. Every other outcome is a fault, by
 * kind and by status.
 *
 * Threads: one owner at a time. About 2 MB, no pointers inside.
 */
#ifndef KILN_BENCH_LOAD_TALLY_H
#define KILN_BENCH_LOAD_TALLY_H

#include "bench/load/histogram.h"
#include "bench/load/scenario.h"

#include <stdbool.h>

#define PHASES_MAX   12
#define STATUSES_MAX 600

enum fault {
    FAULT_CONNECT,   /* no connection */
    FAULT_CLOSED,    /* connection lost before the answer was complete */
    FAULT_TIMEOUT,   /* no complete answer in time */
    FAULT_MALFORMED, /* no HTTP/1.1 answer */
    FAULT_STATUS,    /* another status than expected */
    FAULT_UNSENT,    /* due in the window (open loop) and never sent: every connection was busy */
    FAULTS_COUNT
};

extern const char *const fault_names[FAULTS_COUNT];

/** Phases of Server-Timing that are a device's or an encoder's work on the job itself. */
bool phase_is_job(const char *name);

struct tally {
    uint64_t done; /* right answers */
    uint64_t bytes, reconnects;
    uint64_t faults[FAULTS_COUNT];
    uint64_t statuses[STATUSES_MAX];
    uint64_t item_done[ITEMS_MAX], item_faults[ITEMS_MAX];
    struct load_histogram latency, service;
    /* Of answers with Server-Timing: the job's phases, service - job, service - total. */
    struct load_histogram job, overhead, transport;
    struct load_histogram items[ITEMS_MAX]; /* latency of each request of the scenario */
    size_t phase_count;
    char phase_names[PHASES_MAX][24];
    struct load_histogram phases[PHASES_MAX];
};

struct tally *tally_create(void);
void tally_reset(struct tally *tally);
void tally_merge(struct tally *into, const struct tally *from);
uint64_t tally_faults(const struct tally *tally);

/** A right answer. `timing` is its Server-Timing value or NULL. */
void tally_answer(struct tally *tally, size_t item, uint64_t latency, uint64_t service,
                  const char *timing);

#endif
