/*
 * png_header.cuh: the code lengths of a block as deflate writes them (png_block.c, header_fold).
 *
 * A thread takes each stretch of equal lengths: how a stretch is folded depends on nothing else.
 */
#ifndef KILN_CUDA_PNG_HEADER_CUH
#define KILN_CUDA_PNG_HEADER_CUH

#include "kernels/cuda/png/png_huffman.cuh"

#define SYMBOLS        286
#define END            256
#define LENGTH_SYMBOLS 19
#define LENGTH_LIMIT   7
#define HEADER_BITS    17 /* up to the lengths of the header's own code */

struct block_header {
    uint32_t counts[SYMBOLS_MAX]; /* of the header's symbols; as long as huffman_make reads */
    uint32_t starts[SYMBOLS_MAX / 32 + 1]; /* a bit where a stretch begins */
    uint8_t lengths[SYMBOLS_MAX];
    uint32_t symbols; /* of the block, up to the last one used */
    uint32_t order;   /* lengths of the header's code that are written */
    huffman code;
};

/* Symbols in the order in which their lengths are written, five bits each. */
static __device__ __forceinline__ uint32_t order_symbol(uint32_t index) {
    const uint64_t low = 16ull | 17ull << 5 | 18ull << 10 | 0ull << 15 | 8ull << 20 | 7ull << 25 |
                         9ull << 30 | 6ull << 35 | 10ull << 40 | 5ull << 45 | 11ull << 50 |
                         4ull << 55;
    const uint64_t high = 12ull | 3ull << 5 | 13ull << 10 | 2ull << 15 | 14ull << 20 | 1ull << 25 |
                          15ull << 30;
    return (uint32_t)(index < 12 ? low >> 5 * index : high >> 5 * (index - 12)) & 31;
}

static __device__ __forceinline__ uint32_t extra_bits(uint32_t symbol) {
    return symbol < 16 ? 0 : symbol == 18 ? 7 : symbol - 14;
}

/* Calls take(symbol, extra) for what a stretch of `count` equal lengths becomes. */
template <class TAKE>
static __device__ __forceinline__ void stretch_fold(uint32_t length, uint32_t count, TAKE take) {
    while (count > 0) {
        uint32_t taken = 1;
        if (length == 0 && count >= 11) {
            taken = count < 138 ? count : 138;
            take(18u, taken - 11);
        } else if (length == 0 && count >= 3) {
            taken = count;
            take(17u, taken - 3);
        } else {
            take(length, 0u);
            if (length > 0 && count >= 4) { /* the first stands for itself */
                taken = count - 1 < 6 ? count - 1 : 6;
                take(16u, taken - 3);
                taken++;
            }
        }
        count -= taken;
    }
}

/* The stretch that begins at this thread's length: how many there are, 0 if none begins here. */
static __device__ __forceinline__ uint32_t stretch_find(const block_header &header) {
    uint32_t thread = block_thread(), word = thread / 32, count = header.symbols + 1;
    if (thread >= count || !(header.starts[word] >> threadIdx.x & 1)) {
        return 0;
    }
    uint32_t rest = threadIdx.x < 31 ? header.starts[word] >> (threadIdx.x + 1) : 0;
    if (rest) {
        return (uint32_t)__ffs((int)rest);
    }
    while (header.starts[++word] == 0) {
        continue;
    }
    return 32 * word + (uint32_t)__ffs((int)header.starts[word]) - 1 - thread;
}

/* All threads: lays the lengths out and makes the header's own code. */
static __device__ __forceinline__ void header_make(block_header &header, const huffman &codes) {
    uint32_t thread = block_thread();
    if (thread == 0) {
        header.symbols = header.order = 0;
    }
    if (thread < SYMBOLS_MAX) {
        header.counts[thread] = 0;
    }
    __syncthreads();
    if (thread < SYMBOLS && codes.lengths[thread] > 0) {
        atomicMax(&header.symbols, thread + 1);
    }
    __syncthreads();
    if (thread < SYMBOLS_MAX + 32) { /* one more begins behind the only distance, of length 1 */
        uint32_t count = header.symbols + 1;
        uint32_t length = thread + 1 < count ? codes.lengths[thread] : thread < count;
        uint32_t before = thread > 0 && thread < count ? codes.lengths[thread - 1] : 0;
        uint32_t word = __ballot_sync(FULL, thread == 0 || thread == count ||
                                                (thread < count && length != before));
        if (threadIdx.x == 0) {
            header.starts[threadIdx.y] = word;
        }
        if (thread < SYMBOLS_MAX) {
            header.lengths[thread] = (uint8_t)length;
        }
    }
    __syncthreads();
    stretch_fold(thread < SYMBOLS_MAX ? header.lengths[thread] : 0, stretch_find(header),
                 [&](uint32_t symbol, uint32_t) { atomicAdd(header.counts + symbol, 1u); });
    __syncthreads();
    huffman_make(header.code, header.counts, LENGTH_SYMBOLS, LENGTH_LIMIT);
    if (thread < LENGTH_SYMBOLS && header.code.lengths[order_symbol(thread)] > 0) {
        atomicMax(&header.order, thread + 1);
    }
    __syncthreads();
}

/* All threads: bits of the header that are this thread's, in the order of threads. */
static __device__ __forceinline__ uint32_t header_bits(const block_header &header) {
    uint32_t thread = block_thread(), bits = 0;
    if (thread < SYMBOLS_MAX) {
        stretch_fold(header.lengths[thread], stretch_find(header),
                     [&](uint32_t symbol, uint32_t) {
                         bits += header.code.lengths[symbol] + extra_bits(symbol);
                     });
    }
    return bits;
}

/* All threads: writes the header, this thread's part at `position`. */
static __device__ __forceinline__ void header_write(const block_header &header, uint32_t *out,
                                                    uint32_t position, bool last) {
    uint32_t thread = block_thread();
    if (thread < SYMBOLS_MAX) {
        bit_writer bits = bits_at(out, position);
        stretch_fold(header.lengths[thread], stretch_find(header),
                     [&](uint32_t symbol, uint32_t extra) {
                         bits_put(bits, header.code.codes[symbol], header.code.lengths[symbol]);
                         bits_put(bits, extra, extra_bits(symbol));
                     });
        bits_end(bits);
    }
    if (thread < header.order) {
        bit_writer bits = bits_at(out, HEADER_BITS + 3 * thread);
        bits_put(bits, header.code.lengths[order_symbol(thread)], 3);
        bits_end(bits);
    }
    if (thread == 0) { /* a block of its own codes, one distance */
        atomicOr(out, (last ? 1u : 0u) | 2u << 1 | (header.symbols - 257) << 3 |
                          (header.order - 4) << 13);
    }
}

#endif
