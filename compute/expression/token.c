/*
 * token.c: the next token of a text (token.h).
 */
#include "compute/expression/token.h"

#include "compute/core/decimal.h"

#include <string.h>

#define WHOLE_MAX ((__int128)1 << 100)

static bool is_digit(char c) {
    return c >= '0' && c <= '9';
}

static bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* The value of a digit of a base up to 16; 16 or more for other characters. */
static int digit_value(char c) {
    if (is_digit(c)) {
        return c - '0';
    }
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 99;
}

static void whole_read(struct token *token, const char *text, size_t size, int base) {
    token->kind = TOKEN_WHOLE;
    token->size = base == 10 ? 0 : 2;
    size_t first = token->size;
    while (token->size < size && digit_value(text[token->size]) < base) {
        if (token->whole < WHOLE_MAX) {
            token->whole = token->whole * base + digit_value(text[token->size]);
        }
        token->size++;
    }
    if (token->size == first) {
        token->why = "digits are missing";
    } else if (token->whole >= WHOLE_MAX) {
        token->why = "the number is too large";
    } else if (base == 10 && token->size > 1 && text[0] == '0' && token->whole != 0) {
        token->why = "a whole number must not begin with 0";
    }
}

static void number_read(struct token *token, const char *text, size_t size) {
    char second = size > 1 ? (char)(text[1] | 0x20) : '\0';
    int base = text[0] != '0'  ? 10
               : second == 'x' ? 16
               : second == 'b' ? 2
               : second == 'o' ? 8
                               : 10;
    size_t real = base == 10 ? decimal_read(text, size, &token->real) : 0;
    whole_read(token, text, size, base);
    if (real > token->size) {
        token->kind = TOKEN_REAL;
        token->size = real;
        token->why = NULL;
    }
    if (token->size < size && (text[token->size] == 'j' || text[token->size] == 'J')) {
        token->why = "complex numbers are not available";
    } else if (token->size < size &&
               (is_letter(text[token->size]) || is_digit(text[token->size]))) {
        token->why = "a number ends in letters; is an operator missing?";
    }
    if (token->why != NULL) {
        token->kind = TOKEN_BAD;
    }
}

static void sign_read(struct token *token, const char *text, size_t size) {
    static const char *const signs[] = {
        "**=", "//=", "<<=", ">>=", "**", "//", "<<", ">>", "<=", ">=", "==", "!=",
        "+=",  "-=",  "*=",  "/=",  "%=", "&=", "|=", "^=", "+",  "-",  "*",  "/",
        "%",   "<",   ">",   "=",   "(",  ")",  ",",  "&",  "|",  "^",  "~"};
    for (size_t i = 0; i < sizeof signs / sizeof signs[0]; i++) {
        size_t length = strlen(signs[i]);
        if (length <= size && memcmp(text, signs[i], length) == 0) {
            token->kind = TOKEN_SIGN;
            token->size = length;
            return;
        }
    }
    token->kind = TOKEN_BAD;
    token->size = 1;
    token->why = text[0] == '[' ? "elements cannot be indexed; index(axis) gives an element's place"
                 : text[0] == '.' ? "names have no attributes; write sqrt(x), not np.sqrt(x)"
                 : text[0] == '!' ? "write `not x` or `!=`"
                                  : "this character has no meaning here";
}

struct token token_read(const char *text, size_t size, size_t at) {
    struct token token = {.kind = TOKEN_END};
    while (at < size && (text[at] == ' ' || text[at] == '\t' || text[at] == '\r')) {
        at++;
    }
    token.text = text + at;
    token.column = at + 1;
    if (at == size) {
        return token;
    }
    const char *from = text + at;
    size_t left = size - at;
    if (from[0] == ';' || from[0] == '\n') {
        token.kind = TOKEN_SEPARATOR;
        token.size = 1;
    } else if (is_letter(from[0])) {
        token.kind = TOKEN_NAME;
        while (token.size < left && (is_letter(from[token.size]) || is_digit(from[token.size]))) {
            token.size++;
        }
    } else if (is_digit(from[0]) || (from[0] == '.' && left > 1 && is_digit(from[1]))) {
        number_read(&token, from, left);
    } else {
        sign_read(&token, from, left);
    }
    return token;
}

bool token_is(const struct token *token, const char *text) {
    return (token->kind == TOKEN_NAME || token->kind == TOKEN_SIGN) &&
           token->size == strlen(text) && memcmp(token->text, text, token->size) == 0;
}
