/*
 * lombscargle_check.c: what may be asked for, and how large the answer can be.
 *
 * One pass over the series, in the front: values are looked at, nothing is computed.
 */
#include "compute/jobs/lombscargle.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static bool complained(const struct complaints *complaints, const char *field) {
    size_t kept = complaints->count < COMPLAINTS_MAX ? complaints->count : COMPLAINTS_MAX;
    for (size_t i = 0; i < kept; i++)
        if (strcmp(complaints->rows[i].field, field) == 0)
            return true;
    return false;
}

/* The first value that is not finite (and, for errors, not above 0) is named. */
static bool values_check(const char *field, const double *values, uint64_t count, bool positive,
                         struct complaints *complaints) {
    for (uint64_t i = 0; i < count; i++) {
        if (isfinite(values[i]) && (!positive || values[i] > 0))
            continue;
        complaints_add(complaints, field, "must be finite%s: value %" PRIu64 " is %g",
                       positive ? " and above 0" : "", i, values[i]);
        return false;
    }
    return true;
}

static bool count_check(const char *field, const struct array_ref *array,
                        const struct lombscargle_params *params, const struct limits *limits,
                        struct complaints *complaints) {
    if (complained(complaints, field))
        return false;
    if (array->count > limits->max_samples)
        complaints_add(complaints, field,
                       "has %" PRIu64 " samples; this daemon allows %" PRIu64 " (--max-samples)",
                       array->count, limits->max_samples);
    else if (params->t.count && array->count != params->t.count)
        complaints_add(complaints, field, "has %" PRIu64 " values, but t has %" PRIu64,
                       array->count, params->t.count);
    else if (array->count < LOMBSCARGLE_SAMPLES_MIN)
        complaints_add(complaints, field, "needs at least %d samples, has %" PRIu64,
                       LOMBSCARGLE_SAMPLES_MIN, array->count);
    else
        return true;
    return false;
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
    double low = t[0], high = t[0];
    for (uint64_t i = 1; i < params->t.count; i++) {
        low = t[i] < low ? t[i] : low;
        high = t[i] > high ? t[i] : high;
    }
    if (!(high > low))
        complaints_add(complaints, "t", "has one time only: all values are %g", low);
    else if (!isfinite(high - low))
        complaints_add(complaints, "t", "spans more than a double can hold");
    else
        times = (struct lombscargle_times){params->t.count, high - low};
    return times;
}

static void alarm_check(const struct lombscargle_params *params, struct complaints *complaints) {
    if (params->false_alarm == ALARM_NONE)
        return;
    if (params->false_alarm == ALARM_BOOTSTRAP)
        complaints_add(complaints, "false_alarm",
                       "bootstrap is not available in this version; use naive, davies or baluev");
    else if (!params->fit_mean && !params->center_data)
        complaints_add(complaints, "false_alarm", "needs fit_mean or center_data");
    else if (params->normalization == LOMBSCARGLE_PSD && !params->dy.count)
        complaints_add(complaints, "false_alarm", "needs dy where normalization is psd");
}

void lombscargle_check(void *raw, const struct input *input, const uint8_t *data,
                       enum format format, const struct limits *limits,
                       struct complaints *complaints) {
    struct lombscargle_params *params = raw;
    (void)format;
    struct lombscargle_times times = series_check(params, input, data, limits, complaints);
    lombscargle_grid_resolve(params, &times, lombscargle_array(input, data, &params->frequency),
                             limits, complaints);
    if (params->nterms != 1 && !complained(complaints, "nterms"))
        complaints_add(complaints, "nterms",
                       "must be 1: more terms are not available in this "
                       "version");
    if (params->method == METHOD_NUFFT)
        complaints_add(complaints, "method",
                       "nufft is not available in this version; use direct or auto");
    else
        params->method = METHOD_DIRECT;
    alarm_check(params, complaints);
}

enum kiln_status lombscargle_plan(const void *raw, const struct input *input, enum format format,
                                  struct plan *plan) {
    const struct lombscargle_params *params = raw;
    (void)input;
    uint64_t nf = params->frequency.count ? params->frequency.count : (uint64_t)params->nf;
    plan->result_bytes = lombscargle_result_bound(params, nf, format);
    plan->cost = (double)params->t.count * (double)nf;
    return plan->result_bytes ? KILN_OK : KILN_JOB_TOO_LARGE;
}
