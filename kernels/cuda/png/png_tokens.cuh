/*
 * png_tokens.cuh: literals and runs of a piece, each thread those that begin in its 32 bytes.
 *
 * A bit a byte says whether it repeats the one before. A stretch of at least six is a run, from its
 * first to its last bit, and is cut into lengths of 258 from the front; a rest of one or two is
 * literals. So what is written for a byte depends on its place in its run alone, and no thread waits
 * for another: it has to know where the run began that reaches into its bytes, which is a scan, and
 * how far one reaches out of them, at most 258 bytes.
 */
#ifndef KILN_CUDA_PNG_TOKENS_CUH
#define KILN_CUDA_PNG_TOKENS_CUH

#include "kernels/cuda/png/png_filter.cuh"

#define RUN_MIN    3
#define RUN_MAX    258
#define RUN_WORDS  9 /* of 32 bytes, that a length may reach */
#define MASK_WORDS (PNG_PIECE / GROUP + RUN_WORDS + 1)
#define COPIES     8 /* of the counts: lanes that meet at a symbol add to different ones */

/* Tokens that begin in a thread's bytes, a bit each. */
struct tokens {
    uint32_t all;
    uint32_t runs;  /* those that are runs */
    uint32_t run;   /* bytes that belong to runs */
    uint32_t reach; /* bytes behind ours that the run of the last one goes on for, 258 or more: any */
};

/* Bit i: byte i of a group repeats the one before it. */
static __device__ __forceinline__ uint32_t repeats_find(const uint8_t *groups, uint32_t size) {
    uint32_t first = GROUP * block_thread(), found = 0;
    const uint32_t *word = (const uint32_t *)(groups + GROUP_PITCH * block_thread());
    uint32_t before = first > 0 ? groups[group_address(first - 1)] << 24 : 0;
#pragma unroll
    for (int i = 0; i < GROUP / 4; i++) {
        uint32_t here = word[i], other = here ^ (here << 8 | before >> 24);
        uint32_t equal = ~((other & 0x7f7f7f7fu) + 0x7f7f7f7fu | other) & 0x80808080u;
        found |= ((equal >> 7) * 0x10204080u >> 28) << 4 * i;
        before = here;
    }
    found = first == 0 ? found & ~1u : found;
    uint32_t left = size > first ? size - first : 0;
    return left >= GROUP ? found : found & ((1u << left) - 1);
}

/* Bits that begin six set ones. */
static __device__ __forceinline__ uint32_t sixes_find(uint32_t low, uint32_t high) {
    uint64_t bits = low | (uint64_t)high << 32;
    uint64_t two = bits & bits >> 1, four = two & two >> 2;
    return (uint32_t)(four & two >> 4);
}

/* Bits of ours that belong to runs, behind the highest bit of those before. */
static __device__ __forceinline__ uint64_t runs_find(uint32_t before, uint32_t mine,
                                                     uint32_t behind) {
    uint64_t bits = sixes_find(before, mine) | (uint64_t)sixes_find(mine, behind) << 32;
    uint64_t two = bits | bits << 1, four = two | two << 2;
    return (four | two << 4) >> 31;
}

/* Set bits of `bits` from `at` on. */
static __device__ __forceinline__ uint32_t ones_count(uint32_t bits, uint32_t at) {
    uint32_t others = ~(bits >> at);
    return others ? (uint32_t)__ffs((int)others) - 1 : 32;
}

/* How far the run goes on that reaches the end of our bytes. `runs` are the masks of all threads,
   RUN_WORDS zeros behind them. */
static __device__ __forceinline__ uint32_t reach_find(const uint32_t *runs) {
    uint32_t reach = 0, more = 32;
    for (int i = 1; i <= RUN_WORDS && more == 32; i++) {
        more = ones_count(runs[block_thread() + i], 0);
        reach += more;
    }
    return reach;
}

/* Bytes of the run's rest that begins at bit `at`, at most RUN_MAX. */
static __device__ __forceinline__ uint32_t run_length(const tokens &tokens, uint32_t at) {
    uint32_t length = ones_count(tokens.run, at);
    length = at + length == GROUP ? length + tokens.reach : length;
    return length < RUN_MAX ? length : RUN_MAX;
}

/* Tokens of a run that began `before` ≥ 1 bytes ahead of ours. */
static __device__ __forceinline__ void rest_add(tokens &tokens, uint32_t before) {
    uint32_t into = before % RUN_MAX, at = into ? RUN_MAX - into : 0;
    uint32_t here = ones_count(tokens.run, 0);
    if (into == 1 && here == 1) {
        tokens.all |= 1; /* the second literal of a rest of two */
    }
    if (at >= here) {
        return;
    }
    uint32_t length = run_length(tokens, at);
    tokens.all |= 1u << at;
    if (length >= RUN_MIN) {
        tokens.runs |= 1u << at;
    } else if (length == 2 && at + 1 < GROUP) {
        tokens.all |= 2u << at;
    }
}

/* All threads. `masks` and `runs` are MASK_WORDS + 1 words each, the first and those behind the
   threads' 0. */
static __device__ __forceinline__ tokens tokens_find(const uint8_t *groups, uint32_t size,
                                                     uint32_t *masks, uint32_t *runs,
                                                     uint32_t *scan) {
    uint32_t thread = block_thread(), first = GROUP * thread, begun;
    uint32_t mine = repeats_find(groups, size);
    masks[1 + thread] = mine;
    __syncthreads();
    uint64_t run = runs_find(masks[thread], mine, masks[2 + thread]);
    tokens tokens = {};
    tokens.run = (uint32_t)(run >> 1);
    tokens.runs = tokens.run & ~(uint32_t)run; /* where they begin */
    runs[1 + thread] = tokens.run;
    uint32_t start = tokens.runs ? first + 32 - (uint32_t)__clz((int)tokens.runs) : 0; /* plus 1 */
    begun = block_scan<greatest>(start, scan, &start);
    tokens.reach = tokens.run >> 31 ? reach_find(runs + 1) : 0;
    uint32_t left = size > first ? size - first : 0;
    uint32_t there = left >= GROUP ? FULL : (1u << left) - 1;
    tokens.all = (there & ~tokens.run) | tokens.runs;
    if (run & tokens.run & 1) {
        rest_add(tokens, first + 1 - begun);
    }
    return tokens;
}

/* Deflate's symbol for the length of a run. */
static __device__ __forceinline__ uint32_t run_symbol(uint32_t length) {
    uint32_t rest = length - RUN_MIN;
    uint32_t extra = rest < 8 ? 0 : 29 - (uint32_t)__clz((int)rest);
    return length == RUN_MAX ? 285 : 257 + 4 * extra + (rest >> extra);
}

/* Calls take(token) for each token in turn: a literal's byte, or 256 + length - 3. */
template <class TAKE>
static __device__ __forceinline__ void tokens_each(const tokens &tokens, const uint8_t *groups,
                                                   TAKE take) {
    const uint8_t *group = groups + GROUP_PITCH * block_thread();
    for (uint32_t left = tokens.all; left; left &= left - 1) {
        uint32_t at = (uint32_t)__ffs((int)left) - 1;
        take(tokens.runs >> at & 1 ? 256 - RUN_MIN + run_length(tokens, at) : (uint32_t)group[at]);
    }
}

#endif
