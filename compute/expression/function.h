/*
 * function.h: the functions that a text may call.
 *
 * Threads: the graph's owner.
 */
#ifndef KILN_COMPUTE_EXPRESSION_FUNCTION_H
#define KILN_COMPUTE_EXPRESSION_FUNCTION_H

#include "compute/expression/operand.h"

#define CALL_ARGUMENTS 3

struct call {
    const struct function *function;
    size_t column;
    struct operand arguments[CALL_ARGUMENTS];
    int count;
    bool has_axis; /* axis=…; None counts as not given */
    int axis_count;
    int64_t axis[EXPRESSION_DIMS];
    bool keep; /* keepdims */
};

/** The function of this name, or NULL with the name that may be meant in `meant` (or NULL). */
const struct function *function_find(const char *name, size_t size, const char **meant);
/** Whether it takes axis= and keepdims=. */
bool function_reduces(const struct function *function);
const char *function_name(const struct function *function);
/** What a call gives. */
struct operand function_call(struct graph *graph, const struct call *call);

#endif
