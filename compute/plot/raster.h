/*
 * raster.h: antialiased drawing on an RGB picture.
 *
 * Shapes are collected in a coverage mask (one byte a pixel, the larger coverage wins, so strokes
 * that touch or overlap leave no seams) and then painted in one colour. Coordinates are pixels as
 * double: x to the right, y down, (0,0) is the picture's upper left corner and pixel centres lie
 * at .5. Whatever lies outside is cut off; coordinates that are not finite draw nothing.
 *
 * Threads: one owner at a time. Ownership: the memory is the caller's.
 */
#ifndef KILN_COMPUTE_PLOT_RASTER_H
#define KILN_COMPUTE_PLOT_RASTER_H

#include <stddef.h>
#include <stdint.h>

#define RASTER_SIDE_MAX 16384u

struct color {
    uint8_t red, green, blue;
};

struct raster {
    uint32_t width, height;
    uint8_t *pixels;                   /* height × width × 3, RGB */
    uint8_t *mask;                     /* height × width: coverage not yet painted, 0 … 255 */
    uint32_t left, top, right, bottom; /* pixels of the mask that may be non-zero: [left, right) */
};

/** Bytes that raster_init needs for sides of at most RASTER_SIDE_MAX. */
size_t raster_bytes(uint32_t width, uint32_t height);
/** Lays the picture out in `memory` and fills it with `color`. */
void raster_init(struct raster *raster, uint32_t width, uint32_t height, void *memory,
                 struct color color);

/** Adds a straight stroke of `width` pixels with round ends. Equal ends give a disc. */
void raster_stroke(struct raster *raster, double x0, double y0, double x1, double y1, double width);
/** Adds a rectangle with edges parallel to the axes. */
void raster_box(struct raster *raster, double x0, double y0, double x1, double y1);
/** Adds coverage 0 … 1 to one pixel. */
void raster_cover(struct raster *raster, uint32_t x, uint32_t y, double coverage);
/** Paints what was collected with `opacity` 0 … 1 and empties the mask. */
void raster_paint(struct raster *raster, struct color color, double opacity);

#endif
