/*
 * lombscargle_run.c: from a series to its power.
 *
 * The host takes what is O(n) off the device: times less their midpoint (so that phases lose no
 * digits to the calendar), weights, values scaled by a power of two (so that no unit of y
 * overflows) and less their weighted mean. The device does the n × nf pairs.
 *
 * Threads: a worker's slot thread.
 */
#include "compute/jobs/lombscargle.h"
#include "compute/jobs/result.h"

#include <math.h>
#include <stdio.h>

static enum kiln_status broken(struct task *task, const char *what) {
    snprintf(task->detail, sizeof task->detail, "%s", what);
    return KILN_MALFORMED;
}

/* Returns false if a value is not finite. */
static bool times_center(struct periodogram *p, const double *t) {
    double low = t[0], high = t[0];
    for (uint64_t i = 0; i < p->n; i++) {
        if (!isfinite(t[i]))
            return false;
        low = t[i] < low ? t[i] : low;
        high = t[i] > high ? t[i] : high;
    }
    double middle = low + 0.5 * (high - low), mean = 0, square = 0;
    for (uint64_t i = 0; i < p->n; i++) {
        p->t[i] = t[i] - middle;
        mean += p->w[i] * p->t[i];
    }
    for (uint64_t i = 0; i < p->n; i++)
        square += p->w[i] * (p->t[i] - mean) * (p->t[i] - mean);
    p->baseline = high - low;
    p->spread = square;
    return isfinite(p->baseline);
}

/* Weights of sum 1; `scale` receives the sum of dy^-2. */
static bool weights_fill(struct periodogram *p, const double *dy, double *total) {
    double least = INFINITY, sum = 0;
    for (uint64_t i = 0; dy && i < p->n; i++) {
        if (!isfinite(dy[i]) || !(dy[i] > 0))
            return false;
        least = fmin(least, dy[i]);
    }
    for (uint64_t i = 0; i < p->n; i++) {
        double ratio = dy ? least / dy[i] : 1; /* at most 1: no error overflows */
        p->w[i] = ratio * ratio;
        sum += p->w[i];
    }
    for (uint64_t i = 0; i < p->n; i++)
        p->w[i] /= sum;
    *total = dy ? sum / least / least : sum;
    return true;
}

static double weighted_mean(const double *w, const double *y, uint64_t n) {
    double sum = 0;
    for (uint64_t i = 0; i < n; i++)
        sum += w[i] * y[i];
    return sum;
}

/* Values as the kernel wants them; `total` is the sum of dy^-2. */
static bool values_center(struct periodogram *p, const double *y, double total) {
    const struct lombscargle_params *params = p->params;
    bool centered = params->fit_mean || params->center_data;
    double low = y[0], high = y[0];
    for (uint64_t i = 0; i < p->n; i++) {
        if (!isfinite(y[i]))
            return false;
        low = y[i] < low ? y[i] : low;
        high = y[i] > high ? y[i] : high;
    }
    int exponent = 0;
    frexp(fmax(fabs(low), fabs(high)), &exponent);
    for (uint64_t i = 0; i < p->n; i++)
        p->y[i] = ldexp(y[i], -exponent);
    double mean = centered ? weighted_mean(p->w, p->y, p->n) : 0;
    double square = 0;
    for (uint64_t i = 0; i < p->n; i++) {
        p->y[i] -= mean;
        square += p->w[i] * p->y[i] * p->y[i];
    }
    p->y_mean = weighted_mean(p->w, p->y, p->n); /* what rounding left */
    p->yy = params->fit_mean ? square - p->y_mean * p->y_mean : square;
    p->psd_factor = ldexp(0.5 * total * p->yy, 2 * exponent);
    if (centered && low == high)
        p->note = "All values are equal: there is no power to distribute over frequencies.";
    else if (!(p->yy > 0))
        p->note = "The values do not vary within double precision.";
    return true;
}

/* Reads the input again: its bytes are shared memory. */
static enum kiln_status series_prepare(struct task *task, struct periodogram *p) {
    const struct lombscargle_params *params = p->params;
    const double *t = lombscargle_array(task->input, task->data, &params->t);
    const double *y = lombscargle_array(task->input, task->data, &params->y);
    const double *dy = lombscargle_array(task->input, task->data, &params->dy);
    p->frequency = lombscargle_array(task->input, task->data, &params->frequency);
    p->n = params->t.count;
    p->nf = params->frequency.count ? params->frequency.count : (uint64_t)params->nf;
    if (!t || !y || params->y.count != p->n || p->n < LOMBSCARGLE_SAMPLES_MIN ||
        (params->dy.count && (!dy || params->dy.count != p->n)) ||
        (params->frequency.count && !p->frequency) || (int64_t)p->nf < 1)
        return broken(task, "the series does not lie in its input block");
    p->t = result_scratch(task, p->n, sizeof *p->t);
    p->y = result_scratch(task, p->n, sizeof *p->y);
    p->w = result_scratch(task, p->n, sizeof *p->w);
    if (!p->t || !p->y || !p->w)
        return result_no_memory(task);
    double total;
    if (!weights_fill(p, dy, &total) || !times_center(p, t) || !values_center(p, y, total))
        return broken(task, "the series holds values that are not finite, or errors not above 0");
    return KILN_OK;
}

static enum kiln_status power_evaluate(struct task *task, struct periodogram *p) {
    const struct lombscargle_params *params = p->params;
    const struct backend *backend = task->backend;
    struct stream *stream = task->stream;
    size_t series = p->n * sizeof(double), bytes = p->nf * sizeof(double);
    enum kiln_status status;
    struct lombscargle_args args = {
        .n = (int64_t)p->n,
        .t = backend->upload(stream, p->t, series),
        .y = backend->upload(stream, p->y, series),
        .w = backend->upload(stream, p->w, series),
        .y_mean = p->y_mean,
        .yy = p->yy,
        .nf = (int64_t)p->nf,
        .f0 = p->frequency ? 0 : params->f0,
        .df = p->frequency ? 0 : params->df,
        .frequency = p->frequency ? backend->upload(stream, p->frequency, bytes) : NULL,
        .fit_mean = params->fit_mean,
        .normalization = params->normalization,
        .fp32 = params->precision == PRECISION_FP32,
        .psd_factor = p->psd_factor,
    };
    if (!args.t || !args.y || !args.w || (p->frequency && !args.frequency))
        return KILN_NO_MEMORY;
    if ((status = backend->phase(stream, PHASE_KERNEL)) != KILN_OK)
        return status;
    if (!(args.power = backend->result(stream, p->power, bytes)))
        return KILN_NO_MEMORY;
    if ((status = backend->launch(stream, KERNEL_LOMBSCARGLE, &args)) != KILN_OK ||
        (status = backend->phase(stream, PHASE_DOWNLOAD)) != KILN_OK ||
        (status = backend->download(stream, p->power, args.power, bytes)) != KILN_OK)
        return status;
    return backend->wait(stream);
}

/* Where the power goes: straight behind the first row of a NumPy array, or into scratch. */
static enum kiln_status power_place(struct task *task, struct periodogram *p) {
    if (task->format != FORMAT_NPY) {
        p->power = result_scratch(task, p->nf, sizeof *p->power);
        return p->power ? KILN_OK : result_no_memory(task);
    }
    const uint64_t shape[] = {2, p->nf};
    uint64_t bytes;
    if (__builtin_mul_overflow(p->nf, 2 * sizeof(double), &bytes))
        return KILN_JOB_TOO_LARGE;
    double *rows = result_array(task, "<f8", shape, 2, bytes);
    if (!rows)
        return KILN_INTERNAL;
    p->power = rows + p->nf;
    return KILN_OK;
}

enum kiln_status lombscargle_run(struct task *task) {
    struct periodogram p = {.params = task->params};
    enum kiln_status status = task->backend->phase(task->stream, PHASE_UPLOAD);
    if (status != KILN_OK)
        return result_error(task, status);
    if ((status = series_prepare(task, &p)) != KILN_OK ||
        (status = power_place(task, &p)) != KILN_OK)
        return status;
    if (!p.note)
        status = power_evaluate(task, &p);
    else
        for (uint64_t i = 0; i < p.nf; i++)
            p.power[i] = NAN;
    if (status == KILN_OK)
        status = task->backend->phase(task->stream, PHASE_ENCODE);
    if (status != KILN_OK)
        return result_error(task, status);
    if ((task->format == FORMAT_JSON || task->format == FORMAT_PNG) &&
        (status = lombscargle_peaks_find(task, &p)) != KILN_OK)
        return status;
    return lombscargle_result_write(task, &p);
}
