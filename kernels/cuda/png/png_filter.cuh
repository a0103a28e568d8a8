/*
 * png_filter.cuh: the filter of a strip and the filtered bytes of a piece, four at a time.
 *
 * Bytes lie in shared memory in groups of 32, a thread's, with a word between groups: so that all
 * lanes of a warp reach their groups without conflicts.
 */
#ifndef KILN_CUDA_PNG_FILTER_CUH
#define KILN_CUDA_PNG_FILTER_CUH

#include "kernels/cuda/png/png_block.cuh"

#define FILTER_NONE  0
#define FILTER_SUB   1
#define FILTER_UP    2
#define FILTERS      3
#define SAMPLING     4  /* one row in so many is weighed */
#define GROUP        32 /* bytes of a thread */
#define GROUP_PITCH  36 /* from one to the next */
#define GROUPS_BYTES (PNG_PIECE / GROUP * GROUP_PITCH)

/* A piece and the strip that it belongs to. */
struct piece_place {
    int64_t top;    /* the picture's first row, of the rows of all pictures */
    int64_t first;  /* the row that the strip begins with, likewise */
    uint32_t rows;  /* of the strip */
    uint32_t line;  /* bytes of a filtered row: the filter's number and the pixels */
    uint32_t begin; /* of the piece in the strip, in filtered bytes */
    uint32_t size;  /* of the piece */
    bool last;      /* of the picture */
};

static __device__ __forceinline__ piece_place piece_find(const png_grid &grid) {
    int64_t strip = blockIdx.x / (unsigned)grid.strip_pieces;
    uint32_t part = blockIdx.x % (unsigned)grid.strip_pieces;
    piece_place place;
    place.top = (int64_t)blockIdx.y * grid.height;
    place.first = place.top + strip * grid.strip_rows;
    int64_t left = grid.height - strip * grid.strip_rows;
    place.rows = (uint32_t)(left < grid.strip_rows ? left : grid.strip_rows);
    place.line = (uint32_t)grid.width + 1;
    place.begin = part * PNG_PIECE;
    uint32_t behind = place.rows * place.line - place.begin;
    place.size = behind < PNG_PIECE ? behind : PNG_PIECE;
    place.last = blockIdx.x + 1 == gridDim.x;
    return place;
}

static __device__ __forceinline__ uint32_t group_address(uint32_t byte) {
    return byte + byte / GROUP * (GROUP_PITCH - GROUP);
}

/* Differences of four bytes. */
static __device__ __forceinline__ uint32_t bytes_subtract(uint32_t a, uint32_t b) {
    const uint32_t high = 0x80808080u;
    return ((a | high) - (b & ~high)) ^ ((a ^ ~b) & high);
}

/* Sum of the magnitudes of four bytes, taken as signed, and `sum`. */
static __device__ __forceinline__ uint32_t magnitudes_add(uint32_t bytes, uint32_t sum) {
    uint32_t signs = bytes >> 7 & 0x01010101u;
    return __dp4a((bytes ^ signs * 255u) + signs, 0x01010101u, sum);
}

/* Four bytes at any address, the first of which are pictures': those beyond the last word are
   of no meaning. */
static __device__ __forceinline__ uint32_t bytes_load(const uint8_t *at, const uint32_t *last) {
    const uint32_t *word = (const uint32_t *)((uintptr_t)at & ~(uintptr_t)3);
    uint32_t low = __ldg(word), high = __ldg(word < last ? word + 1 : last);
    return __funnelshift_r(low, high, 8 * (uint32_t)((uintptr_t)at & 3));
}

static __device__ __forceinline__ const uint32_t *last_word(const png_grid &grid) {
    const uint8_t *last = grid.indices + grid.width * grid.height * gridDim.y - 1;
    return (const uint32_t *)((uintptr_t)last & ~(uintptr_t)3);
}

/* The filter of the strip. The first pixel of a row and the first row of the picture do not count.
   `sums` are three words of shared memory that are 0. */
static __device__ __forceinline__ unsigned filter_choose(const png_grid &grid,
                                                         const piece_place &place, uint32_t *sums) {
    uint32_t skip = place.first == place.top, columns = (uint32_t)grid.width - 1;
    uint32_t sampled = (place.rows - skip + SAMPLING - 1) / SAMPLING;
    uint32_t quads = (columns + 3) / 4, none = 0, sub = 0, up = 0;
    const uint8_t *row = grid.indices + (place.first + skip) * grid.width;
    const uint32_t *last = last_word(grid);
    for (uint32_t i = block_thread(); i < sampled * quads; i += 32 * blockDim.y) {
        uint32_t y = i / quads, column = 4 * (i - y * quads);
        const uint8_t *at = row + (int64_t)y * SAMPLING * grid.width + 1 + column;
        uint32_t here = bytes_load(at, last);
        uint32_t left = bytes_load(at - 1, last), above = bytes_load(at - grid.width, last);
        uint32_t mask = columns - column < 4 ? (1u << 8 * (columns - column)) - 1 : FULL;
        none = magnitudes_add(here & mask, none);
        sub = magnitudes_add(bytes_subtract(here, left) & mask, sub);
        up = magnitudes_add(bytes_subtract(here, above) & mask, up);
    }
    none = warp_sum(none);
    sub = warp_sum(sub);
    up = warp_sum(up);
    if (threadIdx.x == 0) {
        atomicAdd(sums + FILTER_NONE, none);
        atomicAdd(sums + FILTER_SUB, sub);
        atomicAdd(sums + FILTER_UP, up);
    }
    __syncthreads();
    unsigned best = FILTER_NONE;
    for (unsigned filter = FILTER_SUB; filter < FILTERS; filter++) {
        best = sums[filter] <= sums[best] ? filter : best;
    }
    return best;
}

/* The filtered byte at `column` of a row of the strip. */
static __device__ __forceinline__ uint32_t byte_filter(const png_grid &grid,
                                                       const piece_place &place, unsigned filter,
                                                       uint32_t row, uint32_t column) {
    int64_t y = place.first + row;
    unsigned own = y == place.top && filter == FILTER_UP ? FILTER_SUB : filter;
    if (column == 0) {
        return own;
    }
    const uint8_t *at = grid.indices + y * grid.width + (column - 1);
    uint32_t before = 0;
    if (own == FILTER_UP) {
        before = __ldg(at - grid.width);
    } else if (own == FILTER_SUB && column > 1) {
        before = __ldg(at - 1);
    }
    return (__ldg(at) - before) & 255;
}

/* Four filtered bytes that begin at `at` of the strip, inside the piece; those behind its end are
   0. What nearly all need is loaded before it is known whether these do. */
static __device__ __forceinline__ uint32_t quad_filter(const png_grid &grid,
                                                       const piece_place &place, unsigned filter,
                                                       const uint32_t *last, uint32_t at) {
    uint32_t row = at / place.line, column = at - row * place.line;
    uint32_t end = place.begin + place.size;
    int64_t y = place.first + row;
    int64_t pixel = y * grid.width + column - 1, back = filter == FILTER_UP && y > place.top ? grid.width : 1;
    int64_t first = pixel > 0 ? pixel : 0, before = pixel > back ? pixel - back : 0;
    uint32_t here = bytes_load(grid.indices + first, last);
    uint32_t other = bytes_load(grid.indices + before, last);
    if (column >= 2 && column + 4 <= place.line && at + 4 <= end) {
        return filter == FILTER_NONE ? here : bytes_subtract(here, other);
    }
    uint32_t quad = 0;
    for (int i = 0; i < 4 && at + i < end; i++) {
        quad |= byte_filter(grid, place, filter, row, column) << 8 * i;
        column++;
        row += column == place.line;
        column = column == place.line ? 0 : column;
    }
    return quad;
}

/* Filters the piece into `groups` and adds its bytes up for Adler-32 (adler[0]: their sum, [1]: each
   times those that follow it), both 0 before. */
static __device__ __forceinline__ void piece_filter(const png_grid &grid, const piece_place &place,
                                                    unsigned filter, uint8_t *groups,
                                                    unsigned long long *adler) {
    const uint32_t *last = last_word(grid);
    uint32_t sum = 0;
    unsigned long long sums = 0;
#pragma unroll 2
    for (uint32_t i = 4 * block_thread(); i < PNG_PIECE; i += 128 * PNG_WARPS) {
        uint32_t quad = 0;
        if (i < place.size) {
            quad = quad_filter(grid, place, filter, last, place.begin + i);
            uint32_t all = __dp4a(quad, 0x01010101u, 0u);
            sum += all;
            sums += (unsigned long long)(place.size - i) * all - __dp4a(quad, 0x03020100u, 0u);
        }
        *(uint32_t *)(groups + group_address(i)) = quad;
    }
    unsigned long long whole = warp_sum((unsigned long long)sum);
    sums = warp_sum(sums);
    if (threadIdx.x == 0) {
        atomicAdd(adler, whole);
        atomicAdd(adler + 1, sums);
    }
}

#endif
