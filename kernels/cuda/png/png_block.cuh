/*
 * png_block.cuh: what a block of threads does together: sums, scans, and bits in shared memory.
 *
 * Every function but the writer of bits is called by all threads of the block.
 */
#ifndef KILN_CUDA_PNG_BLOCK_CUH
#define KILN_CUDA_PNG_BLOCK_CUH

#include "kernels/cuda/png/png_grid.h"

#define FULL 0xffffffffu

static __device__ __forceinline__ unsigned block_thread() {
    return threadIdx.y * 32 + threadIdx.x;
}

static __device__ __forceinline__ uint32_t warp_sum(uint32_t value) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(FULL, value, step);
    }
    return value;
}

static __device__ __forceinline__ unsigned long long warp_sum(unsigned long long value) {
#pragma unroll
    for (int step = 16; step > 0; step /= 2) {
        value += __shfl_xor_sync(FULL, value, step);
    }
    return value;
}

struct adding {
    static __device__ __forceinline__ uint32_t join(uint32_t a, uint32_t b) {
        return a + b;
    }
};

struct greatest {
    static __device__ __forceinline__ uint32_t join(uint32_t a, uint32_t b) {
        return a > b ? a : b;
    }
};

template <class OP> static __device__ __forceinline__ uint32_t warp_scan(uint32_t value) {
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
        uint32_t other = __shfl_up_sync(FULL, value, step);
        value = (int)threadIdx.x >= step ? OP::join(value, other) : value;
    }
    return value;
}

/* What comes before this thread's value, 0 for the first; `total` is that of all. `shared` has a
   word a warp and one more. */
template <class OP>
static __device__ __forceinline__ uint32_t block_scan(uint32_t value, uint32_t *shared,
                                                      uint32_t *total) {
    uint32_t inclusive = warp_scan<OP>(value);
    uint32_t before = __shfl_up_sync(FULL, inclusive, 1);
    before = threadIdx.x == 0 ? 0 : before;
    __syncthreads(); /* an earlier scan has been read */
    if (threadIdx.x == 31) {
        shared[threadIdx.y] = inclusive;
    }
    __syncthreads();
    if (threadIdx.y == 0) {
        uint32_t mine = threadIdx.x < blockDim.y ? shared[threadIdx.x] : 0;
        uint32_t sum = warp_scan<OP>(mine);
        uint32_t earlier = __shfl_up_sync(FULL, sum, 1);
        shared[threadIdx.x] = threadIdx.x == 0 ? 0 : earlier;
        if (threadIdx.x == 31) {
            shared[32] = sum;
        }
    }
    __syncthreads();
    *total = shared[32];
    return OP::join(shared[threadIdx.y], before);
}

/* Appends bits, least significant first, to words that are 0 and that neighbours write to as well:
   what two threads may share, the first and the last word, is joined atomically. */
struct bit_writer {
    uint32_t *at;
    uint64_t word;
    uint32_t count; /* bits of `word`, those before the first of ours included */
    bool inner;     /* the word is ours alone */
};

static __device__ __forceinline__ bit_writer bits_at(uint32_t *words, uint32_t position) {
    return bit_writer{words + position / 32, 0, position % 32, false};
}

/* At most 32 bits; those of `value` above `count` are 0. */
static __device__ __forceinline__ void bits_put(bit_writer &bits, uint32_t value, uint32_t count) {
    bits.word |= (uint64_t)value << bits.count;
    bits.count += count;
    if (bits.count >= 32) {
        if (bits.inner) {
            *bits.at = (uint32_t)bits.word;
        } else {
            atomicOr(bits.at, (uint32_t)bits.word);
        }
        bits.inner = true;
        bits.at++;
        bits.word >>= 32;
        bits.count -= 32;
    }
}

static __device__ __forceinline__ void bits_end(const bit_writer &bits) {
    if ((uint32_t)bits.word) {
        atomicOr(bits.at, (uint32_t)bits.word);
    }
}

#endif
