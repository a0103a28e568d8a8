/*
 * image.h: reading images of any accepted encoding as planes, writing planes as images.
 *
 * Encodings: PNG (1, 2, 4, 8, 16 bit; grey, RGB, with alpha; palettes are expanded; no interlace
 * limit; transparent colours become alpha), PGM/PPM/PAM (P2, P3, P5, P6, P7; maxval to 65535,
 * samples as stored), NPY (h×w or h×w×c with c ≤ 4; int8… int64, uint8…uint64, float16/32/64, bool;
 * C and Fortran order; either byte order).
 *
 * Everything here takes hostile bytes: sizes are checked in 64 bits against `max_pixels` before any
 * memory is touched, and a broken file is KILN_MALFORMED with one sentence in `why`.
 *
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_CODECS_IMAGE_H
#define KILN_COMPUTE_CODECS_IMAGE_H

#include "compute/codecs/format.h"
#include "compute/core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/** How the samples of a picture came from values: sample = value / scale + offset. A PNG carries it
    as text (key QUANTUM_KEY), a PGM as a comment on its second line; whoever reads one takes both
    numbers finite, and `scale` other than 0. */
struct quantum {
    double offset, scale;
    uint32_t bits; /* of the picture that the values were made from, 8 or 16; 0: not told */
};

#define QUANTUM_KEY "kiln:quantization"
#define QUANTUM_MAX 96 /* bytes of its text, with the NUL */

/** "offset=32768&scale=4&bits=16" */
void quantum_print(const struct quantum *quantum, char out[QUANTUM_MAX]);
/** Reads just that; anything else is false and leaves `quantum` alone. */
bool quantum_read(const char *text, size_t size, struct quantum *quantum);

/** What an image's header says. */
struct image_info {
    enum format format;     /* PNG, PGM or NPY */
    uint32_t width, height; /* pixels, ≥ 1 */
    uint32_t channels;      /* 1 … 4 */
    uint32_t depth; /* bits of an integer sample: 8 or 16 (NPY: 8, 16, 32, 64); 0: floating */
    struct quantum quantum; /* what the file says of its samples; `scale` 0: nothing */
};

struct thread_pool; /* compute/core/thread_pool.h */

enum sample { SAMPLE_INT32, SAMPLE_FLOAT, SAMPLE_DOUBLE };

/** Reads the header only. `format` FORMAT_NONE: recognised by its first bytes. Unknown bytes are
    KILN_MEDIA_TYPE, a broken or absurd header KILN_MALFORMED, too many pixels KILN_INVALID. */
enum kiln_status image_probe(const void *bytes, size_t size, enum format format,
                             uint64_t max_pixels, struct image_info *info, char *why,
                             size_t why_size);

/** Decodes into channels × height × width elements of `sample`, each scale*(pixel - offset)
   computed in double and rounded once (INT32: to nearest; out of range is KILN_MALFORMED). `info`
   is what probe gave; a file whose header has changed since, or non-finite samples, is
   KILN_MALFORMED. Scratch memory is allocated inside and freed before return (KILN_NO_MEMORY). Rows
   of binary PGM and NPY are shared out over `pool` (NULL: none). */
enum kiln_status image_read(struct thread_pool *pool, const void *bytes, size_t size,
                            const struct image_info *info, enum sample sample, double offset,
                            double scale, void *planes, char *why, size_t why_size);

/** A key and its value for PNG text chunks. */
struct image_text {
    const char *key, *value; /* Latin-1, value below 4 KiB; ended by key NULL */
};

/** Interleaved pixels to be encoded. */
struct picture {
    uint32_t width, height, channels; /* 1 grey, 2 grey+alpha, 3 RGB, 4 RGBA */
    uint32_t depth;                   /* 8 or 16; 16-bit samples are in host byte order */
    const void *pixels;               /* height × width × channels */
    const uint8_t *palette;        /* 1 channel, 8 bit: 256 × RGB that the pixels index; or NULL */
    const struct quantum *quantum; /* what the file is to say of its samples; or NULL */
};

/** Upper bound of what png_write and png_write_small write, text chunks below 4 KiB in all; 0 on
    overflow. */
uint64_t png_bound(uint32_t width, uint32_t height, uint32_t channels, uint32_t depth);
/** Encodes a PNG: deterministic, valid for every decoder. An RGB picture of 8 bits, 4096 pixels or
    more and at most 256 colours gets a palette. This is the fast way: about as many bytes as libpng
    takes at level 6. Strips are shared out over `pool` (NULL: none); the bytes do not depend on it.
    KILN_INTERNAL if it does not fit; within png_bound it does. */
enum kiln_status png_write(const struct picture *picture, const struct image_text *texts,
                           struct thread_pool *pool, uint8_t *out, uint64_t capacity,
                           uint64_t *size);
/** The same picture in fewer bytes and ten times the time or more. `level`: 1 … 12, libdeflate's.
 */
enum kiln_status png_write_small(const struct picture *picture, const struct image_text *texts,
                                 int level, uint8_t *out, uint64_t capacity, uint64_t *size);

/** A PNG of indices whose data someone else makes: a zlib stream of the filtered rows, as the
   kernel `png` (kernels/png.h) writes it. */
struct png_frame {
    uint8_t *out;
    uint64_t capacity, at; /* of the file */
    uint8_t *data;         /* where the stream goes … */
    uint64_t room;         /* … and how long it may be */
};

/** Writes what comes before the stream. The picture has a palette; its pixels are not looked at.
    KILN_INTERNAL if it does not fit. With the stream that png_write would make, the file is the one
    that png_write writes. */
enum kiln_status png_frame_open(const struct picture *picture, const struct image_text *texts,
                                uint8_t *out, uint64_t capacity, struct png_frame *frame);
/** Ends the file behind `data_size` bytes of stream; `size` is that of the file. */
enum kiln_status png_frame_close(const struct png_frame *frame, uint64_t data_size, uint64_t *size);

/** Binary PGM (1 channel), PPM (3) or PAM (2, 4); 16 bit is big-endian as the format says. */
uint64_t pgm_bound(uint32_t width, uint32_t height, uint32_t channels, uint32_t depth);
enum kiln_status pgm_write(const struct picture *picture, uint8_t *out, uint64_t capacity,
                           uint64_t *size);

/** Planes (channels × height × width of `sample`) to interleaved 8- or 16-bit pixels:
    clamp(round_half_even(value / scale + offset)); NaN becomes 0. Returns how many were clamped.
    Shared out over `pool` (NULL: none), as is the next. */
uint64_t planes_quantize(struct thread_pool *pool, const void *planes, enum sample sample,
                         uint32_t width, uint32_t height, uint32_t channels, uint32_t depth,
                         double offset, double scale, void *pixels);
/** Planes to interleaved elements of the same type (for NPY h×w×c). channels 1 is a copy. */
void planes_interleave(struct thread_pool *pool, const void *planes, size_t element, uint32_t width,
                       uint32_t height, uint32_t channels, void *out);

#endif
