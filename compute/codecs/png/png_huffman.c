/*
 * png_huffman.c: prefix codes of limited length (png_huffman.h).
 *
 * The tree is built over the sorted counts with two queues, leaves and inner nodes, both ascending;
 * only the number of codes of every length is kept of it. Codes that came out too long are cut to
 * the limit, and room is made for them by lengthening the deepest of the shorter ones, which costs
 * next to nothing at the limits used here. Thread: any.
 */
#include "compute/codecs/png/png_huffman.h"

#include <stdbool.h>
#include <string.h>

#define SYMBOL_BITS 16 /* low bits of a sorted key; its count is above them */

/* Counts the leaves at every depth of the tree over two or more sorted keys, in [1, limit]. */
static void depths_count(const uint64_t *keys, unsigned leaves, unsigned limit, unsigned *at) {
    uint64_t weights[HUFFMAN_SYMBOLS_MAX];
    uint16_t parents[HUFFMAN_SYMBOLS_MAX], depths[HUFFMAN_SYMBOLS_MAX];
    uint16_t children[HUFFMAN_SYMBOLS_MAX] = {0}; /* those that are leaves */
    unsigned leaf = 0, inner = 0, nodes = leaves - 1;
    for (unsigned node = 0; node < nodes; node++) {
        weights[node] = 0;
        for (int child = 0; child < 2; child++) {
            bool take_leaf =
                leaf < leaves && (inner == node || keys[leaf] >> SYMBOL_BITS <= weights[inner]);
            if (take_leaf) {
                weights[node] += keys[leaf++] >> SYMBOL_BITS;
                children[node]++;
            } else {
                weights[node] += weights[inner];
                parents[inner++] = (uint16_t)node;
            }
        }
    }
    depths[nodes - 1] = 0;
    for (unsigned node = nodes; node-- > 0;) {
        if (node + 1 < nodes) {
            depths[node] = (uint16_t)(depths[parents[node]] + 1);
        }
        at[depths[node] < limit ? depths[node] + 1u : limit] += children[node];
    }
}

/* Cutting to the limit has overfilled the code: lengthens others until it is complete again. */
static void depths_fit(unsigned limit, unsigned *at) {
    uint32_t used = 0, room = 1u << limit;
    for (unsigned length = 1; length <= limit; length++) {
        used += at[length] << (limit - length);
    }
    for (; used > room; used--) {
        unsigned length = limit - 1;
        while (at[length] == 0) {
            length--;
        }
        at[limit]--; /* it moves under the shorter code, which becomes two */
        at[length]--;
        at[length + 1] += 2;
    }
}

/* One pass of the sort: by the byte of the counts that begins at bit `shift`. */
static void keys_pass(const uint64_t *keys, unsigned count, unsigned shift, uint64_t *sorted) {
    unsigned places[256] = {0}, next = 0;
    for (unsigned i = 0; i < count; i++) {
        places[keys[i] >> shift & 255]++;
    }
    for (unsigned digit = 0; digit < 256; digit++) {
        unsigned here = places[digit];
        places[digit] = next;
        next += here;
    }
    for (unsigned i = 0; i < count; i++) {
        sorted[places[keys[i] >> shift & 255]++] = keys[i];
    }
}

/* Sorts keys, whose symbols ascend already, by their counts; `most` is no less than any count. */
static void keys_order(uint64_t *keys, unsigned count, uint32_t most) {
    uint64_t other[HUFFMAN_SYMBOLS_MAX], *from = keys, *to = other;
    for (unsigned shift = SYMBOL_BITS; most > 0; shift += 8, most >>= 8) {
        keys_pass(from, count, shift, to);
        uint64_t *sorted = to;
        to = from;
        from = sorted;
    }
    if (from != keys) {
        memcpy(keys, from, count * sizeof *keys);
    }
}

void huffman_lengths(const uint32_t *counts, unsigned symbols, unsigned limit, uint8_t *lengths) {
    uint64_t keys[HUFFMAN_SYMBOLS_MAX];
    unsigned at[HUFFMAN_LENGTH_MAX + 1] = {0}, used = 0;
    uint32_t most = 0;
    for (unsigned symbol = 0; symbol < symbols; symbol++) {
        lengths[symbol] = 0;
        keys[used] = (uint64_t)counts[symbol] << SYMBOL_BITS | symbol; /* no branch to guess */
        used += counts[symbol] > 0;
        most |= counts[symbol];
    }
    keys_order(keys, used, most);
    if (used > 1) {
        depths_count(keys, used, limit, at);
        depths_fit(limit, at);
    } else {
        at[1] = used;
    }
    for (unsigned length = limit, key = 0; length > 0; length--) {
        for (unsigned i = 0; i < at[length]; i++) {
            lengths[keys[key++] & ((1u << SYMBOL_BITS) - 1)] = (uint8_t)length;
        }
    }
}

static uint16_t code_reverse(unsigned code, unsigned length) {
    code = (code & 0x5555) << 1 | (code >> 1 & 0x5555);
    code = (code & 0x3333) << 2 | (code >> 2 & 0x3333);
    code = (code & 0x0f0f) << 4 | (code >> 4 & 0x0f0f);
    code = (code & 0x00ff) << 8 | (code >> 8 & 0x00ff);
    return (uint16_t)(code >> (16 - length));
}

void huffman_codes(const uint8_t *lengths, unsigned symbols, uint16_t *codes) {
    unsigned next[HUFFMAN_LENGTH_MAX + 2] = {0}, at[HUFFMAN_LENGTH_MAX + 1] = {0};
    for (unsigned symbol = 0; symbol < symbols; symbol++) {
        at[lengths[symbol]]++;
    }
    at[0] = 0;
    for (unsigned length = 1; length <= HUFFMAN_LENGTH_MAX; length++) {
        next[length + 1] = (next[length] + at[length]) << 1;
    }
    for (unsigned symbol = 0; symbol < symbols; symbol++) {
        codes[symbol] = code_reverse(next[lengths[symbol]]++, lengths[symbol]); /* length 0: 0 */
    }
}
