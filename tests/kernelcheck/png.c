/*
 * png.c: checks of the kernel `png`: the stream's bytes must be those of png_write.
 */
#include "kernels/png.h"
#include "compute/codecs/image.h"
#include "tests/kernelcheck/check.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef void fill_fn(struct check *check, uint8_t *pixels, size_t width, size_t height);

static void noise_fill(struct check *check, uint8_t *pixels, size_t width, size_t height) {
    for (size_t i = 0; i < width * height; i++) {
        pixels[i] = (uint8_t)check_random(check);
    }
}

static void flat_fill(struct check *check, uint8_t *pixels, size_t width, size_t height) {
    memset(pixels, check_pick(check, 256), width * height);
}

/* Bands of colours with a flat middle, as an escape picture has. */
static void rings_fill(struct check *check, uint8_t *pixels, size_t width, size_t height) {
    double x0 = check_uniform(check, 0.3, 0.7), y0 = check_uniform(check, 0.3, 0.7);
    for (size_t y = 0; y < height; y++) {
        for (size_t x = 0; x < width; x++) {
            double u = (double)x / (double)width - x0, v = (double)y / (double)height - y0;
            double value = u * u + v * v;
            pixels[y * width + x] =
                value < 0.02 ? 0 : (uint8_t)fmin(20 / (value + 0.06) + (double)(x & y & 1), 255);
        }
    }
}

static void ramp_fill(struct check *check, uint8_t *pixels, size_t width, size_t height) {
    int step = 1 + check_pick(check, 7);
    for (size_t i = 0; i < width * height; i++) {
        pixels[i] = (uint8_t)(i / (size_t)step);
    }
}

/* Runs of all lengths around those that are cut, and of few others. */
static void runs_fill(struct check *check, uint8_t *pixels, size_t width, size_t height) {
    static const int lengths[] = {1,   2,   5,   6,   7,   8,   31,  32,  33,  64,  257, 258,
                                  259, 260, 261, 262, 263, 290, 515, 516, 517, 518, 519, 520};
    size_t pixel = 0;
    while (pixel < width * height) {
        int length = lengths[check_pick(check, 24)] + check_pick(check, 3);
        uint8_t colour = (uint8_t)check_pick(check, 5);
        for (; length > 0 && pixel < width * height; length--) {
            pixels[pixel++] = colour;
        }
    }
}

/* Colours twice as rare each, so that codes become longer than they may. */
static void steep_fill(struct check *check, uint8_t *pixels, size_t width, size_t height) {
    for (size_t i = 0; i < width * height; i++) {
        pixels[i] = (uint8_t)__builtin_clzll(check_random(check) | 1);
    }
}

/* Columns: each row is the one above, but for specks. */
static void columns_fill(struct check *check, uint8_t *pixels, size_t width, size_t height) {
    for (size_t x = 0; x < width; x++) {
        pixels[x] = (uint8_t)check_random(check);
    }
    for (size_t i = width; i < width * height; i++) {
        pixels[i] = check_pick(check, 500) ? pixels[i - width] : (uint8_t)check_random(check);
    }
}

static const struct {
    const char *name;
    fill_fn *fill;
} fills[] = {{"rings", rings_fill},    {"noise", noise_fill}, {"flat", flat_fill},
             {"ramp", ramp_fill},      {"runs", runs_fill},   {"steep", steep_fill},
             {"columns", columns_fill}};
#define FILLS (sizeof fills / sizeof fills[0])

/* The IDAT chunk's data of the file that png_write makes. */
static const uint8_t *reference(struct check *check, const uint8_t *pixels, size_t width,
                                size_t height, uint64_t *size) {
    uint8_t palette[768] = {0};
    struct picture picture = {
        (uint32_t)width, (uint32_t)height, 1, 8, pixels, palette, NULL,
    };
    uint64_t capacity = png_bound((uint32_t)width, (uint32_t)height, 1, 8);
    uint8_t *file = check_alloc(check, capacity);
    if (png_write(&picture, NULL, NULL, file, capacity, size) != KILN_OK) {
        check_fail(check, "png_write failed");
        return NULL;
    }
    const uint8_t *at = file + 8;
    while (memcmp(at + 4, "IDAT", 4) != 0) {
        at += 12 + ((size_t)at[0] << 24 | (size_t)at[1] << 16 | (size_t)at[2] << 8 | at[3]);
    }
    *size = (uint64_t)at[0] << 24 | (uint64_t)at[1] << 16 | (uint64_t)at[2] << 8 | at[3];
    return at + 8;
}

/* Picture number `at`: its stream and size are outputs 2 at and 2 at + 1. */
static void compare(struct check *check, int at, const uint8_t *should, uint64_t size,
                    size_t offset) {
    const uint8_t *got = (const uint8_t *)check_result(check, 2 * at) + offset;
    uint64_t told;
    memcpy(&told, check_result(check, 2 * at + 1), sizeof told);
    if (told != size) {
        check_fail(check, "%llu bytes, should be %llu", (unsigned long long)told,
                   (unsigned long long)size);
    }
    for (uint64_t i = 0; i < size && i < told; i++) {
        if (got[i] != should[i]) {
            check_fail(check, "byte %llu of %llu is %02x, should be %02x", (unsigned long long)i,
                       (unsigned long long)size, got[i], should[i]);
            return;
        }
    }
}

static struct png_target target_make(struct check *check, size_t offset, uint64_t capacity) {
    uint8_t *out = check_output(check, offset + capacity);
    return (struct png_target){
        .stream = out != NULL ? out + offset : NULL,
        .capacity = capacity,
        .size = check_output(check, sizeof(uint64_t)),
    };
}

/* Several pictures, one below the other. */
static void run_pictures(struct check *check, size_t width, size_t height, int count) {
    check_begin(check, "%d pictures of %zux%zu", count, width, height);
    uint8_t *pixels = check_alloc(check, (size_t)count * width * height);
    const uint8_t *should[GROUP_MAX];
    uint64_t sizes[GROUP_MAX];
    for (int i = 0; i < count; i++) {
        uint8_t *picture = pixels + (size_t)i * width * height;
        fills[check_pick(check, (int)FILLS)].fill(check, picture, width, height);
        should[i] = reference(check, picture, width, height, &sizes[i]);
    }
    struct png_args args = {
        .width = (int32_t)width,
        .height = (int32_t)height,
        .pictures = count,
        .indices = check_input(check, pixels, (size_t)count * width * height),
    };
    for (int i = 0; i < count; i++) {
        args.target[i] = target_make(check, (size_t)i, sizes[i]);
    }
    if (check_launch(check, KERNEL_PNG, &args)) {
        for (int i = 0; i < count; i++) {
            compare(check, i, should[i], sizes[i], (size_t)i);
        }
    }
    check_end(check);
}

static void run_groups(struct check *check) {
    static const size_t sizes[][2] = {{1, 1}, {1, 3}, {3, 5}, {256, 256}, {255, 301}, {65536, 3}};
    check_group(check, "several pictures");
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        for (int count = 1; count <= GROUP_MAX; count += check->quick ? 5 : 3) {
            run_pictures(check, sizes[i][0], sizes[i][1], count);
        }
    }
    check_group_end(check);
}

/* `less`: bytes of room that are missing. */
static void run_case(struct check *check, size_t width, size_t height, size_t fill, size_t offset,
                     uint64_t less) {
    check_begin(check, "%zux%zu, %s, stream %zu bytes into its output, %llu bytes too few", width,
                height, fills[fill].name, offset, (unsigned long long)less);
    uint8_t *pixels = check_alloc(check, width * height);
    fills[fill].fill(check, pixels, width, height);
    uint64_t size = 0, bound = png_stream_bound(width, height);
    const uint8_t *should = reference(check, pixels, width, height, &size);
    if (size > bound) {
        check_fail(check, "%llu bytes are more than the bound", (unsigned long long)size);
    }
    struct png_args args = {
        .width = (int32_t)width,
        .height = (int32_t)height,
        .pictures = 1,
        .indices = check_input(check, pixels, width * height),
        .target[0] = target_make(check, offset, size - less),
    };
    if (check_launch(check, KERNEL_PNG, &args)) {
        if (less == 0) {
            compare(check, 0, should, size, offset);
        } else if (*(const uint64_t *)check_result(check, 1) != 0) {
            check_fail(check, "fits where it cannot");
        }
    }
    check_end(check);
}

static void run_sizes(struct check *check) {
    static const size_t sizes[][2] = {
        {1, 1},     {1, 2},     {2, 1},     {3, 5},      {7, 9},      {1, 40000}, {40000, 1},
        {2, 30001}, {5, 11000}, {256, 256}, {255, 257},  {1500, 260}, {333, 301}, {16383, 5},
        {16382, 7}, {32766, 3}, {32767, 3}, {32768, 3},  {32769, 3},  {65534, 3}, {65535, 2},
        {65536, 3}, {65537, 2}, {98304, 2}, {131071, 3}, {1021, 97}};
    size_t count = check->quick ? 14 : sizeof sizes / sizeof sizes[0];
    check_group(check, "sizes");
    for (size_t i = 0; i < count; i++) {
        for (size_t fill = 0; fill < FILLS; fill++) {
            run_case(check, sizes[i][0], sizes[i][1], fill, (i + fill) % 19, 0);
        }
    }
    check_group_end(check);
}

static void run_random(struct check *check) {
    check_group(check, "random");
    for (int i = 0; i < (check->quick ? 6 : 120); i++) {
        size_t width = (size_t)pow(2, check_uniform(check, 0, 12));
        size_t height = (size_t)pow(2, check_uniform(check, 0, 17.5)) / width + 1;
        run_case(check, width, height, (size_t)check_pick(check, (int)FILLS),
                 (size_t)check_pick(check, 40), 0);
    }
    check_group_end(check);
}

/* Too little room: nothing is written behind it, and the size tells. */
static void run_room(struct check *check) {
    static const uint64_t missing[] = {1, 2, 4, 5, 6, 100, 1000};
    check_group(check, "too little room");
    for (size_t i = 0; i < sizeof missing / sizeof missing[0]; i++) {
        run_case(check, 300, 301, i % FILLS, i, missing[i]);
    }
    check_group_end(check);
}

static void run_wide(struct check *check) {
    struct png_args args = {.width = PNG_WIDTH_MAX + 1, .height = 1, .pictures = 1};
    check_group(check, "too wide");
    check_begin(check, "%d columns", args.width);
    args.indices = check_input(check, check_alloc(check, PNG_WIDTH_MAX + 1), PNG_WIDTH_MAX + 1);
    args.target[0] = target_make(check, 0, 1024);
    if (check->backend->phase(check->stream, PHASE_KERNEL) != KILN_OK ||
        check->backend->launch(check->stream, KERNEL_PNG, &args) != KILN_UNSUPPORTED) {
        check_fail(check, "not refused");
    }
    check_end(check);
    check_group_end(check);
}

static void run(struct check *check) {
    run_sizes(check);
    run_random(check);
    run_room(check);
    run_groups(check);
    run_wide(check);
    if (check->quick) {
        return;
    }
    check_group(check, "large");
    run_case(check, 8192, 8192, 0, 3, 0);
    run_case(check, 1500, 1250, 0, 1, 0);
    check_group_end(check);
}

static void bench(struct check *check) {
    static const size_t sizes[][2] = {{256, 256}, {1500, 1250}, {8192, 8192}};
    for (size_t i = 0; i < 3; i++) {
        for (size_t fill = 0; fill < FILLS; fill++) {
            size_t width = sizes[i][0], height = sizes[i][1];
            check_begin(check, "bench");
            uint8_t *pixels = check_alloc(check, width * height);
            fills[fill].fill(check, pixels, width, height);
            uint64_t size = 0;
            reference(check, pixels, width, height, &size);
            struct png_args args = {
                .width = (int32_t)width,
                .height = (int32_t)height,
                .pictures = 1,
                .indices = check_input(check, pixels, width * height),
                .target[0] = target_make(check, 0, size),
            };
            double ms = check_bench(check, KERNEL_PNG, &args);
            printf("png %5zux%-5zu %-8s %9llu bytes %8.4f ms %9.1f Mpixels/s\n", width, height,
                   fills[fill].name, (unsigned long long)size, ms,
                   (double)(width * height) / ms / 1e3);
            check_end(check);
        }
    }
}

const struct kernel_check png_check = {.name = "png", .run = run, .bench = bench};
