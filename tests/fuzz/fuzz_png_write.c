/*
 * fuzz_png_write.c: any pixels through the PNG writers, read back by libpng and the same.
 *
 * An input is a header (channels and depth, size, how the rest becomes pixels) and bytes.
 */
#include "tests/fuzz/expect.h"

#define HEADER  6
#define TEXT    "fuzz"
#define SMALL   0x80 /* of the first byte: the small writer, too */
#define LARGE   0x40 /* … a picture that may have a palette or several strips */
#define REPEATS 0x40 /* of the second byte: bytes are values and how often they come */

/* Pixels out of bytes; the way is chosen by the header. */
static void pixels_make(uint8_t way, const uint8_t *data, size_t size, size_t step, uint8_t *pixels,
                        size_t bytes) {
    uint32_t state = way;
    for (size_t i = 0, at = 0; i < bytes;) {
        uint8_t value = size ? data[at % size] : 0;
        uint8_t count = way & REPEATS && size ? data[(at + 1) % size] : 0;
        at += way & REPEATS ? 2 : 1;
        for (size_t k = 0; k <= (size_t)count * step && i < bytes; k++, i++) {
            state = state * 1664525u + 1013904223u;
            pixels[i] = way % 4 == 0   ? value
                        : way % 4 == 1 ? (uint8_t)(value + i / step)       /* ramps */
                        : way % 4 == 2 ? (uint8_t)(value * (i % step + 1)) /* few colours */
                                       : (uint8_t)(state >> 24 & value);   /* noise */
        }
        if (way % 4 == 2) { /* whole pixels of one colour */
            for (; i < bytes && i % step; i++) {
                pixels[i] = (uint8_t)(value * (i % step + 1));
            }
        }
    }
}

static void file_check(const struct picture *picture, const uint8_t *file, uint64_t size) {
    char why[160];
    struct image_info info;
    size_t count = (size_t)picture->width * picture->height * picture->channels;
    int32_t *planes = malloc(count * sizeof *planes);
    uint8_t *again = malloc(count * (picture->depth / 8));
    EXPECT(planes != NULL && again != NULL);
    EXPECT(image_probe(file, size, FORMAT_PNG, EXPECT_PIXELS_MAX, &info, why, sizeof why) ==
           KILN_OK);
    EXPECT(info.width == picture->width && info.height == picture->height);
    EXPECT(info.channels == picture->channels && info.depth == picture->depth);
    EXPECT(image_read(NULL, file, size, &info, SAMPLE_INT32, 0, 1, planes, why, sizeof why) ==
           KILN_OK);
    planes_quantize(NULL, planes, SAMPLE_INT32, info.width, info.height, info.channels, info.depth,
                    0, 1, again);
    EXPECT(memcmp(again, picture->pixels, count * (picture->depth / 8)) == 0);
    free(again);
    free(planes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    static const struct image_text texts[] = {{"Software", TEXT}, {NULL, NULL}};
    if (size < HEADER) {
        return 0;
    }
    struct picture picture = {.channels = data[0] % 4 + 1u, .depth = data[0] & 4 ? 16 : 8};
    uint32_t most = data[0] & LARGE ? EXPECT_PIXELS_MAX : EXPECT_PIXELS_MAX / 16;
    picture.width = 1 + (data[2] | (uint32_t)data[3] << 8) % most;
    picture.height = 1 + (data[4] | (uint32_t)data[5] << 8) % (most / picture.width);
    size_t step = picture.channels * picture.depth / 8;
    size_t bytes = picture.width * step * picture.height;
    uint64_t bound = png_bound(picture.width, picture.height, picture.channels, picture.depth);
    uint64_t first = 0, second = 0;
    uint8_t *pixels = malloc(bytes), *file = malloc(bound), *again = malloc(bound);
    EXPECT(pixels != NULL && file != NULL && again != NULL && bound > 0);
    pixels_make(data[1], data + HEADER, size - HEADER, step, pixels, bytes);
    picture.pixels = pixels;
    EXPECT(png_write(&picture, texts, NULL, file, bound, &first) == KILN_OK && first <= bound);
    file_check(&picture, file, first);
    free(again);
    again = malloc(first); /* a file fits exactly where it fits */
    EXPECT(again);
    EXPECT(png_write(&picture, texts, NULL, again, first, &second) == KILN_OK);
    EXPECT(first == second && memcmp(file, again, first) == 0);
    EXPECT(png_write(&picture, texts, NULL, again, first - 1 - data[1] % first, &second) ==
           KILN_INTERNAL);
    if (data[0] & SMALL) {
        EXPECT(png_write_small(&picture, texts, 1 + data[1] % 9, file, bound, &second) == KILN_OK);
        file_check(&picture, file, second);
    }
    free(again);
    free(file);
    free(pixels);
    return 0;
}
