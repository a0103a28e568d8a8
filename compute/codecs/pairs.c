/*
 * pairs.c: percent-decoding and name=value pairs (pairs.h). Thread: any.
 */
#include "compute/codecs/pairs.h"

#include <string.h>

static int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool percent_decode(char *text, size_t size, bool plus, size_t *decoded) {
    size_t out = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '%') {
            int high = i + 2 < size ? hex_value(text[i + 1]) : -1;
            int low = i + 2 < size ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = (unsigned char)(high << 4 | low);
            i += 2;
        } else if (plus && c == '+') {
            c = ' ';
        }
        if (c == 0 || c == 0x7f || (c < 0x20 && c != '\t' && c != '\n' && c != '\r')) {
            return false;
        }
        text[out++] = (char)c;
    }
    text[out] = '\0';
    *decoded = out;
    return true;
}

bool pair_next(char **cursor, char *end, char **name, char **value, bool *broken) {
    *broken = false;
    while (*cursor < end && **cursor == '&') {
        (*cursor)++;
    }
    if (*cursor >= end) {
        return false;
    }
    char *start = *cursor;
    char *stop = memchr(start, '&', (size_t)(end - start));
    stop = stop != NULL ? stop : end;
    *cursor = stop < end ? stop + 1 : end;
    char *equals = memchr(start, '=', (size_t)(stop - start));
    char *tail = equals != NULL ? equals + 1 : stop;
    size_t size;
    *name = start;
    *value = tail;
    /* the value first: the name's NUL takes the place of '=', the value's that of '&' */
    *broken =
        !percent_decode(tail, (size_t)(stop - tail), true, &size) ||
        !percent_decode(start, (size_t)((equals != NULL ? equals : stop) - start), true, &size);
    return true;
}
