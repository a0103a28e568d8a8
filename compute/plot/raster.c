/*
 * raster.c: coverage from distances, painted in one pass.
 *
 * A stroke is the set of points within half its width of a segment; a pixel's coverage is taken
 * from the distance of its centre to that set, which is exact enough for strokes of about a pixel
 * and needs no polygon code. Rows are cut to the few pixels near the segment. Runs on a slot
 * thread of a worker.
 */
#include "compute/plot/raster.h"

#include <math.h>
#include <string.h>

size_t raster_bytes(uint32_t width, uint32_t height) {
    return (size_t)width * height * 4;
}

static void dirty_clear(struct raster *raster) {
    raster->left = raster->width;
    raster->top = raster->height;
    raster->right = raster->bottom = 0;
}

void raster_init(struct raster *raster, uint32_t width, uint32_t height, void *memory,
                 struct color color) {
    size_t area = (size_t)width * height;
    raster->width = width;
    raster->height = height;
    raster->pixels = memory;
    raster->mask = raster->pixels + area * 3;
    for (size_t i = 0; i < area; i++) {
        raster->pixels[3 * i] = color.red;
        raster->pixels[3 * i + 1] = color.green;
        raster->pixels[3 * i + 2] = color.blue;
    }
    memset(raster->mask, 0, area);
    dirty_clear(raster);
}

void raster_cover(struct raster *raster, uint32_t x, uint32_t y, double coverage) {
    if (x >= raster->width || y >= raster->height || !(coverage > 0)) {
        return;
    }
    uint8_t value = coverage < 1 ? (uint8_t)(coverage * 255 + 0.5) : 255;
    uint8_t *at = &raster->mask[(size_t)y * raster->width + x];
    if (value <= *at) {
        return;
    }
    *at = value;
    raster->left = x < raster->left ? x : raster->left;
    raster->top = y < raster->top ? y : raster->top;
    raster->right = x >= raster->right ? x + 1 : raster->right;
    raster->bottom = y >= raster->bottom ? y + 1 : raster->bottom;
}

/* A coordinate as a pixel number in [0, limit]. */
static uint32_t pixel_floor(double value, uint32_t limit) {
    if (!(value > 0)) {
        return 0;
    }
    return value >= limit ? limit : (uint32_t)value;
}

static double distance_squared(double px, double py, double dx, double dy, double inverse) {
    double along = (px * dx + py * dy) * inverse;
    along = along < 0 ? 0 : along > 1 ? 1 : along;
    double ox = px - along * dx, oy = py - along * dy;
    return ox * ox + oy * oy;
}

void raster_stroke(struct raster *raster, double x0, double y0, double x1, double y1,
                   double width) {
    if (!isfinite(x0 + y0 + x1 + y1 + width)) {
        return;
    }
    double radius = width / 2, reach = radius + 1;
    double dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy;
    double inverse = length > 0 ? 1 / length : 0;
    uint32_t row = pixel_floor((y0 < y1 ? y0 : y1) - reach, raster->height);
    uint32_t last = pixel_floor((y0 > y1 ? y0 : y1) + reach + 1, raster->height);
    for (; row < last; row++) {
        /* The part of the segment within reach of this row bounds the columns. */
        double y = row + 0.5, from = x0, to = x1;
        if (fabs(dy) > 1e-9) {
            double a = (y - reach - y0) / dy, b = (y + reach - y0) / dy;
            a = a < 0 ? 0 : a > 1 ? 1 : a;
            b = b < 0 ? 0 : b > 1 ? 1 : b;
            from = x0 + a * dx;
            to = x0 + b * dx;
        }
        uint32_t column = pixel_floor((from < to ? from : to) - reach, raster->width);
        uint32_t end = pixel_floor((from > to ? from : to) + reach + 1, raster->width);
        for (; column < end; column++) {
            double square = distance_squared(column + 0.5 - x0, y - y0, dx, dy, inverse);
            if (square < reach * reach) {
                raster_cover(raster, column, row, radius + 0.5 - sqrt(square));
            }
        }
    }
}

/* Length of [low, high] within pixel [at, at + 1]. */
static double overlap(double low, double high, uint32_t at) {
    double from = low > at ? low : at, to = high < at + 1.0 ? high : at + 1.0;
    return to > from ? to - from : 0;
}

void raster_box(struct raster *raster, double x0, double y0, double x1, double y1) {
    if (!isfinite(x0 + y0 + x1 + y1)) {
        return;
    }
    uint32_t first = pixel_floor(x0, raster->width), bottom = pixel_floor(ceil(y1), raster->height);
    uint32_t end = pixel_floor(ceil(x1), raster->width);
    for (uint32_t y = pixel_floor(y0, raster->height); y < bottom; y++) {
        for (uint32_t x = first; x < end; x++) {
            raster_cover(raster, x, y, overlap(x0, x1, x) * overlap(y0, y1, y));
        }
    }
}

static uint8_t blend(uint8_t under, uint8_t over, uint32_t alpha) {
    return (uint8_t)((under * (65025 - alpha) + over * alpha + 32512) / 65025);
}

void raster_paint(struct raster *raster, struct color color, double opacity) {
    uint32_t strength = opacity >= 1 ? 255 : opacity > 0 ? (uint32_t)(opacity * 255 + 0.5) : 0;
    for (uint32_t y = raster->top; y < raster->bottom; y++) {
        size_t row = (size_t)y * raster->width;
        for (uint32_t x = raster->left; x < raster->right; x++) {
            uint32_t alpha = raster->mask[row + x] * strength; /* 255² is opaque */
            uint8_t *pixel = &raster->pixels[3 * (row + x)];
            raster->mask[row + x] = 0;
            if (!alpha) {
                continue;
            }
            pixel[0] = blend(pixel[0], color.red, alpha);
            pixel[1] = blend(pixel[1], color.green, alpha);
            pixel[2] = blend(pixel[2], color.blue, alpha);
        }
    }
    dirty_clear(raster);
}
