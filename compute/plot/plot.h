/*
 * plot.h: a function of one variable as a picture with axes, in pixels or as SVG.
 *
 * White ground (as SVG dark where the viewer prefers that), the curve in one accent colour, ticks
 * at 1, 2 or 5 times a power of ten, the best value marked by a vertical line with its label. A
 * curve with many more points than columns is drawn as what its polyline covers in each column, so
 * no peak is lost. The vertical axis starts at 0.
 *
 * Threads: reentrant. Ownership: memory and texts are the caller's.
 */
#ifndef KILN_COMPUTE_PLOT_PLOT_H
#define KILN_COMPUTE_PLOT_PLOT_H

#include "compute/core/text.h"
#include "compute/plot/raster.h"

#include <stddef.h>
#include <stdint.h>

#define PLOT_SIDE_MIN 200u
#define PLOT_SIDE_MAX 4096u
#define PLOT_TEXT_MAX 160 /* bytes of a text; longer ones are cut */

struct plot {
    uint32_t width, height; /* pixels, PLOT_SIDE_MIN … PLOT_SIDE_MAX */
    const char *title;      /* printable ASCII, like all texts */
    const char *x_title, *y_title;
    const char *message;   /* in place of a curve, or NULL */
    double x0, dx;         /* point i lies at x0 + i dx, dx > 0 … */
    const double *x;       /* … or at x[i], not decreasing, where this is not NULL */
    const double *y;       /* NaN leaves a gap, infinities touch the frame */
    uint64_t count;        /* points */
    double mark_x, mark_y; /* the best point; NaN for none */
    const char *mark_label;
};

/** Bytes of scratch memory that plot_draw needs. */
size_t plot_bytes(uint32_t width, uint32_t height);
/** Draws into `memory` (plot_bytes, 8-byte aligned); the pixels are raster->pixels afterwards. */
void plot_draw(const struct plot *plot, void *memory, struct raster *raster);

/** Most bytes of plot_svg, however many points there are. */
size_t plot_svg_bound(uint32_t width, uint32_t height);
/** Writes an SVG document; `about` tells what it shows in words (printable ASCII). The text is
    `full` only where it has less room than the bound. */
void plot_svg(const struct plot *plot, const char *about, struct text *svg);

/** A ruler of ticks: tick i is at (first + i) step; its label shows (value - offset) / 10^exponent
    with `decimals`. Ranges must be finite and low < high. */
struct plot_axis {
    double low, high; /* data range */
    double step;
    double first; /* tick number: an integer */
    int count;    /* of ticks */
    double offset;
    int exponent, decimals;
};

/** Chooses ticks, at most `most` (≥ 2) and usually more than a third of that. */
void plot_axis_choose(struct plot_axis *axis, double low, double high, int most);
double plot_axis_tick(const struct plot_axis *axis, int index);
/** Label of a tick, and the note that explains offset and exponent ("" for none). */
void plot_axis_label(const struct plot_axis *axis, int index, char *text, size_t size);
void plot_axis_note(const struct plot_axis *axis, char *text, size_t size);

/** Where data lands on the picture: the inner edges of the frame in pixels, and the ranges. */
struct plot_frame {
    double left, top, right, bottom;
    struct plot_axis x, y;
};

double plot_frame_x(const struct plot_frame *frame, double x);
double plot_frame_y(const struct plot_frame *frame, double y);
/** Where point i lies, in data. */
double plot_point_x(const struct plot *plot, uint64_t i);

/** Scratch of the curve's strips. */
size_t plot_curve_bytes(uint32_t width);
/** Paints the tinted area below the curve and the curve itself. */
void plot_curve_draw(const struct plot *plot, const struct plot_frame *frame, struct raster *raster,
                     struct color accent, double stroke, void *memory);

#endif
