/*
 * types.c: promotion, casting and weak numbers (types.h).
 */
#include "compute/expression/types.h"

#include "compute/expression/expression.h"
#include "kernels/expression_op.h"

#include <math.h>
#include <string.h>

#define WHOLE_LIMIT ((__int128)1 << 100)

const char *expression_type_name(enum expression_type type) {
    static const char *const names[EXPRESSION_TYPE_COUNT] = {
#define X(symbol, name, bytes, c) #name,
        EXPRESSION_TYPES(X)
#undef X
    };
    return names[type];
}

enum type_kind type_kind(enum expression_type type) {
    uint32_t bit = 1u << type;
    return (bit & EXPRESSION_IS_SIGNED) != 0     ? KIND_SIGNED
           : (bit & EXPRESSION_IS_UNSIGNED) != 0 ? KIND_UNSIGNED
           : type == EXPRESSION_BOOL             ? KIND_BOOL
                                                 : KIND_REAL;
}

bool type_is_integer(enum expression_type type) {
    return ((1u << type) & EXPRESSION_IS_INTEGER) != 0;
}

static enum expression_type signed_of(unsigned bytes) {
    return bytes == 1   ? EXPRESSION_I8
           : bytes == 2 ? EXPRESSION_I16
           : bytes == 4 ? EXPRESSION_I32
                        : EXPRESSION_I64;
}

enum expression_type type_real(enum expression_type type) {
    unsigned bytes = expression_type_bytes(type);
    if (type_kind(type) == KIND_REAL) {
        return type;
    }
    return bytes == 1 ? EXPRESSION_F16 : bytes == 2 ? EXPRESSION_F32 : EXPRESSION_F64;
}

enum expression_type type_promote(enum expression_type a, enum expression_type b) {
    enum type_kind one = type_kind(a), other = type_kind(b);
    unsigned bytes = expression_type_bytes(a), others = expression_type_bytes(b);
    if (one == KIND_BOOL || other == KIND_BOOL) {
        return one == KIND_BOOL ? b : a;
    }
    if (one == other) {
        return bytes > others ? a : b;
    }
    if (one == KIND_REAL || other == KIND_REAL) {
        a = type_real(a);
        b = type_real(b);
        return expression_type_bytes(a) > expression_type_bytes(b) ? a : b;
    }
    unsigned with_sign = one == KIND_SIGNED ? bytes : others;
    unsigned without = one == KIND_SIGNED ? others : bytes;
    if (with_sign > without) {
        return signed_of(with_sign);
    }
    return without == 8 ? EXPRESSION_F64 : signed_of(2 * without);
}

bool type_same_kind(enum expression_type from, enum expression_type to) {
    return type_kind(from) <= type_kind(to);
}

bool type_holds(enum expression_type type, __int128 whole) {
    int bits = (int)expression_type_bytes(type) * 8;
    switch (type_kind(type)) {
    case KIND_BOOL:
        return whole == 0 || whole == 1;
    case KIND_UNSIGNED:
        return whole >= 0 && whole < (__int128)1 << bits;
    case KIND_SIGNED:
        return whole >= -((__int128)1 << (bits - 1)) && whole < (__int128)1 << (bits - 1);
    default:
        return true;
    }
}

const char *type_range(enum expression_type type) {
    static const char *const ranges[EXPRESSION_TYPE_COUNT] = {
        [EXPRESSION_BOOL] = "0 … 1",
        [EXPRESSION_I8] = "-128 … 127",
        [EXPRESSION_I16] = "-32768 … 32767",
        [EXPRESSION_I32] = "-2147483648 … 2147483647",
        [EXPRESSION_I64] = "-9223372036854775808 … 9223372036854775807",
        [EXPRESSION_U8] = "0 … 255",
        [EXPRESSION_U16] = "0 … 65535",
        [EXPRESSION_U32] = "0 … 4294967295",
        [EXPRESSION_U64] = "0 … 18446744073709551615",
    };
    return ranges[type];
}

double weak_real(struct weak number) {
    return number.kind == WEAK_REAL ? number.real : (double)number.whole;
}

bool weak_type(struct weak number, enum expression_type *type) {
    *type = number.kind == WEAK_BOOL                   ? EXPRESSION_BOOL
            : number.kind == WEAK_REAL                 ? EXPRESSION_F64
            : type_holds(EXPRESSION_I64, number.whole) ? EXPRESSION_I64
                                                       : EXPRESSION_U64;
    return type_holds(*type, number.whole) || number.kind == WEAK_REAL;
}

uint64_t weak_bits(struct weak number, enum expression_type type) {
    uint64_t bits = 0;
    double real = weak_real(number);
    float narrow = (float)real;
    uint16_t half = expression_half_of_double(real);
    switch (type) {
    case EXPRESSION_F64:
        memcpy(&bits, &real, sizeof real);
        return bits;
    case EXPRESSION_F32:
        memcpy(&bits, &narrow, sizeof narrow);
        return bits;
    case EXPRESSION_F16:
        memcpy(&bits, &half, sizeof half);
        return bits;
    default:
        bits = (uint64_t)number.whole;
        return expression_type_bytes(type) == 8
                   ? bits
                   : bits & (((uint64_t)1 << 8 * expression_type_bytes(type)) - 1);
    }
}

static __int128 whole_floor(__int128 a, __int128 b) {
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

/* a ** n for n ≥ 0. */
static const char *whole_power(__int128 a, __int128 n, __int128 *result) {
    __int128 power = 1;
    for (__int128 i = 0; i < n && power != 0 && !(a == 1) && !(a == -1 && i >= 2 + n % 2); i++) {
        if (__builtin_mul_overflow(power, a, &power) || power >= WHOLE_LIMIT ||
            power <= -WHOLE_LIMIT) {
            return "the power of two whole numbers is too large";
        }
    }
    *result = power;
    return NULL;
}

static const char *whole_binary(int op, __int128 a, __int128 b, __int128 *result) {
    bool over = false;
    bool shifts = op == EXPRESSION_SHIFT_LEFT || op == EXPRESSION_SHIFT_RIGHT;
    if ((op == EXPRESSION_FLOOR_DIVIDE || op == EXPRESSION_REMAINDER) && b == 0) {
        return "a whole number is divided by 0";
    }
    if (shifts && b < 0) {
        return "a shift is by 0 or more";
    }
    switch (op) {
    case EXPRESSION_ADD:
        over = __builtin_add_overflow(a, b, result);
        break;
    case EXPRESSION_SUBTRACT:
        over = __builtin_sub_overflow(a, b, result);
        break;
    case EXPRESSION_MULTIPLY:
        over = __builtin_mul_overflow(a, b, result);
        break;
    case EXPRESSION_FLOOR_DIVIDE:
        *result = whole_floor(a, b);
        break;
    case EXPRESSION_REMAINDER:
        *result = a - b * whole_floor(a, b);
        break;
    case EXPRESSION_AND:
        *result = a & b;
        break;
    case EXPRESSION_OR:
        *result = a | b;
        break;
    case EXPRESSION_XOR:
        *result = a ^ b;
        break;
    case EXPRESSION_SHIFT_RIGHT:
        *result = a >> (b > 126 ? 126 : (int)b);
        break;
    case EXPRESSION_SHIFT_LEFT:
        over = a != 0 && (b > 100 || a >= WHOLE_LIMIT >> b || a <= -(WHOLE_LIMIT >> b));
        *result = over || a == 0 ? 0 : a * ((__int128)1 << b);
        break;
    default:
        return whole_power(a, b, result);
    }
    return over || *result >= WHOLE_LIMIT || *result <= -WHOLE_LIMIT
               ? "a result of whole numbers is too large"
               : NULL;
}

static const char *real_binary(int op, double a, double b, double *result) {
    switch (op) {
    case EXPRESSION_ADD:
        *result = a + b;
        return NULL;
    case EXPRESSION_SUBTRACT:
        *result = a - b;
        return NULL;
    case EXPRESSION_MULTIPLY:
        *result = a * b;
        return NULL;
    case EXPRESSION_DIVIDE:
    case EXPRESSION_FLOOR_DIVIDE:
    case EXPRESSION_REMAINDER:
        if (b == 0) {
            return "a number is divided by 0";
        }
        *result = op == EXPRESSION_DIVIDE         ? a / b
                  : op == EXPRESSION_FLOOR_DIVIDE ? expression_floor_divide_f64(a, b)
                                                  : expression_remainder_f64(a, b);
        return NULL;
    case EXPRESSION_POWER:
        *result = pow(a, b);
        return isnan(*result) && !isnan(a) && !isnan(b) ? "the power is a complex number" : NULL;
    default:
        return "bits of a number with a point cannot be taken";
    }
}

const char *weak_binary(int op, struct weak a, struct weak b, struct weak *result) {
    bool bits = op == EXPRESSION_AND || op == EXPRESSION_OR || op == EXPRESSION_XOR;
    bool real = a.kind == WEAK_REAL || b.kind == WEAK_REAL || op == EXPRESSION_DIVIDE ||
                (op == EXPRESSION_POWER && b.whole < 0);
    bool both = a.kind == WEAK_BOOL && b.kind == WEAK_BOOL;
    *result = (struct weak){.kind = real ? WEAK_REAL : bits && both ? WEAK_BOOL : WEAK_WHOLE};
    return real ? real_binary(op, weak_real(a), weak_real(b), &result->real)
                : whole_binary(op, a.whole, b.whole, &result->whole);
}
