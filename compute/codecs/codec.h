/*
 * codec.h: what image.c asks of each encoding. Not for use outside this folder.
 *
 * A probe reads the header alone and fills everything but the format; it checks the header against
 * itself and the size of the file, not against a limit on pixels. A decode reads the header again,
 * refuses one that differs from `info`, and stores row after row.
 *
 * Threads: reentrant. Ownership: everything is the caller's.
 */
#ifndef KILN_COMPUTE_CODECS_CODEC_H
#define KILN_COMPUTE_CODECS_CODEC_H

#include "compute/codecs/image.h"
#include "compute/codecs/samples.h"

/** An encoded image, and where to say what is wrong with it. */
struct source {
    const uint8_t *bytes;
    size_t size;
    char *why;
    size_t why_size;
};

/** Writes the sentence and returns KILN_MALFORMED. */
enum kiln_status source_broken(const struct source *source, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/** Planes that are being filled with scale * (pixel - offset). */
struct sink {
    uint32_t width, height, channels;
    enum sample sample;
    double offset, scale;
    void *planes;                /* channels × height × width */
    const struct source *source; /* where to say what is wrong */
    struct thread_pool *pool;    /* for sink_rows; NULL: none */
};

/** Stores one row with sink_samples or sink_pixels. */
typedef enum kiln_status sink_row(const struct sink *sink, uint32_t row, const void *context);

/** Stores every row, many at a time where there is a pool. The first row that is bad is the one
    that is told of. */
enum kiln_status sink_rows(const struct sink *sink, sink_row *store, const void *context);

/** Stores `count` samples of one channel's row from column x on; they lie `stride` bytes apart from
    `first` on. KILN_MALFORMED where a value is not finite or does not fit the planes' type. */
enum kiln_status sink_samples(const struct sink *sink, uint32_t row, uint32_t channel, uint32_t x,
                              uint32_t count, samples_reader *read, const uint8_t *first,
                              size_t stride);
/** Stores `count` interleaved pixels of a row from column x on; a sample has `item` bytes. */
enum kiln_status sink_pixels(const struct sink *sink, uint32_t row, uint32_t x, uint32_t count,
                             samples_reader *read, const uint8_t *pixels, size_t item);

/** Whether two headers say the same. */
bool image_info_equal(const struct image_info *a, const struct image_info *b);

enum kiln_status png_probe(const struct source *source, struct image_info *info);
enum kiln_status png_decode(const struct source *source, const struct image_info *info,
                            const struct sink *sink);
enum kiln_status pgm_probe(const struct source *source, struct image_info *info);
enum kiln_status pgm_decode(const struct source *source, const struct image_info *info,
                            const struct sink *sink);
enum kiln_status npy_probe(const struct source *source, struct image_info *info);
enum kiln_status npy_decode(const struct source *source, const struct image_info *info,
                            const struct sink *sink);

#endif
