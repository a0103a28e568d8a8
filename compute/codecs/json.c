/*
 * json.c: walking JSON that json_check has accepted (json.h).
 *
 * Nothing here looks for syntax errors, but every step is held against the end of the text: the
 * text lies in memory that other processes can write.
 * Thread: any.
 */
#include "compute/codecs/json.h"

#include "compute/core/cancel.h"
#include "compute/core/decimal.h"
#include "compute/core/utf8.h"

#include <math.h>
#include <string.h>

#define NUMBERS_STRIDE 4096 /* numbers of an array between two cancellation points */

void json_value_make(const char *text, size_t size, struct json_value *value) {
    static const struct {
        char first;
        enum json_type type;
    } types[] = {{'{', JSON_OBJECT}, {'[', JSON_ARRAY}, {'"', JSON_STRING},
                 {'t', JSON_TRUE},   {'f', JSON_FALSE}, {'n', JSON_NULL}};
    *value = (struct json_value){JSON_NUMBER, text, size};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (size > 0 && text[0] == types[i].first) {
            value->type = types[i].type;
        }
    }
}

static bool is_space(char c) {
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Past white space and the comma before a member or element. */
static size_t gap_skip(const char *text, size_t size, size_t at) {
    while (at < size && (is_space(text[at]) || text[at] == ',')) {
        at++;
    }
    return at;
}

/* Past the string that starts at `at`. */
static size_t string_skip(const char *text, size_t size, size_t at) {
    for (at++; at < size && text[at] != '"'; at++) {
        at += text[at] == '\\';
    }
    return at < size ? at + 1 : size;
}

static size_t value_skip(const char *text, size_t size, size_t at) {
    size_t depth = 0;
    while (at < size) {
        char c = text[at];
        if (c == '"') {
            at = string_skip(text, size, at);
            if (depth == 0) {
                return at;
            }
            continue;
        }
        bool closing = c == ']' || c == '}';
        if (closing && depth == 0) {
            return at;
        }
        depth += c == '[' || c == '{';
        depth -= closing;
        at++;
        if (closing && depth == 0) {
            return at;
        }
        /* a number or word ends before whatever cannot be part of one */
        if (depth == 0 && (at == size || is_space(text[at]) || strchr(",]}", text[at]) != NULL)) {
            return at;
        }
    }
    return size;
}

bool json_next_element(const struct json_value *array, size_t *cursor, struct json_value *value) {
    size_t at = gap_skip(array->text, array->size, *cursor == 0 ? 1 : *cursor);
    if (at >= array->size || array->text[at] == ']') {
        return false;
    }
    size_t end = value_skip(array->text, array->size, at);
    json_value_make(array->text + at, end - at, value);
    *cursor = end;
    return end > at;
}

static unsigned hex4(const char *text) {
    unsigned value = 0;
    for (int i = 0; i < 4; i++) {
        value = value * 16 +
                (text[i] <= '9' ? (unsigned)text[i] - '0' : ((unsigned)text[i] | 0x20) - 'a' + 10);
    }
    return value & 0xffff;
}

static size_t utf8_encode(unsigned code, char out[4]) {
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead[] = {0, 0x00, 0xc0, 0xe0, 0xf0};
    for (size_t i = length - 1; i > 0; i--, code >>= 6) {
        out[i] = (char)(0x80 | (code & 0x3f));
    }
    out[0] = (char)(lead[length] | code);
    return length;
}

/* Decodes the escape at *at into `out`; returns its bytes. */
static size_t unescape(const char *text, size_t size, size_t *at, char out[4]) {
    static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
    size_t left = size - *at;
    if (left < 2 || (text[*at + 1] == 'u' && left < 6)) {
        *at = size;
        return 0;
    }
    char letter = text[*at + 1];
    if (letter != 'u') {
        const char *place = strchr(from, letter);
        out[0] = place != NULL && letter ? to[place - from] : letter;
        *at += 2;
        return 1;
    }
    unsigned code = hex4(text + *at + 2);
    *at += 6;
    if (code >= 0xd800 && code <= 0xdbff && left >= 12) {
        code = 0x10000 + ((code & 0x3ff) << 10) + (hex4(text + *at + 2) & 0x3ff);
        *at += 6;
    }
    return utf8_encode(code, out);
}

/* Decodes a whole string; `nul` replaces decoded NUL bytes. *kept receives the bytes written, which
   end with a whole character. */
static size_t decode(const struct json_value *value, char *out, size_t capacity, const char *nul,
                     size_t nul_size, size_t *kept) {
    size_t length = 0, end = value->size > 0 ? value->size - 1 : 0;
    *kept = 0;
    bool cut = capacity == 0;
    for (size_t at = 1; at < end;) {
        char escape[4];
        const char *bytes = value->text + at;
        size_t count;
        if (*bytes == '\\') {
            count = unescape(value->text, end, &at, escape);
            bytes = escape;
        } else {
            count = utf8_length(bytes, end - at);
            count += count == 0;
            at += count;
        }
        if (count == 1 && *bytes == '\0') {
            bytes = nul;
            count = nul_size;
        }
        cut = cut || length + count > capacity - 1;
        if (!cut) {
            memmove(out + length, bytes, count); /* `out` may be the string itself */
            *kept += count;
        }
        length += count;
    }
    if (capacity > 0) {
        out[*kept] = '\0';
    }
    return length;
}

size_t json_string(const struct json_value *value, char *out, size_t capacity) {
    size_t kept;
    return decode(value, out, capacity, "", 1, &kept);
}

/* A key as a C string: a NUL in it becomes U+FFFD, so that it cannot pass for a shorter key. */
static void decode_key(const struct json_value *value, char *key, size_t key_size) {
    static const char more[] = "\xe2\x80\xa6";
    size_t kept;
    if (decode(value, key, key_size, "\xef\xbf\xbd", 3, &kept) < key_size || key_size < 4) {
        return;
    }
    while (kept > 0 && (kept > key_size - 4 || ((unsigned char)key[kept] & 0xc0) == 0x80)) {
        kept--;
    }
    memcpy(key + kept, more, sizeof more);
}

bool json_next_member(const struct json_value *object, size_t *cursor, char *key, size_t key_size,
                      struct json_value *value) {
    const char *text = object->text;
    size_t size = object->size, at = gap_skip(text, size, *cursor == 0 ? 1 : *cursor);
    if (at >= size || text[at] != '"') {
        return false;
    }
    size_t end = string_skip(text, size, at);
    struct json_value name = {JSON_STRING, text + at, end - at};
    decode_key(&name, key, key_size);
    at = end;
    while (at < size && (is_space(text[at]) || text[at] == ':')) {
        at++;
    }
    end = value_skip(text, size, at);
    json_value_make(text + at, end - at, value);
    *cursor = end;
    return end > at;
}

struct json_value json_member(const struct json_value *object, const char *name) {
    struct json_value value;
    char key[32];
    size_t cursor = 0;
    while (object->type == JSON_OBJECT &&
           json_next_member(object, &cursor, key, sizeof key, &value)) {
        if (strcmp(key, name) == 0) {
            return value;
        }
    }
    return (struct json_value){.type = JSON_NULL, .text = "null", .size = 4};
}

double json_number(const struct json_value *value) {
    double number = 0;
    decimal_read(value->text, value->size, &number);
    return number;
}

size_t json_numbers(const struct json_value *array, bool gaps, double *out, size_t capacity,
                    size_t *bad) {
    const char *text = array->text;
    size_t size = array->size, at = 1, count = 0;
    for (;;) {
        at = gap_skip(text, size, at);
        if (at >= size || text[at] == ']') {
            return count;
        }
        double number;
        size_t length = decimal_read(text + at, size - at, &number);
        if (length == 0 && gaps && size - at >= 4 && memcmp(text + at, "null", 4) == 0) {
            number = NAN;
            length = 4;
        }
        if (length == 0) {
            *bad = count;
            return SIZE_MAX;
        }
        if (count < capacity) {
            out[count] = number;
        }
        count++;
        at += length;
        if (count % NUMBERS_STRIDE == 0 && cancel_point(NUMBERS_STRIDE * (length + 1))) {
            *bad = count;
            return SIZE_MAX;
        }
    }
}
