/*
 * operand.h: Python's operators, on weak numbers and values.
 *
 * Threads: the graph's owner.
 */
#ifndef KILN_COMPUTE_EXPRESSION_OPERAND_H
#define KILN_COMPUTE_EXPRESSION_OPERAND_H

#include "compute/expression/graph.h"

/** What a part of the text stands for. */
struct operand {
    bool weak;
    struct weak number; /* where weak */
    uint16_t value;     /* else; NO_VALUE after a failure */
    size_t column;      /* where it begins */
};

struct operand operand_value(uint16_t value, size_t column);
struct operand operand_weak(struct weak number, size_t column);
/** The type of one by itself; false and a failure where a number is too large for any. */
bool operand_type(struct graph *graph, struct operand operand, enum expression_type *type);
/** The type that both have together. */
bool operand_common(struct graph *graph, struct operand a, struct operand b,
                    enum expression_type *type);
/** A value of this type; a failure where a number does not fit. */
uint16_t operand_as(struct graph *graph, struct operand operand, enum expression_type type);
/** A value of its own type. */
uint16_t operand_strong(struct graph *graph, struct operand operand);

/** a + b and the like: ADD to SHIFT_RIGHT, and POWER for any **. `sign` is how the text writes it.
 */
struct operand operand_binary(struct graph *graph, int op, const char *sign, struct operand a,
                              struct operand b);
/** EQUAL, NOT_EQUAL, LESS, LESS_EQUAL. */
struct operand operand_compare(struct graph *graph, int op, struct operand a, struct operand b);
/** `and` and `or` (AND, OR), element by element. */
struct operand operand_logical(struct graph *graph, int op, struct operand a, struct operand b);
struct operand operand_not(struct graph *graph, struct operand a);
/** '-', '+' or '~'. */
struct operand operand_unary(struct graph *graph, char sign, struct operand a);
/** yes where condition, else no. */
struct operand operand_where(struct graph *graph, struct operand condition, struct operand yes,
                             struct operand no);

#endif
