/*
 * expect.h: what every fuzz target needs: a check that stays in release builds, and the way of an
 * image through probe, read, write and read again.
 */
#ifndef KILN_TESTS_FUZZ_EXPECT_H
#define KILN_TESTS_FUZZ_EXPECT_H

#include "compute/codecs/image.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** Ends the process where the condition does not hold. */
#define EXPECT(condition)                                                                          \
    do {                                                                                           \
        if (!(condition)) {                                                                        \
            fprintf(stderr, "%s:%d: not true: %s\n", __FILE__, __LINE__, #condition);              \
            abort();                                                                               \
        }                                                                                          \
    } while (0)

#define EXPECT_PIXELS_MAX (1u << 14)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/** Whether `why` says something and is ended. */
static inline bool why_good(const char *why, size_t why_size) {
    return why[0] != '\0' && memchr(why, '\0', why_size) != NULL;
}

/** Writes integer planes with the given writer and reads them back the same. */
static inline void image_write_check(const struct image_info *info, const int32_t *planes,
                                     uint64_t bound,
                                     enum kiln_status (*write)(const struct picture *, uint8_t *,
                                                               uint64_t, uint64_t *)) {
    char why[160];
    uint64_t size = 0;
    size_t count = (size_t)info->width * info->height * info->channels;
    struct image_info again;
    uint8_t *file = malloc(bound);
    uint16_t *pixels = malloc(count * 2);
    int32_t *back = malloc(count * 4);
    EXPECT(file != NULL && pixels != NULL && back != NULL);
    planes_quantize(NULL, planes, SAMPLE_INT32, info->width, info->height, info->channels,
                    info->depth, 0, 1, pixels);
    struct picture picture = {info->width,
                              info->height,
                              info->channels,
                              info->depth,
                              pixels,
                              NULL,
                              info->quantum.scale != 0 ? &info->quantum : NULL};
    EXPECT(write(&picture, file, bound, &size) == KILN_OK);
    EXPECT(size <= bound);
    EXPECT(image_probe(file, size, FORMAT_NONE, EXPECT_PIXELS_MAX, &again, why, sizeof why) ==
           KILN_OK);
    EXPECT(again.width == info->width && again.height == info->height);
    EXPECT(again.channels == info->channels && again.depth == info->depth);
    EXPECT(again.quantum.offset == info->quantum.offset &&
           again.quantum.scale == info->quantum.scale && again.quantum.bits == info->quantum.bits);
    EXPECT(image_read(NULL, file, size, &again, SAMPLE_INT32, 0, 1, back, why, sizeof why) ==
           KILN_OK);
    EXPECT(memcmp(back, planes, count * 4) == 0);
    free(back);
    free(pixels);
    free(file);
}

static inline enum kiln_status png_write_plain(const struct picture *picture, uint8_t *out,
                                               uint64_t capacity, uint64_t *size) {
    return png_write(picture, NULL, NULL, out, capacity, size);
}

/** The whole way of an image of this format. */
static inline void image_check(const uint8_t *data, size_t size, enum format format) {
    char why[160] = "";
    struct image_info info;
    enum kiln_status status =
        image_probe(data, size, format, EXPECT_PIXELS_MAX, &info, why, sizeof why);
    if (status != KILN_OK) {
        EXPECT(status == KILN_MALFORMED || status == KILN_INVALID);
        EXPECT(why_good(why, sizeof why));
        return;
    }
    EXPECT(info.width > 0 && info.height > 0 && info.channels > 0 && info.channels <= 4);
    EXPECT((uint64_t)info.width * info.height <= EXPECT_PIXELS_MAX);
    size_t count = (size_t)info.width * info.height * info.channels;
    int32_t *planes = malloc(count * sizeof *planes);
    double *doubles = malloc(count * sizeof *doubles);
    EXPECT(planes != NULL && doubles != NULL);
    status = image_read(NULL, data, size, &info, SAMPLE_DOUBLE, 0, 1, doubles, why, sizeof why);
    EXPECT(status == KILN_OK || (status == KILN_MALFORMED && why_good(why, sizeof why)));
    enum kiln_status integers =
        image_read(NULL, data, size, &info, SAMPLE_INT32, 0, 1, planes, why, sizeof why);
    EXPECT(integers == KILN_MALFORMED || (integers == KILN_OK && status == KILN_OK));
    if (integers == KILN_OK && format != FORMAT_NPY) {
        for (size_t i = 0; i < count; i++) {
            EXPECT(planes[i] == doubles[i]);
        }
        image_write_check(&info, planes,
                          png_bound(info.width, info.height, info.channels, info.depth),
                          png_write_plain);
        image_write_check(&info, planes,
                          pgm_bound(info.width, info.height, info.channels, info.depth), pgm_write);
    }
    free(doubles);
    free(planes);
}

#endif
