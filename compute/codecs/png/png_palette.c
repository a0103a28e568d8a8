/*
 * png_palette.c: the colours of a picture (png_palette.h).
 *
 * A sample of the pixels tells nearly all colours, which are put in order of brightness; what else
 * turns up in the one pass over all pixels is rare and comes behind these. The pass looks colours
 * up in a hash table that stays in the first-level cache, and skips stretches of one colour. A
 * picture of many colours is given up after a few hundred pixels. Thread: any.
 */
#include "compute/codecs/png/png_palette.h"

#include "compute/codecs/png/png_bits.h"

#define SLOT_BITS 12
#define SLOTS     (1u << SLOT_BITS)
#define COLOR     0xffffffu
#define GROUP     16         /* pixels */
#define LARGE     (1u << 18) /* pixels from which a thin sample is enough */

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
    for (size_t i = 0; i < SLOTS; i++) {
        table->slots[i] = color;
    }
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
            if (table->count == PALETTE_MAX) {
                return PALETTE_MAX;
            }
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
    if ((slot & COLOR) != color) {
        found = table_search(table, color);
    }
    *index = (uint8_t)found;
    return found < PALETTE_MAX;
}

/* Whether GROUP pixels have the colour of the one before them. */
static inline bool group_repeats(const uint8_t *rgb) {
    return memcmp(rgb - 3, rgb, 3 * GROUP) == 0;
}

/* The indices of GROUP pixels that have another behind them. */
static inline bool group_find(struct table *table, const uint8_t *rgb, uint8_t *indices) {
    for (size_t k = 0; k < GROUP; k++) {
        uint32_t four; /* the pixel and a byte of the next */
        memcpy(&four, rgb + 3 * k, 4);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        four = __builtin_bswap32(four);
#endif
        if (!pixel_find(table, four & COLOR, indices + k)) {
            return false;
        }
    }
    return true;
}

static bool pixels_find(struct table *table, const uint8_t *rgb, size_t count, uint8_t *indices) {
    size_t i = 0;
    for (; i + GROUP < count; i += GROUP) {
        if (i > 0 && group_repeats(rgb + 3 * i)) {
            memset(indices + i, indices[i - 1], GROUP);
        } else if (!group_find(table, rgb + 3 * i, indices + i)) {
            return false;
        }
    }
    for (; i < count; i++) {
        if (!pixel_find(table, color_at(rgb + 3 * i), indices + i)) {
            return false;
        }
    }
    return true;
}

/* Looks at some of the pixels only. */
static bool pixels_sample(struct table *table, const uint8_t *rgb, size_t count) {
    uint8_t indices[GROUP];
    size_t one_in = count < LARGE ? 4 : 16;
    for (size_t i = 0; i + GROUP < count; i += GROUP * one_in) {
        if (!group_find(table, rgb + 3 * i, indices)) {
            return false;
        }
    }
    return true;
}

/* Orders the colours found so far by brightness and begins again with these. */
static void table_sort(struct table *table) {
    uint64_t keys[PALETTE_MAX];
    unsigned count = table->count;
    for (unsigned i = 0; i < count; i++) {
        uint32_t color = table->colors[i];
        uint64_t bright = 2 * (color & 255) + 5 * (color >> 8 & 255) + (color >> 16);
        keys[i] = bright << 24 | color;
    }
    keys_sort(keys, count);
    table_init(table, keys[0] & COLOR);
    for (unsigned i = 1; i < count; i++) {
        table_search(table, keys[i] & COLOR);
    }
}

bool palette_find(const uint8_t *rgb, size_t count, struct palette *palette, uint8_t *indices) {
    struct table table;
    table_init(&table, color_at(rgb));
    if (!pixels_sample(&table, rgb, count)) {
        return false;
    }
    table_sort(&table);
    if (!pixels_find(&table, rgb, count, indices)) {
        return false;
    }
    palette->count = table.count;
    for (unsigned i = 0; i < table.count; i++) {
        palette->colors[i][0] = (uint8_t)table.colors[i];
        palette->colors[i][1] = (uint8_t)(table.colors[i] >> 8);
        palette->colors[i][2] = (uint8_t)(table.colors[i] >> 16);
    }
    return true;
}
