/*
 * laplacian.cu: the five-point Laplacian with zero outside (kernels/laplacian.h).
 *
 * One thread a column, walking down a stretch of rows, so that each element is read once from
 * memory and stays in a register for the row above and below. Neighbours left and right come from
 * the cache.
 */
#include "kernels/cuda/laplacian/laplacian_grid.h"

static __device__ __forceinline__ int32_t five(int32_t n, int32_t s, int32_t w, int32_t e,
                                               int32_t x) {
    /* Unsigned: out of the documented range it wraps. */
    return (int32_t)((((uint32_t)n + (uint32_t)s) + ((uint32_t)w + (uint32_t)e)) -
                     4u * (uint32_t)x);
}

static __device__ __forceinline__ double five(double n, double s, double w, double e, double x) {
    return __dadd_rn(__dadd_rn(__dadd_rn(n, s), __dadd_rn(w, e)), -__dmul_rn(4.0, x));
}

template <typename T> static __device__ void laplacian(const laplacian_grid &grid) {
    const T *source = (const T *)grid.x;
    T *target = (T *)grid.b;
    int64_t stride = (int64_t)gridDim.x * 32;
    int64_t stretches = (int64_t)gridDim.y * blockDim.y;
    int64_t length = (grid.rows + stretches - 1) / stretches;
    int64_t first = ((int64_t)blockIdx.y * blockDim.y + threadIdx.y) * length;
    int64_t last = min(first + length, grid.rows);
    for (int64_t column = (int64_t)blockIdx.x * 32 + threadIdx.x; column < grid.width;
         column += stride) {
        int64_t row = first < last ? first % grid.height : 0; /* within the plane */
        T above = 0, here = 0;
        if (first < last) {
            here = __ldg(source + first * grid.width + column);
            above = row > 0 ? __ldg(source + (first - 1) * grid.width + column) : (T)0;
        }
        for (int64_t i = first; i < last; i++) {
            const T *line = source + i * grid.width;
            bool end = row == grid.height - 1;
            T next = i + 1 < grid.rows ? __ldg(line + grid.width + column) : (T)0;
            T west = column > 0 ? __ldg(line + column - 1) : (T)0;
            T east = column + 1 < grid.width ? __ldg(line + column + 1) : (T)0;
            target[i * grid.width + column] = five(above, end ? (T)0 : next, west, east, here);
            above = end ? (T)0 : here;
            here = next;
            row = end ? 0 : row + 1;
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
    laplacian_integer(const __grid_constant__ laplacian_grid grid) {
    laplacian<int32_t>(grid);
}

extern "C" __global__ void __launch_bounds__(256)
    laplacian_real(const __grid_constant__ laplacian_grid grid) {
    laplacian<double>(grid);
}
