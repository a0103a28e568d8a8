/*
 * font.c: glyphs as paths, flattened to strokes while drawing.
 *
 * A path is a text of commands over a grid where capitals are 20 units high, x is 14, ascenders
 * are 21 and descenders -6; y points up, and x = 0 is the centre line of a glyph's left stroke.
 *   M x y              starts a stroke
 *   L x y              a line to there
 *   A cx cy rx ry a b  an arc of the ellipse from angle a to b (degrees, anticlockwise if b > a),
 *                      starting a stroke
 *   a …                the same, joined to the stroke by a line
 *   D x y              a dot
 * Round letters lean on ellipses that touch the lines exactly, as optical overshoot is below a
 * tenth of a pixel at the sizes in use. Runs on a slot thread of a worker.
 */
#include "compute/plot/font.h"

#include <math.h>
#include <stdlib.h>

#define UNIT    (FONT_CAPITAL / 20) /* of size */
#define BEARING 2.6                 /* units on either side of a glyph */
#define RAISED  0.68                /* size of a superscript */
#define RAISE   9.0                 /* units a superscript stands higher */

struct glyph {
    double width; /* units between the centre lines of the outer strokes */
    const char *path;
};

static const struct glyph box = {10, "M0 0 L0 20 L10 20 L10 0 L0 0"};

/* From 0x20 on. */
static const struct glyph glyphs[96] = {
    {4, ""},
    {0.4, "M.2 20 L.2 6.5 D.2 .4"},
    {4.5, "M0 20 L0 14.5 M4.5 20 L4.5 14.5"},
    {15, "M3.5 1 L6 19 M9.5 1 L12 19 M.7 13.3 L15 13.3 M0 6.7 L14.3 6.7"},
    {12, "A6 15 5.3 5 32 270 a6 5 6 5 90 -148 M6 22.6 L6 -2.6"},
    {17, "A3.8 15.6 3.8 4.4 0 360 A13.2 4.4 3.8 4.4 0 360 M14 20 L3 0"},
    {15.5, "M15.5 0 L3.8 13 a7.2 15.7 4.3 4.3 218 -45 L2.5 9.2 a6.2 5.2 5.7 5.2 130 312 L14.3 9"},
    {0, "M0 20 L0 14.5"},
    {3.4, "A14 8.5 14 17 139 221"},
    {3.4, "A-10.6 8.5 14 17 41 -41"},
    {8.6, "M4.3 20 L4.3 10 M0 17.5 L8.6 12.5 M0 12.5 L8.6 17.5"},
    {12, "M6 2.5 L6 14.5 M0 8.5 L12 8.5"},
    {1.4, "M1.2 .6 L0 -3.6"},
    {7, "M0 8 L7 8"},
    {0.4, "D.2 .4"},
    {9, "M0 -3 L9 21.5"},
    {12, "A6 10 6 10 0 360"},
    {12, "M2.2 16 L7.2 20 L7.2 0"},
    {12, "A6 14.3 5.6 5.7 160 -36 L.4 0 L12 0"},
    {12, "A5.7 15.2 4.9 4.8 150 -90 L4 10.4 M5.7 10.4 a5.7 5.2 5.8 5.2 90 -150"},
    {12, "M9.2 0 L9.2 20 L0 6 L12 6"},
    {12, "M10.8 20 L2.2 20 L1.3 10.6 a5.8 6.4 5.9 6.4 139 -150"},
    {12, "A6 6.3 6 6.3 0 360 A11 6.3 11 13.9 101 180"},
    {12, "M0 20 L12 20 L4.3 0"},
    {12, "A6 15.2 4.9 4.8 0 360 A6 5.2 6 5.2 0 360"},
    {12, "A6 13.7 6 6.3 0 360 A1 13.7 11 13.9 -79 0"},
    {0.4, "D.2 .4 D.2 12"},
    {1.4, "D1.1 12 M1.2 .6 L0 -3.6"},
    {11, "M11 14.5 L0 8.5 L11 2.5"},
    {12, "M0 11.5 L12 11.5 M0 5.5 L12 5.5"},
    {11, "M0 14.5 L11 8.5 L0 2.5"},
    {10, "A5 15 5 5 165 -50 L5 8 L5 5.8 D5 .4"},
    {20.6,
     "A9.6 8 4.6 5.2 0 360 M14.2 13.2 L14.2 6.6 a17.4 6.6 3.2 3.8 180 360 a10.3 8 10.3 12 0 304"},
    {16, "M0 0 L8 20 L16 0 M2.8 7 L13.2 7"},
    {12,
     "M0 10.5 L6.3 10.5 a6.3 15.25 4.75 4.75 -90 90 L0 20 L0 0 L6.7 0 a6.7 5.25 5.3 5.25 -90 90"},
    {14.4, "A9 10 9 10 52 308"},
    {15, "M0 0 L0 20 L5 20 a5 10 10 10 90 -90 L0 0"},
    {10.8, "M10.8 20 L0 20 L0 0 L10.8 0 M0 10.4 L9.4 10.4"},
    {10.8, "M10.8 20 L0 20 L0 0 M0 10 L9.4 10"},
    {16.6, "A8.6 10 8.6 10 48 352 L17 9.4 L10 9.4"},
    {14, "M0 0 L0 20 M14 0 L14 20 M0 10.4 L14 10.4"},
    {0, "M0 0 L0 20"},
    {8, "M8 20 L8 5 a4 5 4 5 0 -155"},
    {13, "M0 0 L0 20 M12.4 20 L0 7.4 M4.4 11.8 L13 0"},
    {10, "M0 20 L0 0 L10 0"},
    {18, "M0 0 L0 20 L9 4.5 L18 20 L18 0"},
    {14, "M0 0 L0 20 L14 0 L14 20"},
    {17.4, "A8.7 10 8.7 10 0 360"},
    {11.8, "M0 0 L0 20 L6.5 20 a6.5 14.7 5.3 5.3 90 -90 L0 9.4"},
    {17.4, "A8.7 10 8.7 10 0 360 M10.6 5.2 L16.8 -1.4"},
    {12.4, "M0 0 L0 20 L6.5 20 a6.5 14.7 5.3 5.3 90 -90 L0 9.4 M6.4 9.4 L12.4 0"},
    {12, "A6 15 5.3 5 32 270 a6 5 6 5 90 -148"},
    {14, "M0 20 L14 20 M7 20 L7 0"},
    {14, "M0 20 L0 7 a7 7 7 7 180 360 L14 20"},
    {15.4, "M0 20 L7.7 0 L15.4 20"},
    {22, "M0 20 L5.5 0 L11 18 L16.5 0 L22 20"},
    {14, "M0 0 L14 20 M0 20 L14 0"},
    {14, "M0 20 L7 9.4 L14 20 M7 9.4 L7 0"},
    {13, "M0 20 L13 20 L0 0 L13 0"},
    {4.4, "M4.4 22 L0 22 L0 -4 L4.4 -4"},
    {9, "M0 21.5 L9 -3"},
    {4.4, "M0 22 L4.4 22 L4.4 -4 L0 -4"},
    {11, "M0 12 L5.5 20 L11 12"},
    {12, "M0 -3 L12 -3"},
    {4, "M0 20.5 L4 16"},
    {10.4, "A5.4 9.3 5 4.7 155 0 L10.4 0 M10.4 8.2 L4.6 8.2 a4.6 4.1 4.6 4.1 90 270 L5.6 0 "
           "a5.6 4.6 4.8 4.6 270 360"},
    {12, "M0 21 L0 0 A6 7 6 7 0 360"},
    {10.2, "A6 7 6 7 46 314"},
    {12, "M12 21 L12 0 A6 7 6 7 0 360"},
    {11.8, "M0 7.3 L11.8 7.3 a5.9 7 5.9 7 0 318"},
    {7, "M2.8 0 L2.8 16.5 a7 16.5 4.2 4.5 180 82 M0 14 L7 14"},
    {12, "A6 7 6 7 0 360 M12 14 L12 -.5 a6 -.5 6 5.5 0 -152"},
    {11, "M0 21 L0 0 M0 8.5 a5.5 8.5 5.5 5.5 180 0 L11 0"},
    {0.4, "M.2 0 L.2 14 D.2 19.6"},
    {2.6, "M2.4 14 L2.4 -2 a-1 -2 3.4 4 0 -72 D2.4 19.6"},
    {10, "M0 0 L0 21 M9.4 14 L0 5 M3.6 8.4 L10 0"},
    {3.4, "M0 21 L0 3.8 a3.6 3.8 3.6 3.8 180 262"},
    {17.6,
     "M0 14 L0 0 M0 9.4 a4.4 9.4 4.4 4.6 180 0 L8.8 0 M8.8 9.4 a13.2 9.4 4.4 4.6 180 0 L17.6 0"},
    {11, "M0 14 L0 0 M0 8.5 a5.5 8.5 5.5 5.5 180 0 L11 0"},
    {12.4, "A6.2 7 6.2 7 0 360"},
    {12, "M0 14 L0 -6 A6 7 6 7 0 360"},
    {12, "M12 14 L12 -6 A6 7 6 7 0 360"},
    {6.6, "M0 14 L0 0 M0 8.2 a5.4 8.2 5.4 5.8 180 74"},
    {9.4, "A4.8 10.5 4.2 3.5 30 270 a4.7 3.5 4.7 3.5 90 -150"},
    {7, "M2.8 18.6 L2.8 4 a6.8 4 4 4 180 272 M0 14 L7 14"},
    {11, "M0 14 L0 5.5 a5.5 5.5 5.5 5.5 180 360 M11 14 L11 0"},
    {11.4, "M0 14 L5.7 0 L11.4 14"},
    {17, "M0 14 L4.25 0 L8.5 12.8 L12.75 0 L17 14"},
    {10.4, "M0 0 L10.4 14 M0 14 L10.4 0"},
    {11.4, "M0 14 L5.8 .4 M11.4 14 L5.4 -3 a2.9 -2.2 2.7 3.6 -18 -100"},
    {9.6, "M0 14 L9.6 14 L0 0 L9.6 0"},
    {6, "M6 22 a5 18.5 3 3.5 90 180 L2 12.5 a-1 12.5 3 3.5 0 -75 L0 9 L-.2 9 a-1 5.5 3 3.5 75 0 "
        "L2 -.5 a5 -.5 3 3.5 180 270 L6 -4"},
    {0, "M0 23 L0 -5"},
    {6, "M0 22 a1 18.5 3 3.5 90 0 L4 12.5 a7 12.5 3 3.5 180 255 L6.2 9 a7 5.5 3 3.5 105 180 "
        "L4 -.5 a1 -.5 3 3.5 0 -90 L0 -4"},
    {13.2, "A3.3 7.2 3.3 3 180 0 a9.9 7.2 3.3 3 180 360"},
    {9, "M0 4 L9 13 M0 13 L9 4"}, /* multiplication sign */
};

static const struct glyph *glyph_find(unsigned char byte) {
    return byte >= 0x20 && byte <= 0x7f ? &glyphs[byte - 0x20] : &box;
}

/* Where and how a glyph is drawn: grid (u, v) to pixels. */
struct pen {
    struct raster *raster;
    double x, y; /* pixel of the grid's origin */
    double unit; /* pixels */
    double stroke;
    bool turned;
    double u, v; /* where the pen stands, grid */
};

static void pen_line(struct pen *pen, double u, double v) {
    double du0 = pen->u * pen->unit, dv0 = pen->v * pen->unit, du1 = u * pen->unit,
           dv1 = v * pen->unit;
    if (pen->turned) {
        raster_stroke(pen->raster, pen->x - dv0, pen->y - du0, pen->x - dv1, pen->y - du1,
                      pen->stroke);
    } else {
        raster_stroke(pen->raster, pen->x + du0, pen->y - dv0, pen->x + du1, pen->y - dv1,
                      pen->stroke);
    }
    pen->u = u;
    pen->v = v;
}

static void pen_move(struct pen *pen, double u, double v) {
    pen->u = u;
    pen->v = v;
}

static void pen_arc(struct pen *pen, const double *arc, bool joined) {
    const double degree = 3.14159265358979323846 / 180;
    double sweep = arc[5] - arc[4];
    int steps = (int)ceil(fabs(sweep) / 10);
    for (int i = 0; i <= steps; i++) {
        double angle = (arc[4] + sweep * i / steps) * degree;
        double u = arc[0] + arc[2] * cos(angle), v = arc[1] + arc[3] * sin(angle);
        if (i == 0 && !joined) {
            pen_move(pen, u, v);
        } else {
            pen_line(pen, u, v);
        }
    }
}

/* A dot is a little wider than a stroke, or it would look thinner. */
static void pen_dot(struct pen *pen, double u, double v) {
    double stroke = pen->stroke;
    pen->stroke *= 1.3;
    pen_move(pen, u, v);
    pen_line(pen, u, v);
    pen->stroke = stroke;
}

static void pen_path(struct pen *pen, const char *path) {
    while (*path) {
        char command = *path++;
        double numbers[6];
        int count = command == 'A' || command == 'a' ? 6 : 2;
        for (int i = 0; i < count; i++) {
            char *end;
            numbers[i] = strtod(path, &end);
            path = end;
        }
        if (command == 'M') {
            pen_move(pen, numbers[0], numbers[1]);
        } else if (command == 'L') {
            pen_line(pen, numbers[0], numbers[1]);
        } else if (command == 'D') {
            pen_dot(pen, numbers[0], numbers[1]);
        } else {
            pen_arc(pen, numbers, command == 'a');
        }
        while (*path == ' ') {
            path++;
        }
    }
}

/* Walks a text; draws where there is a pen. Returns the advance in units of size. */
static double text_walk(const char *text, double size, struct pen *pen) {
    double advance = 0, part = 1, lift = 0;
    for (const char *at = text; *at; at++) {
        if (*at == FONT_RAISE[0] || *at == FONT_LOWER[0]) {
            bool raised = *at == FONT_RAISE[0];
            part = raised ? RAISED : 1;
            lift = raised ? RAISE * UNIT : 0;
            continue;
        }
        const struct glyph *glyph = glyph_find((unsigned char)*at);
        if (pen != NULL) {
            struct pen shifted = *pen;
            double right = (advance + BEARING * UNIT * part) * size, up = lift * size;
            shifted.x += pen->turned ? -up : right;
            shifted.y -= pen->turned ? right : up;
            shifted.unit = UNIT * part * size;
            pen_path(&shifted, glyph->path);
        }
        advance += (glyph->width + 2 * BEARING) * UNIT * part;
    }
    return advance;
}

double font_width(const struct font *font, const char *text) {
    return text_walk(text, font->size, NULL) * font->size;
}

void font_draw(struct raster *raster, const struct font *font, double x, double y,
               const char *text) {
    struct pen pen = {.raster = raster,
                      .x = x,
                      .y = y,
                      .stroke = font->weight * font->size,
                      .turned = font->turned};
    text_walk(text, font->size, &pen);
}
