/*
 * expression_op.h: what one element of each operation of kernels/expression.h is, for C and CUDA.
 *
 * Functions are named expression_<op>_<type>; EXPRESSION_INTEGERS and EXPRESSION_REALS list the
 * types. Each is total, without branches that a compiler could not turn into selections where it
 * matters, so that loops over them become vectors.
 *
 * Threads: reentrant.
 */
#ifndef KILN_KERNELS_EXPRESSION_OP_H
#define KILN_KERNELS_EXPRESSION_OP_H

#include "kernels/elementary.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#define EXPRESSION_FN ELEMENTARY_INLINE

/* X(suffix, symbol, type, type to wrap in, bits, least, greatest) */
#define EXPRESSION_SIGNED(X)                                                                       \
    X(i8, I8, int8_t, uint32_t, 8, INT8_MIN, INT8_MAX)                                             \
    X(i16, I16, int16_t, uint32_t, 16, INT16_MIN, INT16_MAX)                                       \
    X(i32, I32, int32_t, uint32_t, 32, INT32_MIN, INT32_MAX)                                       \
    X(i64, I64, int64_t, uint64_t, 64, INT64_MIN, INT64_MAX)
#define EXPRESSION_UNSIGNED(X)                                                                     \
    X(u8, U8, uint8_t, uint32_t, 8, 0, UINT8_MAX)                                                  \
    X(u16, U16, uint16_t, uint32_t, 16, 0, UINT16_MAX)                                             \
    X(u32, U32, uint32_t, uint32_t, 32, 0, UINT32_MAX)                                             \
    X(u64, U64, uint64_t, uint64_t, 64, 0, UINT64_MAX)
#define EXPRESSION_INTEGERS(X) EXPRESSION_SIGNED(X) EXPRESSION_UNSIGNED(X)
/* X(suffix, symbol, type, name of the C library's function) */
#define EXPRESSION_REALS(X)                                                                        \
    X(f32, F32, float, EXPRESSION_F32)                                                             \
    X(f64, F64, double, EXPRESSION_F64)
#define EXPRESSION_F32(name) name##f
#define EXPRESSION_F64(name) name

/* Integers, whatever their sign. */
#define X(s, S, T, W, bits, least, greatest)                                                       \
    EXPRESSION_FN T expression_copy_##s(T a) {                                                     \
        return a;                                                                                  \
    }                                                                                              \
    EXPRESSION_FN T expression_add_##s(T a, T b) {                                                 \
        return (T)((W)a + (W)b);                                                                   \
    }                                                                                              \
    EXPRESSION_FN T expression_subtract_##s(T a, T b) {                                            \
        return (T)((W)a - (W)b);                                                                   \
    }                                                                                              \
    EXPRESSION_FN T expression_multiply_##s(T a, T b) {                                            \
        return (T)((W)a * (W)b);                                                                   \
    }                                                                                              \
    EXPRESSION_FN T expression_and_##s(T a, T b) {                                                 \
        return (T)(a & b);                                                                         \
    }                                                                                              \
    EXPRESSION_FN T expression_or_##s(T a, T b) {                                                  \
        return (T)(a | b);                                                                         \
    }                                                                                              \
    EXPRESSION_FN T expression_xor_##s(T a, T b) {                                                 \
        return (T)(a ^ b);                                                                         \
    }                                                                                              \
    EXPRESSION_FN T expression_invert_##s(T a) {                                                   \
        return (T)~a;                                                                              \
    }                                                                                              \
    EXPRESSION_FN T expression_negate_##s(T a) {                                                   \
        return (T)((W)0 - (W)a);                                                                   \
    }                                                                                              \
    EXPRESSION_FN T expression_shift_left_##s(T a, T b) {                                          \
        return (W)b < bits ? (T)((W)a << ((W)b & (bits - 1))) : (T)0;                              \
    }                                                                                              \
    EXPRESSION_FN T expression_minimum_##s(T a, T b) {                                             \
        return a < b ? a : b;                                                                      \
    }                                                                                              \
    EXPRESSION_FN T expression_maximum_##s(T a, T b) {                                             \
        return a > b ? a : b;                                                                      \
    }                                                                                              \
    /* a to the n by squaring, n ≥ 0. */                                                         \
    EXPRESSION_FN T expression_raise_##s(T a, T n) {                                               \
        W base = (W)a, result = 1, left = (W)n;                                                    \
        for (; left != 0; left >>= 1, base *= base) {                                              \
            result = (left & 1) != 0 ? result * base : result;                                     \
        }                                                                                          \
        return (T)result;                                                                          \
    }
EXPRESSION_INTEGERS(X)
#undef X

#define X(s, S, T, W, bits, least, greatest)                                                       \
    EXPRESSION_FN T expression_floor_divide_##s(T a, T b) {                                        \
        if (b == 0 || b == -1) {                                                                   \
            return b == 0 ? (T)0 : expression_negate_##s(a);                                       \
        }                                                                                          \
        return (T)(a / b - ((a < 0) != (b < 0) && a % b != 0));                                    \
    }                                                                                              \
    EXPRESSION_FN T expression_remainder_##s(T a, T b) {                                           \
        if (b == 0 || b == -1) {                                                                   \
            return 0;                                                                              \
        }                                                                                          \
        T rest = (T)(a % b);                                                                       \
        return (T)(rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest);                          \
    }                                                                                              \
    EXPRESSION_FN T expression_shift_right_##s(T a, T b) {                                         \
        return (T)(a >> ((W)b < bits ? (W)b : bits - 1));                                          \
    }                                                                                              \
    EXPRESSION_FN T expression_absolute_##s(T a) {                                                 \
        return a < 0 ? expression_negate_##s(a) : a;                                               \
    }                                                                                              \
    EXPRESSION_FN T expression_sign_##s(T a) {                                                     \
        return (T)((a > 0) - (a < 0));                                                             \
    }                                                                                              \
    EXPRESSION_FN T expression_integer_power_##s(T a, T b) {                                       \
        if (b >= 0) {                                                                              \
            return expression_raise_##s(a, b);                                                     \
        }                                                                                          \
        return (T)(a == 1 ? 1 : a == -1 ? 1 - 2 * (b & 1) : 0);                                    \
    }
EXPRESSION_SIGNED(X)
#undef X

#define X(s, S, T, W, bits, least, greatest)                                                       \
    EXPRESSION_FN T expression_floor_divide_##s(T a, T b) {                                        \
        return b == 0 ? (T)0 : (T)(a / b);                                                         \
    }                                                                                              \
    EXPRESSION_FN T expression_remainder_##s(T a, T b) {                                           \
        return b == 0 ? (T)0 : (T)(a % b);                                                         \
    }                                                                                              \
    EXPRESSION_FN T expression_shift_right_##s(T a, T b) {                                         \
        return (W)b < bits ? (T)((W)a >> ((W)b & (bits - 1))) : (T)0;                              \
    }                                                                                              \
    EXPRESSION_FN T expression_absolute_##s(T a) {                                                 \
        return a;                                                                                  \
    }                                                                                              \
    EXPRESSION_FN T expression_sign_##s(T a) {                                                     \
        return a != 0;                                                                             \
    }                                                                                              \
    EXPRESSION_FN T expression_integer_power_##s(T a, T b) {                                       \
        return expression_raise_##s(a, b);                                                         \
    }
EXPRESSION_UNSIGNED(X)
#undef X

/* Reals. Python's // and % as NumPy has them: the quotient of what fmod leaves, snapped. */
#define X(s, S, T, F)                                                                              \
    EXPRESSION_FN T expression_copy_##s(T a) {                                                     \
        return a;                                                                                  \
    }                                                                                              \
    EXPRESSION_FN T expression_add_##s(T a, T b) {                                                 \
        return a + b;                                                                              \
    }                                                                                              \
    EXPRESSION_FN T expression_subtract_##s(T a, T b) {                                            \
        return a - b;                                                                              \
    }                                                                                              \
    EXPRESSION_FN T expression_multiply_##s(T a, T b) {                                            \
        return a * b;                                                                              \
    }                                                                                              \
    EXPRESSION_FN T expression_divide_##s(T a, T b) {                                              \
        return a / b;                                                                              \
    }                                                                                              \
    EXPRESSION_FN T expression_floor_divide_##s(T a, T b) {                                        \
        if (b == 0) {                                                                              \
            return a / b;                                                                          \
        }                                                                                          \
        T rest = F(fmod)(a, b), quotient = (a - rest) / b;                                         \
        if (rest != 0 && (b < 0) != (rest < 0)) {                                                  \
            quotient -= 1;                                                                         \
        }                                                                                          \
        if (quotient == 0) {                                                                       \
            return F(copysign)(0, a / b);                                                          \
        }                                                                                          \
        T whole = F(floor)(quotient);                                                              \
        return quotient - whole > (T)0.5 ? whole + 1 : whole;                                      \
    }                                                                                              \
    EXPRESSION_FN T expression_remainder_##s(T a, T b) {                                           \
        T rest = F(fmod)(a, b);                                                                    \
        if (b == 0) {                                                                              \
            return rest;                                                                           \
        }                                                                                          \
        if (rest == 0) {                                                                           \
            return F(copysign)(0, b);                                                              \
        }                                                                                          \
        return (b < 0) != (rest < 0) ? rest + b : rest;                                            \
    }                                                                                              \
    EXPRESSION_FN T expression_negate_##s(T a) {                                                   \
        return -a;                                                                                 \
    }                                                                                              \
    EXPRESSION_FN T expression_absolute_##s(T a) {                                                 \
        return F(fabs)(a);                                                                         \
    }                                                                                              \
    EXPRESSION_FN T expression_sign_##s(T a) {                                                     \
        return a > 0 ? (T)1 : a < 0 ? (T)-1 : a == 0 ? (T)0 : a;                                   \
    }                                                                                              \
    EXPRESSION_FN T expression_minimum_##s(T a, T b) {                                             \
        return a < b || a != a ? a : b;                                                            \
    }                                                                                              \
    EXPRESSION_FN T expression_maximum_##s(T a, T b) {                                             \
        return a > b || a != a ? a : b;                                                            \
    }                                                                                              \
    EXPRESSION_FN T expression_fmin_##s(T a, T b) {                                                \
        return a < b || b != b ? a : b;                                                            \
    }                                                                                              \
    EXPRESSION_FN T expression_fmax_##s(T a, T b) {                                                \
        return a > b || b != b ? a : b;                                                            \
    }                                                                                              \
    EXPRESSION_FN T expression_fma_##s(T a, T b, T c) {                                            \
        return F(fma)(a, b, c);                                                                    \
    }                                                                                              \
    EXPRESSION_FN T expression_copysign_##s(T a, T b) {                                            \
        return F(copysign)(a, b);                                                                  \
    }                                                                                              \
    EXPRESSION_FN T expression_sqrt_##s(T a) {                                                     \
        return F(sqrt)(a);                                                                         \
    }                                                                                              \
    EXPRESSION_FN T expression_floor_##s(T a) {                                                    \
        return F(floor)(a);                                                                        \
    }                                                                                              \
    EXPRESSION_FN T expression_ceil_##s(T a) {                                                     \
        return F(ceil)(a);                                                                         \
    }                                                                                              \
    EXPRESSION_FN T expression_trunc_##s(T a) {                                                    \
        return F(trunc)(a);                                                                        \
    }                                                                                              \
    EXPRESSION_FN T expression_rint_##s(T a) {                                                     \
        return F(rint)(a);                                                                         \
    }                                                                                              \
    EXPRESSION_FN uint8_t expression_isnan_##s(T a) {                                              \
        return a != a;                                                                             \
    }                                                                                              \
    EXPRESSION_FN uint8_t expression_isinf_##s(T a) {                                              \
        return F(fabs)(a) == (T)INFINITY;                                                          \
    }                                                                                              \
    EXPRESSION_FN uint8_t expression_isfinite_##s(T a) {                                           \
        return F(fabs)(a) < (T)INFINITY;                                                           \
    }
EXPRESSION_REALS(X)
#undef X

#define EXPRESSION_COMPARE(s, T)                                                                   \
    EXPRESSION_FN uint8_t expression_equal_##s(T a, T b) {                                         \
        return a == b;                                                                             \
    }                                                                                              \
    EXPRESSION_FN uint8_t expression_not_equal_##s(T a, T b) {                                     \
        return a != b;                                                                             \
    }                                                                                              \
    EXPRESSION_FN uint8_t expression_less_##s(T a, T b) {                                          \
        return a < b;                                                                              \
    }                                                                                              \
    EXPRESSION_FN uint8_t expression_less_equal_##s(T a, T b) {                                    \
        return a <= b;                                                                             \
    }
#define X(s, S, T, ...) EXPRESSION_COMPARE(s, T)
EXPRESSION_INTEGERS(X)
EXPRESSION_REALS(X)
#undef X

/* float16, by its bits. */
EXPRESSION_FN float expression_half_value(uint16_t half) {
    uint32_t bits = (uint32_t)(half & 0x7fff) << 13, exponent = bits & 0x0f800000u;
    uint32_t normal = bits + (112u << 23), special = bits + (224u << 23),
             tiny = bits + (113u << 23);
    uint32_t sign = (uint32_t)(half & 0x8000) << 16;
    float value;
    memcpy(&value, &tiny, sizeof value);
    value -= 0x1p-14f;
    memcpy(&tiny, &value, sizeof value);
    bits = exponent == 0x0f800000u ? special : exponent == 0 ? tiny : normal;
    bits |= sign;
    memcpy(&value, &bits, sizeof value);
    return value;
}

EXPRESSION_FN uint16_t expression_half_of(float value) {
    uint32_t bits, tiny;
    memcpy(&bits, &value, sizeof bits);
    uint32_t sign = bits >> 16 & 0x8000u;
    bits &= 0x7fffffffu;
    float size;
    memcpy(&size, &bits, sizeof size);
    size += 0.5f; /* whose unit is that of the denormal numbers */
    memcpy(&tiny, &size, sizeof tiny);
    uint32_t normal = (bits + 0xc8000fffu + (bits >> 13 & 1)) >> 13;
    uint32_t half = bits > 0x7f800000u    ? 0x7e00u
                    : bits >= 0x47800000u ? 0x7c00u
                    : bits < 0x38800000u  ? tiny - 0x3f000000u
                                          : normal;
    return (uint16_t)(half | sign);
}

/* From a double: cut to a float whose last bit says that something was cut, so that it is rounded
   once. */
EXPRESSION_FN uint16_t expression_half_of_double(double value) {
    float near = (float)value;
    uint32_t bits;
    memcpy(&bits, &near, sizeof bits);
    bool inexact = (double)near != value && value == value;
    bits -= inexact && fabs((double)near) > fabs(value);
    bits |= inexact;
    memcpy(&near, &bits, sizeof near);
    return expression_half_of(near);
}

/* Casts between the types that are computed in; the others go by these. */
#define X(s, S, T, W, bits, least, greatest)                                                       \
    EXPRESSION_FN T expression_##s##_of_f64(double a) {                                            \
        const double low = least < 0 ? (double)least : -1.0;                                       \
        const double high = 2 * (double)(greatest / 2 + 1);                                        \
        return a >= high ? (T)greatest : a > low ? (T)a : a == a ? (T)least : (T)0;                \
    }                                                                                              \
    EXPRESSION_FN T expression_##s##_of_f32(float a) {                                             \
        const float low = least < 0 ? (float)least : -1.0f;                                        \
        const float high = 2 * (float)(greatest / 2 + 1);                                          \
        return a >= high ? (T)greatest : a > low ? (T)a : a == a ? (T)least : (T)0;                \
    }
EXPRESSION_INTEGERS(X)
#undef X

#endif
