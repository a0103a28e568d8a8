/*
 * validate.h: whether a program may be run. Its bytes come through memory that others can write:
 * copy it first, validate the copy, run the copy.
 *
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_EXPRESSION_VALIDATE_H
#define KILN_COMPUTE_EXPRESSION_VALIDATE_H

#include "kernels/expression.h"

/** NULL where it is sound: every number in range, every slot of its type and written before it is
    read, every access within its array's `elements`, every result written once and whole. Else
    what is wrong. The caller holds the arrays' memory against `type` and `elements`. */
const char *expression_validate(const struct expression_program *program);

#endif
