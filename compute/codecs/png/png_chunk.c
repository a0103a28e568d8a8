/*
 * png_chunk.c: head, chunks and end of PNG files (png_chunk.h), and files whose pixels another
 * makes (png_frame in image.h).
 *
 * Thread: any.
 */
#include "compute/codecs/png/png_chunk.h"

#include <libdeflate.h>
#include <string.h>

#define COLORS_MAX   256
#define TYPE_PALETTE 3

uint8_t *chunk_open(struct output *output, const char *type, uint64_t room) {
    if (output->full || room > UINT64_MAX - CHUNK || output->capacity - output->at < room + CHUNK) {
        output->full = true;
        return NULL;
    }
    memcpy(output->bytes + output->at + 4, type, 4);
    return output->bytes + output->at + CHUNK_DATA;
}

void chunk_close(struct output *output, uint32_t size) {
    uint8_t *chunk = output->bytes + output->at;
    big32(chunk, size);
    big32(chunk + CHUNK_DATA + size, libdeflate_crc32(0, chunk + 4, (size_t)size + 4));
    output->at += (uint64_t)size + CHUNK;
}

static void header_write(struct output *output, const struct picture *picture, bool indexed) {
    static const uint8_t types[] = {0, 0, 4, 2, 6}; /* by channels */
    if (output->capacity < 8) {
        output->full = true;
        return;
    }
    memcpy(output->bytes, "\x89PNG\r\n\x1a\n", 8);
    output->at = 8;
    uint8_t *data = chunk_open(output, "IHDR", 13);
    if (data == NULL) {
        return;
    }
    big32(data, picture->width);
    big32(data + 4, picture->height);
    data[8] = (uint8_t)picture->depth;
    data[9] = indexed ? TYPE_PALETTE : types[picture->channels];
    memset(data + 10, 0, 3);
    chunk_close(output, 13);
}

static void texts_write(struct output *output, const struct image_text *texts) {
    for (; texts != NULL && texts->key != NULL; texts++) {
        size_t key = strlen(texts->key), value = strlen(texts->value);
        uint8_t *data = chunk_open(output, "tEXt", (uint64_t)key + 1 + value);
        if (data == NULL) {
            return;
        }
        memcpy(data, texts->key, key + 1);
        memcpy(data + key + 1, texts->value, value);
        chunk_close(output, (uint32_t)(key + 1 + value));
    }
}

static void palette_write(struct output *output, const uint8_t *palette, unsigned colors) {
    uint8_t *data = chunk_open(output, "PLTE", 3 * colors);
    if (data == NULL) {
        return;
    }
    memcpy(data, palette, 3 * (size_t)colors);
    chunk_close(output, 3 * colors);
}

void head_write(struct output *output, const struct picture *picture,
                const struct image_text *texts, const uint8_t *palette, unsigned colors) {
    header_write(output, picture, colors > 0);
    texts_write(output, texts);
    if (picture->quantum != NULL) {
        char value[QUANTUM_MAX];
        quantum_print(picture->quantum, value);
        texts_write(output, (const struct image_text[]){{QUANTUM_KEY, value}, {NULL, NULL}});
    }
    if (colors > 0) {
        palette_write(output, palette, colors);
    }
}

enum kiln_status tail_write(struct output *output) {
    if (chunk_open(output, "IEND", 0) != NULL) {
        chunk_close(output, 0);
    }
    return output->full ? KILN_INTERNAL : KILN_OK;
}

enum kiln_status png_frame_open(const struct picture *picture, const struct image_text *texts,
                                uint8_t *out, uint64_t capacity, struct png_frame *frame) {
    struct output output = {.bytes = out, .capacity = capacity};
    head_write(&output, picture, texts, picture->palette, COLORS_MAX);
    uint8_t *data = chunk_open(&output, "IDAT", 0);
    if (data == NULL) {
        return KILN_INTERNAL;
    }
    uint64_t room = capacity - output.at - CHUNK;
    *frame = (struct png_frame){
        .out = out,
        .capacity = capacity,
        .at = output.at,
        .data = data,
        .room = room < CHUNK_MAX ? room : CHUNK_MAX,
    };
    return KILN_OK;
}

enum kiln_status png_frame_close(const struct png_frame *frame, uint64_t data_size,
                                 uint64_t *size) {
    struct output output = {.bytes = frame->out, .capacity = frame->capacity, .at = frame->at};
    if (data_size > frame->room) {
        return KILN_INTERNAL;
    }
    chunk_close(&output, (uint32_t)data_size);
    enum kiln_status status = tail_write(&output);
    *size = output.at;
    return status;
}
