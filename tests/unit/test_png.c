/* test_png.c: PNGs written by kiln and by libpng, read back; hostile and truncated ones. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/codecs/image.h"
#include "compute/core/thread_pool.h"

#include <libdeflate.h>
#include <png.h>
#include <stdlib.h>
#include <string.h>

static char why[192];

/* A growing file for libpng's writer. */
struct file {
    uint8_t bytes[1 << 16];
    size_t size;
};

static void file_append(png_structp png, png_bytep data, size_t size) {
    struct file *file = png_get_io_ptr(png);
    assert_true(file->size + size <= sizeof file->bytes);
    memcpy(file->bytes + file->size, data, size);
    file->size += size;
}

static uint32_t noise(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* A file of any colour type, depth and interlacing out of packed rows; tRNS where asked for. */
static void file_make(struct file *file, uint32_t width, uint32_t height, int color, int depth,
                      bool interlaced, bool transparent, uint8_t *rows, size_t row_size) {
    png_color palette[256];
    png_byte alpha[3] = {7, 8, 9};
    png_color_16 key = {.gray = 1, .red = 1, .green = 2, .blue = 3};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    file->size = 0;
    png_set_write_fn(png, file, file_append, NULL);
    png_set_IHDR(png, info, width, height, depth, color, interlaced, 0, 0);
    for (int i = 0; i < 256; i++) {
        palette[i] = (png_color){(png_byte)i, (png_byte)(2 * i), (png_byte)(255 - i)};
    }
    if (color == PNG_COLOR_TYPE_PALETTE) {
        png_set_PLTE(png, info, palette, 1 << depth);
    }
    if (transparent && color == PNG_COLOR_TYPE_PALETTE) {
        png_set_tRNS(png, info, alpha, depth == 1 ? 2 : 3, NULL);
    } else if (transparent) {
        png_set_tRNS(png, info, NULL, 0, &key);
    }
    png_write_info(png, info);
    for (int pass = png_set_interlace_handling(png); pass > 0; pass--) {
        for (uint32_t y = 0; y < height; y++) {
            png_write_row(png, rows + y * row_size);
        }
    }
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

/* Sample `channel` of a pixel as PNG's expansion defines it, from the packed row. */
static int expected(const uint8_t *row, uint32_t x, int color, int depth, bool transparent,
                    uint32_t channel) {
    int stored = color == PNG_COLOR_TYPE_RGB          ? 3
                 : color == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
                 : color == PNG_COLOR_TYPE_RGB_ALPHA  ? 4
                                                      : 1;
    int sample[4] = {0};
    for (int c = 0; c < stored; c++) {
        size_t bit = ((size_t)x * (size_t)stored + (size_t)c) * (size_t)depth;
        sample[c] = depth == 16 ? row[bit / 8] << 8 | row[bit / 8 + 1]
                                : row[bit / 8] >> (8 - depth - (int)(bit % 8)) & ((1 << depth) - 1);
    }
    int full = depth == 16 ? 65535 : 255;
    if (color == PNG_COLOR_TYPE_PALETTE) {
        int alpha = sample[0] < (depth == 1 ? 2 : 3) ? 7 + sample[0] : 255;
        int rgba[4] = {sample[0], (uint8_t)(2 * sample[0]), 255 - sample[0], alpha};
        return rgba[channel];
    }
    if ((int)channel < stored) {
        return depth < 8 ? sample[channel] * 255 / ((1 << depth) - 1) : sample[channel];
    }
    assert_true(transparent);
    bool keyed = stored == 1 ? sample[0] == 1 : sample[0] == 1 && sample[1] == 2 && sample[2] == 3;
    return keyed ? 0 : full;
}

static void variant_check(uint32_t width, uint32_t height, int color, int depth, bool interlaced,
                          bool transparent) {
    static struct file file;
    static uint8_t rows[1 << 15];
    static int32_t planes[1 << 13];
    uint32_t state = 7;
    uint32_t stored = color == PNG_COLOR_TYPE_RGB          ? 3
                      : color == PNG_COLOR_TYPE_GRAY_ALPHA ? 2
                      : color == PNG_COLOR_TYPE_RGB_ALPHA  ? 4
                                                           : 1;
    uint32_t channels = (color == PNG_COLOR_TYPE_PALETTE ? 3 : stored) + transparent;
    size_t row_size = ((size_t)width * stored * (size_t)depth + 7) / 8;
    for (size_t i = 0; i < row_size * height; i++) {
        rows[i] = (uint8_t)noise(&state);
    }
    if (transparent && depth == 8 && color == PNG_COLOR_TYPE_RGB) {
        memcpy(rows, "\1\2\3", 3);
    }
    file_make(&file, width, height, color, depth, interlaced, transparent, rows, row_size);

    struct image_info info;
    assert_int_equal(image_probe(file.bytes, file.size, FORMAT_NONE, 1 << 11, &info, why, 192),
                     KILN_OK);
    assert_int_equal(info.format, FORMAT_PNG);
    assert_int_equal(info.width, width);
    assert_int_equal(info.height, height);
    assert_int_equal(info.channels, channels);
    assert_int_equal(info.depth, depth == 16 ? 16 : 8);
    if (image_read(NULL, file.bytes, file.size, &info, SAMPLE_INT32, 0, 1, planes, why, 192) !=
        KILN_OK) {
        fail_msg("color %d depth %d: %s", color, depth, why);
    }
    for (uint32_t c = 0; c < channels; c++) {
        for (uint32_t y = 0; y < height; y++) {
            for (uint32_t x = 0; x < width; x++) {
                assert_int_equal(planes[(c * height + y) * width + x],
                                 expected(rows + y * row_size, x, color, depth, transparent, c));
            }
        }
    }
}

static void test_variants(void **state) {
    static const int variants[][2] = {{0, 1}, {0, 2},  {0, 4},  {0, 8}, {0, 16},
                                      {2, 8}, {2, 16}, {3, 1},  {3, 2}, {3, 4},
                                      {3, 8}, {4, 8},  {4, 16}, {6, 8}, {6, 16}};
    (void)state;
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            for (int transparent = 0; transparent < (variants[i][0] <= 3 ? 2 : 1); transparent++) {
                variant_check(1, 1, variants[i][0], variants[i][1], interlaced, transparent);
                variant_check(37, 19, variants[i][0], variants[i][1], interlaced, transparent);
            }
        }
    }
}

/* Pictures of several characters, so that every filter gets its turn. */
static void picture_fill(uint8_t *pixels, size_t size, size_t row_size, int kind) {
    uint32_t state = (uint32_t)kind;
    for (size_t i = 0; i < size; i++) {
        pixels[i] = kind == 0   ? 0
                    : kind == 1 ? (uint8_t)noise(&state)
                    : kind == 2 ? (uint8_t)(i % row_size)
                                : (uint8_t)(i / row_size * 3 + noise(&state) % 2);
    }
}

/* Reads a file back and compares it with the picture that it was made of. */
static void file_check(const struct picture *picture, const uint8_t *file, uint64_t size) {
    struct image_info info;
    size_t pixels = (size_t)picture->width * picture->height;
    int32_t *planes = malloc(pixels * picture->channels * sizeof *planes);
    assert_non_null(planes);
    assert_int_equal(image_probe(file, size, FORMAT_PNG, 1 << 20, &info, why, 192), KILN_OK);
    assert_int_equal(info.width, picture->width);
    assert_int_equal(info.height, picture->height);
    assert_int_equal(info.channels, picture->channels);
    assert_int_equal(info.depth, picture->depth);
    if (image_read(NULL, file, size, &info, SAMPLE_INT32, 0, 1, planes, why, 192)) {
        fail_msg("%s", why);
    }
    for (uint32_t c = 0; c < info.channels; c++) {
        for (size_t i = 0; i < pixels; i++) {
            size_t place = i * info.channels + c;
            assert_int_equal(planes[c * pixels + i],
                             info.depth == 16 ? ((const uint16_t *)picture->pixels)[place]
                                              : ((const uint8_t *)picture->pixels)[place]);
        }
    }
    free(planes);
}

/* Both writers, within the bound; the size of the fast one's file. */
static uint64_t writers_check(const struct picture *picture) {
    static const struct image_text texts[] = {{"Software", "kiln"}, {"Empty", ""}, {NULL, NULL}};
    uint64_t fast = 0, small = 0;
    uint64_t bound = png_bound(picture->width, picture->height, picture->channels, picture->depth);
    uint8_t *out = malloc(bound);
    assert_true(out != NULL && bound > 0);
    assert_int_equal(png_write_small(picture, texts, 9, out, bound, &small), KILN_OK);
    file_check(picture, out, small);
    assert_int_equal(png_write(picture, texts, NULL, out, bound, &fast), KILN_OK);
    file_check(picture, out, fast);
    assert_int_equal(png_write(picture, texts, NULL, out, fast, &small), KILN_OK); /* just enough */
    assert_int_equal(small, fast);
    assert_int_equal(png_write(picture, texts, NULL, out, fast - 1, &small), KILN_INTERNAL);
    free(out);
    return fast;
}

static void test_write(void **state) {
    static const uint32_t sizes[][2] = {{1, 1}, {1, 40}, {40, 1}, {33, 29}};
    static uint16_t words[33 * 29 * 4];
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            for (uint32_t channels = 1; channels <= 4; channels++) {
                for (uint32_t depth = 8; depth <= 16; depth += 8) {
                    uint32_t width = sizes[s][0], height = sizes[s][1];
                    size_t row = (size_t)width * channels * (depth / 8);
                    struct picture picture = {width, height, channels, depth, words, NULL, NULL};
                    picture_fill((uint8_t *)words, row * height, row, kind);
                    writers_check(&picture);
                }
            }
        }
    }
}

/* Pictures of several strips, one whose rows are strips, one whose row is several blocks. */
static void test_write_large(void **state) {
    static const uint32_t sizes[][2] = {{301, 290}, {70000, 3}, {2, 30000}};
    static uint8_t pixels[70000 * 3 * 8];
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
            for (uint32_t depth = 8; depth <= 16; depth += 8) {
                uint32_t channels = kind % 2 ? 3 : 4;
                size_t row = (size_t)sizes[s][0] * channels * (depth / 8);
                struct picture picture = {sizes[s][0], sizes[s][1], channels, depth,
                                          pixels,      NULL,        NULL};
                picture_fill(pixels, row * sizes[s][1], row, kind);
                uint64_t size = writers_check(&picture);
                assert_true(kind != 0 || size < row * sizes[s][1] / 6);
                assert_true(size < (row + 1) * sizes[s][1] * 1001 / 1000 + 2000);
            }
        }
    }
}

/* Colours come as they are in palettes, where there are few and enough pixels. */
static void test_write_palette(void **state) {
    static uint8_t pixels[70 * 60 * 4], file[1 << 16];
    static const struct {
        uint32_t width, channels;
        unsigned colors;
        int type;
    } cases[] = {{70, 3, 1, 3},   {70, 3, 2, 3}, {70, 3, 256, 3}, {70, 3, 257, 2},
                 {68, 3, 256, 2}, {70, 4, 2, 6}, {70, 1, 200, 0}};
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint32_t channels = cases[i].channels;
        struct picture picture = {cases[i].width, 60, channels, 8, pixels, NULL, NULL};
        uint64_t size = 0;
        for (size_t k = 0; k < sizeof pixels / channels; k++) {
            uint32_t color = (uint32_t)(k / 3 % cases[i].colors) * 0x010305;
            for (size_t c = 0; c < channels; c++) {
                pixels[k * channels + c] = (uint8_t)(color >> 8 * c);
            }
        }
        writers_check(&picture);
        assert_int_equal(png_write(&picture, NULL, NULL, file, sizeof file, &size), KILN_OK);
        assert_int_equal(file[25], cases[i].type);
    }
}

/* Threads share the strips out and change no byte, in a buffer of any size. */
static void test_write_threads(void **state) {
    static const uint32_t heights[] = {1, 290, 2000};
    static uint8_t pixels[301 * 2000 * 3];
    struct thread_pool *pool = NULL;
    (void)state;
    assert_int_equal(thread_pool_create(4, &pool), KILN_OK);
    for (int kind = 0; kind < 4; kind++) {
        for (size_t i = 0; i < sizeof heights / sizeof heights[0]; i++) {
            struct picture picture = {301, heights[i], 3, 8, pixels, NULL, NULL};
            uint64_t bound = png_bound(301, heights[i], 3, 8), one = 0, many = 0;
            uint8_t *first = malloc(bound), *second = malloc(bound);
            picture_fill(pixels, (size_t)301 * 3 * heights[i], 301 * 3, kind);
            assert_int_equal(png_write(&picture, NULL, NULL, first, bound, &one), KILN_OK);
            for (int round = 0; round < 2; round++) {
                uint64_t room = round ? one : bound;
                assert_int_equal(png_write(&picture, NULL, pool, second, room, &many), KILN_OK);
                assert_int_equal(one, many);
                assert_memory_equal(first, second, one);
            }
            free(first);
            free(second);
        }
    }
    thread_pool_destroy(pool);
}

/* Indices with their palette are the picture that the palette makes of them. */
static void test_write_indices(void **state) {
    static uint8_t indices[90 * 70], palette[256 * 3], rgb[90 * 70 * 3], file[1 << 16];
    struct picture picture = {90, 70, 1, 8, indices, palette, NULL};
    struct picture colors = {90, 70, 3, 8, rgb, NULL, NULL};
    uint64_t size = 0;
    (void)state;
    picture_fill(palette, sizeof palette, 3, 2);
    picture_fill(indices, sizeof indices, 90, 1);
    for (size_t i = 0; i < sizeof indices; i++) {
        memcpy(rgb + 3 * i, palette + 3 * (size_t)indices[i], 3);
    }
    assert_int_equal(png_write(&picture, NULL, NULL, file, sizeof file, &size), KILN_OK);
    file_check(&colors, file, size);
    assert_int_equal(png_write_small(&picture, NULL, 9, file, sizeof file, &size), KILN_OK);
    file_check(&colors, file, size);
}

/* A file around a stream that came from elsewhere is the file that png_write writes. */
static void test_frame(void **state) {
    static const uint32_t sizes[][2] = {{1, 1}, {90, 70}, {32768, 2}, {300, 400}};
    static const struct image_text texts[] = {{"Parameters", "a=1"}, {NULL, NULL}};
    static uint8_t pixels[300 * 400], palette[768];
    static uint8_t whole[1 << 18], framed[1 << 18];
    (void)state;
    picture_fill(palette, sizeof palette, 3, 2);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int kind = 0; kind < 4; kind++) {
            struct picture picture = {sizes[i][0], sizes[i][1], 1, 8, pixels, palette, NULL};
            struct png_frame frame;
            uint64_t size = 0, again = 0;
            picture_fill(pixels, (size_t)sizes[i][0] * sizes[i][1], sizes[i][0], kind);
            assert_int_equal(png_write(&picture, texts, NULL, whole, sizeof whole, &size), KILN_OK);
            assert_int_equal(png_frame_open(&picture, texts, framed, size, &frame), KILN_OK);
            uint64_t stream = size - 12 - 4 - (uint64_t)(frame.data - framed);
            memcpy(frame.data, whole + (frame.data - framed), stream);
            assert_int_equal(png_frame_close(&frame, stream, &again), KILN_OK);
            assert_int_equal(size, again);
            assert_memory_equal(whole, framed, size);
            assert_int_equal(png_frame_close(&frame, stream + 1, &again), KILN_INTERNAL);
            assert_int_equal(png_frame_open(&picture, texts, framed, 850, &frame), KILN_INTERNAL);
        }
    }
}

static void test_write_texts(void **state) {
    static const struct image_text texts[] = {{"Parameters", "a=1&b=2"}, {NULL, NULL}};
    static uint8_t first[4096], second[4096];
    struct picture picture = {2, 2, 1, 8, "abcd", NULL, NULL};
    uint64_t size = 0, again = 0;
    (void)state;
    assert_int_equal(png_write(&picture, texts, NULL, first, sizeof first, &size), KILN_OK);
    assert_memory_equal(first + 37, "tEXtParameters\0a=1&b=2", 22); /* behind signature and IHDR */
    assert_int_equal(png_write(&picture, texts, NULL, second, sizeof second, &again), KILN_OK);
    assert_int_equal(size, again);
    assert_memory_equal(first, second, size);
    for (uint64_t capacity = 0; capacity < size; capacity++) {
        assert_int_equal(png_write(&picture, texts, NULL, second, capacity, &again), KILN_INTERNAL);
    }
    assert_int_equal(png_write(&picture, texts, NULL, second, size + 64, &again), KILN_OK);
    assert_int_equal(png_write(&picture, NULL, NULL, second, sizeof second, &again), KILN_OK);
    assert_int_equal(png_bound(UINT32_MAX, UINT32_MAX, 4, 16), 0);
    assert_int_equal(png_bound(1 << 20, 1 << 20, 1, 8), 0);
}

/* A valid grey 5×4 file to be broken. */
static size_t sample_make(uint8_t out[4096]) {
    struct picture picture = {5, 4, 1, 8, "abcdefghijklmnopqrst", NULL, NULL};
    uint64_t size = 0;
    assert_int_equal(png_write(&picture, NULL, NULL, out, 4096, &size), KILN_OK);
    return (size_t)size;
}

static enum kiln_status read_bytes(const uint8_t *bytes, size_t size) {
    struct image_info info;
    int32_t planes[64];
    uint8_t *copy = malloc(size ? size : 1);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    why[0] = '\0';
    enum kiln_status status = image_probe(copy, size, FORMAT_PNG, 64, &info, why, sizeof why);
    if (status == KILN_OK && (uint64_t)info.width * info.height * info.channels <= 64) {
        status = image_read(NULL, copy, size, &info, SAMPLE_INT32, 0, 1, planes, why, sizeof why);
    }
    free(copy);
    return status;
}

static void test_truncated(void **state) {
    uint8_t file[4096];
    size_t size = sample_make(file);
    (void)state;
    for (size_t i = 0; i < size; i++) {
        assert_int_equal(read_bytes(file, i), KILN_MALFORMED);
    }
    assert_int_equal(read_bytes(file, size), KILN_OK);
    assert_int_equal(read_bytes(file, size + 100), KILN_OK); /* after the end: ignored */
}

static void test_flipped(void **state) {
    uint8_t file[4096];
    size_t size = sample_make(file);
    (void)state;
    for (size_t i = 0; i < size * 8; i++) {
        file[i / 8] ^= (uint8_t)(1 << i % 8);
        enum kiln_status status = read_bytes(file, size);
        assert_true(status == KILN_MALFORMED || status == KILN_INVALID);
        file[i / 8] ^= (uint8_t)(1 << i % 8);
    }
}

static void crc_fix(uint8_t *chunk, size_t data) {
    uint32_t crc = ~0u;
    for (size_t i = 4; i < 8 + data; i++) {
        crc ^= chunk[i];
        for (int k = 0; k < 8; k++) {
            crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
        }
    }
    crc = ~crc;
    for (int i = 0; i < 4; i++) {
        chunk[8 + data + (size_t)i] = (uint8_t)(crc >> (24 - 8 * i));
    }
}

/* Headers that lie, with a right checksum. */
static void test_lying(void **state) {
    static const struct {
        size_t place;
        uint8_t value;
        enum kiln_status status;
        const char *problem;
    } cases[] = {
        {19, 0, KILN_MALFORMED, "1 to 2^31"},    /* width 0 */
        {16, 0x80, KILN_MALFORMED, "1 to 2^31"}, /* width ≥ 2^31 */
        {16, 0x7f, KILN_MALFORMED, "too short for its"},
        {20, 0x7f, KILN_MALFORMED, "too short for its"},
        {23, 5, KILN_MALFORMED, "after row"}, /* one row more than there is */
        {24, 3, KILN_MALFORMED, "not one that PNG knows"},
        {24, 0, KILN_MALFORMED, "not one that PNG knows"},
        {25, 1, KILN_MALFORMED, "not one that PNG knows"},
        {25, 7, KILN_MALFORMED, "not one that PNG knows"},
        {26, 1, KILN_MALFORMED, "not one that PNG knows"},
        {27, 1, KILN_MALFORMED, "not one that PNG knows"},
        {28, 2, KILN_MALFORMED, "not one that PNG knows"},
        {25, 3, KILN_MALFORMED, "PNG is broken"}, /* a palette that is missing */
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        uint8_t file[4096];
        size_t size = sample_make(file);
        file[cases[i].place] = cases[i].value;
        crc_fix(file + 8, 13);
        assert_int_equal(read_bytes(file, size), cases[i].status);
        if (strstr(why, cases[i].problem) == NULL) {
            fail_msg("case %zu: '%s' is not in '%s'", i, cases[i].problem, why);
        }
    }
}

static void test_chunks(void **state) {
    static uint8_t file[1 << 16];
    (void)state;
    size_t size = sample_make(file), at = 33;
    memmove(file + 33 + 12, file + 33, size - 33); /* an empty tRNS: libpng does not take it */
    memcpy(file + at, "\0\0\0\0tRNS", 8);
    crc_fix(file + at, 0);
    assert_int_equal(read_bytes(file, size + 12), KILN_MALFORMED);
    assert_non_null(strstr(why, "contradict"));

    memcpy(file + at, "\0\0\0\0teST", 8); /* unknown and ancillary: skipped */
    crc_fix(file + at, 0);
    assert_int_equal(read_bytes(file, size + 12), KILN_OK);
    file[at + 8] ^= 1;
    assert_int_equal(read_bytes(file, size + 12), KILN_MALFORMED);

    for (int i = 0; i < 5000; i++, at += 12) {
        memcpy(file + at, "\0\0\0\0teST", 8);
        crc_fix(file + at, 0);
    }
    assert_int_equal(read_bytes(file, at), KILN_MALFORMED);
    assert_non_null(strstr(why, "too many chunks"));
}

/* A grey file whose stream inflates to `count` zeros, which are rows without a filter. */
static size_t zeros_make(uint8_t *file, uint32_t side, bool interlaced, size_t count) {
    static uint8_t zeros[1 << 24];
    struct libdeflate_compressor *compressor = libdeflate_alloc_compressor(1);
    memcpy(file, "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\0\0\0\0\0\x08\0\0\0\0", 29);
    file[19] = file[23] = (uint8_t)side;
    file[28] = interlaced;
    crc_fix(file + 8, 13);
    size_t size = libdeflate_zlib_compress(compressor, zeros, count, file + 41, 1 << 17);
    libdeflate_free_compressor(compressor);
    assert_true(size > 0 && count <= sizeof zeros);
    memcpy(file + 33, (uint8_t[]){0, (uint8_t)(size >> 16), (uint8_t)(size >> 8), (uint8_t)size},
           4);
    memcpy(file + 37, "IDAT", 4);
    crc_fix(file + 33, size);
    memcpy(file + 45 + size, "\0\0\0\0IEND\xae\x42\x60\x82", 12);
    return 57 + size;
}

/* A stream may be a little longer than its pixels. One that inflates to much more is not followed
   to its end, at whatever row of whatever pass the pixels end. */
static void test_bomb(void **state) {
    static uint8_t file[1 << 18];
    (void)state;
    for (uint32_t side = 1; side <= 8; side++) {
        for (int interlaced = 0; interlaced < 2; interlaced++) {
            size_t size = zeros_make(file, side, interlaced, 2000);
            assert_int_equal(read_bytes(file, size), KILN_OK);
            size = zeros_make(file, side, interlaced, 1 << 24);
            assert_int_equal(read_bytes(file, size), KILN_MALFORMED);
            assert_non_null(strstr(why, "goes on after the last row"));
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_variants),      cmocka_unit_test(test_write),
        cmocka_unit_test(test_write_large),   cmocka_unit_test(test_write_palette),
        cmocka_unit_test(test_write_threads), cmocka_unit_test(test_write_indices),
        cmocka_unit_test(test_frame),         cmocka_unit_test(test_write_texts),
        cmocka_unit_test(test_truncated),     cmocka_unit_test(test_flipped),
        cmocka_unit_test(test_lying),         cmocka_unit_test(test_chunks),
        cmocka_unit_test(test_bomb),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
