/*
 * image.c: reading images of any accepted encoding (image.h): recognition, limits, and the way of
 * decoded rows into planes. The encodings themselves are in png_read.c, pgm.c and npy_image.c.
 * Thread: any.
 */
#include "compute/codecs/image.h"

#include "compute/codecs/codec.h"
#include "compute/core/thread_pool.h"

#include <math.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

struct codec {
    enum kiln_status (*probe)(const struct source *source, struct image_info *info);
    enum kiln_status (*decode)(const struct source *source, const struct image_info *info,
                               const struct sink *sink);
};

static const struct codec codecs[FORMAT_COUNT] = {
    [FORMAT_PNG] = {.probe = png_probe, .decode = png_decode},
    [FORMAT_PGM] = {.probe = pgm_probe, .decode = pgm_decode},
    [FORMAT_NPY] = {.probe = npy_probe, .decode = npy_decode},
};

enum kiln_status source_broken(const struct source *source, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(source->why, source->why_size, format, arguments);
    va_end(arguments);
    return KILN_MALFORMED;
}

bool image_info_equal(const struct image_info *a, const struct image_info *b) {
    return a->format == b->format && a->width == b->width && a->height == b->height &&
           a->channels == b->channels && a->depth == b->depth;
}

static enum format recognise(const uint8_t *bytes, size_t size) {
    static const struct {
        const char *magic;
        size_t size;
        enum format format;
    } magics[] = {{"\x89PNG", 4, FORMAT_PNG}, {"\x93NUMPY", 6, FORMAT_NPY}, {"P2", 2, FORMAT_PGM},
                  {"P3", 2, FORMAT_PGM},      {"P5", 2, FORMAT_PGM},        {"P6", 2, FORMAT_PGM},
                  {"P7\n", 3, FORMAT_PGM}};
    for (size_t i = 0; i < sizeof magics / sizeof magics[0]; i++)
        if (size >= magics[i].size && memcmp(bytes, magics[i].magic, magics[i].size) == 0)
            return magics[i].format;
    return FORMAT_NONE;
}

enum kiln_status image_probe(const void *bytes, size_t size, enum format format,
                             uint64_t max_pixels, struct image_info *info, char *why,
                             size_t why_size) {
    struct source source = {bytes, size, why, why_size};
    memset(info, 0, sizeof *info);
    if (format == FORMAT_NONE)
        format = recognise(bytes, size);
    if ((unsigned)format >= FORMAT_COUNT || !codecs[format].probe) {
        snprintf(why, why_size, "the bytes are neither PNG, PGM, PPM, PAM nor NPY");
        return KILN_MEDIA_TYPE;
    }
    enum kiln_status status = codecs[format].probe(&source, info);
    info->format = format;
    if (status != KILN_OK)
        return status;
    uint64_t pixels = (uint64_t)info->width * info->height;
    if (pixels > max_pixels) {
        snprintf(why, why_size, "%u × %u pixels are more than this daemon's %llu (--max-pixels)",
                 info->width, info->height, (unsigned long long)max_pixels);
        return KILN_INVALID;
    }
    return KILN_OK;
}

enum kiln_status image_read(struct thread_pool *pool, const void *bytes, size_t size,
                            const struct image_info *info, enum sample sample, double offset,
                            double scale, void *planes, char *why, size_t why_size) {
    struct source source = {bytes, size, why, why_size};
    struct sink sink = {.width = info->width,
                        .height = info->height,
                        .channels = info->channels,
                        .sample = sample,
                        .offset = offset,
                        .scale = scale,
                        .planes = planes,
                        .source = &source,
                        .pool = pool};
    if ((unsigned)info->format >= FORMAT_COUNT || !codecs[info->format].decode) {
        snprintf(why, why_size, "the bytes are neither PNG, PGM, PPM, PAM nor NPY");
        return KILN_MEDIA_TYPE;
    }
    return codecs[info->format].decode(&source, info, &sink);
}

/* Stores `count` values at element `at`; returns whether all of them fit. Comparisons are such that
   NaN fails them, and are collected so that the loops stay free of branches. */
static bool store_int32(const double *values, size_t count, int32_t *out) {
    int good = 1;
    for (size_t i = 0; i < count; i++) {
        double value = values[i];
        int fits = (value >= -2147483648.5) & (value < 2147483647.5);
        out[i] = fits ? (int32_t)(value + 0x1.8p52 - 0x1.8p52) : 0; /* rounds to even */
        good &= fits;
    }
    return good;
}

static bool store_float(const double *values, size_t count, float *out) {
    int good = 1;
    for (size_t i = 0; i < count; i++) {
        out[i] = (float)values[i];
        good &= fabsf(out[i]) <= 0x1.fffffep127f;
    }
    return good;
}

static bool store_double(const double *values, size_t count, double *out) {
    int good = 1;
    for (size_t i = 0; i < count; i++) {
        out[i] = values[i];
        good &= fabs(out[i]) <= 0x1.fffffffffffffp1023;
    }
    return good;
}

enum kiln_status sink_samples(const struct sink *sink, uint32_t row, uint32_t channel, uint32_t x,
                              uint32_t count, samples_reader *read, const uint8_t *first,
                              size_t stride) {
    enum { STRETCH = 256 };
    double values[STRETCH];
    size_t at = ((size_t)channel * sink->height + row) * sink->width + x;
    for (size_t done = 0, part; done < count; done += part, at += part) {
        part = count - done < STRETCH ? count - done : STRETCH;
        read(first + done * stride, stride, part, values);
        for (size_t i = 0; i < part; i++)
            values[i] = sink->scale * (values[i] - sink->offset);
        bool good;
        if (sink->sample == SAMPLE_INT32)
            good = store_int32(values, part, (int32_t *)sink->planes + at);
        else if (sink->sample == SAMPLE_FLOAT)
            good = store_float(values, part, (float *)sink->planes + at);
        else
            good = store_double(values, part, (double *)sink->planes + at);
        if (!good)
            return source_broken(sink->source,
                                 "row %u has a value that is not finite or out of range", row);
    }
    return KILN_OK;
}

enum kiln_status sink_pixels(const struct sink *sink, uint32_t row, uint32_t x, uint32_t count,
                             samples_reader *read, const uint8_t *pixels, size_t item) {
    enum kiln_status status = KILN_OK;
    for (uint32_t channel = 0; channel < sink->channels && status == KILN_OK; channel++)
        status = sink_samples(sink, row, channel, x, count, read, pixels + channel * item,
                              item * sink->channels);
    return status;
}

/* Rows on their way. */
struct image_rows {
    const struct sink *sink;
    sink_row *store;
    const void *context;
    uint32_t each;
    atomic_bool bad;
};

static enum kiln_status rows_store(const struct sink *sink, sink_row *store, const void *context,
                                   uint32_t first, uint32_t count) {
    enum kiln_status status = KILN_OK;
    for (uint32_t i = 0; i < count && status == KILN_OK; i++)
        status = store(sink, first + i, context);
    return status;
}

static void rows_run(void *context, size_t chunk, int slot) {
    struct image_rows *rows = context;
    char why[192]; /* said again in order, by the caller */
    const struct source source = {rows->sink->source->bytes, rows->sink->source->size, why,
                                  sizeof why};
    struct sink sink = *rows->sink;
    (void)slot;
    sink.source = &source;
    uint32_t first = (uint32_t)chunk * rows->each, left = sink.height - first;
    if (rows_store(&sink, rows->store, rows->context, first,
                   left < rows->each ? left : rows->each) != KILN_OK)
        atomic_store(&rows->bad, true);
}

enum kiln_status sink_rows(const struct sink *sink, sink_row *store, const void *context) {
    enum { CHUNK = 1 << 16 }; /* samples */
    size_t row = (size_t)sink->width * sink->channels;
    uint32_t each = row >= CHUNK ? 1 : (uint32_t)(CHUNK / row);
    if (!sink->pool || sink->height <= each)
        return rows_store(sink, store, context, 0, sink->height);
    struct image_rows rows = {.sink = sink, .store = store, .context = context, .each = each};
    thread_pool_run(sink->pool, rows_run, &rows, (sink->height - 1) / each + 1);
    return atomic_load(&rows.bad) ? rows_store(sink, store, context, 0, sink->height) : KILN_OK;
}
