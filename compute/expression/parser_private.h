/*
 * parser_private.h: what parser.c (expressions) and statement.c share.
 */
#ifndef KILN_COMPUTE_EXPRESSION_PARSER_PRIVATE_H
#define KILN_COMPUTE_EXPRESSION_PARSER_PRIVATE_H

#include "compute/expression/operand.h"
#include "compute/expression/parser.h"
#include "compute/expression/token.h"

struct name {
    const char *text;
    size_t size;
    struct operand operand;
    bool array;    /* the client's, which is changed in place */
    bool assigned; /* by a statement */
};

struct parser {
    struct graph *graph;
    const char *text;
    size_t size;
    struct token token; /* the next one */
    int depth, nodes;
    size_t name_count, first_local;
    struct name names[EXPRESSION_INPUTS + EXPRESSION_LOCALS];
};

/** Reads an expression; its value is NO_VALUE after a failure. */
struct operand parser_expression(struct parser *parser);
/** Says what is wrong; parser_failed is true from then on. */
struct operand parser_fail(struct parser *parser, size_t column, const char *text);
bool parser_failed(const struct parser *parser);
/** Says what stands here where `wanted` should. */
void parser_unexpected(struct parser *parser, const char *wanted);
void parser_advance(struct parser *parser);
bool parser_next_is(const struct parser *parser, const char *text);
/** Counts an operator or call, whose place is `column`. */
void parser_count(struct parser *parser, size_t column);
bool token_is_keyword(const struct token *token);
/** The array or name that is called so, or NULL. */
struct name *parser_name(struct parser *parser, const struct token *token);
struct operand parser_name_unknown(struct parser *parser, const struct token *token);

#endif
