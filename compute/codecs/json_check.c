/*
 * json_check.c: one strict pass over untrusted JSON (json.h), before anything walks it.
 *
 * A state machine with a bit stack instead of recursion, so that nesting costs bits and not stack
 * frames. Only the members of the top-level object are held against each other: they are the
 * fields of a request, of which there are few, so their number and the length of their keys are
 * bounded here as well, which bounds the search for duplicates.
 * Thread: any.
 */
#include "compute/codecs/json.h"

#include "compute/core/cancel.h"
#include "compute/core/decimal.h"
#include "compute/core/utf8.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define MEMBERS_MAX 256  /* of the top-level object */
#define KEY_MAX     1024 /* bytes of a top-level key as written */
#define PLAIN_MAX   300  /* digits of an integer that cannot leave a double's range */

struct checker {
    const char *text;
    size_t size, at;
    size_t start, end; /* of the outermost value */
    size_t look;       /* where the next cancellation point is */
    bool cancelled;
    const char *problem; /* NULL: none so far */
    uint64_t objects;    /* bit d: nesting level d is an object */
    int depth;
    size_t members;
    struct json_value keys[MEMBERS_MAX];
    uint64_t hashes[MEMBERS_MAX];
};

static bool fail(struct checker *checker, const char *problem) {
    if (checker->problem == NULL) {
        checker->problem = problem;
    }
    return false;
}

/* True if the work is to end here. */
static bool cancelled(struct checker *checker) {
    if (checker->at < checker->look) {
        return false;
    }
    checker->cancelled = cancel_point(CANCEL_STRIDE);
    checker->look = checker->at + CANCEL_STRIDE;
    return checker->cancelled;
}

static int peek(const struct checker *checker) {
    return checker->at < checker->size ? (unsigned char)checker->text[checker->at] : -1;
}

static void space_skip(struct checker *checker) {
    while (checker->at < checker->size) {
        char c = checker->text[checker->at];
        if ((c != ' ' && c != '\n' && c != '\r' && c != '\t') || cancelled(checker)) {
            return;
        }
        checker->at++;
    }
}

static size_t digits_skip(struct checker *checker) {
    size_t start = checker->at;
    while (checker->at < checker->size && checker->text[checker->at] >= '0' &&
           checker->text[checker->at] <= '9' && !cancelled(checker)) {
        checker->at++;
    }
    return checker->at - start;
}

static bool check_number(struct checker *checker) {
    size_t start = checker->at;
    checker->at += peek(checker) == '-';
    bool zero = peek(checker) == '0';
    size_t digits = digits_skip(checker);
    if (digits == 0) {
        return fail(checker, "a digit is expected here");
    }
    if (zero && digits > 1) {
        return fail(checker, "a number must not start with 0");
    }
    if (peek(checker) == '.') {
        checker->at++;
        if (digits_skip(checker) == 0) {
            return fail(checker, "a digit is expected after the decimal point");
        }
    }
    bool exponent = (peek(checker) | 0x20) == 'e';
    if (exponent) {
        checker->at++;
        if (peek(checker) == '+' || peek(checker) == '-') {
            checker->at++;
        }
        if (digits_skip(checker) == 0) {
            return fail(checker, "a digit is expected in the exponent");
        }
    }
    if (exponent || digits > PLAIN_MAX) {
        double value = 0;
        decimal_read(checker->text + start, checker->at - start, &value);
        if (isinf(value)) {
            return fail(checker, "the number is out of a double's range");
        }
    }
    return true;
}

/* Four hexadecimal digits at `at`, or -1. */
static int hex4(const struct checker *checker, size_t at) {
    int value = 0;
    if (checker->size - at < 4) {
        return -1;
    }
    for (size_t i = at; i < at + 4; i++) {
        char c = checker->text[i], lower = (char)(c | 0x20);
        if (c >= '0' && c <= '9') {
            value = value * 16 + c - '0';
        } else if (lower >= 'a' && lower <= 'f') {
            value = value * 16 + lower - 'a' + 10;
        } else {
            return -1;
        }
    }
    return value;
}

static bool check_escape(struct checker *checker) {
    checker->at++;
    int letter = peek(checker);
    if (letter == -1) {
        return fail(checker, "the string does not end");
    }
    if (letter != 'u') {
        if (strchr("\"\\/bfnrt", letter) == NULL || letter == 0) {
            return fail(checker, "unknown escape in a string");
        }
        checker->at++;
        return true;
    }
    int unit = hex4(checker, ++checker->at);
    if (unit < 0) {
        return fail(checker, "four hexadecimal digits are expected after \\u");
    }
    if (unit >= 0xdc00 && unit <= 0xdfff) {
        return fail(checker, "half of a surrogate pair");
    }
    checker->at += 4;
    if (unit < 0xd800 || unit > 0xdbff) {
        return true;
    }
    if (checker->size - checker->at < 6 || memcmp(checker->text + checker->at, "\\u", 2) != 0) {
        return fail(checker, "half of a surrogate pair");
    }
    unit = hex4(checker, checker->at + 2);
    if (unit < 0xdc00 || unit > 0xdfff) {
        return fail(checker, "half of a surrogate pair");
    }
    checker->at += 6;
    return true;
}

static bool check_string(struct checker *checker) {
    checker->at++;
    for (;;) {
        int c = peek(checker);
        if (cancelled(checker)) {
            return false;
        }
        if (c == -1) {
            return fail(checker, "the string does not end");
        }
        if (c == '"') {
            checker->at++;
            return true;
        }
        if (c < 0x20) {
            return fail(checker, "a control character must be escaped in a string");
        }
        if (c == '\\') {
            if (!check_escape(checker)) {
                return false;
            }
            continue;
        }
        size_t length = utf8_length(checker->text + checker->at, checker->size - checker->at);
        if (length == 0) {
            return fail(checker, "the text is not UTF-8");
        }
        checker->at += length;
    }
}

/* Remembers a key of the top-level object and refuses one that was there before. */
static bool check_member(struct checker *checker, size_t start) {
    char text[KEY_MAX], other[KEY_MAX];
    struct json_value key = {JSON_STRING, checker->text + start, checker->at - start};
    size_t end = checker->at;
    checker->at = start;
    if (checker->members == MEMBERS_MAX) {
        return fail(checker, "there are too many members");
    }
    if (key.size > KEY_MAX) {
        return fail(checker, "the key is too long");
    }
    size_t length = json_string(&key, text, sizeof text);
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (size_t i = 0; i < length; i++) {
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    }
    for (size_t i = 0; i < checker->members; i++) {
        if (checker->hashes[i] == hash &&
            json_string(&checker->keys[i], other, sizeof other) == length &&
            memcmp(text, other, length) == 0) {
            return fail(checker, "the key was given before");
        }
    }
    checker->keys[checker->members] = key;
    checker->hashes[checker->members++] = hash;
    checker->at = end;
    return true;
}

static bool check_key(struct checker *checker) {
    size_t start = checker->at;
    if (peek(checker) != '"') {
        return fail(checker, "a key in quotes is expected here");
    }
    if (!check_string(checker)) {
        return false;
    }
    if (checker->depth == 1 && !check_member(checker, start)) {
        return false;
    }
    space_skip(checker);
    if (peek(checker) != ':') {
        return fail(checker, "a colon is expected here");
    }
    checker->at++;
    return true;
}

/* What other languages write for numbers that JSON does not have. */
static bool foreign_number(const struct checker *checker) {
    static const char *const words[] = {"NaN", "nan", "Infinity", "inf"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i]);
        if (checker->size - checker->at >= length &&
            memcmp(checker->text + checker->at, words[i], length) == 0) {
            return true;
        }
    }
    return false;
}

static bool check_word(struct checker *checker) {
    static const char *const words[] = {"true", "false", "null"};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
        size_t length = strlen(words[i]);
        if (checker->size - checker->at >= length &&
            memcmp(checker->text + checker->at, words[i], length) == 0) {
            checker->at += length;
            return true;
        }
    }
    if (foreign_number(checker)) {
        return fail(checker, "JSON has no NaN and no infinity; null stands for a missing number");
    }
    return fail(checker, checker->at < checker->size ? "a value is expected here"
                                                     : "the text ends too early");
}

enum state { VALUE, FIRST_ELEMENT, KEY, FIRST_KEY, AFTER, DONE, BROKEN };

static enum state open_container(struct checker *checker, bool object) {
    if (checker->depth == JSON_DEPTH_MAX) {
        return fail(checker, "the nesting is too deep"), BROKEN;
    }
    uint64_t bit = UINT64_C(1) << checker->depth++;
    checker->objects = object ? checker->objects | bit : checker->objects & ~bit;
    checker->at++;
    return object ? FIRST_KEY : FIRST_ELEMENT;
}

static enum state check_value(struct checker *checker) {
    int c = peek(checker);
    if (c == '{' || c == '[') {
        return open_container(checker, c == '{');
    }
    bool good = c == '"'                             ? check_string(checker)
                : c == '-' || (c >= '0' && c <= '9') ? check_number(checker)
                                                     : check_word(checker);
    return good ? AFTER : BROKEN;
}

/* What follows a value inside the container that is open. */
static enum state check_after(struct checker *checker) {
    if (checker->depth == 0) {
        return DONE;
    }
    bool object = checker->objects >> (checker->depth - 1) & 1;
    int c = peek(checker);
    if (c == (object ? '}' : ']')) {
        checker->depth--;
        checker->at++;
        return AFTER;
    }
    if (c != ',') {
        fail(checker, c == -1  ? "the text ends too early"
                      : object ? "a comma or } is expected here"
                               : "a comma or ] is expected here");
        return BROKEN;
    }
    checker->at++;
    return object ? KEY : VALUE;
}

static bool check_text(struct checker *checker) {
    enum state state = VALUE;
    space_skip(checker);
    checker->start = checker->at;
    while (state < DONE) {
        if (cancelled(checker)) {
            return false;
        }
        if (state == AFTER && checker->depth == 0) {
            checker->end = checker->at;
        }
        space_skip(checker);
        int c = peek(checker);
        if ((state == FIRST_ELEMENT && c == ']') || (state == FIRST_KEY && c == '}')) {
            state = AFTER; /* the container ends at once */
        }
        if (state == AFTER) {
            state = check_after(checker);
        } else if (state == KEY || state == FIRST_KEY) {
            state = check_key(checker) ? VALUE : BROKEN;
        } else {
            state = check_value(checker);
        }
    }
    if (state == DONE && checker->at < checker->size) {
        return fail(checker, "there is something after the end");
    }
    return state == DONE;
}

/* Line and column (in characters) of the place where the checker stopped. */
static void describe(const struct checker *checker, char *why, size_t why_size) {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < checker->at && i < checker->size; i++) {
        unsigned char c = (unsigned char)checker->text[i];
        if (c == '\n') {
            line++;
            column = 1;
        } else {
            column += (c & 0xc0) != 0x80;
        }
    }
    snprintf(why, why_size, "line %zu, column %zu: %s", line, column, checker->problem);
}

enum kiln_status json_check(const char *text, size_t size, struct json_value *value, char *why,
                            size_t why_size) {
    struct checker checker; /* the tables of keys are filled as far as `members` says */
    checker.text = text;
    checker.size = size;
    checker.at = 0;
    checker.problem = NULL;
    checker.objects = 0;
    checker.depth = 0;
    checker.members = 0;
    checker.look = CANCEL_STRIDE; /* short texts are whoever calls' to count */
    checker.cancelled = false;
    bool good = check_text(&checker);
    if (checker.cancelled) {
        return KILN_CANCELLED;
    }
    if (!good) {
        describe(&checker, why, why_size);
        return KILN_MALFORMED;
    }
    json_value_make(text + checker.start, checker.end - checker.start, value);
    return KILN_OK;
}
