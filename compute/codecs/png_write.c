/*
 * png_write.c: pictures as PNG files (image.h).
 *
 * Written without libpng: the chunks are a few lines, and one call of libdeflate over the filtered
 * rows is several times faster than zlib and equally deterministic. Each row takes the filter
 * (none, sub, up) with the least sum of absolute differences, which vectorises; the dearer ones
 * gain little on rendered pictures. Thread: any.
 */
#include "compute/codecs/image.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS_MAX 8192 /* bytes reserved for text chunks, twice what callers may give */
#define IDAT_MAX  0x7fffffffu
#define LEVEL     1

/* Where the file is written; `full` once something did not fit. */
struct output {
    uint8_t *bytes;
    uint64_t capacity, at;
    bool full;
};

static void big32(uint8_t *out, uint32_t value) {
    out[0] = (uint8_t)(value >> 24);
    out[1] = (uint8_t)(value >> 16);
    out[2] = (uint8_t)(value >> 8);
    out[3] = (uint8_t)value;
}

/* Opens a chunk and returns the room for its data, NULL if there is not that much. */
static uint8_t *chunk_open(struct output *output, const char *type, uint64_t room) {
    if (output->full || room > UINT64_MAX - 12 || output->capacity - output->at < room + 12) {
        output->full = true;
        return NULL;
    }
    memcpy(output->bytes + output->at + 4, type, 4);
    return output->bytes + output->at + 8;
}

/* Closes the chunk that is open, with `size` bytes of data. */
static void chunk_close(struct output *output, uint32_t size) {
    uint8_t *chunk = output->bytes + output->at;
    big32(chunk, size);
    big32(chunk + 8 + size, libdeflate_crc32(0, chunk + 4, (size_t)size + 4));
    output->at += (uint64_t)size + 12;
}

static void header_write(struct output *output, const struct picture *picture) {
    static const uint8_t colors[] = {0, 0, 4, 2, 6}; /* by channels */
    if (output->capacity < 8) {
        output->full = true;
        return;
    }
    memcpy(output->bytes, "\x89PNG\r\n\x1a\n", 8);
    output->at = 8;
    uint8_t *data = chunk_open(output, "IHDR", 13);
    if (!data)
        return;
    big32(data, picture->width);
    big32(data + 4, picture->height);
    data[8] = (uint8_t)picture->depth;
    data[9] = colors[picture->channels];
    memset(data + 10, 0, 3);
    chunk_close(output, 13);
}

static void texts_write(struct output *output, const struct image_text *texts) {
    for (; texts && texts->key; texts++) {
        size_t key = strlen(texts->key), value = strlen(texts->value);
        uint8_t *data = chunk_open(output, "tEXt", (uint64_t)key + 1 + value);
        if (!data)
            return;
        memcpy(data, texts->key, key + 1);
        memcpy(data + key + 1, texts->value, value);
        chunk_close(output, (uint32_t)(key + 1 + value));
    }
}

static uint32_t magnitude(uint8_t difference) {
    return difference < 128 ? difference : 256u - difference;
}

/* Sums over a row what each filter would leave, as if the bytes were signed. `step`: bytes of a
   pixel; `above` is NULL in the first row. Sums fit: a row has at most 2^31 bytes. */
static unsigned filter_choose(const uint8_t *row, const uint8_t *above, size_t size, size_t step) {
    uint64_t none = 0, sub = 0, up = 0;
    enum { STRETCH = 4096 };
    for (size_t start = 0; start < size; start += STRETCH) {
        size_t end = size - start < STRETCH ? size : start + STRETCH;
        uint32_t part[3] = {0};
        for (size_t i = start; i < end; i++)
            part[0] += magnitude(row[i]);
        for (size_t i = start < step ? step : start; i < end; i++)
            part[1] += magnitude((uint8_t)(row[i] - row[i - step]));
        for (size_t i = start; above && i < end; i++)
            part[2] += magnitude((uint8_t)(row[i] - above[i]));
        none += part[0];
        sub += part[1];
        up += part[2];
    }
    if (above && up <= sub && up <= none)
        return 2;
    return sub < none ? 1 : 0;
}

static void filter_apply(unsigned filter, const uint8_t *row, const uint8_t *above, size_t size,
                         size_t step, uint8_t *out) {
    *out++ = (uint8_t)filter;
    if (filter == 0) {
        memcpy(out, row, size);
    } else if (filter == 1) {
        memcpy(out, row, step);
        for (size_t i = step; i < size; i++)
            out[i] = (uint8_t)(row[i] - row[i - step]);
    } else {
        for (size_t i = 0; i < size; i++)
            out[i] = (uint8_t)(row[i] - above[i]);
    }
}

/* Rows as PNG stores them: big-endian, each behind its filter's number. `lines` holds two rows. */
static void rows_filter(const struct picture *picture, size_t row_size, uint8_t *lines,
                        uint8_t *out) {
    const uint8_t *above = NULL;
    size_t step = picture->channels * (picture->depth / 8);
    for (uint32_t y = 0; y < picture->height; y++) {
        const uint8_t *row = (const uint8_t *)picture->pixels + y * row_size;
        if (picture->depth == 16) {
            const uint16_t *samples = (const uint16_t *)picture->pixels + y * (row_size / 2);
            uint8_t *line = lines + (y & 1) * row_size;
            for (size_t i = 0; i < row_size / 2; i++) {
                line[2 * i] = (uint8_t)(samples[i] >> 8);
                line[2 * i + 1] = (uint8_t)samples[i];
            }
            row = line;
        }
        filter_apply(filter_choose(row, above, row_size, step), row, above, row_size, step, out);
        out += row_size + 1;
        above = row;
    }
}

/* Bytes of the filtered rows; 0 on overflow. */
static uint64_t rows_size(uint32_t width, uint32_t height, uint32_t channels, uint32_t depth) {
    uint64_t row = (uint64_t)width * channels * (depth / 8), total;
    if (row >= IDAT_MAX || __builtin_mul_overflow(row + 1, (uint64_t)height, &total))
        return 0;
    return total;
}

uint64_t png_bound(uint32_t width, uint32_t height, uint32_t channels, uint32_t depth) {
    uint64_t rows = rows_size(width, height, channels, depth);
    if (rows == 0 || rows >= IDAT_MAX)
        return 0;
    uint64_t data = libdeflate_zlib_compress_bound(NULL, (size_t)rows);
    if (data > IDAT_MAX)
        return 0;
    return 8 + 25 + TEXTS_MAX + 12 + data + 12;
}

static enum kiln_status pixels_write(struct output *output, const struct picture *picture) {
    enum kiln_status status = KILN_NO_MEMORY;
    size_t row_size = (size_t)picture->width * picture->channels * (picture->depth / 8);
    size_t total =
        (size_t)rows_size(picture->width, picture->height, picture->channels, picture->depth);
    size_t lines = picture->depth == 16 ? 2 * row_size : 0;
    uint8_t *rows = malloc(total + lines);
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(LEVEL);
    if (!rows || !compressor)
        goto out;
    status = KILN_INTERNAL;
    rows_filter(picture, row_size, rows + total, rows);
    uint8_t *data = chunk_open(output, "IDAT", 0);
    if (!data)
        goto out;
    uint64_t room = output->capacity - output->at - 12;
    size_t size = libdeflate_zlib_compress(compressor, rows, total, data,
                                           room < IDAT_MAX ? (size_t)room : IDAT_MAX);
    if (size == 0)
        goto out;
    chunk_close(output, (uint32_t)size);
    status = KILN_OK;
out:
    libdeflate_free_compressor(compressor);
    free(rows);
    return status;
}

enum kiln_status png_write(const struct picture *picture, const struct image_text *texts,
                           uint8_t *out, uint64_t capacity, uint64_t *size) {
    struct output output = {.bytes = out, .capacity = capacity};
    if (png_bound(picture->width, picture->height, picture->channels, picture->depth) == 0)
        return KILN_INTERNAL;
    header_write(&output, picture);
    texts_write(&output, texts);
    if (output.full)
        return KILN_INTERNAL;
    enum kiln_status status = pixels_write(&output, picture);
    if (status == KILN_OK && chunk_open(&output, "IEND", 0))
        chunk_close(&output, 0);
    if (status == KILN_OK && output.full)
        status = KILN_INTERNAL;
    *size = output.at;
    return status;
}
