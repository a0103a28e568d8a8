/*
 * result.c: writes results into the arena: JSON frames, NumPy arrays, pictures.
 *
 * Threads: a worker's slot thread.
 */
#include "compute/jobs/result.h"

#include "compute/codecs/npy.h"
#include "compute/core/thread_pool.h"
#include "kernels/png.h"

#include <stdio.h>
#include <string.h>

#define SMALL_LEVEL 9 /* libdeflate's: higher ones take far longer for little */

/* Time of encoding, in that of a PNG's byte written fast: the same byte written small, a number as
   text, a pixel's byte rounded, a byte as it is. */
#define STEPS_SMALL  10
#define STEPS_NUMBER 12
#define STEPS_PIXEL  0.4
#define STEPS_RAW    0.02

const char *const result_compressions[] = {"fast", "small", NULL};

void result_compression_settle(int32_t *compression, enum format format) {
    if (format != FORMAT_PNG) {
        *compression = COMPRESSION_FAST;
    }
}

double result_steps(enum format format, int32_t compression, double samples, double bytes) {
    switch (format) {
    case FORMAT_PNG:
        return samples * bytes * (compression == COMPRESSION_SMALL ? STEPS_SMALL : 1);
    case FORMAT_CSV:
    case FORMAT_JSON:
        return samples * STEPS_NUMBER;
    case FORMAT_PGM:
        return samples * bytes * STEPS_PIXEL;
    default:
        return samples * bytes * STEPS_RAW;
    }
}

enum kiln_status result_error(struct task *task, enum kiln_status status) {
    if (status == KILN_OK || task->detail[0]) {
        return status;
    }
    const char *text = task->backend->error(task->stream);
    if (text == NULL || !*text) {
        text = status == KILN_NO_MEMORY ? "the device has not enough memory for this job now"
                                        : status_row(status)->title;
    }
    snprintf(task->detail, sizeof task->detail, "%s", text);
    return status;
}

enum kiln_status result_no_memory(struct task *task) {
    return result_error(task, KILN_NO_MEMORY);
}

void *result_scratch(struct task *task, uint64_t count, size_t element) {
    size_t bytes;
    if (__builtin_mul_overflow(count, element, &bytes)) {
        return NULL;
    }
    return task->backend->host(task->stream, bytes);
}

void result_json_open(struct task *task, const struct field *fields, struct text *text) {
    text_init(text, (char *)task->result, task->capacity);
    char id[JOB_ID_TEXT];
    job_id_print(&task->id, id);
    text_format(text, "{\"job\":\"%s\",\"device\":", id);
    text_json_string(text, task->device_name, strlen(task->device_name));
    text_string(text, ",\"parameters\":{");
    fields_print_json(fields, task->params, text);
    text_string(text, "}");
}

void result_timing(struct task *task, struct text *text) {
    struct timing *timing = task->timing;
    task->backend->finish(task->stream, timing);
    uint64_t now = clock_ns();
    if (task->started_ns && now > task->started_ns) {
        timing->total = (double)(now - task->started_ns) * 1e-6;
    }
    const struct {
        const char *name;
        double value;
    } rows[] = {
        {"queue", timing->queue},       {"upload", timing->upload}, {"kernel", timing->kernel},
        {"download", timing->download}, {"encode", timing->encode}, {"total", timing->total},
    };
    text_string(text, "\"timing\":{");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        text_format(text, "%s\"%s\":%.4f", i ? "," : "", rows[i].name, rows[i].value);
    }
    text_string(text, "}");
}

enum kiln_status result_json_close(struct task *task, struct text *text) {
    text_string(text, ",");
    result_timing(task, text);
    text_string(text, "}\n");
    if (text->full) {
        snprintf(task->detail, sizeof task->detail, "the JSON result outgrew its space");
        return KILN_INTERNAL;
    }
    task->size = text->size;
    return KILN_OK;
}

void *result_array(struct task *task, const char *dtype, const uint64_t *shape, uint32_t dimensions,
                   uint64_t bytes) {
    size_t header = 0;
    if (task->format != FORMAT_RAW) {
        header = npy_write_header(task->result, task->capacity, dtype, shape, dimensions);
        if (header == 0) {
            goto full;
        }
    }
    if (bytes > task->capacity || header > task->capacity - bytes) {
        goto full;
    }
    task->size = header + bytes;
    return task->result + header;
full:
    snprintf(task->detail, sizeof task->detail, "the result outgrew its space");
    return NULL;
}

/* What a PNG says of itself. */
struct texts {
    char canonical[CANONICAL_MAX];
    struct image_text list[3];
};

static const struct image_text *texts_fill(struct texts *texts, const struct task *task,
                                           const struct field *fields) {
    struct text text;
    text_init(&text, texts->canonical, sizeof texts->canonical);
    fields_print_query(fields, task->params, &text);
    texts->list[0] = (struct image_text){"Software", "kiln"};
    texts->list[1] = (struct image_text){"kiln:parameters", texts->canonical};
    texts->list[2] = (struct image_text){NULL, NULL};
    return texts->list;
}

enum kiln_status result_picture(struct task *task, const struct field *fields,
                                const struct picture *picture, int32_t compression) {
    if (task->format == FORMAT_PGM) {
        return result_error(task, pgm_write(picture, task->result, task->capacity, &task->size));
    }
    struct texts texts;
    const struct image_text *list = texts_fill(&texts, task, fields);
    if (compression == COMPRESSION_SMALL) {
        return result_error(task, png_write_small(picture, list, SMALL_LEVEL, task->result,
                                                  task->capacity, &task->size));
    }
    return result_error(
        task, png_write(picture, list, task->pool, task->result, task->capacity, &task->size));
}

bool result_png_offered(const struct task *task, const struct picture *picture,
                        int32_t compression) {
    const struct backend *backend = task->backend;
    return task->format == FORMAT_PNG && compression == COMPRESSION_FAST &&
           picture->palette != NULL && picture->width <= PNG_WIDTH_MAX &&
           (backend->kernels & KERNEL_BIT(PNG)) != 0 &&
           backend->mapped(task->stream, task->result, task->capacity) != NULL;
}

/* Enqueues the encoder, which writes to the frames and tells how much, and waits for it. */
static enum kiln_status pngs_launch(struct task *tasks, size_t count, const struct picture *picture,
                                    const struct png_frame *frames, uint64_t *sizes) {
    const struct backend *backend = tasks->backend;
    struct stream *stream = tasks->stream;
    struct png_args args = {
        .width = (int32_t)picture->width,
        .height = (int32_t)picture->height,
        .pictures = (int32_t)count,
        .indices = picture->pixels,
    };
    for (size_t i = 0; i < count; i++) {
        args.target[i] = (struct png_target){
            .stream = backend->mapped(stream, frames[i].data, frames[i].room),
            .capacity = frames[i].room,
            .size = backend->mapped(stream, &sizes[i], sizeof sizes[i]),
        };
        if (args.target[i].stream == NULL || args.target[i].size == NULL) {
            return KILN_INTERNAL;
        }
        sizes[i] = 0;
    }
    enum kiln_status status = backend->phase(stream, PHASE_ENCODE);
    if (status == KILN_OK) {
        status = backend->launch(stream, KERNEL_PNG, &args);
    }
    return status == KILN_OK ? backend->wait(stream) : status;
}

enum kiln_status result_pngs(struct task *tasks, size_t count, const struct field *fields,
                             const struct picture *picture) {
    struct png_frame frames[GROUP_MAX];
    struct texts texts;
    uint64_t *sizes = result_scratch(tasks, count, sizeof *sizes);
    enum kiln_status status = KILN_OK;
    if (sizes == NULL) {
        return result_no_memory(tasks);
    }
    for (size_t i = 0; status == KILN_OK && i < count; i++) {
        status = png_frame_open(picture, texts_fill(&texts, &tasks[i], fields), tasks[i].result,
                                tasks[i].capacity, &frames[i]);
    }
    if (status == KILN_OK) {
        status = pngs_launch(tasks, count, picture, frames, sizes);
    }
    for (size_t i = 0; status == KILN_OK && i < count; i++) {
        status =
            sizes[i] == 0 ? KILN_INTERNAL : png_frame_close(&frames[i], sizes[i], &tasks[i].size);
    }
    return result_error(tasks, status);
}

/* Numbers in chunks: each is printed where it could begin if all before it were as long as they can
   be, and then moved up to the end of the one before. */
enum { NUMBERS_CHUNK = 8192 };

struct numbers {
    const double *values;
    uint64_t count;
    char *base;
    size_t *sizes; /* of each chunk's text */
};

static void numbers_put(struct text *text, const double *values, uint64_t count) {
    for (uint64_t i = 0; i < count; i++) {
        if (i) {
            text_bytes(text, ",", 1);
        }
        text_double(text, values[i]);
    }
}

static void numbers_run(void *context, size_t chunk, int slot) {
    const struct numbers *numbers = context;
    uint64_t first = (uint64_t)chunk * NUMBERS_CHUNK, left = numbers->count - first;
    uint64_t count = left < NUMBERS_CHUNK ? left : NUMBERS_CHUNK;
    (void)slot;
    struct text text;
    text_init(&text, numbers->base + chunk * NUMBERS_CHUNK * RESULT_NUMBER_MAX,
              (size_t)count * RESULT_NUMBER_MAX);
    numbers_put(&text, numbers->values + first, count);
    numbers->sizes[chunk] = text.size;
}

void result_numbers(struct task *task, struct text *text, const double *values, uint64_t count) {
    size_t chunks = (size_t)((count + NUMBERS_CHUNK - 1) / NUMBERS_CHUNK), room;
    size_t *sizes = NULL;
    if (task->pool != NULL && chunks > 1 && !text->full &&
        !__builtin_mul_overflow((size_t)count, (size_t)RESULT_NUMBER_MAX, &room) &&
        room < text->capacity - text->size) {
        sizes = result_scratch(task, chunks, sizeof *sizes);
    }
    if (sizes == NULL) { /* no pool, or no room for the gaps */
        numbers_put(text, values, count);
        return;
    }
    struct numbers numbers = {values, count, text->data + text->size, sizes};
    thread_pool_run(task->pool, numbers_run, &numbers, chunks);
    for (size_t i = 0; i < chunks; i++) {
        if (i) {
            text->data[text->size++] = ',';
        }
        memmove(text->data + text->size, numbers.base + i * NUMBERS_CHUNK * RESULT_NUMBER_MAX,
                sizes[i]);
        text->size += sizes[i];
    }
    text->data[text->size] = '\0';
}
