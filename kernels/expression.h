/*
 * expression.h: arguments of the kernel `expression`, and the program that it runs.
 *
 * A program is what compute/expression makes of a text like "2*a + 3*b" for arrays of given types
 * and shapes: straight-line code without loops, jumps, pointers or indices. It travels in shared
 * memory, so whoever runs one validates a copy first (compute/expression/validate.h); the kernel
 * relies on that.
 *
 * Arrays: `inputs`, then `outputs`, then `temporaries` of the program's own. Outputs and
 * temporaries are C-contiguous; inputs have strides. Outputs overlap nothing.
 *
 * Stages run one after the other. A stage is a loop over a space of up to EXPRESSION_DIMS
 * dimensions, whose instructions run for every element of it. The first `kept` dimensions are those
 * of what it writes, the others are reduced. A stage without reduced dimensions and reductions
 * stores; one with reductions (always its last instructions) stores nothing else.
 *
 * An instruction takes and gives slots: registers from 0, accesses of the stage from
 * EXPRESSION_ACCESS, constants of the program from EXPRESSION_CONSTANT. An access is an array with
 * a stride for each dimension of the space, in elements; 0 repeats. Those that are given (results)
 * walk their array in order, without a gap.
 *
 * What is computed:
 *   - Integers wrap. x // 0, x % 0 are 0; MIN // -1 is MIN, MIN % -1 is 0, abs(MIN) is MIN. The
 *     signs of // and % are Python's. A shift by its width or more, or by a negative number, gives
 * 0, and -1 for a negative number shifted right. x ** n for n < 0 is the true value cut to an
 *     integer (0, 1 or -1), 0 for 0 ** n.
 *   - Reals round once an operation, to nearest; nothing is fused but FMA. // and % are NumPy's.
 *     min and max carry NaN, fmin and fmax pass over it; of two equal ones the second is taken.
 *   - Casts: real to integer cuts, stops at the ends of the range and makes NaN 0; integer to
 * integer wraps; to bool is "not 0". float16 is rounded once from any type.
 *   - Reductions: elements of the reduced dimensions in row-major order are cut into chunks of
 *     EXPRESSION_CHUNK; element i of a chunk goes to lane i % EXPRESSION_LANES, lanes start at the
 *     identity (-0.0 for a sum of reals) and take theirs in order; lane l joins l + 8, then 4, 2,
 * 1; chunks are joined by neighbouring pairs, an odd one passing up. argmin and argmax give the
 *     first place, of a NaN where there is one.
 *
 * Tolerance: equal bytes on every backend for all but the functions. Functions of float32: 0.51
 * ulp, and equal bytes for those of EXPRESSION_OWN up to 2^20 in size
 * (kernels/expression_function.h). Functions of float64: 4 ulp. The sign and payload of a NaN are
 * not fixed.
 */
#ifndef KILN_KERNELS_EXPRESSION_H
#define KILN_KERNELS_EXPRESSION_H

#include <stdint.h>

#define EXPRESSION_SCHEMA 1u /* of struct expression_program */

#define EXPRESSION_DIMS         8
#define EXPRESSION_INPUTS       16
#define EXPRESSION_OUTPUTS      16
#define EXPRESSION_TEMPORARIES  64
#define EXPRESSION_ARRAYS       (EXPRESSION_INPUTS + EXPRESSION_OUTPUTS + EXPRESSION_TEMPORARIES)
#define EXPRESSION_STAGES       64
#define EXPRESSION_INSTRUCTIONS 1024
#define EXPRESSION_ACCESSES     256
#define EXPRESSION_ELEMENTS     ((int64_t)1 << 40) /* of one array or space */

/* Slots of an instruction. */
#define EXPRESSION_REGISTERS      64
#define EXPRESSION_ACCESS         64 /* the stage's accesses: 64 … 127 */
#define EXPRESSION_STAGE_ACCESSES 64
#define EXPRESSION_CONSTANT       128 /* the program's constants: 128 … 255 */
#define EXPRESSION_CONSTANTS      128

#define EXPRESSION_CHUNK 4096
#define EXPRESSION_LANES 16

#define EXPRESSION_STAGE_REDUCTIONS 8

/* X(symbol, NumPy's name, bytes, C type) */
#define EXPRESSION_TYPES(X)                                                                        \
    X(BOOL, bool, 1, uint8_t)                                                                      \
    X(I8, int8, 1, int8_t)                                                                         \
    X(I16, int16, 2, int16_t)                                                                      \
    X(I32, int32, 4, int32_t)                                                                      \
    X(I64, int64, 8, int64_t)                                                                      \
    X(U8, uint8, 1, uint8_t)                                                                       \
    X(U16, uint16, 2, uint16_t)                                                                    \
    X(U32, uint32, 4, uint32_t)                                                                    \
    X(U64, uint64, 8, uint64_t)                                                                    \
    X(F16, float16, 2, uint16_t)                                                                   \
    X(F32, float32, 4, float)                                                                      \
    X(F64, float64, 8, double)

enum expression_type {
#define X(symbol, name, bytes, type) EXPRESSION_##symbol,
    EXPRESSION_TYPES(X)
#undef X
        EXPRESSION_TYPE_COUNT
};

/* Sets of types that an operation computes in. Bools hold 0 or 1; float16 is only moved and cast.
 */
#define EXPRESSION_BIT(type) (1u << EXPRESSION_##type)
#define EXPRESSION_IS_BOOL   EXPRESSION_BIT(BOOL)
#define EXPRESSION_IS_SIGNED                                                                       \
    (EXPRESSION_BIT(I8) | EXPRESSION_BIT(I16) | EXPRESSION_BIT(I32) | EXPRESSION_BIT(I64))
#define EXPRESSION_IS_UNSIGNED                                                                     \
    (EXPRESSION_BIT(U8) | EXPRESSION_BIT(U16) | EXPRESSION_BIT(U32) | EXPRESSION_BIT(U64))
#define EXPRESSION_IS_INTEGER (EXPRESSION_IS_SIGNED | EXPRESSION_IS_UNSIGNED)
#define EXPRESSION_IS_REAL    (EXPRESSION_BIT(F32) | EXPRESSION_BIT(F64))
#define EXPRESSION_IS_NUMBER  (EXPRESSION_IS_INTEGER | EXPRESSION_IS_REAL)
#define EXPRESSION_IS_ANY     (EXPRESSION_IS_NUMBER | EXPRESSION_IS_BOOL | EXPRESSION_BIT(F16))
#define EXPRESSION_IS_WIDE    (EXPRESSION_BIT(I64) | EXPRESSION_BIT(U64) | EXPRESSION_IS_REAL)

/* X(symbol, name, operands, types of the operands, result: SAME, BOOL, or I64)
   CAST is apart: `from` is the operand's type and `type` the result's. WHERE's first operand is
   bool. INDEX gives the place in a space of one dimension. */
#define EXPRESSION_PLAIN(X)                                                                        \
    X(COPY, copy, 1, ANY, SAME)                                                                    \
    X(ADD, add, 2, NUMBER, SAME)                                                                   \
    X(SUBTRACT, subtract, 2, NUMBER, SAME)                                                         \
    X(MULTIPLY, multiply, 2, NUMBER, SAME)                                                         \
    X(DIVIDE, divide, 2, REAL, SAME)                                                               \
    X(FLOOR_DIVIDE, floor_divide, 2, NUMBER, SAME)                                                 \
    X(REMAINDER, remainder, 2, NUMBER, SAME)                                                       \
    X(AND, and, 2, INTEGER | EXPRESSION_IS_BOOL, SAME)                                             \
    X(OR, or, 2, INTEGER | EXPRESSION_IS_BOOL, SAME)                                               \
    X(XOR, xor, 2, INTEGER | EXPRESSION_IS_BOOL, SAME)                                             \
    X(SHIFT_LEFT, shift_left, 2, INTEGER, SAME)                                                    \
    X(SHIFT_RIGHT, shift_right, 2, INTEGER, SAME)                                                  \
    X(INVERT, invert, 1, INTEGER | EXPRESSION_IS_BOOL, SAME)                                       \
    X(NEGATE, negate, 1, NUMBER, SAME)                                                             \
    X(ABSOLUTE, absolute, 1, NUMBER, SAME)                                                         \
    X(SIGN, sign, 1, NUMBER, SAME)                                                                 \
    X(MINIMUM, minimum, 2, NUMBER, SAME)                                                           \
    X(MAXIMUM, maximum, 2, NUMBER, SAME)                                                           \
    X(FMIN, fmin, 2, REAL, SAME)                                                                   \
    X(FMAX, fmax, 2, REAL, SAME)                                                                   \
    X(EQUAL, equal, 2, NUMBER | EXPRESSION_IS_BOOL, BOOL)                                          \
    X(NOT_EQUAL, not_equal, 2, NUMBER | EXPRESSION_IS_BOOL, BOOL)                                  \
    X(LESS, less, 2, NUMBER | EXPRESSION_IS_BOOL, BOOL)                                            \
    X(LESS_EQUAL, less_equal, 2, NUMBER | EXPRESSION_IS_BOOL, BOOL)                                \
    X(WHERE, where, 3, ANY, SAME)                                                                  \
    X(FMA, fma, 3, REAL, SAME)                                                                     \
    X(COPYSIGN, copysign, 2, REAL, SAME)                                                           \
    X(SQRT, sqrt, 1, REAL, SAME)                                                                   \
    X(FLOOR, floor, 1, REAL, SAME)                                                                 \
    X(CEIL, ceil, 1, REAL, SAME)                                                                   \
    X(TRUNC, trunc, 1, REAL, SAME)                                                                 \
    X(RINT, rint, 1, REAL, SAME)                                                                   \
    X(ISNAN, isnan, 1, REAL, BOOL)                                                                 \
    X(ISINF, isinf, 1, REAL, BOOL)                                                                 \
    X(ISFINITE, isfinite, 1, REAL, BOOL)                                                           \
    X(INTEGER_POWER, integer_power, 2, INTEGER, SAME)

/* Functions: of float32 by sums and products in float64, each rounded as IEEE 754 says. */
#define EXPRESSION_OWN_PLAIN(X)                                                                    \
    X(EXP, exp, 1, REAL, SAME)                                                                     \
    X(EXP2, exp2, 1, REAL, SAME)                                                                   \
    X(EXPM1, expm1, 1, REAL, SAME)                                                                 \
    X(LOG, log, 1, REAL, SAME)                                                                     \
    X(LOG2, log2, 1, REAL, SAME)                                                                   \
    X(LOG10, log10, 1, REAL, SAME)                                                                 \
    X(LOG1P, log1p, 1, REAL, SAME)                                                                 \
    X(SINH, sinh, 1, REAL, SAME)                                                                   \
    X(COSH, cosh, 1, REAL, SAME)                                                                   \
    X(TANH, tanh, 1, REAL, SAME)
#define EXPRESSION_OWN_ANGLE(X)                                                                    \
    X(SIN, sin, 1, REAL, SAME)                                                                     \
    X(COS, cos, 1, REAL, SAME)                                                                     \
    X(TAN, tan, 1, REAL, SAME)
#define EXPRESSION_OWN(X) EXPRESSION_OWN_PLAIN(X) EXPRESSION_OWN_ANGLE(X)

/* Functions: the C library's in float64, rounded to float32. */
#define EXPRESSION_LIBRARY(X)                                                                      \
    X(CBRT, cbrt, 1, REAL, SAME)                                                                   \
    X(ARCSIN, asin, 1, REAL, SAME)                                                                 \
    X(ARCCOS, acos, 1, REAL, SAME)                                                                 \
    X(ARCTAN, atan, 1, REAL, SAME)                                                                 \
    X(ARCSINH, asinh, 1, REAL, SAME)                                                               \
    X(ARCCOSH, acosh, 1, REAL, SAME)                                                               \
    X(ARCTANH, atanh, 1, REAL, SAME)

#define EXPRESSION_LIBRARY_TWO(X)                                                                  \
    X(POWER, pow, 2, REAL, SAME)                                                                   \
    X(HYPOT, hypot, 2, REAL, SAME)                                                                 \
    X(ARCTAN2, atan2, 2, REAL, SAME)

/* From here on the last instructions of a stage, into an access. */
#define EXPRESSION_REDUCTIONS(X)                                                                   \
    X(SUM, sum, 1, WIDE, SAME)                                                                     \
    X(PRODUCT, product, 1, WIDE, SAME)                                                             \
    X(LEAST, least, 1, NUMBER, SAME)                                                               \
    X(GREATEST, greatest, 1, NUMBER, SAME)                                                         \
    X(ANY, any, 1, BOOL, SAME)                                                                     \
    X(ALL, all, 1, BOOL, SAME)                                                                     \
    X(ARGMIN, argmin, 1, NUMBER, I64)                                                              \
    X(ARGMAX, argmax, 1, NUMBER, I64)

#define EXPRESSION_MAPS(X)                                                                         \
    EXPRESSION_PLAIN(X) EXPRESSION_OWN(X) EXPRESSION_LIBRARY(X) EXPRESSION_LIBRARY_TWO(X)

enum expression_op {
#define X(symbol, name, operands, types, result) EXPRESSION_##symbol,
    EXPRESSION_MAPS(X) EXPRESSION_CAST,
    EXPRESSION_INDEX,
    EXPRESSION_REDUCTIONS(X)
#undef X
        EXPRESSION_OP_COUNT
};

/* Ends of the list's third group. */
#define EXPRESSION_REDUCTION_FIRST EXPRESSION_SUM

struct expression_array {
    uint8_t type; /* enum expression_type */
    uint8_t dims;
    int64_t elements;               /* of its memory, from the first one on */
    int64_t shape[EXPRESSION_DIMS]; /* for who reads the result */
};

struct expression_access {
    uint16_t array;
    int64_t strides[EXPRESSION_DIMS]; /* elements, ≥ 0 */
};

struct expression_instruction {
    uint8_t op, type, from; /* type: of the operands; CAST: of the result, `from` of the operand */
    uint8_t to, a, b, c;    /* slots */
};

struct expression_stage {
    uint8_t dims, kept;
    uint16_t first_access, accesses;
    uint16_t first_instruction, instructions;
    int64_t shape[EXPRESSION_DIMS];
};

struct expression_program {
    uint32_t schema;
    uint16_t inputs, outputs, temporaries;
    uint16_t constants, stages, accesses, instructions;
    uint64_t cost;                           /* instructions × elements, over all stages */
    uint64_t constant[EXPRESSION_CONSTANTS]; /* bits, in the low bytes */
    uint8_t constant_type[EXPRESSION_CONSTANTS];
    struct expression_array array[EXPRESSION_ARRAYS];
    struct expression_stage stage[EXPRESSION_STAGES];
    struct expression_access access[EXPRESSION_ACCESSES];
    struct expression_instruction instruction[EXPRESSION_INSTRUCTIONS];
};

struct expression_args {
    const struct expression_program *program; /* host, validated, unchanged until wait */
    const void *inputs[EXPRESSION_INPUTS];    /* device, aligned to their elements; any bytes */
    void *outputs[EXPRESSION_OUTPUTS];        /* device, likewise */
};

/** What the list says of an operation. */
struct expression_op_row {
    const char *name;
    uint8_t operands;
    uint8_t result; /* an enum expression_type, or EXPRESSION_TYPE_COUNT: the operands' */
    uint32_t types; /* bits */
};

#define EXPRESSION_SAME EXPRESSION_TYPE_COUNT
static inline const struct expression_op_row *expression_op_row(int op) {
    static const struct expression_op_row rows[EXPRESSION_OP_COUNT] = {
#define X(symbol, name, operands, types, result)                                                   \
    [EXPRESSION_##symbol] = {#name, operands, EXPRESSION_##result, EXPRESSION_IS_##types},
        EXPRESSION_MAPS(X) EXPRESSION_REDUCTIONS(X)
#undef X
            [EXPRESSION_CAST] = {"cast", 1, EXPRESSION_SAME, EXPRESSION_IS_ANY},
        [EXPRESSION_INDEX] = {"index", 0, EXPRESSION_I64, EXPRESSION_BIT(I64)},
    };
    return &rows[op];
}

/** Bytes of an element. */
static inline unsigned expression_type_bytes(int type) {
    static const uint8_t bytes[EXPRESSION_TYPE_COUNT] = {
#define X(symbol, name, size, c) size,
        EXPRESSION_TYPES(X)
#undef X
    };
    return bytes[type];
}

#endif
