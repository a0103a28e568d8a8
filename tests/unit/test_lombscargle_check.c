/*
 * test_lombscargle_check.c: what the periodogram job accepts, and the grids it makes of it.
 */
#include "compute/jobs/lombscargle/lombscargle.h"
#include "series.h"

static uint8_t *data;

static int data_make(void **state) {
    (void)state;
    data = malloc(SERIES_BYTES);
    return data ? 0 : -1;
}

static int data_free(void **state) {
    (void)state;
    free(data);
    return 0;
}

static const struct complaint *complaint_of(const struct answer *answer, const char *field) {
    for (size_t i = 0; i < answer->complaints.count && i < COMPLAINTS_MAX; i++)
        if (strcmp(answer->complaints.rows[i].field, field) == 0)
            return &answer->complaints.rows[i];
    return NULL;
}

static void expect_complaint(const struct series *series, const char *query,
                             const struct limits *limits, const char *field, const char *part) {
    struct answer answer;
    struct input input;
    series_check(series, query, limits, data, &input, &answer);
    const struct complaint *complaint = complaint_of(&answer, field);
    if (!complaint)
        fail_msg("\"%s\": no complaint of %s", query, field);
    else if (!strstr(complaint->reason, part))
        fail_msg("\"%s\": \"%s\" does not say \"%s\"", query, complaint->reason, part);
}

static const struct lombscargle_params *grid_of(const struct series *series, const char *query,
                                                struct answer *answer) {
    struct input input;
    series_check(series, query, &series_limits, data, &input, answer);
    if (answer->complaints.count)
        fail_msg("%s: %s", answer->complaints.rows[0].field, answer->complaints.rows[0].reason);
    return (const struct lombscargle_params *)(const void *)answer->params;
}

/* Times 0, 1, … 8: baseline 8, mean Nyquist frequency 9/16. All numbers below are exact. */
static struct series *ruler(void) {
    struct series *series = calloc(1, sizeof *series);
    for (size_t i = 0; i < 9; i++) {
        series->t[i] = (double)i;
        series->y[i] = (double)(i * i % 5);
        series->dy[i] = 1;
    }
    series->n = series->ny = 9;
    return series;
}

static void test_automatic_grid(void **state) {
    static const struct {
        const char *query;
        double f0, df;
        int64_t nf;
    } rows[] = {
        {"samples_per_peak=4", 1.0 / 64, 1.0 / 32, 91}, /* to 5 × 9/16: 89.5 steps, to even */
        {"samples_per_peak=4&nyquist_factor=1", 1.0 / 64, 1.0 / 32, 19}, /* 17.5 steps */
        {"samples_per_peak=1&minimum_frequency=0&maximum_frequency=0.3125", 0, 0.125, 3}, /* 2.5 */
        {"samples_per_peak=1&minimum_frequency=0&maximum_frequency=0.4375", 0, 0.125, 5}, /* 3.5 */
        {"samples_per_peak=1&minimum_frequency=1&maximum_frequency=1.01", 1, 0.125, 1},
        {"f0=0&df=0.5&nf=7", 0, 0.5, 7},
        {"f0=2.5&df=1e-9&nf=1", 2.5, 1e-9, 1},
    };
    struct series *series = ruler();
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct answer answer;
        const struct lombscargle_params *params = grid_of(series, rows[i].query, &answer);
        assert_true(params->f0 == rows[i].f0);
        assert_true(params->df == rows[i].df);
        assert_int_equal(params->nf, rows[i].nf);
        assert_true(isnan(params->minimum_frequency) && isnan(params->maximum_frequency));
        assert_int_equal(params->method, LOMBSCARGLE_METHOD_AUTO);
    }
    free(series);
}

/* A range and the grid it stands for are the same request. */
static void test_grid_is_canonical(void **state) {
    struct series *series = ruler();
    struct answer range, grid;
    char texts[2][1024];
    struct text text;
    (void)state;
    grid_of(series, "samples_per_peak=4&maximum_frequency=1", &range);
    grid_of(series, "f0=0.015625&df=0.03125&nf=33&method=auto", &grid);
    text_init(&text, texts[0], sizeof texts[0]);
    fields_print_query(lombscargle_job.fields, range.params, &text);
    text_init(&text, texts[1], sizeof texts[1]);
    fields_print_query(lombscargle_job.fields, grid.params, &text);
    assert_string_equal(texts[0], texts[1]);
    free(series);
}

static void test_ways_exclude_each_other(void **state) {
    struct series *series = ruler();
    (void)state;
    expect_complaint(series, "f0=0&df=1&nf=2&minimum_frequency=1", &series_limits,
                     "minimum_frequency", "cannot be combined");
    expect_complaint(series, "f0=0&df=1&nf=2&maximum_frequency=1", &series_limits,
                     "maximum_frequency", "cannot be combined");
    expect_complaint(series, "f0=0&df=1&nf=2&samples_per_peak=9", &series_limits,
                     "samples_per_peak", "cannot be combined");
    expect_complaint(series, "f0=0&nf=2", &series_limits, "df", "missing");
    expect_complaint(series, "df=1", &series_limits, "nf", "missing");
    expect_complaint(series, "df=1", &series_limits, "f0", "missing");
    series->frequency[0] = 0.5;
    series->nf = 1;
    expect_complaint(series, "f0=0&df=1&nf=2", &series_limits, "nf", "cannot be combined");
    expect_complaint(series, "maximum_frequency=2", &series_limits, "maximum_frequency",
                     "cannot be combined");
    series->frequency[0] = -0.5;
    expect_complaint(series, "", &series_limits, "frequency", "value 0 is -0.5");
    series->frequency[0] = NAN;
    expect_complaint(series, "", &series_limits, "frequency", "value 0");
    free(series);
}

/* All that is wrong is said at once; what depends on a bad field is not. */
static void test_complaints_come_together(void **state) {
    static const struct {
        const char *query, *fields;
        size_t n, ny;
    } rows[] = {
        {"normalization=none&f0=0&df=1&nf=1048577", "normalization nf", 9, 9},
        {"f0=0&df=0&nf=1048577", "df nf", 9, 9},
        {"f0=-1&nterms=0&minimum_frequency=1", "f0 nterms", 9, 9},
        {"maximum_frequency=-1", "maximum_frequency", 9, 8},
        {"f0=0&df=1", "y nf", 9, 8},
        {"samples_per_peak=0&fit_mean=false&center_data=false&false_alarm=naive",
         "samples_per_peak false_alarm", 9, 9},
        {"precision=fp16", "precision y", 9, 0}, /* y is missing */
        {"precision=fp16&layout=batch", "precision t y", 0, 0},
        {"precision=fp16&layout=batch", "precision layout", 9, 9},
        {"layout=batch&false_alarm=baluev&normalization=psd", "layout false_alarm", 9, 9},
        {"precision=fp16&false_alarm=baluev&normalization=psd", "precision false_alarm", 9, 9},
        {"missing=dorp&layout=batch", "missing", 9, 9},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct series *series = ruler();
        struct answer answer;
        struct input input;
        char told[256] = "";
        series->n = rows[i].n;
        series->ny = rows[i].ny;
        series_check(series, rows[i].query, &series_limits, data, &input, &answer);
        for (size_t k = 0; k < answer.complaints.count; k++) {
            strcat(told, k > 0 ? " " : "");
            strcat(told, answer.complaints.rows[k].field);
        }
        assert_string_equal(told, rows[i].fields);
        free(series);
    }
}

static void test_bad_values(void **state) {
    static const struct {
        const char *field;
        double value;
    } rows[] = {{"t", NAN}, {"t", INFINITY}, {"y", NAN}, {"y", -INFINITY},
                {"dy", 0},  {"dy", -1},      {"dy", NAN}};
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct series *series = ruler();
        char which = rows[i].field[0];
        double *values = which == 't' ? series->t : which == 'y' ? series->y : series->dy;
        values[6] = values[7] = rows[i].value;
        series->ndy = 9;
        expect_complaint(series, "", &series_limits, rows[i].field, "value 6 is");
        free(series);
    }
}

static void test_bad_shapes(void **state) {
    struct series *series = ruler();
    struct answer answer;
    struct input input;
    (void)state;
    series->ny = 8;
    expect_complaint(series, "", &series_limits, "y", "has 8 values, but t has 9");
    series->ny = 9;
    series->ndy = 4;
    expect_complaint(series, "", &series_limits, "dy", "has 4 values, but t has 9");
    series->ndy = 0;
    series->n = series->ny = 2;
    expect_complaint(series, "", &series_limits, "t", "at least 3");
    series->n = 0;
    expect_complaint(series, "", &series_limits, "t", "");
    series->n = series->ny = 9;
    for (int i = 0; i < 9; i++)
        series->t[i] = 5;
    expect_complaint(series, "", &series_limits, "t", "one time only");
    series->t[0] = -1e308;
    series->t[1] = 1e308;
    expect_complaint(series, "", &series_limits, "t", "more than a double");
    free(series);

    series = ruler(); /* unsorted and equal times are legal */
    series->t[2] = 7.5;
    series->t[3] = series->t[4];
    series_check(series, "", &series_limits, data, &input, &answer);
    assert_int_equal(answer.complaints.count, 0);
    free(series);
}

static void test_bad_ranges(void **state) {
    struct series *series = ruler();
    struct limits limits = series_limits;
    (void)state;
    expect_complaint(series, "minimum_frequency=2&maximum_frequency=2", &limits,
                     "maximum_frequency", "no frequencies");
    expect_complaint(series, "maximum_frequency=0.001", &limits, "maximum_frequency",
                     "no frequencies");
    expect_complaint(series, "minimum_frequency=100", &limits, "minimum_frequency",
                     "no frequencies");
    limits.max_frequencies = 90;
    expect_complaint(series, "samples_per_peak=4", &limits, "samples_per_peak", "allows 90");
    expect_complaint(series, "maximum_frequency=1e6", &limits, "maximum_frequency", "allows 90");
    expect_complaint(series, "f0=0&df=1&nf=91", &limits, "nf", "allows 90");
    expect_complaint(series, "f0=0&df=1e300&nf=2", &limits, "nf", "double precision");
    limits.max_samples = 8;
    expect_complaint(series, "", &limits, "t", "allows 8");
    free(series);
}

static void test_not_available(void **state) {
    struct series *series = ruler();
    struct answer answer;
    struct input input;
    (void)state;
    series->nf = 2;
    series->frequency[0] = 0.1;
    series->frequency[1] = 0.35;
    expect_complaint(series, "method=nufft", &series_limits, "method", "needs a grid");
    series->nf = 0;
    expect_complaint(series, "nterms=7", &series_limits, "nterms", "");
    expect_complaint(series, "nterms=2&false_alarm=baluev", &series_limits, "false_alarm",
                     "nterms 1");
    expect_complaint(series, "false_alarm=bootstrap&bootstrap_samples=99", &series_limits,
                     "bootstrap_samples", "100");
    expect_complaint(series, "layout=batch", &series_limits, "layout", "NPY");
    expect_complaint(series, "false_alarm=baluev&fit_mean=false&center_data=false", &series_limits,
                     "false_alarm", "center_data");
    expect_complaint(series, "false_alarm=davies&normalization=psd", &series_limits, "false_alarm",
                     "needs dy");
    expect_complaint(series, "peaks=1001", &series_limits, "peaks", "");
    expect_complaint(series, "plot_width=4097", &series_limits, "plot_width", "");

    /* All at once. */
    series->y[1] = NAN;
    series_check(series, "method=fast&f0=1&false_alarm=bootstrap", &series_limits, data, &input,
                 &answer);
    assert_int_equal(answer.complaints.count, 4);
    free(series);
}

/* Three curves of 9, 6 and 5 samples with times of their own, or two of 9 at shared times. */
static struct series *several(bool shared) {
    struct series *series = ruler();
    static const size_t lengths[] = {9, 6, 5};
    series->ny = shared ? 18 : 20;
    series->n = shared ? 9 : 20;
    for (size_t i = 0; i < 20; i++) {
        series->t[i] = i < 9 ? (double)i : 40 + (double)(3 * i % 17);
        series->y[i] = (double)(i * i % 7);
        series->dy[i] = 1;
    }
    series->t[12] = 40; /* 16 before t[11] */
    series->y_rows.count = shared ? 2 : 3;
    for (size_t i = 0; i < 3; i++)
        series->y_rows.lengths[i] = shared ? 9 : lengths[i];
    if (!shared)
        series->t_rows = series->y_rows;
    return series;
}

static void test_batch_shapes(void **state) {
    struct series *series = several(true);
    struct answer answer;
    (void)state;
    grid_of(series, "", &answer);
    series->ndy = 9; /* for all of them */
    grid_of(series, "", &answer);
    series->ndy = 18;
    expect_complaint(series, "", &series_limits, "dy", "for each series");
    series->dy_rows = series->y_rows;
    grid_of(series, "", &answer);
    series->dy_rows.lengths[0] = 8;
    series->dy_rows.lengths[1] = 10;
    expect_complaint(series, "", &series_limits, "dy", "has 8 values in series 0, but y has 9");
    series->dy_rows.count = 1;
    series->dy_rows.lengths[0] = 18;
    expect_complaint(series, "", &series_limits, "dy", "as many series");
    series->ndy = 0;
    series->y_rows.lengths[0] = 8;
    series->y_rows.lengths[1] = 10;
    expect_complaint(series, "", &series_limits, "y", "has 8 values in series 0, but t has 9");
    series->y_rows.count = 0;
    series->t_rows.count = 1;
    series->t_rows.lengths[0] = 9;
    expect_complaint(series, "", &series_limits, "y", "array of arrays");
    free(series);

    series = several(false);
    grid_of(series, "", &answer);
    series->t_rows.count = 2;
    series->t_rows.lengths[1] = 11;
    expect_complaint(series, "", &series_limits, "t", "as many as y");
    series->t_rows = series->y_rows;
    series->t_rows.lengths[2] = series->y_rows.lengths[2] = 2;
    series->n = series->ny = 17;
    expect_complaint(series, "", &series_limits, "y", "has 2 in series 2");
    series->t_rows.lengths[2] = 4; /* the lengths do not add up */
    expect_complaint(series, "", &series_limits, "y", "does not lie");
    free(series);
}

static void test_batch_values(void **state) {
    struct series *series = several(false);
    struct limits limits = series_limits;
    struct answer answer;
    (void)state;
    /* The second curve has the longest baseline, 16, and six samples. */
    const struct lombscargle_params *params = grid_of(series, "samples_per_peak=4", &answer);
    assert_true(params->df == 1.0 / 64 && params->f0 == 1.0 / 128);
    assert_int_equal(params->nf, 61); /* to 5 × 6/32: 59.5 steps, to even */
    series->y[10] = NAN;
    expect_complaint(series, "", &limits, "y", "value 1 of series 1");
    series->y[10] = 1;
    series->ndy = 20;
    series->dy_rows = series->y_rows;
    series->dy[17] = 0;
    expect_complaint(series, "", &limits, "dy", "value 2 of series 2");
    series->dy[17] = 1;
    limits.max_samples = 8;
    expect_complaint(series, "", &limits, "y", "9 samples in series 0");
    for (int i = 15; i < 20; i++)
        series->t[i] = 1;
    expect_complaint(series, "", &series_limits, "t", "one time only");
    free(series);
}

/* What a worker runs at its start passes its own check and finds its own period. */
static void test_canary(void **state) {
    static uint8_t room[65536] __attribute__((aligned(16)));
    _Alignas(16) uint8_t params[JOB_PARAMS_MAX] = {0};
    struct complaints complaints = {0};
    struct form form;
    struct input input;
    (void)state;
    form_init(&form, lombscargle_job.fields, params, &complaints);
    series_query(&form, lombscargle_job.canary_query);
    size_t size = lombscargle_job.canary_input(room, sizeof room, &input, params);
    assert_true(size > 0 && size <= sizeof room);
    assert_int_equal(input.size, size);
    lombscargle_job.check(params, &input, room, FORMAT_JSON, &series_limits, &complaints);
    assert_int_equal(complaints.count, 0);
    assert_int_equal(lombscargle_job.canary_input(room, 8, &input, params), 0);
}

/* Arrays that do not lie in the block are not read. */
static void test_arrays_stay_in_block(void **state) {
    const struct input input = {.kind = INPUT_SERIES, .size = 80};
    (void)state;
    assert_non_null(lombscargle_array(&input, data, &(struct array_ref){.offset = 0, .count = 10}));
    assert_null(lombscargle_array(&input, data, &(struct array_ref){.offset = 0, .count = 11}));
    assert_null(lombscargle_array(&input, data, &(struct array_ref){.offset = 8, .count = 10}));
    assert_null(lombscargle_array(&input, data, &(struct array_ref){.offset = 4, .count = 2}));
    assert_null(lombscargle_array(&input, data, &(struct array_ref){.offset = 0, .count = 0}));
    assert_null(lombscargle_array(&input, data,
                                  &(struct array_ref){.offset = 0, .count = UINT64_MAX / 8 + 1}));
    assert_null(
        lombscargle_array(&input, data, &(struct array_ref){.offset = UINT64_MAX - 7, .count = 2}));
    assert_null(lombscargle_array(&input, NULL, &(struct array_ref){.offset = 0, .count = 10}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_automatic_grid),
        cmocka_unit_test(test_grid_is_canonical),
        cmocka_unit_test(test_ways_exclude_each_other),
        cmocka_unit_test(test_complaints_come_together),
        cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_bad_shapes),
        cmocka_unit_test(test_bad_ranges),
        cmocka_unit_test(test_not_available),
        cmocka_unit_test(test_batch_shapes),
        cmocka_unit_test(test_batch_values),
        cmocka_unit_test(test_canary),
        cmocka_unit_test(test_arrays_stay_in_block),
    };
    return cmocka_run_group_tests(tests, data_make, data_free);
}
