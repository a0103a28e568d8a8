/*
 * function.c: the table of functions, and those of single elements (function.h). reduction.c has
 * those that reduce.
 */
#include "compute/expression/function.h"

#include "compute/core/spelling.h"
#include "compute/expression/function_private.h"

#include <math.h>
#include <string.h>

/* A weak number takes the arrays' type unless it says more than all of them: a number with a point
   beside integers, a whole one beside bools. */
static uint16_t call_real(struct graph *graph, const struct call *call) {
    enum expression_type type = EXPRESSION_BOOL, one;
    uint16_t values[3] = {NO_VALUE, NO_VALUE, NO_VALUE};
    int weak = WEAK_BOOL, strong = -1;
    for (int i = 0; i < call->count; i++) {
        const struct operand *operand = &call->arguments[i];
        if (!operand_type(graph, *operand, &one)) {
            return NO_VALUE;
        }
        if (operand->weak) {
            weak = (int)operand->number.kind > weak ? (int)operand->number.kind : weak;
            continue;
        }
        int says = one == EXPRESSION_BOOL        ? WEAK_BOOL
                   : type_kind(one) == KIND_REAL ? WEAK_REAL
                                                 : WEAK_WHOLE;
        strong = says > strong ? says : strong;
        type = type_promote(type, type_real(one));
    }
    if (weak > strong) {
        type = weak == WEAK_BOOL ? EXPRESSION_F16 : EXPRESSION_F64;
    }
    for (int i = 0; i < call->count; i++) {
        values[i] = operand_as(graph, call->arguments[i], type);
    }
    return graph_op(graph, call->function->op, type, values[0], values[1], values[2]);
}

/* floor and the like, abs, sign, isnan: integers are simpler. */
static uint16_t call_rounding(struct graph *graph, const struct call *call) {
    uint16_t value = operand_strong(graph, call->arguments[0]);
    if (value == NO_VALUE || type_kind(graph->values[value].type) != KIND_REAL) {
        return value;
    }
    return graph_op(graph, call->function->op, graph->values[value].type, value, NO_VALUE,
                    NO_VALUE);
}

static uint16_t call_size(struct graph *graph, const struct call *call) {
    uint16_t value = operand_strong(graph, call->arguments[0]);
    if (value == NO_VALUE) {
        return value;
    }
    enum expression_type type = graph->values[value].type;
    bool sign = call->function->op == EXPRESSION_SIGN;
    if (type == EXPRESSION_BOOL && sign) {
        return graph_fail(graph, call->arguments[0].column, "sign takes numbers, not bools");
    }
    if (!sign && (type == EXPRESSION_BOOL || type_kind(type) == KIND_UNSIGNED)) {
        return value;
    }
    return graph_op(graph, call->function->op, type, value, NO_VALUE, NO_VALUE);
}

static uint16_t call_test(struct graph *graph, const struct call *call) {
    uint16_t value = operand_strong(graph, call->arguments[0]);
    if (value == NO_VALUE || type_kind(graph->values[value].type) == KIND_REAL) {
        return value == NO_VALUE ? value
                                 : graph_op(graph, call->function->op, graph->values[value].type,
                                            value, NO_VALUE, NO_VALUE);
    }
    bool holds = call->function->op == EXPRESSION_ISFINITE; /* of every integer */
    return graph_op(graph, holds ? EXPRESSION_EQUAL : EXPRESSION_NOT_EQUAL,
                    graph->values[value].type, value, value, NO_VALUE);
}

/* minimum, maximum, fmin, fmax of two. */
static uint16_t least_of(struct graph *graph, int op, struct operand a, struct operand b) {
    enum expression_type type;
    if (!operand_common(graph, a, b, &type)) {
        return NO_VALUE;
    }
    bool low = op == EXPRESSION_MINIMUM || op == EXPRESSION_FMIN;
    if (type == EXPRESSION_BOOL) {
        op = low ? EXPRESSION_AND : EXPRESSION_OR;
    } else if (type_is_integer(type)) {
        op = low ? EXPRESSION_MINIMUM : EXPRESSION_MAXIMUM;
    }
    return graph_op(graph, op, type, operand_as(graph, a, type), operand_as(graph, b, type),
                    NO_VALUE);
}

static uint16_t call_least(struct graph *graph, const struct call *call) {
    return least_of(graph, call->function->op, call->arguments[0], call->arguments[1]);
}

static uint16_t call_clip(struct graph *graph, const struct call *call) {
    const struct operand *in = call->arguments;
    enum expression_type type, other;
    if (!operand_common(graph, in[0], in[1], &type) ||
        !operand_common(graph, in[0], in[2], &other)) {
        return NO_VALUE;
    }
    type = type_promote(type, other);
    struct operand x = operand_value(operand_as(graph, in[0], type), in[0].column);
    struct operand low = operand_value(operand_as(graph, in[1], type), in[1].column);
    struct operand high = operand_value(operand_as(graph, in[2], type), in[2].column);
    if (graph->failed) {
        return NO_VALUE;
    }
    x.value = least_of(graph, EXPRESSION_MAXIMUM, x, low);
    return least_of(graph, EXPRESSION_MINIMUM, x, high);
}

static uint16_t call_where(struct graph *graph, const struct call *call) {
    return operand_where(graph, call->arguments[0], call->arguments[1], call->arguments[2]).value;
}

/* power and mod: the operators, for arrays and numbers. */
static uint16_t call_operator(struct graph *graph, const struct call *call) {
    struct operand result = operand_binary(graph, call->function->op, call->function->name,
                                           call->arguments[0], call->arguments[1]);
    return graph->failed ? NO_VALUE : operand_strong(graph, result);
}

static uint16_t call_cast(struct graph *graph, const struct call *call) {
    struct operand operand = call->arguments[0];
    enum expression_type type = (enum expression_type)call->function->op;
    if (operand.weak && type_is_integer(type) && operand.number.kind == WEAK_REAL) {
        double cut = trunc(operand.number.real);
        if (!(fabs(cut) < 0x1p70)) {
            return graph_fail(graph, operand.column, "the number does not fit %s (%s)",
                              expression_type_name(type), type_range(type));
        }
        operand.number = (struct weak){.kind = WEAK_WHOLE, .whole = (__int128)cut};
    }
    if (operand.weak && type == EXPRESSION_BOOL) {
        bool nonzero =
            operand.number.kind == WEAK_REAL ? operand.number.real != 0 : operand.number.whole != 0;
        operand.number = (struct weak){.kind = WEAK_BOOL, .whole = nonzero};
    }
    return operand_as(graph, operand, type);
}

static const struct function functions[] = {
#define X(symbol, name, operands, ...) {#name, call_real, EXPRESSION_##symbol, operands, operands},
    EXPRESSION_OWN(X) EXPRESSION_LIBRARY(X) EXPRESSION_LIBRARY_TWO(X)
#undef X
        {"sqrt", call_real, EXPRESSION_SQRT, 1, 1},
    {"rint", call_real, EXPRESSION_RINT, 1, 1},
    {"fma", call_real, EXPRESSION_FMA, 3, 3},
    {"copysign", call_real, EXPRESSION_COPYSIGN, 2, 2},
    {"arcsin", call_real, EXPRESSION_ARCSIN, 1, 1},
    {"arccos", call_real, EXPRESSION_ARCCOS, 1, 1},
    {"arctan", call_real, EXPRESSION_ARCTAN, 1, 1},
    {"arcsinh", call_real, EXPRESSION_ARCSINH, 1, 1},
    {"arccosh", call_real, EXPRESSION_ARCCOSH, 1, 1},
    {"arctanh", call_real, EXPRESSION_ARCTANH, 1, 1},
    {"arctan2", call_real, EXPRESSION_ARCTAN2, 2, 2},
    {"floor", call_rounding, EXPRESSION_FLOOR, 1, 1},
    {"ceil", call_rounding, EXPRESSION_CEIL, 1, 1},
    {"trunc", call_rounding, EXPRESSION_TRUNC, 1, 1},
    {"abs", call_size, EXPRESSION_ABSOLUTE, 1, 1},
    {"absolute", call_size, EXPRESSION_ABSOLUTE, 1, 1},
    {"sign", call_size, EXPRESSION_SIGN, 1, 1},
    {"isnan", call_test, EXPRESSION_ISNAN, 1, 1},
    {"isinf", call_test, EXPRESSION_ISINF, 1, 1},
    {"isfinite", call_test, EXPRESSION_ISFINITE, 1, 1},
    {"minimum", call_least, EXPRESSION_MINIMUM, 2, 2},
    {"maximum", call_least, EXPRESSION_MAXIMUM, 2, 2},
    {"fmin", call_least, EXPRESSION_FMIN, 2, 2},
    {"fmax", call_least, EXPRESSION_FMAX, 2, 2},
    {"clip", call_clip, 0, 3, 3},
    {"where", call_where, 0, 3, 3},
    {"power", call_operator, EXPRESSION_POWER, 2, 2},
    {"mod", call_operator, EXPRESSION_REMAINDER, 2, 2},
#define X(symbol, name, bytes, type) {#name, call_cast, EXPRESSION_##symbol, 1, 1},
    EXPRESSION_TYPES(X)
#undef X
        {"sum", call_sum, EXPRESSION_SUM, 1, 2},
    {"prod", call_sum, EXPRESSION_PRODUCT, 1, 2},
    {"mean", call_mean, 0, 1, 2},
    {"norm", call_norm, 0, 1, 2},
    {"min", call_extreme, EXPRESSION_LEAST, 1, 2},
    {"max", call_extreme, EXPRESSION_GREATEST, 1, 2},
    {"any", call_truths, EXPRESSION_ANY, 1, 2},
    {"all", call_truths, EXPRESSION_ALL, 1, 2},
    {"argmin", call_place, EXPRESSION_ARGMIN, 1, 2},
    {"argmax", call_place, EXPRESSION_ARGMAX, 1, 2},
    {"index", call_index, 0, 1, 1},
    {"shape", NULL, 0, 1, 1},
};

const struct function *function_find(const char *name, size_t size, const char **meant) {
    char word[SPELLING_MAX + 1] = "";
    *meant = NULL;
    memcpy(word, name, size < SPELLING_MAX ? size : SPELLING_MAX);
    for (size_t i = 0; i < sizeof functions / sizeof functions[0]; i++) {
        if (strlen(functions[i].name) == size && memcmp(functions[i].name, name, size) == 0) {
            return &functions[i];
        }
        spelling_consider(word, functions[i].name, meant);
    }
    return NULL;
}

bool function_reduces(const struct function *function) {
    return function->most == 2 && function->least == 1;
}

const char *function_name(const struct function *function) {
    return function->name;
}

struct operand function_call(struct graph *graph, const struct call *call) {
    const struct function *function = call->function;
    graph->column = call->column;
    if (call->count < function->least || call->count > function->most) {
        graph_fail(graph, call->column, "%s takes %d argument%s%s, not %d", function->name,
                   function->least, function->least == 1 ? "" : "s",
                   function_reduces(function) ? " and axis=, keepdims=" : "", call->count);
    }
    for (int i = 0; !graph->failed && i < call->count; i++) {
        if (!call->arguments[i].weak && call->arguments[i].value == NO_VALUE) {
            graph_fail(graph, call->column, "%s has an argument without a value", function->name);
        }
    }
    if (graph->failed) {
        return operand_value(NO_VALUE, call->column);
    }
    if (function->call == NULL) {
        return call_shape(graph, call);
    }
    return operand_value(function->call(graph, call), call->column);
}
