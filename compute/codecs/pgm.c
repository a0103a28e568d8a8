/*
 * pgm.c: the Netpbm formats PGM, PPM and PAM (image.h, codec.h).
 *
 * Reads P2, P3 (text), P5, P6 and P7 (binary), with comments; samples are taken as stored, never
 * scaled by maxval. Writes P5, P6 and P7. What follows the first image of a file is ignored.
 * Thread: any.
 */
#include "compute/codecs/codec.h"

#include <stdio.h>
#include <string.h>

#define HEADER_MAX 256 /* the longest that is written: PAM's with a comment */

struct header {
    uint32_t width, height, channels, top; /* top: the format's maxval */
    bool text;                             /* samples are decimal text */
    size_t data;                           /* where they start */
    struct quantum quantum;                /* scale 0: none was told */
};

static bool is_space(uint8_t c) {
    return c == ' ' || (c >= '\t' && c <= '\r');
}

/* Past white space and comments, which reach from # to the end of the line. */
static size_t gap_skip(const struct source *source, size_t at) {
    for (; at < source->size; at++) {
        if (source->bytes[at] == '#') {
            while (at + 1 < source->size && source->bytes[at + 1] != '\n') {
                at++;
            }
        } else if (!is_space(source->bytes[at])) {
            break;
        }
    }
    return at;
}

/* A decimal number below 2^32 after an optional gap, and before one or the file's end; false if
   there is none. */
static bool number_read(const struct source *source, size_t *at, uint32_t *value) {
    size_t start = *at = gap_skip(source, *at);
    uint64_t number = 0;
    for (; *at < source->size; ++*at) {
        unsigned digit = (unsigned)source->bytes[*at] - '0';
        if (digit > 9) {
            break;
        }
        number = number * 10 + digit;
        if (number > UINT32_MAX) {
            return false;
        }
    }
    *value = (uint32_t)number;
    return *at > start &&
           (*at == source->size || is_space(source->bytes[*at]) || source->bytes[*at] == '#');
}

static enum kiln_status plain_header_read(const struct source *source, struct header *header) {
    uint8_t digit = source->bytes[1];
    header->text = digit <= '3';
    header->channels = digit == '2' || digit == '5' ? 1 : 3;
    size_t at = 2;
    if (source->size < 3 || (!is_space(source->bytes[2]) && source->bytes[2] != '#') ||
        !number_read(source, &at, &header->width) || !number_read(source, &at, &header->height) ||
        !number_read(source, &at, &header->top)) {
        return source_broken(source, "PGM: width, height and maxval are not three numbers");
    }
    if (at >= source->size || !is_space(source->bytes[at])) {
        return source_broken(source, "PGM: the file ends after its header");
    }
    header->data = at + 1;
    return KILN_OK;
}

/* Whether the line at `at` starts with the word; *at is moved past it. */
static bool word_take(const struct source *source, size_t *at, const char *word) {
    size_t length = strlen(word);
    if (source->size - *at <= length || memcmp(source->bytes + *at, word, length) != 0 ||
        !is_space(source->bytes[*at + length])) {
        return false;
    }
    *at += length;
    return true;
}

/* PAM: lines of a word and its value up to ENDHDR; TUPLTYPE says nothing that DEPTH does not. */
static enum kiln_status pam_header_read(const struct source *source, struct header *header) {
    const struct {
        const char *word;
        uint32_t *value;
    } words[] = {{"WIDTH", &header->width},
                 {"HEIGHT", &header->height},
                 {"DEPTH", &header->channels},
                 {"MAXVAL", &header->top}};
    size_t at = 2;
    for (;;) {
        at = gap_skip(source, at);
        if (word_take(source, &at, "ENDHDR")) {
            break;
        }
        bool known = word_take(source, &at, "TUPLTYPE");
        if (known) {
            while (at < source->size && source->bytes[at] != '\n') {
                at++;
            }
        }
        for (size_t i = 0; i < 4 && !known; i++) {
            known = word_take(source, &at, words[i].word);
            if (known && (*words[i].value != 0 || !number_read(source, &at, words[i].value))) {
                return source_broken(source, "PAM: %s is not one number", words[i].word);
            }
        }
        if (!known) {
            return source_broken(source, "PAM: the header has an unknown line or no ENDHDR");
        }
    }
    if (source->bytes[at] != '\n') {
        return source_broken(source, "PAM: ENDHDR is not alone on its line");
    }
    header->data = at + 1;
    return KILN_OK;
}

/* Bytes of a sample in the binary formats. */
static size_t item_size(const struct header *header) {
    return header->top > 255 ? 2 : 1;
}

/* What the comment on the second line says of the samples, if it is the one that does. */
static void quantum_find(const struct source *source, struct quantum *quantum) {
    static const char key[] = "\n# " QUANTUM_KEY " ";
    const char *text = (const char *)source->bytes + 2;
    size_t left = source->size - 2, size = sizeof key - 1;
    if (left <= size || memcmp(text, key, size) != 0) {
        return;
    }
    left = left - size < QUANTUM_MAX ? left - size : QUANTUM_MAX;
    const char *end = memchr(text + size, '\n', left);
    if (end != NULL) {
        quantum_read(text + size, (size_t)(end - text) - size, quantum);
    }
}

static enum kiln_status header_read(const struct source *source, struct header *header) {
    memset(header, 0, sizeof *header);
    if (source->size < 3 || source->bytes[0] != 'P' || !source->bytes[1] ||
        strchr("23567", source->bytes[1]) == NULL) {
        return source_broken(source, "PGM: the magic bytes P2, P3, P5, P6 or P7 are missing");
    }
    enum kiln_status status = source->bytes[1] == '7' ? pam_header_read(source, header)
                                                      : plain_header_read(source, header);
    if (status != KILN_OK) {
        return status;
    }
    quantum_find(source, &header->quantum);
    if (header->width == 0 || header->height == 0) {
        return source_broken(source, "PGM: width and height must be at least 1");
    }
    if (header->channels < 1 || header->channels > 4) {
        return source_broken(source, "PAM: an image has 1 to 4 channels");
    }
    if (header->top < 1 || header->top > 65535) {
        return source_broken(source, "PGM: maxval must be from 1 to 65535");
    }
    /* The least that the data can take: a text sample is a digit and, but for the last, a gap. */
    uint64_t samples, least;
    if (__builtin_mul_overflow((uint64_t)header->width * header->height, (uint64_t)header->channels,
                               &samples) ||
        __builtin_mul_overflow(samples, header->text ? 2 : item_size(header), &least) ||
        least - header->text > source->size - header->data) {
        return source_broken(source, "PGM: the file ends before its %u × %u pixels do",
                             header->width, header->height);
    }
    return KILN_OK;
}

static void info_fill(const struct header *header, struct image_info *info) {
    *info = (struct image_info){.format = FORMAT_PGM,
                                .width = header->width,
                                .height = header->height,
                                .channels = header->channels,
                                .depth = header->top > 255 ? 16 : 8,
                                .quantum = header->quantum};
}

enum kiln_status pgm_probe(const struct source *source, struct image_info *info) {
    struct header header;
    enum kiln_status status = header_read(source, &header);
    if (status == KILN_OK) {
        info_fill(&header, info);
    }
    return status;
}

/* Checks binary samples against maxval; where it is 255 or 65535 all of them are good. */
static bool samples_check(const struct header *header, const uint8_t *pixels, size_t count) {
    bool wide = header->top > 255, good = true;
    if (header->top == 255 || header->top == 65535) {
        return true;
    }
    for (size_t i = 0; i < count; i++) {
        unsigned sample = wide ? (unsigned)pixels[2 * i] << 8 | pixels[2 * i + 1] : pixels[i];
        good &= sample <= header->top;
    }
    return good;
}

static enum kiln_status row_store(const struct sink *sink, uint32_t row, const void *context) {
    const struct header *header = context;
    bool swapped = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    size_t item = item_size(header), count = (size_t)header->width * header->channels;
    samples_reader *read = samples_reader_find('u', (uint32_t)item, swapped);
    const uint8_t *pixels = sink->source->bytes + header->data + row * count * item;
    if (!samples_check(header, pixels, count)) {
        return source_broken(sink->source, "PGM: row %u has a sample above maxval", row);
    }
    return sink_pixels(sink, row, 0, header->width, read, pixels, item);
}

/* Text samples are gathered in stretches of a row, since the sink is slow on single pixels. */
static enum kiln_status text_read(const struct source *source, const struct header *header,
                                  const struct sink *sink) {
    enum { STRETCH = 256 };
    uint16_t pixels[STRETCH * 3];
    samples_reader *read = samples_reader_find('u', 2, false);
    size_t at = header->data;
    for (uint32_t row = 0; row < header->height; row++) {
        for (uint32_t x = 0; x < header->width;) {
            uint32_t count = header->width - x < STRETCH ? header->width - x : STRETCH;
            for (size_t i = 0; i < (size_t)count * header->channels; i++) {
                uint32_t value;
                if (!number_read(source, &at, &value) || value > header->top) {
                    return source_broken(source,
                                         "PGM: row %u has a sample that is missing, not a "
                                         "number or above maxval",
                                         row);
                }
                pixels[i] = (uint16_t)value;
            }
            enum kiln_status status =
                sink_pixels(sink, row, x, count, read, (const uint8_t *)pixels, 2);
            if (status != KILN_OK) {
                return status;
            }
            x += count;
        }
    }
    return KILN_OK;
}

enum kiln_status pgm_decode(const struct source *source, const struct image_info *info,
                            const struct sink *sink) {
    struct header header;
    struct image_info now;
    enum kiln_status status = header_read(source, &header);
    if (status != KILN_OK) {
        return status;
    }
    info_fill(&header, &now);
    if (!image_info_equal(&now, info)) {
        return source_broken(source, "PGM: the header has changed");
    }
    return header.text ? text_read(source, &header, sink) : sink_rows(sink, row_store, &header);
}

uint64_t pgm_bound(uint32_t width, uint32_t height, uint32_t channels, uint32_t depth) {
    uint64_t bytes;
    if (__builtin_mul_overflow((uint64_t)width * height, (uint64_t)channels * (depth / 8),
                               &bytes) ||
        bytes > SIZE_MAX - HEADER_MAX) {
        return 0;
    }
    return bytes + HEADER_MAX;
}

enum kiln_status pgm_write(const struct picture *picture, uint8_t *out, uint64_t capacity,
                           uint64_t *size) {
    static const char *const types[] = {"", "GRAYSCALE", "GRAYSCALE_ALPHA", "RGB", "RGB_ALPHA"};
    char header[HEADER_MAX], note[sizeof QUANTUM_KEY + QUANTUM_MAX + 4] = "", text[QUANTUM_MAX];
    unsigned top = picture->depth == 16 ? 65535 : 255, channels = picture->channels;
    int length;
    if (picture->quantum != NULL) {
        quantum_print(picture->quantum, text);
        snprintf(note, sizeof note, "# " QUANTUM_KEY " %s\n", text);
    }
    if (channels % 2 == 1) {
        length = snprintf(header, sizeof header, "P%c\n%s%u %u\n%u\n", channels == 1 ? '5' : '6',
                          note, picture->width, picture->height, top);
    } else {
        length = snprintf(header, sizeof header,
                          "P7\n%sWIDTH %u\nHEIGHT %u\nDEPTH %u\nMAXVAL %u\nTUPLTYPE %s\nENDHDR\n",
                          note, picture->width, picture->height, channels, top, types[channels]);
    }
    uint64_t count = (uint64_t)picture->width * picture->height * channels;
    uint64_t bytes = count * (picture->depth / 8);
    if (pgm_bound(picture->width, picture->height, channels, picture->depth) == 0 || length < 0 ||
        (uint64_t)length > capacity || bytes > capacity - (uint64_t)length) {
        return KILN_INTERNAL;
    }
    memcpy(out, header, (size_t)length);
    out += length;
    if (picture->depth == 16) {
        const uint16_t *samples = picture->pixels;
        for (uint64_t i = 0; i < count; i++) {
            out[2 * i] = (uint8_t)(samples[i] >> 8);
            out[2 * i + 1] = (uint8_t)samples[i];
        }
    } else {
        memcpy(out, picture->pixels, (size_t)bytes);
    }
    *size = (uint64_t)length + bytes;
    return KILN_OK;
}
