/*
 * png_palette.c: the colours of a picture (png_palette.h).
 *
 * One pass gives every pixel the number of its colour in order of appearance, out of a small hash
 * table in the first-level cache; a second one, a look-up a byte, puts the numbers in order of
 * brightness. A picture of many colours is given up after a few hundred pixels. Thread: any.
 */
#include "compute/codecs/png_palette.h"

#include "compute/codecs/png_bits.h"

#define SLOT_BITS 12
#define SLOTS     (1u << SLOT_BITS)
#define COLOR     0xffffffu

/* A slot is a colour, and its index above it. Free slots hold the first pixel's colour, whose
   index is 0: it is then found wherever it is looked for, and no slot needs a mark. */
struct table {
    uint32_t slots[SLOTS];
    uint32_t colors[PALETTE_MAX];
    unsigned count;
};

static inline uint32_t color_at(const uint8_t *rgb) {
    return rgb[0] | (uint32_t)rgb[1] << 8 | (uint32_t)rgb[2] << 16;
}

static void table_init(struct table *table, uint32_t color) {
    for (size_t i = 0; i < SLOTS; i++)
        table->slots[i] = color;
    table->colors[0] = color;
    table->count = 1;
}

static inline uint32_t slot_first(uint32_t color) {
    return color * 0x9e3779b1u >> (32 - SLOT_BITS);
}

/* Looks behind a colour's first slot; PALETTE_MAX where it would be one too many. */
static unsigned table_search(struct table *table, uint32_t color) {
    uint32_t at = slot_first(color);
    while ((table->slots[at] & COLOR) != color) {
        if (table->slots[at] == table->colors[0]) {
            if (table->count == PALETTE_MAX)
                return PALETTE_MAX;
            table->slots[at] = color | (uint32_t)table->count << 24;
            table->colors[table->count] = color;
            return table->count++;
        }
        at = (at + 1) % SLOTS;
    }
    return table->slots[at] >> 24;
}

static inline bool pixel_find(struct table *table, uint32_t color, uint8_t *index) {
    uint32_t slot = table->slots[slot_first(color)];
    unsigned found = slot >> 24;
    if ((slot & COLOR) != color)
        found = table_search(table, color);
    *index = (uint8_t)found;
    return found < PALETTE_MAX;
}

/* Whether sixteen pixels have the colour of the one before them. */
static inline bool pixels_repeat(const uint8_t *rgb) {
    return memcmp(rgb - 3, rgb, 48) == 0;
}

static bool pixels_find(struct table *table, const uint8_t *rgb, size_t count, uint8_t *indices) {
    size_t i = 0;
    for (; i + 16 < count; i += 16) {
        if (i > 0 && pixels_repeat(rgb + 3 * i)) {
            memset(indices + i, indices[i - 1], 16);
            continue;
        }
        for (size_t k = i; k < i + 16; k++) {
            uint32_t four; /* one byte more than the pixel: there is another behind it */
            memcpy(&four, rgb + 3 * k, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
            four = __builtin_bswap32(four);
#endif
            if (!pixel_find(table, four & COLOR, indices + k))
                return false;
        }
    }
    for (; i < count; i++)
        if (!pixel_find(table, color_at(rgb + 3 * i), indices + i))
            return false;
    return true;
}

/* Orders the colours by brightness; `order` tells each one's new index. */
static void palette_sort(const struct table *table, struct palette *palette, uint8_t *order) {
    uint64_t keys[PALETTE_MAX];
    for (unsigned i = 0; i < table->count; i++) {
        uint32_t color = table->colors[i];
        uint64_t bright = 2 * (color & 255) + 5 * (color >> 8 & 255) + (color >> 16);
        keys[i] = bright << 40 | (uint64_t)color << 8 | i;
    }
    keys_sort(keys, table->count);
    palette->count = table->count;
    for (unsigned i = 0; i < table->count; i++) {
        uint32_t color = keys[i] >> 8 & COLOR;
        order[keys[i] & 255] = (uint8_t)i;
        palette->colors[i][0] = (uint8_t)color;
        palette->colors[i][1] = (uint8_t)(color >> 8);
        palette->colors[i][2] = (uint8_t)(color >> 16);
    }
}

bool palette_find(const uint8_t *rgb, size_t count, struct palette *palette, uint8_t *indices) {
    struct table table;
    uint8_t order[PALETTE_MAX];
    table_init(&table, color_at(rgb));
    if (!pixels_find(&table, rgb, count, indices))
        return false;
    palette_sort(&table, palette, order);
    for (size_t i = 0; i < count; i++)
        indices[i] = order[indices[i]];
    return true;
}
