/*
 * mandelbrot.c: the Mandelbrot set as a kind of job: its parameters, what they may be, what they
 * cost.
 *
 * Threads: the front. The worker's side is mandelbrot_run.c.
 */
#include "compute/jobs/mandelbrot/mandelbrot.h"

#include "compute/codecs/npy.h"
#include "compute/jobs/result.h"
#include "compute/plot/colormap.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#define AT(member) offsetof(struct mandelbrot_params, member)

/* What is gathered: a picture that leaves most of a GPU idle for at most about a millisecond. */
#define SMALL_PIXELS (512 * 512)
#define SMALL_COST   0x1p31

#define RADIUS_MAX    0x1p40 /* that of Matplotlib's showcase */
#define RADIUS_SINGLE 0x1p31 /* in fp32, where |z|² reaches the radius's fourth power */
#define REACH_SINGLE  0x1p62 /* of coordinates in fp32: their squares are taken */

/* Units in the last place between neighbouring pixels below which the counts of chaotic views are
   often not those of exact arithmetic (docs/api.md has the measured shares). */
#define ULPS_LIMITED 1024
#define ULPS_MAX     999999999999999.0 /* of the header: a structured field's largest integer */

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
     .max = RADIUS_MAX,
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
     .help = "Floating-point type of the iteration; auto takes fp32 where that does not limit the "
             "counts."},
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
     .help = "Exponent on (value - vmin) / (vmax - vmin) before it is coloured."},
    {.name = "vmin",
     .type = FIELD_REAL,
     .offset = AT(vmin),
     .min = 0,
     .max = 1e10,
     .preset = "0",
     .unit = "iterations",
     .help = "Escape value of the colormap's first colour; smaller ones have it too."},
    {.name = "vmax",
     .type = FIELD_REAL,
     .flags = FIELD_OPTIONAL | FIELD_ABOVE_MIN,
     .offset = AT(vmax),
     .min = 0,
     .max = 1e10,
     .unit = "iterations",
     .help = "Escape value of the last colour, max_iter if not given; one that stays keeps a "
             "picture's brightness whatever max_iter is."},
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

/* Largest coordinate: of the view, or of all tiles, so that neighbours are treated alike. */
static double extent_of(const struct mandelbrot_params *params) {
    if (params->extent > 0)
        return params->extent;
    return fmax(fmax(fabs(params->xmin), fabs(params->xmax)),
                fmax(fabs(params->ymin), fabs(params->ymax)));
}

/* Unit in the last place of numbers as large as x, not below the type's least number. */
static double ulp_of(double x, int precision) {
    int exponent, digits = precision == MANDELBROT_FP32 ? 24 : 53;
    double least = precision == MANDELBROT_FP32 ? 0x1p-149 : 0x1p-1074;
    frexp(x, &exponent);
    return x == 0 ? least : fmax(ldexp(1, exponent - digits), least);
}

double mandelbrot_ulps(const struct mandelbrot_params *params, int precision) {
    double step = fmin(mandelbrot_spacing(params->xmin, params->xmax, params->width),
                       mandelbrot_spacing(params->ymin, params->ymax, params->height));
    return step / ulp_of(extent_of(params), precision);
}

bool mandelbrot_limited(const struct mandelbrot_params *params) {
    return mandelbrot_ulps(params, params->precision) < ULPS_LIMITED;
}

/* Of one axis: samples lie inside the edges, where numbers are no further apart than just below
   the outer one. */
static double axis_ulp(double low, double high, int precision) {
    double outer = fmax(fabs(low), fabs(high));
    return ulp_of(nextafter(outer, 0), precision);
}

static bool axis_resolvable(double low, double high, int64_t samples, int precision) {
    return mandelbrot_spacing(low, high, samples) >= axis_ulp(low, high, precision);
}

static bool view_resolvable(const struct mandelbrot_params *params, int64_t fine, int precision) {
    return axis_resolvable(params->xmin, params->xmax, params->width * fine, precision) &&
           axis_resolvable(params->ymin, params->ymax, params->height * fine, precision);
}

bool mandelbrot_resolvable(const struct mandelbrot_params *params) {
    return view_resolvable(params, params->supersample, MANDELBROT_FP64);
}

static void axis_check(const char *low_name, double low, const char *high_name, double high,
                       int64_t samples, struct complaints *complaints) {
    double least = (double)samples * axis_ulp(low, high, MANDELBROT_FP64);
    if (high < low)
        complaints_add(complaints, high_name, "must be greater than %s", low_name);
    else if (!isfinite(high - low))
        complaints_add(complaints, high_name, "is too far from %s", low_name);
    else if (high == low || !axis_resolvable(low, high, samples, MANDELBROT_FP64))
        complaints_add(
            complaints, high_name,
            "must be greater than %s by at least %.2g here, so that double precision can "
            "tell %" PRId64 " samples apart; it is by %.2g",
            low_name, least, samples, high - low);
}

static void choose_precision(struct mandelbrot_params *params) {
    bool single = mandelbrot_ulps(params, MANDELBROT_FP32) >= ULPS_LIMITED &&
                  params->escape_radius <= RADIUS_SINGLE && extent_of(params) <= REACH_SINGLE;
    params->precision = single ? MANDELBROT_FP32 : MANDELBROT_FP64;
}

/* What was asked for in fp32 that it cannot give. */
static void single_check(const struct mandelbrot_params *params, int64_t fine,
                         struct complaints *complaints) {
    if (params->escape_radius > RADIUS_SINGLE)
        complaints_add(complaints, "precision",
                       "fp32 ends at an escape_radius of %.0f; fp64 or auto can take this one",
                       RADIUS_SINGLE);
    if (!view_resolvable(params, fine, MANDELBROT_FP32))
        complaints_add(complaints, "precision",
                       "fp32 cannot tell neighbouring samples apart here; fp64 or auto can");
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
    bool width = !complaints_about(complaints, "width", "supersample", NULL);
    bool height = !complaints_about(complaints, "height", "supersample", NULL);
    bool across = !complaints_about(complaints, "xmin", "xmax", NULL);
    bool down = !complaints_about(complaints, "ymin", "ymax", NULL);
    bool count = !complaints_about(complaints, "max_iter", NULL);
    bool colours = !complaints_about(complaints, "vmin", "vmax", NULL);
    if (width && height && samples > limits->max_pixels)
        complaints_add(complaints, "width",
                       "width × height%s is %" PRIu64 "; this daemon allows %" PRIu64
                       " (--max-pixels)%s",
                       fine > 1 ? " × supersample²" : "", samples, limits->max_pixels,
                       vast ? "; so large a result needs a larger --arena too" : "");
    if (count && (uint64_t)params->max_iter > limits->max_iterations)
        complaints_add(complaints, "max_iter",
                       "must be at most %" PRIu64 " on this daemon (--max-iterations)",
                       limits->max_iterations);
    if (across)
        axis_check("xmin", params->xmin, "xmax", params->xmax, width ? params->width * fine : 1,
                   complaints);
    if (down)
        axis_check("ymin", params->ymin, "ymax", params->ymax, height ? params->height * fine : 1,
                   complaints);
    if (colours && (isnan(params->vmax) ? count && params->vmin >= params->max_iter
                                        : params->vmax <= params->vmin))
        complaints_add(complaints, "vmin", "must be less than %s",
                       isnan(params->vmax) ? "max_iter, which is vmax unless that is given"
                                           : "vmax");
    if (complaints->count == 0 && params->precision == MANDELBROT_FP32)
        single_check(params, fine, complaints);
    if (params->precision == MANDELBROT_AUTO)
        choose_precision(params);
    result_compression_settle(&params->compression, format);
}

/* Value of the header Kiln-Precision, a structured field (RFC 8941). */
static void tell_precision(const void *raw, char *text, size_t size) {
    const struct mandelbrot_params *params = raw;
    double ulps = fmin(mandelbrot_ulps(params, params->precision), ULPS_MAX);
    snprintf(text, size, "%s;ulps=%.*f%s", params->precision == MANDELBROT_FP32 ? "fp32" : "fp64",
             ulps < 10000 ? 1 : 0, ulps, mandelbrot_limited(params) ? ";limited" : "");
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
    plan->kernels = KERNEL_BIT(MANDELBROT) | (format == FORMAT_PNG ? KERNEL_BIT(COLORIZE) : 0);
    return plan->result_bytes ? KILN_OK : KILN_JOB_TOO_LARGE;
}

/* Alike in everything but where they lie. */
static bool alike(const struct job *one, const struct job *other) {
    const struct mandelbrot_params *a = (const void *)one->params, *b = (const void *)other->params;
    return a->width == b->width && a->height == b->height && a->max_iter == b->max_iter &&
           a->width * a->height <= SMALL_PIXELS && one->plan.cost <= SMALL_COST &&
           a->escape_radius == b->escape_radius && a->precision == b->precision &&
           a->smooth == b->smooth && a->field == b->field && a->colormap == b->colormap &&
           a->gamma == b->gamma && a->vmin == b->vmin &&
           (a->vmax == b->vmax || (isnan(a->vmax) && isnan(b->vmax))) && a->supersample == 1 &&
           b->supersample == 1 && !a->shade && !b->shade && a->compression == COMPRESSION_FAST &&
           b->compression == COMPRESSION_FAST && one->format != FORMAT_JSON;
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
    .version = 4,
    .portable = true,
    .precision = tell_precision,
    .check = check,
    .plan = plan,
    .run = mandelbrot_run,
    .alike = alike,
    .run_group = mandelbrot_run_group,
    .canary_query = "width=96&height=64&max_iter=64&shade=true",
    .canary_format = FORMAT_PNG,
};
