/*
 * test_metrics.c: /metrics read as strictly as Prometheus' own linter does (text format 0.0.4), and
 * compared with what was asked before.
 */
#include "tests/api/lib_daemon.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FAMILIES_MAX 128
#define SERIES_MAX   4096

struct family {
    char name[96], type[16];
    bool helped;
    size_t samples;
};

/* One exposition, as it is read. */
struct reading {
    struct family families[FAMILIES_MAX];
    size_t family_count;
    char *series[SERIES_MAX]; /* name and labels of every sample: each comes once */
    size_t series_count;
    /* of the histogram being read */
    char labels[256];
    double bound, cumulated, infinite;
};

static struct daemon daemon_;
static struct session *session;

static int setup(void **state) {
    static const char *const flags[] = {"--cache-bytes", "64M", NULL};
    (void)state;
    daemon_start(&daemon_, flags);
    session = session_create(&daemon_);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    session_destroy(session);
    return daemon_stop(&daemon_);
}

static bool ends_with(const char *text, const char *end) {
    size_t size = strlen(text), tail = strlen(end);
    return size >= tail && strcmp(text + size - tail, end) == 0;
}

/* [a-z_][a-z0-9_]*: our names, narrower than what is allowed. */
static size_t name_size(const char *text) {
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz_";
    size_t size = strspn(text, "abcdefghijklmnopqrstuvwxyz_0123456789");
    return size > 0 && strchr(letters, text[0]) != NULL ? size : 0;
}

/* Units and suffixes. */
static void name_check(const struct family *family) {
    static const char *const odd[] = {"_ms",      "_milliseconds", "_us",       "_minutes",
                                      "_percent", "_kilobytes",    "_megabytes"};
    bool counter = strcmp(family->type, "counter") == 0;
    if (counter != ends_with(family->name, "_total")) {
        fail_msg("%s is a %s", family->name, family->type);
    }
    for (size_t i = 0; i < sizeof odd / sizeof odd[0]; i++) {
        const char *found = strstr(family->name, odd[i]);
        if (found != NULL && strchr("_", found[strlen(odd[i])]) != NULL) { /* a whole word */
            fail_msg("%s has no base unit", family->name);
        }
    }
    if (strncmp(family->name, "kiln_", 5) != 0 && strncmp(family->name, "process_", 8) != 0) {
        fail_msg("%s is nobody's", family->name);
    }
}

static struct family *family_last(struct reading *reading) {
    return reading->family_count > 0 ? &reading->families[reading->family_count - 1] : NULL;
}

/* "# HELP name text" opens a family, "# TYPE name type" follows at once. */
static void comment_read(struct reading *reading, const char *line) {
    char name[96], word[16];
    struct family *last = family_last(reading);
    if (sscanf(line, "# HELP %95s %15s", name, word) == 2) {
        assert_true(last == NULL || last->type[0] != '\0');
        for (size_t i = 0; i < reading->family_count; i++) {
            if (strcmp(reading->families[i].name, name) == 0) {
                fail_msg("%s comes twice", name);
            }
        }
        assert_true(reading->family_count < FAMILIES_MAX);
        assert_int_equal(name_size(name), strlen(name));
        struct family *family = &reading->families[reading->family_count++];
        *family = (struct family){.helped = true};
        snprintf(family->name, sizeof family->name, "%s", name);
        return;
    }
    if (sscanf(line, "# TYPE %95s %15s", name, word) != 2 || last == NULL) {
        fail_msg("odd comment: %s", line);
    }
    assert_string_equal(last->name, name);
    assert_true(last->helped && last->type[0] == '\0' && last->samples == 0);
    assert_true(strcmp(word, "counter") == 0 || strcmp(word, "gauge") == 0 ||
                strcmp(word, "histogram") == 0);
    snprintf(last->type, sizeof last->type, "%s", word);
    name_check(last);
}

/* {name="value",…}; returns what follows. `le` and the other labels come apart. */
static const char *labels_read(const char *at, char *others, size_t size, char *le) {
    size_t used = 0;
    others[0] = le[0] = '\0';
    assert_int_equal(*at++, '{');
    for (;;) {
        size_t name = name_size(at);
        assert_true(name > 0 && at[name] == '=' && at[name + 1] == '"');
        const char *value = at + name + 2, *end = value;
        while (*end != '"') {
            assert_true((unsigned char)*end >= 0x20);
            end += *end == '\\' ? 2 : 1;
        }
        if (name == 2 && memcmp(at, "le", 2) == 0) {
            snprintf(le, 32, "%.*s", (int)(end - value), value);
        } else {
            used += (size_t)snprintf(others + used, size - used, "%.*s,", (int)(end + 1 - at), at);
            assert_true(used < size);
        }
        at = end + 1;
        if (*at == '}') {
            return at + 1;
        }
        assert_int_equal(*at++, ',');
    }
}

static void histogram_read(struct reading *reading, const char *suffix, const char *labels,
                           const char *le, double value) {
    if (strcmp(suffix, "_bucket") == 0) {
        bool first = strcmp(labels, reading->labels) != 0 || isinf(reading->bound);
        double bound = strcmp(le, "+Inf") == 0 ? INFINITY : strtod(le, NULL);
        assert_true(le[0] != '\0');
        if (!first) {
            assert_true(bound > reading->bound && value >= reading->cumulated);
        }
        snprintf(reading->labels, sizeof reading->labels, "%s", labels);
        reading->bound = bound;
        reading->cumulated = value;
        reading->infinite = value;
        return;
    }
    assert_string_equal(labels, reading->labels);
    assert_true(isinf(reading->bound)); /* the last bucket has come */
    if (strcmp(suffix, "_count") == 0) {
        assert_true(value == reading->infinite);
    } else {
        assert_string_equal(suffix, "_sum");
        assert_true(value >= 0);
    }
}

static void sample_read(struct reading *reading, const char *line) {
    char labels[256] = "", le[32] = "";
    struct family *family = family_last(reading);
    size_t size = name_size(line), base = family != NULL ? strlen(family->name) : 0;
    assert_true(family != NULL && size >= base && family->type[0] != '\0');
    if (strncmp(line, family->name, base) != 0) {
        fail_msg("a sample outside of its family: %s", line);
    }
    const char *at =
        line[size] == '{' ? labels_read(line + size, labels, sizeof labels, le) : line + size;
    char *end, suffix[16] = "";
    assert_int_equal(*at, ' ');
    double value = strtod(at + 1, &end);
    assert_true(end > at + 1 && *end == '\0' && !isnan(value));
    snprintf(suffix, sizeof suffix, "%.*s", (int)(size - base), line + base);
    if (strcmp(family->type, "histogram") == 0) {
        histogram_read(reading, suffix, labels, le, value);
    } else {
        assert_string_equal(suffix, "");
        assert_string_equal(le, "");
    }
    if (strcmp(family->type, "counter") == 0) {
        assert_true(value >= 0);
    }
    for (size_t i = 0; i < reading->series_count; i++) {
        if (strncmp(reading->series[i], line, (size_t)(at - line)) == 0 &&
            reading->series[i][at - line] == '\0') {
            fail_msg("twice: %s", line);
        }
    }
    assert_true(reading->series_count < SERIES_MAX);
    reading->series[reading->series_count++] = strndup(line, (size_t)(at - line));
    family->samples++;
}

static void exposition_read(struct reading *reading) {
    struct answer answer;
    memset(reading, 0, sizeof *reading);
    session_get(session, "/metrics", &answer);
    assert_status(&answer, 200);
    assert_header(&answer, "Content-Type", "text/plain; version=0.0.4; charset=utf-8");
    assert_true(answer.size > 0 && answer.body[answer.size - 1] == '\n');
    assert_int_equal(strlen(answer.body), answer.size);
    for (char *save = NULL, *line = strtok_r(answer.body, "\n", &save); line != NULL;
         line = strtok_r(NULL, "\n", &save)) {
        if (line[0] == '#') {
            comment_read(reading, line);
        } else {
            sample_read(reading, line);
        }
    }
    answer_free(&answer);
}

static void reading_free(struct reading *reading) {
    for (size_t i = 0; i < reading->series_count; i++) {
        free(reading->series[i]);
    }
}

static bool has_family(const struct reading *reading, const char *name) {
    for (size_t i = 0; i < reading->family_count; i++) {
        if (strcmp(reading->families[i].name, name) == 0) {
            return true;
        }
    }
    return false;
}

static void grammar(void **state) {
    (void)state;
    static const char *const expected[] = {
        "kiln_requests_total",
        "kiln_request_seconds",
        "kiln_job_phase_seconds",
        "kiln_queue_jobs",
        "kiln_queue_oldest_seconds",
        "kiln_running_jobs",
        "kiln_device_ready",
        "kiln_device_slots",
        "kiln_device_respawns_total",
        "kiln_device_busy_seconds_total",
        "kiln_device_active_seconds_total",
        "kiln_device_memory_total_bytes",
        "kiln_device_energy_joules_total",
        "kiln_arena_used_bytes",
        "kiln_cache_requests_total",
        "kiln_cache_used_bytes",
        "kiln_cache_evicted_total",
        "kiln_connections",
    };
    struct reading *reading = malloc(sizeof *reading);
    struct answer answer;
    assert_non_null(reading);
    static const char *const paths[] = {"/v1/mandelbrot?width=20&height=20",
                                        "/v1/mandelbrot?width=20&height=20",
                                        "/v1/mandelbrot?width=0", "/%22%5C/nothing", "/readyz"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        session_get(session, paths[i], &answer);
        answer_free(&answer);
    }
    for (int round = 0; round < 2; round++) {
        exposition_read(reading);
        for (size_t i = 0; i < sizeof expected / sizeof expected[0]; i++) {
            if (!has_family(reading, expected[i])) {
                fail_msg("%s is missing", expected[i]);
            }
        }
        assert_true(reading->series_count > 100);
        reading_free(reading);
    }
    free(reading);
}

static double device_get(const char *name) {
    const char *device = getenv("KILN_TEST_DEVICE");
    char full[128];
    snprintf(full, sizeof full, "%s{device=\"%s\"}", name,
             device != NULL && strchr(device, ':') != NULL ? device : "cpu:0");
    return metric_get(session, full);
}

/* Work shows: time on the device, phases, memory. */
static void work_shows(void **state) {
    (void)state;
    struct answer answer;
    double active = device_get("kiln_device_active_seconds_total");
    double busy = device_get("kiln_device_busy_seconds_total");
    double done = device_get("kiln_device_jobs_done_total");
    session_get(session, "/v1/mandelbrot?width=500&height=500&max_iter=3000&format=npy", &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    assert_true(device_get("kiln_device_active_seconds_total") > active);
    assert_true(device_get("kiln_device_busy_seconds_total") > busy);
    assert_true(device_get("kiln_device_jobs_done_total") == done + 1);
    assert_true(device_get("kiln_device_slots") >= 1);
    assert_true(device_get("kiln_device_memory_total_bytes") > 1e6);
    assert_true(metric_get(session, "kiln_job_phase_seconds_count{job=\"mandelbrot\","
                                    "phase=\"queue\"}") >= 1);
    assert_true(metric_get(session, "kiln_cache_bytes") == 64 << 20);
}

/* What every dashboard looks for, with values that the kernel says too. */
static void process_rows(void **state) {
    struct answer answer;
    char path[64];
    (void)state;
    session_get(session, "/metrics", &answer);
    assert_status(&answer, 200);
    const char *build = strstr(answer.body, "\nkiln_build_info{version=\"");
    assert_non_null(build);
    const char *rest = strstr(build, "\"} 1\n");
    assert_non_null(rest);
    answer_free(&answer);
    snprintf(path, sizeof path, "/proc/%d/stat", (int)daemon_.pid);
    FILE *file = fopen(path, "r");
    unsigned long space = 0;
    assert_non_null(file);
    assert_int_equal(fscanf(file,
                            "%*d (%*[^)]) %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %*d "
                            "%*d %*d %*d %*d %*d %*u %lu",
                            &space),
                     1);
    fclose(file);
    double spent = metric_get(session, "process_cpu_seconds_total");
    double open = metric_get(session, "process_open_fds");
    double most = metric_get(session, "process_max_fds");
    double virtual = metric_get(session, "process_virtual_memory_bytes");
    double resident = metric_get(session, "process_resident_memory_bytes");
    double started = metric_get(session, "process_start_time_seconds");
    double uptime = metric_get(session, "kiln_uptime_seconds");
    assert_true(spent > 0 && open > 3 && open < most);
    assert_true(virtual > 0.5 * (double)space && virtual < 2 * (double)space);
    assert_true(resident > 1e5 && resident < virtual);
    assert_true(fabs((double)time(NULL) - uptime - started) < 5);
    struct session *more[8];
    for (size_t i = 0; i < 8; i++) {
        more[i] = session_create(&daemon_);
        session_get(more[i], "/healthz", &answer);
        answer_free(&answer);
    }
    assert_true(metric_get(session, "process_open_fds") >= open + 8);
    assert_true(metric_get(session, "process_start_time_seconds") == started);
    for (size_t i = 0; i < 8; i++) {
        session_destroy(more[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(grammar),
        cmocka_unit_test(work_shows),
        cmocka_unit_test(process_rows),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
