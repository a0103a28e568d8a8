/*
 * jacobi.c: an image from its Laplacian by Jacobi sweeps, each channel by itself, zero outside.
 *
 * B = scale * (pixel - offset) starts as X (or X starts at zero) and is swept `iterations` times,
 * or until a sweep changes nothing by more than `tolerance`. Pictures are X rounded to 8 or 16 bit;
 * arrays are X itself in the precision that it was computed in.
 *
 * Threads: check and plan in the front, run on a worker's slot thread.
 */
#include "compute/jobs/planes.h"

#include "kernels/jacobi.h"

#include <inttypes.h>
#include <math.h>

struct jacobi_params {
    int64_t iterations;
    double offset, scale, tolerance;
    int32_t method, precision, initial, bits;
};

#define AT(member) offsetof(struct jacobi_params, member)

enum method { METHOD_SWEEPS, METHOD_EXACT, METHOD_DIRECT, METHOD_AUTO };
enum precision { PRECISION_FP32, PRECISION_FP64 };
enum initial { INITIAL_LAPLACIAN, INITIAL_ZERO };

static const char *const methods[] = {"sweeps", "exact", "direct", "auto", NULL};
static const char *const precisions[] = {"fp32", "fp64", NULL};
static const char *const initials[] = {"laplacian", "zero", NULL};
static const char *const depths[] = {"8", "16", NULL};

static const struct field fields[] = {
    {.name = "iterations",
     .type = FIELD_INT,
     .offset = AT(iterations),
     .min = 0,
     .max = 1e12,
     .preset = "150000",
     .unit = "sweeps",
     .help = "Number of Jacobi sweeps; 0 gives the start back."},
    {.name = "method",
     .type = FIELD_ENUM,
     .offset = AT(method),
     .preset = "sweeps",
     .choices = methods,
     .unit = "",
     .help = "sweeps: every sweep is computed; auto picks what is available, which is sweeps."},
    {.name = "precision",
     .type = FIELD_ENUM,
     .offset = AT(precision),
     .preset = "fp32",
     .choices = precisions,
     .unit = "",
     .help = "Floating-point type of the sweeps and of an NPY result."},
    {.name = "offset",
     .type = FIELD_REAL,
     .offset = AT(offset),
     .preset = "0",
     .unit = "grey levels",
     .help = "Taken from every input pixel: B = scale * (pixel - offset). 32768 for pictures that "
             "/v1/laplacian made."},
    {.name = "scale",
     .type = FIELD_REAL,
     .offset = AT(scale),
     .preset = "1",
     .unit = "",
     .help = "Factor on every input pixel after the offset; not 0."},
    {.name = "initial",
     .type = FIELD_ENUM,
     .offset = AT(initial),
     .preset = "laplacian",
     .choices = initials,
     .unit = "",
     .help = "What X starts as: the Laplacian itself or zero."},
    {.name = "tolerance",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .offset = AT(tolerance),
     .min = 0,
     .max = INFINITY,
     .unit = "grey levels",
     .help = "Stops early once a sweep changes no element by more than this (looked at every 256 "
             "sweeps)."},
    {.name = "bits",
     .type = FIELD_ENUM,
     .offset = AT(bits),
     .preset = "8",
     .choices = depths,
     .unit = "bits",
     .help = "Depth of PNG and PGM results; values are rounded and clamped."},
    {.name = "image",
     .type = FIELD_BLOB,
     .flags = FIELD_OPTIONAL,
     .unit = "",
     .help = "The Laplacian as base64 text (PNG, PGM, PPM, PAM or NPY), instead of a body of its "
             "own."},
    {.name = NULL},
};

static const enum format formats[] = {FORMAT_PNG, FORMAT_PGM, FORMAT_NPY, FORMAT_JSON, FORMAT_NONE};

static enum sample sample_of(const struct jacobi_params *params) {
    return params->precision == PRECISION_FP64 ? SAMPLE_DOUBLE : SAMPLE_FLOAT;
}

static uint32_t depth_of(const struct jacobi_params *params) {
    return params->bits ? 16 : 8;
}

static void check(void *raw, const struct input *input, const uint8_t *data, enum format format,
                  const struct limits *limits, struct complaints *complaints) {
    struct jacobi_params *params = raw;
    (void)data;
    (void)format;
    planes_check(input, limits, complaints);
    if ((uint64_t)params->iterations > limits->max_iterations)
        complaints_add(complaints, "iterations",
                       "must be at most %" PRIu64 " on this daemon (--max-iterations)",
                       limits->max_iterations);
    if (params->method == METHOD_EXACT || params->method == METHOD_DIRECT)
        complaints_add(complaints, "method",
                       "%s is not available in this version; use sweeps or auto",
                       methods[params->method]);
    else
        params->method = METHOD_SWEEPS;
    if (params->scale == 0)
        complaints_add(complaints, "scale", "must not be 0");
}

static enum kiln_status plan(const void *raw, const struct input *input, enum format format,
                             struct plan *plan) {
    const struct jacobi_params *params = raw;
    struct planes planes;
    if (!planes_shape(input, sample_of(params), &planes))
        return KILN_JOB_TOO_LARGE;
    plan->result_bytes = planes_bound(&planes, format, depth_of(params),
                                      params->precision == PRECISION_FP64 ? 8 : 4);
    plan->cost = (double)planes.count * (double)params->iterations;
    return plan->result_bytes ? KILN_OK : KILN_JOB_TOO_LARGE;
}

/* Uploads b, sweeps and downloads X into `x->data` and what happened into `report`. */
static enum kiln_status compute(struct task *task, const struct planes *b, const struct planes *x,
                                struct jacobi_report *report) {
    const struct jacobi_params *params = task->params;
    const struct backend *backend = task->backend;
    struct stream *stream = task->stream;
    struct jacobi_args args = {
        .width = (int32_t)b->width,
        .height = (int32_t)b->height,
        .planes = (int32_t)b->channels,
        .fp64 = b->sample == SAMPLE_DOUBLE,
        .iterations = params->iterations,
        .tolerance = isnan(params->tolerance) ? 0 : params->tolerance,
    };
    enum kiln_status status = backend->phase(stream, PHASE_UPLOAD);
    if (status != KILN_OK)
        return status;
    args.b = backend->upload(stream, b->data, b->bytes);
    args.start = params->initial == INITIAL_LAPLACIAN ? args.b : NULL;
    if (!args.b)
        return KILN_NO_MEMORY;
    if ((status = backend->phase(stream, PHASE_KERNEL)) != KILN_OK)
        return status;
    args.x = backend->result(stream, x->data, x->bytes);
    args.report = backend->result(stream, report, sizeof *report);
    if (!args.x || !args.report)
        return KILN_NO_MEMORY;
    if ((status = backend->launch(stream, KERNEL_JACOBI, &args)) != KILN_OK ||
        (status = backend->phase(stream, PHASE_DOWNLOAD)) != KILN_OK ||
        (status = backend->download(stream, x->data, args.x, x->bytes)) != KILN_OK ||
        (status = backend->download(stream, report, args.report, sizeof *report)) != KILN_OK ||
        (status = backend->wait(stream)) != KILN_OK)
        return status;
    return backend->phase(stream, PHASE_ENCODE);
}

static double element(const struct planes *planes, uint64_t index) {
    return planes->sample == SAMPLE_DOUBLE ? ((const double *)planes->data)[index]
                                           : ((const float *)planes->data)[index];
}

/* What one more sweep would change at most, in double: how far X is from the fixed point. */
static double residual(const struct planes *b, const struct planes *x) {
    double largest = 0;
    uint64_t index = 0;
    for (uint32_t plane = 0; plane < x->channels; plane++) {
        for (uint32_t i = 0; i < x->height; i++) {
            for (uint32_t j = 0; j < x->width; j++, index++) {
                double up = i ? element(x, index - x->width) : 0;
                double down = i + 1 < x->height ? element(x, index + x->width) : 0;
                double left = j ? element(x, index - 1) : 0;
                double right = j + 1 < x->width ? element(x, index + 1) : 0;
                double next = ((up + down) + (left + right) - element(b, index)) * 0.25;
                largest = fmax(largest, fabs(next - element(x, index)));
            }
        }
    }
    return largest;
}

static void number_member(struct text *text, const char *name, double value) {
    text_format(text, ",\"%s\":", name);
    text_double(text, value);
}

static enum kiln_status summarize(struct task *task, const struct planes *b, const struct planes *x,
                                  const struct jacobi_report *report) {
    struct text text;
    double low = INFINITY, high = -INFINITY, sum = 0;
    for (uint64_t i = 0; i < x->count; i++) {
        double value = element(x, i);
        low = fmin(low, value);
        high = fmax(high, value);
        sum += value;
    }
    result_json_open(task, fields, &text);
    text_format(&text, ",\"width\":%" PRIu32 ",\"height\":%" PRIu32 ",\"channels\":%" PRIu32,
                x->width, x->height, x->channels);
    text_format(&text, ",\"sweeps\":%" PRId64, report->sweeps);
    number_member(&text, "residual", residual(b, x));
    number_member(&text, "min", low);
    number_member(&text, "max", high);
    number_member(&text, "mean", sum / (double)x->count);
    return result_json_close(task, &text);
}

static enum kiln_status run(struct task *task) {
    const struct jacobi_params *params = task->params;
    const struct quantization rule = {depth_of(params), 0, 1};
    struct planes b, x;
    enum kiln_status status =
        planes_decode(task, sample_of(params), params->offset, params->scale, &b);
    if (status != KILN_OK)
        return status;
    x = b;
    if ((status = planes_place(task, &x)) != KILN_OK)
        return status;
    struct jacobi_report *report = result_scratch(task, 1, sizeof *report);
    if (!report)
        return result_no_memory(task);
    if ((status = compute(task, &b, &x, report)) != KILN_OK)
        return result_error(task, status);
    if (task->format == FORMAT_JSON)
        return summarize(task, &b, &x, report);
    return planes_encode(task, fields, &x, &rule);
}

const struct job_type jacobi_job = {
    .name = "jacobi",
    .title = "An image from its Laplacian, by Jacobi sweeps of the discrete Poisson problem",
    .input = INPUT_IMAGE,
    .get = false,
    .fields = fields,
    .params_size = sizeof(struct jacobi_params),
    .formats = formats,
    .accepts = planes_accepts,
    .version = 1,
    .check = check,
    .plan = plan,
    .run = run,
    .canary_query = "iterations=16",
    .canary_format = FORMAT_NPY,
    .canary_input = planes_canary,
};
