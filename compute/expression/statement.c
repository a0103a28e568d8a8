/*
 * statement.c: assignments, in place and not, and what a text results in (parser.h).
 */
#include "compute/expression/parser_private.h"

#include <string.h>

struct assignment {
    const char *sign;
    int op; /* 0: a plain one */
};

static const struct assignment *assignment_find(const struct token *token) {
    static const struct assignment rows[] = {
        {"=", 0},
        {"+=", EXPRESSION_ADD},
        {"-=", EXPRESSION_SUBTRACT},
        {"*=", EXPRESSION_MULTIPLY},
        {"/=", EXPRESSION_DIVIDE},
        {"//=", EXPRESSION_FLOOR_DIVIDE},
        {"%=", EXPRESSION_REMAINDER},
        {"**=", EXPRESSION_POWER},
        {"&=", EXPRESSION_AND},
        {"|=", EXPRESSION_OR},
        {"^=", EXPRESSION_XOR},
        {"<<=", EXPRESSION_SHIFT_LEFT},
        {">>=", EXPRESSION_SHIFT_RIGHT},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        if (token->kind == TOKEN_SIGN && token_is(token, rows[i].sign)) {
            return &rows[i];
        }
    }
    return NULL;
}

/* What stands in an array keeps its type and shape. */
static struct operand place_keep(struct parser *parser, const struct name *name,
                                 struct operand result, size_t column) {
    struct graph *graph = parser->graph;
    uint16_t value = operand_strong(graph, result);
    if (value == NO_VALUE || name->operand.weak) {
        return operand_value(value, column);
    }
    enum expression_type had = graph->values[name->operand.value].type;
    enum expression_type has = graph->values[value].type;
    char one[192], other[192];
    if (!name->array && value_shape(graph, name->operand.value)->dims == 0) {
        return operand_value(value, column); /* a number: a new one under its name */
    }
    if (!type_same_kind(has, had)) {
        graph_fail(graph, column, "%s cannot be kept in place of %s; write %.*s = …",
                   expression_type_name(has), expression_type_name(had),
                   (int)(name->size < 32 ? name->size : 32), name->text);
    } else if (graph->values[value].shape != graph->values[name->operand.value].shape) {
        graph_fail(graph, column, "a result of shape %s cannot be kept in place of shape %s",
                   shape_print(value_shape(graph, value), one),
                   shape_print(value_shape(graph, name->operand.value), other));
    }
    return operand_value(graph->failed ? NO_VALUE : graph_cast(graph, value, had), column);
}

static void name_assign(struct parser *parser, const struct token *word, struct operand operand) {
    struct name *name = parser_name(parser, word);
    if (name == NULL) {
        if (parser->name_count - parser->first_local == EXPRESSION_LOCALS) {
            graph_fail(parser->graph, word->column, "the text has more than %d names",
                       EXPRESSION_LOCALS);
            return;
        }
        name = &parser->names[parser->name_count++];
        *name = (struct name){.text = word->text, .size = word->size};
    }
    name->operand = operand;
    name->assigned = true;
}

static void assignment_read(struct parser *parser, const struct assignment *row) {
    struct token word = parser->token, sign;
    const struct name *name = parser_name(parser, &word);
    if (token_is_keyword(&word)) {
        graph_fail(parser->graph, word.column, "\"%.*s\" is a word of the language, not a name",
                   (int)word.size, word.text);
    } else if (word.size >= EXPRESSION_NAME_MAX) {
        graph_fail(parser->graph, word.column, "a name has at most %d letters",
                   EXPRESSION_NAME_MAX - 1);
    }
    parser_advance(parser);
    sign = parser->token;
    parser_advance(parser);
    struct operand result =
        parser_failed(parser) ? operand_value(NO_VALUE, word.column) : parser_expression(parser);
    if (row->sign[0] != '=' && !parser_failed(parser)) {
        parser_count(parser, sign.column);
        if (name == NULL) {
            parser_name_unknown(parser, &word);
            return;
        }
        char plain[4] = "";
        memcpy(plain, row->sign, strlen(row->sign) - 1);
        result = operand_binary(parser->graph, row->op, plain, name->operand, result);
        if (!parser_failed(parser) && !(name->operand.weak && result.weak)) {
            result = place_keep(parser, name, result, sign.column);
        }
    }
    if (!parser_failed(parser)) {
        name_assign(parser, &word, result);
    }
}

/* One statement; true where it was a bare expression, the result. */
static bool statement_read(struct parser *parser, struct operand *result) {
    size_t behind = (size_t)(parser->token.text - parser->text) + parser->token.size;
    struct token next = token_read(parser->text, parser->size, behind);
    const struct assignment *row = parser->token.kind == TOKEN_NAME ? assignment_find(&next) : NULL;
    bool bare = row == NULL;
    if (bare) {
        *result = parser_expression(parser);
    } else {
        assignment_read(parser, row);
    }
    if (!parser_failed(parser) && parser->token.kind != TOKEN_SEPARATOR &&
        parser->token.kind != TOKEN_END) {
        parser_unexpected(parser, parser_next_is(parser, "=")
                                      ? "the end: only names are assigned, it"
                                      : "an operator or the end");
    }
    return bare;
}

static void result_add(struct parser *parser, struct results *results,
                       struct expression_names *names, const char *name, size_t size,
                       struct operand operand) {
    if (results->count == EXPRESSION_OUTPUTS) {
        graph_fail(parser->graph, operand.column, "there are more than %d results",
                   EXPRESSION_OUTPUTS);
        return;
    }
    memcpy(names->output[results->count], name, size);
    names->output[results->count][size] = '\0';
    results->values[results->count++] = operand_strong(parser->graph, operand);
}

static void parser_init(struct parser *parser, struct graph *graph, const char *text, size_t size) {
    memset(parser, 0, sizeof *parser);
    parser->graph = graph;
    parser->text = text;
    parser->size = size;
    graph->column = 1;
    for (size_t i = 0; i < graph->input_count; i++) {
        parser->names[parser->name_count++] =
            (struct name){.text = graph->inputs[i].name,
                          .size = strlen(graph->inputs[i].name),
                          .operand = operand_value(graph_input(graph, i), 0),
                          .array = true};
    }
    parser->first_local = parser->name_count;
    parser->token = token_read(text, size, 0);
    if (parser->token.kind == TOKEN_BAD) {
        parser_fail(parser, parser->token.column, parser->token.why);
    }
}

void parser_run(struct graph *graph, const char *text, size_t size, struct results *results,
                struct expression_names *names) {
    struct parser parser;
    struct operand result = {.value = NO_VALUE};
    bool bare = false;
    results->count = 0;
    parser_init(&parser, graph, text, size);
    while (!graph->failed && parser.token.kind != TOKEN_END) {
        if (parser.token.kind == TOKEN_SEPARATOR) {
            parser_advance(&parser);
            continue;
        }
        if (bare) {
            parser_fail(&parser, parser.token.column,
                        "nothing may follow the result; give values names: y = …");
            break;
        }
        bare = statement_read(&parser, &result);
    }
    if (!graph->failed && bare) {
        result_add(&parser, results, names, "result", strlen("result"), result);
    }
    for (size_t i = 0; !graph->failed && !bare && i < parser.name_count; i++) {
        const struct name *name = &parser.names[i];
        if (name->assigned) {
            result_add(&parser, results, names, name->text, name->size, name->operand);
        }
    }
    if (!graph->failed && results->count == 0) {
        parser_fail(&parser, 1, "the text is empty; write an expression like 2*a + 1");
    }
}
