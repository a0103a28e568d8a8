/*
 * png_bits.h: bits in the order of deflate, least significant first, and the sort both coders use.
 *
 * The writer stores eight bytes at a time: up to BITS_SLACK bytes behind the last one that counts
 * are overwritten. The caller knows beforehand how many bits will come and has seen to the room.
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_CODECS_PNG_PNG_BITS_H
#define KILN_COMPUTE_CODECS_PNG_PNG_BITS_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define BITS_SLACK 8

struct bits {
    uint8_t *at;    /* next whole byte */
    uint64_t word;  /* bits not yet stored */
    unsigned count; /* how many; below 8 between calls */
};

static inline void bits_store(struct bits *bits) {
    uint64_t word = bits->word;
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    word = __builtin_bswap64(word);
#endif
    memcpy(bits->at, &word, 8);
    bits->at += bits->count >> 3;
    bits->word >>= bits->count & 56;
    bits->count &= 7;
}

/** Appends at most 56 bits; those of `value` above `count` are zero. */
static inline void bits_put(struct bits *bits, uint64_t value, unsigned count) {
    bits->word |= value << bits->count;
    bits->count += count;
    bits_store(bits);
}

/** Fills the last byte up with zeros. */
static inline void bits_align(struct bits *bits) {
    bits->count = (bits->count + 7) & 8;
    bits_store(bits);
}

/** Sorts a few hundred keys upwards. */
static inline void keys_sort(uint64_t *keys, size_t count) {
    static const size_t gaps[] = {132, 57, 23, 10, 4, 1};
    for (size_t g = 0; g < sizeof gaps / sizeof *gaps; g++) {
        for (size_t i = gaps[g]; i < count; i++) {
            uint64_t key = keys[i];
            size_t j = i;
            for (; j >= gaps[g] && keys[j - gaps[g]] > key; j -= gaps[g]) {
                keys[j] = keys[j - gaps[g]];
            }
            keys[j] = key;
        }
    }
}

#endif
