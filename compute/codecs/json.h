/*
 * json.h: a strict reader of RFC 8259 JSON, without a tree.
 *
 * json_check validates the whole text once (UTF-8, grammar, control characters, depth, duplicate
 * keys of the top-level object, nothing after the end); the other calls then walk validated text
 * and cannot fail on syntax. Numbers out of a double's range are malformed.
 *
 * Threads: reentrant. Ownership: values point into the caller's text.
 */
#ifndef KILN_COMPUTE_CODECS_JSON_H
#define KILN_COMPUTE_CODECS_JSON_H

#include "compute/core/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define JSON_DEPTH_MAX 64

enum json_type {
    JSON_NULL,
    JSON_FALSE,
    JSON_TRUE,
    JSON_NUMBER,
    JSON_STRING,
    JSON_ARRAY,
    JSON_OBJECT
};

/** A value inside validated text; `text` covers it from its first to its last byte. */
struct json_value {
    enum json_type type;
    const char *text;
    size_t size;
};

/** A value of text that is known to be well formed, by its first byte. */
void json_value_make(const char *text, size_t size, struct json_value *value);

/** KILN_OK, or KILN_MALFORMED with what and where ("line 1, column 17: …"). The top-level object
   may have 256 members with keys of 1024 bytes. KILN_CANCELLED at a cancellation point. */
enum kiln_status json_check(const char *text, size_t size, struct json_value *value, char *why,
                            size_t why_size);

/** Walks an object's members or an array's elements. Start with `cursor` 0; false at the end. The
    key is decoded into `key` (NUL-terminated, cut at key_size - 1 with `key` then ending in "…"; a
    NUL inside a key becomes U+FFFD). */
bool json_next_member(const struct json_value *object, size_t *cursor, char *key, size_t key_size,
                      struct json_value *value);
bool json_next_element(const struct json_value *array, size_t *cursor, struct json_value *value);
/** The first member of this name, of at most 31 bytes; null where there is none, or where `object`
   is no object. */
struct json_value json_member(const struct json_value *object, const char *name);

/** Number as double (correctly rounded). */
double json_number(const struct json_value *value);
/** Decodes a string (escapes, surrogates) into `out`, NUL-terminated; returns its full decoded
    length (more than capacity - 1 means it was cut). A decoded NUL byte is kept and counted.
    `out` may be the value's own text, which is then overwritten. */
size_t json_string(const struct json_value *value, char *out, size_t capacity);

/** An array of numbers into `out`: returns how many elements the array has, writing at most
    `capacity`; SIZE_MAX if an element is not a number (its index in `bad`), or at a cancellation
    point. With `gaps` an element may be null, which is NaN. */
size_t json_numbers(const struct json_value *array, bool gaps, double *out, size_t capacity,
                    size_t *bad);

#endif
