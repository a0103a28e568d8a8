/*
 * main.c: kiln-bench, a load generator for HTTP services.
 *
 * Reads the scenario, makes sure that somebody listens, measures, and writes tables, JSON and a
 * picture. See docs/benchmarks.md.
 */
#include "bench/load/options.h"
#include "bench/load/picture.h"
#include "bench/load/sweep.h"
#include "bench/load/watch.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#define WHY_MAX    600
#define WARM_SHARE 5 /* of --count, sent before a daemon is looked at */
#define WARM_LEAST 4000
#define SETTLE_S   2 /* until connections are closed and workers have told of their memory */

static void say(const char *why) {
    fprintf(stderr, "kiln-bench: %s\n", why);
}

static void settle(void) {
    struct timespec pause = {SETTLE_S, 0};
    nanosleep(&pause, NULL);
}

/* One request from the options. */
static bool request_add(struct scenario *scenario, const struct load_options *options, char *why,
                        size_t why_size) {
    size_t size = options->body != NULL ? strlen(options->body) : 0;
    char *file = NULL;
    if (options->body_file != NULL) {
        file = file_load(options->body_file, ITEM_BODY_MAX, &size, why, why_size);
        if (file == NULL) {
            return false;
        }
    }
    const char *body = file != NULL ? file : options->body;
    struct request_text request = {
        .name = "request",
        .method = options->method != NULL ? options->method
                  : body != NULL          ? "POST"
                                          : "GET",
        .path = options->path != NULL ? options->path : "/",
        .headers = options->headers,
        .body = body,
        .body_size = size,
        .body_fixed = file != NULL,
        .weight = 1,
        .expect = (int)options->expect,
    };
    bool fine = scenario_add(scenario, &request, why, why_size);
    free(file);
    return fine;
}

/* As many descriptors as connections may need. */
static void descriptors_raise(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

/* Numbers that no earlier run has used, unless it sent more than a million requests a second. */
static uint64_t number_first(const struct load_options *options) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    uint64_t hundredths = (uint64_t)now.tv_sec * 100 + (uint64_t)now.tv_nsec / 10000000;
    return options->first > 0 ? (uint64_t)options->first
                              : hundredths % UINT64_C(100000000) * UINT64_C(10000);
}

static FILE *file_open(const char *path) {
    FILE *file = fopen(path, "w");
    if (file == NULL) {
        fprintf(stderr, "kiln-bench: %s: %s\n", path, strerror(errno));
    }
    return file;
}

static bool file_finish(FILE *file, const char *path) {
    bool fine = !ferror(file);
    if (fclose(file) != 0 || !fine) {
        fprintf(stderr, "kiln-bench: %s could not be written\n", path);
        return false;
    }
    return true;
}

static bool report_write(const struct load_options *options, const struct report *report) {
    bool fine = true;
    report_markdown(stdout, report);
    fflush(stdout);
    if (options->json != NULL) {
        FILE *file = file_open(options->json);
        if (file != NULL) {
            report_json(file, report);
        }
        fine = file != NULL && file_finish(file, options->json) && fine;
    }
    if (options->svg != NULL) {
        FILE *file = file_open(options->svg);
        if (file != NULL && !picture_write(file, report)) {
            say("nothing to draw: no right answers");
        }
        fine = file != NULL && file_finish(file, options->svg) && fine;
    }
    return fine;
}

/* A warm-up of its own, then `count` requests between two looks at the daemon. */
static bool watched_run(const struct load_options *options, const struct load *load,
                        const struct effort *effort, struct measure_point *point, size_t *leaks,
                        char *why, size_t why_size) {
    static struct watch before, after;
    struct watch_limits limits = {(uint64_t)options->leak_memory, (uint64_t)options->leak_device,
                                  (uint64_t)options->leak_descriptors};
    struct load warm = *load;
    int pid = (int)options->watch;
    warm.count = load->count / WARM_SHARE > WARM_LEAST ? load->count / WARM_SHARE : WARM_LEAST;
    if (!measure(&warm, effort, point, why, why_size)) {
        return false;
    }
    settle();
    if (!watch_take(&before, pid, load->target, why, why_size) ||
        !measure(load, effort, point, why, why_size)) {
        return false;
    }
    settle();
    if (!watch_take(&after, pid, load->target, why, why_size)) {
        return false;
    }
    printf("### What the daemon holds before and after %llu requests\n\n",
           (unsigned long long)load->count);
    *leaks = watch_compare(stdout, &before, &after, &limits);
    printf("\n%s\n\n", *leaks == 0 ? "Nothing grew." : "**Something grew.**");
    return true;
}

static bool points_measure(const struct load_options *options, const struct load *load,
                           struct report *report, struct measure_point *points, size_t *leaks,
                           char *why, size_t why_size) {
    struct effort effort = {options->warmup, options->duration, options->stable,
                            (size_t)options->windows};
    if (options->kind == REPORT_CONNECTIONS) {
        return sweep_connections(options, load, &effort, points, &report->count, why, why_size);
    }
    if (options->kind == REPORT_RATES) {
        return sweep_rates(options, load, &effort, points, &report->count, &report->peak, why,
                           why_size);
    }
    bool fine = options->watch > 0
                    ? watched_run(options, load, &effort, points, leaks, why, why_size)
                    : measure(load, &effort, points, why, why_size);
    report->count = fine;
    return fine;
}

static struct load load_make(const struct load_options *options, const struct target *target,
                             const struct scenario *scenario, atomic_uint_least64_t *number) {
    size_t connections = (size_t)options->connections;
    if (options->kind == REPORT_RATES && connections == 1) {
        connections = 128; /* open loop needs spare ones */
    }
    return (struct load){
        .target = target,
        .scenario = scenario,
        .connections = connections,
        .threads = threads_choose((size_t)options->threads, connections),
        .rate = options->rate,
        .poisson = !options->constant,
        .count = (uint64_t)options->count,
        .timeout_ns = (uint64_t)(options->timeout * 1e9),
        .spin_ns = (uint64_t)(options->spin * 1e3),
        .seed = (uint64_t)options->seed,
        .number = number,
    };
}

static int bench(const struct load_options *options, struct scenario *scenario, char *why) {
    struct target target;
    atomic_uint_least64_t number = number_first(options);
    struct measure_point *points = calloc(SWEEP_MAX, sizeof *points);
    const char *title = options->title != NULL       ? options->title
                        : scenario->about[0] != '\0' ? scenario->about
                        : options->path != NULL      ? options->path
                                                     : options->url;
    struct report report = {title, options->url, options->kind, points, 0, 0};
    size_t leaks = 0;
    uint64_t faults = 0;
    int code = 2;
    if (points == NULL || !target_read(&target, options->url, why, WHY_MAX) ||
        !target_probe(&target, why, WHY_MAX) ||
        !scenario_prepare(scenario, &target, why, WHY_MAX)) {
        goto out;
    }
    struct load load = load_make(options, &target, scenario, &number);
    bool fine = points_measure(options, &load, &report, points, &leaks, why, WHY_MAX);
    if (report.count > 0 && !report_write(options, &report)) {
        snprintf(why, WHY_MAX, "not everything could be written");
        goto out;
    }
    for (size_t i = 0; i < report.count; i++) {
        faults += point_faults(&points[i]);
    }
    if (fine) {
        why[0] = '\0';
        code = leaks > 0 || (faults > 0 && !options->allow_errors);
    }
out:
    free(points);
    return code;
}

int main(int argc, char **argv) {
    static struct load_options options;
    char why[WHY_MAX] = "out of memory";
    struct scenario *scenario = scenario_create();
    int code = 2;
    signal(SIGPIPE, SIG_IGN);
    descriptors_raise();
    if (scenario == NULL || !options_read(&options, argc, argv, why, sizeof why)) {
        goto out;
    }
    if (options.help) {
        options_help(stdout);
        code = 0;
        goto out;
    }
    if (options.scenario != NULL ? scenario_load(scenario, options.scenario, why, sizeof why)
                                 : request_add(scenario, &options, why, sizeof why)) {
        code = bench(&options, scenario, why);
    }
out:
    if (code == 2) {
        say(why);
    }
    scenario_destroy(scenario);
    return code;
}
