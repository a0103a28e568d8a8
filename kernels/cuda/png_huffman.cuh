/*
 * png_huffman.cuh: Huffman codes of a block, as compute/codecs/png_huffman.c makes them.
 *
 * Keys are ranked by comparing each with all. One thread joins the two queues, leaves and inner
 * nodes; depths are found by all nodes at once, each leaping to its ancestor's ancestor; lengths
 * that came out too long are mended by one thread again.
 */
#ifndef KILN_CUDA_PNG_HUFFMAN_CUH
#define KILN_CUDA_PNG_HUFFMAN_CUH

#include "kernels/cuda/png_block.cuh"

#define SYMBOLS_MAX 288 /* a multiple of 32 */
#define LENGTHS     16
#define SYMBOL_BITS 9
#define NO_WEIGHT   (FULL >> SYMBOL_BITS) /* more than any */
#define LEAPS       5                     /* no tree of 2^16 tokens is deeper than 2^5 */

struct huffman {
    uint32_t keys[SYMBOLS_MAX];       /* count and symbol */
    uint32_t sorted[SYMBOLS_MAX + 2]; /* ascending, NO_WEIGHT behind */
    uint32_t weights[SYMBOLS_MAX + 2];
    uint32_t links[SYMBOLS_MAX]; /* of inner nodes: depth so far above, ancestor below */
    uint8_t children[SYMBOLS_MAX]; /* those that are leaves */
    uint32_t at[LENGTHS];          /* codes of every length */
    uint32_t next[LENGTHS];        /* the first of them */
    uint32_t used;                 /* symbols */
    uint32_t warps[SYMBOLS_MAX / 32][LENGTHS];
    uint8_t lengths[SYMBOLS_MAX];
    uint16_t codes[SYMBOLS_MAX]; /* first bit lowest */
};

/* One thread: joins the leaves, two or more, into a tree. Of equal weights the leaf is first. */
static __device__ void queues_join(huffman &huffman, uint32_t nodes) {
    uint32_t leaf = 0, inner = 0;
    for (uint32_t node = 0; node < nodes; node++) {
        uint32_t leaf0 = huffman.sorted[leaf] >> SYMBOL_BITS;
        uint32_t leaf1 = huffman.sorted[leaf + 1] >> SYMBOL_BITS;
        uint32_t inner0 = huffman.weights[inner], inner1 = huffman.weights[inner + 1];
        uint32_t leaves = leaf1 <= inner0 ? 2 : inner1 < leaf0 ? 0 : 1;
        huffman.weights[node] = leaves == 2   ? leaf0 + leaf1
                                : leaves == 1 ? leaf0 + inner0
                                              : inner0 + inner1;
        huffman.children[node] = (uint8_t)leaves;
        for (uint32_t i = leaves; i < 2; i++) {
            huffman.links[inner++] = 1u << 16 | node;
        }
        leaf += leaves;
    }
    huffman.links[nodes - 1] = nodes - 1;
}

/* One thread: makes room for codes that were cut to the limit, and numbers the first of every
   length. */
static __device__ void lengths_fit(huffman &huffman, uint32_t limit) {
    uint32_t used = 0, room = 1u << limit, code = 0;
    for (uint32_t length = 1; length <= limit; length++) {
        used += huffman.at[length] << (limit - length);
    }
    for (; used > room; used--) {
        uint32_t length = limit - 1;
        while (huffman.at[length] == 0) {
            length--;
        }
        huffman.at[limit]--;
        huffman.at[length]--;
        huffman.at[length + 1] += 2;
    }
    for (uint32_t length = 1; length <= limit; length++) {
        huffman.next[length] = code;
        code = (code + huffman.at[length]) << 1;
    }
}

/* Sorts the keys of the symbols that are used. */
static __device__ __forceinline__ void keys_sort(huffman &huffman, const uint32_t *counts,
                                                 uint32_t symbols) {
    uint32_t thread = block_thread(), key = FULL;
    if (thread == 0) {
        huffman.used = 0;
    }
    if (thread < LENGTHS) {
        huffman.at[thread] = 0;
    }
    if (thread < SYMBOLS_MAX + 2) {
        huffman.sorted[thread] = huffman.weights[thread] = FULL;
    }
    __syncthreads();
    if (thread < SYMBOLS_MAX) {
        uint32_t count = thread < symbols ? counts[thread] : 0;
        key = count ? count << SYMBOL_BITS | thread : FULL;
        huffman.keys[thread] = key;
        huffman.lengths[thread] = 0;
        uint32_t warp = (uint32_t)__popc(__ballot_sync(FULL, count > 0));
        if (threadIdx.x == 0) {
            atomicAdd(&huffman.used, warp);
        }
    }
    __syncthreads();
    if (key != FULL) {
        uint32_t rank = 0;
#pragma unroll 8
        for (uint32_t i = 0; i < SYMBOLS_MAX; i++) {
            rank += huffman.keys[i] < key;
        }
        huffman.sorted[rank] = key;
    }
    __syncthreads();
}

/* Counts the leaves at every depth. */
static __device__ __forceinline__ void depths_count(huffman &huffman, uint32_t nodes,
                                                    uint32_t limit) {
    uint32_t thread = block_thread();
    bool mine = thread < nodes;
    uint32_t link = mine ? huffman.links[thread] : 0;
    for (int i = 0; i < LEAPS; i++) {
        uint32_t other = mine ? huffman.links[link & 0xffff] : 0;
        __syncthreads();
        link = (other & 0xffff) | ((link >> 16) + (other >> 16)) << 16;
        if (mine) {
            huffman.links[thread] = link;
        }
        __syncthreads();
    }
    if (mine && huffman.children[thread] > 0) {
        uint32_t depth = (link >> 16) + 1;
        atomicAdd(huffman.at + (depth < limit ? depth : limit), (uint32_t)huffman.children[thread]);
    }
}

/* The code of each symbol: the first of its length and one for each symbol before with the same. */
static __device__ __forceinline__ void codes_number(huffman &huffman, uint32_t limit) {
    uint32_t thread = block_thread(), length = 0, before = 0;
    if (thread < SYMBOLS_MAX) {
        length = huffman.lengths[thread];
        for (uint32_t i = 1; i <= limit; i++) {
            uint32_t same = __ballot_sync(FULL, length == i);
            before = length == i ? (uint32_t)__popc(same & ((1u << threadIdx.x) - 1)) : before;
            if (threadIdx.x == 0) {
                huffman.warps[threadIdx.y][i] = (uint32_t)__popc(same);
            }
        }
    }
    __syncthreads();
    if (thread < SYMBOLS_MAX) {
        uint32_t code = before;
        for (uint32_t i = 0; length && i < threadIdx.y; i++) {
            code += huffman.warps[i][length];
        }
        huffman.codes[thread] =
            length ? (uint16_t)(__brev(code + huffman.next[length]) >> (32 - length)) : 0;
    }
    __syncthreads();
}

/* All threads: lengths and codes for `symbols` counts, at least one of which is not 0. */
static __device__ __noinline__ void huffman_make(huffman &huffman, const uint32_t *counts,
                                                 uint32_t symbols, uint32_t limit) {
    uint32_t thread = block_thread();
    keys_sort(huffman, counts, symbols);
    uint32_t nodes = huffman.used - 1;
    if (thread == 0 && nodes > 0) {
        queues_join(huffman, nodes);
    }
    __syncthreads();
    depths_count(huffman, nodes, limit);
    __syncthreads();
    if (thread == 0) {
        if (nodes == 0) {
            huffman.at[1] = 1;
        }
        lengths_fit(huffman, limit);
    }
    __syncthreads();
    if (thread < huffman.used) { /* the rarest symbols have the longest codes */
        uint32_t length = limit, longer = huffman.at[length];
        while (thread >= longer) {
            longer += huffman.at[--length];
        }
        huffman.lengths[huffman.sorted[thread] & ((1u << SYMBOL_BITS) - 1)] = (uint8_t)length;
    }
    __syncthreads();
    codes_number(huffman, limit);
}

#endif
