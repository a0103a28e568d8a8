/*
 * plot_curve.c: the curve, strip by strip.
 *
 * The curve is a function, so what a pen of some width covers along it is known from what the
 * polyline covers in each narrow vertical strip: strips (STRIPS a pixel) collect the lowest and
 * highest value the polyline takes within them, a round pen widens these spans, and a pixel's
 * coverage is the mean of its strips' exact vertical overlap. The cost is the number of points
 * plus the number of pixels, whatever the curve does. Runs on a slot thread of a worker.
 */
#include "compute/plot/plot.h"

#include <math.h>

#define STRIPS        4
#define POINTS_MARKED 12 /* columns a point, from which on single points get a disc */

/* Vertical span in pixels (down); empty where low > high. */
struct curve_span {
    float top, bottom;
};

size_t plot_curve_bytes(uint32_t width) {
    return (size_t)width * STRIPS * sizeof(struct curve_span) * 2 +
           2 * (PLOT_SIDE_MAX + 2) * sizeof(float);
}

double plot_frame_x(const struct plot_frame *frame, double x) {
    return frame->left +
           (x - frame->x.low) / (frame->x.high - frame->x.low) * (frame->right - frame->left);
}

double plot_frame_y(const struct plot_frame *frame, double y) {
    double part = (y - frame->y.low) / (frame->y.high - frame->y.low);
    part = part < 0 ? 0 : part > 1 ? 1 : part;
    return frame->bottom - part * (frame->bottom - frame->top);
}

static void span_include(struct curve_span *span, double y) {
    if (y < span->top)
        span->top = (float)y;
    if (y > span->bottom)
        span->bottom = (float)y;
}

/* Strips of the frame's columns, the first at pixel `column`. */
struct curve_strips {
    struct curve_span *spans;
    long count;
    double column;
};

static long strip_at(const struct curve_strips *strips, double x) {
    double at = floor((x - strips->column) * STRIPS);
    return at < 0 ? 0 : at >= (double)strips->count ? strips->count - 1 : (long)at;
}

/* One piece of the polyline, x0 ≤ x1. */
static void strips_piece(struct curve_strips *strips, double x0, double y0, double x1, double y1) {
    long from = strip_at(strips, x0), to = strip_at(strips, x1);
    span_include(&strips->spans[from], y0);
    span_include(&strips->spans[to], y1);
    for (long i = from; i < to; i++) {
        double edge = strips->column + (double)(i + 1) / STRIPS;
        double part = x1 > x0 ? (edge - x0) / (x1 - x0) : 1;
        double y = y0 + (y1 - y0) * (part < 0 ? 0 : part > 1 ? 1 : part);
        span_include(&strips->spans[i], y);
        span_include(&strips->spans[i + 1], y);
    }
}

double plot_point_x(const struct plot *plot, uint64_t i) {
    return plot->x ? plot->x[i] : plot->x0 + (double)i * plot->dx;
}

static void strips_collect(struct curve_strips *strips, const struct plot *plot,
                           const struct plot_frame *frame) {
    for (long i = 0; i < strips->count; i++)
        strips->spans[i] = (struct curve_span){INFINITY, -INFINITY};
    double last_x = 0, last_y = NAN;
    for (uint64_t i = 0; i < plot->count; i++) {
        double x = plot_frame_x(frame, plot_point_x(plot, i));
        double y = isnan(plot->y[i]) ? NAN : plot_frame_y(frame, plot->y[i]);
        if (!isnan(y) && !isnan(last_y))
            strips_piece(strips, last_x, last_y, x, y);
        else if (!isnan(y))
            strips_piece(strips, x, y, x, y);
        last_x = x;
        last_y = y;
    }
}

/* A round pen of `radius` pixels moved along the spans. */
static void strips_widen(const struct curve_strips *thin, struct curve_span *wide, double radius) {
    long reach = (long)(radius * STRIPS);
    for (long i = 0; i < thin->count; i++) {
        struct curve_span span = {INFINITY, -INFINITY};
        for (long d = -reach; d <= reach; d++) {
            long at = i + d;
            if (at < 0 || at >= thin->count || thin->spans[at].top > thin->spans[at].bottom)
                continue;
            double side = (double)d / STRIPS, extent = sqrt(radius * radius - side * side);
            span_include(&span, thin->spans[at].top - extent);
            span_include(&span, thin->spans[at].bottom + extent);
        }
        wide[i] = span;
    }
}

/* Adds a span's overlap with each row: whole rows by differences, the two ends directly. */
static void column_add(float *ends, float *steps, double top, double bottom, double limit) {
    const float share = 1.0f / STRIPS;
    top = top < 0 ? 0 : top;
    bottom = bottom > limit ? limit : bottom;
    if (!(top < bottom))
        return;
    long first = (long)top, last = (long)bottom;
    if (first == last) {
        ends[first] += share * (float)(bottom - top);
        return;
    }
    ends[first] += share * (float)((double)(first + 1) - top);
    ends[last] += share * (float)(bottom - (double)last);
    steps[first + 1] += share;
    steps[last] -= share;
}

/* Covers one pixel column with its strips' spans, or with the area from them down to `floor_y`. */
static void column_cover(struct raster *raster, uint32_t x, const struct curve_span *spans,
                         const double *floor_y, float *rows) {
    float *ends = rows, *steps = rows + PLOT_SIDE_MAX + 2;
    for (uint32_t y = 0; y <= raster->height; y++)
        ends[y] = steps[y] = 0;
    for (int i = 0; i < STRIPS; i++)
        if (spans[i].top <= spans[i].bottom)
            column_add(ends, steps, floor_y ? spans[i].bottom : spans[i].top,
                       floor_y ? *floor_y : spans[i].bottom, raster->height);
    float whole = 0;
    for (uint32_t y = 0; y < raster->height; y++) {
        whole += steps[y];
        if (whole + ends[y] > 1e-4f)
            raster_cover(raster, x, y, whole + ends[y]);
    }
}

static void points_mark(const struct plot *plot, const struct plot_frame *frame,
                        struct raster *raster, double stroke) {
    for (uint64_t i = 0; i < plot->count; i++) {
        double x = plot_frame_x(frame, plot_point_x(plot, i));
        if (!isnan(plot->y[i]))
            raster_stroke(raster, x, plot_frame_y(frame, plot->y[i]), x,
                          plot_frame_y(frame, plot->y[i]), stroke * 3);
    }
}

void plot_curve_draw(const struct plot *plot, const struct plot_frame *frame, struct raster *raster,
                     struct color accent, double stroke, void *memory) {
    uint32_t first = (uint32_t)frame->left, end = (uint32_t)ceil(frame->right);
    struct curve_strips strips = {
        .spans = memory, .count = (long)(end - first) * STRIPS, .column = (double)first};
    struct curve_span *wide = strips.spans + strips.count;
    float *rows = (float *)(wide + strips.count);
    strips_collect(&strips, plot, frame);
    for (uint32_t x = first; x < end; x++)
        column_cover(raster, x, strips.spans + (size_t)(x - first) * STRIPS, &frame->bottom, rows);
    raster_paint(raster, accent, 0.10);
    strips_widen(&strips, wide, stroke / 2);
    for (uint32_t x = first; x < end; x++)
        column_cover(raster, x, wide + (size_t)(x - first) * STRIPS, NULL, rows);
    if ((double)plot->count * POINTS_MARKED < frame->right - frame->left)
        points_mark(plot, frame, raster, stroke);
    raster_paint(raster, accent, 1);
}
