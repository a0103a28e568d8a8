/*
 * pairs.h: percent-decoding, and the names with values of a query or a form.
 *
 * Threads: one owner. Ownership: texts are changed where they lie.
 */
#ifndef KILN_COMPUTE_CODECS_PAIRS_H
#define KILN_COMPUTE_CODECS_PAIRS_H

#include <stdbool.h>
#include <stddef.h>

/** Decodes `size` bytes in place ('+' is a blank where `plus`), NUL-terminating in text[returned
    size] (there must be a byte for it). False for a broken escape, a NUL or a control character. */
bool percent_decode(char *text, size_t size, bool plus, size_t *decoded);

/** Next name and value of a query or form text between *cursor and `end`, decoded in place; *end
    must be writable. Returns false at the end; `*broken` tells that an escape was bad. */
bool pair_next(char **cursor, char *end, char **name, char **value, bool *broken);

#endif
