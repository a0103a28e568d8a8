/*
 * colorize.cu: a field to RGB, with Matplotlib's hill shading (kernels/colorize.h).
 *
 * One thread a pixel. Without shading the sum over a pixel's samples is an integer and exact.
 * Shading follows LightSource.hillshade and blend_hsv of Matplotlib with its default extremes
 * (shadow: saturation 1, value 0; light: saturation 0, value 1). Hue stays, so a channel c of a
 * colour of value v and least channel m becomes v' (1 - s' (v - c) / (v - m)): no conversion to hue
 * and back.
 */
#include "kernels/cuda/colorize_grid.h"

/* Negative (inside) and NaN are 0. */
static __device__ __forceinline__ float elevation(const float *at) {
    float value = __ldg(at);
    return value > 0.0f ? value : 0.0f;
}

static __device__ __forceinline__ unsigned colour_index(const float *thresholds, float value) {
    unsigned index = 0;
#pragma unroll
    for (unsigned half = 128; half > 0; half /= 2) {
        index += value >= thresholds[index + half] ? half : 0;
    }
    return index;
}

/* Light that falls on the sample, -1 (shadow) to 1. */
static __device__ __forceinline__ float light(const colorize_grid &grid, const float *at) {
    float dx = (elevation(at + 1) - elevation(at - 1)) * grid.half_exaggeration;
    float dy = (elevation(at - grid.stride) - elevation(at + grid.stride)) * grid.half_exaggeration;
    float length = sqrtf(fmaf(dx, dx, fmaf(dy, dy, 1.0f)));
    float intensity = (grid.up - dx * grid.east - dy * grid.north) / length;
    intensity = (intensity - grid.floor) / grid.range;
    return 2.0f * fminf(fmaxf(intensity, 0.0f), 1.0f) - 1.0f;
}

/* The colour, channels 0 to 255, moved towards white or black. */
static __device__ __forceinline__ float3 blend(uchar3 colour, float light) {
    float r = colour.x, g = colour.y, b = colour.z;
    float value = fmaxf(fmaxf(r, g), b), least = fminf(fminf(r, g), b);
    float chroma = value - least;
    float saturation = chroma > 0.0f ? chroma / value : 0.0f;
    if (light > 0.0f) {
        value = (1.0f - light) * value + light * 255.0f;
        saturation = (1.0f - light) * saturation;
    } else {
        value = (1.0f + light) * value;
        saturation = chroma > 0.0f ? (1.0f + light) * saturation - light : 0.0f;
    }
    float top = fmaxf(fmaxf(r, g), b);
    float scale = chroma > 0.0f ? fminf(fmaxf(saturation, 0.0f), 1.0f) / chroma : 0.0f;
    value = fminf(fmaxf(value, 0.0f), 255.0f);
    return make_float3(value * (1.0f - scale * (top - r)), value * (1.0f - scale * (top - g)),
                       value * (1.0f - scale * (top - b)));
}

static __device__ __forceinline__ uint8_t rounded(float sum, float samples) {
    return (uint8_t)fminf(floorf(sum / samples + 0.5f), 255.0f);
}

struct palette {
    float thresholds[256];
    uint8_t lut[768];
};

static __device__ __forceinline__ uchar3 colour_at(const palette &palette, const float *at) {
    const uint8_t *entry = palette.lut + 3 * colour_index(palette.thresholds, elevation(at));
    return make_uchar3(entry[0], entry[1], entry[2]);
}

static __device__ void plain_pixel(const colorize_grid &grid, const palette &palette,
                                   const float *corner, uint8_t *rgb) {
    uint64_t r = 0, g = 0, b = 0, samples = (uint64_t)grid.supersample * grid.supersample;
    for (int j = 0; j < grid.supersample; j++, corner += grid.stride) {
        for (int i = 0; i < grid.supersample; i++) {
            uchar3 colour = colour_at(palette, corner + i);
            r += colour.x;
            g += colour.y;
            b += colour.z;
        }
    }
    if (samples > 1) {
        r = (2 * r + samples) / (2 * samples);
        g = (2 * g + samples) / (2 * samples);
        b = (2 * b + samples) / (2 * samples);
    }
    rgb[0] = (uint8_t)r;
    rgb[1] = (uint8_t)g;
    rgb[2] = (uint8_t)b;
}

static __device__ void shaded_pixel(const colorize_grid &grid, const palette &palette,
                                    const float *corner, uint8_t *rgb) {
    float3 sum = make_float3(0.0f, 0.0f, 0.0f);
    float samples = (float)grid.supersample * (float)grid.supersample;
    for (int j = 0; j < grid.supersample; j++, corner += grid.stride) {
        for (int i = 0; i < grid.supersample; i++) {
            float3 colour = blend(colour_at(palette, corner + i), light(grid, corner + i));
            sum.x += colour.x;
            sum.y += colour.y;
            sum.z += colour.z;
        }
    }
    rgb[0] = rounded(sum.x, samples);
    rgb[1] = rounded(sum.y, samples);
    rgb[2] = rounded(sum.z, samples);
}

extern "C" __global__ void __launch_bounds__(256)
    colorize(const __grid_constant__ colorize_grid grid) {
    __shared__ palette palette;
    int thread = (int)(threadIdx.y * 32 + threadIdx.x), threads = (int)blockDim.y * 32;
    for (int i = thread; i < 256; i += threads) {
        palette.thresholds[i] = grid.thresholds[i];
    }
    for (int i = thread; i < 768; i += threads) {
        palette.lut[i] = grid.lut[i];
    }
    __syncthreads();
    for (int64_t row = blockIdx.y; row < grid.height; row += gridDim.y) {
        const float *line =
            grid.field + (row * grid.supersample + grid.apron) * grid.stride + grid.apron;
        uint8_t *rgb = grid.rgb + row * grid.width * 3;
        for (int64_t column = (int64_t)blockIdx.x * threads + thread; column < grid.width;
             column += (int64_t)gridDim.x * threads) {
            const float *corner = line + column * grid.supersample;
            if (grid.shade) {
                shaded_pixel(grid, palette, corner, rgb + 3 * column);
            } else {
                plain_pixel(grid, palette, corner, rgb + 3 * column);
            }
        }
    }
}
