/*
 * mandelbrot_tiles.c: the plane as a pyramid of square tiles, for map viewers.
 *
 * Tile 0/0/0 is the square [-2.5, 1.5] × [-2, 2]; each level halves the side; y counts downwards
 * from ymax. A tile is 256 pixels a side, or 512 as "Y@2x.png". All edges are exact in double, and
 * what depends on the picture elsewhere (precision, colour range) depends on the level only, so
 * that neighbours fit.
 *
 * Threads: reentrant.
 */
#include "compute/jobs/mandelbrot/mandelbrot.h"

#include <string.h>

#define LEFT     (-2.5)
#define TOP      2.0
#define SIDE     4.0
#define EXTENT   2.5 /* largest coordinate in the root square */
#define ZOOM_MAX 48
#define PIXELS   256

/* A canonical decimal (no sign, no leading zeros) that ends at `end`; false otherwise. Values past
   2^60 are held there. */
static bool number_take(const char *text, const char *end, uint64_t *value) {
    if (text == end || (*text == '0' && text + 1 != end)) {
        return false;
    }
    *value = 0;
    for (; text < end; text++) {
        if (*text < '0' || *text > '9') {
            return false;
        }
        *value = *value >> 60 ? *value : *value * 10 + (uint64_t)(*text - '0');
    }
    return true;
}

/* "12.png" or "12@2x.png". */
static bool name_take(const char *name, uint64_t *y, int64_t *pixels) {
    static const struct {
        const char *text;
        int64_t pixels;
    } endings[] = {{"@2x.png", 2 * PIXELS}, {".png", PIXELS}};
    size_t size = strlen(name);
    for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
        size_t ending = strlen(endings[i].text);
        if (size > ending && strcmp(name + size - ending, endings[i].text) == 0) {
            *pixels = endings[i].pixels;
            return number_take(name, name + size - ending, y);
        }
    }
    return false;
}

static enum kiln_status bind(const char *const *captures, void *raw,
                             struct complaints *complaints) {
    struct mandelbrot_params *params = raw;
    uint64_t z, x, y;
    int64_t pixels;
    if (!number_take(captures[0], captures[0] + strlen(captures[0]), &z) ||
        !number_take(captures[1], captures[1] + strlen(captures[1]), &x) ||
        !name_take(captures[2], &y, &pixels)) {
        return KILN_NOT_FOUND;
    }
    if (z > ZOOM_MAX) {
        complaints_add(complaints, "z", "must be an integer from 0 to %d", ZOOM_MAX);
        return KILN_OK;
    }
    if (x >> z || y >> z) {
        return KILN_NOT_FOUND;
    }
    double side = SIDE / (double)(UINT64_C(1) << z);
    struct mandelbrot_params tile = *params;
    tile.width = tile.height = pixels;
    tile.xmin = LEFT + side * (double)x;
    tile.xmax = LEFT + side * (double)(x + 1);
    tile.ymax = TOP - side * (double)y;
    tile.ymin = TOP - side * (double)(y + 1);
    tile.extent = EXTENT;
    tile.supersample = 1;
    if (!mandelbrot_resolvable(&tile)) {
        complaints_add(complaints, "z",
                       "is too deep here: neighbouring pixels are equal in double precision");
        return KILN_OK;
    }
    tile.supersample = params->supersample;
    *params = tile;
    return KILN_OK;
}

static const char *const reserved[] = {"width", "height", "xmin", "xmax", "ymin", "ymax", NULL};

const struct job_path mandelbrot_paths[] = {
    {
        .pattern = "/v1/mandelbrot/tiles/{z}/{x}/{name}",
        .format = FORMAT_PNG,
        .bind = bind,
        .reserved = reserved,
    },
    {.pattern = NULL},
};
