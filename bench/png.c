/*
 * png.c: how fast PNGs are written and how large they are, against libpng.
 *
 *   bench_png [--rounds N] [FILE.png…]
 *
 * Without files it draws the Mandelbrot picture that a request without parameters asks for. Prints
 * a row a picture: the median time of the fast writer, bytes and times of libpng at levels 6 and 1,
 * of the fast and of the small writer, bytes as a part of level 6. One thread; pin it with taskset.
 */
#include "compute/codecs/image.h"
#include "compute/plot/colormap.h"

#include <math.h>
#include <png.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define SMALL_LEVEL 9
#define ROUNDS_MAX  1000
#define PIXELS_MAX  (1u << 26)

/* What a run of a writer gave. */
struct outcome {
    double ms; /* median */
    uint64_t bytes;
};

struct buffer {
    uint8_t *bytes;
    uint64_t capacity, size;
};

typedef void write_fn(const struct picture *picture, int level, struct buffer *out);

static void fail(const char *what) {
    fprintf(stderr, "bench_png: %s\n", what);
    exit(1);
}

static double now_ms(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

static void fast_write(const struct picture *picture, int level, struct buffer *out) {
    (void)level;
    if (png_write(picture, NULL, NULL, out->bytes, out->capacity, &out->size) != KILN_OK) {
        fail("png_write failed");
    }
}

static void small_write(const struct picture *picture, int level, struct buffer *out) {
    if (png_write_small(picture, NULL, level, out->bytes, out->capacity, &out->size) != KILN_OK) {
        fail("png_write_small failed");
    }
}

static void buffer_append(png_structp png, png_bytep data, size_t size) {
    struct buffer *out = png_get_io_ptr(png);
    if (size > out->capacity - out->size) {
        png_error(png, "larger than the bound");
    }
    memcpy(out->bytes + out->size, data, size);
    out->size += size;
}

/* libpng with the filters that it chooses itself, which is what most programs use. */
static void libpng_write(const struct picture *picture, int level, struct buffer *out) {
    static const int types[] = {0, PNG_COLOR_TYPE_GRAY, PNG_COLOR_TYPE_GRAY_ALPHA,
                                PNG_COLOR_TYPE_RGB, PNG_COLOR_TYPE_RGB_ALPHA};
    png_structp png = png_create_write_struct(PNG_LIBPNG_VER_STRING, NULL, NULL, NULL);
    png_infop info = png != NULL ? png_create_info_struct(png) : NULL;
    if (info == NULL) {
        fail("libpng failed");
    }
    size_t row = (size_t)picture->width * picture->channels * picture->depth / 8;
    out->size = 0;
    png_set_write_fn(png, out, buffer_append, NULL);
    png_set_compression_level(png, level);
    png_set_IHDR(png, info, picture->width, picture->height, (int)picture->depth,
                 types[picture->channels], 0, 0, 0);
    png_write_info(png, info);
    if (picture->depth == 16) {
        png_set_swap(png);
    }
    for (uint32_t y = 0; y < picture->height; y++) {
        png_write_row(png, (png_const_bytep)picture->pixels + y * row);
    }
    png_write_end(png, info);
    png_destroy_write_struct(&png, &info);
}

static int double_compare(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct outcome measure(write_fn *write, const struct picture *picture, int level,
                              unsigned rounds, struct buffer *out) {
    double times[ROUNDS_MAX];
    write(picture, level, out); /* warm */
    for (unsigned i = 0; i < rounds; i++) {
        double start = now_ms();
        write(picture, level, out);
        times[i] = now_ms() - start;
    }
    qsort(times, rounds, sizeof *times, double_compare);
    return (struct outcome){times[rounds / 2], out->size};
}

static void picture_bench(const char *name, const struct picture *picture, unsigned rounds) {
    struct buffer out = {
        .capacity = png_bound(picture->width, picture->height, picture->channels, picture->depth)};
    if (!out.capacity || (out.bytes = malloc(out.capacity)) == NULL) {
        fail("no memory");
    }
    unsigned few = rounds < 5 ? rounds : 5;
    struct outcome best = measure(libpng_write, picture, 6, few, &out);
    struct outcome quick = measure(libpng_write, picture, 1, few, &out);
    struct outcome small = measure(small_write, picture, SMALL_LEVEL, few, &out);
    struct outcome fast = measure(fast_write, picture, 0, rounds, &out);
    double whole = (double)best.bytes;
    printf("%-20.20s %5u×%-5u×%u×%-2u %9llu %8.2f  %5.3f %7.2f  %5.3f %7.2f  %5.3f %7.3f\n", name,
           picture->width, picture->height, picture->channels, picture->depth,
           (unsigned long long)best.bytes, best.ms, (double)quick.bytes / whole, quick.ms,
           (double)small.bytes / whole, small.ms, (double)fast.bytes / whole, fast.ms);
    free(out.bytes);
}

/* The value that is coloured: iterations until escape with a fraction, 0 inside. */
static double escape_value(double x, double y) {
    double re = 0, im = 0;
    for (int n = 1; n <= 400; n++) {
        double next = re * re - im * im + x;
        im = 2 * re * im + y;
        re = next;
        if (re * re + im * im > 0x1p20) {
            return n + 1 - log2(log2(hypot(re, im)) / log2(1024));
        }
    }
    return 0;
}

static void mandelbrot_bench(unsigned rounds) {
    enum { WIDTH = 1500, HEIGHT = 1250 };
    static uint8_t rgb[HEIGHT][WIDTH][3];
    uint8_t lut[COLORMAP_BYTES];
    colormap_fill(colormap_find("hot"), lut);
    for (int y = 0; y < HEIGHT; y++) {
        for (int x = 0; x < WIDTH; x++) {
            double value = escape_value(-2.25 + (x + 0.5) * 0.002, 1.25 - (y + 0.5) * 0.002);
            double shade = pow(fmax(value, 0) / 400, 0.3) * 256;
            memcpy(rgb[y][x], lut + 3 * (size_t)fmin(shade, 255), 3);
        }
    }
    struct picture picture = {WIDTH, HEIGHT, 3, 8, rgb, NULL, NULL};
    picture_bench("mandelbrot", &picture, rounds);
}

static uint8_t *file_load(const char *path, size_t *size) {
    FILE *file = fopen(path, "rb");
    if (file == NULL || fseek(file, 0, SEEK_END) != 0) {
        fail(path);
    }
    long end = ftell(file);
    uint8_t *bytes = end > 0 ? malloc((size_t)end) : NULL;
    rewind(file);
    if (bytes == NULL || fread(bytes, 1, (size_t)end, file) != (size_t)end) {
        fail(path);
    }
    fclose(file);
    *size = (size_t)end;
    return bytes;
}

static void file_bench(const char *path, unsigned rounds) {
    char why[192] = "no memory";
    size_t size;
    struct image_info info;
    uint8_t *bytes = file_load(path, &size);
    if (image_probe(bytes, size, FORMAT_PNG, PIXELS_MAX, &info, why, sizeof why) != KILN_OK) {
        fail(why);
    }
    size_t samples = (size_t)info.width * info.height * info.channels;
    int32_t *planes = malloc(samples * sizeof *planes);
    uint16_t *pixels = malloc(samples * sizeof *pixels);
    if (planes == NULL || pixels == NULL ||
        image_read(NULL, bytes, size, &info, SAMPLE_INT32, 0, 1, planes, why, sizeof why) !=
            KILN_OK) {
        fail(why);
    }
    planes_quantize(NULL, planes, SAMPLE_INT32, info.width, info.height, info.channels, info.depth,
                    0, 1, pixels);
    struct picture picture = {info.width, info.height, info.channels, info.depth,
                              pixels,     NULL,        NULL};
    const char *slash = strrchr(path, '/');
    picture_bench(slash != NULL ? slash + 1 : path, &picture, rounds);
    free(pixels);
    free(planes);
    free(bytes);
}

int main(int count, char **arguments) {
    unsigned rounds = 41;
    int next = 1;
    if (count > 2 && strcmp(arguments[1], "--rounds") == 0) {
        rounds = (unsigned)strtoul(arguments[2], NULL, 10);
        next = 3;
    }
    if (rounds < 1 || rounds > ROUNDS_MAX) {
        fail("--rounds takes 1 to 1000");
    }
    printf("%-20s %-17s %9s %8s  %13s  %13s  %13s\n", "", "", "libpng 6", "", "libpng 1", "small",
           "fast");
    printf("%-20s %-17s %9s %8s  %5s %7s  %5s %7s  %5s %7s\n", "picture", "w×h×channels×bits",
           "bytes", "ms", "part", "ms", "part", "ms", "part", "ms");
    if (next == count) {
        mandelbrot_bench(rounds);
    }
    for (; next < count; next++) {
        file_bench(arguments[next], rounds);
    }
    return 0;
}
