/*
 * result.c: writes results into the arena: JSON frames, NumPy arrays, pictures.
 *
 * Threads: a worker's slot thread.
 */
#include "compute/jobs/result.h"

#include "compute/codecs/npy.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CANONICAL_MAX 2048 /* bytes of canonical parameters that a PNG carries */

enum kiln_status result_error(struct task *task, enum kiln_status status) {
    if (status == KILN_OK || task->detail[0])
        return status;
    const char *text = task->backend->error(task->stream);
    if (!text || !*text)
        text = status == KILN_NO_MEMORY ? "the device has not enough memory for this job now"
                                        : status_row(status)->title;
    snprintf(task->detail, sizeof task->detail, "%s", text);
    return status;
}

enum kiln_status result_no_memory(struct task *task) {
    return result_error(task, KILN_NO_MEMORY);
}

void *result_scratch(struct task *task, uint64_t count, size_t element) {
    size_t bytes;
    if (__builtin_mul_overflow(count, element, &bytes))
        return NULL;
    return task->backend->host(task->stream, bytes);
}

void result_json_open(struct task *task, const struct field *fields, struct text *text) {
    text_init(text, (char *)task->result, task->capacity);
    text_format(text, "{\"job\":\"%016" PRIx64 "\",\"device\":", task->id);
    text_json_string(text, task->device_name, strlen(task->device_name));
    text_string(text, ",\"parameters\":{");
    fields_print_json(fields, task->params, text);
    text_string(text, "}");
}

void result_timing(struct task *task, struct text *text) {
    struct timing *timing = task->timing;
    task->backend->finish(task->stream, timing);
    uint64_t now = clock_ns();
    if (task->started_ns && now > task->started_ns)
        timing->total = (double)(now - task->started_ns) * 1e-6;
    const struct {
        const char *name;
        double value;
    } rows[] = {
        {"queue", timing->queue},       {"upload", timing->upload}, {"kernel", timing->kernel},
        {"download", timing->download}, {"encode", timing->encode}, {"total", timing->total},
    };
    text_string(text, "\"timing\":{");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        text_format(text, "%s\"%s\":%.4f", i ? "," : "", rows[i].name, rows[i].value);
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
        if (header == 0)
            goto full;
    }
    if (bytes > task->capacity || header > task->capacity - bytes)
        goto full;
    task->size = header + bytes;
    return task->result + header;
full:
    snprintf(task->detail, sizeof task->detail, "the result outgrew its space");
    return NULL;
}

enum kiln_status result_picture(struct task *task, const struct field *fields,
                                const struct picture *picture) {
    if (task->format == FORMAT_PGM)
        return result_error(task, pgm_write(picture, task->result, task->capacity, &task->size));
    char canonical[CANONICAL_MAX];
    struct text text;
    text_init(&text, canonical, sizeof canonical);
    fields_print_query(fields, task->params, &text);
    const struct image_text texts[] = {
        {"Software", "kiln"},
        {"kiln:parameters", canonical},
        {NULL, NULL},
    };
    return result_error(
        task, png_write(picture, texts, task->pool, task->result, task->capacity, &task->size));
}
