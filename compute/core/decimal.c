/*
 * decimal.c: doubles to decimal text and back (decimal.h).
 *
 * Both directions multiply by a power of ten held as 128 bits, rounded up:
 *     10^e = (powers[e] - d) * 2^(floor(log2(10^e)) - 127),  0 <= d < 1, d = 0 for 0 <= e <= 55.
 * The table is computed on first use with exact big integers: 5^e by repeated multiplication, and
 * floor(2^N / 5^e) by repeated division, which is exact because floor(floor(x/5)/5) = floor(x/25).
 * Thread: any.
 */
#include "compute/core/decimal.h"

#include <assert.h>
#include <locale.h>
#include <math.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define POWER_MIN (-342) /* the smallest power that a 64-bit integer needs to reach a double */
#define POWER_MAX 324    /* the largest that printing the smallest subnormal needs */
#define EXACT_MAX 55     /* 5^55 < 2^128 */
#define LIMBS     16     /* 1024 bits: 2^1023 / 5^342 still has 228 significant bits */

typedef unsigned __int128 uint128;

struct power {
    uint64_t high, low;
};

static struct power powers[POWER_MAX - POWER_MIN + 1];
static locale_t plain_locale;
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The top 128 bits of a big integer (least limb first), rounded up. */
static struct power power_top(const uint64_t *limbs, bool inexact) {
    int top = LIMBS - 1;
    while (limbs[top] == 0) {
        top--;
    }
    uint64_t word[3] = {limbs[top], top > 0 ? limbs[top - 1] : 0, top > 1 ? limbs[top - 2] : 0};
    int shift = __builtin_clzll(word[0]);
    uint64_t dropped = word[2];
    if (shift > 0) {
        word[0] = word[0] << shift | word[1] >> (64 - shift);
        word[1] = word[1] << shift | word[2] >> (64 - shift);
        dropped = word[2] << shift;
    }
    for (int i = top - 3; i >= 0; i--) {
        dropped |= limbs[i];
    }
    uint128 value = (uint128)word[0] << 64 | word[1];
    value += inexact || dropped != 0;
    return (struct power){(uint64_t)(value >> 64), (uint64_t)value};
}

static void tables_make(void) {
    uint64_t limbs[LIMBS] = {1};
    for (int e = 0; e <= POWER_MAX; e++) {
        powers[e - POWER_MIN] = power_top(limbs, false);
        uint64_t carry = 0;
        for (int i = 0; i < LIMBS; i++) {
            uint128 product = (uint128)limbs[i] * 5 + carry;
            limbs[i] = (uint64_t)product;
            carry = (uint64_t)(product >> 64);
        }
    }
    memset(limbs, 0, sizeof limbs);
    limbs[LIMBS - 1] = UINT64_C(1) << 63;
    for (int e = -1; e >= POWER_MIN; e--) {
        uint64_t rest = 0;
        for (int i = LIMBS - 1; i >= 0; i--) {
            uint128 part = (uint128)rest << 64 | limbs[i];
            limbs[i] = (uint64_t)(part / 5);
            rest = (uint64_t)(part % 5);
        }
        powers[e - POWER_MIN] = power_top(limbs, true);
    }
    plain_locale = newlocale(LC_ALL_MASK, "C", (locale_t)0);
}

static int floor_log2_pow10(int e) {
    return (e * 1741647) >> 19; /* exact for |e| <= 1233 */
}

/* value * power / 2^128 with the lowest bit telling whether anything was dropped. The rounded-up
   power adds less than one unit of the second limb, hence "> 1". */
static uint64_t round_to_odd(struct power power, uint64_t value) {
    uint128 low = (uint128)power.low * value;
    uint128 high = (uint128)power.high * value + (uint64_t)(low >> 64);
    return (uint64_t)(high >> 64) | ((uint64_t)high > 1);
}

/* The shortest decimal *digits * 10^return inside the rounding interval of c * 2^q. `closer`: c is
   a power of two, so that the lower neighbour is at half the distance. */
static int shortest(uint64_t c, int q, bool closer, uint64_t *digits) {
    bool odd = c & 1;
    int k = (q * 1262611 - (closer ? 524031 : 0)) >> 22; /* floor(log10(2^q or 3/4 2^q)) */
    int h = q + floor_log2_pow10(-k) + 1;
    struct power power = powers[-k - POWER_MIN];
    uint64_t lower = round_to_odd(power, (4 * c - 2 + closer) << h) + odd;
    uint64_t middle = round_to_odd(power, (4 * c) << h);
    uint64_t upper = round_to_odd(power, (4 * c + 2) << h) - odd;

    uint64_t s = middle / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        bool down = lower <= 40 * tens, up = 40 * tens + 40 <= upper;
        if (down != up) {
            *digits = tens + up;
            return k + 1;
        }
    }
    bool down = lower <= 4 * s, up = 4 * s + 4 <= upper;
    if (down == up) {
        up = middle > 4 * s + 2 || (middle == 4 * s + 2 && (s & 1));
    }
    *digits = s + up;
    return k;
}

static size_t print_digits(uint64_t value, char *out) {
    char reversed[20];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value > 0);
    for (size_t i = 0; i < count; i++) {
        out[i] = reversed[count - 1 - i];
    }
    return count;
}

/* Lays out digits * 10^exponent by JavaScript's rules: plain from 1e-6 to below 1e21. */
static size_t print_decimal(uint64_t digits, int exponent, char *out) {
    while (digits % 10 == 0) {
        digits /= 10;
        exponent++;
    }
    char text[20];
    size_t count = print_digits(digits, text), at = 0;
    int point = (int)count + exponent; /* digits before the point */
    if (point > 21 || point < -5) {
        out[at++] = text[0];
        if (count > 1) {
            out[at++] = '.';
        }
        memcpy(out + at, text + 1, count - 1);
        at += count - 1;
        out[at++] = 'e';
        if (point < 1) {
            out[at++] = '-';
        }
        return at + print_digits((uint64_t)abs(point - 1), out + at);
    }
    if (point <= 0) {
        memcpy(out, "0.00000", 7);
        at = (size_t)(2 - point);
        memcpy(out + at, text, count);
        return at + count;
    }
    size_t whole = (size_t)point < count ? (size_t)point : count;
    memcpy(out, text, whole);
    at = whole;
    while (at < (size_t)point) {
        out[at++] = '0';
    }
    if (whole < count) {
        out[at++] = '.';
        memcpy(out + at, text + whole, count - whole);
        at += count - whole;
    }
    return at;
}

/* Splits off sign, zero and small integers, which are their own shortest decimals; `bits` is the
   significand's width without the hidden bit, `fraction` and `biased` the number's parts. */
static size_t print_parts(bool negative, double magnitude, uint64_t fraction, int biased, int bits,
                          int bias, char *out) {
    size_t at = 0;
    if (negative) {
        out[at++] = '-';
    }
    if (magnitude < (double)(UINT64_C(1) << bits) && magnitude == (double)(uint64_t)magnitude) {
        at += print_digits((uint64_t)magnitude, out + at);
    } else {
        pthread_once(&once, tables_make);
        uint64_t c = biased ? fraction | UINT64_C(1) << bits : fraction;
        uint64_t digits;
        int exponent =
            shortest(c, (biased ? biased : 1) - bias - bits, fraction == 0 && biased > 1, &digits);
        at += print_decimal(digits, exponent, out + at);
    }
    out[at] = '\0';
    return at;
}

size_t decimal_print(double value, char out[DECIMAL_MAX]) {
    assert(isfinite(value));
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return print_parts(bits >> 63, fabs(value), bits & ((UINT64_C(1) << 52) - 1),
                       (int)(bits >> 52 & 0x7ff), 52, 1023, out);
}

size_t decimal_print_float(float value, char out[DECIMAL_MAX]) {
    assert(isfinite(value));
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return print_parts(bits >> 31, fabs((double)value), bits & ((1u << 23) - 1),
                       (int)(bits >> 23 & 0xff), 23, 127, out);
}

/* ---- reading ---- */

/* A number as scanned: digits * 10^exponent, with `more` where nonzero digits were left out. */
struct scan {
    bool negative, more;
    uint64_t digits; /* the first 19 significant ones */
    int64_t exponent;
    size_t length;        /* of the text, 0 if it is no number */
    const char *mantissa; /* its digits and point */
    size_t mantissa_length;
    int64_t written; /* exponent as written, clamped */
};

/* The written exponent after the mantissa, if there is one; beyond ±10^9 it is clamped. */
static size_t scan_exponent(const char *text, size_t size, int64_t *exponent) {
    size_t at = 1;
    bool negative = false;
    *exponent = 0;
    if (size < 2 || (text[0] | 0x20) != 'e') {
        return 0;
    }
    if (text[at] == '-' || text[at] == '+') {
        negative = text[at++] == '-';
    }
    if (at >= size || text[at] < '0' || text[at] > '9') {
        return 0;
    }
    for (; at < size && text[at] >= '0' && text[at] <= '9'; at++) {
        if (*exponent < 1000000000) {
            *exponent = *exponent * 10 + (text[at] - '0');
        }
    }
    if (negative) {
        *exponent = -*exponent;
    }
    return at;
}

static void scan_number(const char *text, size_t size, struct scan *scan) {
    size_t at = 0, digits = 0;
    int significant = 0;
    bool point = false;
    *scan = (struct scan){0};
    if (at < size && (text[at] == '-' || text[at] == '+')) {
        scan->negative = text[at++] == '-';
    }
    scan->mantissa = text + at;
    for (; at < size; at++) {
        unsigned digit = (unsigned)(unsigned char)text[at] - '0';
        if (digit <= 9) {
            digits++;
            if (significant < 19) {
                scan->digits = scan->digits * 10 + digit;
                significant += scan->digits != 0;
                scan->exponent -= point;
            } else {
                scan->more |= digit != 0;
                scan->exponent += !point;
            }
        } else if (text[at] == '.' && !point) {
            point = true;
        } else {
            break;
        }
    }
    if (digits == 0) {
        return;
    }
    scan->mantissa_length = (size_t)(text + at - scan->mantissa);
    scan->length = at + scan_exponent(text + at, size - at, &scan->written);
    scan->exponent += scan->written;
}

/* Rounds high + (low, sticky)/2^64... to the nearest even after dropping `shift` bits of high. */
static uint64_t round_even(uint64_t high, bool sticky, int shift) {
    uint64_t kept = high >> shift, half = UINT64_C(1) << (shift - 1);
    uint64_t rest = high & (2 * half - 1);
    return kept + (rest > half || (rest == half && (sticky || (kept & 1))));
}

/* digits * 10^exponent where the rounding is certain. The true product lies in (P - 2^64, P] of
   the 192-bit product P (is P for exact powers), so both ends must round alike. */
static bool scale(uint64_t digits, int64_t exponent, double *value) {
    if (exponent < POWER_MIN || exponent > 308) {
        return false;
    }
    int zeros = __builtin_clzll(digits);
    struct power power = powers[exponent - POWER_MIN];
    uint128 low = (uint128)power.low * (digits << zeros);
    uint128 top = (uint128)power.high * (digits << zeros) + (uint64_t)(low >> 64);
    uint64_t high = (uint64_t)(top >> 64);
    int up = (int)(high >> 63);
    int biased = 10 + up + 1 + floor_log2_pow10((int)exponent) - zeros + 52 + 1023;
    int shift = 10 + up;
    if (biased < 1) { /* subnormal: the exponent stays, bits go */
        shift += 1 - biased;
        biased = 0;
    }
    if (shift > 63 || biased > 2045) {
        return false;
    }
    bool exact = exponent >= 0 && exponent <= EXACT_MAX;
    uint64_t above = round_even(high, (uint64_t)top != 0 || (uint64_t)low != 0, shift);
    if (!exact) {
        uint128 under = top - 1;
        if (round_even((uint64_t)(under >> 64), true, shift) != above) {
            return false;
        }
    }
    /* A carry out of the significand goes into the exponent, which is then right again. */
    uint64_t bits = biased ? ((uint64_t)(biased - 1) << 52) + above : above;
    memcpy(value, &bits, sizeof bits);
    return true;
}

/* The exact way: at most 800 significant digits decide (768 are enough for any midpoint), a
   nonzero rest is told by one more digit. */
static double read_slowly(const struct scan *scan) {
    enum { KEPT = 800 };
    char text[KEPT + 40];
    size_t at = 0;
    bool point = false, more = false;
    int64_t exponent = scan->written;
    for (size_t i = 0; i < scan->mantissa_length; i++) {
        char c = scan->mantissa[i];
        if (c == '.') {
            point = true;
        } else if (at < KEPT) {
            if (at > 0 || c != '0') {
                text[at++] = c;
            }
            exponent -= point;
        } else {
            more |= c != '0';
            exponent += !point;
        }
    }
    if (at == 0) {
        return 0.0;
    }
    text[at++] = more ? '1' : '0';
    exponent--;
    if (exponent > 2000) {
        return INFINITY;
    }
    if (exponent < -3000) {
        return 0.0;
    }
    text[at++] = 'e';
    if (exponent < 0) {
        text[at++] = '-';
    }
    at += print_digits((uint64_t)llabs(exponent), text + at);
    text[at] = '\0';
    return plain_locale != NULL ? strtod_l(text, NULL, plain_locale) : strtod(text, NULL);
}

static double read_magnitude(const struct scan *scan) {
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                   1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    double value, above;
    if (scan->digits == 0) {
        return 0.0;
    }
    if (!scan->more && scan->digits <= UINT64_C(1) << 53) {
        if (scan->exponent >= 0 && scan->exponent <= 22) {
            return (double)scan->digits * exact[scan->exponent];
        }
        if (scan->exponent < 0 && scan->exponent >= -22) {
            return (double)scan->digits / exact[-scan->exponent];
        }
    }
    pthread_once(&once, tables_make);
    if (scale(scan->digits, scan->exponent, &value)) {
        if (!scan->more) {
            return value;
        }
        if (scale(scan->digits + 1, scan->exponent, &above) && above == value) {
            return value;
        }
    }
    return read_slowly(scan);
}

size_t decimal_read(const char *text, size_t size, double *value) {
    struct scan scan;
    scan_number(text, size, &scan);
    if (scan.length > 0) {
        double magnitude = read_magnitude(&scan);
        *value = scan.negative ? -magnitude : magnitude;
    }
    return scan.length;
}
