/*
 * canvas_raster.c: a plot as pixels, on a light ground. Runs on a slot thread of a worker.
 */
#include "compute/plot/canvas.h"

const struct color canvas_light[INK_COUNT] = {
    [INK_PAPER] = {255, 255, 255}, [INK_TEXT] = {27, 36, 48},    [INK_QUIET] = {92, 103, 119},
    [INK_FRAME] = {150, 160, 174}, [INK_GRID] = {228, 232, 238}, [INK_ACCENT] = {28, 103, 178},
};

static void canvas_box(struct canvas *canvas, double x0, double y0, double x1, double y1) {
    raster_box(canvas->raster, x0, y0, x1, y1);
}

static void canvas_disc(struct canvas *canvas, double x, double y, double diameter) {
    raster_stroke(canvas->raster, x, y, x, y, diameter);
}

static void canvas_paint(struct canvas *canvas, enum canvas_ink ink, double opacity) {
    raster_paint(canvas->raster, canvas_light[ink], opacity);
}

static void canvas_text(struct canvas *canvas, const struct font *font, double x, double y,
                        enum canvas_align align, enum canvas_ink ink, const char *text) {
    double back = font_width(font, text) * (int)align / 2;
    font_draw(canvas->raster, font, x - (font->turned ? 0 : back), y + (font->turned ? back : 0),
              text);
    raster_paint(canvas->raster, canvas_light[ink], 1);
}

static void canvas_curve(struct canvas *canvas, const struct plot *plot,
                         const struct plot_frame *frame, double stroke) {
    plot_curve_draw(plot, frame, canvas->raster, canvas_light[INK_ACCENT], stroke, canvas->memory);
}

static const struct canvas_table table = {
    .box = canvas_box,
    .disc = canvas_disc,
    .paint = canvas_paint,
    .text = canvas_text,
    .curve = canvas_curve,
};

void canvas_raster(struct canvas *canvas, struct raster *raster, uint32_t width, uint32_t height,
                   void *memory) {
    size_t picture = (raster_bytes(width, height) + 7) & ~(size_t)7;
    raster_init(raster, width, height, memory, canvas_light[INK_PAPER]);
    *canvas = (struct canvas){.table = &table,
                              .width = width,
                              .height = height,
                              .raster = raster,
                              .memory = (uint8_t *)memory + picture};
}
