/*
 * lombscargle_run.c: from a series, or several, to its power.
 *
 * The host takes what is O(n) off the device: times less their midpoint (so that phases lose no
 * digits to the calendar), weights, values scaled by a power of two (so that no unit of y
 * overflows) and less their weighted mean. The device does the n × nf pairs of all curves in one
 * launch.
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
    double middle = low + 0.5 * (high - low);
    for (uint64_t i = 0; i < p->n; i++)
        p->t[i] = t[i] - middle;
    p->baseline = high - low;
    return isfinite(p->baseline);
}

static void spread_measure(struct periodogram *p) {
    double mean = 0, square = 0;
    for (uint64_t i = 0; i < p->n; i++)
        mean += p->w[i] * p->t[i];
    for (uint64_t i = 0; i < p->n; i++)
        square += p->w[i] * (p->t[i] - mean) * (p->t[i] - mean);
    p->spread = square;
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

/* The light curves of a request on their way, and their samples, one array after the other. */
struct batch {
    struct lombscargle_rows rows;
    struct periodogram *periodograms;
    struct lombscargle_curve *curves;
    uint64_t count, nf;
    uint64_t times, weights; /* elements of t and w; y has rows.total */
    double *t, *y, *w;
    struct lombscargle_peak *found; /* by the device; NULL: the host looks for peaks */
    uint64_t found_count;           /* for each curve */
    int32_t method;                 /* that the kernel used; -1: it did not run */
};

static enum kiln_status batch_reserve(struct task *task, struct batch *batch) {
    const struct lombscargle_rows *rows = &batch->rows;
    bool equal_weights = rows->shared_t && (!rows->dy || rows->shared_dy);
    batch->count = rows->count;
    batch->times = rows->shared_t ? rows->samples : rows->total;
    batch->weights = equal_weights ? rows->samples : rows->total;
    batch->periodograms = result_scratch(task, batch->count, sizeof *batch->periodograms);
    batch->curves = result_scratch(task, batch->count, sizeof *batch->curves);
    batch->t = result_scratch(task, batch->times, sizeof *batch->t);
    batch->y = result_scratch(task, rows->total, sizeof *batch->y);
    batch->w = result_scratch(task, batch->weights, sizeof *batch->w);
    bool room = batch->periodograms && batch->curves && batch->t && batch->y && batch->w;
    return room ? KILN_OK : result_no_memory(task);
}

/* Curve i, whose samples begin with number `at` of all. What it shares with the first is not made
   again. False where a value cannot be used. */
static bool curve_prepare(struct batch *batch, uint64_t i, uint64_t at, double *total) {
    const struct lombscargle_row row = lombscargle_row_at(&batch->rows, i, at);
    const struct periodogram *first = batch->periodograms;
    struct periodogram *p = &batch->periodograms[i];
    const struct lombscargle_rows *rows = &batch->rows;
    bool own_times = i == 0 || !rows->shared_t;
    bool own_weights = own_times || (rows->dy && !rows->shared_dy);
    p->n = row.n;
    p->t = batch->t + (own_times ? at : 0);
    p->w = batch->w + (own_weights ? at : 0);
    p->y = batch->y + at;
    if (own_weights && !weights_fill(p, row.dy, total))
        return false;
    if (own_times && !times_center(p, row.t))
        return false;
    p->baseline = own_times ? p->baseline : first->baseline;
    p->spread = first->spread;
    if (own_times || own_weights)
        spread_measure(p);
    if (!values_center(p, row.y, *total))
        return false;
    batch->curves[i] = (struct lombscargle_curve){.n = (int64_t)p->n,
                                                  .t = p->t - batch->t,
                                                  .y = (int64_t)at,
                                                  .w = p->w - batch->w,
                                                  .y_mean = p->y_mean,
                                                  .yy = p->note ? 0 : p->yy,
                                                  .psd_factor = p->psd_factor};
    return true;
}

/* Reads the input again: its bytes are shared memory. */
static enum kiln_status batch_prepare(struct task *task, struct batch *batch) {
    const struct lombscargle_params *params = task->params;
    const double *frequency = lombscargle_array(task->input, task->data, &params->frequency);
    batch->nf = params->frequency.count ? params->frequency.count : (uint64_t)params->nf;
    if (!lombscargle_rows_find(params, task->input, task->data, &batch->rows, NULL) ||
        (params->frequency.count && !frequency) || (int64_t)batch->nf < 1)
        return broken(task, "the series does not lie in its input block");
    enum kiln_status status = batch_reserve(task, batch);
    double total = 0;
    for (uint64_t i = 0, at = 0; status == KILN_OK && i < batch->count; i++) {
        batch->periodograms[i] =
            (struct periodogram){.params = params, .nf = batch->nf, .frequency = frequency};
        if (!curve_prepare(batch, i, at, &total))
            return broken(task,
                          "the series holds values that are not finite, or errors not above 0");
        at += batch->periodograms[i].n;
    }
    return status;
}

/* Arguments of the kernel with everything uploaded; KILN_NO_MEMORY. */
static enum kiln_status args_fill(struct task *task, const struct batch *batch,
                                  struct lombscargle_args *args) {
    const struct lombscargle_params *params = task->params;
    const struct backend *backend = task->backend;
    const struct periodogram *first = batch->periodograms;
    struct stream *stream = task->stream;
    bool many = batch->rows.batch;
    size_t curves = batch->count * sizeof *batch->curves;
    *args = (struct lombscargle_args){
        .n = (int64_t)batch->rows.total,
        .t = backend->upload(stream, batch->t, batch->times * sizeof(double)),
        .y = backend->upload(stream, batch->y, batch->rows.total * sizeof(double)),
        .w = backend->upload(stream, batch->w, batch->weights * sizeof(double)),
        .y_mean = first->y_mean,
        .yy = first->yy,
        .nf = (int64_t)batch->nf,
        .f0 = first->frequency ? 0 : params->f0,
        .df = first->frequency ? 0 : params->df,
        .fit_mean = params->fit_mean,
        .normalization = params->normalization,
        .fp32 = params->precision == PRECISION_FP32,
        .nterms = (int32_t)params->nterms,
        .method = params->method,
        .psd_factor = first->psd_factor,
        .series = many ? (int64_t)batch->count : 0,
        .curves = many ? batch->curves : NULL,
        .device_curves = many ? backend->upload(stream, batch->curves, curves) : NULL,
    };
    if (first->frequency)
        args->frequency = backend->upload(stream, first->frequency, batch->nf * sizeof(double));
    bool room = args->t && args->y && args->w && (!many || args->device_curves) &&
                (!first->frequency || args->frequency);
    return room ? KILN_OK : KILN_NO_MEMORY;
}

/* Where the device leaves its results: peaks, or power. */
static enum kiln_status results_place(struct task *task, struct batch *batch,
                                      struct lombscargle_args *args) {
    const struct backend *backend = task->backend;
    uint64_t peaks = batch->count * batch->found_count;
    if (!batch->found) {
        args->power = backend->result(task->stream, batch->periodograms->power,
                                      batch->count * batch->nf * sizeof(double));
        return args->power ? KILN_OK : KILN_NO_MEMORY;
    }
    args->peak_count = (int32_t)batch->found_count;
    args->peaks = backend->result(task->stream, batch->found, peaks * sizeof *batch->found);
    return args->peaks ? KILN_OK : KILN_NO_MEMORY;
}

static enum kiln_status batch_evaluate(struct task *task, struct batch *batch) {
    const struct lombscargle_params *params = task->params;
    const struct backend *backend = task->backend;
    struct stream *stream = task->stream;
    struct lombscargle_args args;
    enum kiln_status status = args_fill(task, batch, &args);
    args.method_used = &batch->method;
    if (status != KILN_OK || (status = backend->phase(stream, PHASE_KERNEL)) != KILN_OK ||
        (status = results_place(task, batch, &args)) != KILN_OK ||
        (status = backend->launch(stream, KERNEL_LOMBSCARGLE, &args)) != KILN_OK ||
        (status = backend->phase(stream, PHASE_DOWNLOAD)) != KILN_OK)
        return status;
    status = batch->found
                 ? backend->download(stream, batch->found, args.peaks,
                                     batch->count * batch->found_count * sizeof *batch->found)
                 : backend->download(stream, batch->periodograms->power, args.power,
                                     batch->count * batch->nf * sizeof(double));
    if (status == KILN_OK)
        status = backend->wait(stream);
    args.method_used = NULL;
    if (status == KILN_OK && params->false_alarm == ALARM_BOOTSTRAP && task->format == FORMAT_JSON)
        status =
            lombscargle_bootstrap(task, batch->periodograms, batch->curves, batch->count, &args);
    return status;
}

/* Where the power goes: into a NumPy array (behind the frequencies, where it is of one curve), or
   into scratch; nowhere, if peaks are all that is asked for and the device can find them. */
static enum kiln_status power_place(struct task *task, struct batch *batch) {
    const struct lombscargle_params *params = task->params;
    uint64_t wanted = lombscargle_peaks_wanted(params), count = batch->count, numbers;
    double *power;
    if (__builtin_mul_overflow(count, batch->nf, &numbers) || numbers > UINT64_MAX / 32)
        return KILN_JOB_TOO_LARGE;
    if (task->format == FORMAT_JSON && params->fields == FIELDS_PEAKS && !params->frequency.count &&
        wanted <= LOMBSCARGLE_KERNEL_PEAKS_MAX) {
        batch->found_count = wanted;
        batch->found = result_scratch(task, count * wanted, sizeof *batch->found);
        return batch->found ? KILN_OK : result_no_memory(task);
    }
    if (task->format == FORMAT_NPY) {
        uint64_t front = batch->rows.batch ? 0 : batch->nf;
        const uint64_t shape[] = {batch->rows.batch ? count : 2, batch->nf};
        power = result_array(task, "<f8", shape, 2, (numbers + front) * sizeof *power);
        if (!power)
            return KILN_INTERNAL;
        power += front;
    } else if (!(power = result_scratch(task, numbers, sizeof *power))) {
        return result_no_memory(task);
    }
    for (uint64_t i = 0; i < count; i++)
        batch->periodograms[i].power = power + i * batch->nf;
    return KILN_OK;
}

static enum kiln_status peaks_find(struct task *task, struct batch *batch) {
    enum kiln_status status = KILN_OK;
    if (task->format != FORMAT_JSON && task->format != FORMAT_PNG)
        return KILN_OK;
    for (uint64_t i = 0; status == KILN_OK && i < batch->count; i++) {
        struct periodogram *p = &batch->periodograms[i];
        const struct lombscargle_peak *found = batch->found + i * batch->found_count;
        status = batch->found ? lombscargle_peaks_take(task, p, found, batch->found_count)
                              : lombscargle_peaks_find(task, p);
    }
    return status;
}

enum kiln_status lombscargle_run(struct task *task) {
    struct batch batch = {.method = -1};
    enum kiln_status status = task->backend->phase(task->stream, PHASE_UPLOAD);
    if (status != KILN_OK)
        return result_error(task, status);
    if ((status = batch_prepare(task, &batch)) != KILN_OK ||
        (status = power_place(task, &batch)) != KILN_OK)
        return status;
    struct periodogram *first = batch.periodograms;
    if (batch.rows.batch || !first->note)
        status = batch_evaluate(task, &batch);
    else if (batch.found)
        batch.found->index = -1; /* a curve without variance has no peaks */
    first->method = batch.method;
    for (uint64_t i = 0; !batch.rows.batch && first->note && first->power && i < first->nf; i++)
        first->power[i] = NAN;
    if (status == KILN_OK)
        status = task->backend->phase(task->stream, PHASE_ENCODE);
    if (status != KILN_OK)
        return result_error(task, status);
    if ((status = peaks_find(task, &batch)) != KILN_OK)
        return status;
    return lombscargle_result_write(task, first, batch.count);
}
