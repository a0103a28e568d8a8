/*
 * measure.c: windows and their figures.
 *
 * The figures of a measurement are those of its last windows together: three that agree in
 * throughput and median within the given share, or one where nothing was said about that.
 */
#include "bench/load/measure.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define AGREEING 3 /* windows */

struct measure_window {
    struct tally *tally;
    double seconds, rate, median;
};

static void sleep_until(uint64_t end) {
    struct timespec time = {(time_t)(end / 1000000000), (long)(end % 1000000000)};
    while (clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &time, NULL) != 0) {
    }
}

static void sleep_for(double seconds) {
    sleep_until(load_clock_ns() + (uint64_t)(seconds * 1e9));
}

static double cpu_s(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    return (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
           (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1e6;
}

static struct quantiles quantiles_of(const struct load_histogram *histogram) {
    return (struct quantiles){
        .count = histogram->count,
        .mean = histogram_mean(histogram) / 1e6,
        .p50 = (double)histogram_percentile(histogram, 50) / 1e6,
        .p90 = (double)histogram_percentile(histogram, 90) / 1e6,
        .p95 = (double)histogram_percentile(histogram, 95) / 1e6,
        .p99 = (double)histogram_percentile(histogram, 99) / 1e6,
        .p999 = (double)histogram_percentile(histogram, 99.9) / 1e6,
        .max = (double)histogram->most / 1e6,
    };
}

uint64_t point_faults(const struct measure_point *point) {
    uint64_t sum = 0;
    for (size_t i = 0; i < FAULTS_COUNT; i++) {
        sum += point->faults[i];
    }
    return sum;
}

static void point_fill(struct measure_point *point, const struct load *load,
                       const struct tally *tally) {
    point->connections = load->connections;
    point->threads = load->threads;
    point->offered = load->rate;
    point->done = tally->done;
    point->bytes = tally->bytes;
    point->reconnects = tally->reconnects;
    memcpy(point->faults, tally->faults, sizeof point->faults);
    memcpy(point->statuses, tally->statuses, sizeof point->statuses);
    point->latency = quantiles_of(&tally->latency);
    point->service = quantiles_of(&tally->service);
    point->job = quantiles_of(&tally->job);
    point->overhead = quantiles_of(&tally->overhead);
    point->transport = quantiles_of(&tally->transport);
    point->phase_count = tally->phase_count;
    for (size_t i = 0; i < tally->phase_count; i++) {
        memcpy(point->phases[i].name, tally->phase_names[i], sizeof tally->phase_names[i]);
        point->phases[i].times = quantiles_of(&tally->phases[i]);
    }
    point->item_count = load->scenario->count;
    for (size_t i = 0; i < load->scenario->count; i++) {
        memcpy(point->items[i].name, load->scenario->items[i].name, ITEM_NAME_MAX);
        point->items[i].done = tally->item_done[i];
        point->items[i].faults = tally->item_faults[i];
        point->items[i].times = quantiles_of(&tally->items[i]);
    }
}

static bool windows_agree(const struct measure_window *windows, double percent) {
    double rate = 0, median = 0;
    for (size_t i = 0; i < AGREEING; i++) {
        rate += windows[i].rate / AGREEING;
        median += windows[i].median / AGREEING;
    }
    for (size_t i = 0; i < AGREEING; i++) {
        if (fabs(windows[i].rate - rate) > percent / 100 * rate ||
            fabs(windows[i].median - median) > percent / 100 * median) {
            return false;
        }
    }
    return rate > 0;
}

static void window_take(struct engine *engine, struct measure_window *window, double seconds) {
    tally_reset(window->tally);
    window->seconds = 0;
    sleep_for(seconds);
    engine_window(engine, window->tally, &window->seconds);
    window->rate = (double)window->tally->done / window->seconds;
    window->median = (double)histogram_percentile(&window->tally->latency, 50);
}

/* Windows until they agree; their sum to windows[0]. */
static void windows_run(struct engine *engine, const struct effort *effort,
                        struct measure_window *windows, struct measure_point *point) {
    size_t wanted = effort->stable > 0 ? AGREEING : 1;
    size_t most = effort->stable > 0 && effort->windows_max > wanted ? effort->windows_max : wanted;
    point->stable = effort->stable <= 0;
    while (point->windows < most && !(point->stable && point->windows >= wanted)) {
        window_take(engine, &windows[point->windows % wanted], effort->window_s);
        point->windows++;
        point->stable = effort->stable <= 0 ||
                        (point->windows >= wanted && windows_agree(windows, effort->stable));
    }
    for (size_t i = 1; i < wanted; i++) {
        tally_merge(windows[0].tally, windows[i].tally);
        windows[0].seconds += windows[i].seconds;
    }
}

/* Until `count` requests have an outcome. */
static bool count_run(struct engine *engine, const struct load *load, struct measure_window *window,
                      char *why, size_t why_size) {
    uint64_t before = 0, quiet = load_clock_ns();
    while (!engine_finished(engine)) {
        uint64_t outcomes = engine_outcomes(engine);
        quiet = outcomes != before ? load_clock_ns() : quiet;
        before = outcomes;
        if (load_clock_ns() - quiet > load->timeout_ns + 2000000000u) {
            snprintf(why, why_size, "no request had an outcome for %.0f s; %llu of %llu are left",
                     (double)(load_clock_ns() - quiet) / 1e9,
                     (unsigned long long)(load->count - outcomes), (unsigned long long)load->count);
            return false;
        }
        sleep_for(0.002);
    }
    engine_window(engine, window->tally, &window->seconds);
    return true;
}

/* Warm-up and windows, or `count` requests; the sum to windows[0]. */
static bool engine_run(struct engine *engine, const struct load *load, const struct effort *effort,
                       struct measure_window *windows, struct measure_point *point, char *why,
                       size_t why_size) {
    double ignored = 0;
    if (load->count == 0 && effort->warmup_s > 0) {
        sleep_for(effort->warmup_s);
        engine_window(engine, NULL, &ignored);
    }
    double cpu = cpu_s();
    uint64_t begin = load_clock_ns();
    if (load->count > 0) {
        point->windows = 1;
        point->stable = true;
        if (!count_run(engine, load, &windows[0], why, why_size)) {
            return false;
        }
    } else {
        windows_run(engine, effort, windows, point);
    }
    double wall = (double)(load_clock_ns() - begin) / 1e9;
    point->client_busy = (cpu_s() - cpu) / wall / (double)load->threads;
    point->seconds = windows[0].seconds;
    point->rate = (double)windows[0].tally->done / windows[0].seconds;
    engine_drain(engine, windows[0].tally);
    return true;
}

bool measure(const struct load *load, const struct effort *effort, struct measure_point *point,
             char *why, size_t why_size) {
    struct measure_window windows[AGREEING] = {{0}};
    struct engine *engine = NULL;
    bool fine = false;
    memset(point, 0, sizeof *point);
    for (size_t i = 0; i < AGREEING; i++) {
        windows[i].tally = tally_create();
        if (windows[i].tally == NULL) {
            snprintf(why, why_size, "out of memory");
            goto out;
        }
    }
    engine = engine_create(load, why, why_size);
    if (engine != NULL && engine_run(engine, load, effort, windows, point, why, why_size)) {
        point_fill(point, load, windows[0].tally);
        fine = true;
    }
out:
    engine_destroy(engine);
    for (size_t i = 0; i < AGREEING; i++) {
        free(windows[i].tally);
    }
    return fine;
}
