/* test_png_block.c: prefix codes, and blocks of deflate read back by libdeflate. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "compute/codecs/png/png_block.h"
#include "compute/codecs/png/png_huffman.h"

#include <libdeflate.h>
#include <stdlib.h>
#include <string.h>

#define SIZE_MAX_TESTED 200000

static uint32_t noise(uint32_t *state) {
    *state = *state * 1664525u + 1013904223u;
    return *state >> 16;
}

/* Sum of 2^-length in units of 2^-limit; a complete code fills 2^limit. */
static uint32_t kraft_sum(const uint8_t *lengths, unsigned symbols, unsigned limit) {
    uint32_t sum = 0;
    for (unsigned i = 0; i < symbols; i++) {
        assert_true(lengths[i] <= limit);
        sum += lengths[i] ? 1u << (limit - lengths[i]) : 0;
    }
    return sum;
}

static uint64_t cost_sum(const uint32_t *counts, const uint8_t *lengths, unsigned symbols) {
    uint64_t sum = 0;
    for (unsigned i = 0; i < symbols; i++) {
        sum += (uint64_t)counts[i] * lengths[i];
    }
    return sum;
}

static void test_huffman_known(void **state) {
    static const uint32_t counts[] = {45, 0, 13, 12, 16, 9, 5}; /* 224 bits at best */
    static const uint8_t expected[] = {1, 0, 3, 3, 3, 4, 4};
    static const uint8_t lengths[] = {3, 3, 3, 3, 3, 2, 4, 4}; /* RFC 1951's example */
    static const uint16_t codes[] = {2, 3, 4, 5, 6, 0, 14, 15};
    uint8_t found[7];
    uint16_t reversed[8];
    (void)state;
    huffman_lengths(counts, 7, 15, found);
    assert_memory_equal(found, expected, 7);
    huffman_codes(lengths, 8, reversed);
    for (unsigned i = 0; i < 8; i++) {
        for (unsigned bit = 0; bit < lengths[i]; bit++) {
            assert_int_equal(reversed[i] >> bit & 1, codes[i] >> (lengths[i] - 1 - bit) & 1);
        }
    }
}

static void test_huffman_few(void **state) {
    uint32_t counts[HUFFMAN_SYMBOLS_MAX] = {0};
    uint8_t lengths[HUFFMAN_SYMBOLS_MAX];
    (void)state;
    huffman_lengths(counts, HUFFMAN_SYMBOLS_MAX, 15, lengths);
    assert_int_equal(kraft_sum(lengths, HUFFMAN_SYMBOLS_MAX, 15), 0);
    counts[77] = 5;
    huffman_lengths(counts, HUFFMAN_SYMBOLS_MAX, 15, lengths);
    assert_int_equal(lengths[77], 1);
    assert_int_equal(kraft_sum(lengths, HUFFMAN_SYMBOLS_MAX, 15), 1 << 14);
    counts[287] = 1000000;
    huffman_lengths(counts, HUFFMAN_SYMBOLS_MAX, 15, lengths);
    assert_int_equal(lengths[77], 1);
    assert_int_equal(lengths[287], 1);
}

/* Counts that grow like Fibonacci's numbers make the deepest trees. */
static void test_huffman_limit(void **state) {
    uint32_t counts[40] = {1, 1};
    uint8_t free_lengths[40], lengths[40];
    (void)state;
    for (unsigned i = 2; i < 40; i++) {
        counts[i] = counts[i - 1] + counts[i - 2];
    }
    huffman_lengths(counts, 16, 15, free_lengths);
    assert_int_equal(free_lengths[0], 15); /* just fits */
    assert_int_equal(kraft_sum(free_lengths, 16, 15), 1 << 15);
    for (unsigned limit = 6; limit <= 15; limit++) {
        huffman_lengths(counts, 40, limit, lengths);
        assert_int_equal(kraft_sum(lengths, 40, limit), 1 << limit);
        for (unsigned i = 1; i < 40; i++) {
            assert_true(lengths[i] <= lengths[i - 1]);
        }
    }
    huffman_lengths(counts, 16, 12, lengths);
    assert_true(cost_sum(counts, lengths, 16) * 100 <= cost_sum(counts, free_lengths, 16) * 102);
}

static void test_huffman_random(void **state) {
    uint32_t counts[HUFFMAN_SYMBOLS_MAX], seed = 3;
    uint8_t lengths[HUFFMAN_SYMBOLS_MAX];
    (void)state;
    for (int round = 0; round < 3000; round++) {
        unsigned symbols = 2 + noise(&seed) % (HUFFMAN_SYMBOLS_MAX - 1), used = 0;
        unsigned shift = noise(&seed) % 24, limit = 9 + noise(&seed) % 7;
        for (unsigned i = 0; i < symbols; i++) {
            counts[i] = (noise(&seed) << 8 | noise(&seed) >> 8) >> noise(&seed) % (shift + 1);
            used += counts[i] > 0;
        }
        huffman_lengths(counts, symbols, limit, lengths);
        if (used > 1) {
            assert_int_equal(kraft_sum(lengths, symbols, limit), 1 << limit);
        }
        for (unsigned i = 0; i < symbols; i++) {
            assert_int_equal(lengths[i] > 0, counts[i] > 0);
        }
    }
}

/* What a test hands to the coder, with the room around it that the coder reads. */
static uint8_t padded[BLOCK_BEFORE + SIZE_MAX_TESTED + BLOCK_BEHIND];
static uint8_t *const bytes = padded + BLOCK_BEFORE;
static uint8_t back[SIZE_MAX_TESTED];

/* Writes, reads back, compares; returns the size. Nothing may be written behind the slack. */
static size_t blocks_check(size_t size, bool split) {
    static struct block_scratch scratch;
    size_t bound = (size_t)blocks_bound(size) * 2, written = 0, got = 0;
    uint8_t *out = malloc(bound);
    size_t part = split ? size / 2 : 0;
    struct libdeflate_decompressor *decompressor = libdeflate_alloc_decompressor();
    assert_non_null(out);
    if (part) {
        assert_true(
            written = blocks_write(bytes, part, false, &scratch, out, (size_t)blocks_bound(part)));
    }
    size_t more = blocks_write(bytes + part, size - part, true, &scratch, out + written,
                               (size_t)blocks_bound(size - part));
    assert_true(more > 0);
    written += more;
    assert_int_equal(
        libdeflate_deflate_decompress(decompressor, out, written, back, SIZE_MAX_TESTED, &got),
        LIBDEFLATE_SUCCESS);
    assert_int_equal(got, size);
    assert_memory_equal(back, bytes, size);
    libdeflate_free_decompressor(decompressor);
    free(out);
    return written;
}

static void test_runs(void **state) {
    (void)state;
    for (size_t length = 1; length <= 600; length++) {
        memset(bytes, 7, 3 + length);
        bytes[0] = bytes[1] = 1;
        bytes[2 + length] = 9;
        blocks_check(length + 3, false);
        blocks_check(length, length > 1); /* from the first byte to the last */
    }
}

static void test_edges(void **state) {
    static const size_t sizes[] = {1,  2,     15,    16,    17,     63,     64,    65,
                                   66, 127,   128,   129,   65534,  65535,  65536, 65537,
                                   70, 65599, 65600, 65663, 131069, 131070, 131071};
    (void)state;
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        for (int kind = 0; kind < 4; kind++) {
            uint32_t seed = (uint32_t)kind;
            for (size_t k = 0; k < sizes[i]; k++) {
                bytes[k] = kind == 0   ? 0
                           : kind == 1 ? (uint8_t)noise(&seed)
                           : kind == 2 ? (uint8_t)(noise(&seed) % 64 == 0)
                                       : (uint8_t)(k & 1);
            }
            memset(bytes + sizes[i], kind == 0 ? 0 : 1, BLOCK_BEHIND); /* runs end all the same */
            size_t size = blocks_check(sizes[i], false);
            assert_true(size + BITS_SLACK <= blocks_bound(sizes[i]));
            if (sizes[i] > 1) {
                blocks_check(sizes[i], true);
            }
        }
    }
}

/* Run lengths of every size in random order, between literals of very different frequency. */
static void test_mixture(void **state) {
    uint32_t seed = 5;
    size_t at = 0;
    (void)state;
    while (at < SIZE_MAX_TESTED - 700) {
        size_t length = noise(&seed) % 8 ? noise(&seed) % 12 : noise(&seed) % 600;
        uint8_t value = (uint8_t)(noise(&seed) >> noise(&seed) % 16);
        memset(bytes + at, value, length);
        at += length;
    }
    blocks_check(at, false);
    blocks_check(at, true);
}

static void test_sizes(void **state) {
    uint32_t seed = 1;
    (void)state;
    memset(bytes, 0, SIZE_MAX_TESTED);
    assert_true(blocks_check(65535, false) < 80);
    for (size_t i = 0; i < 65535; i++) { /* two bits, for one of four three */
        bytes[i] = (uint8_t)(noise(&seed) % 4 * 50);
    }
    assert_true(blocks_check(65535, false) < 65535 * 9 / 32 + 200);
    for (size_t i = 0; i < 65535; i++) {
        bytes[i] = (uint8_t)noise(&seed);
    }
    assert_int_equal(blocks_check(65535, false), 65535 + 5); /* stored */
}

static void test_room(void **state) {
    static struct block_scratch scratch;
    uint8_t out[4096];
    uint32_t seed = 1;
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        for (int last = 0; last < 2; last++) {
            for (size_t i = 0; i < 500; i++) {
                bytes[i] = (uint8_t)(kind ? noise(&seed) : noise(&seed) % 9);
            }
            size_t size = blocks_write(bytes, 500, last, &scratch, out, sizeof out);
            assert_true(size > 0);
            for (size_t room = 0; room < sizeof out; room++) {
                memset(out, 0x5a, sizeof out);
                size_t again = blocks_write(bytes, 500, last, &scratch, out, room);
                assert_true(again == size || (again == 0 && room < size + BITS_SLACK + 2));
                for (size_t i = room; i < sizeof out; i++) {
                    assert_int_equal(out[i], 0x5a);
                }
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_huffman_known), cmocka_unit_test(test_huffman_few),
        cmocka_unit_test(test_huffman_limit), cmocka_unit_test(test_huffman_random),
        cmocka_unit_test(test_runs),          cmocka_unit_test(test_edges),
        cmocka_unit_test(test_mixture),       cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_room),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
