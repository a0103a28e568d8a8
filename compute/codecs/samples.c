/*
 * samples.c: numbers of any stored type as doubles (samples.h).
 *
 * One loop a type, made by a macro and found in a table; every load goes through memcpy, since
 * nothing in a file is aligned.
 * Thread: any.
 */
#include "compute/codecs/samples.h"

#include <byteswap.h>
#include <string.h>

#define SAME(word) (word)

/* IEEE half to double, exactly: the value is rebuilt from its parts. */
static double half_value(uint16_t half) {
    uint64_t sign = (uint64_t)(half >> 15) << 63, fraction = half & 0x3ff, bits;
    unsigned exponent = half >> 10 & 0x1f;
    double value;
    if (exponent == 0) {
        value = (double)fraction * 0x1p-24;
        return sign ? -value : value;
    }
    bits = sign | (uint64_t)(exponent == 0x1f ? 0x7ff : exponent + 1008) << 52 | fraction << 42;
    memcpy(&value, &bits, sizeof value);
    return value;
}

#define READER(name, word_type, value_type, swap)                                                  \
    static void name(const uint8_t *in, size_t stride, size_t count, double *out) {                \
        for (size_t i = 0; i < count; i++) {                                                       \
            word_type word;                                                                        \
            value_type value;                                                                      \
            memcpy(&word, in + i * stride, sizeof word);                                           \
            word = swap(word);                                                                     \
            memcpy(&value, &word, sizeof value);                                                   \
            out[i] = (double)value;                                                                \
        }                                                                                          \
    }

READER(read_u8, uint8_t, uint8_t, SAME)
READER(read_i8, uint8_t, int8_t, SAME)
READER(read_u16, uint16_t, uint16_t, SAME)
READER(read_i16, uint16_t, int16_t, SAME)
READER(read_u32, uint32_t, uint32_t, SAME)
READER(read_i32, uint32_t, int32_t, SAME)
READER(read_u64, uint64_t, uint64_t, SAME)
READER(read_i64, uint64_t, int64_t, SAME)
READER(read_f32, uint32_t, float, SAME)
READER(read_f64, uint64_t, double, SAME)
READER(read_u16_swapped, uint16_t, uint16_t, bswap_16)
READER(read_i16_swapped, uint16_t, int16_t, bswap_16)
READER(read_u32_swapped, uint32_t, uint32_t, bswap_32)
READER(read_i32_swapped, uint32_t, int32_t, bswap_32)
READER(read_u64_swapped, uint64_t, uint64_t, bswap_64)
READER(read_i64_swapped, uint64_t, int64_t, bswap_64)
READER(read_f32_swapped, uint32_t, float, bswap_32)
READER(read_f64_swapped, uint64_t, double, bswap_64)

static void read_bool(const uint8_t *in, size_t stride, size_t count, double *out) {
    for (size_t i = 0; i < count; i++) {
        out[i] = in[i * stride] != 0;
    }
}

static void read_half(const uint8_t *in, size_t stride, size_t count, double *out) {
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, in + i * stride, sizeof half);
        out[i] = half_value(half);
    }
}

static void read_half_swapped(const uint8_t *in, size_t stride, size_t count, double *out) {
    for (size_t i = 0; i < count; i++) {
        uint16_t half;
        memcpy(&half, in + i * stride, sizeof half);
        out[i] = half_value(bswap_16(half));
    }
}

samples_reader *samples_reader_find(char kind, uint32_t item, bool swapped) {
    static const struct {
        char kind;
        uint32_t item;
        samples_reader *readers[2]; /* host order, swapped */
    } types[] = {
        {'b', 1, {read_bool, read_bool}},       {'u', 1, {read_u8, read_u8}},
        {'i', 1, {read_i8, read_i8}},           {'u', 2, {read_u16, read_u16_swapped}},
        {'i', 2, {read_i16, read_i16_swapped}}, {'u', 4, {read_u32, read_u32_swapped}},
        {'i', 4, {read_i32, read_i32_swapped}}, {'u', 8, {read_u64, read_u64_swapped}},
        {'i', 8, {read_i64, read_i64_swapped}}, {'f', 2, {read_half, read_half_swapped}},
        {'f', 4, {read_f32, read_f32_swapped}}, {'f', 8, {read_f64, read_f64_swapped}},
    };
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (types[i].kind == kind && types[i].item == item) {
            return types[i].readers[swapped];
        }
    }
    return NULL;
}
