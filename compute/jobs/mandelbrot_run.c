/*
 * mandelbrot_run.c: computes pictures, arrays and statistics of the Mandelbrot set.
 *
 * Coordinates are those of sample centres, row 0 at ymax. A picture goes through two kernels on the
 * device (escape counts, then colours): indices into the colormap where every pixel is one sample's
 * colour, else RGB. Indices are encoded there as well, if the device can, and only the file's bytes
 * come back; else the pixels do. An array is downloaded straight behind its header.
 *
 * Threads: a worker's slot thread.
 */
#include "compute/jobs/mandelbrot.h"

#include "compute/colormap.h"
#include "compute/jobs/result.h"
#include "kernels/colorize.h"
#include "kernels/mandelbrot.h"

#include <inttypes.h>
#include <math.h>

/* Samples `fine` to a pixel's side, with `apron` more on every side of the picture. */
static struct mandelbrot_args sample_args(const struct mandelbrot_params *params, int64_t fine,
                                          int64_t apron) {
    double dx = mandelbrot_spacing(params->xmin, params->xmax, params->width * fine);
    double dy = mandelbrot_spacing(params->ymin, params->ymax, params->height * fine);
    return (struct mandelbrot_args){
        .width = (int32_t)(params->width * fine + 2 * apron),
        .height = (int32_t)(params->height * fine + 2 * apron),
        .x0 = params->xmin + (0.5 - (double)apron) * dx,
        .y0 = params->ymax - (0.5 - (double)apron) * dy,
        .dx = dx,
        .dy = -dy,
        .max_iter = params->max_iter,
        .escape_radius = params->escape_radius,
        .fp64 = params->precision == MANDELBROT_FP64,
        .continuous = params->smooth,
    };
}

/* Does every pixel have a colour of the colormap itself? */
static bool is_indexed(const struct mandelbrot_params *params) {
    return params->supersample == 1 && !params->shade;
}

static struct colorize_args colour_args(const struct mandelbrot_params *params, int64_t apron) {
    return (struct colorize_args){
        .width = (int32_t)params->width,
        .height = (int32_t)params->height,
        .supersample = (int32_t)params->supersample,
        .apron = (int32_t)apron,
        .limit = (double)params->max_iter,
        .gamma = params->gamma,
        .shade = params->shade,
        .indexed = is_indexed(params),
        .azimuth = params->azimuth,
        .altitude = params->altitude,
        .vert_exag = params->vert_exag,
    };
}

/* Both kernels. `host`: where the pixels will be downloaded to, or NULL; they are at `pixels` on
   the device. */
static enum kiln_status render(struct task *task, const uint8_t *lut, uint8_t *host, size_t bytes,
                               uint8_t **pixels) {
    const struct mandelbrot_params *params = task->params;
    const struct backend *backend = task->backend;
    struct stream *stream = task->stream;
    int64_t apron = params->shade ? 1 : 0;
    struct mandelbrot_args samples = sample_args(params, params->supersample, apron);
    struct colorize_args colours = colour_args(params, apron);
    enum kiln_status status = backend->phase(stream, PHASE_UPLOAD);
    if (status != KILN_OK)
        return status;
    colours.lut = backend->upload(stream, lut, COLORMAP_BYTES);
    if (!colours.lut)
        return KILN_NO_MEMORY;
    if ((status = backend->phase(stream, PHASE_KERNEL)) != KILN_OK)
        return status;
    samples.smooth =
        backend->reserve(stream, sizeof(float) * (size_t)samples.width * (size_t)samples.height);
    colours.field = samples.smooth;
    colours.rgb = *pixels =
        host ? backend->result(stream, host, bytes) : backend->reserve(stream, bytes);
    if (!samples.smooth || !colours.rgb)
        return KILN_NO_MEMORY;
    status = backend->launch(stream, KERNEL_MANDELBROT, &samples);
    return status == KILN_OK ? backend->launch(stream, KERNEL_COLORIZE, &colours) : status;
}

static enum kiln_status fetch(struct task *task, uint8_t *host, const uint8_t *pixels,
                              size_t bytes) {
    const struct backend *backend = task->backend;
    struct stream *stream = task->stream;
    enum kiln_status status = backend->phase(stream, PHASE_DOWNLOAD);
    if (status != KILN_OK || (status = backend->download(stream, host, pixels, bytes)) != KILN_OK ||
        (status = backend->wait(stream)) != KILN_OK)
        return status;
    return backend->phase(stream, PHASE_ENCODE);
}

static enum kiln_status run_picture(struct task *task) {
    const struct mandelbrot_params *params = task->params;
    bool indexed = is_indexed(params);
    uint64_t bytes = (uint64_t)params->width * (uint64_t)params->height * (indexed ? 1 : 3);
    uint8_t *lut = result_scratch(task, COLORMAP_BYTES, 1), *host = NULL, *pixels = NULL;
    struct picture picture = {
        .width = (uint32_t)params->width,
        .height = (uint32_t)params->height,
        .channels = indexed ? 1 : 3,
        .depth = 8,
        .palette = indexed ? lut : NULL,
    };
    bool offered = result_png_offered(task, &picture, params->compression);
    if (!offered)
        host = result_scratch(task, bytes, 1);
    if (!lut || (!offered && !host))
        return result_no_memory(task);
    colormap_fill(params->colormap, lut);
    enum kiln_status status = render(task, lut, host, bytes, &pixels);
    if (status == KILN_OK && !offered)
        status = fetch(task, host, pixels, bytes);
    if (status != KILN_OK)
        return result_error(task, status);
    picture.pixels = offered ? pixels : host;
    return offered ? result_png(task, mandelbrot_fields, &picture)
                   : result_picture(task, mandelbrot_fields, &picture, params->compression);
}

/* One value a pixel, counts or smooth values, into `out`. */
static enum kiln_status evaluate(struct task *task, bool counts, void *out, size_t bytes) {
    const struct backend *backend = task->backend;
    struct stream *stream = task->stream;
    struct mandelbrot_args args = sample_args(task->params, 1, 0);
    enum kiln_status status = backend->phase(stream, PHASE_KERNEL);
    if (status != KILN_OK)
        return status;
    void *values = backend->result(stream, out, bytes);
    if (!values)
        return KILN_NO_MEMORY;
    if (counts)
        args.count = values;
    else
        args.smooth = values;
    if ((status = backend->launch(stream, KERNEL_MANDELBROT, &args)) != KILN_OK ||
        (status = backend->phase(stream, PHASE_DOWNLOAD)) != KILN_OK ||
        (status = backend->download(stream, out, values, bytes)) != KILN_OK ||
        (status = backend->wait(stream)) != KILN_OK)
        return status;
    return backend->phase(stream, PHASE_ENCODE);
}

static enum kiln_status run_array(struct task *task) {
    const struct mandelbrot_params *params = task->params;
    const uint64_t shape[] = {(uint64_t)params->height, (uint64_t)params->width};
    bool counts = params->field == MANDELBROT_COUNT;
    uint64_t bytes = shape[0] * shape[1] * 4;
    void *data = result_array(task, counts ? "<i4" : "<f4", shape, 2, bytes);
    if (!data)
        return KILN_INTERNAL;
    return result_error(task, evaluate(task, counts, data, bytes));
}

static void count_member(struct text *text, const char *name, uint64_t value) {
    text_format(text, ",\"%s\":%" PRIu64, name, value);
}

static void summarize(struct text *text, const struct mandelbrot_params *params,
                      const int32_t *counts, uint64_t pixels) {
    uint64_t escaped = 0, sum = 0;
    int32_t low = INT32_MAX, high = 0;
    for (uint64_t i = 0; i < pixels; i++) {
        if (counts[i] < 0)
            continue;
        escaped++;
        sum += (uint64_t)counts[i];
        low = counts[i] < low ? counts[i] : low;
        high = counts[i] > high ? counts[i] : high;
    }
    count_member(text, "width", (uint64_t)params->width);
    count_member(text, "height", (uint64_t)params->height);
    text_format(text, ",\"precision\":\"%s\"",
                params->precision == MANDELBROT_FP64 ? "fp64" : "fp32");
    count_member(text, "inside", pixels - escaped);
    count_member(text, "escaped", escaped);
    text_string(text, ",\"count_min\":");
    text_double(text, escaped ? low : NAN);
    text_string(text, ",\"count_max\":");
    text_double(text, escaped ? high : NAN);
    text_string(text, ",\"count_mean\":");
    text_double(text, (double)sum / (double)escaped);
    count_member(text, "iterations", sum + (pixels - escaped) * (uint64_t)params->max_iter);
}

static enum kiln_status run_summary(struct task *task) {
    const struct mandelbrot_params *params = task->params;
    uint64_t pixels = (uint64_t)params->width * (uint64_t)params->height;
    int32_t *counts = result_scratch(task, pixels, sizeof *counts);
    struct text text;
    if (!counts)
        return result_no_memory(task);
    enum kiln_status status = evaluate(task, true, counts, pixels * sizeof *counts);
    if (status != KILN_OK)
        return result_error(task, status);
    result_json_open(task, mandelbrot_fields, &text);
    summarize(&text, params, counts, pixels);
    return result_json_close(task, &text);
}

enum kiln_status mandelbrot_run(struct task *task) {
    static enum kiln_status (*const runs[FORMAT_COUNT])(struct task *) = {
        [FORMAT_PNG] = run_picture,
        [FORMAT_NPY] = run_array,
        [FORMAT_RAW] = run_array,
        [FORMAT_JSON] = run_summary,
    };
    return runs[task->format] ? runs[task->format](task) : KILN_UNSUPPORTED;
}
