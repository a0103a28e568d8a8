/*
 * planes.c: decodes a job's image into planes and encodes planes as the result.
 *
 * A grey result as NPY is downloaded straight behind its header; anything else passes through host
 * scratch, because its pixels are interleaved or rounded there.
 *
 * Threads: see planes.h.
 */
#include "compute/jobs/planes.h"

#include "compute/codecs/npy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const enum format planes_accepts[] = {FORMAT_PNG, FORMAT_PGM, FORMAT_NPY, FORMAT_NONE};

static const size_t element_sizes[] = {
    [SAMPLE_INT32] = sizeof(int32_t),
    [SAMPLE_FLOAT] = sizeof(float),
    [SAMPLE_DOUBLE] = sizeof(double),
};

const char *planes_dtype(enum sample sample) {
    static const char *const names[] = {
        [SAMPLE_INT32] = "<i4",
        [SAMPLE_FLOAT] = "<f4",
        [SAMPLE_DOUBLE] = "<f8",
    };
    return names[sample];
}

void planes_check(const struct input *input, const char *name, const struct limits *limits,
                  struct complaints *complaints) {
    if (complaints_about(complaints, "image", NULL)) {
        return;
    }
    if (!input || input->kind != INPUT_IMAGE || input->size == 0) {
        complaints_add(complaints, name,
                       "is missing; send an image as the request body, or as a base64 text");
        return;
    }
    const struct image_info *image = &input->image;
    uint64_t pixels = (uint64_t)image->width * image->height;
    if (pixels > limits->max_pixels)
        complaints_add(complaints, name,
                       "has %" PRIu64 " pixels; this daemon allows %" PRIu64 " (--max-pixels)",
                       pixels, limits->max_pixels);
    else if (image->width > INT32_MAX || image->height > INT32_MAX)
        complaints_add(complaints, name, "has a side of more than %d pixels", INT32_MAX);
}

bool planes_shape(const struct input *input, enum sample sample, struct planes *planes) {
    const struct image_info *image = &input->image;
    *planes = (struct planes){.sample = sample,
                              .width = image->width,
                              .height = image->height,
                              .channels = image->channels};
    uint64_t pixels = (uint64_t)image->width * image->height;
    return !__builtin_mul_overflow(pixels, image->channels, &planes->count) &&
           !__builtin_mul_overflow(planes->count, element_sizes[sample], &planes->bytes);
}

enum kiln_status planes_decode(struct task *task, const struct input *input, enum sample sample,
                               double offset, double scale, struct planes *planes) {
    if (!planes_shape(input, sample, planes))
        return result_error(task, KILN_JOB_TOO_LARGE);
    planes->data = result_scratch(task, planes->bytes, 1);
    if (!planes->data)
        return result_no_memory(task);
    return result_error(task, image_read(task->pool, task->data + input->offset, input->size,
                                         &input->image, sample, offset, scale, planes->data,
                                         task->detail, sizeof task->detail));
}

uint64_t planes_bound(const struct planes *planes, enum format format, uint32_t depth,
                      size_t element) {
    uint64_t bytes;
    switch (format) {
    case FORMAT_PNG:
        return png_bound(planes->width, planes->height, planes->channels, depth);
    case FORMAT_PGM:
        return pgm_bound(planes->width, planes->height, planes->channels, depth);
    case FORMAT_NPY:
        if (__builtin_mul_overflow(planes->count, element, &bytes))
            return 0;
        return __builtin_add_overflow(bytes, NPY_WRITE_MAX, &bytes) ? 0 : bytes;
    default:
        return RESULT_JSON_MAX;
    }
}

static void *array_open(struct task *task, const struct planes *planes) {
    const uint64_t shape[] = {planes->height, planes->width, planes->channels};
    return result_array(task, planes_dtype(planes->sample), shape, planes->channels > 1 ? 3 : 2,
                        planes->bytes);
}

enum kiln_status planes_place(struct task *task, struct planes *planes) {
    if (task->format == FORMAT_NPY && planes->channels == 1) {
        planes->data = array_open(task, planes);
        return planes->data ? KILN_OK : KILN_INTERNAL;
    }
    planes->data = result_scratch(task, planes->bytes, 1);
    return planes->data ? KILN_OK : result_no_memory(task);
}

static enum kiln_status array_encode(struct task *task, const struct planes *planes) {
    void *data = array_open(task, planes);
    if (!data)
        return KILN_INTERNAL;
    if (data != planes->data)
        planes_interleave(task->pool, planes->data, element_sizes[planes->sample], planes->width,
                          planes->height, planes->channels, data);
    return KILN_OK;
}

void planes_range(const struct planes *planes, double *low, double *high) {
    double least = INFINITY, most = -INFINITY;
    for (uint64_t i = 0; i < planes->count; i++) {
        double value = planes->sample == SAMPLE_INT32   ? ((const int32_t *)planes->data)[i]
                       : planes->sample == SAMPLE_FLOAT ? ((const float *)planes->data)[i]
                                                        : ((const double *)planes->data)[i];
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    bool good = isfinite(least) && isfinite(most);
    *low = good ? least : 0;
    *high = good ? most : 0;
}

enum kiln_status planes_encode(struct task *task, const struct field *fields,
                               const struct planes *planes, const struct quantization *rule) {
    if (task->format == FORMAT_NPY)
        return array_encode(task, planes);
    void *pixels = result_scratch(task, planes->count, rule->depth / 8);
    if (!pixels)
        return result_no_memory(task);
    const struct quantum quantum = {rule->offset, rule->scale, rule->bits};
    task->remarks.picture = true;
    task->remarks.scale = rule->told ? rule->scale : 0;
    task->remarks.clamped =
        planes_quantize(task->pool, planes->data, planes->sample, planes->width, planes->height,
                        planes->channels, rule->depth, rule->offset, rule->scale, pixels);
    const struct picture picture = {
        .width = planes->width,
        .height = planes->height,
        .channels = planes->channels,
        .depth = rule->depth,
        .pixels = pixels,
        .quantum = rule->told ? &quantum : NULL,
    };
    return result_picture(task, fields, &picture, rule->compression);
}

size_t planes_canary(uint8_t *data, size_t capacity, struct input *input, void *params) {
    enum { WIDTH = 48, HEIGHT = 32 };
    static const char head[] = "P5\n48 32\n255\n";
    size_t size = sizeof head - 1 + WIDTH * HEIGHT;
    (void)params;
    if (capacity < size)
        return 0;
    memcpy(data, head, sizeof head - 1);
    uint8_t *pixels = data + sizeof head - 1;
    for (unsigned i = 0; i < HEIGHT; i++)
        for (unsigned j = 0; j < WIDTH; j++)
            pixels[i * WIDTH + j] = (uint8_t)(i * 7 + j * j);
    *input = (struct input){
        .kind = INPUT_IMAGE,
        .format = FORMAT_PGM,
        .size = size,
        .image = {FORMAT_PGM, WIDTH, HEIGHT, 1, 8},
    };
    return size;
}
