/*
 * operand.c: operators to values (operand.h).
 */
#include "compute/expression/operand.h"

#include <math.h>

struct operand operand_value(uint16_t value, size_t column) {
    return (struct operand){.value = value, .column = column};
}

struct operand operand_weak(struct weak number, size_t column) {
    return (struct operand){.weak = true, .number = number, .value = NO_VALUE, .column = column};
}

static struct operand truth(bool value, size_t column) {
    return operand_weak((struct weak){.kind = WEAK_BOOL, .whole = value}, column);
}

static struct operand nothing(size_t column) {
    return operand_value(NO_VALUE, column);
}

bool operand_type(struct graph *graph, struct operand operand, enum expression_type *type) {
    if (!operand.weak) {
        *type = operand.value == NO_VALUE ? EXPRESSION_F64
                                          : (enum expression_type)graph->values[operand.value].type;
        return operand.value != NO_VALUE;
    }
    if (!weak_type(operand.number, type)) {
        graph_fail(graph, operand.column, "the number is too large for int64 and uint64");
        return false;
    }
    return true;
}

bool operand_common(struct graph *graph, struct operand a, struct operand b,
                    enum expression_type *type) {
    enum expression_type other;
    if (a.weak == b.weak) {
        if (!operand_type(graph, a, type) || !operand_type(graph, b, &other)) {
            return false;
        }
        *type = type_promote(*type, other);
        return true;
    }
    struct operand strong = a.weak ? b : a, weak = a.weak ? a : b;
    if (!operand_type(graph, strong, type)) {
        return false;
    }
    enum type_kind kind = type_kind(*type);
    if (weak.number.kind == WEAK_REAL && kind != KIND_REAL) {
        *type = EXPRESSION_F64;
    } else if (weak.number.kind == WEAK_WHOLE && kind == KIND_BOOL) {
        *type = EXPRESSION_I64;
    }
    return true;
}

uint16_t operand_as(struct graph *graph, struct operand operand, enum expression_type type) {
    if (!operand.weak) {
        return graph_cast(graph, operand.value, type);
    }
    if (type_is_integer(type) && !type_holds(type, operand.number.whole)) {
        return graph_fail(graph, operand.column,
                          "the number does not fit %s (%s); cast the array first: int64(x)",
                          expression_type_name(type), type_range(type));
    }
    return graph_constant(graph, operand.number, type);
}

uint16_t operand_strong(struct graph *graph, struct operand operand) {
    enum expression_type type;
    return operand_type(graph, operand, &type) ? operand_as(graph, operand, type) : NO_VALUE;
}

/* x ** number where that is simpler: as NumPy, which squares and takes roots. */
static uint16_t power_simple(struct graph *graph, uint16_t x, struct operand exponent,
                             enum expression_type type) {
    double n = exponent.weak ? weak_real(exponent.number) : 0;
    if (n == 1) {
        return x;
    }
    if (n == 2) {
        return graph_op(graph, EXPRESSION_MULTIPLY, type, x, x, NO_VALUE);
    }
    if (n == 0.5 && type_kind(type) == KIND_REAL) {
        return graph_op(graph, EXPRESSION_SQRT, type, x, NO_VALUE, NO_VALUE);
    }
    return NO_VALUE;
}

static uint16_t power(struct graph *graph, struct operand a, struct operand b,
                      enum expression_type type) {
    uint16_t x = operand_as(graph, a, type), simple = power_simple(graph, x, b, type);
    bool whole = type_is_integer(type);
    if (graph->failed || simple != NO_VALUE) {
        return simple;
    }
    if (whole && b.weak && b.number.whole < 0) {
        return graph_fail(graph, b.column,
                          "integers have no negative powers; write float64(x) ** %d",
                          b.number.whole < -1000 ? -1000 : (int)b.number.whole);
    }
    return graph_op(graph, whole ? EXPRESSION_INTEGER_POWER : EXPRESSION_POWER, type, x,
                    operand_as(graph, b, type), NO_VALUE);
}

/* What an operator computes with, given the common type: NumPy's loops. False: it has none. */
static bool operator_type(struct graph *graph, int *op, const char *sign,
                          enum expression_type *type) {
    bool real = type_kind(*type) == KIND_REAL, truths = *type == EXPRESSION_BOOL;
    switch (*op) {
    case EXPRESSION_ADD:
    case EXPRESSION_MULTIPLY:
        *op = truths ? *op == EXPRESSION_ADD ? EXPRESSION_OR : EXPRESSION_AND : *op;
        return true;
    case EXPRESSION_SUBTRACT:
        if (truths) {
            graph_fail(graph, graph->column,
                       "bools cannot be subtracted; ^ tells where they differ");
        }
        return !truths;
    case EXPRESSION_DIVIDE:
        *type = real ? *type : EXPRESSION_F64;
        return true;
    case EXPRESSION_AND:
    case EXPRESSION_OR:
    case EXPRESSION_XOR:
    case EXPRESSION_SHIFT_LEFT:
    case EXPRESSION_SHIFT_RIGHT:
        if (real) {
            graph_fail(graph, graph->column,
                       "%s takes integers%s, not %s; `and` and `or` join conditions", sign,
                       *op <= EXPRESSION_XOR ? " and bools" : "", expression_type_name(*type));
            return false;
        }
        *type = truths && *op > EXPRESSION_XOR ? EXPRESSION_I8 : *type;
        return true;
    default:
        *type = truths ? EXPRESSION_I8 : *type;
        return true;
    }
}

struct operand operand_binary(struct graph *graph, int op, const char *sign, struct operand a,
                              struct operand b) {
    enum expression_type type;
    if (a.weak && b.weak) {
        struct operand result = operand_weak(a.number, a.column);
        const char *why = weak_binary(op, a.number, b.number, &result.number);
        if (why != NULL) {
            graph_fail(graph, graph->column, "%s", why);
            return nothing(a.column);
        }
        return result;
    }
    if (!operand_common(graph, a, b, &type) || !operator_type(graph, &op, sign, &type)) {
        return nothing(a.column);
    }
    if (op == EXPRESSION_POWER) {
        bool square = b.weak && b.number.kind == WEAK_WHOLE && b.number.whole == 2;
        if (square && !a.weak && graph->values[a.value].type == EXPRESSION_BOOL) {
            type = EXPRESSION_I8; /* as NumPy's square */
        }
        return operand_value(power(graph, a, b, type), a.column);
    }
    return operand_value(
        graph_op(graph, op, type, operand_as(graph, a, type), operand_as(graph, b, type), NO_VALUE),
        a.column);
}

static struct operand weak_compare(int op, struct operand a, struct operand b) {
    bool real = a.number.kind == WEAK_REAL || b.number.kind == WEAK_REAL;
    double x = weak_real(a.number), y = weak_real(b.number);
    bool equal = real ? x == y : a.number.whole == b.number.whole;
    bool less = real ? x < y : a.number.whole < b.number.whole;
    return truth(op == EXPRESSION_EQUAL       ? equal
                 : op == EXPRESSION_NOT_EQUAL ? !equal
                 : op == EXPRESSION_LESS      ? less
                                              : less || equal,
                 a.column);
}

/* An integer array beside a number that its type does not hold: the same for all elements. */
static uint16_t compare_outside(struct graph *graph, int op, struct operand a, struct operand b) {
    uint16_t array = a.weak ? b.value : a.value;
    bool above = a.weak ? a.number.whole < 0 : b.number.whole > 0; /* b is above a */
    bool holds = op == EXPRESSION_EQUAL ? false : op == EXPRESSION_NOT_EQUAL ? true : above;
    return graph_op(graph, holds ? EXPRESSION_EQUAL : EXPRESSION_NOT_EQUAL,
                    graph->values[array].type, array, array, NO_VALUE);
}

/* uint64 beside an integer with a sign: exactly, as no type holds both. */
static uint16_t compare_mixed(struct graph *graph, int op, uint16_t a, uint16_t b) {
    const enum expression_type wide = EXPRESSION_I64, without = EXPRESSION_U64;
    bool first = type_kind(graph->values[a].type) == KIND_SIGNED;
    uint16_t with_sign = graph_cast(graph, first ? a : b, wide);
    uint16_t zero = graph_constant(graph, (struct weak){.kind = WEAK_WHOLE}, wide);
    uint16_t negative = graph_op(graph, EXPRESSION_LESS, wide, with_sign, zero, NO_VALUE);
    uint16_t size = graph_cast(graph, with_sign, without);
    uint16_t other = graph_cast(graph, first ? b : a, without);
    uint16_t result =
        graph_op(graph, op, without, first ? size : other, first ? other : size, NO_VALUE);
    bool holds = op == EXPRESSION_NOT_EQUAL || (op != EXPRESSION_EQUAL && first);
    if (!holds) {
        negative =
            graph_op(graph, EXPRESSION_INVERT, EXPRESSION_BOOL, negative, NO_VALUE, NO_VALUE);
    }
    return graph_op(graph, holds ? EXPRESSION_OR : EXPRESSION_AND, EXPRESSION_BOOL, negative,
                    result, NO_VALUE);
}

struct operand operand_compare(struct graph *graph, int op, struct operand a, struct operand b) {
    enum expression_type type;
    if (a.weak && b.weak) {
        return weak_compare(op, a, b);
    }
    if (!operand_common(graph, a, b, &type)) {
        return nothing(a.column);
    }
    struct operand weak = a.weak ? a : b;
    uint16_t value;
    if (weak.weak && type_is_integer(type) && !type_holds(type, weak.number.whole)) {
        value = compare_outside(graph, op, a, b);
    } else if (!weak.weak && type == EXPRESSION_F64 &&
               type_is_integer(graph->values[a.value].type) &&
               type_is_integer(graph->values[b.value].type)) {
        value = compare_mixed(graph, op, a.value, b.value);
    } else {
        value = graph_op(graph, op, type, operand_as(graph, a, type), operand_as(graph, b, type),
                         NO_VALUE);
    }
    return operand_value(value, a.column);
}

static bool weak_true(struct weak number) {
    return number.kind == WEAK_REAL ? number.real != 0 : number.whole != 0;
}

/* Its truth, as a bool. */
static uint16_t operand_truth(struct graph *graph, struct operand a) {
    if (a.weak) {
        struct weak number = {.kind = WEAK_BOOL, .whole = weak_true(a.number)};
        return graph_constant(graph, number, EXPRESSION_BOOL);
    }
    return graph_cast(graph, a.value, EXPRESSION_BOOL);
}

struct operand operand_logical(struct graph *graph, int op, struct operand a, struct operand b) {
    if (a.weak && b.weak) {
        bool one = weak_true(a.number), other = weak_true(b.number);
        return truth(op == EXPRESSION_AND ? one && other : one || other, a.column);
    }
    return operand_value(graph_op(graph, op, EXPRESSION_BOOL, operand_truth(graph, a),
                                  operand_truth(graph, b), NO_VALUE),
                         a.column);
}

struct operand operand_not(struct graph *graph, struct operand a) {
    if (a.weak) {
        return truth(!weak_true(a.number), a.column);
    }
    return operand_value(graph_op(graph, EXPRESSION_INVERT, EXPRESSION_BOOL,
                                  operand_truth(graph, a), NO_VALUE, NO_VALUE),
                         a.column);
}

static struct operand weak_unary(struct graph *graph, char sign, struct operand a) {
    if (sign == '~' && a.number.kind == WEAK_REAL) {
        graph_fail(graph, a.column, "~ takes integers and bools, not a number with a point");
    }
    if (a.number.kind == WEAK_BOOL) {
        a.number.kind = WEAK_WHOLE;
    }
    a.number.real = sign == '-' ? -a.number.real : a.number.real;
    a.number.whole = sign == '-'   ? -a.number.whole
                     : sign == '~' ? -1 - a.number.whole
                                   : a.number.whole;
    return a;
}

struct operand operand_unary(struct graph *graph, char sign, struct operand a) {
    if (a.weak) {
        return weak_unary(graph, sign, a);
    }
    if (a.value == NO_VALUE) {
        return a;
    }
    enum expression_type type = graph->values[a.value].type;
    if (type == EXPRESSION_BOOL && sign != '~') {
        graph_fail(graph, a.column, "bools have no sign; ~x or `not x` turns them round");
        return nothing(a.column);
    }
    if (type_kind(type) == KIND_REAL && sign == '~') {
        graph_fail(graph, a.column, "~ takes integers and bools, not %s",
                   expression_type_name(type));
        return nothing(a.column);
    }
    if (sign == '+') {
        return a;
    }
    return operand_value(graph_op(graph, sign == '-' ? EXPRESSION_NEGATE : EXPRESSION_INVERT, type,
                                  a.value, NO_VALUE, NO_VALUE),
                         a.column);
}

struct operand operand_where(struct graph *graph, struct operand condition, struct operand yes,
                             struct operand no) {
    enum expression_type type;
    if (!operand_common(graph, yes, no, &type)) {
        return nothing(condition.column);
    }
    return operand_value(graph_op(graph, EXPRESSION_WHERE, type, operand_truth(graph, condition),
                                  operand_as(graph, yes, type), operand_as(graph, no, type)),
                         condition.column);
}
