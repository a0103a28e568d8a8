/*
 * graph.c: makes values (graph.h).
 */
#include "compute/expression/graph.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

uint16_t graph_fail(struct graph *graph, size_t column, const char *format, ...) {
    if (!graph->failed) {
        va_list list;
        va_start(list, format);
        graph->failed = true;
        graph->error->column = column;
        vsnprintf(graph->error->text, sizeof graph->error->text, format, list);
        va_end(list);
    }
    return NO_VALUE;
}

const char *shape_print(const struct shape *shape, char text[static 192]) {
    size_t used = (size_t)snprintf(text, 192, "(");
    for (int i = 0; i < shape->dims; i++) {
        used += (size_t)snprintf(text + used, 192 - used, "%s%lld", i > 0 ? ", " : "",
                                 (long long)shape->n[i]);
    }
    snprintf(text + used, 192 - used, shape->dims == 1 ? ",)" : ")");
    return text;
}

int64_t shape_elements(const struct shape *shape) {
    int64_t elements = 1;
    for (int i = 0; i < shape->dims; i++) {
        if (shape->n[i] == 0) {
            return 0;
        }
    }
    for (int i = 0; i < shape->dims; i++) {
        if (shape->n[i] > EXPRESSION_ELEMENTS / elements) {
            return -1;
        }
        elements *= shape->n[i];
    }
    return elements;
}

bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *result) {
    struct shape both = {.dims = a->dims > b->dims ? a->dims : b->dims};
    for (int i = 1; i <= both.dims; i++) {
        int64_t one = i <= a->dims ? a->n[a->dims - i] : 1;
        int64_t other = i <= b->dims ? b->n[b->dims - i] : 1;
        if (one != other && one != 1 && other != 1) {
            return false;
        }
        both.n[both.dims - i] = one == 1 ? other : one;
    }
    *result = both;
    return true;
}

uint8_t graph_shape(struct graph *graph, const struct shape *shape) {
    for (size_t i = 0; i < graph->shape_count; i++) {
        const struct shape *other = &graph->shapes[i];
        if (other->dims == shape->dims &&
            memcmp(other->n, shape->n, (size_t)shape->dims * sizeof shape->n[0]) == 0) {
            return (uint8_t)i;
        }
    }
    if (graph->shape_count == GRAPH_SHAPES) {
        graph_fail(graph, graph->column, "the expression has more than %d different shapes",
                   GRAPH_SHAPES);
        return 0;
    }
    if (shape_elements(shape) < 0) {
        graph_fail(graph, graph->column, "a result has more than 2^40 elements");
        return 0;
    }
    graph->shapes[graph->shape_count] = *shape;
    return (uint8_t)graph->shape_count++;
}

static uint64_t value_hash(const struct value *value) {
    uint64_t hash = value->bits * UINT64_C(0x9e3779b97f4a7c15);
    hash ^= (uint64_t)value->op << 56 ^ (uint64_t)value->type << 48 ^ (uint64_t)value->shape << 40 ^
            (uint64_t)value->axes << 32;
    for (int i = 0; i < 3; i++) {
        hash = (hash ^ value->operands[i]) * UINT64_C(0xbf58476d1ce4e5b9);
        hash ^= hash >> 29;
    }
    return hash;
}

static bool value_same(const struct value *a, const struct value *b) {
    return a->op == b->op && a->type == b->type && a->shape == b->shape && a->axes == b->axes &&
           a->bits == b->bits && memcmp(a->operands, b->operands, sizeof a->operands) == 0;
}

/* The value like this one, which is added if there is none yet. */
static uint16_t value_find(struct graph *graph, const struct value *wanted) {
    if (graph->failed) {
        return NO_VALUE;
    }
    size_t at = (size_t)value_hash(wanted) % GRAPH_HASHES;
    for (; graph->hashes[at] != 0; at = (at + 1) % GRAPH_HASHES) {
        uint16_t found = (uint16_t)(graph->hashes[at] - 1);
        if (value_same(&graph->values[found], wanted)) {
            return found;
        }
    }
    if (graph->value_count == GRAPH_VALUES) {
        return graph_fail(graph, graph->column, "the expression has too many operations");
    }
    graph->values[graph->value_count] = *wanted;
    graph->hashes[at] = (uint16_t)++graph->value_count;
    return (uint16_t)(graph->value_count - 1);
}

uint16_t graph_input(struct graph *graph, size_t input) {
    const struct expression_input *row = &graph->inputs[input];
    struct shape shape = {.dims = row->dims};
    memcpy(shape.n, row->shape, sizeof shape.n);
    struct value value = {.op = VALUE_INPUT,
                          .type = (uint8_t)row->type,
                          .shape = graph_shape(graph, &shape),
                          .operands = {NO_VALUE, NO_VALUE, NO_VALUE},
                          .bits = input};
    uint16_t found = value_find(graph, &value);
    if (row->type != EXPRESSION_BOOL || graph->failed) {
        return found;
    }
    /* Bytes of foreign bools may be any; from here on they are 0 or 1. */
    value.op = EXPRESSION_CAST;
    value.operands[0] = found;
    value.bits = 0;
    return value_find(graph, &value);
}

uint16_t graph_constant(struct graph *graph, struct weak number, enum expression_type type) {
    static const struct shape scalar = {.dims = 0};
    struct value value = {.op = VALUE_CONSTANT,
                          .type = (uint8_t)type,
                          .shape = graph_shape(graph, &scalar),
                          .operands = {NO_VALUE, NO_VALUE, NO_VALUE},
                          .bits = weak_bits(number, type)};
    return value_find(graph, &value);
}

uint16_t graph_cast(struct graph *graph, uint16_t operand, enum expression_type type) {
    if (operand == NO_VALUE || graph->values[operand].type == type) {
        return operand;
    }
    struct value value = {.op = EXPRESSION_CAST,
                          .type = (uint8_t)type,
                          .shape = graph->values[operand].shape,
                          .operands = {operand, NO_VALUE, NO_VALUE}};
    return value_find(graph, &value);
}

/* The shape that operands broadcast to. */
static uint8_t operands_shape(struct graph *graph, const uint16_t operands[3]) {
    struct shape shape = *value_shape(graph, operands[0]), joint;
    char one[192], other[192];
    for (int i = 1; i < 3 && operands[i] != NO_VALUE; i++) {
        const struct shape *next = value_shape(graph, operands[i]);
        if (!shape_broadcast(&shape, next, &joint)) {
            graph_fail(
                graph, graph->column,
                "shapes %s and %s do not go together; from the last dimension on they must be "
                "equal or 1",
                shape_print(&shape, one), shape_print(next, other));
            return 0;
        }
        shape = joint;
    }
    return graph_shape(graph, &shape);
}

uint16_t graph_op(struct graph *graph, int op, enum expression_type type, uint16_t a, uint16_t b,
                  uint16_t c) {
    const struct expression_op_row *row = expression_op_row(op);
    uint16_t operands[3] = {a, b, c};
    for (int i = 0; i < row->operands; i++) {
        if (operands[i] == NO_VALUE) {
            return NO_VALUE;
        }
    }
    if (type == EXPRESSION_F16 && (row->types & EXPRESSION_BIT(F16)) == 0) {
        for (int i = 0; i < row->operands; i++) {
            operands[i] = graph_cast(graph, operands[i], EXPRESSION_F32);
        }
        uint16_t wide = graph_op(graph, op, EXPRESSION_F32, operands[0], operands[1], operands[2]);
        return row->result == EXPRESSION_SAME ? graph_cast(graph, wide, EXPRESSION_F16) : wide;
    }
    struct value value = {
        .op = (uint8_t)op,
        .type = row->result == EXPRESSION_SAME ? (uint8_t)type : row->result,
        .operands = {operands[0], operands[1], operands[2]},
        .shape = operands_shape(graph, operands),
    };
    return value_find(graph, &value);
}

uint16_t graph_index(struct graph *graph, const struct shape *shape, int axis) {
    struct shape line = {.dims = shape->dims};
    for (int i = 0; i < shape->dims; i++) {
        line.n[i] = i == axis ? shape->n[i] : 1;
    }
    struct value value = {.op = EXPRESSION_INDEX,
                          .type = EXPRESSION_I64,
                          .shape = graph_shape(graph, &line),
                          .operands = {NO_VALUE, NO_VALUE, NO_VALUE}};
    return value_find(graph, &value);
}

uint16_t graph_reduce(struct graph *graph, int op, uint16_t operand, unsigned axes, bool keep) {
    if (operand == NO_VALUE) {
        return NO_VALUE;
    }
    const struct expression_op_row *row = expression_op_row(op);
    const struct shape *from = value_shape(graph, operand);
    struct shape shape = {.dims = 0};
    for (int i = 0; i < from->dims; i++) {
        if ((axes >> i & 1) == 0 || keep) {
            shape.n[shape.dims++] = (axes >> i & 1) == 0 ? from->n[i] : 1;
        }
    }
    uint8_t type = graph->values[operand].type;
    struct value value = {.op = (uint8_t)op,
                          .type = row->result == EXPRESSION_SAME ? type : row->result,
                          .shape = graph_shape(graph, &shape),
                          .axes = (uint8_t)axes,
                          .operands = {operand, NO_VALUE, NO_VALUE}};
    return value_find(graph, &value);
}
