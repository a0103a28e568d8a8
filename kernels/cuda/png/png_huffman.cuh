/*
 * png_huffman.cuh: Huffman codes of a block, as compute/codecs/png/png_huffman.c makes them.
 *
 * Keys are ranked by comparing each with all. One thread joins the two queues, leaves and inner
 * nodes; depths are found by all nodes at once, each leaping to its ancestor's ancestor; a warp mends
 * lengths that came out too long.
 */
#ifndef KILN_CUDA_PNG_HUFFMAN_CUH
#define KILN_CUDA_PNG_HUFFMAN_CUH

#include "kernels/cuda/png/png_block.cuh"

#define SYMBOLS_MAX 288 /* a multiple of 32 */
#define LENGTHS     16
#define SYMBOL_BITS 9
#define NO_WEIGHT   (FULL >> SYMBOL_BITS) /* more than any */
#define LEAPS       5                     /* no tree of 2^16 tokens is deeper than 2^5 */

struct huffman {
    __align__(16) uint32_t keys[SYMBOLS_MAX]; /* count and symbol */
    uint32_t sorted[SYMBOLS_MAX + 4];         /* ascending; NO_WEIGHT behind */
    uint32_t weights[SYMBOLS_MAX + 4];        /* of inner nodes, likewise */
    uint32_t links[SYMBOLS_MAX];              /* of inner nodes: depth above, ancestor below */
    uint8_t children[SYMBOLS_MAX];            /* those that are leaves */
    uint32_t at[32];                          /* codes of every length */
    uint32_t longer[32];                      /* codes of this length or more */
    uint32_t next[32];                        /* the first code of every length */
    uint32_t used;                            /* symbols */
    uint32_t warps[SYMBOLS_MAX / 32][LENGTHS];
    uint8_t lengths[SYMBOLS_MAX];
    uint16_t codes[SYMBOLS_MAX]; /* first bit lowest */
};

/* One thread: joins the leaves, two or more, into a tree. Of equal weights the leaf is first. The
   least two of each queue are kept at hand, and what may follow them is read ahead. */
static __device__ __noinline__ void queues_join(huffman &huffman, uint32_t nodes) {
    const uint32_t *leaf = huffman.sorted, *inner = huffman.weights;
    uint32_t *link = huffman.links;
    uint32_t leaf0 = leaf[0] >> SYMBOL_BITS, leaf1 = leaf[1] >> SYMBOL_BITS;
    uint32_t inner0 = FULL, inner1 = FULL;
    for (uint32_t node = 0; node < nodes; node++) {
        uint32_t leaf2 = leaf[2] >> SYMBOL_BITS, leaf3 = leaf[3] >> SYMBOL_BITS;
        uint32_t inner2 = inner[2], inner3 = inner[3];
        bool leaves = leaf1 <= inner0, none = inner1 < leaf0;
        uint32_t weight = leaves ? leaf0 + leaf1 : none ? inner0 + inner1 : leaf0 + inner0;
        uint32_t taken = leaves ? 2 : none ? 0 : 1;
        link[0] = link[1] = 1u << 16 | node; /* one that is not taken yet is written again */
        huffman.weights[node] = weight;
        huffman.children[node] = (uint8_t)taken;
        leaf += taken;
        inner += 2 - taken;
        link += 2 - taken;
        if (leaves) {
            leaf0 = leaf2;
            leaf1 = leaf3;
        } else if (none) {
            inner0 = inner2;
            inner1 = inner3;
        } else {
            leaf0 = leaf1;
            leaf1 = leaf2;
            inner0 = inner1;
            inner1 = inner2;
        }
        const uint32_t *made = huffman.weights + node;
        inner0 = inner == made ? weight : inner0;
        inner1 = inner + 1 == made ? weight : inner1;
    }
    huffman.links[nodes - 1] = nodes - 1;
}

/* One warp: makes room for codes that were cut to the limit, and numbers the first of every
   length. */
static __device__ __forceinline__ void lengths_fit(huffman &huffman, uint32_t limit) {
    uint32_t length = threadIdx.x, room = 1u << limit;
    bool known = length > 0 && length <= limit;
    uint32_t used = warp_sum(known ? huffman.at[length] << (limit - length) : 0u);
    if (length == 0) {
        for (; used > room; used--) {
            uint32_t shorter = limit - 1;
            while (huffman.at[shorter] == 0) {
                shorter--;
            }
            huffman.at[limit]--;
            huffman.at[shorter]--;
            huffman.at[shorter + 1] += 2;
        }
    }
    __syncwarp();
    uint32_t count = known ? huffman.at[length] : 0;
    uint32_t space = known ? count << (limit - length) : 0;
    uint32_t before = warp_scan<adding>(space) - space;
    uint32_t shorter = warp_scan<adding>(count) - count;
    huffman.next[length] = known ? before >> (limit - length) : 0;
    huffman.longer[length] = known ? huffman.used - shorter : 0;
}

/* Sorts the keys of the symbols that are used. */
static __device__ __forceinline__ void keys_sort(huffman &huffman, const uint32_t *counts,
                                                 uint32_t symbols) {
    uint32_t thread = block_thread(), key = FULL;
    if (thread == 0) {
        huffman.used = 0;
    }
    if (thread < 32) {
        huffman.at[thread] = 0;
    }
    if (thread < SYMBOLS_MAX + 4) {
        huffman.sorted[thread] = huffman.weights[thread] = FULL;
    }
    __syncthreads();
    if (thread < SYMBOLS_MAX) {
        uint32_t count = thread < symbols ? counts[thread] : 0;
        key = count ? count << SYMBOL_BITS | thread : FULL;
        huffman.keys[thread] = key;
        huffman.lengths[thread] = 0;
        uint32_t warp = (uint32_t)__popc(__ballot_sync(FULL, count > 0));
        if (threadIdx.x == 0 && warp > 0) {
            atomicAdd(&huffman.used, warp);
        }
    }
    __syncthreads();
    if (key != FULL) {
        const uint4 *keys = (const uint4 *)huffman.keys;
        uint32_t rank = 0;
#pragma unroll 4
        for (uint32_t i = 0; i < (symbols + 3) / 4; i++) {
            uint4 four = keys[i];
            rank += (four.x < key) + (four.y < key) + (four.z < key) + (four.w < key);
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
    for (uint32_t reach = 1; reach < nodes && reach < 1u << LEAPS; reach *= 2) {
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
    if (thread == 0 && nodes == 0) {
        huffman.at[1] = 1;
    }
    __syncthreads();
    if (threadIdx.y == 0) {
        lengths_fit(huffman, limit);
    }
    __syncthreads();
    if (thread < huffman.used) { /* the rarest symbols have the longest codes */
        uint32_t length = 0;
#pragma unroll 4
        for (uint32_t i = 1; i <= limit; i++) {
            length += thread < huffman.longer[i];
        }
        huffman.lengths[huffman.sorted[thread] & ((1u << SYMBOL_BITS) - 1)] = (uint8_t)length;
    }
    __syncthreads();
    codes_number(huffman, limit);
}

#endif
