/*
 * planes.h: images as planes of numbers, for the kinds of jobs that take an image and give one.
 *
 * Threads: planes_check and planes_shape anywhere; the rest on a worker's slot thread.
 * Ownership: memory is the stream's host scratch, valid until its next begin.
 * Errors: a function that fails leaves one sentence in task->detail.
 */
#ifndef KILN_COMPUTE_JOBS_PLANES_H
#define KILN_COMPUTE_JOBS_PLANES_H

#include "compute/jobs/result.h"

/** channels × height × width elements of `sample`, row-major. */
struct planes {
    enum sample sample;
    uint32_t width, height, channels;
    uint64_t count; /* elements in all */
    size_t bytes;   /* of all elements */
    void *data;     /* host, or NULL before it is known */
};

/** How planes become integer pixels: pixel = value / scale + offset, rounded, of `depth` bits; and
    how hard a PNG of them is compressed. */
struct quantization {
    uint32_t depth;
    double offset, scale;
    int32_t compression; /* enum result_compression */
    uint32_t bits;       /* of the picture that the planes were made from, for jacobi to come back
                            to; 0: not known */
    bool told;           /* the picture carries offset, scale and bits */
};

/** Complains of the field `name` where its input is not an image, or one that this daemon does not
    take. */
void planes_check(const struct input *input, const char *name, const struct limits *limits,
                  struct complaints *complaints);

/** The input image's shape, without data. False where its size overflows. */
bool planes_shape(const struct input *input, enum sample sample, struct planes *planes);

/** Decodes one of the task's images into host scratch as scale*(pixel - offset). Errors:
   KILN_MALFORMED, KILN_NO_MEMORY, KILN_JOB_TOO_LARGE. */
enum kiln_status planes_decode(struct task *task, const struct input *input, enum sample sample,
                               double offset, double scale, struct planes *planes);

/** Bound of the encoded result of these planes; 0 on overflow. NPY elements have `element` bytes.
 */
uint64_t planes_bound(const struct planes *planes, enum format format, uint32_t depth,
                      size_t element);

/** Steps of decoding the input, of handling its elements, and of encoding them (work.h), into three
    places. `bytes`: of an encoded element. */
void planes_steps(const struct input *input, const struct planes *planes, enum format format,
                  int32_t compression, double bytes, double *steps);

/** Chooses where a result of this shape is best downloaded to, and sets planes->data: the result
    block itself where an array needs nothing more, else host scratch. */
enum kiln_status planes_place(struct task *task, struct planes *planes);

/** Smallest and largest element; both 0 where there is none, or one that is not finite. */
void planes_range(const struct planes *planes, double *low, double *high);

/** Encodes planes (downloaded to where planes_place said) as PNG, PGM or NPY of their own type. */
enum kiln_status planes_encode(struct task *task, const struct field *fields,
                               const struct planes *planes, const struct quantization *rule);

/** Type of the elements in a NumPy header. */
const char *planes_dtype(enum sample sample);

/** Writes a small grey PGM into `data` and describes it; returns its size. For canaries. */
size_t planes_canary(uint8_t *data, size_t capacity, struct input *input, void *params);

/** The formats that are read. */
extern const enum format planes_accepts[];

#endif
