/*
 * colormap.c: looks colormaps up and reverses them.
 *
 * Threads: reentrant.
 */
#include "compute/plot/colormap.h"

#include <stddef.h>
#include <string.h>

int32_t colormap_find(const char *name) {
    for (int32_t i = 0; colormap_names[i] != NULL; i++) {
        if (strcmp(colormap_names[i], name) == 0) {
            return i;
        }
    }
    return -1;
}

void colormap_fill(int32_t index, uint8_t lut[COLORMAP_BYTES]) {
    const uint8_t *table = colormap_tables[index / 2];
    if (index % 2 == 0) {
        memcpy(lut, table, COLORMAP_BYTES);
        return;
    }
    for (size_t i = 0; i < COLORMAP_COLORS; i++) {
        memcpy(lut + 3 * i, table + 3 * (COLORMAP_COLORS - 1 - i), 3);
    }
}
