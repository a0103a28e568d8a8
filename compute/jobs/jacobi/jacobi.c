/*
 * jacobi.c: an image from its Laplacian by Jacobi sweeps, each channel by itself, zero outside.
 *
 * B = scale * (pixel - offset) starts as X (or X starts at zero) and is swept `iterations` times,
 * or until a sweep changes nothing by more than `tolerance`. The same iterate comes in closed form
 * (exact), and so does the limit (direct); these take no time by the sweep. Pictures are X rounded
 * to 8 or 16 bit; arrays are X itself in the precision asked for. A picture from /v1/laplacian
 * says what its offset and scale are and what depth to come back to; what the request says wins.
 *
 * Threads: check and plan in the front, run on a worker's slot thread.
 */
#include "compute/jobs/planes.h"

#include "kernels/jacobi.h"
#include "kernels/spectral.h"

#include <inttypes.h>
#include <math.h>

#define AUTO_SWEEPS 256    /* more of them take longer than the closed form */
#define CLOSED_COST 256    /* of an element in closed form, in updates, about */
#define ITERATIONS  150000 /* of sweeps that are asked for without saying how many */

struct jacobi_params {
    int64_t iterations;
    double offset, scale, tolerance;
    int32_t method, precision, initial, bits, compression;
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
     .flags = FIELD_OPTIONAL,
     .min = 0,
     .max = 1e12,
     .unit = "sweeps",
     .help = "Number of Jacobi sweeps; 0 gives the start back. 150000 unless given, where the "
             "method needs it; direct has no use for it."},
    {.name = "method",
     .type = FIELD_ENUM,
     .flags = FIELD_OPTIONAL,
     .offset = AT(method),
     .choices = methods,
     .unit = "",
     .help =
         "sweeps: every sweep is computed. exact: the same iterate in closed form, by sine "
         "transforms. direct: what the sweeps converge to, the picture itself. auto: sweeps for "
         "few of them or with a tolerance, else exact. Unless given, sweeps where there are "
         "iterations or a tolerance, else direct; so does auto without either."},
    {.name = "precision",
     .type = FIELD_ENUM,
     .offset = AT(precision),
     .preset = "fp32",
     .choices = precisions,
     .unit = "",
     .help = "Floating-point type of the sweeps and of an NPY result; exact and direct always "
             "compute in fp64."},
    {.name = "offset",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .offset = AT(offset),
     .unit = "grey levels",
     .help = "Taken from every input pixel: B = scale * (pixel - offset). Unless given, what the "
             "PNG or PGM says of itself, as those of /v1/laplacian do; else 0."},
    {.name = "scale",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .offset = AT(scale),
     .unit = "",
     .help = "Factor on every input pixel after the offset; not 0. Unless given, what the PNG or "
             "PGM says of itself; else 1."},
    {.name = "initial",
     .type = FIELD_ENUM,
     .offset = AT(initial),
     .preset = "laplacian",
     .choices = initials,
     .unit = "",
     .help = "What X starts as: the Laplacian itself or zero. direct has no use for it."},
    {.name = "tolerance",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .offset = AT(tolerance),
     .min = 0,
     .max = INFINITY,
     .unit = "grey levels",
     .help = "Stops early once a sweep changes no element by more than this (looked at every 256 "
             "sweeps); for the methods sweeps and auto."},
    {.name = "bits",
     .type = FIELD_ENUM,
     .flags = FIELD_OPTIONAL,
     .offset = AT(bits),
     .choices = depths,
     .unit = "bits",
     .help = "Depth of PNG and PGM results; values are rounded and clamped. Unless given, that of "
             "the picture whose Laplacian it is, where the PNG or PGM says so; else 8."},
    RESULT_COMPRESSION(AT(compression)),
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

/* Rewrites auto, what is absent and what the method has no use for, so that equal results have
   equal names. */
static void method_settle(struct jacobi_params *params, const struct limits *limits,
                          struct complaints *complaints) {
    bool tolerant = !isnan(params->tolerance), counted = params->iterations != FIELD_ABSENT;
    if (!counted)
        params->iterations = ITERATIONS;
    if (!counted && !tolerant &&
        (params->method == FIELD_UNCHOSEN || params->method == METHOD_AUTO))
        params->method = METHOD_DIRECT;
    if (params->method == FIELD_UNCHOSEN)
        params->method = METHOD_SWEEPS;
    if (params->method == METHOD_AUTO)
        params->method =
            tolerant || params->iterations <= AUTO_SWEEPS ? METHOD_SWEEPS : METHOD_EXACT;
    if (params->method == METHOD_SWEEPS) {
        if ((uint64_t)params->iterations > limits->max_iterations &&
            !complaints_about(complaints, "iterations", "method", NULL))
            complaints_add(complaints, "iterations",
                           "must be at most %" PRIu64
                           " on this daemon (--max-iterations) with method=sweeps; "
                           "method=exact has no limit",
                           limits->max_iterations);
        return;
    }
    if (tolerant)
        complaints_add(complaints, "tolerance",
                       "is for sweeps: %s takes no time by the sweep that stopping early could "
                       "save; use sweeps or auto, or leave it out",
                       methods[params->method]);
    if (params->method == METHOD_DIRECT) {
        params->iterations = 0;
        params->initial = INITIAL_LAPLACIAN;
    }
}

/* What the request leaves open is what the picture says of itself. */
static void quantum_settle(struct jacobi_params *params, const struct quantum *quantum) {
    bool told = quantum->scale != 0;
    if (isnan(params->offset))
        params->offset = told ? quantum->offset : 0;
    if (isnan(params->scale))
        params->scale = told ? quantum->scale : 1;
    if (params->bits == FIELD_UNCHOSEN)
        params->bits = told && quantum->bits == 16;
}

static void check(void *raw, const struct input *input, const uint8_t *data, enum format format,
                  const struct limits *limits, struct complaints *complaints) {
    struct jacobi_params *params = raw;
    (void)data;
    planes_check(input, "image", limits, complaints);
    result_compression_settle(&params->compression, format);
    method_settle(params, limits, complaints);
    quantum_settle(params, &input->image.quantum);
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
    /* the Laplacian, the result, and two more to work in; closed forms work in fp64 */
    uint64_t work = params->method == METHOD_SWEEPS ? planes.bytes : planes.count * 8;
    plan->device_bytes = 2 * (uint64_t)planes.bytes + 2 * work;
    plan->cost = (double)planes.count *
                 (params->method == METHOD_SWEEPS ? (double)params->iterations : CLOSED_COST);
    plan->kernels = params->method == METHOD_SWEEPS ? KERNEL_BIT(JACOBI) : KERNEL_BIT(SPECTRAL);
    return plan->result_bytes ? KILN_OK : KILN_JOB_TOO_LARGE;
}

/* Enqueues the sweeps and the download of what they did. */
static enum kiln_status sweeps_launch(struct task *task, const struct planes *b, const void *device,
                                      void *x, struct jacobi_report *report) {
    const struct jacobi_params *params = task->params;
    struct jacobi_args args = {
        .width = (int32_t)b->width,
        .height = (int32_t)b->height,
        .planes = (int32_t)b->channels,
        .fp64 = b->sample == SAMPLE_DOUBLE,
        .iterations = params->iterations,
        .tolerance = isnan(params->tolerance) ? 0 : params->tolerance,
        .b = device,
        .start = params->initial == INITIAL_LAPLACIAN ? device : NULL,
        .x = x,
        .report = task->backend->result(task->stream, report, sizeof *report),
    };
    if (!args.report)
        return KILN_NO_MEMORY;
    enum kiln_status status = task->backend->launch(task->stream, KERNEL_JACOBI, &args);
    return status == KILN_OK
               ? task->backend->download(task->stream, report, args.report, sizeof *report)
               : status;
}

static enum kiln_status closed_launch(struct task *task, const struct planes *b, const void *device,
                                      void *x, struct jacobi_report *report) {
    const struct jacobi_params *params = task->params;
    struct spectral_args args = {
        .width = (int32_t)b->width,
        .height = (int32_t)b->height,
        .planes = (int32_t)b->channels,
        .fp64 = b->sample == SAMPLE_DOUBLE,
        .iterations = params->method == METHOD_DIRECT ? SPECTRAL_INFINITE : params->iterations,
        .start_zero = params->initial == INITIAL_ZERO,
        .b = device,
        .x = x,
    };
    *report = (struct jacobi_report){.sweeps = params->iterations, .residual = NAN};
    return task->backend->launch(task->stream, KERNEL_SPECTRAL, &args);
}

/* Uploads b, computes and downloads X into `x->data` and what happened into `report`. */
static enum kiln_status compute(struct task *task, const struct planes *b, const struct planes *x,
                                struct jacobi_report *report) {
    const struct jacobi_params *params = task->params;
    const struct backend *backend = task->backend;
    struct stream *stream = task->stream;
    enum kiln_status status = backend->phase(stream, PHASE_UPLOAD);
    if (status != KILN_OK)
        return status;
    const void *device = backend->upload(stream, b->data, b->bytes);
    if (!device)
        return KILN_NO_MEMORY;
    if ((status = backend->phase(stream, PHASE_KERNEL)) != KILN_OK)
        return status;
    void *result = backend->result(stream, x->data, x->bytes);
    if (!result)
        return KILN_NO_MEMORY;
    status = params->method == METHOD_SWEEPS ? sweeps_launch(task, b, device, result, report)
                                             : closed_launch(task, b, device, result, report);
    if (status != KILN_OK || (status = backend->phase(stream, PHASE_DOWNLOAD)) != KILN_OK ||
        (status = backend->download(stream, x->data, result, x->bytes)) != KILN_OK ||
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

/* What is left of the slowest mode after so many sweeps: the largest |L|^n (kernels/spectral.h). */
static double convergence(const struct planes *x, int32_t method, int64_t sweeps) {
    if (method == METHOD_DIRECT)
        return 0;
    double down = sin(M_PI / (2 * ((double)x->height + 1)));
    double across = sin(M_PI / (2 * ((double)x->width + 1)));
    double q = fmin(down * down + across * across, 1);
    return sweeps == 0 ? 1 : exp((double)sweeps * log1p(-q));
}

static void convergence_members(struct text *text, const struct planes *x, int32_t method,
                                int64_t sweeps) {
    double left = convergence(x, method, sweeps);
    number_member(text, "convergence", left);
    if (left > REMARK_CONVERGED)
        text_format(text,
                    ",\"note\":\"Not converged: after %" PRId64
                    " sweeps %.1f%% of the slowest mode "
                    "of the start is still there, so the result is not yet the picture that the "
                    "Laplacian belongs to. Ask for more iterations, or for method=direct, which "
                    "gives the limit.\"",
                    sweeps, 100 * left);
}

static enum kiln_status summarize(struct task *task, const struct planes *b, const struct planes *x,
                                  const struct jacobi_report *report) {
    const struct jacobi_params *params = task->params;
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
    convergence_members(&text, x, params->method, report->sweeps);
    number_member(&text, "min", low);
    number_member(&text, "max", high);
    number_member(&text, "mean", sum / (double)x->count);
    return result_json_close(task, &text);
}

static enum kiln_status run(struct task *task) {
    const struct jacobi_params *params = task->params;
    const struct quantization rule = {
        .depth = depth_of(params), .scale = 1, .compression = params->compression};
    struct planes b, x;
    enum kiln_status status =
        planes_decode(task, task->input, sample_of(params), params->offset, params->scale, &b);
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
    task->remarks.iterated = true;
    task->remarks.left = convergence(&x, params->method, report->sweeps);
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
    .version = 3,
    .check = check,
    .plan = plan,
    .run = run,
    .canary_query = "iterations=16",
    .canary_format = FORMAT_NPY,
    .canary_input = planes_canary,
};
