/*
 * test_lombscargle.c: the periodogram job on the CPU backend, against least squares and symmetries.
 */
#include "compute/jobs/lombscargle/lombscargle.h"
#include "series.h"

#include <cjson/cJSON.h>

/* Solves m x = b for m of `count` rows by elimination with pivoting; m and b are destroyed. */
static void solve(long double m[3][3], long double *b, int count, long double *x) {
    for (int i = 0; i < count; i++) {
        int best = i;
        for (int r = i + 1; r < count; r++) {
            best = fabsl(m[r][i]) > fabsl(m[best][i]) ? r : best;
        }
        for (int c = 0; c < count; c++) {
            long double swap = m[i][c];
            m[i][c] = m[best][c];
            m[best][c] = swap;
        }
        long double swap = b[i];
        b[i] = b[best];
        b[best] = swap;
        for (int r = i + 1; r < count; r++) {
            long double factor = m[r][i] / m[i][i];
            for (int c = i; c < count; c++) {
                m[r][c] -= factor * m[i][c];
            }
            b[r] -= factor * b[i];
        }
    }
    for (int i = count - 1; i >= 0; i--) {
        x[i] = b[i];
        for (int c = i + 1; c < count; c++) {
            x[i] -= m[i][c] * x[c];
        }
        x[i] /= m[i][i];
    }
}

/* The definition: how much of chi² a fitted sinusoid (and constant) takes away, standard power. */
static double least_squares(const struct series *series, double frequency, bool mean, bool center,
                            double *psd) {
    int terms = mean ? 3 : 2;
    long double m[3][3] = {{0}}, b[3] = {0}, x[3], sum = 0, level = 0, reference = 0, taken = 0;
    for (size_t i = 0; i < series->n; i++) {
        long double w = series->ndy ? 1 / ((long double)series->dy[i] * series->dy[i]) : 1;
        sum += w;
        level += w * series->y[i];
    }
    level = mean || center ? level / sum : 0;
    for (size_t i = 0; i < series->n; i++) {
        long double w = series->ndy ? 1 / ((long double)series->dy[i] * series->dy[i]) : 1;
        long double phase = 2 * 3.14159265358979323846264L * frequency * series->t[i];
        long double basis[3] = {cosl(phase), sinl(phase), 1}, y = series->y[i] - level;
        reference += w * y * y;
        for (int r = 0; r < terms; r++) {
            b[r] += w * y * basis[r];
            for (int c = 0; c < terms; c++) {
                m[r][c] += w * basis[r] * basis[c];
            }
        }
    }
    long double right[3] = {b[0], b[1], b[2]};
    solve(m, b, terms, x);
    for (int r = 0; r < terms; r++) {
        taken += right[r] * x[r];
    }
    *psd = (double)(taken / 2);
    return (double)(taken / reference);
}

static double normalized(double power, double psd, int normalization) {
    const double values[] = {power, power / (1 - power), -log1p(-power), psd};
    return values[normalization];
}

static void test_power_is_least_squares(void **state) {
    static const char *const names[] = {"standard", "model", "log", "psd"};
    struct series *series = series_make(60, 0.31, 0.8);
    (void)state;
    for (int variant = 0; variant < 32; variant++) {
        bool mean = variant & 1, center = variant & 2;
        char query[160];
        size_t count;
        series->ndy = variant & 4 ? series->n : 0;
        snprintf(query, sizeof query,
                 "f0=0.011&df=0.013&nf=70&fit_mean=%s&center_data=%s&normalization=%s",
                 mean ? "true" : "false", center ? "true" : "false", names[variant / 8]);
        double *power = series_power(series, query, &count);
        assert_int_equal(count, 70);
        for (size_t k = 0; k < count; k++) {
            double psd, p = least_squares(series, 0.011 + (double)k * 0.013, mean, center, &psd);
            double wanted = normalized(p, psd, variant / 8);
            if (!(fabs(power[k] - wanted) <= 1e-9 * fmax(1, fabs(wanted)))) {
                fail_msg("%s, frequency %zu: %.17g is not %.17g", query, k, power[k], wanted);
            }
        }
        free(power);
    }
    free(series);
}

/* Largest difference of two series' power; both go through `query`. */
static double difference(const struct series *one, const struct series *other, const char *query) {
    size_t n, m;
    double most = 0, *a = series_power(one, query, &n), *b = series_power(other, query, &m);
    assert_int_equal(n, m);
    for (size_t i = 0; i < n; i++) {
        assert_true(a[i] >= -1e-12 && a[i] <= 1 + 1e-12);
        most = fmax(most, fabs(a[i] - b[i]));
    }
    free(a);
    free(b);
    return most;
}

enum change {
    SHIFT_TIME,
    MOVE_Y,
    GROW_Y,
    SHRINK_Y,
    SCALE_DY,
    TINY_DY,
    REVERSE,
    MIRROR_TIME,
    CHANGES
};

static void change_apply(struct series *series, enum change change) {
    size_t n = series->n;
    struct series *copy = malloc(sizeof *copy);
    assert_non_null(copy);
    *copy = *series;
    for (size_t i = 0; i < n; i++) {
        double *t = &series->t[i], *y = &series->y[i], *dy = &series->dy[i];
        if (change == SHIFT_TIME) {
            *t += 2457000;
        } else if (change == MOVE_Y) {
            *y = 2.5 * *y - 100;
        } else if (change == GROW_Y) {
            *y *= 1e300;
        } else if (change == SHRINK_Y) {
            *y *= 1e-300;
        } else if (change == SCALE_DY) {
            *dy *= 1000;
        } else if (change == TINY_DY) {
            *dy *= 1e-250;
        } else if (change == MIRROR_TIME) {
            *t = -*t;
        } else {
            *t = copy->t[n - 1 - i];
            *y = copy->y[n - 1 - i];
            *dy = copy->dy[n - 1 - i];
        }
    }
    free(copy);
}

static void test_symmetries(void **state) {
    (void)state;
    for (int change = 0; change < CHANGES; change++) {
        struct series *one = series_make(200, 0.777, 1.5), *other = series_make(200, 0.777, 1.5);
        one->ndy = other->ndy = 200;
        change_apply(other, (enum change)change);
        /* A shift rounds the times themselves: 2e-10 at 2457000. */
        double bound = change == SHIFT_TIME ? 1e-8 : 1e-11;
        double most = difference(one, other, "f0=0.02&df=0.01&nf=300");
        if (!(most <= bound)) {
            fail_msg("change %d: %g", change, most);
        }
        free(one);
        free(other);
    }
}

static void test_reruns_are_identical(void **state) {
    struct series *series = series_make(100, 0.2, 1);
    (void)state;
    assert_true(difference(series, series, "samples_per_peak=3") == 0);
    free(series);
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

static double number_of(const cJSON *object, const char *name) {
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsNumber(member));
    return member->valuedouble;
}

static bool null_of(const cJSON *object, const char *name) {
    return cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(object, name));
}

static void test_peaks(void **state) {
    struct series *series = series_make(300, 0.4321, 0.5);
    cJSON *json = json_run(series, "peaks=7&false_alarm=baluev&samples_per_peak=10");
    const cJSON *power = cJSON_GetObjectItem(json, "power"), *peak;
    const cJSON *grid = cJSON_GetObjectItem(json, "grid");
    double last = INFINITY, f0 = number_of(grid, "f0"), df = number_of(grid, "df");
    (void)state;
    assert_string_equal(cJSON_GetObjectItem(json, "job")->valuestring,
                        "0abc0000-0000-0000-0000-000000000000");
    assert_int_equal((int)number_of(json, "samples"), 300);
    assert_int_equal(cJSON_GetArraySize(power), (int)number_of(grid, "nf"));
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "peaks")), 7);
    assert_true(fabs(number_of(json, "best_frequency") - 0.4321) < 0.1 / 50);
    assert_true(number_of(json, "best_period") == 1 / number_of(json, "best_frequency"));
    cJSON_ArrayForEach(peak, cJSON_GetObjectItem(json, "peaks")) {
        int at = (int)number_of(peak, "index");
        double height = number_of(peak, "power"), frequency = number_of(peak, "frequency");
        double point = cJSON_GetArrayItem(power, at)->valuedouble;
        assert_true(height <= last && height >= point && height <= 1);
        assert_true(fabs(frequency - (f0 + at * df)) <= df / 2 * (1 + 1e-9));
        assert_true(fabs(number_of(peak, "period") * frequency - 1) < 1e-14);
        double alarm = number_of(peak, "false_alarm_probability");
        assert_true(alarm >= 0 && alarm <= 1);
        last = height;
    }
    assert_non_null(cJSON_GetObjectItem(cJSON_GetObjectItem(json, "timing"), "kernel"));
    cJSON_Delete(json);
    free(series);
}

/* The refined peak of a finely sampled periodogram hardly differs from that of a coarse one. */
static void test_parabola_refines(void **state) {
    struct series *series = series_make(200, 0.5123, 0.2);
    cJSON *fine = json_run(series, "f0=0.45&df=0.00001&nf=12000&fields=peaks");
    cJSON *coarse = json_run(series, "f0=0.45&df=0.002&nf=60&fields=peaks");
    double wanted = number_of(fine, "best_frequency"), got = number_of(coarse, "best_frequency");
    (void)state;
    assert_true(fabs(got - wanted) < 0.0001); /* a twentieth of the coarse step */
    assert_null(cJSON_GetObjectItem(fine, "power"));
    cJSON_Delete(fine);
    cJSON_Delete(coarse);
    free(series);
}

/* Frequencies in any order give the same peaks, and power in the order asked for. */
static void test_frequency_list(void **state) {
    struct series *series = series_make(150, 0.25, 0.5);
    (void)state;
    series->nf = 200;
    for (size_t i = 0; i < 200; i++) {
        series->frequency[i] = 0.1 + 0.002 * (double)i;
    }
    cJSON *up = json_run(series, "peaks=3");
    for (size_t i = 0; i < 200; i++) {
        series->frequency[i] = 0.1 + 0.002 * (double)(i * 77 % 200);
    }
    cJSON *mixed = json_run(series, "peaks=3");
    assert_null(cJSON_GetObjectItem(mixed, "grid"));
    for (int i = 0; i < 200; i++) {
        const cJSON *frequency = cJSON_GetObjectItem(mixed, "frequency");
        assert_true(cJSON_GetArrayItem(frequency, i)->valuedouble == series->frequency[i]);
        double a = cJSON_GetArrayItem(cJSON_GetObjectItem(up, "power"), i * 77 % 200)->valuedouble;
        double b = cJSON_GetArrayItem(cJSON_GetObjectItem(mixed, "power"), i)->valuedouble;
        assert_true(a == b);
    }
    for (int i = 0; i < 3; i++) {
        const cJSON *a = cJSON_GetArrayItem(cJSON_GetObjectItem(up, "peaks"), i);
        const cJSON *b = cJSON_GetArrayItem(cJSON_GetObjectItem(mixed, "peaks"), i);
        assert_true(number_of(a, "frequency") == number_of(b, "frequency"));
        assert_int_equal((int)number_of(b, "index") * 77 % 200, (int)number_of(a, "index"));
    }
    cJSON_Delete(up);
    cJSON_Delete(mixed);
    free(series);
}

static void test_constant_values(void **state) {
    static const enum format formats[] = {FORMAT_NPY, FORMAT_CSV, FORMAT_PNG, FORMAT_SVG};
    struct series *series = series_make(20, 0.2, 0);
    (void)state;
    for (size_t i = 0; i < series->n; i++) {
        series->y[i] = 0.1;
    }
    cJSON *json = json_run(series, "f0=0&df=0.1&nf=5&false_alarm=baluev");
    const cJSON *value;
    cJSON_ArrayForEach(value, cJSON_GetObjectItem(json, "power")) {
        assert_true(cJSON_IsNull(value));
    }
    assert_int_equal(cJSON_GetArraySize(cJSON_GetObjectItem(json, "peaks")), 0);
    assert_true(null_of(json, "best_period") && null_of(json, "best_frequency"));
    assert_non_null(strstr(cJSON_GetObjectItem(json, "note")->valuestring, "equal"));
    cJSON_Delete(json);
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        struct answer answer;
        series_run(series, "f0=0&df=0.1&nf=5", formats[i], &answer);
        assert_int_equal(answer.status, KILN_OK);
        free(answer.bytes);
    }
    free(series);
}

/* Each format within its planned size, whatever the numbers look like. */
static void test_results_fit(void **state) {
    static const char *const queries[] = {
        "peaks=1000&false_alarm=davies&normalization=psd", "peaks=0&fields=peaks",
        "peaks=1000&normalization=log&plot_width=200&plot_height=200", "precision=fp32"};
    static const enum format formats[] = {FORMAT_JSON, FORMAT_CSV, FORMAT_NPY, FORMAT_PNG,
                                          FORMAT_SVG};
    static const char *const heads[] = {"{\"job\":\"", "frequency,power\n", "\x93NUMPY",
                                        "\x89PNG\r\n\x1a\n", "<svg xmlns="};
    struct series *series = series_make(50, 0.3, 2);
    (void)state;
    series->ndy = series->n;
    for (size_t i = 0; i < series->n; i++) {
        series->t[i] *= 1e-9 / 3;
        series->y[i] *= 1e-150;
    }
    for (size_t i = 0; i < 20; i++) {
        struct answer answer;
        series_run(series, queries[i / 5], formats[i % 5], &answer);
        assert_int_equal(answer.status, KILN_OK);
        assert_true(answer.size > strlen(heads[i % 5]));
        assert_memory_equal(answer.bytes, heads[i % 5], strlen(heads[i % 5]));
        free(answer.bytes);
    }
    free(series);
}

static void test_csv_matches_npy(void **state) {
    struct series *series = series_make(40, 0.3, 1);
    struct answer answer;
    size_t count;
    double *power = series_power(series, "f0=0.1&df=0.05&nf=25", &count);
    (void)state;
    series_run(series, "f0=0.1&df=0.05&nf=25", FORMAT_CSV, &answer);
    const char *at = strchr((const char *)answer.bytes, '\n') + 1;
    for (size_t i = 0; i < count; i++) {
        char *end;
        assert_true(strtod(at, &end) == 0.1 + (double)i * 0.05);
        assert_int_equal(*end, ',');
        assert_true(strtod(end + 1, &end) == power[i]);
        assert_int_equal(*end, '\n');
        at = end + 1;
    }
    assert_ptr_equal(at, (const char *)answer.bytes + answer.size);
    free(answer.bytes);
    free(power);
    free(series);
}

/* Values of astropy 5.2.1 (_statistics.false_alarm_probability) for t = i^1.5, dy = 1 + (i % 7) /
   10, 40 samples up to frequency 0.8, at two powers. */
static void test_false_alarm(void **state) {
    static const struct {
        int normalization, method;
        double low, high;
    } rows[] = {
        {LOMBSCARGLE_STANDARD, ALARM_NAIVE, 0.23328639696257447, 8.46827411765328e-06},
        {LOMBSCARGLE_STANDARD, ALARM_DAVIES, 0.8253030816713135, 4.921638817690861e-05},
        {LOMBSCARGLE_STANDARD, ALARM_BALUEV, 0.5618982153779096, 4.9215177071289294e-05},
        {LOMBSCARGLE_MODEL, ALARM_NAIVE, 0.7825043545987849, 0.03209513205791841},
        {LOMBSCARGLE_MODEL, ALARM_DAVIES, 1, 0.1167214428503205},
        {LOMBSCARGLE_MODEL, ALARM_BALUEV, 0.9786643645035467, 0.11016698447491258},
        {LOMBSCARGLE_LOG, ALARM_NAIVE, 0.5318298943398307, 0.002940235943076123},
        {LOMBSCARGLE_LOG, ALARM_DAVIES, 1, 0.012331118592964197},
        {LOMBSCARGLE_LOG, ALARM_BALUEV, 0.8738928527723799, 0.012255402006295364},
        {LOMBSCARGLE_PSD, ALARM_NAIVE, 0.7321400590642987, 0.0011964498883081187},
        {LOMBSCARGLE_PSD, ALARM_DAVIES, 1, 0.004546684092947739},
        {LOMBSCARGLE_PSD, ALARM_BALUEV, 0.960080459284092, 0.004536363590924506},
    };
    double sum = 0, mean = 0, square = 0;
    (void)state;
    for (int i = 0; i < 40; i++) {
        double t = pow(i, 1.5), dy = 1 + 0.1 * (i % 7), w = 1 / (dy * dy);
        sum += w;
        mean += w * t;
        square += w * t * t;
    }
    mean /= sum;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct lombscargle_params params = {.normalization = rows[i].normalization,
                                            .false_alarm = rows[i].method,
                                            .f0 = 0.2,
                                            .df = 0.3};
        struct periodogram p = {.params = &params,
                                .n = 40,
                                .nf = 3,
                                .baseline = pow(39, 1.5),
                                .spread = square / sum - mean * mean};
        bool psd = params.normalization == LOMBSCARGLE_PSD;
        assert_true(fabs(lombscargle_alarm(&p, psd ? 5 : 0.3) / rows[i].low - 1) < 1e-10);
        assert_true(fabs(lombscargle_alarm(&p, psd ? 12 : 0.6) / rows[i].high - 1) < 1e-10);
        assert_true(isnan(lombscargle_alarm(&p, NAN)));
    }
}

/* A worker that is sent nonsense answers, and does not read outside the block. */
static void test_run_checks_again(void **state) {
    double data[12] = {0, 1, 2, 3, 5, 4, 6, 5, 1, 1, 0, 1};
    uint8_t result[4096];
    struct timing timing = {0};
    struct input input = {.kind = INPUT_SERIES, .size = sizeof data};
    struct lombscargle_params params = {.t = {.offset = 0, .count = 4},
                                        .y = {.offset = 32, .count = 4},
                                        .dy = {.offset = 64, .count = 4},
                                        .df = 1,
                                        .nf = 3,
                                        .fit_mean = true};
    struct task task = {.backend = &cpu_backend,
                        .stream = series_stream,
                        .params = &params,
                        .input = &input,
                        .format = FORMAT_CSV,
                        .result = result,
                        .capacity = 4096,
                        .device_name = "cpu:0",
                        .timing = &timing};
    (void)state;
    task.data = (const uint8_t *)data;
    for (int i = 0; i < 5; i++) {
        params.y.offset = i == 0 ? 72 : 32;
        params.dy.count = i == 1 ? 3 : 4;
        params.nf = i == 2 ? 0 : 3;
        data[10] = i == 3 ? -1 : i == 4 ? NAN : 0;
        assert_int_equal(cpu_backend.begin(series_stream, NULL), KILN_OK);
        assert_int_equal(lombscargle_run(&task), KILN_MALFORMED);
        assert_true(strlen(task.detail) > 0);
        cpu_backend.finish(series_stream, &timing);
    }
}

/* Of everything that is a power the answer is a probability. */
static void test_alarm_is_probability(void **state) {
    static const double powers[] = {-1e-17, 0,    1e-300, 0.3,   1 - 1e-16, 1,
                                    40,     1500, 1e62,   1e308, INFINITY};
    static const int samples[] = {3, 4, 5, 6, 7, 40, 100000};
    (void)state;
    for (int method = ALARM_NAIVE; method <= ALARM_BALUEV; method++) {
        for (int norm = LOMBSCARGLE_STANDARD; norm <= LOMBSCARGLE_PSD; norm++) {
            for (size_t n = 0; n < sizeof samples / sizeof *samples; n++) {
                for (int variant = 0; variant < 8; variant++) {
                    for (size_t k = 0; k < sizeof powers / sizeof *powers; k++) {
                        struct lombscargle_params params = {.normalization = norm,
                                                            .false_alarm = method,
                                                            .nterms = 1 + (variant & 3),
                                                            .f0 = variant & 4 ? 0 : 1e6};
                        struct periodogram p = {.params = &params,
                                                .n = (uint64_t)samples[n],
                                                .nf = 1,
                                                .baseline = 1e3,
                                                .spread = 1e5};
                        double alarm = lombscargle_alarm(&p, powers[k]);
                        if (!(alarm >= 0 && alarm <= 1)) {
                            fail_msg("method %d, normalization %d, n %d, nterms %d, f %g: %g is %g",
                                     method, norm, samples[n], (int)params.nterms, params.f0,
                                     powers[k], alarm);
                        }
                    }
                }
            }
        }
    }
}

/* Evenly sampled values have aliases, equal but for rounding: the longest period is named first, by
   every method, with and without the arrays, however few are asked for. */
static void test_aliases(void **state) {
    static const char *const queries[] = {
        "method=direct",     "method=nufft",      "precision=fp32",
        "normalization=log", "normalization=psd", "samples_per_peak=10&nyquist_factor=12"};
    static const double frequencies[] = {1 / 11.0, 0.0713, 0.3141, 0.2468};
    (void)state;
    for (size_t i = 0; i < sizeof frequencies / sizeof *frequencies; i++) {
        for (size_t q = 0; q < sizeof queries / sizeof *queries; q++) {
            for (int variant = 0; variant < 8; variant++) {
                struct series *series = series_make(0, frequencies[i], 0.3);
                uint64_t random = 5 + i;
                char query[160];
                series->n = series->ny = 200;
                series->ndy = 0;
                for (size_t k = 0; k < series->n; k++) {
                    series->t[k] = 1700 + (double)k;
                    series->y[k] =
                        sin(2 * M_PI * frequencies[i] * (double)k) + 0.3 * series_random(&random);
                }
                snprintf(query, sizeof query, "%s&peaks=%d%s", queries[q],
                         variant & 1   ? 1
                         : variant & 2 ? 4
                                       : 40,
                         variant & 4 ? "&fields=peaks" : "");
                cJSON *json = json_run(series, query);
                double best = number_of(json, "best_frequency");
                if (!(fabs(best - frequencies[i]) < 0.005)) {
                    fail_msg("%s: %g instead of %g", query, best, frequencies[i]);
                }
                const cJSON *peak, *before = NULL;
                double tie = strstr(query, "fp32") != NULL ? 1e-5 : 1e-10;
                cJSON_ArrayForEach(peak, cJSON_GetObjectItem(json, "peaks")) {
                    if (before != NULL &&
                        fabs(number_of(before, "power") / number_of(peak, "power") - 1) < tie) {
                        assert_true(number_of(before, "frequency") < number_of(peak, "frequency"));
                    }
                    before = peak;
                }
                cJSON_Delete(json);
                free(series);
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_power_is_least_squares), cmocka_unit_test(test_symmetries),
        cmocka_unit_test(test_reruns_are_identical),   cmocka_unit_test(test_peaks),
        cmocka_unit_test(test_parabola_refines),       cmocka_unit_test(test_frequency_list),
        cmocka_unit_test(test_constant_values),        cmocka_unit_test(test_results_fit),
        cmocka_unit_test(test_csv_matches_npy),        cmocka_unit_test(test_false_alarm),
        cmocka_unit_test(test_alarm_is_probability),   cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_run_checks_again),
    };
    return cmocka_run_group_tests(tests, series_open, series_close);
}
