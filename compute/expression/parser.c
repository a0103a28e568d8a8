/*
 * parser.c: expressions, by recursive descent over Python's precedence (parser.h).
 *
 * Values are made while reading: what is read is typed before the next token, so a message can name
 * its column. Depth is counted wherever the grammar returns to itself.
 */
#include "compute/expression/parser_private.h"

#include "compute/core/spelling.h"
#include "compute/expression/function.h"

#include <math.h>
#include <string.h>

static struct operand unary_read(struct parser *parser);

struct operand parser_fail(struct parser *parser, size_t column, const char *text) {
    graph_fail(parser->graph, column, "%s", text);
    return operand_value(NO_VALUE, column);
}

bool parser_failed(const struct parser *parser) {
    return parser->graph->failed;
}

void parser_advance(struct parser *parser) {
    size_t behind = (size_t)(parser->token.text - parser->text) + parser->token.size;
    parser->token = token_read(parser->text, parser->size, behind);
    if (parser->token.kind == TOKEN_BAD) {
        parser_fail(parser, parser->token.column, parser->token.why);
    }
}

bool parser_next_is(const struct parser *parser, const char *text) {
    return !parser_failed(parser) && token_is(&parser->token, text);
}

static bool accept(struct parser *parser, const char *text) {
    if (!parser_next_is(parser, text)) {
        return false;
    }
    parser_advance(parser);
    return true;
}

void parser_unexpected(struct parser *parser, const char *wanted) {
    const struct token *token = &parser->token;
    if (token->kind == TOKEN_END || token->kind == TOKEN_SEPARATOR) {
        graph_fail(parser->graph, token->column, "the text ends where %s should stand", wanted);
    } else {
        graph_fail(parser->graph, token->column, "\"%.*s\" stands where %s should",
                   (int)(token->size < 32 ? token->size : 32), token->text, wanted);
    }
}

static void expect(struct parser *parser, const char *text, const char *wanted) {
    if (!accept(parser, text) && !parser_failed(parser)) {
        parser_unexpected(parser, wanted);
    }
}

/* Counts an operator or call whose place is `column`. */
void parser_count(struct parser *parser, size_t column) {
    parser->graph->column = column;
    if (++parser->nodes > EXPRESSION_NODES) {
        graph_fail(parser->graph, column, "the text has more than %d operators and calls",
                   EXPRESSION_NODES);
    }
}

static bool deeper(struct parser *parser) {
    if (++parser->depth > EXPRESSION_DEPTH) {
        graph_fail(parser->graph, parser->token.column, "the text nests more than %d levels deep",
                   EXPRESSION_DEPTH);
    }
    return !parser_failed(parser);
}

static bool word_is(const struct token *token, const char *const *words) {
    for (; *words != NULL; words++) {
        if (token_is(token, *words)) {
            return true;
        }
    }
    return false;
}

bool token_is_keyword(const struct token *token) {
    static const char *const words[] = {"if",     "else", "or",  "and", "not",  "True", "False",
                                        "lambda", "for",  "def", "is",  "None", "in",   NULL};
    return word_is(token, words);
}

struct name *parser_name(struct parser *parser, const struct token *token) {
    for (size_t i = 0; i < parser->name_count; i++) {
        struct name *name = &parser->names[i];
        if (name->size == token->size && memcmp(name->text, token->text, token->size) == 0) {
            return name;
        }
    }
    return NULL;
}

static bool constant_find(const struct token *token, struct weak *number) {
    static const struct {
        const char *name;
        struct weak number;
    } rows[] = {
        {"True", {WEAK_BOOL, 1, 0}},
        {"False", {WEAK_BOOL, 0, 0}},
        {"pi", {WEAK_REAL, 0, 3.141592653589793}},
        {"e", {WEAK_REAL, 0, 2.718281828459045}},
        {"inf", {WEAK_REAL, 0, INFINITY}},
        {"nan", {WEAK_REAL, 0, NAN}},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (token_is(token, rows[i].name)) {
            *number = rows[i].number;
            return true;
        }
    }
    return false;
}

struct operand parser_name_unknown(struct parser *parser, const struct token *token) {
    const char *meant = NULL, *function;
    char word[SPELLING_MAX + 1] = "", candidates[EXPRESSION_INPUTS + EXPRESSION_LOCALS][64];
    memcpy(word, token->text, token->size < SPELLING_MAX ? token->size : SPELLING_MAX);
    for (size_t i = 0; i < parser->name_count; i++) {
        const struct name *name = &parser->names[i];
        if (name->size <= SPELLING_MAX) {
            memcpy(candidates[i], name->text, name->size);
            candidates[i][name->size] = '\0';
            spelling_consider(word, candidates[i], &meant);
        }
    }
    if (function_find(token->text, token->size, &function) != NULL) {
        graph_fail(parser->graph, token->column, "%s is a function; write %s(…)", word, word);
    } else if (token_is_keyword(token)) {
        parser_unexpected(parser, "a value");
    } else {
        graph_fail(parser->graph, token->column,
                   meant != NULL ? "there is no array \"%s\"; \"%s\"?" : "there is no array \"%s\"",
                   word, meant);
    }
    return operand_value(NO_VALUE, token->column);
}

/* A whole number with its sign, of axis=. */
static void axis_read(struct parser *parser, struct call *call) {
    size_t column = parser->token.column;
    struct operand axis = unary_read(parser);
    if (parser_failed(parser)) {
        return;
    }
    __int128 whole = axis.number.whole;
    if (!axis.weak || axis.number.kind != WEAK_WHOLE || whole < -99 || whole > 99) {
        parser_fail(parser, column, "an axis is a small whole number, a tuple of them or None");
    } else if (call->axis_count == EXPRESSION_DIMS) {
        parser_fail(parser, column, "there are more axes than dimensions");
    } else {
        call->axis[call->axis_count++] = (int64_t)whole;
    }
}

static void axes_read(struct parser *parser, struct call *call) {
    call->has_axis = true;
    call->axis_count = 0;
    if (accept(parser, "None")) {
        call->has_axis = false;
    } else if (accept(parser, "(")) {
        while (!parser_failed(parser) && !parser_next_is(parser, ")")) {
            axis_read(parser, call);
            if (!accept(parser, ",")) {
                break;
            }
        }
        expect(parser, ")", "\")\" after the axes");
    } else {
        axis_read(parser, call);
    }
}

/* Whether a keyword argument begins here: a name and "=". */
static bool keyword_begins(const struct parser *parser) {
    size_t behind = (size_t)(parser->token.text - parser->text) + parser->token.size;
    struct token next = token_read(parser->text, parser->size, behind);
    return parser->token.kind == TOKEN_NAME && token_is(&next, "=");
}

static void keyword_read(struct parser *parser, struct call *call) {
    struct token word = parser->token;
    bool axis = token_is(&word, "axis"), keep = token_is(&word, "keepdims");
    if (!function_reduces(call->function) || (!axis && !keep)) {
        graph_fail(parser->graph, word.column, "%s has no argument \"%.*s\"%s",
                   function_name(call->function), (int)(word.size < 32 ? word.size : 32), word.text,
                   function_reduces(call->function) ? "; axis and keepdims?" : "");
        return;
    }
    parser_advance(parser);
    parser_advance(parser);
    if (axis) {
        axes_read(parser, call);
        return;
    }
    call->keep = parser_next_is(parser, "True");
    if (!accept(parser, "True") && !accept(parser, "False") && !parser_failed(parser)) {
        parser_unexpected(parser, "True or False");
    }
}

static void argument_read(struct parser *parser, struct call *call) {
    size_t column = parser->token.column;
    if (keyword_begins(parser)) {
        keyword_read(parser, call);
    } else if (function_reduces(call->function) && call->count == 1) {
        axes_read(parser, call); /* sum(x, 0) */
        call->count = 2;
    } else if (call->count == CALL_ARGUMENTS) {
        graph_fail(parser->graph, column, "%s has too many arguments",
                   function_name(call->function));
    } else {
        call->arguments[call->count++] = parser_expression(parser);
    }
}

static struct operand call_read(struct parser *parser, const struct token *word) {
    const char *meant;
    struct call call = {.function = function_find(word->text, word->size, &meant),
                        .column = word->column};
    if (call.function == NULL) {
        graph_fail(parser->graph, word->column,
                   meant != NULL ? "there is no function \"%.*s\"; \"%s\"?"
                                 : "there is no function \"%.*s\"",
                   (int)(word->size < 32 ? word->size : 32), word->text, meant);
        return operand_value(NO_VALUE, word->column);
    }
    parser_advance(parser); /* the parenthesis */
    while (!parser_failed(parser) && !parser_next_is(parser, ")")) {
        argument_read(parser, &call);
        if (!accept(parser, ",")) {
            break;
        }
    }
    expect(parser, ")", "\")\" after the arguments");
    parser_count(parser, word->column);
    if (parser_failed(parser)) {
        return operand_value(NO_VALUE, word->column);
    }
    if (call.count == 2 && function_reduces(call.function)) {
        call.count = 1; /* the second was the axis */
    }
    return function_call(parser->graph, &call);
}

static struct operand name_read(struct parser *parser) {
    struct token word = parser->token;
    struct weak number;
    parser_advance(parser);
    if (parser_next_is(parser, "(") && !token_is_keyword(&word)) {
        return call_read(parser, &word);
    }
    const struct name *name = parser_failed(parser) ? NULL : parser_name(parser, &word);
    if (name != NULL) {
        struct operand operand = name->operand;
        operand.column = word.column;
        return operand;
    }
    if (constant_find(&word, &number)) {
        return operand_weak(number, word.column);
    }
    if (token_is_keyword(&word)) {
        parser->token = word;
    }
    return parser_name_unknown(parser, &word);
}

static struct operand atom_read(struct parser *parser) {
    struct token token = parser->token;
    if (parser_failed(parser)) {
        return operand_value(NO_VALUE, token.column);
    }
    if (token.kind == TOKEN_NAME) {
        return name_read(parser);
    }
    if (token.kind == TOKEN_WHOLE || token.kind == TOKEN_REAL) {
        struct weak number = {.kind = token.kind == TOKEN_WHOLE ? WEAK_WHOLE : WEAK_REAL,
                              .whole = token.whole,
                              .real = token.real};
        parser_advance(parser);
        return operand_weak(number, token.column);
    }
    if (accept(parser, "(")) {
        struct operand inner = parser_expression(parser);
        if (parser_next_is(parser, ",")) {
            return parser_fail(parser, parser->token.column, "there are no tuples but of axes");
        }
        expect(parser, ")", "\")\"");
        inner.column = token.column;
        return inner;
    }
    parser_unexpected(parser, "a value");
    return operand_value(NO_VALUE, token.column);
}

/* **, which binds tighter than a sign before it and takes one behind it. */
static struct operand power_read(struct parser *parser) {
    struct operand base = atom_read(parser);
    struct token sign = parser->token;
    if (!accept(parser, "**")) {
        return base;
    }
    struct operand exponent = unary_read(parser);
    parser_count(parser, sign.column);
    return parser_failed(parser)
               ? operand_value(NO_VALUE, base.column)
               : operand_binary(parser->graph, EXPRESSION_POWER, "**", base, exponent);
}

static struct operand unary_read(struct parser *parser) {
    struct token sign = parser->token;
    struct operand result;
    if (!deeper(parser)) {
        return operand_value(NO_VALUE, sign.column);
    }
    if (accept(parser, "-") || accept(parser, "+") || accept(parser, "~")) {
        result = unary_read(parser);
        parser_count(parser, sign.column);
        result =
            parser_failed(parser) ? result : operand_unary(parser->graph, sign.text[0], result);
        result.column = sign.column;
    } else {
        result = power_read(parser);
    }
    parser->depth--;
    return result;
}

struct binary_row {
    const char *sign;
    int level, op; /* a higher level binds tighter */
};

static const struct binary_row *binary_find(const struct parser *parser) {
    static const struct binary_row rows[] = {
        {"|", 1, EXPRESSION_OR},           {"^", 2, EXPRESSION_XOR},
        {"&", 3, EXPRESSION_AND},          {"<<", 4, EXPRESSION_SHIFT_LEFT},
        {">>", 4, EXPRESSION_SHIFT_RIGHT}, {"+", 5, EXPRESSION_ADD},
        {"-", 5, EXPRESSION_SUBTRACT},     {"*", 6, EXPRESSION_MULTIPLY},
        {"/", 6, EXPRESSION_DIVIDE},       {"//", 6, EXPRESSION_FLOOR_DIVIDE},
        {"%", 6, EXPRESSION_REMAINDER},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (parser_next_is(parser, rows[i].sign)) {
            return &rows[i];
        }
    }
    return NULL;
}

/* Operators of at least this level. Each level is entered once a call, so no depth is counted. */
static struct operand binary_read(struct parser *parser, int level) {
    struct operand left = unary_read(parser);
    const struct binary_row *row;
    while ((row = binary_find(parser)) != NULL && row->level >= level) {
        size_t column = parser->token.column;
        parser_advance(parser);
        struct operand right = binary_read(parser, row->level + 1);
        parser_count(parser, column);
        if (parser_failed(parser)) {
            break;
        }
        left = operand_binary(parser->graph, row->op, row->sign, left, right);
    }
    return left;
}

static const struct binary_row *compare_find(const struct parser *parser) {
    static const struct binary_row rows[] = {
        {"<", 0, EXPRESSION_LESS},   {"<=", 0, EXPRESSION_LESS_EQUAL},
        {">", 1, EXPRESSION_LESS},   {">=", 1, EXPRESSION_LESS_EQUAL},
        {"==", 0, EXPRESSION_EQUAL}, {"!=", 0, EXPRESSION_NOT_EQUAL},
    }; /* level 1: with the operands exchanged */
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (parser_next_is(parser, rows[i].sign)) {
            return &rows[i];
        }
    }
    return NULL;
}

static struct operand compare_read(struct parser *parser) {
    struct operand left = binary_read(parser, 1);
    const struct binary_row *row = compare_find(parser);
    size_t column = parser->token.column;
    if (row == NULL) {
        return left;
    }
    parser_advance(parser);
    struct operand right = binary_read(parser, 1);
    parser_count(parser, column);
    if (compare_find(parser) != NULL) {
        parser_fail(parser, parser->token.column,
                    "comparisons do not chain; write a < b and b < c");
    }
    if (parser_failed(parser)) {
        return operand_value(NO_VALUE, left.column);
    }
    return row->level == 1 ? operand_compare(parser->graph, row->op, right, left)
                           : operand_compare(parser->graph, row->op, left, right);
}

static struct operand not_read(struct parser *parser) {
    size_t column = parser->token.column;
    if (!deeper(parser)) {
        return operand_value(NO_VALUE, column);
    }
    struct operand result;
    if (accept(parser, "not")) {
        result = not_read(parser);
        parser_count(parser, column);
        result = parser_failed(parser) ? result : operand_not(parser->graph, result);
        result.column = column;
    } else {
        result = compare_read(parser);
    }
    parser->depth--;
    return result;
}

static struct operand logical_read(struct parser *parser, bool and) {
    struct operand left = and? not_read(parser) : logical_read(parser, true);
    while (parser_next_is(parser, and? "and" : "or")) {
        size_t column = parser->token.column;
        parser_advance(parser);
        struct operand right = and? not_read(parser) : logical_read(parser, true);
        parser_count(parser, column);
        if (parser_failed(parser)) {
            break;
        }
        left = operand_logical(parser->graph, and? EXPRESSION_AND : EXPRESSION_OR, left, right);
    }
    return left;
}

struct operand parser_expression(struct parser *parser) {
    size_t column = parser->token.column;
    if (!deeper(parser)) {
        return operand_value(NO_VALUE, column);
    }
    struct operand result = logical_read(parser, false);
    size_t sign = parser->token.column;
    if (accept(parser, "if")) {
        struct operand condition = logical_read(parser, false);
        expect(parser, "else", "\"else\"");
        struct operand other = parser_expression(parser);
        parser_count(parser, sign);
        result =
            parser_failed(parser) ? result : operand_where(parser->graph, condition, result, other);
    }
    parser->depth--;
    return parser_failed(parser) ? operand_value(NO_VALUE, column) : result;
}
