/*
 * text.c: the bounded text builder (text.h).
 *
 * Once something did not fit, nothing more is written: a later short piece must not follow a hole.
 * Thread: the buffer's owner.
 */
#include "compute/core/text.h"

#include "compute/core/decimal.h"
#include "compute/core/utf8.h"

#include <assert.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void text_init(struct text *text, char *data, size_t capacity) {
    assert(capacity >= 1);
    *text = (struct text){.data = data, .capacity = capacity};
    data[0] = '\0';
}

void text_bytes(struct text *text, const void *bytes, size_t size) {
    size_t room = text->full ? 0 : text->capacity - 1 - text->size;
    if (size > room) {
        text->full = true;
        size = room;
    }
    if (size > 0) {
        memcpy(text->data + text->size, bytes, size);
    }
    text->size += size;
    text->data[text->size] = '\0';
}

void text_string(struct text *text, const char *string) {
    text_bytes(text, string, strlen(string));
}

void text_format(struct text *text, const char *format, ...) {
    if (text->full) {
        return;
    }
    size_t room = text->capacity - text->size;
    va_list arguments;
    va_start(arguments, format);
    int length = vsnprintf(text->data + text->size, room, format, arguments);
    va_end(arguments);
    if (length < 0) {
        text->data[text->size] = '\0';
        text->full = true;
    } else if ((size_t)length >= room) {
        text->size = text->capacity - 1;
        text->full = true;
    } else {
        text->size += (size_t)length;
    }
}

void text_double(struct text *text, double value) {
    char digits[DECIMAL_MAX];
    if (isfinite(value)) {
        text_bytes(text, digits, decimal_print(value, digits));
    } else {
        text_bytes(text, "null", 4);
    }
}

void text_float(struct text *text, float value) {
    char digits[DECIMAL_MAX];
    if (isfinite(value)) {
        text_bytes(text, digits, decimal_print_float(value, digits));
    } else {
        text_bytes(text, "null", 4);
    }
}

void text_integer(struct text *text, int64_t value) {
    char reversed[20], digits[21];
    size_t count = 0, at = 0;
    uint64_t magnitude = value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
    do {
        reversed[count++] = (char)('0' + magnitude % 10);
        magnitude /= 10;
    } while (magnitude > 0);
    if (value < 0) {
        digits[at++] = '-';
    }
    while (count > 0) {
        digits[at++] = reversed[--count];
    }
    text_bytes(text, digits, at);
}

static void json_escape(struct text *text, unsigned char byte) {
    static const char letters[] = "\"\"\\\\\bb\ff\nn\rr\tt";
    for (size_t i = 0; i + 1 < sizeof letters; i += 2) {
        if (byte == (unsigned char)letters[i]) {
            char escape[2] = {'\\', letters[i + 1]};
            text_bytes(text, escape, 2);
            return;
        }
    }
    text_format(text, "\\u%04x", byte);
}

void text_json_string(struct text *text, const char *string, size_t size) {
    size_t plain = 0, at = 0; /* [plain, at) is copied as it is */
    text_bytes(text, "\"", 1);
    while (at < size) {
        unsigned char byte = (unsigned char)string[at];
        size_t length = utf8_length(string + at, size - at);
        if (length > 0 && byte >= 0x20 && byte != '"' && byte != '\\' && byte != 0x7f) {
            at += length;
            continue;
        }
        text_bytes(text, string + plain, at - plain);
        if (length == 0) {
            text_bytes(text, "\xef\xbf\xbd", 3);
        } else {
            json_escape(text, byte);
        }
        plain = ++at;
    }
    text_bytes(text, string + plain, at - plain);
    text_bytes(text, "\"", 1);
}
