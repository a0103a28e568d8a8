/*
 * job_rig.h: carries one job from its query to its result within a test: fields, check, plan, and a
 * run on the CPU backend with a result block of exactly the planned size between guard bytes, and
 * no kernels but the planned ones.
 *
 * A program that includes it calls rig_open and rig_close around its tests.
 */
#ifndef KILN_TESTS_JOB_RIG_H
#define KILN_TESTS_JOB_RIG_H

#include "compute/codecs/npy.h"
#include "compute/jobs/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RIG_GUARD 4096

struct rig {
    const struct job_type *type;
    enum format format;
    _Alignas(16) uint8_t params[JOB_PARAMS_MAX];
    struct complaints complaints;
    struct input input;
    const uint8_t *data; /* the input's bytes; the test's */
    struct limits limits;
    struct plan plan;
    struct timing timing;
    struct remarks remarks;
    char detail[JOB_DETAIL_MAX];
    uint8_t *block; /* result with guards */
    uint8_t *result;
    uint64_t size;
};

static struct device *rig_device;
static struct stream *rig_stream;
static uint32_t rig_launched; /* kernels, by the last run */

static enum kiln_status rig_launch(struct stream *stream, enum kernel_id id, const void *args) {
    rig_launched |= (uint32_t)1 << id;
    return cpu_backend.launch(stream, id, args);
}

static int rig_open(void **state) {
    const struct device_options options = {.threads = 2};
    char why[256] = "";
    (void)state;
    if (cpu_backend.open(0, &options, &rig_device, why, sizeof why) != KILN_OK) {
        return -1;
    }
    return cpu_backend.stream_create(rig_device, &rig_stream) == KILN_OK ? 0 : -1;
}

static int rig_close(void **state) {
    (void)state;
    cpu_backend.stream_destroy(rig_stream);
    cpu_backend.close(rig_device);
    return 0;
}

/* Reads "a=1&b=2" through the field table, without checking. */
static inline void rig_init(struct rig *rig, const struct job_type *type, enum format format,
                            const char *query) {
    struct form form;
    memset(rig, 0, sizeof *rig);
    rig->type = type;
    rig->format = format;
    rig->limits = (struct limits){1u << 26, 1u << 22, 1000000, 1000000, 1000000, 1u << 30};
    form_init(&form, type->fields, rig->params, &rig->complaints);
    char *copy = strdup(query), *rest = copy, *pair;
    assert_non_null(copy);
    while ((pair = strsep(&rest, "&")) != NULL && *pair) {
        char *equals = strchr(pair, '=');
        assert_non_null(equals);
        *equals = '\0';
        form_set_text(&form, pair, equals + 1);
    }
    free(copy);
    form_finish(&form);
}

/* The input image; `data` stays the test's. */
static inline void rig_input(struct rig *rig, const void *data, size_t size) {
    char why[128];
    rig->data = data;
    rig->input = (struct input){.kind = INPUT_IMAGE, .size = size};
    enum kiln_status status = image_probe(data, size, FORMAT_NONE, rig->limits.max_pixels,
                                          &rig->input.image, why, sizeof why);
    if (status != KILN_OK) {
        fail_msg("probe: %s", why);
    }
    rig->input.format = rig->input.image.format;
}

static inline void rig_check(struct rig *rig) {
    rig->type->check(rig->params, &rig->input, rig->data, rig->format, &rig->limits,
                     &rig->complaints);
}

/* Plans and runs a job that must pass its check; finish is called as a worker does. */
static inline enum kiln_status rig_run(struct rig *rig) {
    rig_check(rig);
    for (size_t i = 0; i < rig->complaints.count; i++) {
        print_message("%s %s\n", rig->complaints.rows[i].field, rig->complaints.rows[i].reason);
    }
    assert_int_equal(rig->complaints.count, 0);
    assert_int_equal(rig->type->plan(rig->params, &rig->input, rig->format, &rig->plan), KILN_OK);
    uint64_t room = (rig->plan.result_bytes + 4095) / 4096 * 4096;
    rig->block = aligned_alloc(4096, room + 2 * RIG_GUARD);
    assert_non_null(rig->block);
    memset(rig->block, 0xA5, room + 2 * RIG_GUARD);
    rig->result = rig->block + RIG_GUARD;
    struct backend backend = cpu_backend;
    backend.launch = rig_launch;
    rig_launched = 0;
    struct task task = {
        .backend = &backend,
        .stream = rig_stream,
        .params = rig->params,
        .input = &rig->input,
        .data = rig->data,
        .format = rig->format,
        .result = rig->result,
        .capacity = rig->plan.result_bytes,
        .device_name = "cpu:0",
        .id = {.bytes = {0x12, 0x34, 0xab, 0xcd}},
        .timing = &rig->timing,
        .started_ns = clock_ns(),
    };
    assert_int_equal(cpu_backend.begin(rig_stream, NULL), KILN_OK);
    enum kiln_status status = rig->type->run(&task);
    cpu_backend.finish(rig_stream, &rig->timing);
    rig->size = task.size;
    rig->remarks = task.remarks;
    memcpy(rig->detail, task.detail, sizeof rig->detail);
    assert_true(rig->size <= rig->plan.result_bytes);
    assert_int_equal(rig_launched & ~rig->plan.kernels, 0);
    for (size_t i = 0; i < RIG_GUARD; i++) {
        assert_int_equal(rig->block[i], 0xA5);
        assert_int_equal(rig->result[room + i], 0xA5);
    }
    return status;
}

static inline void rig_finish(struct rig *rig) {
    free(rig->block);
    rig->block = NULL;
}

/* Runs a job without input to its end. */
static inline void rig_make(struct rig *rig, const struct job_type *type, enum format format,
                            const char *query) {
    rig_init(rig, type, format, query);
    assert_int_equal(rig_run(rig), KILN_OK);
}

/* The same for an image as input. */
static inline void rig_turn(struct rig *rig, const struct job_type *type, enum format format,
                            const char *query, const void *data, size_t size) {
    rig_init(rig, type, format, query);
    rig_input(rig, data, size);
    assert_int_equal(rig_run(rig), KILN_OK);
}

/* The result's elements; it must be NPY of this kind, size and shape (0: no third dimension). */
static inline const void *rig_array(const struct rig *rig, char kind, uint32_t item,
                                    uint64_t height, uint64_t width, uint64_t channels) {
    struct npy npy;
    char why[128];
    assert_int_equal(npy_parse(rig->result, rig->size, true, &npy, why, sizeof why), KILN_OK);
    assert_int_equal(npy.kind, kind);
    assert_int_equal(npy.item, item);
    assert_int_equal(npy.dimensions, channels ? 3 : 2);
    assert_int_equal(npy.shape[0], height);
    assert_int_equal(npy.shape[1], width);
    if (channels) {
        assert_int_equal(npy.shape[2], channels);
    }
    assert_false(npy.fortran);
    assert_int_equal(npy.data % 64, 0);
    assert_int_equal(rig->size - npy.data, npy.count * item);
    return rig->result + npy.data;
}

/* The canonical parameters, in memory that the next call reuses. */
static inline const char *rig_canonical(const struct rig *rig) {
    static char buffer[2048];
    struct text text;
    text_init(&text, buffer, sizeof buffer);
    fields_print_query(rig->type->fields, rig->params, &text);
    assert_false(text.full);
    return buffer;
}

#endif
