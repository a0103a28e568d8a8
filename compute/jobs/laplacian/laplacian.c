/*
 * laplacian.c: the five-point Laplacian of an image, each channel by itself, zero outside.
 *
 * Integer images are computed and answered in int32, exactly; floating ones in double. As NPY the
 * result is value / scale + offset too, which leaves the integers with the defaults 1 and 0; other
 * values make it float64. As PNG or PGM it is rounded to 16 bit, around 32768 unless told
 * otherwise. Unless a scale is given it is the smallest power of two with which every value fits
 * (1 at least for integers, so that nothing is lost where nothing need be). The picture carries
 * offset, scale and the depth of its own picture along, and /v1/jacobi takes them from there.
 *
 * Threads: check and plan in the front, run on a worker's slot thread.
 */
#include "compute/jobs/planes.h"

#include "kernels/laplacian.h"

#include <math.h>
#include <stdio.h>

#define EXACT_MAX ((1 << 28) - 1) /* four neighbours and four times the middle fit in int32 */
#define MIDDLE    32768.0         /* default offset of 16-bit pictures */
#define TOP       65535.0
#define ROOM      1020.0 /* on both sides of the offset: the Laplacian of 8-bit pictures needs it */

struct laplacian_params {
    double offset, scale;
    int32_t compression;
};

#define AT(member) offsetof(struct laplacian_params, member)

static const struct field fields[] = {
    {.name = "offset",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .offset = AT(offset),
     .unit = "grey levels",
     .help = "Added to the result: value / scale + offset. 32768 for PNG and PGM, 0 for NPY unless "
             "given."},
    {.name = "scale",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL,
     .offset = AT(scale),
     .unit = "",
     .help = "The Laplacian is divided by this; not 0. Unless given 1 for NPY, and for PNG and PGM "
             "the smallest power of two with which every value fits (1 for 8-bit images)."},
    RESULT_COMPRESSION(AT(compression)),
    {.name = "image",
     .type = FIELD_BLOB,
     .flags = FIELD_OPTIONAL,
     .unit = "",
     .help = "The image as base64 text (PNG, PGM, PPM, PAM or NPY), instead of a body of its own."},
    {.name = NULL},
};

static const enum format formats[] = {FORMAT_NPY, FORMAT_PNG, FORMAT_PGM, FORMAT_NONE};

static bool floating(const struct input *input) {
    return input->image.depth == 0;
}

static enum sample result_sample(const struct laplacian_params *params, const struct input *input) {
    bool plain = params->scale == 1 && params->offset == 0;
    return floating(input) || !plain ? SAMPLE_DOUBLE : SAMPLE_INT32;
}

static void check(void *raw, const struct input *input, const uint8_t *data, enum format format,
                  const struct limits *limits, struct complaints *complaints) {
    struct laplacian_params *params = raw;
    (void)data;
    planes_check(input, "image", limits, complaints);
    result_compression_settle(&params->compression, format);
    if (params->scale == 0) {
        complaints_add(complaints, "scale", "must not be 0");
    }
    if (isnan(params->offset)) {
        params->offset = format == FORMAT_NPY ? 0 : MIDDLE;
    }
    bool room = params->offset >= ROOM && params->offset <= TOP - ROOM;
    if (isnan(params->scale) && (format == FORMAT_NPY || input->image.depth == 8 || !room)) {
        params->scale = 1; /* else it is the values' to say */
    }
}

static enum kiln_status plan(const void *raw, const struct input *input, enum format format,
                             struct plan *plan) {
    const struct laplacian_params *params = raw;
    struct planes planes;
    if (!planes_shape(input, SAMPLE_DOUBLE, &planes)) {
        return KILN_JOB_TOO_LARGE;
    }
    size_t element = result_sample(params, input) == SAMPLE_INT32 ? 4 : 8;
    plan->result_bytes = planes_bound(&planes, format, 16, element);
    plan->device_bytes = planes.bytes + planes.count * 8; /* integers widen at most to that */
    plan->cost = (double)planes.count;
    plan->kernels = KERNEL_BIT(LAPLACIAN);
    return plan->result_bytes ? KILN_OK : KILN_JOB_TOO_LARGE;
}

static const struct work_variant variants[] = {
    /* job; decoded byte, element, encoded byte */
    {"all", {5e-5, 8e-9, 1e-9, 3e-9, 1e-12, 1e-12}},
    {NULL},
};

static void estimate(const void *raw, const struct input *input, const uint8_t *data,
                     enum format format, bool closely, struct work *work) {
    const struct laplacian_params *params = raw;
    struct planes planes = {0};
    (void)data;
    (void)closely;
    *work = (struct work){.ways = 1};
    planes_shape(input, SAMPLE_DOUBLE, &planes);
    planes_steps(input, &planes, format, params->compression, format == FORMAT_NPY ? 4 : 2,
                 work->way[0].steps);
}

/* The kernel's sums must not overflow: wide integers are looked through first. */
static enum kiln_status exact_check(struct task *task, const struct planes *planes) {
    if (planes->sample != SAMPLE_INT32 || task->input->image.depth <= 16) {
        return KILN_OK;
    }
    const int32_t *values = planes->data;
    for (uint64_t i = 0; i < planes->count; i++) {
        if (values[i] < -EXACT_MAX || values[i] > EXACT_MAX) {
            snprintf(task->detail, sizeof task->detail,
                     "integer samples must lie from %d to %d; send larger ones as float64",
                     -EXACT_MAX, EXACT_MAX);
            return KILN_MALFORMED;
        }
    }
    return KILN_OK;
}

/* Uploads x, runs the kernel and downloads its result into `b->data`. */
static enum kiln_status compute(struct task *task, const struct planes *x, const struct planes *b) {
    const struct backend *backend = task->backend;
    struct stream *stream = task->stream;
    struct laplacian_args args = {
        .width = (int32_t)x->width,
        .height = (int32_t)x->height,
        .planes = (int32_t)x->channels,
        .real = x->sample == SAMPLE_DOUBLE,
    };
    enum kiln_status status = backend->phase(stream, PHASE_UPLOAD);
    if (status != KILN_OK) {
        return status;
    }
    args.x = backend->upload(stream, x->data, x->bytes);
    if (args.x == NULL) {
        return KILN_NO_MEMORY;
    }
    if ((status = backend->phase(stream, PHASE_KERNEL)) != KILN_OK) {
        return status;
    }
    args.b = backend->result(stream, b->data, b->bytes);
    if (args.b == NULL) {
        return KILN_NO_MEMORY;
    }
    if ((status = backend->launch(stream, KERNEL_LAPLACIAN, &args)) != KILN_OK ||
        (status = backend->phase(stream, PHASE_DOWNLOAD)) != KILN_OK ||
        (status = backend->download(stream, b->data, args.b, b->bytes)) != KILN_OK ||
        (status = backend->wait(stream)) != KILN_OK) {
        return status;
    }
    return backend->phase(stream, PHASE_ENCODE);
}

/* NPY with an offset or a scale: value / scale + offset in double. Integers widen into new memory.
 */
static enum kiln_status rescale(struct task *task, const struct laplacian_params *params,
                                struct planes *b) {
    struct planes wide = *b;
    if (b->sample == SAMPLE_INT32) {
        wide.sample = SAMPLE_DOUBLE;
        wide.bytes = b->count * sizeof(double);
        enum kiln_status status = planes_place(task, &wide);
        if (status != KILN_OK) {
            return status;
        }
    }
    double *out = wide.data;
    for (uint64_t i = 0; i < b->count; i++) {
        double value = b->sample == SAMPLE_INT32 ? ((const int32_t *)b->data)[i]
                                                 : ((const double *)b->data)[i];
        out[i] = value / params->scale + params->offset;
    }
    *b = wide;
    return KILN_OK;
}

static bool fits(double value, double offset, double scale) {
    double pixel = value / scale + offset;
    return pixel >= -0.5 && pixel < TOP + 0.5;
}

/* The smallest power of two with which all of b fits around an offset that has room. */
static double scale_choose(const struct planes *b, double offset) {
    double low, high;
    int exponent;
    planes_range(b, &low, &high);
    double most = fmax(-low, high);
    if (most == 0) {
        return 1;
    }
    frexp(most / TOP, &exponent); /* a power of two or two below what is needed */
    exponent = exponent > -1000 ? exponent - 1 : -1000;
    if (b->sample == SAMPLE_INT32 && exponent < 0) {
        exponent = 0;
    }
    while (!fits(low, offset, ldexp(1, exponent)) || !fits(high, offset, ldexp(1, exponent))) {
        exponent++;
    }
    return ldexp(1, exponent);
}

/* Rounds to a picture, which tells the parameters that it was made with. */
static enum kiln_status picture_encode(struct task *task, const struct planes *b) {
    struct laplacian_params params = *(const struct laplacian_params *)task->params;
    const void *given = task->params;
    uint32_t depth = task->input->image.depth;
    if (isnan(params.scale)) {
        params.scale = scale_choose(b, params.offset);
    }
    const struct quantization rule = {.depth = 16,
                                      .offset = params.offset,
                                      .scale = params.scale,
                                      .compression = params.compression,
                                      .bits = depth == 8 || depth == 16 ? depth : 0,
                                      .told = true};
    task->params = &params;
    enum kiln_status status = planes_encode(task, fields, b, &rule);
    task->params = given;
    return status;
}

static enum kiln_status run(struct task *task) {
    const struct laplacian_params *params = task->params;
    enum sample sample = floating(task->input) ? SAMPLE_DOUBLE : SAMPLE_INT32;
    bool array = task->format == FORMAT_NPY;
    bool widen = array && result_sample(params, task->input) != sample;
    struct planes x, b;
    enum kiln_status status = planes_decode(task, task->input, sample, 0, 1, &x);
    if (status != KILN_OK || (status = exact_check(task, &x)) != KILN_OK) {
        return status;
    }
    b = x;
    if (widen) {
        b.data = result_scratch(task, b.bytes, 1);
    } else if ((status = planes_place(task, &b)) != KILN_OK) {
        return status;
    }
    if (b.data == NULL) {
        return result_no_memory(task);
    }
    if ((status = compute(task, &x, &b)) != KILN_OK) {
        return result_error(task, status);
    }
    if (array && (params->scale != 1 || params->offset != 0) &&
        (status = rescale(task, params, &b)) != KILN_OK) {
        return status;
    }
    return array ? planes_encode(task, fields, &b, NULL) : picture_encode(task, &b);
}

const struct job_type laplacian_job = {
    .name = "laplacian",
    .title = "The Laplacian of an image, the input that /v1/jacobi turns back into the image",
    .input = INPUT_IMAGE,
    .get = false,
    .fields = fields,
    .params_size = sizeof(struct laplacian_params),
    .formats = formats,
    .accepts = planes_accepts,
    .version = 2,
    .portable = true,
    .check = check,
    .plan = plan,
    .variants = variants,
    .estimate = estimate,
    .run = run,
    .canary_query = "scale=1",
    .canary_format = FORMAT_NPY,
    .canary_input = planes_canary,
};
