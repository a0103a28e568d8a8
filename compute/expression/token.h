/*
 * token.h: an expression's text as words, numbers and signs.
 *
 * Threads: reentrant. Ownership: tokens point into the text.
 */
#ifndef KILN_COMPUTE_EXPRESSION_TOKEN_H
#define KILN_COMPUTE_EXPRESSION_TOKEN_H

#include <stdbool.h>
#include <stddef.h>

enum token_kind {
    TOKEN_END,
    TOKEN_NAME,
    TOKEN_WHOLE,
    TOKEN_REAL,
    TOKEN_SIGN,
    TOKEN_SEPARATOR, /* ; or the end of a line */
    TOKEN_BAD
};

struct token {
    enum token_kind kind;
    const char *text;
    size_t size;
    size_t column;  /* from 1 */
    __int128 whole; /* of TOKEN_WHOLE, ≥ 0 */
    double real;
    const char *why; /* of TOKEN_BAD: what is wrong */
};

/** Reads the token at `at` of `size` bytes of text. The next one begins behind it. */
struct token token_read(const char *text, size_t size, size_t at);
/** Whether it is this sign or word. */
bool token_is(const struct token *token, const char *text);

#endif
