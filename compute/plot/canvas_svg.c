/*
 * canvas_svg.c: a plot as SVG: text is text, lines are lines, in the light or dark of the viewer.
 *
 * Colours stand as attributes and, for a dark ground, in a style that programs without media
 * queries leave out. Nothing is linked, scripted or taken from outside. A curve of many points is
 * told by the first, lowest, highest and last of each strip (STRIPS a pixel), which draw what all
 * of them would, so that the size depends on the picture and not on the points. Runs on a slot
 * thread of a worker.
 */
#include "compute/plot/canvas.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define STRIPS        2
#define COORDINATE    1e6 /* pixels; nothing lies farther outside */
#define POINTS_MARKED 12  /* columns a point, from which on single points get a disc */
#define TINT          0.10

const struct color canvas_dark[INK_COUNT] = {
    [INK_PAPER] = {20, 25, 32},   [INK_TEXT] = {230, 235, 241}, [INK_QUIET] = {156, 167, 182},
    [INK_FRAME] = {96, 107, 123}, [INK_GRID] = {42, 50, 61},    [INK_ACCENT] = {96, 165, 235},
};

static const char *const names[INK_COUNT] = {
    [INK_PAPER] = "paper", [INK_TEXT] = "text", [INK_QUIET] = "quiet",
    [INK_FRAME] = "frame", [INK_GRID] = "grid", [INK_ACCENT] = "accent",
};

/* Head, texts and ticks; dashes of the marker; strips of the curve and of the area below it. */
size_t plot_svg_bound(uint32_t width, uint32_t height) {
    return 65536 + (size_t)height * 16 + (size_t)width * STRIPS * 160;
}

static void color_put(struct text *svg, const struct color *color) {
    text_format(svg, "#%02x%02x%02x", color->red, color->green, color->blue);
}

/* `before`, then a coordinate in hundredths of a pixel without zeros at its end. */
static void number_put(struct text *svg, const char *before, double value) {
    char digits[32];
    value = fmax(-COORDINATE, fmin(COORDINATE, value));
    int size = snprintf(digits, sizeof digits, "%.2f", value);
    while (size > 0 && digits[size - 1] == '0') {
        size--;
    }
    size -= size > 0 && digits[size - 1] == '.' ? 1 : 0;
    text_string(svg, before);
    text_bytes(svg, digits, (size_t)size);
}

static void superscript_put(struct text *svg, char c) {
    static const char *const digits[] = {"⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"};
    text_string(svg, c >= '0' && c <= '9' ? digits[c - '0'] : c == '-' ? "⁻" : "");
}

/* A text of font.h as characters of XML. */
static void string_put(struct text *svg, const char *string) {
    bool raised = false;
    for (; *string != '\0'; string++) {
        if (*string == FONT_RAISE[0] || *string == FONT_LOWER[0]) {
            raised = *string == FONT_RAISE[0];
        } else if (raised) {
            superscript_put(svg, *string);
        } else if (*string == FONT_TIMES[0]) {
            text_string(svg, "×");
        } else if (*string == '<' || *string == '>' || *string == '&') {
            text_string(svg, *string == '<' ? "&lt;" : *string == '>' ? "&gt;" : "&amp;");
        } else {
            text_bytes(svg, *string >= 0x20 && *string < 0x7f ? string : "?", 1);
        }
    }
}

/* ---- shapes ---- */

static void path_begin(struct canvas *canvas) {
    if (!canvas->collecting) {
        text_string(canvas->svg, "<path d=\"");
    }
    canvas->collecting = true;
}

static void canvas_box(struct canvas *canvas, double x0, double y0, double x1, double y1) {
    if (isfinite(x0 + y0 + x1 + y1)) {
        path_begin(canvas);
        number_put(canvas->svg, "M", x0);
        number_put(canvas->svg, " ", y0);
        number_put(canvas->svg, "H", x1);
        number_put(canvas->svg, "V", y1);
        number_put(canvas->svg, "H", x0);
        text_string(canvas->svg, "z");
    }
}

static void canvas_disc(struct canvas *canvas, double x, double y, double diameter) {
    double radius = diameter / 2;
    if (isfinite(x + y + radius)) {
        path_begin(canvas);
        number_put(canvas->svg, "M", x - radius);
        number_put(canvas->svg, " ", y);
        for (int half = 0; half < 2; half++) {
            number_put(canvas->svg, "a", radius);
            number_put(canvas->svg, " ", radius);
            number_put(canvas->svg, " 0 0 0 ", half == 0 ? diameter : -diameter);
            text_string(canvas->svg, " 0");
        }
        text_string(canvas->svg, "z");
    }
}

static void fill_put(struct text *svg, enum canvas_ink ink) {
    text_format(svg, " class=\"%s\" fill=\"", names[ink]);
    color_put(svg, &canvas_light[ink]);
    text_string(svg, "\"");
}

static void canvas_paint(struct canvas *canvas, enum canvas_ink ink, double opacity) {
    if (canvas->collecting) {
        text_string(canvas->svg, "\"");
        fill_put(canvas->svg, ink);
        if (opacity < 1) {
            number_put(canvas->svg, " fill-opacity=\"", opacity);
            text_string(canvas->svg, "\"");
        }
        text_string(canvas->svg, "/>\n");
    }
    canvas->collecting = false;
}

static void canvas_text(struct canvas *canvas, const struct font *font, double x, double y,
                        enum canvas_align align, enum canvas_ink ink, const char *text) {
    static const char *const anchors[] = {
        [ALIGN_LEFT] = "", [ALIGN_MIDDLE] = "middle", [ALIGN_RIGHT] = "end"};
    if (text[0] == '\0' || !isfinite(x + y)) {
        return;
    }
    number_put(canvas->svg, "<text x=\"", x);
    number_put(canvas->svg, "\" y=\"", y);
    number_put(canvas->svg, "\" font-size=\"", font->size);
    if (font->turned) {
        number_put(canvas->svg, "\" transform=\"rotate(-90 ", x);
        number_put(canvas->svg, " ", y);
        text_string(canvas->svg, ")");
    }
    text_format(canvas->svg, "\"%s%s%s%s", font->weight > 0.1 ? " font-weight=\"600\"" : "",
                align != ALIGN_LEFT ? " text-anchor=\"" : "", anchors[align],
                align != ALIGN_LEFT ? "\"" : "");
    fill_put(canvas->svg, ink);
    text_string(canvas->svg, ">");
    string_put(canvas->svg, text);
    text_string(canvas->svg, "</text>\n");
}

/* ---- the curve ---- */

struct svg_point {
    double x, y;   /* pixels */
    uint64_t at;   /* index */
    uint64_t gaps; /* before it */
};

/* The points of one strip that matter. */
struct strip {
    long number;
    bool empty;
    struct svg_point first, high, low, last;
};

struct svg_pen {
    struct text *svg;
    double floor_y; /* of the area below the curve; NaN for the curve itself */
    bool down;
    uint64_t at, gaps; /* of the last point */
};

static void pen_lift(struct svg_pen *pen) {
    if (pen->down && !isnan(pen->floor_y)) {
        number_put(pen->svg, "V", pen->floor_y);
        text_string(pen->svg, "z");
    }
    pen->down = false;
}

static void pen_point(struct svg_pen *pen, const struct svg_point *point) {
    if (pen->down && pen->at == point->at) {
        return;
    }
    if (pen->down && pen->gaps != point->gaps) {
        pen_lift(pen);
    }
    if (pen->down) {
        number_put(pen->svg, "L", point->x);
        number_put(pen->svg, " ", point->y);
    } else {
        number_put(pen->svg, "M", point->x);
        number_put(pen->svg, " ", isnan(pen->floor_y) ? point->y : pen->floor_y);
        number_put(pen->svg, "V", point->y); /* a single point is a dot */
    }
    pen->down = true;
    pen->gaps = point->gaps;
    pen->at = point->at;
}

static void strip_flush(struct strip *strip, struct svg_pen *pen) {
    if (strip->empty) {
        return;
    }
    bool rises = strip->low.at < strip->high.at;
    if (!isnan(pen->floor_y)) {
        pen_point(pen, &strip->low);
    } else {
        pen_point(pen, &strip->first);
        pen_point(pen, rises ? &strip->low : &strip->high);
        pen_point(pen, rises ? &strip->high : &strip->low);
        pen_point(pen, &strip->last);
    }
    strip->empty = true;
}

static void strip_include(struct strip *strip, const struct svg_point *point) {
    if (strip->empty) {
        strip->first = strip->high = strip->low = *point;
    }
    if (point->y < strip->high.y) {
        strip->high = *point;
    }
    if (point->y > strip->low.y) {
        strip->low = *point;
    }
    strip->last = *point;
    strip->empty = false;
}

/* Data of a path: the curve, or with a floor the area below it. */
static void curve_put(struct text *svg, const struct plot *plot, const struct plot_frame *frame,
                      double floor_y) {
    struct svg_pen pen = {.svg = svg, .floor_y = floor_y};
    struct strip strip = {.empty = true};
    uint64_t gaps = 0;
    for (uint64_t i = 0; i < plot->count; i++) {
        double x = plot_frame_x(frame, plot_point_x(plot, i));
        if (isnan(plot->y[i]) || isnan(x)) {
            gaps++;
            continue;
        }
        struct svg_point point = {.x = fmax(-COORDINATE, fmin(COORDINATE, x)),
                                  .y = plot_frame_y(frame, plot->y[i]),
                                  .at = i,
                                  .gaps = gaps};
        long number = (long)floor((point.x - frame->left) * STRIPS);
        if (number != strip.number) {
            strip_flush(&strip, &pen);
        }
        strip.number = number;
        strip_include(&strip, &point);
    }
    strip_flush(&strip, &pen);
    pen_lift(&pen);
}

static void stroke_end(struct text *svg, double width) {
    text_string(svg, "\" class=\"line\" fill=\"none\" stroke=\"");
    color_put(svg, &canvas_light[INK_ACCENT]);
    number_put(svg, "\" stroke-width=\"", width);
    text_string(svg, "\" stroke-linecap=\"round\" stroke-linejoin=\"round\"/>\n");
}

static void canvas_curve(struct canvas *canvas, const struct plot *plot,
                         const struct plot_frame *frame, double stroke) {
    path_begin(canvas);
    curve_put(canvas->svg, plot, frame, frame->bottom);
    canvas_paint(canvas, INK_ACCENT, TINT);
    text_string(canvas->svg, "<path id=\"curve\" d=\"");
    curve_put(canvas->svg, plot, frame, NAN);
    stroke_end(canvas->svg, stroke);
    if ((double)plot->count * POINTS_MARKED < frame->right - frame->left) {
        for (uint64_t i = 0; i < plot->count; i++) {
            if (!isnan(plot->y[i])) {
                canvas_disc(canvas, plot_frame_x(frame, plot_point_x(plot, i)),
                            plot_frame_y(frame, plot->y[i]), stroke * 3);
            }
        }
        canvas_paint(canvas, INK_ACCENT, 1);
    }
}

/* ---- the document ---- */

static const struct canvas_table table = {
    .box = canvas_box,
    .disc = canvas_disc,
    .paint = canvas_paint,
    .text = canvas_text,
    .curve = canvas_curve,
};

static void style_put(struct text *svg) {
    text_string(svg, "<style>@media (prefers-color-scheme: dark){");
    for (int ink = 0; ink < INK_COUNT; ink++) {
        text_format(svg, ".%s{fill:", names[ink]);
        color_put(svg, &canvas_dark[ink]);
        text_string(svg, "}");
    }
    text_string(svg, ".line{stroke:");
    color_put(svg, &canvas_dark[INK_ACCENT]);
    text_string(svg, "}}</style>\n");
}

void canvas_svg_open(struct canvas *canvas, struct text *svg, uint32_t width, uint32_t height,
                     const char *title, const char *about) {
    *canvas = (struct canvas){.table = &table, .width = width, .height = height, .svg = svg};
    text_format(svg,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%u\" height=\"%u\" "
                "viewBox=\"0 0 %u %u\" role=\"img\" font-family=\"Helvetica, Arial, sans-serif\">\n"
                "<title>",
                width, height, width, height);
    string_put(svg, title);
    text_string(svg, "</title>\n<desc>");
    string_put(svg, about);
    text_string(svg, "</desc>\n");
    style_put(svg);
    canvas_box(canvas, 0, 0, width, height);
    canvas_paint(canvas, INK_PAPER, 1);
}

void canvas_svg_close(struct canvas *canvas) {
    text_string(canvas->svg, "</svg>\n");
}
