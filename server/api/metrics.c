/*
 * metrics.c: fixed tables of counters.
 */
#include "server/api/metrics.h"

#include "compute/jobs/job.h"

#include <inttypes.h>
#include <stdatomic.h>

#define TYPES_MAX 16

/* Every code that this daemon can answer with; the last cell counts others. */
static const int codes[] = {0,   200, 204, 304, 400, 401, 403, 404, 405, 406, 409, 412, 413,
                            414, 415, 421, 422, 429, 431, 499, 500, 503, 504, 507, -1};
#define CODES (sizeof codes / sizeof codes[0])

/* Upper bounds in seconds. */
static const double bounds[] = {1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 0.1, 0.3, 1, 3, 10, 30, 100};
#define BOUNDS (sizeof bounds / sizeof bounds[0])

struct histogram {
    _Atomic uint64_t buckets[BOUNDS + 1]; /* not cumulative; the last has no bound */
    _Atomic uint64_t sum_ns;
};

static const struct {
    const char *name;
    size_t offset;
} phases[] = {
    {"queue", offsetof(struct timing, queue)},   {"upload", offsetof(struct timing, upload)},
    {"kernel", offsetof(struct timing, kernel)}, {"download", offsetof(struct timing, download)},
    {"encode", offsetof(struct timing, encode)}, {"total", offsetof(struct timing, total)},
};
#define PHASES (sizeof phases / sizeof phases[0])

static _Atomic uint64_t requests[ROUTES_MAX][METHODS_COUNT][CODES];
static struct histogram durations[ROUTES_MAX];
static struct histogram job_phases[TYPES_MAX][PHASES];

static void histogram_add(struct histogram *histogram, double seconds) {
    size_t bucket = 0;
    while (bucket < BOUNDS && seconds > bounds[bucket]) {
        bucket++;
    }
    atomic_fetch_add_explicit(&histogram->buckets[bucket], 1, memory_order_relaxed);
    /* what is longer than the sum can hold (585 years) is nonsense, and so is what is no number */
    bool sound = seconds > 0 && seconds < 0x1p64 / 1e9;
    atomic_fetch_add_explicit(&histogram->sum_ns, sound ? (uint64_t)(seconds * 1e9) : 0,
                              memory_order_relaxed);
}

static size_t code_index(int http) {
    size_t i = 0;
    while (i + 1 < CODES && codes[i] != http) {
        i++;
    }
    return i;
}

void metrics_request(const struct route *route, enum method method, int http, double seconds) {
    size_t row = route_index(route), column = 0;
    while (column + 1 < METHODS_COUNT && method != (enum method)(1 << column)) {
        column++;
    }
    atomic_fetch_add_explicit(&requests[row][column][code_index(http)], 1, memory_order_relaxed);
    histogram_add(&durations[row], seconds);
}

void metrics_job(int type, const struct timing *timing) {
    for (size_t i = 0; type >= 0 && type < TYPES_MAX && i < PHASES; i++) {
        double ms = *(const double *)((const char *)timing + phases[i].offset);
        histogram_add(&job_phases[type][i], ms / 1e3);
    }
}

/* `labels` without braces. */
static void histogram_print(struct text *text, const char *name, const char *labels,
                            struct histogram *histogram) {
    uint64_t count = 0;
    for (size_t i = 0; i <= BOUNDS; i++) {
        count += atomic_load(&histogram->buckets[i]);
        text_format(text, "%s_bucket{%s,le=\"", name, labels);
        if (i < BOUNDS) {
            text_double(text, bounds[i]);
        } else {
            text_string(text, "+Inf");
        }
        text_format(text, "\"} %" PRIu64 "\n", count);
    }
    text_format(text, "%s_sum{%s} %.9f\n", name, labels,
                (double)atomic_load(&histogram->sum_ns) / 1e9);
    text_format(text, "%s_count{%s} %" PRIu64 "\n", name, labels, count);
}

static void requests_print(struct text *text) {
    text_string(text, "# HELP kiln_requests_total Requests by route, method and status; status 0: "
                      "the client left before the answer.\n"
                      "# TYPE kiln_requests_total counter\n");
    for (size_t row = 0; route_at(row) != NULL; row++) {
        for (int column = 0; column < METHODS_COUNT; column++) {
            for (size_t code = 0; code < CODES; code++) {
                uint64_t count = atomic_load(&requests[row][column][code]);
                if (count > 0) {
                    text_format(text,
                                "kiln_requests_total{route=\"%s\",method=\"%s\",status=\"%d\"} "
                                "%" PRIu64 "\n",
                                route_at(row)->pattern, method_name((enum method)(1 << column)),
                                codes[code], count);
                }
            }
        }
    }
}

void metrics_print(struct text *text) {
    char labels[160];
    struct text label;
    requests_print(text);
    text_string(text, "# HELP kiln_request_seconds Time from the request line to the last byte.\n"
                      "# TYPE kiln_request_seconds histogram\n");
    for (size_t row = 0; route_at(row) != NULL; row++) {
        text_init(&label, labels, sizeof labels);
        text_format(&label, "route=\"%s\"", route_at(row)->pattern);
        histogram_print(text, "kiln_request_seconds", labels, &durations[row]);
    }
    text_string(text, "# HELP kiln_job_phase_seconds Phases of finished jobs.\n"
                      "# TYPE kiln_job_phase_seconds histogram\n");
    for (size_t type = 0; job_types[type] != NULL && type < TYPES_MAX; type++) {
        for (size_t i = 0; i < PHASES; i++) {
            text_init(&label, labels, sizeof labels);
            text_format(&label, "job=\"%s\",phase=\"%s\"", job_types[type]->name, phases[i].name);
            histogram_print(text, "kiln_job_phase_seconds", labels, &job_phases[type][i]);
        }
    }
}
