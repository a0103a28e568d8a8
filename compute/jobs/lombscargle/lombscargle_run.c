/*
 * lombscargle_run.c: from a series, or several, to its power: the n × nf pairs of all curves in one
 * launch.
 *
 * Small requests of one curve each on the same grid, of which only peaks are wanted, are such a
 * batch too, with a result for each.
 *
 * Threads: a worker's slot thread.
 */
#include "compute/jobs/lombscargle/lombscargle_batch.h"
#include "compute/jobs/result.h"

#include <math.h>

/* Arguments of the kernel with everything uploaded; KILN_NO_MEMORY. */
static enum kiln_status args_fill(struct task *task, const struct batch *batch,
                                  struct lombscargle_args *args) {
    const struct lombscargle_params *params = task->params;
    const struct backend *backend = task->backend;
    const struct periodogram *first = batch->periodograms;
    struct stream *stream = task->stream;
    bool many = batch->many;
    size_t curves = batch->count * sizeof *batch->curves;
    *args = (struct lombscargle_args){
        .n = (int64_t)batch->total,
        .t = backend->upload(stream, batch->t, batch->times * sizeof(double)),
        .y = backend->upload(stream, batch->y, batch->total * sizeof(double)),
        .w = backend->upload(stream, batch->w, batch->weights * sizeof(double)),
        .y_mean = first->y_mean,
        .yy = first->yy,
        .nf = (int64_t)batch->nf,
        .f0 = first->frequency != NULL ? 0 : params->f0,
        .df = first->frequency != NULL ? 0 : params->df,
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
    if (first->frequency != NULL) {
        args->frequency = backend->upload(stream, first->frequency, batch->nf * sizeof(double));
    }
    bool room = args->t != NULL && args->y != NULL && args->w != NULL &&
                (!many || args->device_curves != NULL) &&
                (first->frequency == NULL || args->frequency != NULL);
    return room ? KILN_OK : KILN_NO_MEMORY;
}

/* Where the device leaves its results: peaks, or power. */
static enum kiln_status results_place(struct task *task, struct batch *batch,
                                      struct lombscargle_args *args) {
    const struct backend *backend = task->backend;
    uint64_t peaks = batch->count * batch->found_count;
    if (batch->found == NULL) {
        args->power = backend->result(task->stream, batch->periodograms->power,
                                      batch->count * batch->nf * sizeof(double));
        return args->power != NULL ? KILN_OK : KILN_NO_MEMORY;
    }
    args->peak_count = (int32_t)batch->found_count;
    args->peaks = backend->result(task->stream, batch->found, peaks * sizeof *batch->found);
    return args->peaks != NULL ? KILN_OK : KILN_NO_MEMORY;
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
        (status = backend->phase(stream, PHASE_DOWNLOAD)) != KILN_OK) {
        return status;
    }
    status = batch->found != NULL
                 ? backend->download(stream, batch->found, args.peaks,
                                     batch->count * batch->found_count * sizeof *batch->found)
                 : backend->download(stream, batch->periodograms->power, args.power,
                                     batch->count * batch->nf * sizeof(double));
    if (status == KILN_OK) {
        status = backend->wait(stream);
    }
    args.method_used = NULL;
    if (status == KILN_OK && params->false_alarm == ALARM_BOOTSTRAP &&
        task->format == FORMAT_JSON) {
        status =
            lombscargle_bootstrap(task, batch->periodograms, batch->curves, batch->count, &args);
    }
    return status;
}

/* Where the power goes: into a NumPy array (behind the frequencies, where it is of one curve), or
   into scratch; nowhere, if peaks are all that is asked for and the device can find them. */
static enum kiln_status power_place(struct task *task, struct batch *batch) {
    const struct lombscargle_params *params = task->params;
    uint64_t wanted = lombscargle_peaks_sought(params), count = batch->count, numbers;
    double *power;
    if (__builtin_mul_overflow(count, batch->nf, &numbers) || numbers > UINT64_MAX / 32) {
        return KILN_JOB_TOO_LARGE;
    }
    if (task->format == FORMAT_JSON && lombscargle_peaks_only(params)) {
        batch->found_count = wanted;
        batch->found = result_scratch(task, count * wanted, sizeof *batch->found);
        return batch->found != NULL ? KILN_OK : result_no_memory(task);
    }
    if (task->format == FORMAT_NPY) {
        uint64_t front = batch->many ? 0 : batch->nf;
        const uint64_t shape[] = {batch->many ? count : 2, batch->nf};
        power = result_array(task, "<f8", shape, 2, (numbers + front) * sizeof *power);
        if (power == NULL) {
            return KILN_INTERNAL;
        }
        power += front;
    } else if ((power = result_scratch(task, numbers, sizeof *power)) == NULL) {
        return result_no_memory(task);
    }
    for (uint64_t i = 0; i < count; i++) {
        batch->periodograms[i].power = power + i * batch->nf;
    }
    return KILN_OK;
}

static enum kiln_status peaks_find(struct task *task, struct batch *batch) {
    enum kiln_status status = KILN_OK;
    if (task->format == FORMAT_NPY || task->format == FORMAT_CSV) {
        return KILN_OK;
    }
    for (uint64_t i = 0; status == KILN_OK && i < batch->count; i++) {
        struct periodogram *p = &batch->periodograms[i];
        const struct lombscargle_peak *found = batch->found + i * batch->found_count;
        status = batch->found != NULL ? lombscargle_peaks_take(task, p, found, batch->found_count)
                                      : lombscargle_peaks_find(task, p);
    }
    return status;
}

enum kiln_status lombscargle_run(struct task *task) {
    struct batch batch = {.method = -1};
    enum kiln_status status = task->backend->phase(task->stream, PHASE_UPLOAD);
    if (status != KILN_OK) {
        return result_error(task, status);
    }
    if ((status = batch_prepare(task, &batch)) != KILN_OK ||
        (status = power_place(task, &batch)) != KILN_OK) {
        return status;
    }
    struct periodogram *first = batch.periodograms;
    if (batch.many || first->note == NULL) {
        status = batch_evaluate(task, &batch);
    } else if (batch.found != NULL) {
        batch.found->index = -1; /* a curve without variance has no peaks */
    }
    first->method = batch.method;
    for (uint64_t i = 0;
         !batch.many && first->note != NULL && first->power != NULL && i < first->nf; i++) {
        first->power[i] = NAN;
    }
    if (status == KILN_OK) {
        status = task->backend->phase(task->stream, PHASE_ENCODE);
    }
    if (status != KILN_OK) {
        return result_error(task, status);
    }
    if ((status = peaks_find(task, &batch)) != KILN_OK) {
        return status;
    }
    return lombscargle_result_write(task, first, batch.count);
}

/* ---- several requests at once ---- */

static enum kiln_status group_evaluate(struct task *tasks, size_t count, struct batch *batch) {
    const struct backend *backend = tasks->backend;
    enum kiln_status status = backend->phase(tasks->stream, PHASE_UPLOAD);
    if (status == KILN_OK) {
        status = batch_gather(tasks, count, batch);
    }
    if (status == KILN_OK) {
        status = power_place(tasks, batch);
    }
    if (status == KILN_OK && batch->found == NULL) {
        status = KILN_UNSUPPORTED;
    }
    if (status == KILN_OK) {
        status = batch_evaluate(tasks, batch);
    }
    return status == KILN_OK ? backend->phase(tasks->stream, PHASE_ENCODE) : status;
}

/* The group's phases end here, so that each result can tell them. */
static void phases_tell(struct task *tasks, size_t count) {
    struct timing shared = {0};
    tasks->backend->finish(tasks->stream, &shared);
    for (size_t i = 0; i < count; i++) {
        timing_add(tasks[i].timing, &shared);
    }
}

enum kiln_status lombscargle_run_group(struct task *tasks, size_t count) {
    struct batch batch = {.method = -1};
    enum kiln_status status = group_evaluate(tasks, count, &batch);
    if (status == KILN_OK) {
        phases_tell(tasks, count);
    }
    for (size_t i = 0; status == KILN_OK && i < count; i++) {
        struct periodogram *p = &batch.periodograms[i];
        p->method = p->note != NULL ? -1 : batch.method; /* by itself it would not have run */
        status = lombscargle_peaks_take(&tasks[i], p, batch.found + i * batch.found_count,
                                        batch.found_count);
        if (status == KILN_OK) {
            status = lombscargle_result_write(&tasks[i], p, 1);
        }
    }
    return status;
}
