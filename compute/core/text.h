/*
 * text.h: a bounded text builder over memory of the caller.
 *
 * All text that leaves the daemon (JSON, CSV, metrics, headers) is written through this. Writing
 * past the end sets `full` and drops the rest; the length is never wrong and the text is always
 * NUL-terminated (capacity counts the NUL).
 *
 * Threads: one owner at a time. Ownership: the buffer stays the caller's.
 */
#ifndef KILN_COMPUTE_CORE_TEXT_H
#define KILN_COMPUTE_CORE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *data;
    size_t size;     /* bytes written, without the NUL */
    size_t capacity; /* bytes of data, at least 1 */
    bool full;       /* something was dropped */
};

void text_init(struct text *text, char *data, size_t capacity);
void text_bytes(struct text *text, const void *bytes, size_t size);
void text_string(struct text *text, const char *string);
void text_format(struct text *text, const char *format, ...) __attribute__((format(printf, 2, 3)));

/** The shortest decimal that reads back as the same double ("0.1"); NaN and infinities as `null`.
 */
void text_double(struct text *text, double value);
/** The shortest decimal that reads back as the same float. */
void text_float(struct text *text, float value);
void text_integer(struct text *text, int64_t value);

/** A JSON string literal with quotes, without control characters; bytes that are not UTF-8 become
    U+FFFD. */
void text_json_string(struct text *text, const char *string, size_t size);

#endif
