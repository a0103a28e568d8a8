/*
 * reduction.c: functions that reduce dimensions, and those that tell of them (function_private.h).
 */
#include "compute/expression/function_private.h"

/* A place along the dimensions; a failure where it lies outside. */
static int axis_resolve(struct graph *graph, int64_t axis, int dims, size_t column) {
    if (axis < -dims || axis >= dims) {
        graph_fail(graph, column, "axis %lld of an array with %d dimension%s", (long long)axis,
                   dims, dims == 1 ? "" : "s");
        return 0;
    }
    return (int)(axis < 0 ? axis + dims : axis);
}

/* The bits of what a call reduces. */
static unsigned call_axes(struct graph *graph, const struct call *call, uint16_t value) {
    int dims = value_shape(graph, value)->dims;
    unsigned axes = 0;
    if (!call->has_axis) {
        return (1u << dims) - 1;
    }
    for (int i = 0; i < call->axis_count; i++) {
        unsigned bit = 1u << axis_resolve(graph, call->axis[i], dims, call->column);
        if (!graph->failed && (axes & bit) != 0) {
            graph_fail(graph, call->column, "axis %lld stands twice", (long long)call->axis[i]);
        }
        axes |= bit;
    }
    return axes;
}

static int64_t axes_elements(const struct graph *graph, uint16_t value, unsigned axes) {
    const struct shape *shape = value_shape(graph, value);
    struct shape reduced = {.dims = 0};
    for (int i = 0; i < shape->dims; i++) {
        if ((axes >> i & 1) != 0) {
            reduced.n[reduced.dims++] = shape->n[i];
        }
    }
    return shape_elements(&reduced);
}

/* What sums are taken in: int64, uint64, float32 (for float16 too) or float64. */
static enum expression_type sum_type(enum expression_type type) {
    switch (type_kind(type)) {
    case KIND_UNSIGNED:
        return EXPRESSION_U64;
    case KIND_REAL:
        return type == EXPRESSION_F16 ? EXPRESSION_F32 : type;
    default:
        return EXPRESSION_I64;
    }
}

/* `value` reduced in the type `in`, and cast to `out`. */
static uint16_t reduce_in(struct graph *graph, const struct call *call, int op, uint16_t value,
                          enum expression_type in, enum expression_type out) {
    if (value == NO_VALUE) {
        return value;
    }
    unsigned axes = call_axes(graph, call, value);
    uint16_t result = graph_reduce(graph, op, graph_cast(graph, value, in), axes, call->keep);
    return graph_cast(graph, result, out);
}

uint16_t call_sum(struct graph *graph, const struct call *call) {
    uint16_t value = operand_strong(graph, call->arguments[0]);
    if (value == NO_VALUE) {
        return value;
    }
    enum expression_type type = graph->values[value].type, in = sum_type(type);
    return reduce_in(graph, call, call->function->op, value, in,
                     type == EXPRESSION_F16 ? type : in);
}

uint16_t call_mean(struct graph *graph, const struct call *call) {
    uint16_t value = operand_strong(graph, call->arguments[0]);
    if (value == NO_VALUE) {
        return value;
    }
    enum expression_type type = graph->values[value].type;
    bool real = type_kind(type) == KIND_REAL;
    enum expression_type in = real ? sum_type(type) : EXPRESSION_F64;
    uint16_t sum = reduce_in(graph, call, EXPRESSION_SUM, value, in, in);
    int64_t count = axes_elements(graph, value, call_axes(graph, call, value));
    struct weak number = {.kind = WEAK_WHOLE, .whole = count};
    uint16_t mean =
        graph_op(graph, EXPRESSION_DIVIDE, in, sum, graph_constant(graph, number, in), NO_VALUE);
    return graph_cast(graph, mean, real ? type : in);
}

/* The Euclidean norm. */
uint16_t call_norm(struct graph *graph, const struct call *call) {
    uint16_t value = operand_strong(graph, call->arguments[0]);
    if (value == NO_VALUE) {
        return value;
    }
    enum expression_type type = graph->values[value].type;
    bool real = type_kind(type) == KIND_REAL;
    enum expression_type in = real ? sum_type(type) : EXPRESSION_F64;
    value = graph_cast(graph, value, in);
    uint16_t square = graph_op(graph, EXPRESSION_MULTIPLY, in, value, value, NO_VALUE);
    uint16_t sum = reduce_in(graph, call, EXPRESSION_SUM, square, in, in);
    uint16_t root = graph_op(graph, EXPRESSION_SQRT, in, sum, NO_VALUE, NO_VALUE);
    return graph_cast(graph, root, real ? type : in);
}

static bool something_left(struct graph *graph, const struct call *call, uint16_t value) {
    if (value != NO_VALUE && axes_elements(graph, value, call_axes(graph, call, value)) == 0) {
        graph_fail(graph, call->column, "%s of no elements has no value", call->function->name);
    }
    return !graph->failed;
}

uint16_t call_extreme(struct graph *graph, const struct call *call) {
    uint16_t value = operand_strong(graph, call->arguments[0]);
    if (!something_left(graph, call, value)) {
        return NO_VALUE;
    }
    enum expression_type type = graph->values[value].type;
    int op = call->function->op;
    if (type == EXPRESSION_BOOL) {
        op = op == EXPRESSION_LEAST ? EXPRESSION_ALL : EXPRESSION_ANY;
    }
    return reduce_in(graph, call, op, value, type == EXPRESSION_F16 ? EXPRESSION_F32 : type, type);
}

uint16_t call_truths(struct graph *graph, const struct call *call) {
    uint16_t value = operand_strong(graph, call->arguments[0]);
    return reduce_in(graph, call, call->function->op, value, EXPRESSION_BOOL, EXPRESSION_BOOL);
}

uint16_t call_place(struct graph *graph, const struct call *call) {
    uint16_t value = operand_strong(graph, call->arguments[0]);
    if (call->has_axis && call->axis_count != 1) {
        return graph_fail(graph, call->column, "%s takes one axis, or none for all elements",
                          call->function->name);
    }
    if (!something_left(graph, call, value)) {
        return NO_VALUE;
    }
    enum expression_type type = graph->values[value].type;
    type = type == EXPRESSION_BOOL ? EXPRESSION_U8 : type == EXPRESSION_F16 ? EXPRESSION_F32 : type;
    return reduce_in(graph, call, call->function->op, value, type, EXPRESSION_I64);
}

/* The shape that all arrays have together. */
static bool grid_shape(struct graph *graph, const struct call *call, struct shape *grid) {
    *grid = (struct shape){.dims = 0};
    for (size_t i = 0; i < graph->input_count; i++) {
        struct shape one = {.dims = graph->inputs[i].dims};
        for (int k = 0; k < one.dims; k++) {
            one.n[k] = graph->inputs[i].shape[k];
        }
        if (!shape_broadcast(grid, &one, grid)) {
            graph_fail(graph, call->column,
                       "%s tells of the shape that all arrays broadcast to, and they do not",
                       call->function->name);
            return false;
        }
    }
    return true;
}

static bool grid_axis(struct graph *graph, const struct call *call, struct shape *grid, int *axis) {
    const struct operand *number = &call->arguments[0];
    if (!number->weak || number->number.kind != WEAK_WHOLE) {
        graph_fail(graph, number->column, "an axis is a whole number");
        return false;
    }
    __int128 whole = number->number.whole;
    int64_t place = whole < -99 || whole > 99 ? 99 : (int64_t)whole;
    if (!grid_shape(graph, call, grid)) {
        return false;
    }
    *axis = axis_resolve(graph, place, grid->dims, number->column);
    return !graph->failed;
}

uint16_t call_index(struct graph *graph, const struct call *call) {
    struct shape grid;
    int axis;
    return grid_axis(graph, call, &grid, &axis) ? graph_index(graph, &grid, axis) : NO_VALUE;
}

struct operand call_shape(struct graph *graph, const struct call *call) {
    struct shape grid;
    int axis;
    if (!grid_axis(graph, call, &grid, &axis)) {
        return operand_value(NO_VALUE, call->column);
    }
    return operand_weak((struct weak){.kind = WEAK_WHOLE, .whole = grid.n[axis]}, call->column);
}
