/*
 * sweep.c: loads in rising order.
 */
#include "bench/load/sweep.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The peak is reached when twice and four times the connections give no more than so much more. */
#define SATURATED 1.03

size_t threads_choose(size_t wanted, size_t connections) {
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    size_t most = cores >= 16 ? 4 : cores >= 8 ? 2 : 1;
    size_t suits = wanted > 0 ? wanted : connections / 8;
    suits = wanted == 0 && suits > most ? most : suits;
    suits = suits < connections ? suits : connections;
    return suits > 0 ? suits : 1;
}

static void progress(const struct measure_point *point) {
    fprintf(stderr, "kiln-bench: %zu connections, %.0f/s due: %.0f/s, p50 %.3f ms, p99 %.3f ms\n",
            point->connections, point->offered, point->rate, point->latency.p50,
            point->latency.p99);
}

bool sweep_connections(const struct load_options *options, const struct load *load,
                       const struct effort *effort, struct measure_point *points, size_t *count,
                       char *why, size_t why_size) {
    for (*count = 0; *count < options->step_count; (*count)++) {
        struct load step = *load;
        step.connections = (size_t)options->steps[*count];
        step.threads = threads_choose((size_t)options->threads, step.connections);
        if (!measure(&step, effort, &points[*count], why, why_size)) {
            return false;
        }
        progress(&points[*count]);
    }
    return true;
}

/* The most that closed loop reaches, and whether all went well. */
static bool peak_find(const struct load_options *options, const struct load *load,
                      const struct effort *effort, double *peak, char *why, size_t why_size) {
    struct measure_point *point = malloc(sizeof *point);
    int without = 0; /* steps in a row that gained nothing */
    bool fine = point != NULL;
    snprintf(why, why_size, "out of memory");
    *peak = 0;
    for (size_t connections = 1; fine && connections <= load->connections; connections *= 2) {
        struct load step = *load;
        step.connections = connections;
        step.threads = threads_choose((size_t)options->threads, connections);
        fine = measure(&step, effort, point, why, why_size);
        if (!fine) {
            break;
        }
        progress(point);
        without = point->rate < *peak * SATURATED ? without + 1 : 0;
        *peak = point->rate > *peak ? point->rate : *peak;
        if (connections >= 8 && without >= 2) {
            break;
        }
    }
    free(point);
    if (fine && !(*peak > 0)) {
        snprintf(why, why_size, "no right answer in closed loop: there is no peak");
        fine = false;
    }
    return fine;
}

bool sweep_rates(const struct load_options *options, const struct load *load,
                 const struct effort *effort, struct measure_point *points, size_t *count,
                 double *peak, char *why, size_t why_size) {
    *count = 0;
    if (!peak_find(options, load, effort, peak, why, why_size)) {
        return false;
    }
    for (; *count < options->step_count; (*count)++) {
        struct load step = *load;
        step.rate = *peak * options->steps[*count] / 100;
        if (!measure(&step, effort, &points[*count], why, why_size)) {
            return false;
        }
        points[*count].share = options->steps[*count];
        progress(&points[*count]);
    }
    return true;
}
