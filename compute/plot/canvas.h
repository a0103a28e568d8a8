/*
 * canvas.h: what a plot is drawn on: pixels (canvas_raster.c) or SVG (canvas_svg.c).
 *
 * Boxes and discs are collected and painted together in one ink; texts and the curve are painted at
 * once. Coordinates are those of raster.h; what is not finite draws nothing.
 *
 * Threads: one owner at a time. Ownership: memory and texts are the caller's.
 */
#ifndef KILN_COMPUTE_PLOT_CANVAS_H
#define KILN_COMPUTE_PLOT_CANVAS_H

#include "compute/core/text.h"
#include "compute/plot/font.h"
#include "compute/plot/plot.h"

enum canvas_ink { INK_PAPER, INK_TEXT, INK_QUIET, INK_FRAME, INK_GRID, INK_ACCENT, INK_COUNT };

/** Where a text's x lies in it; upwards texts: its y. */
enum canvas_align { ALIGN_LEFT, ALIGN_MIDDLE, ALIGN_RIGHT };

struct canvas {
    const struct canvas_table *table;
    uint32_t width, height; /* pixels */
    struct raster *raster;  /* of one sort … */
    void *memory;           /* plot_curve_bytes */
    struct text *svg;       /* … or of the other */
    bool collecting;        /* a path has begun */
};

struct canvas_table {
    void (*box)(struct canvas *canvas, double x0, double y0, double x1, double y1);
    void (*disc)(struct canvas *canvas, double x, double y, double diameter);
    void (*paint)(struct canvas *canvas, enum canvas_ink ink, double opacity);
    /** `y` is the baseline, or `x` that of a font that is turned. */
    void (*text)(struct canvas *canvas, const struct font *font, double x, double y,
                 enum canvas_align align, enum canvas_ink ink, const char *text);
    /** The area below the curve in a tint of INK_ACCENT, and the curve `stroke` pixels wide. */
    void (*curve)(struct canvas *canvas, const struct plot *plot, const struct plot_frame *frame,
                  double stroke);
};

/** Colours on a light ground, and where the viewer wants a dark one. */
extern const struct color canvas_light[INK_COUNT], canvas_dark[INK_COUNT];

/** White pixels in `memory` (plot_bytes). */
void canvas_raster(struct canvas *canvas, struct raster *raster, uint32_t width, uint32_t height,
                   void *memory);

/** Begins an SVG document; `title` and `about` describe it to those who do not see it. */
void canvas_svg_open(struct canvas *canvas, struct text *svg, uint32_t width, uint32_t height,
                     const char *title, const char *about);
void canvas_svg_close(struct canvas *canvas);

#endif
