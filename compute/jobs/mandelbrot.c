/*
 * mandelbrot.c: the Mandelbrot set as a kind of job: its parameters, what they may be, what they
 * cost.
 *
 * Threads: the front. The worker's side is mandelbrot_run.c.
 */
#include "compute/jobs/mandelbrot.h"

#include "compute/codecs/npy.h"
#include "compute/colormap.h"
#include "compute/jobs/result.h"

#include <inttypes.h>
#include <math.h>

#define AT(member) offsetof(struct mandelbrot_params, member)

/* What is gathered: a picture that leaves most of a GPU idle for at most about a millisecond. */
#define SMALL_PIXELS (512 * 512)
#define SMALL_COST   0x1p31

#define SINGLE_REACH 0x1p-17 /* fp32 where the pixel spacing exceeds this part of the extent */

static const char *const precisions[] = {"auto", "fp32", "fp64", NULL};
static const char *const array_fields[] = {"smooth", "count", NULL};

const struct field mandelbrot_fields[] = {
    {.name = "width",
     .type = FIELD_INT,
     .offset = AT(width),
     .min = 1,
     .max = 65536,
     .preset = "1500",
     .unit = "pixels",
     .help = "Width of the picture or array."},
    {.name = "height",
     .type = FIELD_INT,
     .offset = AT(height),
     .min = 1,
     .max = 65536,
     .preset = "1250",
     .unit = "pixels",
     .help = "Height of the picture or array."},
    {.name = "xmin",
     .type = FIELD_REAL,
     .offset = AT(xmin),
     .preset = "-2.25",
     .unit = "",
     .help = "Real part of c at the left edge; a decimal string is allowed."},
    {.name = "xmax",
     .type = FIELD_REAL,
     .offset = AT(xmax),
     .preset = "0.75",
     .unit = "",
     .help = "Real part of c at the right edge, above xmin."},
    {.name = "ymin",
     .type = FIELD_REAL,
     .offset = AT(ymin),
     .preset = "-1.25",
     .unit = "",
     .help = "Imaginary part of c at the lower edge."},
    {.name = "ymax",
     .type = FIELD_REAL,
     .offset = AT(ymax),
     .preset = "1.25",
     .unit = "",
     .help = "Imaginary part of c at the upper edge, above ymin."},
    {.name = "max_iter",
     .type = FIELD_INT,
     .offset = AT(max_iter),
     .min = 1,
     .max = INT32_MAX,
     .preset = "400",
     .unit = "iterations",
     .help = "Points that have not escaped after so many iterations count as inside."},
    {.name = "escape_radius",
     .type = FIELD_REAL,
     .offset = AT(escape_radius),
     .min = 2,
     .max = 1e9,
     .preset = "1024",
     .unit = "",
     .help =
         "A point has escaped once |z| exceeds this; a large one makes smooth values smoother."},
    {.name = "precision",
     .type = FIELD_ENUM,
     .offset = AT(precision),
     .preset = "auto",
     .choices = precisions,
     .unit = "",
     .help =
         "Floating-point type of the iteration; auto takes fp32 where the pixels are far enough "
         "apart."},
    {.name = "smooth",
     .type = FIELD_BOOL,
     .offset = AT(smooth),
     .preset = "true",
     .unit = "",
     .help = "Continuous escape values; false draws and returns the counts."},
    {.name = "field",
     .type = FIELD_ENUM,
     .offset = AT(field),
     .preset = "smooth",
     .choices = array_fields,
     .unit = "",
     .help =
         "What NPY and RAW results hold: smooth (float32) or count (int32); -1 inside in both."},
    {.name = "colormap",
     .type = FIELD_ENUM,
     .offset = AT(colormap),
     .preset = "hot",
     .choices = colormap_names,
     .unit = "",
     .help = "Matplotlib's name of the colormap; _r reverses it."},
    {.name = "gamma",
     .type = FIELD_REAL,
     .flags = FIELD_ABOVE_MIN,
     .offset = AT(gamma),
     .min = 0,
     .max = 10,
     .preset = "0.3",
     .unit = "",
     .help = "Exponent on value / max_iter before it is coloured."},
    {.name = "shade",
     .type = FIELD_BOOL,
     .offset = AT(shade),
     .preset = "false",
     .unit = "",
     .help = "Hill shading: the escape values are lit as a landscape."},
    {.name = "azimuth",
     .type = FIELD_REAL,
     .offset = AT(azimuth),
     .min = 0,
     .max = 360,
     .preset = "315",
     .unit = "degrees",
     .help = "Direction that the light comes from, clockwise from north; with shade."},
    {.name = "altitude",
     .type = FIELD_REAL,
     .offset = AT(altitude),
     .min = 0,
     .max = 90,
     .preset = "10",
     .unit = "degrees",
     .help = "Height of the light above the horizon; with shade."},
    {.name = "vert_exag",
     .type = FIELD_REAL,
     .flags = FIELD_ABOVE_MIN,
     .offset = AT(vert_exag),
     .min = 0,
     .max = 1e6,
     .preset = "1.5",
     .unit = "",
     .help = "Factor on the height of the landscape; with shade."},
    {.name = "supersample",
     .type = FIELD_INT,
     .offset = AT(supersample),
     .min = 1,
     .max = 8,
     .preset = "1",
     .unit = "samples",
     .help = "Samples along each side of a pixel, averaged; pictures only."},
    RESULT_COMPRESSION(AT(compression)),
    {.name = NULL},
};

static const enum format formats[] = {FORMAT_PNG, FORMAT_NPY, FORMAT_JSON, FORMAT_RAW, FORMAT_NONE};

static double extent_of(const struct mandelbrot_params *params) {
    return fmax(fmax(fabs(params->xmin), fabs(params->xmax)),
                fmax(fabs(params->ymin), fabs(params->ymax)));
}

/* Samples lie inside the edges: the doubles there are no further apart than just below the outer.
 */
static bool axis_resolvable(double low, double high, int64_t samples) {
    double outer = fmax(fabs(low), fabs(high));
    return mandelbrot_spacing(low, high, samples) >= outer - nextafter(outer, 0);
}

bool mandelbrot_resolvable(const struct mandelbrot_params *params) {
    int64_t across = params->supersample * params->width;
    int64_t down = params->supersample * params->height;
    return axis_resolvable(params->xmin, params->xmax, across) &&
           axis_resolvable(params->ymin, params->ymax, down);
}

static void axis_check(const char *low_name, double low, const char *high_name, double high,
                       int64_t samples, struct complaints *complaints) {
    if (!(high > low))
        complaints_add(complaints, high_name, "must be greater than %s", low_name);
    else if (!isfinite(high - low))
        complaints_add(complaints, high_name, "is too far from %s", low_name);
    else if (!axis_resolvable(low, high, samples))
        complaints_add(complaints, high_name,
                       "is too near to %s: neighbouring samples are equal in double precision",
                       low_name);
}

static void choose_precision(struct mandelbrot_params *params) {
    double extent = params->extent > 0 ? params->extent : extent_of(params);
    double step = fmin(mandelbrot_spacing(params->xmin, params->xmax, params->width),
                       mandelbrot_spacing(params->ymin, params->ymax, params->height));
    params->precision = step > SINGLE_REACH * extent ? MANDELBROT_FP32 : MANDELBROT_FP64;
}

/* Samples along a pixel's side in this format. */
static int64_t oversampling(const struct mandelbrot_params *params, enum format format) {
    return format == FORMAT_PNG ? params->supersample : 1;
}

static uint64_t result_bound(const struct mandelbrot_params *params, enum format format) {
    uint64_t pixels = (uint64_t)params->width * (uint64_t)params->height;
    return format == FORMAT_PNG ? png_bound((uint32_t)params->width, (uint32_t)params->height, 3, 8)
           : format == FORMAT_JSON ? RESULT_JSON_MAX
                                   : pixels * 4 + NPY_WRITE_MAX;
}

static void check(void *raw, const struct input *input, const uint8_t *data, enum format format,
                  const struct limits *limits, struct complaints *complaints) {
    struct mandelbrot_params *params = raw;
    (void)input;
    (void)data;
    int64_t fine = oversampling(params, format);
    uint64_t samples = (uint64_t)params->width * (uint64_t)params->height * (uint64_t)(fine * fine);
    uint64_t bytes = result_bound(params, format);
    bool vast = bytes == 0 || bytes > limits->arena; /* 0: past all numbers */
    if (samples > limits->max_pixels)
        complaints_add(complaints, "width",
                       "width × height%s is %" PRIu64 "; this daemon allows %" PRIu64
                       " (--max-pixels)%s",
                       fine > 1 ? " × supersample²" : "", samples, limits->max_pixels,
                       vast ? "; so large a result needs a larger --arena too" : "");
    if ((uint64_t)params->max_iter > limits->max_iterations)
        complaints_add(complaints, "max_iter",
                       "must be at most %" PRIu64 " on this daemon (--max-iterations)",
                       limits->max_iterations);
    axis_check("xmin", params->xmin, "xmax", params->xmax, params->width * fine, complaints);
    axis_check("ymin", params->ymin, "ymax", params->ymax, params->height * fine, complaints);
    if (params->precision == MANDELBROT_AUTO)
        choose_precision(params);
    result_compression_settle(&params->compression, format);
}

static enum kiln_status plan(const void *raw, const struct input *input, enum format format,
                             struct plan *plan) {
    const struct mandelbrot_params *params = raw;
    (void)input;
    uint64_t pixels = (uint64_t)params->width * (uint64_t)params->height;
    int64_t fine = oversampling(params, format);
    plan->result_bytes = result_bound(params, format);
    uint64_t samples = format == FORMAT_PNG ? pixels * (uint64_t)(fine * fine) : pixels;
    plan->device_bytes = samples * 4 + (format == FORMAT_PNG ? pixels * 3 : 0);
    plan->cost = (double)pixels * (double)(fine * fine) * (double)params->max_iter;
    return plan->result_bytes ? KILN_OK : KILN_JOB_TOO_LARGE;
}

/* Alike in everything but where they lie. */
static bool alike(const struct job *one, const struct job *other) {
    const struct mandelbrot_params *a = (const void *)one->params, *b = (const void *)other->params;
    return a->width == b->width && a->height == b->height && a->max_iter == b->max_iter &&
           a->width * a->height <= SMALL_PIXELS && one->plan.cost <= SMALL_COST &&
           a->escape_radius == b->escape_radius && a->precision == b->precision &&
           a->smooth == b->smooth && a->field == b->field && a->colormap == b->colormap &&
           a->gamma == b->gamma && a->supersample == 1 && b->supersample == 1 && !a->shade &&
           !b->shade && a->compression == COMPRESSION_FAST && b->compression == COMPRESSION_FAST &&
           one->format != FORMAT_JSON;
}

const struct job_type mandelbrot_job = {
    .name = "mandelbrot",
    .title = "The Mandelbrot set as a picture, an array of escape values, or statistics",
    .input = INPUT_NONE,
    .get = true,
    .fields = mandelbrot_fields,
    .params_size = sizeof(struct mandelbrot_params),
    .formats = formats,
    .paths = mandelbrot_paths,
    .version = 3,
    .check = check,
    .plan = plan,
    .run = mandelbrot_run,
    .alike = alike,
    .run_group = mandelbrot_run_group,
    .canary_query = "width=96&height=64&max_iter=64&shade=true",
    .canary_format = FORMAT_PNG,
};
