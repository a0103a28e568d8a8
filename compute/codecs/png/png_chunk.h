/*
 * png_chunk.h: the chunks of a PNG file around its pixels. Not for use outside this folder.
 *
 * Threads: reentrant. Ownership: the bytes are the caller's.
 */
#ifndef KILN_COMPUTE_CODECS_PNG_PNG_CHUNK_H
#define KILN_COMPUTE_CODECS_PNG_PNG_CHUNK_H

#include "compute/codecs/image.h"

#define CHUNK_DATA 8  /* bytes of a chunk before its data: length and type */
#define CHUNK      12 /* and with the checksum behind it */
#define CHUNK_MAX  0x7fffffffu

/** Where the file is written; `full` once something did not fit. */
struct output {
    uint8_t *bytes;
    uint64_t capacity, at;
    bool full;
};

static inline void big32(uint8_t *out, uint32_t value) {
    out[0] = (uint8_t)(value >> 24);
    out[1] = (uint8_t)(value >> 16);
    out[2] = (uint8_t)(value >> 8);
    out[3] = (uint8_t)value;
}

/** Opens a chunk and returns the room for its data, NULL if there is not that much. */
uint8_t *chunk_open(struct output *output, const char *type, uint64_t room);
/** Closes the chunk that is open, with `size` bytes of data. */
void chunk_close(struct output *output, uint32_t size);

/** Signature, IHDR, a tEXt chunk for each of `texts` (NULL: none), and PLTE where `colors` > 0 of
    `palette` (RGB) are used. */
void head_write(struct output *output, const struct picture *picture,
                const struct image_text *texts, const uint8_t *palette, unsigned colors);
/** IEND. KILN_INTERNAL if anything before or this did not fit. */
enum kiln_status tail_write(struct output *output);

#endif
