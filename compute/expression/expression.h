/*
 * expression.h: array expressions as NumPy has them, to programs for the kernel `expression`.
 *
 *   statement {";" statement}        name = …, name += … and the like, or an expression
 *
 * Python's operators and precedence, NumPy 2's types (a number in the text takes the array's type),
 * broadcasting and function names; reductions with axis and keepdims. A bare expression is the
 * result; without one every name that was assigned is. Names hold values: `b = a; b += 1` leaves a.
 * There is nothing that could name memory, loop or fail at run time, so a text is safe to take from
 * anybody, and what it costs is known before it runs.
 *
 * Limits: EXPRESSION_TEXT_MAX bytes, EXPRESSION_NODES operators and calls, EXPRESSION_DEPTH nested,
 * EXPRESSION_LOCALS names, and those of kernels/expression.h. Time is linear in the text's length.
 *
 * Threads: reentrant. Memory: one block while a text is read.
 */
#ifndef KILN_COMPUTE_EXPRESSION_EXPRESSION_H
#define KILN_COMPUTE_EXPRESSION_EXPRESSION_H

#include "compute/core/status.h"
#include "kernels/expression.h"

#include <stddef.h>
#include <stdint.h>

#define EXPRESSION_TEXT_MAX 4096
#define EXPRESSION_NODES    256
#define EXPRESSION_DEPTH    64
#define EXPRESSION_LOCALS   32
#define EXPRESSION_NAME_MAX 64 /* with the NUL */

/** An array that the text may name. */
struct expression_input {
    const char *name;
    enum expression_type type;
    int dims;
    int64_t shape[EXPRESSION_DIMS];
    int64_t strides[EXPRESSION_DIMS]; /* elements, ≥ 0; a dimension of 1 may have any */
};

struct expression_error {
    size_t column; /* from 1; bytes */
    char text[240];
};

/** Names of the program's outputs. */
struct expression_names {
    char output[EXPRESSION_OUTPUTS][EXPRESSION_NAME_MAX]; /* "result" for a bare expression */
};

/** Reads a text. Errors: KILN_INVALID with `error` set (also for inputs that are none: column 0),
    KILN_NO_MEMORY. */
enum kiln_status expression_compile(const char *text, size_t size,
                                    const struct expression_input *inputs, size_t count,
                                    struct expression_program *program,
                                    struct expression_names *names, struct expression_error *error);

/** "float32" */
const char *expression_type_name(enum expression_type type);

#endif
