/*
 * font.h: text drawn with strokes, in any size and weight, level or turned.
 *
 * A geometric sans of our own with all printable ASCII; digits are equally wide. Three bytes
 * below 0x20 and above 0x7e mean something in a text: FONT_RAISE starts a superscript, FONT_LOWER
 * ends it, and 0x7f is a multiplication sign. Other bytes draw a small box.
 *
 * `size` is the height of a line's letters from the deepest descender to the highest ascender in
 * pixels; capitals are 0.7 of it high.
 *
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_PLOT_FONT_H
#define KILN_COMPUTE_PLOT_FONT_H

#include "compute/plot/raster.h"

#include <stdbool.h>

#define FONT_RAISE "\x01"
#define FONT_LOWER "\x02"
#define FONT_TIMES "\x7f"

#define FONT_CAPITAL 0.7 /* height of capitals and digits, of size */

struct font {
    double size;   /* pixels */
    double weight; /* stroke of the size: 0.085 regular, 0.115 bold */
    bool turned;   /* runs upwards instead of to the right */
};

/** Advance of the text in pixels. */
double font_width(const struct font *font, const char *text);
/** Adds the text to the raster's mask; (x, y) is the left end of its baseline. */
void font_draw(struct raster *raster, const struct font *font, double x, double y,
               const char *text);

#endif
