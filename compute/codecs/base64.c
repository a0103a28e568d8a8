/*
 * base64.c: strict RFC 4648 base64 (base64.h). Thread: any.
 */
#include "compute/codecs/base64.h"

#include <string.h>

#define BAD 0xff

/* The six bits of a character, or BAD. */
static unsigned digit(char c) {
    if (c >= 'A' && c <= 'Z') {
        return (unsigned)(c - 'A');
    }
    if (c >= 'a' && c <= 'z') {
        return (unsigned)(c - 'a') + 26;
    }
    if (c >= '0' && c <= '9') {
        return (unsigned)(c - '0') + 52;
    }
    return c == '+' ? 62 : c == '/' ? 63 : BAD;
}

/* Length of a "data:…;base64," prefix; 0 if there is none. */
static size_t prefix_length(const char *text, size_t size) {
    static const char mark[] = ";base64";
    if (size < 5 || memcmp(text, "data:", 5) != 0) {
        return 0;
    }
    const char *comma = memchr(text, ',', size < 256 ? size : 256);
    size_t length = comma != NULL ? (size_t)(comma - text) : 0;
    if (length < 5 + sizeof mark - 1 ||
        memcmp(comma - (sizeof mark - 1), mark, sizeof mark - 1) != 0) {
        return 0;
    }
    return length + 1;
}

/* Four characters of which the last `padding` are '='; bits that padding cuts off must be zero. */
static int decode_group(const char *text, size_t padding, uint8_t *out) {
    unsigned value = 0, bad = 0;
    for (size_t i = 0; i < 4; i++) {
        unsigned bits = i < 4 - padding ? digit(text[i]) : 0;
        bad |= bits & 0xc0;
        value = value << 6 | (bits & 0x3f);
    }
    if (bad || (value & ((1u << 8 * padding) - 1))) {
        return 0;
    }
    for (size_t i = 0; i < 3 - padding; i++) {
        out[i] = (uint8_t)(value >> (16 - 8 * i));
    }
    return 1;
}

enum kiln_status base64_decode(const char *text, size_t size, uint8_t *out, size_t capacity,
                               size_t *decoded) {
    size_t prefix = prefix_length(text, size);
    text += prefix;
    size -= prefix;
    *decoded = 0;
    if (size % 4 != 0) {
        return KILN_MALFORMED;
    }
    if (size == 0) {
        return KILN_OK;
    }
    size_t padding = text[size - 1] != '=' ? 0 : text[size - 2] != '=' ? 1 : 2;
    size_t total = size / 4 * 3 - padding;
    if (total > capacity) {
        return KILN_TOO_LARGE;
    }
    for (size_t i = 0; i < size; i += 4) {
        if (!decode_group(text + i, i + 4 == size ? padding : 0, out + i / 4 * 3)) {
            return KILN_MALFORMED;
        }
    }
    *decoded = total;
    return KILN_OK;
}
