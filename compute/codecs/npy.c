/*
 * npy.c: the NumPy array format (npy.h).
 *
 * The header is a Python dictionary literal. The parser takes the subset that describes an array of
 * numbers (three keys in any order; a string, a boolean and a tuple of integers) and refuses the
 * rest, so nothing is evaluated.
 * Thread: any.
 */
#include "compute/codecs/npy.h"

#include "compute/codecs/samples.h"

#include <stdio.h>
#include <string.h>

enum keys { KEY_DESCR = 1, KEY_ORDER = 2, KEY_SHAPE = 4, KEY_ALL = 7 };

struct cursor {
    const char *text;
    size_t size, at;
};

static void space_skip(struct cursor *cursor) {
    while (cursor->at < cursor->size &&
           (cursor->text[cursor->at] == ' ' || cursor->text[cursor->at] == '\n' ||
            cursor->text[cursor->at] == '\t')) {
        cursor->at++;
    }
}

/* Takes the character, after white space, if it is next. */
static bool take(struct cursor *cursor, char c) {
    space_skip(cursor);
    if (cursor->at >= cursor->size || cursor->text[cursor->at] != c) {
        return false;
    }
    cursor->at++;
    return true;
}

static bool take_word(struct cursor *cursor, const char *word) {
    size_t length = strlen(word);
    space_skip(cursor);
    if (cursor->size - cursor->at < length ||
        memcmp(cursor->text + cursor->at, word, length) != 0) {
        return false;
    }
    cursor->at += length;
    return true;
}

/* A string of at most 31 characters without escapes. */
static bool take_string(struct cursor *cursor, char out[32]) {
    char quote = '\'';
    size_t length = 0;
    if (!take(cursor, quote) && !take(cursor, quote = '"')) {
        return false;
    }
    for (; cursor->at < cursor->size; length++) {
        char c = cursor->text[cursor->at++];
        if (c == quote) {
            out[length] = '\0';
            return true;
        }
        if (c == '\\' || c < ' ' || length == 31) {
            return false;
        }
        out[length] = c;
    }
    return false;
}

static const char *take_dimension(struct cursor *cursor, uint64_t *value) {
    size_t start = cursor->at;
    *value = 0;
    for (; cursor->at < cursor->size; cursor->at++) {
        unsigned digit = (unsigned)(unsigned char)cursor->text[cursor->at] - '0';
        if (digit > 9) {
            break;
        }
        if (*value > (UINT64_MAX - digit) / 10) {
            return "a dimension is too large";
        }
        *value = *value * 10 + digit;
    }
    if (cursor->at == start) {
        return "a dimension is not a number ≥ 0";
    }
    take(cursor, 'L'); /* Python 2 wrote long integers so */
    return NULL;
}

static const char *take_shape(struct cursor *cursor, struct npy *npy) {
    if (!take(cursor, '(')) {
        return "the shape is not a tuple";
    }
    npy->dimensions = 0;
    npy->count = 1;
    for (bool comma = true; !take(cursor, ')');) {
        if (!comma) {
            return "the shape is not a tuple";
        }
        if (npy->dimensions == NPY_DIMENSIONS_MAX) {
            return "the array has too many dimensions";
        }
        space_skip(cursor);
        uint64_t *dimension = &npy->shape[npy->dimensions++];
        const char *problem = take_dimension(cursor, dimension);
        if (problem != NULL) {
            return problem;
        }
        comma = take(cursor, ',');
        if (npy->dimensions == 1 && !comma) {
            return "the shape is not a tuple"; /* (3) is a number in Python */
        }
        if (__builtin_mul_overflow(npy->count, *dimension, &npy->count)) {
            return "the shape is too large";
        }
    }
    return NULL;
}

static const char *take_type(struct cursor *cursor, struct npy *npy) {
    char text[32];
    space_skip(cursor);
    if (cursor->at < cursor->size && cursor->text[cursor->at] == '[') {
        return "structured arrays are not accepted";
    }
    if (!take_string(cursor, text)) {
        return "the type is not a string";
    }
    char order = strchr("<>=|", text[0]) != NULL && text[0] ? text[0] : '=';
    const char *type = text + (text[0] == order);
    if (strlen(type) != 2 || type[1] < '1' || type[1] > '8') {
        return "the type is not one of bool, int, uint and float of 1 to 8 bytes";
    }
    npy->kind = type[0];
    npy->item = (uint32_t)(type[1] - '0');
    if (samples_reader_find(npy->kind, npy->item, false) == NULL ||
        (order == '|' && npy->item > 1)) {
        return "the type is not one of bool, int, uint and float of 1 to 8 bytes";
    }
    bool little = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__;
    npy->swapped = npy->item > 1 && order == (little ? '>' : '<');
    return NULL;
}

static const char *take_order(struct cursor *cursor, struct npy *npy) {
    npy->fortran = take_word(cursor, "True");
    return npy->fortran || take_word(cursor, "False") ? NULL : "fortran_order is not a boolean";
}

static const char *take_members(struct cursor *cursor, struct npy *npy) {
    static const struct {
        const char *name;
        const char *(*take)(struct cursor *cursor, struct npy *npy);
    } members[] = {{"descr", take_type}, {"fortran_order", take_order}, {"shape", take_shape}};
    unsigned seen = 0;
    char key[32];
    if (!take(cursor, '{')) {
        return "the header is not a dictionary";
    }
    for (bool comma = true; !take(cursor, '}');) {
        size_t i = 0;
        if (!comma || !take_string(cursor, key) || !take(cursor, ':')) {
            return "the header is not a dictionary";
        }
        while (i < 3 && strcmp(members[i].name, key) != 0) {
            i++;
        }
        if (i == 3 || (seen & 1u << i)) {
            return "the header has an unknown or repeated key";
        }
        seen |= 1u << i;
        const char *problem = members[i].take(cursor, npy);
        if (problem != NULL) {
            return problem;
        }
        comma = take(cursor, ',');
    }
    space_skip(cursor);
    if (cursor->at < cursor->size) {
        return "there is something after the header's dictionary";
    }
    return seen == KEY_ALL ? NULL : "the header lacks one of descr, fortran_order and shape";
}

/* The place of the dictionary, from magic, version and length. */
static const char *find_header(const uint8_t *bytes, size_t size, struct cursor *cursor) {
    if (size < 10 || memcmp(bytes, "\x93NUMPY", 6) != 0) {
        return "the magic bytes are missing";
    }
    if (bytes[6] < 1 || bytes[6] > 3 || bytes[7] != 0) {
        return "the version is not 1.0, 2.0 or 3.0";
    }
    size_t start = bytes[6] == 1 ? 10 : 12;
    if (size < start) {
        return "the file ends inside the header";
    }
    uint64_t length = bytes[8] | (uint64_t)bytes[9] << 8;
    if (bytes[6] > 1) {
        length |= (uint64_t)bytes[10] << 16 | (uint64_t)bytes[11] << 24;
    }
    if (length > NPY_HEADER_MAX) {
        return "the header is too long";
    }
    if (length > size - start) {
        return "the file ends inside the header";
    }
    *cursor = (struct cursor){(const char *)bytes + start, (size_t)length, 0};
    return NULL;
}

enum kiln_status npy_parse(const void *bytes, size_t size, bool whole, struct npy *npy, char *why,
                           size_t why_size) {
    struct cursor cursor;
    uint64_t total;
    memset(npy, 0, sizeof *npy);
    const char *problem = find_header(bytes, size, &cursor);
    if (problem == NULL) {
        problem = take_members(&cursor, npy);
    }
    if (problem == NULL) {
        npy->data = (size_t)(cursor.text - (const char *)bytes) + cursor.size;
        if (__builtin_mul_overflow(npy->count, (uint64_t)npy->item, &total)) {
            problem = "the shape is too large";
        } else if (whole && total > size - npy->data) {
            problem = "the file ends before its data does";
        }
    }
    if (problem == NULL) {
        return KILN_OK;
    }
    snprintf(why, why_size, "NPY: %s", problem);
    return KILN_MALFORMED;
}

double npy_element(const struct npy *npy, const void *bytes, uint64_t index) {
    uint64_t place = index;
    if (npy->fortran && npy->dimensions > 1) {
        uint64_t step = npy->count, rest = index;
        place = 0;
        for (uint32_t d = npy->dimensions; d-- > 0;) {
            step /= npy->shape[d];
            place += rest % npy->shape[d] * step;
            rest /= npy->shape[d];
        }
    }
    double value;
    samples_reader_find(npy->kind, npy->item, npy->swapped)(
        (const uint8_t *)bytes + npy->data + place * npy->item, npy->item, 1, &value);
    return value;
}

size_t npy_write_header(void *out, size_t capacity, const char *dtype, const uint64_t *shape,
                        uint32_t dimensions) {
    char text[NPY_WRITE_MAX];
    int at =
        snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': (", dtype);
    for (uint32_t d = 0; d < dimensions && at >= 0 && at < (int)sizeof text; d++) {
        at += snprintf(text + at, sizeof text - (size_t)at, "%s%llu%s", d ? " " : "",
                       (unsigned long long)shape[d],
                       dimensions == 1 || d + 1 < dimensions ? "," : "");
    }
    if (at >= 0 && at < (int)sizeof text) {
        at += snprintf(text + at, sizeof text - (size_t)at, "), }");
    }
    size_t total = ((size_t)at + 10 + 1 + 63) / 64 * 64;
    if (at < 0 || total > NPY_WRITE_MAX || total > capacity) {
        return 0;
    }
    uint8_t *bytes = out;
    memcpy(bytes, "\x93NUMPY\x01\x00", 8);
    bytes[8] = (uint8_t)(total - 10);
    bytes[9] = (uint8_t)((total - 10) >> 8);
    memcpy(bytes + 10, text, (size_t)at);
    memset(bytes + 10 + at, ' ', total - 10 - (size_t)at);
    bytes[total - 1] = '\n';
    return total;
}
