/*
 * expression_simd.h: what the inner file of `expression` offers: a loop for each operation and
 * type.
 *
 * A loop makes n elements of `out`; operands that an operation does not have are not looked at.
 * `out` may be an operand of elements as wide as its own; else they do not overlap. Slots need no
 * alignment but that of their elements. An entry is NULL where kernels/expression.h has no such
 * type.
 */
#ifndef KILN_KERNELS_CPU_EXPRESSION_EXPRESSION_SIMD_H
#define KILN_KERNELS_CPU_EXPRESSION_EXPRESSION_SIMD_H

#include "kernels/cpu/device/isa.h"
#include "kernels/expression.h"

#include <stddef.h>

typedef void expression_loop(void *out, const void *a, const void *b, const void *c, size_t n);

struct expression_simd {
    expression_loop *map[EXPRESSION_CAST][EXPRESSION_TYPE_COUNT];
    expression_loop *cast[EXPRESSION_TYPE_COUNT][EXPRESSION_TYPE_COUNT]; /* from, to */
    /** Takes n elements into EXPRESSION_LANES lanes in turn, from the first lane on; by the ADD,
        MULTIPLY, MINIMUM, MAXIMUM, OR or AND of a type. */
    void (*lanes[EXPRESSION_CAST][EXPRESSION_TYPE_COUNT])(void *lanes, const void *x, size_t n);
    /** Elements of `width` bytes, `stride` elements apart. */
    void (*gather)(void *out, const void *from, int64_t stride, unsigned width, size_t n);
};

#define X(isa) extern const struct expression_simd expression_##isa##_f32;
KILN_CPU_ISAS(X)
#undef X

#endif
