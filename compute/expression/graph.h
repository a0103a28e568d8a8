/*
 * graph.h: what a text says, as values of fixed types and shapes, each computed from earlier ones.
 *
 * Equal values are one value. Operations in float16 become operations in float32 between casts, so
 * nothing behind this knows float16 but as memory.
 *
 * Threads: one owner. Memory: all within struct graph.
 */
#ifndef KILN_COMPUTE_EXPRESSION_GRAPH_H
#define KILN_COMPUTE_EXPRESSION_GRAPH_H

#include "compute/expression/expression.h"
#include "compute/expression/types.h"

#include <stdbool.h>

#define GRAPH_VALUES 2048
#define GRAPH_SHAPES 128
#define GRAPH_HASHES 4096 /* a power of two, more than GRAPH_VALUES */
#define NO_VALUE     UINT16_MAX

/* Besides the operations of kernels/expression.h. */
enum { VALUE_INPUT = EXPRESSION_OP_COUNT, VALUE_CONSTANT };

struct shape {
    int dims;
    int64_t n[EXPRESSION_DIMS];
};

struct value {
    uint8_t op, type;
    uint8_t shape;        /* number of a shape */
    uint8_t axes;         /* reductions: bits of the operand's dimensions */
    uint16_t operands[3]; /* NO_VALUE where there is none */
    uint64_t bits;        /* VALUE_CONSTANT; VALUE_INPUT: its number */
};

struct graph {
    const struct expression_input *inputs;
    size_t input_count;
    struct expression_error *error; /* of the first failure */
    bool failed;
    size_t column; /* of what is being read, for messages */
    size_t value_count, shape_count;
    struct value values[GRAPH_VALUES];
    struct shape shapes[GRAPH_SHAPES];
    uint16_t hashes[GRAPH_HASHES]; /* value + 1 */
};

/** Says what is wrong, and where; the first word stands. Returns NO_VALUE. */
uint16_t graph_fail(struct graph *graph, size_t column, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** The number of a shape; 0 and a failure where there are too many. */
uint8_t graph_shape(struct graph *graph, const struct shape *shape);
/** What two shapes broadcast to; false where they do not. */
bool shape_broadcast(const struct shape *a, const struct shape *b, struct shape *result);
/** Its elements, or -1 where they are more than EXPRESSION_ELEMENTS. */
int64_t shape_elements(const struct shape *shape);
/** "(3, 4)" */
const char *shape_print(const struct shape *shape, char text[static 192]);

uint16_t graph_input(struct graph *graph, size_t input);
uint16_t graph_constant(struct graph *graph, struct weak number, enum expression_type type);
/** An operation on operands of `type`, which is one that it has, or float16. */
uint16_t graph_op(struct graph *graph, int op, enum expression_type type, uint16_t a, uint16_t b,
                  uint16_t c);
uint16_t graph_cast(struct graph *graph, uint16_t value, enum expression_type type);
/** The place along `axis` (≥ 0) of a shape. */
uint16_t graph_index(struct graph *graph, const struct shape *shape, int axis);
/** A reduction over the dimensions of `axes`, of a type that it has. */
uint16_t graph_reduce(struct graph *graph, int op, uint16_t value, unsigned axes, bool keep);

static inline const struct shape *value_shape(const struct graph *graph, uint16_t value) {
    return &graph->shapes[graph->values[value].shape];
}

#endif
