/*
 * plot.c: the layout of a plot.
 *
 * Everything is measured in the text's size, which follows the picture's: title, note and marker
 * label above the frame's curve, tick labels and titles outside it. Texts that do not fit shrink to
 * a readable size and are cut after that. The range leaves headroom for the marker's label, so that
 * it never lies on the curve. Runs on a slot thread of a worker.
 */
#include "compute/plot/plot.h"

#include "compute/plot/canvas.h"
#include "compute/plot/font.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define REGULAR 0.085
#define BOLD    0.115

size_t plot_bytes(uint32_t width, uint32_t height) {
    return ((raster_bytes(width, height) + 7) & ~(size_t)7) + plot_curve_bytes(width);
}

/* A text made to fit `room` pixels: smaller down to 7.5 pixels, then cut with dots. */
static struct font text_fit(char *out, const char *text, struct font font, double room) {
    snprintf(out, PLOT_TEXT_MAX, "%s", text != NULL ? text : "");
    double width = font_width(&font, out);
    if (width > room && font.size > 7.5) {
        font.size = fmax(7.5, font.size * room / width);
    }
    for (size_t length = strlen(out); length > 3 && font_width(&font, out) > room; length--) {
        memcpy(out + length - 4, "...", 4);
    }
    return font;
}

static void text_put(struct canvas *canvas, struct font font, double x, double y,
                     enum canvas_align align, enum canvas_ink ink, const char *text) {
    canvas->table->text(canvas, &font, x, y, align, ink, text);
}

static void box_put(struct canvas *canvas, double x0, double y0, double x1, double y1) {
    canvas->table->box(canvas, x0, y0, x1, y1);
}

static void paint(struct canvas *canvas, enum canvas_ink ink, double opacity) {
    canvas->table->paint(canvas, ink, opacity);
}

/* The curve's ranges: [low x, high x] and the largest finite value. */
struct ranges {
    double low, high, top;
};

static struct ranges plot_ranges(const struct plot *plot) {
    struct ranges ranges = {0, 1, 0};
    for (uint64_t i = 0; i < plot->count; i++) {
        if (isfinite(plot->y[i]) && plot->y[i] > ranges.top) {
            ranges.top = plot->y[i];
        }
    }
    if (!(ranges.top > 1e-300)) {
        ranges.top = 1;
    }
    if (ranges.top > 1e300) {
        ranges.top = 1e300;
    }
    if (plot->count) {
        uint64_t last = plot->count - 1;
        ranges.low = plot->x != NULL ? plot->x[0] : plot->x0;
        ranges.high = plot->x != NULL ? plot->x[last] : plot->x0 + (double)last * plot->dx;
    }
    double most = fmax(fabs(ranges.low), fabs(ranges.high));
    if (!(ranges.high - ranges.low > 1e-12 * most)) { /* a point is not a range */
        double half = most > 1e-300 ? 0.1 * most : 1;
        ranges.low -= half;
        ranges.high += half;
    }
    return ranges;
}

struct layout {
    struct font font;   /* tick labels and axis titles */
    struct font strong; /* title */
    double em;          /* font.size */
    double label_width; /* widest label of the vertical axis */
    double headroom;    /* pixels at the frame's top for the marker's label */
};

static double axis_labels_width(const struct plot_axis *axis, const struct font *font) {
    double widest = 0;
    char text[64];
    for (int i = 0; i < axis->count; i++) {
        plot_axis_label(axis, i, text, sizeof text);
        widest = fmax(widest, font_width(font, text));
    }
    return widest;
}

/* As many ticks as the labels leave room for. */
static void horizontal_axis(struct plot_axis *axis, const struct ranges *ranges,
                            const struct font *font, double room) {
    for (int most = 12; most >= 2; most--) {
        plot_axis_choose(axis, ranges->low, ranges->high, most);
        double label = axis_labels_width(axis, font);
        if ((label + 1.6 * font->size) * axis->count <= room) {
            return;
        }
    }
}

static void frame_choose(const struct plot *plot, struct layout *layout, struct plot_frame *frame) {
    double em = layout->em = fmax(9, fmin(plot->height / 38.0, plot->width / 64.0));
    layout->font = (struct font){.size = em, .weight = REGULAR};
    layout->strong = (struct font){.size = em * 1.25, .weight = BOLD};
    struct ranges ranges = plot_ranges(plot);
    char note[64];
    frame->top = 3.6 * em;
    frame->bottom = plot->height - 4.3 * em;
    layout->headroom = 2.2 * em;
    double inner = frame->bottom - frame->top;
    int most = (int)fmax(3, fmin(11, inner / (2.6 * em)));
    plot_axis_choose(&frame->y, 0, ranges.top * inner / (inner - layout->headroom), most);
    plot_axis_note(&frame->y, note, sizeof note);
    if (note[0]) {
        frame->top += 1.2 * em;
    }
    layout->label_width = axis_labels_width(&frame->y, &layout->font);
    frame->left = rint(1.0 * em + 1.2 * em + layout->label_width + 1.2 * em);
    frame->right = rint(plot->width - 1.8 * em);
    frame->top = rint(frame->top);
    frame->bottom = rint(frame->bottom);
    horizontal_axis(&frame->x, &ranges, &layout->font, frame->right - frame->left);
}

static double line_width(const struct layout *layout) {
    return fmax(1, rint(layout->em / 16));
}

static void grid_draw(struct canvas *canvas, const struct plot_frame *frame, double line) {
    for (int i = 0; i < frame->y.count; i++) {
        double y = rint(plot_frame_y(frame, plot_axis_tick(&frame->y, i)));
        if (y < frame->bottom - 1) {
            box_put(canvas, frame->left, y, frame->right, y + line);
        }
    }
    for (int i = 0; i < frame->x.count; i++) {
        double x = rint(plot_frame_x(frame, plot_axis_tick(&frame->x, i)));
        box_put(canvas, x, frame->top, x + line, frame->bottom);
    }
    paint(canvas, INK_GRID, 1);
}

static void ticks_draw(struct canvas *canvas, const struct layout *layout,
                       const struct plot_frame *frame, double line) {
    double length = rint(layout->em * 0.4);
    char text[64];
    for (int i = 0; i < frame->x.count; i++) {
        double x = rint(plot_frame_x(frame, plot_axis_tick(&frame->x, i)));
        box_put(canvas, x, frame->bottom, x + line, frame->bottom + length);
        paint(canvas, INK_FRAME, 1);
        plot_axis_label(&frame->x, i, text, sizeof text);
        double half = font_width(&layout->font, text) / 2;
        x = fmin(x, canvas->width - half - 0.3 * layout->em);
        text_put(canvas, layout->font, x, frame->bottom + 1.5 * layout->em, ALIGN_MIDDLE, INK_QUIET,
                 text);
    }
    for (int i = 0; i < frame->y.count; i++) {
        double y = rint(plot_frame_y(frame, plot_axis_tick(&frame->y, i)));
        plot_axis_label(&frame->y, i, text, sizeof text);
        text_put(canvas, layout->font, frame->left - 0.7 * layout->em,
                 y + FONT_CAPITAL / 2 * layout->em, ALIGN_RIGHT, INK_QUIET, text);
    }
    box_put(canvas, frame->left, frame->bottom, frame->right, frame->bottom + line);
    paint(canvas, INK_FRAME, 1);
}

static void titles_draw(const struct plot *plot, struct canvas *canvas, const struct layout *layout,
                        const struct plot_frame *frame) {
    char text[PLOT_TEXT_MAX], note[64];
    double em = layout->em, room = frame->right - frame->left;
    plot_axis_note(&frame->x, note, sizeof note);
    double taken = note[0] ? font_width(&layout->font, note) + em : 0;
    text_put(canvas, layout->font, frame->right, plot->height - 1.2 * em, ALIGN_RIGHT, INK_QUIET,
             note);
    struct font font = text_fit(text, plot->x_title, layout->font, room - taken);
    double middle = (frame->left + frame->right) / 2, width = font_width(&font, text);
    middle = fmin(middle, frame->right - taken - width / 2);
    text_put(canvas, font, middle, plot->height - 1.2 * em, ALIGN_MIDDLE, INK_TEXT, text);
    plot_axis_note(&frame->y, note, sizeof note);
    text_put(canvas, layout->font, frame->left, frame->top - 0.7 * em, ALIGN_LEFT, INK_QUIET, note);
    font = text_fit(text, plot->y_title, layout->font, frame->bottom - frame->top);
    font.turned = true;
    text_put(canvas, font, 1.0 * em + FONT_CAPITAL * em, (frame->top + frame->bottom) / 2,
             ALIGN_MIDDLE, INK_TEXT, text);
    font = text_fit(text, plot->title, layout->strong, room);
    text_put(canvas, font, frame->left, 1.2 * em + FONT_CAPITAL * layout->strong.size, ALIGN_LEFT,
             INK_TEXT, text);
}

/* The best point: a dashed line, a ring on the curve, and the label on the roomier side. */
static void mark_draw(const struct plot *plot, struct canvas *canvas, const struct layout *layout,
                      const struct plot_frame *frame, double line) {
    if (isnan(plot->mark_x) || isnan(plot->mark_y)) {
        return;
    }
    char text[PLOT_TEXT_MAX];
    double em = layout->em, x = plot_frame_x(frame, plot->mark_x);
    double y = plot_frame_y(frame, plot->mark_y), width = line * 1.3;
    x = fmin(fmax(x, frame->left), frame->right);
    for (double at = frame->top; at < frame->bottom; at += 0.55 * em) {
        box_put(canvas, x - width / 2, at, x + width / 2, fmin(at + 0.3 * em, frame->bottom));
    }
    paint(canvas, INK_TEXT, 0.55);
    canvas->table->disc(canvas, x, y, 0.62 * em);
    paint(canvas, INK_ACCENT, 1);
    canvas->table->disc(canvas, x, y, 0.3 * em);
    paint(canvas, INK_PAPER, 1);
    bool right = frame->right - x >= x - frame->left;
    struct font font = {.size = em, .weight = BOLD};
    font = text_fit(text, plot->mark_label, font,
                    (right ? frame->right - x : x - frame->left) - 0.9 * em);
    text_put(canvas, font, x + (right ? 0.6 : -0.6) * em, frame->top + 1.15 * em,
             right ? ALIGN_LEFT : ALIGN_RIGHT, INK_TEXT, text);
}

static void plot_lay(const struct plot *plot, struct canvas *canvas) {
    struct layout layout;
    struct plot_frame frame;
    frame_choose(plot, &layout, &frame);
    double line = line_width(&layout);
    grid_draw(canvas, &frame, line);
    if (plot->message == NULL) {
        canvas->table->curve(canvas, plot, &frame, 0.11 * layout.em);
        mark_draw(plot, canvas, &layout, &frame, line);
    }
    ticks_draw(canvas, &layout, &frame, line);
    titles_draw(plot, canvas, &layout, &frame);
    if (plot->message != NULL) {
        char text[PLOT_TEXT_MAX];
        struct font font = text_fit(text, plot->message, layout.font, frame.right - frame.left);
        text_put(canvas, font, (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2,
                 ALIGN_MIDDLE, INK_QUIET, text);
    }
}

void plot_draw(const struct plot *plot, void *memory, struct raster *raster) {
    struct canvas canvas;
    canvas_raster(&canvas, raster, plot->width, plot->height, memory);
    plot_lay(plot, &canvas);
}

void plot_svg(const struct plot *plot, const char *about, struct text *svg) {
    struct canvas canvas;
    canvas_svg_open(&canvas, svg, plot->width, plot->height, plot->title, about);
    plot_lay(plot, &canvas);
    canvas_svg_close(&canvas);
}
