/*
 * png_read.c: PNG files as images (image.h, codec.h).
 *
 * The header is read by own code, so that a probe costs nothing and the size of every buffer is
 * known before libpng sees the file. libpng then decodes from memory under limits taken from that
 * header, with every chunk skipped that does not change pixels. Where the two disagree, the file is
 * refused. All memory of ours is taken before the function that calls setjmp and freed after it.
 * Bytes after the IEND chunk are ignored.
 * Thread: any.
 */
#include "compute/codecs/codec.h"

#include <libdeflate.h>
#include <png.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CHUNKS_MAX 4096            /* before the pixels */
#define MALLOC_MAX (1024u * 1024u) /* bytes that libpng may take for one chunk */
#define RATIO_MAX  1032            /* of deflate: 258 bytes from two bits */
#define PIECE      4096            /* bytes that libpng takes of the stream of pixels at a time */

enum color { GREY = 0, RGB = 2, PALETTE = 3, GREY_ALPHA = 4, RGB_ALPHA = 6 };

/* What our own walk through the chunks found. */
struct header {
    uint32_t width, height, channels, depth; /* after expansion */
    bool interlaced;
    struct quantum quantum; /* scale 0: none was told */
};

static uint32_t big32(const uint8_t *bytes) {
    return (uint32_t)bytes[0] << 24 | (uint32_t)bytes[1] << 16 | (uint32_t)bytes[2] << 8 | bytes[3];
}

/* Whether the colour type exists and allows the bit depth. */
static bool depth_allowed(unsigned color, unsigned depth) {
    static const uint8_t allowed[7][5] = {[GREY] = {1, 2, 4, 8, 16}, /* zeros end the rows */
                                          [RGB] = {8, 16},
                                          [PALETTE] = {1, 2, 4, 8},
                                          [GREY_ALPHA] = {8, 16},
                                          [RGB_ALPHA] = {8, 16}};
    return color < 7 && depth > 0 && memchr(allowed[color], (int)depth, 5) != NULL;
}

/* What a whole tEXt chunk at `at` says of the samples, if it is the one that does. */
static void quantum_find(const struct source *source, uint64_t at, struct quantum *quantum) {
    static const char key[] = QUANTUM_KEY; /* with its NUL, which ends the key in the file too */
    const uint8_t *chunk = source->bytes + at;
    size_t size = big32(chunk);
    if (quantum->scale != 0 || memcmp(chunk + 4, "tEXt", 4) != 0 || size <= sizeof key ||
        size > sizeof key + QUANTUM_MAX || source->size - at < size + 12 ||
        memcmp(chunk + 8, key, sizeof key) != 0 ||
        libdeflate_crc32(0, chunk + 4, size + 4) != big32(chunk + 8 + size)) {
        return;
    }
    quantum_read((const char *)chunk + 8 + sizeof key, size - sizeof key, quantum);
}

/* Where the pixels' first chunk is, whether there is a tRNS chunk before it, and what is said of
   the samples; every step is one chunk header. */
static enum kiln_status pixels_find(const struct source *source, uint64_t *where, bool *transparent,
                                    struct quantum *quantum) {
    uint64_t at = 33;
    *transparent = false;
    for (int i = 0; i < CHUNKS_MAX; i++) {
        if (at + 8 > source->size) {
            return source_broken(source, "the PNG ends before its pixels start");
        }
        const uint8_t *chunk = source->bytes + at;
        *where = at;
        if (memcmp(chunk + 4, "IDAT", 4) == 0) {
            return KILN_OK;
        }
        if (memcmp(chunk + 4, "IEND", 4) == 0) {
            return source_broken(source, "the PNG has no pixels");
        }
        if (memcmp(chunk + 4, "tRNS", 4) == 0) {
            *transparent = true;
        }
        quantum_find(source, at, quantum);
        at += 12 + (uint64_t)big32(chunk);
    }
    return source_broken(source, "the PNG has too many chunks before its pixels");
}

/* Whether bytes from `at` to the file's end could be all the pixels. A few bytes that claim a huge
   picture are refused here, before anybody takes memory for it. */
static bool pixels_fit(const struct source *source, uint64_t at, uint64_t width, uint64_t height,
                       uint64_t bits) {
    uint64_t rows, most;
    return !__builtin_mul_overflow(height, 1 + (width * bits + 7) / 8, &rows) &&
           (__builtin_mul_overflow(source->size - at, (uint64_t)RATIO_MAX, &most) || rows <= most);
}

static enum kiln_status header_read(const struct source *source, struct header *header) {
    static const uint8_t start[16] = "\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR";
    static const uint8_t channels[7] = {
        [GREY] = 1, [RGB] = 3, [PALETTE] = 3, [GREY_ALPHA] = 2, [RGB_ALPHA] = 4};
    const uint8_t *bytes = source->bytes;
    if (source->size < 33) {
        return source_broken(source, "the PNG ends inside its header");
    }
    if (memcmp(bytes, start, 16) != 0) {
        return source_broken(source, "the PNG does not start as it must");
    }
    if (libdeflate_crc32(0, bytes + 12, 17) != big32(bytes + 29)) {
        return source_broken(source, "the PNG's header has a wrong checksum");
    }
    unsigned depth = bytes[24], color = bytes[25];
    header->width = big32(bytes + 16);
    header->height = big32(bytes + 20);
    if (header->width == 0 || header->height == 0 || header->width > PNG_UINT_31_MAX ||
        header->height > PNG_UINT_31_MAX) {
        return source_broken(source, "the PNG's width and height must be from 1 to 2^31 - 1");
    }
    if (!depth_allowed(color, depth) || bytes[26] != 0 || bytes[27] != 0 || bytes[28] > 1) {
        return source_broken(source, "the PNG's header is not one that PNG knows");
    }
    bool transparent;
    uint64_t at = 0;
    header->quantum = (struct quantum){0};
    enum kiln_status status = pixels_find(source, &at, &transparent, &header->quantum);
    unsigned stored = color == PALETTE ? 1 : channels[color];
    if (status == KILN_OK &&
        !pixels_fit(source, at, header->width, header->height, (uint64_t)stored * depth)) {
        status = source_broken(source, "the PNG is too short for its %u × %u pixels", header->width,
                               header->height);
    }
    header->interlaced = bytes[28] == 1;
    header->depth = depth == 16 ? 16 : 8;
    header->channels = channels[color] + (transparent && color <= PALETTE);
    return status;
}

static void info_fill(const struct header *header, struct image_info *info) {
    *info = (struct image_info){.format = FORMAT_PNG,
                                .width = header->width,
                                .height = header->height,
                                .channels = header->channels,
                                .depth = header->depth,
                                .quantum = header->quantum};
}

enum kiln_status png_probe(const struct source *source, struct image_info *info) {
    struct header header;
    enum kiln_status status = header_read(source, &header);
    if (status == KILN_OK) {
        info_fill(&header, info);
    }
    return status;
}

/* One file being decoded; lives outside the frame that longjmp returns to. */
struct decoder {
    const struct source *source;
    const struct header *header;
    const struct sink *sink;
    size_t at;       /* bytes given to libpng */
    uint8_t *pixels; /* one row, or all of them where the file is interlaced */
    size_t row_size; /* bytes */
    uint32_t row;    /* rows done */
    uint64_t left;   /* rows still in the stream; interlaced files have more than rows */
    uint64_t after;  /* bytes of the stream that were taken after its last row */
    uint64_t end;    /* of the chunk that libpng is at; `pixels_chunk`: is it one of pixels? */
    bool pixels_chunk;
    png_structp png;
    png_infop info;
    enum kiln_status status; /* of the sink */
};

/* Gives libpng what it asks for. After the last row it goes on to inflate, and to throw away, what
   may be a thousand times the file: it gets a piece of that and no more. */
static void feed(png_structp png, png_bytep out, size_t size) {
    struct decoder *decoder = png_get_io_ptr(png);
    const uint8_t *next = decoder->source->bytes + decoder->at;
    if (size > decoder->source->size - decoder->at) {
        png_error(png, "it ends too early");
    }
    if (decoder->at == 0) {
        decoder->end = size; /* the signature */
    } else if (decoder->at >= decoder->end && size == 8) {
        decoder->end = decoder->at + 12 + (uint64_t)big32(next);
        decoder->pixels_chunk = memcmp(next + 4, "IDAT", 4) == 0;
    } else if (decoder->pixels_chunk && decoder->left == 0) {
        decoder->after += size;
        if (decoder->after > PIECE) {
            png_error(png, "its stream goes on after the last row");
        }
    }
    memcpy(out, next, size);
    decoder->at += size;
}

/* A transform that does nothing: it is called when a row has been inflated. */
static void row_count(png_structp png, png_row_infop info, png_bytep data) {
    struct decoder *decoder = png_get_io_ptr(png);
    (void)info;
    (void)data;
    decoder->left--;
}

/* Rows in the stream: those of each pass that has any. */
static uint64_t rows_in_stream(const struct header *header) {
    uint64_t rows = 0;
    if (!header->interlaced) {
        return header->height;
    }
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++) {
        if (PNG_PASS_COLS(header->width, pass) > 0) {
            rows += PNG_PASS_ROWS(header->height, pass);
        }
    }
    return rows;
}

static void complain(png_structp png, png_const_charp message) {
    struct decoder *decoder = png_get_error_ptr(png);
    decoder->status = source_broken(decoder->source, "the PNG is broken after row %u of %u: %s",
                                    decoder->row, decoder->header->height, message);
    png_longjmp(png, 1);
}

static void ignore(png_structp png, png_const_charp message) {
    (void)png;
    (void)message;
}

static void limits_set(struct decoder *decoder) {
    png_structp png = decoder->png;
    png_set_user_limits(png, decoder->header->width, decoder->header->height);
    png_set_chunk_malloc_max(png, MALLOC_MAX);
    png_set_chunk_cache_max(png, 32);
    png_set_compression_buffer_size(png, PIECE);
    png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
    png_set_keep_unknown_chunks(png, PNG_HANDLE_CHUNK_NEVER, NULL, -1);
}

/* Asks for 8- or 16-bit samples in host order, and holds what comes against our own header. */
static bool transforms_set(struct decoder *decoder) {
    png_structp png = decoder->png;
    const struct header *header = decoder->header;
    png_set_expand(png);
    if (__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ && header->depth == 16) {
        png_set_swap(png);
    }
    png_set_interlace_handling(png);
    png_set_read_user_transform_fn(png, row_count);
    decoder->left = rows_in_stream(header);
    png_read_update_info(png, decoder->info);
    return png_get_image_width(png, decoder->info) == header->width &&
           png_get_image_height(png, decoder->info) == header->height &&
           png_get_channels(png, decoder->info) == header->channels &&
           png_get_bit_depth(png, decoder->info) == header->depth &&
           png_get_rowbytes(png, decoder->info) == decoder->row_size;
}

static bool row_store(struct decoder *decoder, const uint8_t *pixels) {
    size_t item = decoder->header->depth / 8;
    samples_reader *read = samples_reader_find('u', (uint32_t)item, false);
    decoder->status =
        sink_pixels(decoder->sink, decoder->row, 0, decoder->header->width, read, pixels, item);
    decoder->row++;
    return decoder->status == KILN_OK;
}

/* Every pass of an interlaced file goes over the whole picture. */
static void interlaced_read(struct decoder *decoder) {
    for (int pass = 0; pass < PNG_INTERLACE_ADAM7_PASSES; pass++) {
        for (uint32_t y = 0; y < decoder->header->height; y++) {
            png_read_row(decoder->png, decoder->pixels + y * decoder->row_size, NULL);
        }
    }
}

/* The frame that libpng's errors return to; it owns nothing. */
static void decode(struct decoder *decoder) {
    if (setjmp(png_jmpbuf(decoder->png))) {
        return;
    }
    limits_set(decoder);
    png_set_read_fn(decoder->png, decoder, feed);
    png_read_info(decoder->png, decoder->info);
    if (!transforms_set(decoder)) {
        png_error(decoder->png, "its chunks contradict its header");
    }
    if (decoder->header->interlaced) {
        interlaced_read(decoder);
    }
    for (uint32_t y = 0; y < decoder->header->height; y++) {
        uint8_t *pixels = decoder->pixels;
        if (decoder->header->interlaced) {
            pixels += y * decoder->row_size;
        } else {
            png_read_row(decoder->png, pixels, NULL);
        }
        if (!row_store(decoder, pixels)) {
            return;
        }
    }
    png_read_end(decoder->png, NULL);
}

enum kiln_status png_decode(const struct source *source, const struct image_info *info,
                            const struct sink *sink) {
    struct header header;
    struct image_info now;
    size_t total;
    enum kiln_status status = header_read(source, &header);
    if (status != KILN_OK) {
        return status;
    }
    info_fill(&header, &now);
    if (!image_info_equal(&now, info)) {
        return source_broken(source, "the PNG's header has changed");
    }

    struct decoder decoder = {.source = source, .header = &header, .sink = sink};
    decoder.status = KILN_OK;
    decoder.row_size = (size_t)header.width * header.channels * (header.depth / 8);
    if (__builtin_mul_overflow(decoder.row_size, header.interlaced ? (size_t)header.height : 1,
                               &total)) {
        return KILN_NO_MEMORY;
    }
    decoder.pixels = calloc(total, 1); /* passes of an interlaced file leave gaps at first */
    decoder.png = png_create_read_struct(PNG_LIBPNG_VER_STRING, &decoder, complain, ignore);
    decoder.info = decoder.png != NULL ? png_create_info_struct(decoder.png) : NULL;
    if (decoder.pixels != NULL && decoder.info != NULL) {
        decode(&decoder);
    } else {
        decoder.status = KILN_NO_MEMORY;
    }
    png_destroy_read_struct(&decoder.png, &decoder.info, NULL);
    free(decoder.pixels);
    return decoder.status;
}
