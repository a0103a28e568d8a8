/*
 * png_palette.h: pictures of few colours as indices into a palette.
 *
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_CODECS_PNG_PNG_PALETTE_H
#define KILN_COMPUTE_CODECS_PNG_PNG_PALETTE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define PALETTE_MAX 256

/** Colours from dark to bright but for rare ones, so that neighbours in a picture have neighbouring
 * indices. */
struct palette {
    uint8_t colors[PALETTE_MAX][3]; /* red, green, blue */
    unsigned count;
};

/** Finds the colours of `count` ≥ 1 RGB pixels and writes an index for each. False, with `indices`
    undefined, as soon as there are more than 256. */
bool palette_find(const uint8_t *rgb, size_t count, struct palette *palette, uint8_t *indices);

#endif
