/*
 * lombscargle_prepare.c: light curves as the kernel wants them.
 *
 * The host takes what is O(n) off the device: times less their midpoint where that is far off (so
 * that phases lose no digits to the calendar), weights, values scaled by a power of two (so that no
 * unit of y overflows) and less their weighted mean.
 *
 * Threads: a worker's slot thread.
 */
#include "compute/jobs/lombscargle/lombscargle_batch.h"
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
        if (!isfinite(t[i])) {
            return false;
        }
        low = t[i] < low ? t[i] : low;
        high = t[i] > high ? t[i] : high;
    }
    /* Differences must be exact: near-singular bins depend on every digit of the times. They are
       where the midpoint is between half and twice each time; other times are near to 0 as they
       are. */
    double middle = low > high - low || high < low - high ? low + 0.5 * (high - low) : 0;
    for (uint64_t i = 0; i < p->n; i++) {
        p->t[i] = t[i] - middle;
    }
    p->baseline = high - low;
    return isfinite(p->baseline);
}

static void spread_measure(struct periodogram *p) {
    double mean = 0, square = 0;
    for (uint64_t i = 0; i < p->n; i++) {
        mean += p->w[i] * p->t[i];
    }
    for (uint64_t i = 0; i < p->n; i++) {
        square += p->w[i] * (p->t[i] - mean) * (p->t[i] - mean);
    }
    p->spread = square;
}

/* Weights of sum 1; `scale` receives the sum of dy^-2. */
static bool weights_fill(struct periodogram *p, const double *dy, double *total) {
    double least = INFINITY, sum = 0;
    for (uint64_t i = 0; dy != NULL && i < p->n; i++) {
        if (!isfinite(dy[i]) || !(dy[i] > 0)) {
            return false;
        }
        least = fmin(least, dy[i]);
    }
    for (uint64_t i = 0; i < p->n; i++) {
        double ratio = dy != NULL ? least / dy[i] : 1; /* at most 1: no error overflows */
        p->w[i] = ratio * ratio;
        sum += p->w[i];
    }
    for (uint64_t i = 0; i < p->n; i++) {
        p->w[i] /= sum;
    }
    *total = dy != NULL ? sum / least / least : sum;
    return true;
}

static double weighted_mean(const double *w, const double *y, uint64_t n) {
    double sum = 0;
    for (uint64_t i = 0; i < n; i++) {
        sum += w[i] * y[i];
    }
    return sum;
}

/* Values as the kernel wants them; `total` is the sum of dy^-2. */
static bool values_center(struct periodogram *p, const double *y, double total) {
    const struct lombscargle_params *params = p->params;
    bool centered = params->fit_mean || params->center_data;
    double low = y[0], high = y[0];
    for (uint64_t i = 0; i < p->n; i++) {
        if (!isfinite(y[i])) {
            return false;
        }
        low = y[i] < low ? y[i] : low;
        high = y[i] > high ? y[i] : high;
    }
    int exponent = 0;
    frexp(fmax(fabs(low), fabs(high)), &exponent);
    for (uint64_t i = 0; i < p->n; i++) {
        p->y[i] = ldexp(y[i], -exponent);
    }
    double mean = centered ? weighted_mean(p->w, p->y, p->n) : 0;
    double square = 0;
    for (uint64_t i = 0; i < p->n; i++) {
        p->y[i] -= mean;
        square += p->w[i] * p->y[i] * p->y[i];
    }
    p->y_mean = weighted_mean(p->w, p->y, p->n); /* what rounding left */
    p->yy = params->fit_mean ? square - p->y_mean * p->y_mean : square;
    p->psd_factor = ldexp(0.5 * total * p->yy, 2 * exponent);
    if (centered && low == high) {
        p->note = "All values are equal: there is no power to distribute over frequencies.";
    } else if (!(p->yy > 0)) {
        p->note = "The values do not vary within double precision.";
    }
    return true;
}

static enum kiln_status batch_reserve(struct task *task, struct batch *batch) {
    batch->periodograms = result_scratch(task, batch->count, sizeof *batch->periodograms);
    batch->curves = result_scratch(task, batch->count, sizeof *batch->curves);
    batch->t = result_scratch(task, batch->times, sizeof *batch->t);
    batch->y = result_scratch(task, batch->total, sizeof *batch->y);
    batch->w = result_scratch(task, batch->weights, sizeof *batch->w);
    bool room = batch->periodograms != NULL && batch->curves != NULL && batch->t != NULL &&
                batch->y != NULL && batch->w != NULL;
    return room ? KILN_OK : result_no_memory(task);
}

/* Curve i, whose samples begin with number `at` of all. What it shares with the first is not made
   again. False where a value cannot be used. */
static bool curve_prepare(struct batch *batch, uint64_t i, uint64_t at,
                          const struct lombscargle_row *row, double *total) {
    const struct periodogram *first = batch->periodograms;
    struct periodogram *p = &batch->periodograms[i];
    bool own_times = i == 0 || batch->times == batch->total;
    bool own_weights = i == 0 || batch->weights == batch->total;
    p->n = row->n;
    p->t = batch->t + (own_times ? at : 0);
    p->w = batch->w + (own_weights ? at : 0);
    p->y = batch->y + at;
    if (own_weights && !weights_fill(p, row->dy, total)) {
        return false;
    }
    if (own_times && !times_center(p, row->t)) {
        return false;
    }
    p->baseline = own_times ? p->baseline : first->baseline;
    p->spread = first->spread;
    if (own_times || own_weights) {
        spread_measure(p);
    }
    if (!values_center(p, row->y, *total)) {
        return false;
    }
    batch->curves[i] = (struct lombscargle_curve){.n = (int64_t)p->n,
                                                  .t = p->t - batch->t,
                                                  .y = (int64_t)at,
                                                  .w = p->w - batch->w,
                                                  .y_mean = p->y_mean,
                                                  .yy = p->note != NULL ? 0 : p->yy,
                                                  .psd_factor = p->psd_factor};
    return true;
}

/* The curves of one request, from number `i` on, with samples from `at` on. */
static enum kiln_status rows_prepare(struct task *task, struct batch *batch,
                                     const struct lombscargle_rows *rows, uint64_t i, uint64_t at) {
    const struct lombscargle_params *params = task->params;
    double total = 0;
    for (uint64_t k = 0, from = 0; k < rows->count; k++) {
        const struct lombscargle_row row = lombscargle_row_at(rows, k, from);
        batch->periodograms[i + k] = (struct periodogram){
            .params = params,
            .nf = batch->nf,
            .frequency = lombscargle_array(task->input, task->data, &params->frequency),
        };
        if (!curve_prepare(batch, i + k, at + from, &row, &total)) {
            return broken(task,
                          "the series holds values that are not finite, or errors not above 0");
        }
        from += row.n;
    }
    return KILN_OK;
}

/* Reads the input again: its bytes are shared memory. */
static enum kiln_status rows_read(struct task *task, struct lombscargle_rows *rows, uint64_t *nf) {
    const struct lombscargle_params *params = task->params;
    const double *frequency = lombscargle_array(task->input, task->data, &params->frequency);
    *nf = params->frequency.count ? params->frequency.count : (uint64_t)params->nf;
    if (!lombscargle_rows_find(params, task->input, task->data, rows, NULL) ||
        (params->frequency.count && frequency == NULL) || (int64_t)*nf < 1) {
        return broken(task, "the series does not lie in its input block");
    }
    return KILN_OK;
}

enum kiln_status batch_prepare(struct task *task, struct batch *batch) {
    struct lombscargle_rows rows;
    enum kiln_status status = rows_read(task, &rows, &batch->nf);
    if (status != KILN_OK) {
        return status;
    }
    bool shared_weights = rows.shared_t && (rows.dy == NULL || rows.shared_dy);
    batch->many = rows.batch;
    batch->count = rows.count;
    batch->total = rows.total;
    batch->times = rows.shared_t ? rows.samples : rows.total;
    batch->weights = shared_weights ? rows.samples : rows.total;
    status = batch_reserve(task, batch);
    return status == KILN_OK ? rows_prepare(task, batch, &rows, 0, 0) : status;
}

enum kiln_status batch_gather(struct task *tasks, size_t count, struct batch *batch) {
    struct lombscargle_rows rows[GROUP_MAX];
    enum kiln_status status = KILN_OK;
    uint64_t nf = 0;
    batch->many = true;
    batch->count = count;
    for (size_t i = 0; status == KILN_OK && i < count; i++) {
        status = rows_read(&tasks[i], &rows[i], &nf);
        batch->nf = i == 0 ? nf : batch->nf;
        if (status == KILN_OK && (rows[i].batch || nf != batch->nf)) {
            status = KILN_UNSUPPORTED;
        }
        batch->total += status == KILN_OK ? rows[i].total : 0;
    }
    batch->times = batch->weights = batch->total;
    if (status == KILN_OK) {
        status = batch_reserve(tasks, batch);
    }
    for (size_t i = 0, at = 0; status == KILN_OK && i < count; i++) {
        status = rows_prepare(&tasks[i], batch, &rows[i], i, at);
        at += rows[i].total;
    }
    return status;
}
