/*
 * colorize.cu: a field to RGB, with Matplotlib's hill shading (kernels/colorize.h).
 *
 * One thread four neighbouring pixels. Without shading the sum over a pixel's samples is an integer
 * and exact. Shading follows LightSource.hillshade and blend_hsv of Matplotlib with its default
 * extremes (shadow: saturation 1, value 0; light: saturation 0, value 1). Hue stays, so a channel c
 * of a colour of value v and least channel m becomes v' (1 - s' (v - c) / (v - m)): no conversion
 * to hue and back.
 */
#include "kernels/cuda/colorize_grid.h"

/* Negative (inside) and NaN are 0. */
static __device__ __forceinline__ float elevation(const float *at) {
    float value = __ldg(at);
    return value > 0.0f ? value : 0.0f;
}

static __device__ __forceinline__ unsigned colour_index(const colorize_grid &grid,
                                                        const float *thresholds, float value) {
    float guess = 256.0f * exp2f(grid.gamma * __log2f(value * grid.inverse_limit));
    unsigned index = (unsigned)fminf(guess, 255.0f);
    while (index < 255 && value >= thresholds[index + 1]) {
        index++;
    }
    while (value < thresholds[index]) {
        index--;
    }
    return index;
}

/* Light that falls on the sample, -1 (shadow) to 1. */
static __device__ __forceinline__ float light(const colorize_grid &grid, const float *at) {
    float dx = (elevation(at + 1) - elevation(at - 1)) * grid.half_exaggeration;
    float dy = (elevation(at - grid.stride) - elevation(at + grid.stride)) * grid.half_exaggeration;
    float inverse = rsqrtf(fmaf(dx, dx, fmaf(dy, dy, 1.0f)));
    float intensity = (grid.up - dx * grid.east - dy * grid.north) * inverse;
    intensity = (intensity - grid.floor) * grid.inverse_range;
    return 2.0f * fminf(fmaxf(intensity, 0.0f), 1.0f) - 1.0f;
}

/* The colour, channels 0 to 255, moved towards white or black. */
static __device__ __forceinline__ float3 blend(uchar3 colour, float light) {
    float r = colour.x, g = colour.y, b = colour.z;
    float value = fmaxf(fmaxf(r, g), b), least = fminf(fminf(r, g), b);
    float chroma = value - least;
    float saturation = chroma > 0.0f ? __fdividef(chroma, value) : 0.0f;
    if (light > 0.0f) {
        value = (1.0f - light) * value + light * 255.0f;
        saturation = (1.0f - light) * saturation;
    } else {
        value = (1.0f + light) * value;
        saturation = chroma > 0.0f ? (1.0f + light) * saturation - light : 0.0f;
    }
    float top = fmaxf(fmaxf(r, g), b);
    float scale = chroma > 0.0f ? __fdividef(fminf(fmaxf(saturation, 0.0f), 1.0f), chroma) : 0.0f;
    value = fminf(fmaxf(value, 0.0f), 255.0f);
    return make_float3(value * (1.0f - scale * (top - r)), value * (1.0f - scale * (top - g)),
                       value * (1.0f - scale * (top - b)));
}

/* Channels 0 to 255 and a bit more, summed over samples: packed, red lowest. */
static __device__ __forceinline__ uint32_t packed(float3 sum, float share) {
    uint32_t r = (uint32_t)fminf(sum.x * share + 0.5f, 255.0f);
    uint32_t g = (uint32_t)fminf(sum.y * share + 0.5f, 255.0f);
    uint32_t b = (uint32_t)fminf(sum.z * share + 0.5f, 255.0f);
    return r | g << 8 | b << 16;
}

struct palette {
    float thresholds[256];
    uint32_t colours[256]; /* red lowest */
};

static __device__ __forceinline__ uchar3 colour_at(const colorize_grid &grid,
                                                   const palette &palette, const float *at) {
    uint32_t c = palette.colours[colour_index(grid, palette.thresholds, elevation(at))];
    return make_uchar3((uint8_t)c, (uint8_t)(c >> 8), (uint8_t)(c >> 16));
}

static __device__ __forceinline__ uint32_t plain_pixel(const colorize_grid &grid,
                                                       const palette &palette,
                                                       const float *corner) {
    uint64_t r = 0, g = 0, b = 0, samples = (uint64_t)grid.supersample * grid.supersample;
    for (int j = 0; j < grid.supersample; j++, corner += grid.stride) {
        for (int i = 0; i < grid.supersample; i++) {
            uchar3 colour = colour_at(grid, palette, corner + i);
            r += colour.x;
            g += colour.y;
            b += colour.z;
        }
    }
    r = (2 * r + samples) / (2 * samples);
    g = (2 * g + samples) / (2 * samples);
    b = (2 * b + samples) / (2 * samples);
    return (uint32_t)(r | g << 8 | b << 16);
}

static __device__ __forceinline__ uint32_t shaded_pixel(const colorize_grid &grid,
                                                        const palette &palette,
                                                        const float *corner) {
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    float samples = (float)grid.supersample * (float)grid.supersample;
    for (int j = 0; j < grid.supersample; j++, corner += grid.stride) {
        for (int i = 0; i < grid.supersample; i++) {
            float3 colour = blend(colour_at(grid, palette, corner + i), light(grid, corner + i));
            sum.x += colour.x;
            sum.y += colour.y;
            sum.z += colour.z;
        }
    }
    return packed(sum, 1.0f / samples);
}

/* A pixel of one sample. */
template <bool SHADE>
static __device__ __forceinline__ uint32_t single_pixel(const colorize_grid &grid,
                                                        const palette &palette, const float *at) {
    if (SHADE) {
        return packed(blend(colour_at(grid, palette, at), light(grid, at)), 1.0f);
    }
    return palette.colours[colour_index(grid, palette.thresholds, elevation(at))];
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

/* With INDEXED the colour of index i is i. */
template <bool SHADE, bool INDEXED>
static __device__ __forceinline__ void colorize(const colorize_grid &grid) {
    __shared__ palette palette;
    int thread = (int)(threadIdx.y * 32 + threadIdx.x), threads = (int)blockDim.y * 32;
    for (int i = thread; i < 256; i += threads) {
        const uint8_t *entry = grid.lut + 3 * i;
        palette.thresholds[i] = __ldg(grid.thresholds + i);
        palette.colours[i] = INDEXED ? i : entry[0] | entry[1] << 8 | entry[2] << 16;
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
            rgb[i] = single_pixel<SHADE>(grid, palette, corner + i);
        }
#pragma unroll 1
        for (int i = 0; !together && i < COLORIZE_PIXELS; i++) {
            uint32_t colour = 0;
            if (first + i < grid.pixels) {
                colour = SHADE ? shaded_pixel(grid, palette, corner)
                               : plain_pixel(grid, palette, corner);
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
