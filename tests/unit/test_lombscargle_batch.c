/*
 * test_lombscargle_batch.c: several light curves in one request, several terms, bootstrap.
 *
 * What a batch says of a curve must be what a request of its own says, byte for byte where numbers
 * are compared: the sums do not depend on the neighbours.
 */
#include "compute/jobs/lombscargle/lombscargle.h"
#include "series.h"

#include <cjson/cJSON.h>

#define CURVES 3

/* Curves of unequal or equal length; with shared times they have those of the first. */
static struct series *several(bool shared, bool errors) {
    static const size_t lengths[] = {50, 37, 64};
    struct series *batch = calloc(1, sizeof *batch);
    size_t at = 0;
    assert_non_null(batch);
    for (size_t i = 0; i < CURVES; i++) {
        size_t n = shared ? 50 : lengths[i];
        struct series *one = series_make(n, 0.2 + 0.13 * (double)i, 0.5 + (double)i);
        for (size_t j = 0; j < n; j++) {
            if (!shared || i == 0) {
                batch->t[at + j] = one->t[j] * (1 + 0.1 * (double)i);
            }
            batch->y[at + j] = one->y[j];
            batch->dy[at + j] = one->dy[j] * (1 + (double)((i + j) % 3));
        }
        batch->y_rows.lengths[i] = n;
        at += n;
        free(one);
    }
    batch->n = shared ? 50 : at;
    batch->ny = at;
    batch->ndy = errors ? at : 0;
    batch->y_rows.count = CURVES;
    if (!shared) {
        batch->t_rows = batch->y_rows;
    }
    if (errors) {
        batch->dy_rows = batch->y_rows;
    }
    return batch;
}

/* One curve of a batch as a request of its own. */
static struct series *curve_of(const struct series *batch, size_t index) {
    struct series *one = calloc(1, sizeof *one);
    size_t at = 0, n = batch->y_rows.lengths[index];
    assert_non_null(one);
    for (size_t i = 0; i < index; i++) {
        at += batch->y_rows.lengths[i];
    }
    memcpy(one->t, batch->t + (batch->t_rows.count ? at : 0), n * sizeof(double));
    memcpy(one->y, batch->y + at, n * sizeof(double));
    memcpy(one->dy, batch->dy + (batch->dy_rows.count ? at : 0), n * sizeof(double));
    one->n = one->ny = n;
    one->ndy = batch->ndy ? n : 0;
    return one;
}

static const double *npy_rows(const struct answer *answer, const char *shape) {
    uint16_t length;
    assert_int_equal(answer->status, KILN_OK);
    assert_memory_equal(answer->bytes, "\x93NUMPY\x01\x00", 8);
    memcpy(&length, answer->bytes + 8, 2);
    answer->bytes[9 + length] = 0; /* the header's last byte is a line feed */
    assert_non_null(strstr((const char *)answer->bytes + 10, shape));
    return (const double *)(const void *)(answer->bytes + 10 + length);
}

static void test_batch_is_loop(void **state) {
    static const char *const queries[] = {
        "f0=0.011&df=0.004&nf=2500&method=direct",
        "f0=0.011&df=0.004&nf=2500&method=direct&fit_mean=false&normalization=psd",
        "f0=0.011&df=0.004&nf=2500&method=direct&precision=fp32&normalization=log",
        "f0=0.011&df=0.004&nf=2500&method=direct&nterms=3"};
    (void)state;
    for (int variant = 0; variant < 16; variant++) {
        struct series *batch = several(variant & 1, variant & 2);
        if ((variant & 3) == 3 && variant / 4 % 2) { /* one array of errors for all */
            batch->ndy = 50;
            batch->dy_rows.count = 0;
        }
        struct answer all;
        series_run(batch, queries[variant / 4], FORMAT_NPY, &all);
        const double *rows = npy_rows(&all, "'shape': (3, 2500)");
        for (size_t i = 0; i < CURVES; i++) {
            struct series *one = curve_of(batch, i);
            size_t count;
            double *power = series_power(one, queries[variant / 4], &count);
            assert_int_equal(count, 2500);
            assert_memory_equal(power, rows + i * 2500, 2500 * sizeof *power);
            free(power);
            free(one);
        }
        free(all.bytes);
        free(batch);
    }
}

/* Transforms give what direct sums give, alone and side by side, and say so. */
static void test_methods_agree(void **state) {
    static const char *const queries[] = {
        "f0=0&df=0.001&nf=4000&method=%s", "f0=0.011&df=0.003&nf=900&nterms=3&method=%s",
        "f0=2&df=0.0007&nf=1500&normalization=model&fit_mean=false&method=%s",
        "f0=0.01&df=0.5&nf=200&method=%s"};
    (void)state;
    for (int variant = 0; variant < 16; variant++) {
        struct series *batch = several(variant & 1, variant & 2);
        struct answer direct, nufft;
        char query[160];
        snprintf(query, sizeof query, queries[variant / 4], "direct");
        series_run(batch, query, FORMAT_NPY, &direct);
        snprintf(query, sizeof query, queries[variant / 4], "nufft");
        series_run(batch, query, FORMAT_NPY, &nufft);
        const double *want = npy_rows(&direct, "'shape': (3, "), *got = npy_rows(&nufft, "(3, ");
        size_t count = (direct.size - (size_t)((const uint8_t *)want - direct.bytes)) / 8;
        assert_int_equal(direct.size, nufft.size);
        for (size_t k = 0; k < count; k++) {
            assert_true((isnan(want[k]) && isnan(got[k])) ||
                        fabs(want[k] - got[k]) <= 1e-9 * (1 + want[k]) * (1 + want[k]));
        }
        free(direct.bytes);
        free(nufft.bytes);
        free(batch);
    }
}

static cJSON *json_run(const struct series *series, const char *query) {
    struct answer answer;
    series_run(series, query, FORMAT_JSON, &answer);
    assert_int_equal(answer.status, KILN_OK);
    cJSON *json = cJSON_ParseWithLength((const char *)answer.bytes, answer.size);
    assert_non_null(json);
    free(answer.bytes);
    return json;
}

static void drop(cJSON *json, const char *name) {
    cJSON_DeleteItemFromObjectCaseSensitive(json, name);
}

/* Members that a curve of a batch and a request of its own have in common, as text. */
static char *curve_text(cJSON *json) {
    static const char *const others[] = {"job",     "device",    "parameters", "timing",
                                         "grid",    "frequency", "power",      "method",
                                         "columns", "weighted",  "dropped"};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        drop(json, others[i]);
    }
    char *text = cJSON_PrintUnformatted(json);
    assert_non_null(text);
    return text;
}

static void method_expect(const char *query, const char *method) {
    struct series *series = several(true, true);
    cJSON *json = json_run(series, query);
    assert_string_equal(cJSON_GetObjectItem(json, "method")->valuestring, method);
    cJSON_Delete(json);
    free(series);
}

/* The one that ran: the one asked for, the other where that is impossible, the faster by default.
 */
static void test_method_is_told(void **state) {
    (void)state;
    method_expect("f0=0.01&df=0.003&nf=100&fields=peaks&method=nufft", "nufft");
    method_expect("f0=0.01&df=0.003&nf=100&fields=peaks&method=direct", "direct");
    method_expect("f0=0.01&df=0.5&nf=100&fields=peaks&method=nufft", "direct");
    method_expect("f0=0.01&df=0.001&nf=50000&fields=peaks", "nufft");
    method_expect("f0=0.01&df=0.003&nf=3&fields=peaks", "direct");
}

/* Peaks from the device and from the host, in a batch and alone, are the same. */
static void test_peaks_agree(void **state) {
    static const char *const queries[] = {"peaks=5", "peaks=5&fields=peaks", "peaks=0",
                                          "peaks=0&fields=peaks", "peaks=70&fields=peaks"};
    (void)state;
    for (int variant = 0; variant < 10; variant++) {
        struct series *batch = several(variant & 1, true);
        char query[160];
        snprintf(query, sizeof query, "f0=0.01&df=0.003&nf=400&false_alarm=naive&%s",
                 queries[variant / 2]);
        cJSON *all = json_run(batch, query);
        cJSON *series = cJSON_GetObjectItem(all, "series");
        assert_int_equal(cJSON_GetArraySize(series), CURVES);
        assert_null(cJSON_GetObjectItem(all, "samples"));
        assert_int_equal(cJSON_GetObjectItem(cJSON_GetObjectItem(all, "grid"), "nf")->valueint,
                         400);
        for (int i = 0; i < CURVES; i++) {
            struct series *one = curve_of(batch, (size_t)i);
            cJSON *alone = json_run(one, query);
            snprintf(query, sizeof query,
                     "f0=0.01&df=0.003&nf=400&false_alarm=naive&fields=all&%.9s",
                     queries[variant / 2]);
            cJSON *found = cJSON_GetArrayItem(series, i);
            assert_int_equal(cJSON_GetObjectItem(found, "power") != NULL,
                             strstr(queries[variant / 2], "fields") == NULL);
            char *a = curve_text(found), *b = curve_text(alone);
            assert_string_equal(a, b);
            free(a);
            free(b);
            cJSON_Delete(alone);
            free(one);
            snprintf(query, sizeof query, "f0=0.01&df=0.003&nf=400&false_alarm=naive&%s",
                     queries[variant / 2]);
        }
        cJSON_Delete(all);
        free(batch);
    }
}

/* With and without the arrays: the device's peaks against the host's. */
static void test_device_peaks(void **state) {
    struct series *series = series_make(150, 0.3, 1);
    cJSON *host = json_run(series, "f0=0&df=0.002&nf=700&peaks=9");
    cJSON *device = json_run(series, "f0=0&df=0.002&nf=700&peaks=9&fields=peaks");
    (void)state;
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(host, "peaks")), 9);
    char *a = curve_text(host), *b = curve_text(device);
    assert_string_equal(a, b);
    free(a);
    free(b);
    cJSON_Delete(host);
    cJSON_Delete(device);
    for (size_t i = 0; i < series->n; i++) {
        series->y[i] = 1;
    }
    device = json_run(series, "f0=0&df=0.002&nf=700&fields=peaks");
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(device, "peaks")), 0);
    assert_non_null(cJSON_GetObjectItem(device, "note"));
    cJSON_Delete(device);
    free(series);
}

/* A curve without variance does not disturb the others. */
static void test_level_curve(void **state) {
    struct series *batch = several(true, false);
    (void)state;
    for (size_t j = 0; j < 50; j++) {
        batch->y[50 + j] = 7;
    }
    for (int peaks = 0; peaks < 2; peaks++) {
        cJSON *json = json_run(batch, peaks ? "f0=0.01&df=0.003&nf=100&fields=peaks"
                                            : "f0=0.01&df=0.003&nf=100");
        cJSON *series = cJSON_GetObjectItem(json, "series");
        for (int i = 0; i < CURVES; i++) {
            cJSON *one = cJSON_GetArrayItem(series, i);
            assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(one, "peaks")) > 0, i != 1);
            assert_int_equal(cJSON_GetObjectItem(one, "note") != NULL, i == 1);
        }
        cJSON_Delete(json);
    }
    free(batch);
}

static void test_batch_csv(void **state) {
    struct series *batch = several(true, false);
    struct answer csv, npy;
    (void)state;
    series_run(batch, "f0=0.1&df=0.05&nf=25", FORMAT_CSV, &csv);
    series_run(batch, "f0=0.1&df=0.05&nf=25", FORMAT_NPY, &npy);
    const double *rows = npy_rows(&npy, "'shape': (3, 25)");
    const char head[] = "frequency,power_0,power_1,power_2\n";
    assert_memory_equal(csv.bytes, head, sizeof head - 1);
    const char *at = (const char *)csv.bytes + sizeof head - 1;
    for (size_t k = 0; k < 25; k++) {
        char *end;
        assert_true(strtod(at, &end) == 0.1 + (double)k * 0.05);
        for (size_t i = 0; i < CURVES; i++) {
            assert_true(strtod(end + 1, &end) == rows[i * 25 + k]);
        }
        at = end + 1;
    }
    assert_ptr_equal(at, (const char *)csv.bytes + csv.size);
    free(csv.bytes);
    free(npy.bytes);
    free(batch);
}

/* Results with the longest numbers fit where one was planned for. */
static void test_batch_fits(void **state) {
    struct series *batch = several(false, true);
    static const enum format formats[] = {FORMAT_JSON, FORMAT_CSV, FORMAT_NPY};
    (void)state;
    for (size_t i = 0; i < batch->ny; i++) {
        batch->t[i] *= 1e-9 / 3;
        batch->y[i] *= 1e-150;
    }
    for (size_t i = 0; i < 3; i++) {
        struct answer answer;
        series_run(batch, "peaks=300&normalization=psd&false_alarm=davies", formats[i], &answer);
        assert_int_equal(answer.status, KILN_OK);
        free(answer.bytes);
    }
    free(batch);
}

static double alarm_of(const cJSON *json, int peak) {
    const cJSON *row = cJSON_GetArrayItem(cJSON_GetObjectItem(json, "peaks"), peak);
    return cJSON_GetObjectItem(row, "false_alarm_probability")->valuedouble;
}

/* Shares of draws, the same for the same seed, and no rarer than noise is. */
static void test_bootstrap(void **state) {
    struct series *series = series_make(60, 0.3, 2.5), *noise = series_make(60, 0.3, 0);
    uint64_t random = 7;
    (void)state;
    for (size_t i = 0; i < noise->n; i++) {
        noise->y[i] = series_random(&random);
    }
    for (int errors = 0; errors < 2; errors++) {
        const char *query = "f0=0.01&df=0.005&nf=200&false_alarm=bootstrap&bootstrap_samples=300";
        char other[160];
        series->ndy = noise->ndy = errors ? 60 : 0;
        cJSON *first = json_run(series, query), *second = json_run(series, query);
        for (int k = 0; k < 10; k++) {
            double alarm = alarm_of(first, k);
            assert_true(alarm == alarm_of(second, k));
            assert_true(alarm >= 0 && alarm <= 1 && fabs(alarm * 300 - rint(alarm * 300)) < 1e-9);
            assert_true(k == 0 || alarm >= alarm_of(first, k - 1));
        }
        assert_true(alarm_of(first, 0) < 0.1 && alarm_of(first, 9) > 0.5);
        snprintf(other, sizeof other, "%s&seed=99&fields=peaks", query);
        cJSON *third = json_run(series, other);
        bool same = true;
        for (int k = 0; k < 10; k++) {
            assert_true(fabs(alarm_of(third, k) - alarm_of(first, k)) < 0.15);
            same &= alarm_of(third, k) == alarm_of(first, k);
        }
        assert_false(same);
        cJSON *flat = json_run(noise, query);
        assert_true(alarm_of(flat, 0) > 0.02);
        cJSON_Delete(first);
        cJSON_Delete(second);
        cJSON_Delete(third);
        cJSON_Delete(flat);
    }
    free(series);
    free(noise);
}

/* Each curve of a batch has its own draws: those of the first are what it has alone. */
static void test_bootstrap_batch(void **state) {
    struct series *batch = several(false, true), *one = curve_of(batch, 0);
    const char *query = "f0=0.01&df=0.005&nf=150&nterms=2&peaks=6&fields=peaks"
                        "&false_alarm=bootstrap&bootstrap_samples=120&seed=5";
    cJSON *all = json_run(batch, query), *alone = json_run(one, query);
    (void)state;
    for (int i = 0; i < CURVES; i++) {
        assert_true(
            isfinite(alarm_of(cJSON_GetArrayItem(cJSON_GetObjectItem(all, "series"), i), 5)));
    }
    char *a = curve_text(cJSON_GetArrayItem(cJSON_GetObjectItem(all, "series"), 0));
    char *b = curve_text(alone);
    assert_string_equal(a, b);
    free(a);
    free(b);
    cJSON_Delete(all);
    cJSON_Delete(alone);
    free(batch);
    free(one);
}

/* For one term the general formula of a single frequency's probability is the short one. */
static void test_naive_terms(void **state) {
    struct lombscargle_params params = {.false_alarm = ALARM_NAIVE, .nterms = 2, .df = 1};
    struct periodogram p = {.params = &params, .n = 30, .nf = 2, .baseline = 1};
    /* One independent frequency (highest 1, baseline 1): P(χ²-ratio) by its beta function:
       (1-z)^12.5 (1 + 12.5 z), and e^-z (1 + z) for psd. */
    double z = 0.3, beta = pow(1 - z, 12.5) * (1 + 12.5 * z);
    (void)state;
    params.normalization = LOMBSCARGLE_STANDARD;
    assert_true(fabs(lombscargle_alarm(&p, z) / beta - 1) < 1e-12);
    params.normalization = LOMBSCARGLE_MODEL;
    assert_true(fabs(lombscargle_alarm(&p, z / (1 - z)) / beta - 1) < 1e-12);
    params.normalization = LOMBSCARGLE_LOG;
    assert_true(fabs(lombscargle_alarm(&p, -log1p(-z)) / beta - 1) < 1e-12);
    params.normalization = LOMBSCARGLE_PSD;
    assert_true(fabs(lombscargle_alarm(&p, 4) / (exp(-4) * 5) - 1) < 1e-12);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_batch_is_loop),  cmocka_unit_test(test_methods_agree),
        cmocka_unit_test(test_method_is_told), cmocka_unit_test(test_peaks_agree),
        cmocka_unit_test(test_device_peaks),   cmocka_unit_test(test_level_curve),
        cmocka_unit_test(test_batch_csv),      cmocka_unit_test(test_batch_fits),
        cmocka_unit_test(test_bootstrap),      cmocka_unit_test(test_bootstrap_batch),
        cmocka_unit_test(test_naive_terms),
    };
    return cmocka_run_group_tests(tests, series_open, series_close);
}
