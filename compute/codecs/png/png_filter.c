/*
 * png_filter.c: the filters of PNG and their choice (png_filter.h).
 *
 * Loops run over bytes that do not depend on one another, so that they vectorise. To choose, every
 * candidate is applied to a stretch that stays in the first-level cache, and what it leaves is
 * added up as if the bytes were signed. Thread: any.
 */
#include "compute/codecs/png/png_filter.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define STRETCH  1024 /* bytes filtered for their sum at a time */
#define SAMPLING 4    /* one row in so many decides for all */

/* Each filters `size` bytes that have a pixel to the left and, but for none and sub, a row above.
 */
typedef void filter_fn(const uint8_t *row, const uint8_t *above, size_t size, size_t step,
                       uint8_t *restrict out);

static void none_apply(const uint8_t *row, const uint8_t *above, size_t size, size_t step,
                       uint8_t *restrict out) {
    (void)above, (void)step;
    memcpy(out, row, size);
}

static void sub_apply(const uint8_t *row, const uint8_t *above, size_t size, size_t step,
                      uint8_t *restrict out) {
    const uint8_t *left = row - step;
    (void)above;
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(row[i] - left[i]);
}

static void up_apply(const uint8_t *row, const uint8_t *above, size_t size, size_t step,
                     uint8_t *restrict out) {
    (void)step;
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(row[i] - above[i]);
}

static void average_apply(const uint8_t *row, const uint8_t *above, size_t size, size_t step,
                          uint8_t *restrict out) {
    const uint8_t *left = row - step;
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(row[i] - (left[i] + above[i]) / 2);
}

static int16_t distance(int16_t a, int16_t b) {
    int16_t difference = (int16_t)(a - b);
    return difference < 0 ? (int16_t)-difference : difference;
}

static uint8_t paeth(int16_t left, int16_t up, int16_t corner) {
    int16_t guess = (int16_t)(left + up - corner);
    int16_t to_left = distance(guess, left), to_up = distance(guess, up);
    int16_t to_corner = distance(guess, corner);
    int16_t best = to_up <= to_corner ? up : corner;
    return (uint8_t)(to_left <= to_up && to_left <= to_corner ? left : best);
}

static void paeth_apply(const uint8_t *row, const uint8_t *above, size_t size, size_t step,
                        uint8_t *restrict out) {
    const uint8_t *left = row - step, *corner = above - step;
    for (size_t i = 0; i < size; i++)
        out[i] = (uint8_t)(row[i] - paeth(left[i], above[i], corner[i]));
}

static filter_fn *const filters[FILTER_COUNT] = {none_apply, sub_apply, up_apply, average_apply,
                                                 paeth_apply};

/* A whole row; its first pixel has nothing to the left, which counts as zeros. */
static void row_filter(enum filter filter, const uint8_t *row, const uint8_t *above, size_t size,
                       size_t step, uint8_t *out) {
    for (size_t i = 0; i < step; i++) {
        unsigned up = filter >= FILTER_UP ? above[i] : 0; /* Paeth takes it, average half of it */
        out[i] = (uint8_t)(row[i] - (filter == FILTER_AVERAGE ? up / 2 : up));
    }
    filters[filter](row + step, above ? above + step : NULL, size - step, step, out + step);
}

static uint64_t magnitudes_sum(const uint8_t *bytes, size_t size) {
    uint64_t sum = 0;
    size_t i = 0;
#if defined(__SSE2__)
    const __m128i zero = _mm_setzero_si128();
    __m128i sums = zero;
    for (; i + 16 <= size; i += 16) {
        __m128i here = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i));
        __m128i least = _mm_min_epu8(here, _mm_sub_epi8(zero, here));
        sums = _mm_add_epi64(sums, _mm_sad_epu8(least, zero));
    }
    uint64_t halves[2];
    memcpy(halves, &sums, 16);
    sum = halves[0] + halves[1];
#endif
    for (; i < size; i++)
        sum += bytes[i] < 128 ? bytes[i] : 256u - bytes[i];
    return sum;
}

/* Adds what each of `count` filters leaves of a row. The first pixel does not count. */
static void row_weigh(const uint8_t *row, const uint8_t *above, size_t size, size_t step,
                      unsigned count, uint64_t *sums) {
    uint8_t left[STRETCH];
    for (size_t at = step; at < size; at += STRETCH) {
        size_t part = size - at < STRETCH ? size - at : STRETCH;
        sums[FILTER_NONE] += magnitudes_sum(row + at, part);
        for (unsigned filter = FILTER_SUB; filter < count; filter++) {
            filters[filter](row + at, above ? above + at : NULL, part, step, left);
            sums[filter] += magnitudes_sum(left, part);
        }
    }
}

/* The least sum; of equals the last one. */
static enum filter filter_least(const uint64_t *sums, unsigned count) {
    unsigned best = 0;
    for (unsigned filter = 1; filter < count; filter++)
        if (sums[filter] <= sums[best])
            best = filter;
    return (enum filter)best;
}

size_t rows_scratch(const struct png_rows *rows) {
    return rows->swap ? 2 * rows->size : 0;
}

/* A row in the byte order of PNG; it stays until the one after the next is asked for. */
static const uint8_t *row_take(const struct png_rows *rows, size_t y, uint8_t *scratch) {
    const uint8_t *row = rows->pixels + y * rows->size;
    if (!rows->swap)
        return row;
    uint8_t *line = scratch + (y & 1) * rows->size;
    for (size_t i = 0; i < rows->size; i += 2) {
        uint16_t sample;
        memcpy(&sample, row + i, 2);
        line[i] = (uint8_t)(sample >> 8);
        line[i + 1] = (uint8_t)sample;
    }
    return line;
}

/* One filter for the rows, by a sample of them that have a row above. */
static enum filter rows_choose(const struct png_rows *rows, size_t first, size_t count) {
    uint64_t sums[FILTER_COUNT] = {0};
    for (size_t y = first + (first == 0); y < first + count; y += SAMPLING) {
        const uint8_t *row = rows->pixels + y * rows->size;
        row_weigh(row, row - rows->size, rows->size, rows->step, FILTER_UP + 1, sums);
    }
    return filter_least(sums, FILTER_UP + 1);
}

static enum filter row_choose(const struct png_rows *rows, const uint8_t *row,
                              const uint8_t *above) {
    uint64_t sums[FILTER_COUNT] = {0};
    unsigned count = rows->choice == FILTERS_ALL ? FILTER_COUNT : FILTER_UP + 1;
    if (!above)
        count = FILTER_SUB + 1;
    row_weigh(row, above, rows->size, rows->step, count, sums);
    return filter_least(sums, count);
}

void rows_filter(const struct png_rows *rows, size_t first, size_t count, uint8_t *scratch,
                 uint8_t *out) {
    enum filter filter = FILTER_NONE, common = FILTER_NONE;
    const uint8_t *above = first > 0 ? row_take(rows, first - 1, scratch) : NULL;
    if (rows->choice == FILTERS_ONE)
        common = rows_choose(rows, first, count);
    for (size_t y = first; y < first + count; y++) {
        const uint8_t *row = row_take(rows, y, scratch);
        if (rows->choice == FILTERS_FEW || rows->choice == FILTERS_ALL)
            filter = row_choose(rows, row, above);
        else
            filter = above || common != FILTER_UP ? common : FILTER_SUB;
        *out = (uint8_t)filter;
        row_filter(filter, row, above, rows->size, rows->step, out + 1);
        out += rows->size + 1;
        above = row;
    }
}
