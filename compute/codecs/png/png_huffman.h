/*
 * png_huffman.h: prefix codes of limited length out of counts.
 *
 * Threads: reentrant.
 */
#ifndef KILN_COMPUTE_CODECS_PNG_PNG_HUFFMAN_H
#define KILN_COMPUTE_CODECS_PNG_PNG_HUFFMAN_H

#include <stdint.h>

#define HUFFMAN_SYMBOLS_MAX 288
#define HUFFMAN_LENGTH_MAX  15

/** Code lengths for `symbols` counts, 0 where the count is 0, none above `limit`; 2^limit is at
    least the number of symbols used. Complete where two or more are used; a single one gets
    length 1. Depends on nothing but the counts, whose sum is below 2^32. */
void huffman_lengths(const uint32_t *counts, unsigned symbols, unsigned limit, uint8_t *lengths);

/** The codes that deflate assigns to such lengths, first bit lowest. */
void huffman_codes(const uint8_t *lengths, unsigned symbols, uint16_t *codes);

#endif
