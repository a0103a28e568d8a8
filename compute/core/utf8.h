/*
 * utf8.h: one step through UTF-8 (RFC 3629: no overlong forms, no surrogates, at most U+10FFFF).
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_CORE_UTF8_H
#define KILN_COMPUTE_CORE_UTF8_H

#include <stddef.h>
#include <stdint.h>

/** Bytes of the character that starts at `text`, 1 to 4; 0 if it is not well formed. */
static inline size_t utf8_length(const char *text, size_t size) {
    const uint8_t *byte = (const uint8_t *)text;
    if (size == 0) {
        return 0;
    }
    if (byte[0] < 0x80) {
        return 1;
    }
    size_t length = byte[0] >= 0xf0 ? 4 : byte[0] >= 0xe0 ? 3 : 2;
    if (byte[0] < 0xc2 || byte[0] > 0xf4 || size < length) {
        return 0;
    }
    uint8_t low = byte[0] == 0xe0 ? 0xa0 : byte[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t high = byte[0] == 0xed ? 0x9f : byte[0] == 0xf4 ? 0x8f : 0xbf;
    if (byte[1] < low || byte[1] > high) {
        return 0;
    }
    for (size_t i = 2; i < length; i++) {
        if ((byte[i] & 0xc0) != 0x80) {
            return 0;
        }
    }
    return length;
}

#endif
