/*
 * png_filter.h: rows of a picture as PNG stores them.
 *
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_CODECS_PNG_PNG_FILTER_H
#define KILN_COMPUTE_CODECS_PNG_PNG_FILTER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum filter { FILTER_NONE, FILTER_SUB, FILTER_UP, FILTER_AVERAGE, FILTER_PAETH, FILTER_COUNT };

/** How the filter of a row is found. */
enum filter_choice {
    FILTERS_FEW,  /* none, sub or up: whichever leaves the least sum of magnitudes */
    FILTERS_ALL,  /* of all five */
    FILTERS_ONE,  /* none, sub or up, the same for all rows of a call: for indices;
                     never with `swap` */
    FILTERS_NONE, /* none at all */
};

/** Where rows come from. */
struct png_rows {
    const uint8_t *pixels; /* height × size bytes */
    size_t size;           /* bytes of a row */
    size_t step;           /* bytes of a pixel */
    bool swap;             /* 16-bit samples in host byte order */
    enum filter_choice choice;
};

/** Room for what rows_filter keeps in hand, in bytes; 0: none needed. */
size_t rows_scratch(const struct png_rows *rows);

/** Writes rows [first, first + count), each behind the number of its filter: count × (size + 1)
    bytes. Which filters are chosen depends on these rows and the one above them alone. */
void rows_filter(const struct png_rows *rows, size_t first, size_t count, uint8_t *scratch,
                 uint8_t *out);

#endif
