/*
 * planes.c: planes to interleaved pixels and elements (image.h).
 *
 * The loops have no branches, so that the compiler can vectorise them: rounding half to even is the
 * addition of 2^52 to a value that was clamped before (it has no room for a fraction there), and
 * the comparisons are written so that NaN takes the zero.
 * Thread: any.
 */
#include "compute/codecs/image.h"

#include "compute/core/thread_pool.h"

#include <assert.h>
#include <stdatomic.h>
#include <string.h>

#define QUANTIZE(name, sample_type, pixel_type, top)                                               \
    static uint64_t name(const void *plane, size_t count, size_t stride, double offset,            \
                         double scale, void *pixels) {                                             \
        const sample_type *in = plane;                                                             \
        pixel_type *out = pixels;                                                                  \
        uint64_t fit = 0;                                                                          \
        for (size_t i = 0; i < count; i++) {                                                       \
            double value = (double)in[i] / scale + offset;                                         \
            fit += (value >= -0.5) & (value < (top) + 0.5);                                        \
            value = value > 0.0 ? value : 0.0;                                                     \
            value = value < (top) ? value : (top);                                                 \
            out[i * stride] = (pixel_type)(int32_t)(value + 0x1p52 - 0x1p52);                      \
        }                                                                                          \
        return count - fit;                                                                        \
    }

QUANTIZE(quantize_int32_8, int32_t, uint8_t, 255.0)
QUANTIZE(quantize_int32_16, int32_t, uint16_t, 65535.0)
QUANTIZE(quantize_float_8, float, uint8_t, 255.0)
QUANTIZE(quantize_float_16, float, uint16_t, 65535.0)
QUANTIZE(quantize_double_8, double, uint8_t, 255.0)
QUANTIZE(quantize_double_16, double, uint16_t, 65535.0)

/* Elements of all planes on their way, in chunks that lie in one plane each. */
#define CHUNK ((size_t)1 << 17)

struct conversion {
    const char *in;
    char *out;
    size_t count, chunks; /* of one plane */
    size_t from, to;      /* bytes of an element in a plane, and in the pixels */
    uint32_t channels;
    double offset, scale;
    uint64_t (*quantize)(const void *plane, size_t count, size_t stride, double offset,
                         double scale, void *pixels);
    atomic_ullong clamped;
    void (*interleave)(const void *plane, size_t count, size_t stride, void *elements);
};

static void chunk_run(void *context, size_t chunk, int slot) {
    struct conversion *way = context;
    size_t channel = chunk / way->chunks, first = chunk % way->chunks * CHUNK;
    size_t left = way->count - first, count = left < CHUNK ? left : CHUNK;
    const char *in = way->in + (channel * way->count + first) * way->from;
    char *out = way->out + (first * way->channels + channel) * way->to;
    (void)slot;
    if (way->quantize != NULL) {
        atomic_fetch_add_explicit(
            &way->clamped, way->quantize(in, count, way->channels, way->offset, way->scale, out),
            memory_order_relaxed);
    } else {
        way->interleave(in, count, way->channels, out);
    }
}

static void chunks_run(struct conversion *way, struct thread_pool *pool) {
    way->chunks = (way->count + CHUNK - 1) / CHUNK;
    size_t all = way->chunks * way->channels;
    if (pool != NULL) {
        thread_pool_run(pool, chunk_run, way, all);
    } else {
        for (size_t i = 0; i < all; i++) {
            chunk_run(way, i, 0);
        }
    }
}

uint64_t planes_quantize(struct thread_pool *pool, const void *planes, enum sample sample,
                         uint32_t width, uint32_t height, uint32_t channels, uint32_t depth,
                         double offset, double scale, void *pixels) {
    static const struct {
        uint64_t (*run[2])(const void *plane, size_t count, size_t stride, double offset,
                           double scale, void *pixels);
        size_t element;
    } rows[] = {
        [SAMPLE_INT32] = {{quantize_int32_8, quantize_int32_16}, sizeof(int32_t)},
        [SAMPLE_FLOAT] = {{quantize_float_8, quantize_float_16}, sizeof(float)},
        [SAMPLE_DOUBLE] = {{quantize_double_8, quantize_double_16}, sizeof(double)},
    };
    assert(depth == 8 || depth == 16);
    struct conversion way = {.in = planes,
                             .out = pixels,
                             .count = (size_t)width * height,
                             .from = rows[sample].element,
                             .to = depth / 8,
                             .channels = channels,
                             .offset = offset,
                             .scale = scale,
                             .quantize = rows[sample].run[depth == 16]};
    chunks_run(&way, pool);
    return atomic_load(&way.clamped);
}

#define INTERLEAVE(name, type)                                                                     \
    static void name(const void *plane, size_t count, size_t stride, void *elements) {             \
        const type *in = plane;                                                                    \
        type *out = elements;                                                                      \
        for (size_t i = 0; i < count; i++) {                                                       \
            out[i * stride] = in[i];                                                               \
        }                                                                                          \
    }

INTERLEAVE(interleave_1, uint8_t)
INTERLEAVE(interleave_2, uint16_t)
INTERLEAVE(interleave_4, uint32_t)
INTERLEAVE(interleave_8, uint64_t)

void planes_interleave(struct thread_pool *pool, const void *planes, size_t element, uint32_t width,
                       uint32_t height, uint32_t channels, void *out) {
    static void (*const run[9])(const void *plane, size_t count, size_t stride, void *elements) = {
        [1] = interleave_1, [2] = interleave_2, [4] = interleave_4, [8] = interleave_8};
    assert(element <= 8 && run[element] != NULL);
    struct conversion way = {.in = planes,
                             .out = out,
                             .count = (size_t)width * height,
                             .from = element,
                             .to = element,
                             .channels = channels,
                             .interleave = run[element]};
    chunks_run(&way, pool);
}
