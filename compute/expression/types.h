/*
 * types.h: NumPy 2's rules of types, and numbers that have none yet.
 *
 * A number in the text is weak (NEP 50): it takes the type of the array that it meets. Among
 * themselves weak numbers follow Python.
 *
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_EXPRESSION_TYPES_H
#define KILN_COMPUTE_EXPRESSION_TYPES_H

#include "kernels/expression.h"

#include <stdbool.h>
#include <stdint.h>

enum type_kind { KIND_BOOL, KIND_UNSIGNED, KIND_SIGNED, KIND_REAL };

enum type_kind type_kind(enum expression_type type);
bool type_is_integer(enum expression_type type);
/** The smallest type that holds both, as NumPy has it. */
enum expression_type type_promote(enum expression_type a, enum expression_type b);
/** What functions like sqrt compute in. */
enum expression_type type_real(enum expression_type type);
/** NumPy's casting="same_kind", which assignments in place need. */
bool type_same_kind(enum expression_type from, enum expression_type to);
/** Whether a whole number fits. */
bool type_holds(enum expression_type type, __int128 whole);
/** "-128 … 127", for messages. */
const char *type_range(enum expression_type type);

enum weak_kind { WEAK_BOOL, WEAK_WHOLE, WEAK_REAL };

struct weak {
    enum weak_kind kind;
    __int128 whole; /* of bools and whole numbers */
    double real;
};

double weak_real(struct weak number);
/** The type of one that meets no array; false where there is none (more than 64 bits). */
bool weak_type(struct weak number, enum expression_type *type);
/** The bits of one as a constant of a type that holds it. */
uint64_t weak_bits(struct weak number, enum expression_type type);
/** Python's `a op b`, op as in kernels/expression.h (POWER for **). NULL, or what is wrong. */
const char *weak_binary(int op, struct weak a, struct weak b, struct weak *result);

#endif
