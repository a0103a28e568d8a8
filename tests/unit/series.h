/*
 * series.h: runs the periodogram job on the CPU backend, for its tests.
 *
 * A case is a series, an optional list of frequencies and a query; it goes through the field
 * table, check, plan and run as a request does. The result block has exactly the planned size,
 * with a guard behind it.
 */
#ifndef KILN_TESTS_UNIT_SERIES_H
#define KILN_TESTS_UNIT_SERIES_H

#include "compute/jobs/job.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

extern const struct job_type lombscargle_job;

#define SERIES_MAX   4096
#define SERIES_ROWS  8
#define SERIES_GUARD 64

struct series {
    double t[SERIES_MAX], y[SERIES_MAX], dy[SERIES_MAX], frequency[SERIES_MAX];
    size_t n, ny, ndy, nf; /* values of each; ndy and nf may be 0 */
    struct rows {
        size_t count, lengths[SERIES_ROWS]; /* count 0: a plain array */
    } t_rows, y_rows, dy_rows;
};

struct answer {
    enum kiln_status status;
    uint8_t *bytes;
    uint64_t size, capacity;
    struct complaints complaints;
    _Alignas(16) uint8_t params[JOB_PARAMS_MAX];
};

static struct device *series_device;
static struct stream *series_stream;

static inline int series_open(void **state) {
    struct device_options options = {.threads = 1};
    char why[256] = "";
    (void)state;
    if (cpu_backend.open(0, &options, &series_device, why, sizeof why) != KILN_OK) {
        return -1;
    }
    return cpu_backend.stream_create(series_device, &series_stream) == KILN_OK ? 0 : -1;
}

static inline int series_close(void **state) {
    (void)state;
    cpu_backend.stream_destroy(series_stream);
    cpu_backend.close(series_device);
    return 0;
}

static inline void series_query(struct form *form, const char *query) {
    char copy[512], *rest;
    snprintf(copy, sizeof copy, "%s", query);
    for (char *pair = strtok_r(copy, "&", &rest); pair != NULL; pair = strtok_r(NULL, "&", &rest)) {
        char *value = strchr(pair, '=');
        assert_non_null(value);
        *value = 0;
        form_set_text(form, pair, value + 1);
    }
}

static inline uint64_t series_store(struct form *form, const char *name, uint8_t *data, uint64_t at,
                                    const double *values, size_t count, const struct rows *rows) {
    size_t used = rows != NULL ? rows->count : 0;
    if (!count) {
        return at;
    }
    memcpy(data + at, values, count * sizeof *values);
    for (size_t i = 0; i < used; i++) {
        double length = (double)rows->lengths[i];
        memcpy(data + at + (count + i) * sizeof length, &length, sizeof length);
    }
    form_set_array(form, name, (struct array_ref){.offset = at, .count = count, .rows = used});
    return at + (count + used) * sizeof *values;
}

#define SERIES_BYTES (4 * (SERIES_MAX + SERIES_ROWS) * sizeof(double))

/* Fields and check only; `data` has SERIES_BYTES. */
static inline void series_check(const struct series *series, const char *query,
                                const struct limits *limits, uint8_t *data, struct input *input,
                                struct answer *answer) {
    struct form form;
    memset(answer, 0, sizeof *answer);
    form_init(&form, lombscargle_job.fields, answer->params, &answer->complaints);
    series_query(&form, query);
    uint64_t at = series_store(&form, "t", data, 0, series->t, series->n, &series->t_rows);
    at = series_store(&form, "y", data, at, series->y, series->ny, &series->y_rows);
    at = series_store(&form, "dy", data, at, series->dy, series->ndy, &series->dy_rows);
    at = series_store(&form, "frequency", data, at, series->frequency, series->nf, NULL);
    form_finish(&form);
    *input = (struct input){.kind = INPUT_SERIES, .size = at};
    lombscargle_job.check(answer->params, input, data, FORMAT_JSON, limits, &answer->complaints);
}

static const struct limits series_limits = {1u << 30, 1u << 30, 1u << 30,
                                            1u << 20, 1u << 20, 1u << 30};

/* The whole way; complaints fail the test. The caller frees bytes. */
static inline void series_run(const struct series *series, const char *query, enum format format,
                              struct answer *answer) {
    uint8_t *data = malloc(SERIES_BYTES);
    struct input input;
    struct plan plan;
    struct timing timing = {0};
    assert_non_null(data);
    series_check(series, query, &series_limits, data, &input, answer);
    if (answer->complaints.count) {
        fail_msg("%s: %s", answer->complaints.rows[0].field, answer->complaints.rows[0].reason);
    }
    assert_int_equal(lombscargle_job.plan(answer->params, &input, format, &plan), KILN_OK);
    answer->capacity = plan.result_bytes;
    answer->bytes = aligned_alloc(4096, (plan.result_bytes + SERIES_GUARD + 4095) & ~4095ull);
    assert_non_null(answer->bytes);
    memset(answer->bytes + plan.result_bytes, 0xa5, SERIES_GUARD);
    struct task task = {
        .backend = &cpu_backend,
        .stream = series_stream,
        .params = answer->params,
        .input = &input,
        .data = data,
        .format = format,
        .result = answer->bytes,
        .capacity = plan.result_bytes,
        .device_name = "cpu:0",
        .id = {.bytes = {0x0a, 0xbc}},
        .timing = &timing,
    };
    assert_int_equal(cpu_backend.begin(series_stream, NULL), KILN_OK);
    answer->status = lombscargle_job.run(&task);
    cpu_backend.finish(series_stream, &timing);
    answer->size = task.size;
    for (int i = 0; i < SERIES_GUARD; i++) {
        assert_int_equal(answer->bytes[plan.result_bytes + (uint64_t)i], 0xa5);
    }
    assert_true(answer->size <= answer->capacity);
    free(data);
}

/* Power of a run as NPY, `count` values; the caller frees. */
static inline double *series_power(const struct series *series, const char *query, size_t *count) {
    struct answer answer;
    series_run(series, query, FORMAT_NPY, &answer);
    assert_int_equal(answer.status, KILN_OK);
    uint16_t length;
    assert_memory_equal(answer.bytes, "\x93NUMPY\x01\x00", 8);
    memcpy(&length, answer.bytes + 8, 2);
    size_t header = 10u + length;
    *count = (answer.size - header) / (2 * sizeof(double));
    double *power = malloc(*count * sizeof *power);
    assert_non_null(power);
    memcpy(power, answer.bytes + header + *count * sizeof *power, *count * sizeof *power);
    free(answer.bytes);
    return power;
}

/* A repeatable number in [0, 1). */
static inline double series_random(uint64_t *state) {
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) * 0x1p-53;
}

/* A sinusoid of `frequency` with noise at uneven times within [0, 50). */
static inline struct series *series_make(size_t n, double frequency, double noise) {
    struct series *series = calloc(1, sizeof *series);
    uint64_t state = 12345;
    assert_non_null(series);
    for (size_t i = 0; i < n; i++) {
        series->t[i] = 50 * ((double)i + series_random(&state)) / (double)n;
        series->y[i] = 3 + sin(6.283185307179586 * frequency * series->t[i] + 0.4) +
                       noise * (series_random(&state) - 0.5);
        series->dy[i] = 0.1 + 0.3 * series_random(&state);
    }
    series->n = series->ny = n;
    return series;
}

#endif
