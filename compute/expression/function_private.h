/*
 * function_private.h: what function.c and reduction.c share: rows of the table.
 */
#ifndef KILN_COMPUTE_EXPRESSION_FUNCTION_PRIVATE_H
#define KILN_COMPUTE_EXPRESSION_FUNCTION_PRIVATE_H

#include "compute/expression/function.h"

struct function {
    const char *name;
    uint16_t (*call)(struct graph *graph, const struct call *call);
    int op;          /* of the kernel; a type for casts */
    int least, most; /* arguments */
};

/* Reductions, and what tells of shapes (reduction.c). */
uint16_t call_sum(struct graph *graph, const struct call *call);
uint16_t call_mean(struct graph *graph, const struct call *call);
uint16_t call_norm(struct graph *graph, const struct call *call);
uint16_t call_extreme(struct graph *graph, const struct call *call);
uint16_t call_truths(struct graph *graph, const struct call *call);
uint16_t call_place(struct graph *graph, const struct call *call);
uint16_t call_index(struct graph *graph, const struct call *call);
struct operand call_shape(struct graph *graph, const struct call *call);

#endif
