/*
 * lombscargle_result.c: a periodogram as JSON, NPY, CSV or a plot, in pixels or SVG.
 *
 * Threads: a worker's slot thread.
 */
#include "compute/codecs/npy.h"
#include "compute/jobs/lombscargle/lombscargle.h"
#include "compute/jobs/result.h"
#include "compute/plot/plot.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define PEAK_MAX  256u /* one element of "peaks" */
#define CURVE_MAX 512u /* one of "series" without its arrays */

#define SVG_ESCAPE_MAX 5u /* bytes of a character of the parameters: &amp; */

uint64_t lombscargle_result_bound(const struct lombscargle_params *params, uint64_t nf,
                                  enum format format) {
    uint64_t bytes = 0, series = params->y.rows > 0 ? params->y.rows : 1;
    if (format == FORMAT_PNG) {
        return png_bound((uint32_t)params->plot_width, (uint32_t)params->plot_height, 3, 8);
    }
    if (format == FORMAT_SVG) {
        return CANONICAL_MAX * SVG_ESCAPE_MAX +
               plot_svg_bound((uint32_t)params->plot_width, (uint32_t)params->plot_height);
    }
    if (format == FORMAT_NPY) {
        return __builtin_mul_overflow(nf, (params->y.rows > 0 ? series : 2) * sizeof(double),
                                      &bytes) ||
                       __builtin_add_overflow(bytes, NPY_WRITE_MAX, &bytes)
                   ? 0
                   : bytes;
    }
    uint64_t columns = series + (format == FORMAT_CSV || params->frequency.count ? 1 : 0);
    if (format == FORMAT_JSON && params->fields == FIELDS_PEAKS) {
        columns = 0;
    }
    uint64_t rest = RESULT_JSON_MAX + series * (CURVE_MAX + (uint64_t)params->peaks * PEAK_MAX);
    if (__builtin_mul_overflow(nf, columns * RESULT_NUMBER_MAX, &bytes) ||
        __builtin_add_overflow(bytes, rest, &bytes)) {
        return 0;
    }
    return bytes;
}

static void number_member(struct text *text, const char *name, double value) {
    text_format(text, ",\"%s\":", name);
    text_double(text, value);
}

static void grid_write(struct text *text, const struct periodogram *p) {
    if (p->frequency != NULL) {
        return;
    }
    text_string(text, ",\"grid\":{\"f0\":");
    text_double(text, p->params->f0);
    number_member(text, "df", p->params->df);
    text_format(text, ",\"nf\":%" PRIu64 "}", p->nf);
}

static void array_write(struct task *task, struct text *text, const char *name,
                        const double *values, uint64_t count) {
    text_format(text, ",\"%s\":[", name);
    result_numbers(task, text, values, count);
    text_bytes(text, "]", 1);
}

static void peaks_write(struct text *text, const struct periodogram *p) {
    uint64_t count = p->params->peaks > 0 ? p->peak_count : 0;
    text_string(text, ",\"peaks\":[");
    for (uint64_t i = 0; i < count; i++) {
        const struct peak *peak = &p->peaks[i];
        text_string(text, i ? ",{\"frequency\":" : "{\"frequency\":");
        text_double(text, peak->frequency);
        number_member(text, "period", 1 / peak->frequency);
        number_member(text, "power", peak->power);
        text_format(text, ",\"index\":%" PRIu64, peak->index);
        number_member(text, "false_alarm_probability", lombscargle_alarm(p, peak->power));
        text_bytes(text, "}", 1);
    }
    text_bytes(text, "]", 1);
}

static double best_frequency(const struct periodogram *p) {
    return p->peak_count ? p->peaks[0].frequency : NAN;
}

/* What there is to say of one curve, after its `samples`. */
static void curve_write(struct task *task, struct text *text, const struct periodogram *p) {
    if (p->params->fields == FIELDS_ALL) {
        array_write(task, text, "power", p->power, p->nf);
    }
    peaks_write(text, p);
    number_member(text, "best_period", 1 / best_frequency(p));
    number_member(text, "best_frequency", best_frequency(p));
    if (p->note != NULL) {
        text_string(text, ",\"note\":");
        text_json_string(text, p->note, strlen(p->note));
    }
}

static void head_write(struct text *text, const char *before, const struct periodogram *p) {
    text_format(text, "%s\"samples\":%" PRIu64, before, p->n);
    number_member(text, "baseline", p->baseline);
}

/* The method that the sums were computed by, which `auto` left open. */
static void method_write(struct text *text, const struct periodogram *p) {
    const char *name = p->method == LOMBSCARGLE_METHOD_NUFFT    ? "\"nufft\""
                       : p->method == LOMBSCARGLE_METHOD_DIRECT ? "\"direct\""
                                                                : "null";
    text_format(text, ",\"method\":%s", name);
}

static void frequencies_write(struct task *task, struct text *text, const struct periodogram *p) {
    method_write(text, p);
    grid_write(text, p);
    if (p->params->fields == FIELDS_ALL && p->frequency != NULL) {
        array_write(task, text, "frequency", p->frequency, p->nf);
    }
}

static enum kiln_status json_write(struct task *task, const struct periodogram *p, uint64_t count) {
    struct text text;
    result_json_open(task, lombscargle_fields, &text);
    lombscargle_columns_write(&text, p->params);
    if (p->params->y.rows == 0) {
        head_write(&text, ",", p);
        frequencies_write(task, &text, p);
        curve_write(task, &text, p);
        return result_json_close(task, &text);
    }
    frequencies_write(task, &text, p);
    text_string(&text, ",\"series\":[");
    for (uint64_t i = 0; i < count; i++) {
        head_write(&text, i ? ",{" : "{", &p[i]);
        curve_write(task, &text, &p[i]);
        text_string(&text, "}");
    }
    text_string(&text, "]");
    return result_json_close(task, &text);
}

static void csv_number(struct text *text, double value) {
    if (isfinite(value)) {
        text_double(text, value);
    } else {
        text_string(text, isnan(value) ? "nan" : value > 0 ? "inf" : "-inf");
    }
}

static enum kiln_status csv_write(struct task *task, const struct periodogram *p, uint64_t count) {
    struct text text;
    text_init(&text, (char *)task->result, task->capacity);
    text_string(&text, "frequency");
    for (uint64_t k = 0; k < count; k++) {
        if (p->params->y.rows > 0) {
            text_format(&text, ",power_%" PRIu64, k);
        } else {
            text_string(&text, ",power");
        }
    }
    text_string(&text, "\n");
    for (uint64_t i = 0; i < p->nf; i++) {
        csv_number(&text, lombscargle_frequency(p, i));
        for (uint64_t k = 0; k < count; k++) {
            text_bytes(&text, ",", 1);
            csv_number(&text, p[k].power[i]);
        }
        text_bytes(&text, "\n", 1);
    }
    task->size = text.size;
    return text.full ? KILN_INTERNAL : KILN_OK;
}

/* The power's rows already lie in place, of several curves all that there is. */
static enum kiln_status npy_write(struct task *task, const struct periodogram *p, uint64_t count) {
    (void)task;
    (void)count;
    for (uint64_t i = 0; p->params->y.rows == 0 && i < p->nf; i++) {
        (p->power - p->nf)[i] = lombscargle_frequency(p, i);
    }
    return KILN_OK;
}

static const char *const y_titles[] = {"Power (standard)", "Power (model)", "Power (log)",
                                       "Power (psd)"};

struct plot_texts {
    char title[PLOT_TEXT_MAX], label[64];
};

static void titles_print(const struct periodogram *p, struct plot_texts *texts) {
    char *title = texts->title, *label = texts->label;
    const size_t title_size = sizeof texts->title, label_size = sizeof texts->label;
    double best = best_frequency(p);
    if (isnan(best)) {
        snprintf(title, title_size, "No period, %" PRIu64 " samples", p->n);
    } else if (best == 0) {
        snprintf(title, title_size, "Best frequency 0, %" PRIu64 " samples", p->n);
    } else {
        snprintf(title, title_size, "Best period %.6g (frequency %.6g), %" PRIu64 " samples",
                 1 / best, best, p->n);
    }
    snprintf(label, label_size, best > 0 ? "period %.6g" : "no period", 1 / best);
}

/* The plot of a curve; its texts are in `texts`. */
static struct plot plot_make(const struct periodogram *p, struct plot_texts *texts) {
    titles_print(p, texts);
    return (struct plot){
        .width = (uint32_t)p->params->plot_width,
        .height = (uint32_t)p->params->plot_height,
        .title = texts->title,
        .x_title = "Frequency (cycles per unit of time)",
        .y_title = y_titles[p->params->normalization],
        .message = p->note,
        .x0 = p->params->f0,
        .dx = p->params->df,
        .x = p->ascending_x,
        .y = p->ascending_power,
        .count = p->nf,
        .mark_x = best_frequency(p),
        .mark_y = p->peak_count ? p->peaks[0].power : NAN,
        .mark_label = texts->label,
    };
}

/* The check has seen to it that there is one curve. */
static enum kiln_status png_draw(struct task *task, const struct periodogram *p, uint64_t count) {
    (void)count;
    struct plot_texts texts;
    const struct plot plot = plot_make(p, &texts);
    void *memory = result_scratch(task, plot_bytes(plot.width, plot.height), 1);
    if (memory == NULL) {
        return result_no_memory(task);
    }
    struct raster raster;
    plot_draw(&plot, memory, &raster);
    const struct picture picture = {.width = plot.width,
                                    .height = plot.height,
                                    .channels = 3,
                                    .depth = 8,
                                    .pixels = raster.pixels};
    return result_picture(task, lombscargle_fields, &picture, p->params->compression);
}

/* The same as text; it tells the parameters as a PNG does. */
static enum kiln_status svg_write(struct task *task, const struct periodogram *p, uint64_t count) {
    (void)count;
    struct plot_texts texts;
    char canonical[CANONICAL_MAX];
    struct text about, svg;
    const struct plot plot = plot_make(p, &texts);
    text_init(&about, canonical, sizeof canonical);
    text_string(&about, "kiln:parameters ");
    fields_print_query(lombscargle_fields, task->params, &about);
    text_init(&svg, (char *)task->result, task->capacity);
    plot_svg(&plot, canonical, &svg);
    task->size = svg.size;
    return svg.full ? KILN_INTERNAL : KILN_OK;
}

enum kiln_status lombscargle_result_write(struct task *task, const struct periodogram *p,
                                          uint64_t count) {
    static enum kiln_status (*const writers[FORMAT_COUNT])(struct task *,
                                                           const struct periodogram *, uint64_t) = {
        [FORMAT_JSON] = json_write, [FORMAT_NPY] = npy_write, [FORMAT_CSV] = csv_write,
        [FORMAT_PNG] = png_draw,    [FORMAT_SVG] = svg_write,
    };
    if (task->format >= FORMAT_COUNT || writers[task->format] == NULL) {
        return KILN_INTERNAL;
    }
    return writers[task->format](task, p, count);
}
