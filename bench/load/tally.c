/*
 * tally.c: counting and merging.
 */
#include "bench/load/tally.h"

#include "bench/load/answer.h"

#include <stdlib.h>
#include <string.h>

const char *const fault_names[FAULTS_COUNT] = {
    [FAULT_CONNECT] = "no connection",    [FAULT_CLOSED] = "connection lost",
    [FAULT_TIMEOUT] = "timeout",          [FAULT_MALFORMED] = "malformed answer",
    [FAULT_STATUS] = "unexpected status", [FAULT_UNSENT] = "due but not sent",
};

bool phase_is_job(const char *name) {
    static const char *const names[] = {"decode", "upload", "kernel", "download", "encode"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (strcmp(names[i], name) == 0) {
            return true;
        }
    }
    return false;
}

struct tally *tally_create(void) {
    return calloc(1, sizeof(struct tally));
}

void tally_reset(struct tally *tally) {
    memset(tally, 0, sizeof *tally);
}

/* The histogram of a phase; NULL once there are too many names. */
static struct load_histogram *phase_histogram(struct tally *tally, const char *name) {
    for (size_t i = 0; i < tally->phase_count; i++) {
        if (strcmp(tally->phase_names[i], name) == 0) {
            return &tally->phases[i];
        }
    }
    if (tally->phase_count == PHASES_MAX) {
        return NULL;
    }
    strcpy(tally->phase_names[tally->phase_count], name);
    return &tally->phases[tally->phase_count++];
}

void tally_merge(struct tally *into, const struct tally *from) {
    into->done += from->done;
    into->bytes += from->bytes;
    into->reconnects += from->reconnects;
    for (size_t i = 0; i < FAULTS_COUNT; i++) {
        into->faults[i] += from->faults[i];
    }
    for (size_t i = 0; i < STATUSES_MAX; i++) {
        into->statuses[i] += from->statuses[i];
    }
    histogram_merge(&into->latency, &from->latency);
    histogram_merge(&into->service, &from->service);
    histogram_merge(&into->job, &from->job);
    histogram_merge(&into->overhead, &from->overhead);
    histogram_merge(&into->transport, &from->transport);
    for (size_t i = 0; i < ITEMS_MAX; i++) {
        into->item_done[i] += from->item_done[i];
        into->item_faults[i] += from->item_faults[i];
        histogram_merge(&into->items[i], &from->items[i]);
    }
    for (size_t i = 0; i < from->phase_count; i++) {
        struct load_histogram *phase = phase_histogram(into, from->phase_names[i]);
        if (phase != NULL) {
            histogram_merge(phase, &from->phases[i]);
        }
    }
}

uint64_t tally_faults(const struct tally *tally) {
    uint64_t sum = 0;
    for (size_t i = 0; i < FAULTS_COUNT; i++) {
        sum += tally->faults[i];
    }
    return sum;
}

static uint64_t beyond(uint64_t whole, uint64_t part) {
    return whole > part ? whole - part : 0;
}

static void timing_count(struct tally *tally, uint64_t service, const char *timing) {
    struct timing_entry entry;
    uint64_t job = 0, total = 0;
    bool jobs = false, whole = false;
    while (timing_next(&timing, &entry)) {
        uint64_t ns = entry.ms < 1e7 ? (uint64_t)(entry.ms * 1e6 + 0.5) : 0;
        struct load_histogram *phase = phase_histogram(tally, entry.name);
        if (phase != NULL) {
            histogram_add(phase, ns);
        }
        if (phase_is_job(entry.name)) {
            job += ns;
            jobs = true;
        } else if (strcmp(entry.name, "total") == 0) {
            total = ns;
            whole = true;
        }
    }
    if (jobs) {
        histogram_add(&tally->job, job);
        histogram_add(&tally->overhead, beyond(service, job));
    }
    if (whole) {
        histogram_add(&tally->transport, beyond(service, total));
    }
}

void tally_answer(struct tally *tally, size_t item, uint64_t latency, uint64_t service,
                  const char *timing) {
    tally->done++;
    tally->item_done[item]++;
    histogram_add(&tally->latency, latency);
    histogram_add(&tally->service, service);
    histogram_add(&tally->items[item], latency);
    if (timing != NULL) {
        timing_count(tally, service, timing);
    }
}
