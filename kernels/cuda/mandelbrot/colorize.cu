/*
 * colorize.cu: a field to RGB, with Matplotlib's hill shading (kernels/colorize.h).
 *
 * One thread four neighbouring pixels. Without shading the sum over a pixel's samples is an integer
 * and exact; shading is by kernels/colorize_colour.h, with a table of what it needs of each colour
 * in shared memory.
 */
#include "kernels/cuda/mandelbrot/colorize_grid.h"

static __device__ __forceinline__ float elevation(const float *at) {
    return colorize_height(__ldg(at));
}

static __device__ __forceinline__ unsigned colour_index(const colorize_grid &grid,
                                                        const float *thresholds, float value) {
    float above = fmaxf(value - grid.vmin, 0.0f) * grid.inverse_range;
    float guess = 256.0f * exp2f(grid.gamma * __log2f(above));
    unsigned index = (unsigned)fminf(guess, 255.0f);
    while (index < 255 && value >= thresholds[index + 1]) {
        index++;
    }
    while (value < thresholds[index]) {
        index--;
    }
    return index;
}

static __device__ __forceinline__ float light(const colorize_grid &grid, const float *at) {
    return colorize_shine(&grid.light, elevation(at - 1), elevation(at + 1),
                          elevation(at - grid.stride), elevation(at + grid.stride));
}

template <bool SHADE> struct palette {
    float thresholds[256];
    uint32_t colours[256]; /* red lowest */
};

template <> struct palette<true> {
    float thresholds[256];
    float4 hues[256]; /* weights and saturation */
    float values[256];
};

/* The sample's colour in its light, channels 0 to 1. */
static __device__ __forceinline__ float3 shaded_sample(const colorize_grid &grid,
                                                       const palette<true> &palette,
                                                       const float *at) {
    unsigned index = colour_index(grid, palette.thresholds, elevation(at));
    float4 hue = palette.hues[index];
    float value = palette.values[index];
    colorize_blend(light(grid, at), &value, &hue.w);
    return make_float3(colorize_channel(value, hue.w, hue.x), colorize_channel(value, hue.w, hue.y),
                       colorize_channel(value, hue.w, hue.z));
}

/* The pixel of summed samples: packed, red lowest. */
static __device__ __forceinline__ uint32_t packed(float3 sum, float scale) {
    uint32_t r = colorize_level(sum.x, scale), g = colorize_level(sum.y, scale);
    return r | g << 8 | (uint32_t)colorize_level(sum.z, scale) << 16;
}

/* A pixel of one or more samples. */
static __device__ __forceinline__ uint32_t mean_pixel(const colorize_grid &grid,
                                                      const palette<false> &palette,
                                                      const float *corner) {
    uint64_t r = 0, g = 0, b = 0, samples = (uint64_t)grid.supersample * grid.supersample;
    for (int j = 0; j < grid.supersample; j++, corner += grid.stride) {
        for (int i = 0; i < grid.supersample; i++) {
            float height = elevation(corner + i);
            uint32_t c = palette.colours[colour_index(grid, palette.thresholds, height)];
            r += c & 255;
            g += c >> 8 & 255;
            b += c >> 16;
        }
    }
    r = (2 * r + samples) / (2 * samples);
    g = (2 * g + samples) / (2 * samples);
    b = (2 * b + samples) / (2 * samples);
    return (uint32_t)(r | g << 8 | b << 16);
}

static __device__ __forceinline__ uint32_t mean_pixel(const colorize_grid &grid,
                                                      const palette<true> &palette,
                                                      const float *corner) {
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    for (int j = 0; j < grid.supersample; j++, corner += grid.stride) {
        for (int i = 0; i < grid.supersample; i++) {
            float3 colour = shaded_sample(grid, palette, corner + i);
            sum.x += colour.x;
            sum.y += colour.y;
            sum.z += colour.z;
        }
    }
    return packed(sum, 255.0f / (float)(grid.supersample * grid.supersample));
}

/* A pixel of one sample. */
static __device__ __forceinline__ uint32_t single_pixel(const colorize_grid &grid,
                                                        const palette<false> &palette,
                                                        const float *at) {
    return palette.colours[colour_index(grid, palette.thresholds, elevation(at))];
}

static __device__ __forceinline__ uint32_t single_pixel(const colorize_grid &grid,
                                                        const palette<true> &palette,
                                                        const float *at) {
    return packed(shaded_sample(grid, palette, at), 255.0f);
}

/* Row and column of a pixel; the quotient by the inverse may be off by one. */
static __device__ __forceinline__ void pixel_place(const colorize_grid &grid, int64_t pixel,
                                                   int64_t &row, int64_t &column) {
    row = (int64_t)((double)pixel * grid.inverse_width);
    column = pixel - row * grid.width;
    if (column < 0) {
        row--;
        column += grid.width;
    } else if (column >= grid.width) {
        row++;
        column -= grid.width;
    }
}

static __device__ __forceinline__ const float *corner_of(const colorize_grid &grid, int64_t row,
                                                         int64_t column) {
    return grid.field + (row * grid.supersample + grid.apron) * grid.stride + grid.apron +
           column * grid.supersample;
}

static __device__ __forceinline__ void pixels_write(const colorize_grid &grid, int64_t first,
                                                    const uint32_t *rgb) {
    uint8_t *at = grid.rgb + 3 * first;
    if (grid.aligned && first + COLORIZE_PIXELS <= grid.pixels) {
        uint32_t *words = (uint32_t *)at;
        words[0] = rgb[0] | rgb[1] << 24;
        words[1] = rgb[1] >> 8 | rgb[2] << 16;
        words[2] = rgb[2] >> 16 | rgb[3] << 8;
        return;
    }
#pragma unroll
    for (int i = 0; i < 3 * COLORIZE_PIXELS; i++) {
        if (first + i / 3 < grid.pixels) {
            at[i] = (uint8_t)(rgb[i / 3] >> 8 * (i % 3));
        }
    }
}

/* The lowest bytes of the pixels, which are indices. */
static __device__ __forceinline__ void indices_write(const colorize_grid &grid, int64_t first,
                                                     const uint32_t *index) {
    uint8_t *at = grid.rgb + first;
    if (grid.aligned && first + COLORIZE_PIXELS <= grid.pixels) {
        *(uint32_t *)at = index[0] | index[1] << 8 | index[2] << 16 | index[3] << 24;
        return;
    }
#pragma unroll
    for (int i = 0; i < COLORIZE_PIXELS; i++) {
        if (first + i < grid.pixels) {
            at[i] = (uint8_t)index[i];
        }
    }
}

template <bool INDEXED>
static __device__ __forceinline__ void colour_fill(palette<false> &palette, int i,
                                                   const uint8_t *entry) {
    palette.colours[i] = INDEXED ? i : entry[0] | entry[1] << 8 | entry[2] << 16;
}

template <bool INDEXED>
static __device__ __forceinline__ void colour_fill(palette<true> &palette, int i,
                                                   const uint8_t *entry) {
    colorize_hue hue;
    colorize_hue_fill(&hue, entry[0], entry[1], entry[2]);
    palette.hues[i] = make_float4(hue.weight[0], hue.weight[1], hue.weight[2], hue.saturation);
    palette.values[i] = hue.value;
}

/* With INDEXED the colour of index i is i. */
template <bool SHADE, bool INDEXED>
static __device__ __forceinline__ void colorize(const colorize_grid &grid) {
    __shared__ palette<SHADE> palette;
    int thread = (int)(threadIdx.y * 32 + threadIdx.x), threads = (int)blockDim.y * 32;
    for (int i = thread; i < 256; i += threads) {
        palette.thresholds[i] = __ldg(grid.thresholds + i);
        colour_fill<INDEXED>(palette, i, grid.lut + 3 * i);
    }
    __syncthreads();
    int64_t first = ((int64_t)blockIdx.x * threads + thread) * COLORIZE_PIXELS;
    for (; first < grid.pixels; first += (int64_t)gridDim.x * threads * COLORIZE_PIXELS) {
        int64_t row, column;
        pixel_place(grid, first, row, column);
        uint32_t rgb[COLORIZE_PIXELS] = {};
        const float *corner = corner_of(grid, row, column);
        bool together = grid.supersample == 1 && column + COLORIZE_PIXELS <= grid.width;
#pragma unroll
        for (int i = 0; together && i < COLORIZE_PIXELS; i++) {
            rgb[i] = single_pixel(grid, palette, corner + i);
        }
#pragma unroll 1
        for (int i = 0; !together && i < COLORIZE_PIXELS; i++) {
            uint32_t colour = 0;
            if (first + i < grid.pixels) {
                colour = mean_pixel(grid, palette, corner);
            }
            /* no index that is known at run time only: rgb stays in registers */
            rgb[0] = i == 0 ? colour : rgb[0];
            rgb[1] = i == 1 ? colour : rgb[1];
            rgb[2] = i == 2 ? colour : rgb[2];
            rgb[3] = i == 3 ? colour : rgb[3];
            bool last = ++column == grid.width;
            row += last;
            column = last ? 0 : column;
            corner = corner_of(grid, row, column);
        }
        if (INDEXED) {
            indices_write(grid, first, rgb);
        } else {
            pixels_write(grid, first, rgb);
        }
    }
}

extern "C" __global__ void __launch_bounds__(256)
    colorize_plain(const __grid_constant__ colorize_grid grid) {
    colorize<false, false>(grid);
}

extern "C" __global__ void __launch_bounds__(256)
    colorize_shaded(const __grid_constant__ colorize_grid grid) {
    colorize<true, false>(grid);
}

extern "C" __global__ void __launch_bounds__(256)
    colorize_indexed(const __grid_constant__ colorize_grid grid) {
    colorize<false, true>(grid);
}
