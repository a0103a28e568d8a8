/*
 * lombscargle_check.c: what may be asked for, and how large the answer can be.
 *
 * One pass over the series, in the front: values are looked at, nothing is computed.
 */
#include "compute/jobs/lombscargle/lombscargle.h"
#include "compute/jobs/result.h"

#include <inttypes.h>
#include <math.h>

/* Pairs of a curve that is gathered with others: tens of microseconds of a GPU, which computes so
   few directly, alone or not. */
#define SMALL_COST 0x1p26

/* Index of the first value that is not finite (and, for errors, not above 0). */
static uint64_t values_bad(const double *values, uint64_t count, bool positive) {
    uint64_t i = 0;
    while (i < count && isfinite(values[i]) && (!positive || values[i] > 0))
        i++;
    return i;
}

static bool values_check(const char *field, const double *values, uint64_t count, bool positive,
                         struct complaints *complaints) {
    uint64_t bad = values_bad(values, count, positive);
    if (bad < count)
        complaints_add(complaints, field, "must be finite%s: value %" PRIu64 " is %g",
                       positive ? " and above 0" : "", bad, values[bad]);
    return bad == count;
}

static bool count_check(const char *field, const struct array_ref *array,
                        const struct lombscargle_params *params, const struct limits *limits,
                        struct complaints *complaints) {
    if (array->count > limits->max_samples)
        complaints_add(complaints, field,
                       "has %" PRIu64 " samples; this daemon allows %" PRIu64 " (--max-samples)",
                       array->count, limits->max_samples);
    else if (params->t.count && array->count != params->t.count)
        complaints_add(complaints, field, "has %" PRIu64 " values, but t has %" PRIu64,
                       array->count, params->t.count);
    else if (array->count < LOMBSCARGLE_SAMPLES_MIN)
        complaints_add(complaints, field, "needs at least %d samples, has %" PRIu64 "%s",
                       LOMBSCARGLE_SAMPLES_MIN, array->count,
                       array->dropped ? " once missing ones are left out" : "");
    else
        return true;
    return false;
}

/* What the grid needs of a curve's times. */
static struct lombscargle_times span_check(const double *t, uint64_t n,
                                           struct complaints *complaints) {
    double low = t[0], high = t[0];
    for (uint64_t i = 1; i < n; i++) {
        low = t[i] < low ? t[i] : low;
        high = t[i] > high ? t[i] : high;
    }
    if (!(high > low))
        complaints_add(complaints, "t", "has one time only: all values are %g", low);
    else if (!isfinite(high - low))
        complaints_add(complaints, "t", "spans more than a double can hold");
    else
        return (struct lombscargle_times){n, high - low};
    return (struct lombscargle_times){0, 0};
}

/* Looks at t, y and dy; tells the grid what it needs of the times. */
static struct lombscargle_times series_check(const struct lombscargle_params *params,
                                             const struct input *input, const uint8_t *data,
                                             const struct limits *limits,
                                             struct complaints *complaints) {
    struct lombscargle_times times = {0, 0};
    const double *t = lombscargle_array(input, data, &params->t);
    const double *y = lombscargle_array(input, data, &params->y);
    const double *dy = lombscargle_array(input, data, &params->dy);
    bool usable = count_check("t", &params->t, params, limits, complaints) && t &&
                  values_check("t", t, params->t.count, false, complaints);
    if (count_check("y", &params->y, params, limits, complaints) && y)
        values_check("y", y, params->y.count, false, complaints);
    if (params->dy.count && count_check("dy", &params->dy, params, limits, complaints) && dy)
        values_check("dy", dy, params->dy.count, true, complaints);
    if (!usable)
        return times;
    return span_check(t, params->t.count, complaints);
}

/* Looks at one curve of several. The first bad value is named with its series. */
static bool row_check(const struct lombscargle_row *row, uint64_t index,
                      const struct limits *limits, struct complaints *complaints) {
    const struct {
        const char *field;
        const double *values;
        bool positive;
    } arrays[] = {{"t", row->t, false}, {"y", row->y, false}, {"dy", row->dy, true}};
    if (row->n > limits->max_samples) {
        complaints_add(complaints, "y",
                       "has %" PRIu64 " samples in series %" PRIu64 "; this daemon allows %" PRIu64
                       " (--max-samples)",
                       row->n, index, limits->max_samples);
        return false;
    }
    for (size_t a = 0; a < 3; a++) {
        uint64_t bad =
            arrays[a].values ? values_bad(arrays[a].values, row->n, arrays[a].positive) : row->n;
        if (bad == row->n)
            continue;
        complaints_add(complaints, arrays[a].field,
                       "must be finite%s: value %" PRIu64 " of series %" PRIu64 " is %g",
                       arrays[a].positive ? " and above 0" : "", bad, index, arrays[a].values[bad]);
        return false;
    }
    return true;
}

/* The grid of several curves is that of the one with the longest baseline. */
static struct lombscargle_times batch_check(const struct lombscargle_params *params,
                                            const struct input *input, const uint8_t *data,
                                            const struct limits *limits,
                                            struct complaints *complaints) {
    struct lombscargle_times longest = {0, 0};
    struct lombscargle_rows rows;
    if (!lombscargle_rows_find(params, input, data, &rows, complaints))
        return longest;
    for (uint64_t i = 0, at = 0; i < rows.count; i++) {
        struct lombscargle_row row = lombscargle_row_at(&rows, i, at);
        size_t before = complaints->count;
        if (!row_check(&row, i, limits, complaints))
            return (struct lombscargle_times){0, 0};
        if (i == 0 || !rows.shared_t) {
            struct lombscargle_times times = span_check(row.t, row.n, complaints);
            longest = times.baseline > longest.baseline ? times : longest;
        }
        if (complaints->count > before)
            return (struct lombscargle_times){0, 0};
        at += row.n;
    }
    return longest;
}

static void bootstrap_check(struct lombscargle_params *params, struct complaints *complaints) {
    uint64_t most = (uint64_t)LOMBSCARGLE_RESAMPLED_MAX / (uint64_t)params->bootstrap_samples;
    uint64_t total = params->y.count;
    if (total > most)
        complaints_add(complaints, "bootstrap_samples",
                       "is too much for %" PRIu64 " values: their product may be at most %" PRIu64,
                       total, (uint64_t)LOMBSCARGLE_RESAMPLED_MAX);
}

static void alarm_check(struct lombscargle_params *params, bool whole,
                        struct complaints *complaints) {
    if (params->false_alarm == ALARM_BOOTSTRAP) {
        if (whole)
            bootstrap_check(params, complaints);
        return;
    }
    params->bootstrap_samples = params->seed = FIELD_ABSENT;
    if (params->false_alarm == ALARM_NONE)
        return;
    if (!params->fit_mean && !params->center_data)
        complaints_add(complaints, "false_alarm", "needs fit_mean or center_data");
    else if (whole && params->normalization == LOMBSCARGLE_PSD && !params->dy.count)
        complaints_add(complaints, "false_alarm", "needs dy where normalization is psd");
    else if (params->nterms != 1 && params->false_alarm != ALARM_NAIVE)
        complaints_add(complaints, "false_alarm",
                       "needs nterms 1 for davies and baluev; use naive or bootstrap");
}

/* Several series at once. */
static bool is_batch(const struct lombscargle_params *params) {
    return params->t.rows > 0 || params->y.rows > 0 || params->dy.rows > 0;
}

/* Whether the arrays are all there. Behind a complaint they may lack, or not be in order yet: gaps
   are still there, and one number stands for all. */
static bool is_whole(const struct lombscargle_params *params, const struct complaints *complaints) {
    uint64_t n = params->t.count, errors = params->dy.count;
    return complaints->count == 0 ||
           (n > 0 && params->y.count == n && (errors == 0 || errors == n) && !is_batch(params) &&
            params->missing == MISSING_REFUSE &&
            !complaints_about(complaints, "t", "y", "dy", "missing", NULL));
}

/* Frequencies of a list may lie anywhere. */
static void list_method_check(struct lombscargle_params *params, struct complaints *complaints) {
    if (params->method == LOMBSCARGLE_METHOD_NUFFT)
        complaints_add(complaints, "method",
                       "nufft needs a grid: give a range, or f0, df and nf, in place of frequency, "
                       "or take direct or auto");
    params->method = LOMBSCARGLE_METHOD_DIRECT;
}

void lombscargle_check(void *raw, const struct input *input, const uint8_t *data,
                       enum format format, const struct limits *limits,
                       struct complaints *complaints) {
    struct lombscargle_params *params = raw;
    bool batch = is_batch(params), whole = is_whole(params, complaints);
    struct lombscargle_times times = {0, 0};
    if (whole)
        times = (batch ? batch_check : series_check)(params, input, data, limits, complaints);
    lombscargle_grid_resolve(params, &times, lombscargle_array(input, data, &params->frequency),
                             limits, complaints);
    if (params->frequency.count)
        list_method_check(params, complaints);
    if (batch && (format == FORMAT_PNG || format == FORMAT_SVG)) {
        complaints_add(complaints, "format",
                       "%s draws one series; several come as json, npy or csv",
                       format_row(format)->name);
    }
    if (whole && !batch && params->layout == LAYOUT_BATCH)
        complaints_add(complaints, "layout", "batch is for NPY bodies");
    result_compression_settle(&params->compression, format);
    params->layout = LAYOUT_CURVE; /* it has said what it had to say */
    alarm_check(params, whole, complaints);
}

enum kiln_status lombscargle_plan(const void *raw, const struct input *input, enum format format,
                                  struct plan *plan) {
    const struct lombscargle_params *params = raw;
    uint64_t nf = params->frequency.count ? params->frequency.count : (uint64_t)params->nf;
    double curves =
        params->false_alarm == ALARM_BOOTSTRAP ? 1 + (double)params->bootstrap_samples : 1;
    plan->result_bytes = lombscargle_result_bound(params, nf, format);
    /* Where the result is smaller than the power, the device need not hold all of it. */
    double power = (double)nf * sizeof(double) * (double)(params->y.rows > 0 ? params->y.rows : 1);
    double held = power < (double)plan->result_bytes ? power : (double)plan->result_bytes;
    plan->device_bytes = input->size + (uint64_t)held;
    plan->cost = (double)params->y.count * (double)nf * (double)params->nterms * curves;
    plan->kernels = KERNEL_BIT(LOMBSCARGLE);
    return plan->result_bytes ? KILN_OK : KILN_JOB_TOO_LARGE;
}

bool lombscargle_alike(const struct job *one, const struct job *other) {
    const struct lombscargle_params *a = (const void *)one->params,
                                    *b = (const void *)other->params;
    return one->format == FORMAT_JSON && a->y.rows == 0 && b->y.rows == 0 &&
           lombscargle_peaks_only(a) && lombscargle_peaks_only(b) &&
           a->false_alarm != ALARM_BOOTSTRAP && b->false_alarm != ALARM_BOOTSTRAP &&
           a->f0 == b->f0 && a->df == b->df && a->nf == b->nf && a->peaks == b->peaks &&
           a->nterms == b->nterms && a->normalization == b->normalization &&
           a->method == b->method && a->precision == b->precision && a->fit_mean == b->fit_mean &&
           one->plan.cost <= SMALL_COST && other->plan.cost <= SMALL_COST;
}
