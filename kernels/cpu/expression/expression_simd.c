/*
 * expression_simd.c: the loops of `expression`; the compiler turns them into vectors.
 *
 * Each is one line over the functions of kernels/expression_op.h. An operand may be the result, at
 * the same place: `ivdep` says that this is all the overlap there is.
 */
#include "kernels/cpu/expression/expression_simd.h"
#include "kernels/cpu/device/simd.h"
#include "kernels/expression_function.h"
#include "kernels/expression_op.h"

#define LOOP(name, R, T, value)                                                                    \
    static void name(void *out, const void *a, const void *b, const void *c, size_t n) {           \
        R *o = out;                                                                                \
        const T *x = a, *y = b, *z = c;                                                            \
        (void)y;                                                                                   \
        (void)z;                                                                                   \
        _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++) {                                      \
            o[i] = (R)(value);                                                                     \
        }                                                                                          \
    }
#define ONE(op, s, R, T) LOOP(op##_##s, R, T, expression_##op##_##s(x[i]))
#define TWO(op, s, R, T) LOOP(op##_##s, R, T, expression_##op##_##s(x[i], y[i]))

#define X(s, S, T, ...)                                                                            \
    TWO(add, s, T, T)                                                                              \
    TWO(subtract, s, T, T)                                                                         \
    TWO(multiply, s, T, T)                                                                         \
    TWO(floor_divide, s, T, T)                                                                     \
    TWO(remainder, s, T, T)                                                                        \
    ONE(negate, s, T, T)                                                                           \
    ONE(absolute, s, T, T)                                                                         \
    ONE(sign, s, T, T)                                                                             \
    TWO(minimum, s, T, T)                                                                          \
    TWO(maximum, s, T, T)                                                                          \
    TWO(equal, s, uint8_t, T)                                                                      \
    TWO(not_equal, s, uint8_t, T)                                                                  \
    TWO(less, s, uint8_t, T)                                                                       \
    TWO(less_equal, s, uint8_t, T)
EXPRESSION_INTEGERS(X)
EXPRESSION_REALS(X)
#undef X

#define X(s, S, T, ...)                                                                            \
    TWO(and, s, T, T)                                                                              \
    TWO(or, s, T, T)                                                                               \
    TWO(xor, s, T, T)                                                                              \
    TWO(shift_left, s, T, T)                                                                       \
    TWO(shift_right, s, T, T)                                                                      \
    ONE(invert, s, T, T)                                                                           \
    TWO(integer_power, s, T, T)
EXPRESSION_INTEGERS(X)
#undef X

#define X(s, S, T, F)                                                                              \
    TWO(divide, s, T, T)                                                                           \
    TWO(fmin, s, T, T)                                                                             \
    TWO(fmax, s, T, T)                                                                             \
    LOOP(fma_##s, T, T, expression_fma_##s(x[i], y[i], z[i]))                                      \
    TWO(copysign, s, T, T)                                                                         \
    ONE(sqrt, s, T, T)                                                                             \
    ONE(floor, s, T, T)                                                                            \
    ONE(ceil, s, T, T)                                                                             \
    ONE(trunc, s, T, T)                                                                            \
    ONE(rint, s, T, T)                                                                             \
    ONE(isnan, s, uint8_t, T)                                                                      \
    ONE(isinf, s, uint8_t, T)                                                                      \
    ONE(isfinite, s, uint8_t, T)
EXPRESSION_REALS(X)
#undef X

LOOP(invert_bool, uint8_t, uint8_t, x[i] == 0)

/* By width. */
#define MOVES(bits)                                                                                \
    LOOP(copy_##bits, uint##bits##_t, uint##bits##_t, x[i])                                        \
    static void where_##bits(void *out, const void *a, const void *b, const void *c, size_t n) {   \
        uint##bits##_t *o = out;                                                                   \
        const uint8_t *chosen = a;                                                                 \
        const uint##bits##_t *yes = b, *no = c;                                                    \
        _Pragma("GCC ivdep") for (size_t i = 0; i < n; i++) {                                      \
            o[i] = chosen[i] != 0 ? yes[i] : no[i];                                                \
        }                                                                                          \
    }                                                                                              \
    static void gather_##bits(uint##bits##_t *o, const uint##bits##_t *x, int64_t stride,          \
                              size_t n) {                                                          \
        const uint##bits##_t first = x[0];                                                         \
        for (size_t i = 0; stride == 0 && i < n; i++) {                                            \
            o[i] = first;                                                                          \
        }                                                                                          \
        for (size_t i = 0; stride != 0 && i < n; i++) {                                            \
            o[i] = x[(int64_t)i * stride];                                                         \
        }                                                                                          \
    }
MOVES(8)
MOVES(16)
MOVES(32)
MOVES(64)

static void gather(void *out, const void *from, int64_t stride, unsigned width, size_t n) {
    if (stride == 1) {
        memcpy(out, from, n * width);
        return;
    }
    switch (width) {
    case 1:
        gather_8(out, from, stride, n);
        break;
    case 2:
        gather_16(out, from, stride, n);
        break;
    case 4:
        gather_32(out, from, stride, n);
        break;
    default:
        gather_64(out, from, stride, n);
    }
}

/* Functions. Angles that the series are not good for are seen to afterwards; the result may have
   taken the operand's place, so they are looked for before. */
#define X(symbol, name, ...)                                                                       \
    LOOP(name##_f32, float, float, expression_##name##_f32(x[i]))                                  \
    LOOP(name##_f64, double, double, name(x[i]))
EXPRESSION_OWN_PLAIN(X)
#undef X
#define X(symbol, name, ...)                                                                       \
    LOOP(name##_small_f32, float, float, expression_##name##_f32(x[i]))                            \
    LOOP(name##_large_f32, float, float, name((double)x[i]))                                       \
    LOOP(name##_f64, double, double, name(x[i]))                                                   \
    static void name##_f32(void *out, const void *a, const void *b, const void *c, size_t n) {     \
        bool small = angles_small(a, n);                                                           \
        for (size_t i = 0; !small && i < n; i++) {                                                 \
            bool one = angles_small((const float *)a + i, 1);                                      \
            (one ? name##_small_f32 : name##_large_f32)((float *)out + i, (const float *)a + i, b, \
                                                        c, 1);                                     \
        }                                                                                          \
        if (small) {                                                                               \
            name##_small_f32(out, a, b, c, n);                                                     \
        }                                                                                          \
    }
static bool angles_small(const float *x, size_t n) {
    uint32_t over = 0;
    for (size_t i = 0; i < n; i++) {
        over |= fabsf(x[i]) > EXPRESSION_ANGLE_MAX;
    }
    return over == 0;
}
EXPRESSION_OWN_ANGLE(X)
#undef X
#define X(symbol, name, ...)                                                                       \
    LOOP(name##_f32, float, float, name((double)x[i]))                                             \
    LOOP(name##_f64, double, double, name(x[i]))
EXPRESSION_LIBRARY(X)
#undef X
#define X(symbol, name, ...)                                                                       \
    LOOP(name##_f32, float, float, name((double)x[i], (double)y[i]))                               \
    LOOP(name##_f64, double, double, name(x[i], y[i]))
EXPRESSION_LIBRARY_TWO(X)
#undef X

/* Casts. */
#define CAST(from, T, to, R, value) LOOP(cast_##from##_##to, R, T, value)
#define CAST_INTEGERS(from, T, of)                                                                 \
    CAST(from, T, i8, int8_t, of(i8, int8_t))                                                      \
    CAST(from, T, i16, int16_t, of(i16, int16_t))                                                  \
    CAST(from, T, i32, int32_t, of(i32, int32_t))                                                  \
    CAST(from, T, i64, int64_t, of(i64, int64_t))                                                  \
    CAST(from, T, u8, uint8_t, of(u8, uint8_t))                                                    \
    CAST(from, T, u16, uint16_t, of(u16, uint16_t))                                                \
    CAST(from, T, u32, uint32_t, of(u32, uint32_t))                                                \
    CAST(from, T, u64, uint64_t, of(u64, uint64_t))
#define CAST_REALS(from, T, value)                                                                 \
    CAST(from, T, f32, float, (float)(value))                                                      \
    CAST(from, T, f64, double, (double)(value))
#define OF_INTEGER(s, R) (R) x[i]
#define OF_F32(s, R)     expression_##s##_of_f32(x[i])
#define OF_F64(s, R)     expression_##s##_of_f64(x[i])
#define OF_F16(s, R)     expression_##s##_of_f32(expression_half_value(x[i]))
#define X(s, S, T, ...)                                                                            \
    CAST_INTEGERS(s, T, OF_INTEGER)                                                                \
    CAST_REALS(s, T, x[i])                                                                         \
    CAST(s, T, f16, uint16_t, expression_half_of((float)x[i]))                                     \
    CAST(s, T, bool, uint8_t, x[i] != 0)
EXPRESSION_INTEGERS(X)
#undef X
CAST_INTEGERS(f32, float, OF_F32)
CAST_REALS(f32, float, x[i])
CAST(f32, float, f16, uint16_t, expression_half_of(x[i]))
CAST(f32, float, bool, uint8_t, x[i] != 0)
CAST_INTEGERS(f64, double, OF_F64)
CAST_REALS(f64, double, x[i])
CAST(f64, double, f16, uint16_t, expression_half_of_double(x[i]))
CAST(f64, double, bool, uint8_t, x[i] != 0)
CAST_INTEGERS(f16, uint16_t, OF_F16)
CAST_REALS(f16, uint16_t, expression_half_value(x[i]))
CAST(f16, uint16_t, f16, uint16_t, x[i])
CAST(f16, uint16_t, bool, uint8_t, (x[i] & 0x7fff) != 0)

/* Lanes. */
#define LANES_OF(op, s, T)                                                                         \
    static void lanes_##op##_##s(void *to, const void *from, size_t n) {                           \
        T *const all = to, each[EXPRESSION_LANES];                                                 \
        const T *x = from;                                                                         \
        memcpy(each, all, sizeof each);                                                            \
        for (; n >= EXPRESSION_LANES; n -= EXPRESSION_LANES, x += EXPRESSION_LANES) {              \
            for (int i = 0; i < EXPRESSION_LANES; i++) {                                           \
                each[i] = expression_##op##_##s(each[i], x[i]);                                    \
            }                                                                                      \
        }                                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            each[i] = expression_##op##_##s(each[i], x[i]);                                        \
        }                                                                                          \
        memcpy(all, each, sizeof each);                                                            \
    }
#define X(s, S, T, ...) LANES_OF(minimum, s, T) LANES_OF(maximum, s, T)
EXPRESSION_INTEGERS(X)
EXPRESSION_REALS(X)
#undef X
#define X(s, T) LANES_OF(add, s, T) LANES_OF(multiply, s, T)
X(i64, int64_t)
X(u64, uint64_t)
X(f32, float)
X(f64, double)
#undef X
LANES_OF(and, u8, uint8_t)
LANES_OF(or, u8, uint8_t)

#define IN_SIGNED(f)                                                                               \
    [EXPRESSION_I8] = f##_i8, [EXPRESSION_I16] = f##_i16, [EXPRESSION_I32] = f##_i32,              \
    [EXPRESSION_I64] = f##_i64
#define IN_UNSIGNED(f)                                                                             \
    [EXPRESSION_U8] = f##_u8, [EXPRESSION_U16] = f##_u16, [EXPRESSION_U32] = f##_u32,              \
    [EXPRESSION_U64] = f##_u64
#define IN_REALS(f)    [EXPRESSION_F32] = f##_f32, [EXPRESSION_F64] = f##_f64
#define IN_INTEGERS(f) IN_SIGNED(f), IN_UNSIGNED(f)
#define IN_NUMBERS(f)  IN_INTEGERS(f), IN_REALS(f)
#define IN_WIDE(f)     [EXPRESSION_I64] = f##_i64, [EXPRESSION_U64] = f##_u64, IN_REALS(f)
#define IN_ALL(f)      IN_NUMBERS(f), [EXPRESSION_BOOL] = f##_bool, [EXPRESSION_F16] = f##_f16
#define IN_BOOLS(f)    IN_INTEGERS(f), [EXPRESSION_BOOL] = f##_u8
#define IN_ORDERED(f)  IN_NUMBERS(f), [EXPRESSION_BOOL] = f##_u8
#define IN_WIDTHS(f)                                                                               \
    [EXPRESSION_BOOL] = f##_8, [EXPRESSION_I8] = f##_8, [EXPRESSION_U8] = f##_8,                   \
    [EXPRESSION_I16] = f##_16, [EXPRESSION_U16] = f##_16, [EXPRESSION_F16] = f##_16,               \
    [EXPRESSION_I32] = f##_32, [EXPRESSION_U32] = f##_32, [EXPRESSION_F32] = f##_32,               \
    [EXPRESSION_I64] = f##_64, [EXPRESSION_U64] = f##_64, [EXPRESSION_F64] = f##_64

const struct expression_simd SIMD_NAME(expression) =
                    {
                        .map = {[EXPRESSION_COPY] = {IN_WIDTHS(copy)},
                                [EXPRESSION_ADD] = {IN_NUMBERS(add)},
                                [EXPRESSION_SUBTRACT] = {IN_NUMBERS(subtract)},
                                [EXPRESSION_MULTIPLY] = {IN_NUMBERS(multiply)},
                                [EXPRESSION_DIVIDE] = {IN_REALS(divide)},
                                [EXPRESSION_FLOOR_DIVIDE] = {IN_NUMBERS(floor_divide)},
                                [EXPRESSION_REMAINDER] = {IN_NUMBERS(remainder)},
                                [EXPRESSION_AND] = {IN_BOOLS(and)},
                                [EXPRESSION_OR] = {IN_BOOLS(or)},
                                [EXPRESSION_XOR] = {IN_BOOLS(xor)},
                                [EXPRESSION_SHIFT_LEFT] = {IN_INTEGERS(shift_left)},
                                [EXPRESSION_SHIFT_RIGHT] = {IN_INTEGERS(shift_right)},
                                [EXPRESSION_INVERT] = {IN_INTEGERS(invert), [EXPRESSION_BOOL] =
                                                                                invert_bool},
                                [EXPRESSION_NEGATE] = {IN_NUMBERS(negate)},
                                [EXPRESSION_ABSOLUTE] = {IN_NUMBERS(absolute)},
                                [EXPRESSION_SIGN] = {IN_NUMBERS(sign)},
                                [EXPRESSION_MINIMUM] = {IN_NUMBERS(minimum)},
                                [EXPRESSION_MAXIMUM] = {IN_NUMBERS(maximum)},
                                [EXPRESSION_FMIN] = {IN_REALS(fmin)},
                                [EXPRESSION_FMAX] = {IN_REALS(fmax)},
                                [EXPRESSION_EQUAL] = {IN_ORDERED(equal)},
                                [EXPRESSION_NOT_EQUAL] = {IN_ORDERED(not_equal)},
                                [EXPRESSION_LESS] = {IN_ORDERED(less)},
                                [EXPRESSION_LESS_EQUAL] = {IN_ORDERED(less_equal)},
                                [EXPRESSION_WHERE] = {IN_WIDTHS(where)},
                                [EXPRESSION_FMA] = {IN_REALS(fma)},
                                [EXPRESSION_COPYSIGN] = {IN_REALS(copysign)},
                                [EXPRESSION_SQRT] = {IN_REALS(sqrt)},
                                [EXPRESSION_FLOOR] = {IN_REALS(floor)},
                                [EXPRESSION_CEIL] = {IN_REALS(ceil)},
                                [EXPRESSION_TRUNC] = {IN_REALS(trunc)},
                                [EXPRESSION_RINT] = {IN_REALS(rint)},
                                [EXPRESSION_ISNAN] = {IN_REALS(isnan)},
                                [EXPRESSION_ISINF] = {IN_REALS(isinf)},
                                [EXPRESSION_ISFINITE] = {IN_REALS(isfinite)},
                                [EXPRESSION_INTEGER_POWER] = {IN_INTEGERS(integer_power)},
#define X(symbol, name, ...) [EXPRESSION_##symbol] = {IN_REALS(name)},
                                EXPRESSION_OWN(X) EXPRESSION_LIBRARY(X) EXPRESSION_LIBRARY_TWO(X)
#undef X
                        },
                        .cast =
                            {
                                [EXPRESSION_BOOL] = {IN_ALL(cast_u8)},
                                [EXPRESSION_I8] = {IN_ALL(cast_i8)},
                                [EXPRESSION_I16] = {IN_ALL(cast_i16)},
                                [EXPRESSION_I32] = {IN_ALL(cast_i32)},
                                [EXPRESSION_I64] = {IN_ALL(cast_i64)},
                                [EXPRESSION_U8] = {IN_ALL(cast_u8)},
                                [EXPRESSION_U16] = {IN_ALL(cast_u16)},
                                [EXPRESSION_U32] = {IN_ALL(cast_u32)},
                                [EXPRESSION_U64] = {IN_ALL(cast_u64)},
                                [EXPRESSION_F16] = {IN_ALL(cast_f16)},
                                [EXPRESSION_F32] = {IN_ALL(cast_f32)},
                                [EXPRESSION_F64] = {IN_ALL(cast_f64)},
                            },
                        .lanes =
                            {
                                [EXPRESSION_ADD] = {IN_WIDE(lanes_add)},
                                [EXPRESSION_MULTIPLY] = {IN_WIDE(lanes_multiply)},
                                [EXPRESSION_MINIMUM] = {IN_NUMBERS(lanes_minimum)},
                                [EXPRESSION_MAXIMUM] = {IN_NUMBERS(lanes_maximum)},
                                [EXPRESSION_OR] = {[EXPRESSION_BOOL] = lanes_or_u8},
                                [EXPRESSION_AND] = {[EXPRESSION_BOOL] = lanes_and_u8},
                            },
                        .gather = gather,
};
