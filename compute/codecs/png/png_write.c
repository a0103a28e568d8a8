/*
 * png_write.c: pictures as PNG files (image.h).
 *
 * Written without libpng. RGB pictures of at most 256 colours, which is what a colormap gives, go
 * as indices into a palette: a third of the bytes to filter and to code. The fast way makes strips
 * of rows (png_strip.h) on as many threads as the pool lends; the small way leaves all rows to
 * libdeflate at once. Both are deterministic and the same on every machine.
 * Thread: any.
 */
#include "compute/codecs/image.h"

#include "compute/codecs/png/png_chunk.h"
#include "compute/codecs/png/png_palette.h"
#include "compute/codecs/png/png_strip.h"
#include "compute/core/thread_pool.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#define TEXTS_MAX          8192 /* bytes reserved for text chunks, twice what callers may give */
#define ZLIB_HEADER        2
#define ZLIB_TRAILER       4
#define PALETTE_PIXELS_MIN 4096 /* fewer would not earn the palette back */

/* A picture on its way into a file. */
struct png_source {
    const struct picture *picture;
    uint8_t *indices; /* made here; NULL: none */
    bool indexed;     /* the rows are indices into `palette` */
    struct palette palette;
    struct png_rows rows;
};

/* Bytes of the filtered rows; 0 on overflow. */
static uint64_t rows_size(uint32_t width, uint32_t height, uint32_t channels, uint32_t depth) {
    uint64_t row = (uint64_t)width * channels * (depth / 8), total;
    if (row >= CHUNK_MAX || __builtin_mul_overflow(row + 1, (uint64_t)height, &total))
        return 0;
    return total;
}

/* Bytes of all strips, with what the zlib stream has around them. */
static uint64_t strips_bound(uint64_t row_size, uint32_t height, bool indexed) {
    uint64_t each = strip_rows(row_size, height, indexed);
    uint64_t whole = height / each, left = height % each;
    uint64_t size = whole * strip_bound(row_size, each, indexed);
    if (left > 0)
        size += strip_bound(row_size, left, indexed);
    return size + ZLIB_HEADER + ZLIB_TRAILER;
}

uint64_t png_bound(uint32_t width, uint32_t height, uint32_t channels, uint32_t depth) {
    uint64_t rows = rows_size(width, height, channels, depth);
    if (rows == 0 || rows >= CHUNK_MAX)
        return 0;
    /* One channel may be indices, in smaller strips. What RGB saves as indices is more than that.
     */
    uint64_t fast = strips_bound(rows / height - 1, height, channels == 1 && depth == 8);
    uint64_t small = libdeflate_zlib_compress_bound(NULL, (size_t)rows) + CHUNK;
    uint64_t data = fast > small ? fast : small;
    if (data > CHUNK_MAX)
        return 0;
    /* A palette takes 780 bytes at most, and saves twice PALETTE_PIXELS_MIN. */
    return 8 + CHUNK + 13 + TEXTS_MAX + CHUNK + data + CHUNK;
}

static enum kiln_status source_init(struct png_source *source, const struct picture *picture) {
    size_t pixels = (size_t)picture->width * picture->height;
    size_t step = picture->channels * (picture->depth / 8);
    *source = (struct png_source){.picture = picture,
                                  .rows = {.pixels = picture->pixels,
                                           .size = picture->width * step,
                                           .step = step,
                                           .swap = picture->depth == 16}};
    if (picture->palette) {
        source->indexed = true;
        source->palette.count = 256;
        memcpy(source->palette.colors, picture->palette, 3 * 256);
        return KILN_OK;
    }
    if (picture->channels != 3 || picture->depth != 8 || pixels < PALETTE_PIXELS_MIN)
        return KILN_OK;
    source->indices = malloc(pixels);
    if (!source->indices)
        return KILN_NO_MEMORY;
    if (palette_find(picture->pixels, pixels, &source->palette, source->indices)) {
        source->indexed = true;
        source->rows.pixels = source->indices;
        source->rows.size = picture->width;
        source->rows.step = 1;
    } else {
        free(source->indices);
        source->indices = NULL;
    }
    return KILN_OK;
}

static void source_finish(struct png_source *source) {
    free(source->indices);
}

/* Strips on their way. Each is compressed where it could start if all before it were as long as
   they can be, and then moved up to the end of the one before. */
struct strips {
    const struct png_rows *rows;
    bool indexed;
    size_t height, each, count;
    uint8_t *base;  /* where the data of the first may start */
    uint64_t pitch; /* from one to the next */
    struct strip {
        size_t size;    /* 0: it did not fit */
        uint32_t adler; /* of its rows alone */
    } * strip;
    struct strip_scratch **scratch; /* one a thread */
};

static size_t strip_count(const struct strips *strips, size_t index) {
    size_t left = strips->height - index * strips->each;
    return left < strips->each ? left : strips->each;
}

static void strip_run(void *context, size_t index, int slot) {
    const struct strips *strips = context;
    struct strip *strip = &strips->strip[index];
    strip->adler = 1;
    strip->size = strip_write(strips->rows, index * strips->each, strip_count(strips, index),
                              strips->indexed, index + 1 == strips->count, strips->scratch[slot],
                              &strip->adler, strips->base + index * strips->pitch, strips->pitch);
}

/* Adler-32 of two runs of bytes, one behind the other, the second of `size` (RFC 1950). */
static uint32_t adler_join(uint32_t first, uint32_t second, uint64_t size) {
    const uint32_t base = 65521;
    uint64_t a = first & 0xffff, b = first >> 16;
    uint64_t sum = (a + (second & 0xffff) + base - 1) % base;
    uint64_t sums = (b + (second >> 16) + size % base * ((a + base - 1) % base)) % base;
    return (uint32_t)(sums << 16 | sum);
}

/* All strips as one chunk, with what the zlib stream has around them. */
static enum kiln_status strips_put(struct output *output, const struct strips *strips) {
    uint64_t size = ZLIB_HEADER + ZLIB_TRAILER;
    uint32_t adler = 1;
    for (size_t i = 0; i < strips->count; i++) {
        if (strips->strip[i].size == 0)
            return KILN_INTERNAL;
        size += strips->strip[i].size;
    }
    uint8_t *data = chunk_open(output, "IDAT", size);
    if (!data || size > CHUNK_MAX)
        return KILN_INTERNAL;
    uint8_t *at = data + ZLIB_HEADER;
    for (size_t i = 0; i < strips->count; i++) {
        const struct strip *strip = &strips->strip[i];
        memmove(at, strips->base + i * strips->pitch, strip->size);
        at += strip->size;
        adler = adler_join(adler, strip->adler,
                           (uint64_t)strip_count(strips, i) * (strips->rows->size + 1));
    }
    memcpy(data, "\x78\x01", ZLIB_HEADER);
    big32(at, adler);
    chunk_close(output, (uint32_t)size);
    return KILN_OK;
}

/* Scratch for every thread of the pool, and the strips' records. */
static enum kiln_status strips_init(struct strips *strips, int width) {
    strips->strip = calloc(strips->count, sizeof *strips->strip);
    strips->scratch = calloc((size_t)width, sizeof *strips->scratch);
    if (!strips->strip || !strips->scratch)
        return KILN_NO_MEMORY;
    for (int i = 0; i < width; i++)
        if (!(strips->scratch[i] = strip_scratch_create(strips->rows, strips->each)))
            return KILN_NO_MEMORY;
    return KILN_OK;
}

static void strips_finish(struct strips *strips, int width) {
    for (int i = 0; strips->scratch && i < width; i++)
        strip_scratch_destroy(strips->scratch[i]);
    free(strips->scratch);
    free(strips->strip);
}

static void strips_run(struct strips *strips, struct thread_pool *pool) {
    if (pool)
        thread_pool_run(pool, strip_run, strips, strips->count);
    else
        for (size_t i = 0; i < strips->count; i++)
            strip_run(strips, i, 0);
}

/* Room for all strips at their longest, or the caller's buffer is not as large as png_bound. */
static uint8_t *staging(const struct output *output, const struct strips *strips, uint8_t **own) {
    uint64_t head = CHUNK_DATA + ZLIB_HEADER, room = output->capacity - output->at;
    uint64_t size = strips->count * strips->pitch;
    if (room > head && room - head >= size)
        return output->bytes + output->at + head;
    return *own = malloc(size);
}

static enum kiln_status fast_write(struct output *output, struct png_source *source,
                                   struct thread_pool *pool) {
    uint8_t *own = NULL;
    size_t size = source->rows.size;
    source->rows.choice = source->indexed ? FILTERS_ONE : FILTERS_FEW;
    struct strips strips = {
        .rows = &source->rows, .indexed = source->indexed, .height = source->picture->height};
    strips.each = strip_rows(size, strips.height, strips.indexed);
    strips.each = strips.each < strips.height ? strips.each : strips.height;
    strips.count = (strips.height + strips.each - 1) / strips.each;
    strips.pitch = strip_bound(size, strips.each, strips.indexed);
    pool = strips.count > 1 ? pool : NULL; /* one strip needs one thread's scratch only */
    int width = pool ? thread_pool_width(pool) : 1;
    enum kiln_status status = strips_init(&strips, width);
    strips.base = staging(output, &strips, &own);
    if (!strips.base)
        status = KILN_NO_MEMORY;
    if (status == KILN_OK) {
        strips_run(&strips, pool);
        status = strips_put(output, &strips);
    }
    strips_finish(&strips, width);
    free(own);
    return status;
}

/* All rows, filtered in this way, as a zlib stream; 0 if it does not fit. */
static size_t rows_deflate(struct libdeflate_compressor *compressor, struct png_source *source,
                           enum filter_choice choice, uint8_t *filtered, uint8_t *out,
                           size_t room) {
    size_t size = (source->rows.size + 1) * source->picture->height;
    source->rows.choice = choice;
    rows_filter(&source->rows, 0, source->picture->height, filtered + size, filtered);
    return libdeflate_zlib_compress(compressor, filtered, size, out, room);
}

/* Indices are often smaller without a filter, so both ways are tried. */
static enum kiln_status small_write(struct output *output, struct png_source *source, int level) {
    enum kiln_status status = KILN_NO_MEMORY;
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(level);
    uint8_t *other = NULL, *filtered = malloc((source->rows.size + 1) * source->picture->height +
                                              rows_scratch(&source->rows));
    if (!compressor || !filtered)
        goto out;
    status = KILN_INTERNAL;
    uint8_t *data = chunk_open(output, "IDAT", 0);
    if (!data)
        goto out;
    uint64_t room = output->capacity - output->at - CHUNK;
    size_t size = rows_deflate(compressor, source, source->indexed ? FILTERS_NONE : FILTERS_ALL,
                               filtered, data, room < CHUNK_MAX ? (size_t)room : CHUNK_MAX);
    if (size == 0)
        goto out;
    if (source->indexed) {
        status = KILN_NO_MEMORY;
        if (!(other = malloc(size)))
            goto out;
        size_t again = rows_deflate(compressor, source, FILTERS_ONE, filtered, other, size - 1);
        if (again > 0)
            memcpy(data, other, size = again);
    }
    chunk_close(output, (uint32_t)size);
    status = KILN_OK;
out:
    free(other);
    free(filtered);
    libdeflate_free_compressor(compressor);
    return status;
}

/* The file; level 0 is the fast way. */
static enum kiln_status file_write(const struct picture *picture, const struct image_text *texts,
                                   int level, struct thread_pool *pool, uint8_t *out,
                                   uint64_t capacity, uint64_t *size) {
    struct output output = {.bytes = out, .capacity = capacity};
    struct png_source source;
    if (png_bound(picture->width, picture->height, picture->channels, picture->depth) == 0)
        return KILN_INTERNAL;
    enum kiln_status status = source_init(&source, picture);
    if (status != KILN_OK)
        return status;
    head_write(&output, picture, texts, source.palette.colors[0],
               source.indexed ? source.palette.count : 0);
    if (output.full)
        status = KILN_INTERNAL;
    else
        status = level ? small_write(&output, &source, level) : fast_write(&output, &source, pool);
    if (status == KILN_OK)
        status = tail_write(&output);
    *size = output.at;
    source_finish(&source);
    return status;
}

enum kiln_status png_write(const struct picture *picture, const struct image_text *texts,
                           struct thread_pool *pool, uint8_t *out, uint64_t capacity,
                           uint64_t *size) {
    return file_write(picture, texts, 0, pool, out, capacity, size);
}

enum kiln_status png_write_small(const struct picture *picture, const struct image_text *texts,
                                 int level, uint8_t *out, uint64_t capacity, uint64_t *size) {
    return file_write(picture, texts,
                      level < 1    ? 1
                      : level > 12 ? 12
                                   : level,
                      NULL, out, capacity, size);
}
