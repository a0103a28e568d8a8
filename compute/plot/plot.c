/*
 * plot.c: the layout of a plot.
 *
 * Everything is measured in the text's size, which follows the picture's: title, note and marker
 * label above the frame's curve, tick labels and titles outside it. Texts that do not fit shrink to
 * a readable size and are cut after that. The range leaves headroom for the marker's label, so that
 * it never lies on the curve. Runs on a slot thread of a worker.
 */
#include "compute/plot/plot.h"
#include "compute/plot/font.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define REGULAR 0.085
#define BOLD    0.115

static const struct color paper = {255, 255, 255}, ink = {27, 36, 48}, quiet = {92, 103, 119},
                          frame_line = {150, 160, 174}, grid_line = {228, 232, 238},
                          accent = {28, 103, 178};

size_t plot_bytes(uint32_t width, uint32_t height) {
    return ((raster_bytes(width, height) + 7) & ~(size_t)7) + plot_curve_bytes(width);
}

/* A text made to fit `room` pixels: smaller down to 7.5 pixels, then cut with dots. */
static struct font text_fit(char *out, const char *text, struct font font, double room) {
    snprintf(out, PLOT_TEXT_MAX, "%s", text ? text : "");
    double width = font_width(&font, out);
    if (width > room && font.size > 7.5)
        font.size = fmax(7.5, font.size * room / width);
    for (size_t length = strlen(out); length > 3 && font_width(&font, out) > room; length--)
        memcpy(out + length - 4, "...", 4);
    return font;
}

enum align { ALIGN_LEFT, ALIGN_MIDDLE, ALIGN_RIGHT };

static void text_put(struct raster *raster, struct font font, double x, double y, enum align align,
                     struct color color, const char *text) {
    double back = font_width(&font, text) * (int)align / 2;
    font_draw(raster, &font, x - (font.turned ? 0 : back), y + (font.turned ? back : 0), text);
    raster_paint(raster, color, 1);
}

/* The curve's ranges: [low x, high x] and the largest finite value. */
struct ranges {
    double low, high, top;
};

static struct ranges plot_ranges(const struct plot *plot) {
    struct ranges ranges = {0, 1, 0};
    for (uint64_t i = 0; i < plot->count; i++)
        if (isfinite(plot->y[i]) && plot->y[i] > ranges.top)
            ranges.top = plot->y[i];
    if (!(ranges.top > 1e-300))
        ranges.top = 1;
    if (ranges.top > 1e300)
        ranges.top = 1e300;
    if (plot->count) {
        uint64_t last = plot->count - 1;
        ranges.low = plot->x ? plot->x[0] : plot->x0;
        ranges.high = plot->x ? plot->x[last] : plot->x0 + (double)last * plot->dx;
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
        if ((label + 1.6 * font->size) * axis->count <= room)
            return;
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
    if (note[0])
        frame->top += 1.2 * em;
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

static void grid_draw(struct raster *raster, const struct plot_frame *frame, double line) {
    for (int i = 0; i < frame->y.count; i++) {
        double y = rint(plot_frame_y(frame, plot_axis_tick(&frame->y, i)));
        if (y < frame->bottom - 1)
            raster_box(raster, frame->left, y, frame->right, y + line);
    }
    for (int i = 0; i < frame->x.count; i++) {
        double x = rint(plot_frame_x(frame, plot_axis_tick(&frame->x, i)));
        raster_box(raster, x, frame->top, x + line, frame->bottom);
    }
    raster_paint(raster, grid_line, 1);
}

static void ticks_draw(struct raster *raster, const struct layout *layout,
                       const struct plot_frame *frame, double line) {
    double length = rint(layout->em * 0.4);
    char text[64];
    for (int i = 0; i < frame->x.count; i++) {
        double x = rint(plot_frame_x(frame, plot_axis_tick(&frame->x, i)));
        raster_box(raster, x, frame->bottom, x + line, frame->bottom + length);
        raster_paint(raster, frame_line, 1);
        plot_axis_label(&frame->x, i, text, sizeof text);
        double half = font_width(&layout->font, text) / 2;
        x = fmin(x, raster->width - half - 0.3 * layout->em);
        text_put(raster, layout->font, x, frame->bottom + 1.5 * layout->em, ALIGN_MIDDLE, quiet,
                 text);
    }
    for (int i = 0; i < frame->y.count; i++) {
        double y = rint(plot_frame_y(frame, plot_axis_tick(&frame->y, i)));
        plot_axis_label(&frame->y, i, text, sizeof text);
        text_put(raster, layout->font, frame->left - 0.7 * layout->em,
                 y + FONT_CAPITAL / 2 * layout->em, ALIGN_RIGHT, quiet, text);
    }
    raster_box(raster, frame->left, frame->bottom, frame->right, frame->bottom + line);
    raster_paint(raster, frame_line, 1);
}

static void titles_draw(const struct plot *plot, struct raster *raster, const struct layout *layout,
                        const struct plot_frame *frame) {
    char text[PLOT_TEXT_MAX], note[64];
    double em = layout->em, room = frame->right - frame->left;
    plot_axis_note(&frame->x, note, sizeof note);
    double taken = note[0] ? font_width(&layout->font, note) + em : 0;
    text_put(raster, layout->font, frame->right, plot->height - 1.2 * em, ALIGN_RIGHT, quiet, note);
    struct font font = text_fit(text, plot->x_title, layout->font, room - taken);
    double middle = (frame->left + frame->right) / 2, width = font_width(&font, text);
    middle = fmin(middle, frame->right - taken - width / 2);
    text_put(raster, font, middle, plot->height - 1.2 * em, ALIGN_MIDDLE, ink, text);
    plot_axis_note(&frame->y, note, sizeof note);
    text_put(raster, layout->font, frame->left, frame->top - 0.7 * em, ALIGN_LEFT, quiet, note);
    font = text_fit(text, plot->y_title, layout->font, frame->bottom - frame->top);
    font.turned = true;
    text_put(raster, font, 1.0 * em + FONT_CAPITAL * em, (frame->top + frame->bottom) / 2,
             ALIGN_MIDDLE, ink, text);
    font = text_fit(text, plot->title, layout->strong, room);
    text_put(raster, font, frame->left, 1.2 * em + FONT_CAPITAL * layout->strong.size, ALIGN_LEFT,
             ink, text);
}

/* The best point: a dashed line, a ring on the curve, and the label on the roomier side. */
static void mark_draw(const struct plot *plot, struct raster *raster, const struct layout *layout,
                      const struct plot_frame *frame, double line) {
    if (isnan(plot->mark_x) || isnan(plot->mark_y))
        return;
    char text[PLOT_TEXT_MAX];
    double em = layout->em, x = plot_frame_x(frame, plot->mark_x);
    double y = plot_frame_y(frame, plot->mark_y), width = line * 1.3;
    x = fmin(fmax(x, frame->left), frame->right);
    for (double at = frame->top; at < frame->bottom; at += 0.55 * em)
        raster_box(raster, x - width / 2, at, x + width / 2, fmin(at + 0.3 * em, frame->bottom));
    raster_paint(raster, ink, 0.55);
    raster_stroke(raster, x, y, x, y, 0.62 * em);
    raster_paint(raster, accent, 1);
    raster_stroke(raster, x, y, x, y, 0.3 * em);
    raster_paint(raster, paper, 1);
    bool right = frame->right - x >= x - frame->left;
    struct font font = {.size = em, .weight = BOLD};
    font = text_fit(text, plot->mark_label, font,
                    (right ? frame->right - x : x - frame->left) - 0.9 * em);
    text_put(raster, font, x + (right ? 0.6 : -0.6) * em, frame->top + 1.15 * em,
             right ? ALIGN_LEFT : ALIGN_RIGHT, ink, text);
}

void plot_draw(const struct plot *plot, void *memory, struct raster *raster) {
    struct layout layout;
    struct plot_frame frame;
    size_t picture = (raster_bytes(plot->width, plot->height) + 7) & ~(size_t)7;
    raster_init(raster, plot->width, plot->height, memory, paper);
    frame_choose(plot, &layout, &frame);
    double line = line_width(&layout);
    grid_draw(raster, &frame, line);
    if (!plot->message) {
        plot_curve_draw(plot, &frame, raster, accent, 0.11 * layout.em,
                        (uint8_t *)memory + picture);
        mark_draw(plot, raster, &layout, &frame, line);
    }
    ticks_draw(raster, &layout, &frame, line);
    titles_draw(plot, raster, &layout, &frame);
    if (plot->message) {
        char text[PLOT_TEXT_MAX];
        struct font font = text_fit(text, plot->message, layout.font, frame.right - frame.left);
        text_put(raster, font, (frame.left + frame.right) / 2, (frame.top + frame.bottom) / 2,
                 ALIGN_MIDDLE, quiet, text);
    }
}
