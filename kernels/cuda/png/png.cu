/*
 * png.cu: palette indices to the zlib stream of a PNG (kernels/png.h).
 *
 * blockIdx.y is the picture. png_pieces: a block a piece, a thread for each 32 of its bytes. Everything stays in shared memory
 * from the pixels to the bits: filter, tokens, counts, codes, places of the tokens by a scan, bits.
 * png_gather: a block a piece adds up the sizes of those before and moves its piece there, which may
 * be host memory; the last block adds what the stream has around them.
 */
#include "kernels/cuda/png/png_header.cuh"
#include "kernels/cuda/png/png_tokens.cuh"

#define THREADS       (32 * PNG_WARPS)
#define LENGTH_MAX    12 /* of a code of tokens */
#define ENTRY_BITS    24 /* an entry: bits below, their number above */
#define STORED_HEADER 5
#define SLOT_WORDS    (PNG_PITCH / 4)
#define ADLER         65521u

/* Blocks that share a multiprocessor, where it holds so many threads. */
#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ == 800 || __CUDA_ARCH__ / 100 == 9)
#define RESIDENT 2
#else
#define RESIDENT 1
#endif

struct piece_memory {
    __align__(16) uint32_t out[SLOT_WORDS]; /* before that: COPIES counts of each symbol */
    uint8_t groups[GROUPS_BYTES];
    uint32_t masks[MASK_WORDS + 1], runs[MASK_WORDS + 1];
    uint32_t entries[512];
    uint32_t counts[SYMBOLS_MAX];
    uint32_t scan[33];
    uint32_t weighed[FILTERS];
    unsigned long long adler[2];
    huffman codes;
    block_header header;
};

static_assert(sizeof(piece_memory) <= PNG_SHARED, "png_grid.h tells too little");
static_assert(SYMBOLS_MAX * COPIES <= SLOT_WORDS, "counts outgrow what they share");

static __device__ __forceinline__ void memory_clear(piece_memory &memory) {
    uint32_t thread = block_thread();
    for (uint32_t i = thread; i < SYMBOLS_MAX * COPIES; i += THREADS) {
        memory.out[i] = 0;
    }
    for (uint32_t i = thread; i < MASK_WORDS + 1; i += THREADS) {
        memory.masks[i] = memory.runs[i] = 0;
    }
    if (thread < FILTERS) {
        memory.weighed[thread] = 0;
    }
    if (thread < 2) {
        memory.adler[thread] = 0;
    }
    __syncthreads();
}

/* Counts the tokens' symbols; clears `out` behind. */
static __device__ __forceinline__ void tokens_count(piece_memory &memory, const tokens &tokens) {
    uint32_t thread = block_thread(), copy = threadIdx.x % COPIES;
    tokens_each(tokens, memory.groups, [&](uint32_t token) {
        uint32_t symbol = token < 256 ? token : run_symbol(token - 256 + RUN_MIN);
        atomicAdd(memory.out + COPIES * symbol + copy, 1u);
    });
    __syncthreads();
    if (thread < SYMBOLS_MAX) {
        uint32_t count = thread == END;
        for (uint32_t i = 0; i < COPIES; i++) {
            count += memory.out[COPIES * thread + (i + thread) % COPIES];
        }
        memory.counts[thread] = count;
    }
    __syncthreads();
    for (uint32_t i = thread; i < SLOT_WORDS; i += THREADS) {
        memory.out[i] = 0;
    }
}

/* The table that turns a token into its bits. */
static __device__ __forceinline__ void entries_fill(piece_memory &memory) {
    uint32_t token = block_thread();
    if (token < 256) {
        memory.entries[token] =
            memory.codes.codes[token] | (uint32_t)memory.codes.lengths[token] << ENTRY_BITS;
    } else if (token < 512) { /* code, rest of the length, one zero bit for the distance */
        uint32_t length = token - 256 + RUN_MIN, rest = length - RUN_MIN;
        uint32_t symbol = run_symbol(length), bits = memory.codes.lengths[symbol];
        uint32_t extra = rest < 8 || length == RUN_MAX ? 0 : 29 - (uint32_t)__clz((int)rest);
        rest = length == RUN_MAX ? 0 : rest & ((1u << extra) - 1);
        memory.entries[token] =
            memory.codes.codes[symbol] | rest << bits | (bits + extra + 1) << ENTRY_BITS;
    }
    __syncthreads();
}

/* The bytes as they are, behind the header of a stored block. */
static __device__ __forceinline__ uint32_t stored_write(piece_memory &memory,
                                                        const piece_place &place) {
    uint8_t *out = (uint8_t *)memory.out;
    if (block_thread() == 0) {
        uint32_t size = place.size;
        out[0] = place.last;
        out[1] = (uint8_t)size;
        out[2] = (uint8_t)(size >> 8);
        out[3] = (uint8_t)~size;
        out[4] = (uint8_t)(~size >> 8);
    }
    for (uint32_t i = block_thread(); i < place.size; i += THREADS) {
        out[STORED_HEADER + i] = memory.groups[group_address(i)];
    }
    return 8 * (STORED_HEADER + place.size);
}

/* Codes, header and tokens; or the bytes as they are, if that is not more. Returns the bits. */
static __device__ __forceinline__ uint32_t block_write(piece_memory &memory,
                                                       const piece_place &place,
                                                       const tokens &tokens) {
    uint32_t thread = block_thread(), headed, coded;
    huffman_make(memory.codes, memory.counts, SYMBOLS, LENGTH_MAX);
    entries_fill(memory);
    header_make(memory.header, memory.codes);
    uint32_t bits = 0;
    tokens_each(tokens, memory.groups,
                [&](uint32_t token) { bits += memory.entries[token] >> ENTRY_BITS; });
    uint32_t begin = HEADER_BITS + 3 * memory.header.order;
    uint32_t header_at =
        begin + block_scan<adding>(header_bits(memory.header), memory.scan, &headed);
    uint32_t token_at = begin + headed + block_scan<adding>(bits, memory.scan, &coded);
    uint32_t end = begin + headed + coded;
    uint32_t cost = end + memory.codes.lengths[END];
    if (cost >= 8 * (place.size + STORED_HEADER)) {
        return stored_write(memory, place);
    }
    header_write(memory.header, memory.out, header_at, place.last);
    bit_writer writer = bits_at(memory.out, token_at);
    tokens_each(tokens, memory.groups, [&](uint32_t token) {
        uint32_t entry = memory.entries[token];
        bits_put(writer, entry & ((1u << ENTRY_BITS) - 1), entry >> ENTRY_BITS);
    });
    bits_end(writer);
    if (thread == 0) {
        bit_writer last = bits_at(memory.out, end);
        bits_put(last, memory.codes.codes[END], memory.codes.lengths[END]);
        bits_end(last);
    }
    return cost;
}

/* Ends at a whole byte, behind an empty stored block where more follows; the rest of `out` is 0. */
static __device__ __forceinline__ uint32_t block_end(piece_memory &memory, uint32_t bits,
                                                     bool last) {
    if (last) {
        return (bits + 7) / 8;
    }
    uint32_t at = (bits + 3 + 7) / 8;
    if (block_thread() == 0) {
        ((uint8_t *)memory.out)[at + 2] = 0xff;
        ((uint8_t *)memory.out)[at + 3] = 0xff;
    }
    return at + 4;
}

extern "C" __global__ void __launch_bounds__(THREADS, RESIDENT)
    png_pieces(const __grid_constant__ png_grid grid) {
    extern __shared__ __align__(16) unsigned char shared[];
    piece_memory &memory = *(piece_memory *)shared;
    uint32_t thread = block_thread();
    piece_place place = piece_find(grid);
    memory_clear(memory);
    unsigned filter = filter_choose(grid, place, memory.weighed);
    piece_filter(grid, place, filter, memory.groups, memory.adler);
    __syncthreads();
    tokens tokens =
        tokens_find(memory.groups, place.size, memory.masks, memory.runs, memory.scan);
    tokens_count(memory, tokens);
    uint32_t bits = block_write(memory, place, tokens);
    __syncthreads();
    uint32_t size = block_end(memory, bits, place.last);
    __syncthreads();
    uint32_t number = blockIdx.y * gridDim.x + blockIdx.x;
    uint4 *slot = (uint4 *)(grid.slots + (uint64_t)number * PNG_PITCH);
    for (uint32_t i = thread; i < (size + 15) / 16; i += THREADS) {
        slot[i] = ((const uint4 *)memory.out)[i];
    }
    if (thread == 0) {
        png_piece piece;
        piece.size = size;
        piece.bytes = place.size;
        piece.sum = (uint32_t)(memory.adler[0] % ADLER);
        piece.sums = (uint32_t)(memory.adler[1] % ADLER);
        grid.piece[number] = piece;
    }
}

/* The sum over the block's threads, for all of them; `shared` is 0 before. */
static __device__ __forceinline__ unsigned long long block_sum(unsigned long long value,
                                                               unsigned long long *shared) {
    value = warp_sum(value);
    if (threadIdx.x == 0) {
        atomicAdd(shared, value);
    }
    __syncthreads();
    return *shared;
}

/* Copies from an address of 16 bytes to any. */
static __device__ __forceinline__ void bytes_move(uint8_t *to, const uint8_t *from, uint32_t size) {
    uint32_t thread = block_thread(), threads = 32 * blockDim.y;
    uint32_t head = (uint32_t)(-(uintptr_t)to & 15);
    head = head < size ? head : size;
    uint32_t middle = (size - head) / 16, tail = (size - head) % 16;
    if (thread < head) {
        to[thread] = from[thread];
    }
    if (thread < tail) {
        to[size - tail + thread] = from[size - tail + thread];
    }
    const uint32_t *words = (const uint32_t *)(from + (head & ~3u));
    uint32_t shift = 8 * (head & 3);
    for (uint32_t i = thread; i < middle; i += threads) {
        const uint32_t *at = words + 4 * i;
        uint32_t a = at[0], b = at[1], c = at[2], d = at[3], e = at[4];
        uint4 quad;
        quad.x = __funnelshift_r(a, b, shift);
        quad.y = __funnelshift_r(b, c, shift);
        quad.z = __funnelshift_r(c, d, shift);
        quad.w = __funnelshift_r(d, e, shift);
        ((uint4 *)(to + head))[i] = quad;
    }
}

/* The zlib header, Adler-32 over all pieces, and the size. `sums` are two sums that are 0. */
static __device__ __forceinline__ void stream_close(const png_grid &grid, const png_piece *pieces,
                                                    const png_target &target, uint64_t end,
                                                    unsigned long long *sums) {
    unsigned long long low = 0, high = 0;
    uint64_t total = (uint64_t)(grid.width + 1) * (uint64_t)grid.height;
    for (int i = (int)block_thread(); i < grid.pieces; i += (int)(32 * blockDim.y)) {
        png_piece piece = pieces[i];
        uint64_t strip = (uint64_t)(i / grid.strip_pieces), part = (uint64_t)(i % grid.strip_pieces);
        uint64_t behind = strip * (uint64_t)grid.strip_rows * (uint64_t)(grid.width + 1) +
                          part * PNG_PIECE + piece.bytes;
        low += piece.sum;
        high += piece.sums + piece.sum * ((total - behind) % ADLER);
    }
    low = block_sum(low, sums);
    high = block_sum(high, sums + 1);
    if (block_thread() > 0) {
        return;
    }
    bool fits = end + 4 <= target.capacity;
    if (fits) {
        uint32_t a = (uint32_t)((1 + low) % ADLER), b = (uint32_t)((total + high) % ADLER);
        target.stream[0] = 0x78;
        target.stream[1] = 0x01;
        target.stream[end] = (uint8_t)(b >> 8);
        target.stream[end + 1] = (uint8_t)b;
        target.stream[end + 2] = (uint8_t)(a >> 8);
        target.stream[end + 3] = (uint8_t)a;
    }
    *target.size = fits ? end + 4 : 0;
}

extern "C" __global__ void __launch_bounds__(32 * PNG_GATHER_WARPS)
    png_gather(const __grid_constant__ png_grid grid) {
    __shared__ unsigned long long sums[3];
    unsigned long long before = 0;
    int piece = (int)blockIdx.x;
    const png_piece *pieces = grid.piece + (int64_t)blockIdx.y * grid.pieces;
    const uint8_t *slots = grid.slots + (int64_t)blockIdx.y * grid.pieces * PNG_PITCH;
    const png_target &target = grid.target[blockIdx.y];
    if (block_thread() < 3) {
        sums[block_thread()] = 0;
    }
    __syncthreads();
    for (int i = (int)block_thread(); i < piece; i += (int)(32 * blockDim.y)) {
        before += pieces[i].size;
    }
    uint64_t begin = 2 + block_sum(before, sums);
    uint32_t size = pieces[piece].size;
    if (begin + size <= target.capacity) {
        bytes_move(target.stream + begin, slots + (uint64_t)piece * PNG_PITCH, size);
    }
    if (piece + 1 == grid.pieces) {
        stream_close(grid, pieces, target, begin + size, sums + 1);
    }
}
