/*
 * mandelbrot_run.c: computes pictures, arrays and statistics of the Mandelbrot set.
 *
 * Coordinates are those of sample centres, row 0 at ymax. A picture goes through two kernels on the
 * device (escape counts, then colours): indices into the colormap where every pixel is one sample's
 * colour, else RGB. Indices are encoded there as well, if the device can, and only the file's bytes
 * come back; else the pixels do. An array is downloaded straight behind its header. A group of
 * small pictures or arrays goes the same way as one that is as many times as high.
 *
 * Threads: a worker's slot thread.
 */
#include "compute/jobs/mandelbrot/mandelbrot.h"

#include "compute/jobs/result.h"
#include "compute/plot/colormap.h"
#include "kernels/colorize.h"
#include "kernels/mandelbrot.h"

#include <inttypes.h>
#include <math.h>

static struct mandelbrot_view view_of(const struct mandelbrot_params *params, int64_t fine,
                                      int64_t apron) {
    double dx = mandelbrot_spacing(params->xmin, params->xmax, params->width * fine);
    double dy = mandelbrot_spacing(params->ymin, params->ymax, params->height * fine);
    return (struct mandelbrot_view){
        .x0 = params->xmin + (0.5 - (double)apron) * dx,
        .y0 = params->ymax - (0.5 - (double)apron) * dy,
        .dx = dx,
        .dy = -dy,
    };
}

/* Samples `fine` to a pixel's side, with `apron` more on every side of each picture. */
static struct mandelbrot_args sample_args(const struct task *tasks, size_t count, int64_t fine,
                                          int64_t apron) {
    const struct mandelbrot_params *params = tasks->params;
    struct mandelbrot_args args = {
        .width = (int32_t)(params->width * fine + 2 * apron),
        .height = (int32_t)(params->height * fine + 2 * apron),
        .views = (int32_t)count,
        .max_iter = params->max_iter,
        .escape_radius = params->escape_radius,
        .fp64 = params->precision == MANDELBROT_FP64,
        .continuous = params->smooth,
    };
    for (size_t i = 0; i < count; i++) {
        args.view[i] = view_of(tasks[i].params, fine, apron);
    }
    return args;
}

/* Does every pixel have a colour of the colormap itself? */
static bool is_indexed(const struct mandelbrot_params *params) {
    return params->supersample == 1 && !params->shade;
}

/* Pictures of indices, one below the other, are coloured as one. */
static struct colorize_args colour_args(const struct mandelbrot_params *params, size_t count,
                                        int64_t apron) {
    return (struct colorize_args){
        .width = (int32_t)params->width,
        .height = (int32_t)(params->height * (int64_t)count),
        .supersample = (int32_t)params->supersample,
        .apron = (int32_t)apron,
        .vmin = params->vmin,
        .vmax = isnan(params->vmax) ? (double)params->max_iter : params->vmax,
        .gamma = params->gamma,
        .shade = params->shade,
        .indexed = is_indexed(params),
        .azimuth = params->azimuth,
        .altitude = params->altitude,
        .vert_exag = params->vert_exag,
    };
}

/* Both kernels. `host`: where the pixels will be downloaded to, or NULL; they are at `pixels` on
   the device, `bytes` of them. */
static enum kiln_status render(struct task *tasks, size_t count, const uint8_t *lut, uint8_t *host,
                               size_t bytes, uint8_t **pixels) {
    const struct mandelbrot_params *params = tasks->params;
    const struct backend *backend = tasks->backend;
    struct stream *stream = tasks->stream;
    int64_t apron = params->shade ? 1 : 0;
    struct mandelbrot_args samples = sample_args(tasks, count, params->supersample, apron);
    struct colorize_args colours = colour_args(params, count, apron);
    enum kiln_status status = backend->phase(stream, PHASE_UPLOAD);
    if (status != KILN_OK) {
        return status;
    }
    colours.lut = backend->upload(stream, lut, COLORMAP_BYTES);
    if (colours.lut == NULL) {
        return KILN_NO_MEMORY;
    }
    if ((status = backend->phase(stream, PHASE_KERNEL)) != KILN_OK) {
        return status;
    }
    samples.smooth = backend->reserve(stream, sizeof(float) * count * (size_t)samples.width *
                                                  (size_t)samples.height);
    colours.field = samples.smooth;
    colours.rgb = *pixels =
        host != NULL ? backend->result(stream, host, bytes) : backend->reserve(stream, bytes);
    if (samples.smooth == NULL || colours.rgb == NULL) {
        return KILN_NO_MEMORY;
    }
    status = backend->launch(stream, KERNEL_MANDELBROT, &samples);
    return status == KILN_OK ? backend->launch(stream, KERNEL_COLORIZE, &colours) : status;
}

static enum kiln_status fetch(struct task *task, uint8_t *host, const uint8_t *pixels,
                              size_t bytes) {
    const struct backend *backend = task->backend;
    struct stream *stream = task->stream;
    enum kiln_status status = backend->phase(stream, PHASE_DOWNLOAD);
    if (status != KILN_OK || (status = backend->download(stream, host, pixels, bytes)) != KILN_OK ||
        (status = backend->wait(stream)) != KILN_OK) {
        return status;
    }
    return backend->phase(stream, PHASE_ENCODE);
}

/* Pictures that the device encodes itself. */
static enum kiln_status run_indices(struct task *tasks, size_t count, struct picture *picture,
                                    const uint8_t *lut) {
    uint8_t *pixels = NULL;
    uint64_t bytes = count * (uint64_t)picture->width * picture->height;
    enum kiln_status status = render(tasks, count, lut, NULL, bytes, &pixels);
    if (status != KILN_OK) {
        return result_error(tasks, status);
    }
    picture->pixels = pixels;
    return result_pngs(tasks, count, mandelbrot_fields, picture);
}

/* One that the host encodes. */
static enum kiln_status run_pixels(struct task *task, struct picture *picture, const uint8_t *lut) {
    const struct mandelbrot_params *params = task->params;
    uint64_t bytes = (uint64_t)picture->width * picture->height * picture->channels;
    uint8_t *host = result_scratch(task, bytes, 1), *pixels = NULL;
    if (host == NULL) {
        return result_no_memory(task);
    }
    enum kiln_status status = render(task, 1, lut, host, bytes, &pixels);
    if (status == KILN_OK) {
        status = fetch(task, host, pixels, bytes);
    }
    if (status != KILN_OK) {
        return result_error(task, status);
    }
    picture->pixels = host;
    return result_picture(task, mandelbrot_fields, picture, params->compression);
}

static enum kiln_status run_pictures(struct task *tasks, size_t count) {
    const struct mandelbrot_params *params = tasks->params;
    bool indexed = is_indexed(params);
    uint8_t *lut = result_scratch(tasks, COLORMAP_BYTES, 1);
    struct picture picture = {
        .width = (uint32_t)params->width,
        .height = (uint32_t)params->height,
        .channels = indexed ? 1 : 3,
        .depth = 8,
        .palette = indexed ? lut : NULL,
    };
    if (lut == NULL) {
        return result_no_memory(tasks);
    }
    colormap_fill(params->colormap, lut);
    bool offered = true;
    for (size_t i = 0; i < count; i++) {
        offered = offered && result_png_offered(&tasks[i], &picture, params->compression);
    }
    if (offered) {
        return run_indices(tasks, count, &picture, lut);
    }
    return count == 1 ? run_pixels(tasks, &picture, lut) : KILN_UNSUPPORTED;
}

/* One value a pixel of each task, counts or smooth values, to `out` of each. */
static enum kiln_status evaluate(struct task *tasks, size_t count, bool counts, void *const *out,
                                 size_t bytes) {
    const struct backend *backend = tasks->backend;
    struct stream *stream = tasks->stream;
    struct mandelbrot_args args = sample_args(tasks, count, 1, 0);
    enum kiln_status status = backend->phase(stream, PHASE_KERNEL);
    if (status != KILN_OK) {
        return status;
    }
    uint8_t *values = count == 1 ? backend->result(stream, out[0], bytes)
                                 : backend->reserve(stream, count * bytes);
    if (values == NULL) {
        return KILN_NO_MEMORY;
    }
    if (counts) {
        args.count = (int32_t *)(void *)values;
    } else {
        args.smooth = (float *)(void *)values;
    }
    if ((status = backend->launch(stream, KERNEL_MANDELBROT, &args)) != KILN_OK ||
        (status = backend->phase(stream, PHASE_DOWNLOAD)) != KILN_OK) {
        return status;
    }
    for (size_t i = 0; status == KILN_OK && i < count; i++) {
        status = backend->download(stream, out[i], values + i * bytes, bytes);
    }
    if (status != KILN_OK || (status = backend->wait(stream)) != KILN_OK) {
        return status;
    }
    return backend->phase(stream, PHASE_ENCODE);
}

static enum kiln_status run_arrays(struct task *tasks, size_t count) {
    const struct mandelbrot_params *params = tasks->params;
    const uint64_t shape[] = {(uint64_t)params->height, (uint64_t)params->width};
    bool counts = params->field == MANDELBROT_COUNT;
    uint64_t bytes = shape[0] * shape[1] * 4;
    void *data[GROUP_MAX];
    for (size_t i = 0; i < count; i++) {
        if ((data[i] = result_array(&tasks[i], counts ? "<i4" : "<f4", shape, 2, bytes)) == NULL) {
            return KILN_INTERNAL;
        }
    }
    return result_error(tasks, evaluate(tasks, count, counts, data, bytes));
}

static void count_member(struct text *text, const char *name, uint64_t value) {
    text_format(text, ",\"%s\":%" PRIu64, name, value);
}

static void summarize(struct text *text, const struct mandelbrot_params *params,
                      const int32_t *counts, uint64_t pixels) {
    uint64_t escaped = 0, sum = 0;
    int32_t low = INT32_MAX, high = 0;
    for (uint64_t i = 0; i < pixels; i++) {
        if (counts[i] < 0) {
            continue;
        }
        escaped++;
        sum += (uint64_t)counts[i];
        low = counts[i] < low ? counts[i] : low;
        high = counts[i] > high ? counts[i] : high;
    }
    count_member(text, "width", (uint64_t)params->width);
    count_member(text, "height", (uint64_t)params->height);
    text_format(text, ",\"precision\":\"%s\"",
                params->precision == MANDELBROT_FP64 ? "fp64" : "fp32");
    text_string(text, ",\"ulps\":");
    text_double(text, mandelbrot_ulps(params, params->precision));
    text_format(text, ",\"limited\":%s", mandelbrot_limited(params) ? "true" : "false");
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

static enum kiln_status run_summary(struct task *task, size_t count) {
    const struct mandelbrot_params *params = task->params;
    uint64_t pixels = (uint64_t)params->width * (uint64_t)params->height;
    int32_t *counts = result_scratch(task, pixels, sizeof *counts);
    struct text text;
    if (count > 1) {
        return KILN_UNSUPPORTED;
    }
    if (counts == NULL) {
        return result_no_memory(task);
    }
    void *const out[] = {counts};
    enum kiln_status status = evaluate(task, 1, true, out, pixels * sizeof *counts);
    if (status != KILN_OK) {
        return result_error(task, status);
    }
    result_json_open(task, mandelbrot_fields, &text);
    summarize(&text, params, counts, pixels);
    return result_json_close(task, &text);
}

enum kiln_status mandelbrot_run_group(struct task *tasks, size_t count) {
    static enum kiln_status (*const runs[FORMAT_COUNT])(struct task *, size_t) = {
        [FORMAT_PNG] = run_pictures,
        [FORMAT_NPY] = run_arrays,
        [FORMAT_RAW] = run_arrays,
        [FORMAT_JSON] = run_summary,
    };
    return runs[tasks->format] != NULL ? runs[tasks->format](tasks, count) : KILN_UNSUPPORTED;
}

enum kiln_status mandelbrot_run(struct task *task) {
    return mandelbrot_run_group(task, 1);
}
