/*
 * lib_decode.c: pixels and numbers of answers.
 */
#include "tests/api/lib_decode.h"

#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct png_bytes {
    const char *at;
    size_t left;
};

static void png_take(png_structp png, png_bytep out, size_t size) {
    struct png_bytes *bytes = png_get_io_ptr(png);
    if (size > bytes->left) {
        png_error(png, "the picture ends too early");
    }
    memcpy(out, bytes->at, size);
    bytes->at += size;
    bytes->left -= size;
}

uint8_t *png_pixels(const struct answer *answer, unsigned *width, unsigned *height,
                    unsigned *channels, unsigned *depth) {
    struct png_bytes bytes = {answer->body, answer->size};
    png_structp png = png_create_read_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png_create_info_struct(png);
    if (setjmp(png_jmpbuf(png)) != 0) {
        fail_msg("libpng cannot read the answer");
    }
    png_set_read_fn(png, &bytes, png_take);
    png_read_png(png, info, PNG_TRANSFORM_SWAP_ENDIAN | PNG_TRANSFORM_EXPAND, NULL);
    *width = png_get_image_width(png, info);
    *height = png_get_image_height(png, info);
    *channels = png_get_channels(png, info);
    *depth = png_get_bit_depth(png, info);
    size_t row = png_get_rowbytes(png, info);
    uint8_t *pixels = malloc(row * *height);
    png_bytepp rows = png_get_rows(png, info);
    for (unsigned i = 0; i < *height; i++) {
        memcpy(pixels + i * row, rows[i], row);
    }
    png_destroy_read_struct(&png, &info, NULL);
    return pixels;
}

const void *npy_data(const struct answer *answer, const char *dtype, const char *shape) {
    char wanted[128];
    assert_true(answer->size > 10 && memcmp(answer->body, "\x93NUMPY\x01", 7) == 0);
    size_t header = (uint8_t)answer->body[8] | (size_t)(uint8_t)answer->body[9] << 8;
    assert_true(10 + header <= answer->size);
    snprintf(wanted, sizeof wanted, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", dtype,
             shape);
    if (strncmp(answer->body + 10, wanted, strlen(wanted)) != 0) {
        fail_msg("the header is %.*s instead of %s", (int)header, answer->body + 10, wanted);
    }
    return answer->body + 10 + header;
}
