/*
 * canary.c: reads a kind's canary through its own field table, check and plan. Any thread.
 */
#include "compute/jobs/canary.h"

#include "compute/codecs/pairs.h"
#include "compute/core/log.h"

#include <stdio.h>
#include <string.h>

static void set_query(struct form *form, const char *query) {
    char bytes[512], *name, *value, *at = bytes;
    bool broken;
    snprintf(bytes, sizeof bytes, "%s", query);
    char *end = bytes + strlen(bytes);
    while (pair_next(&at, end, &name, &value, &broken)) {
        form_set_text(form, name, value);
    }
}

enum kiln_status canary_prepare(const struct job_type *type, void *params, struct input *inputs,
                                uint8_t *data, size_t *data_size, struct plan *plan) {
    static const struct limits unlimited = {UINT64_MAX, UINT64_MAX, UINT64_MAX,
                                            UINT64_MAX, UINT64_MAX, UINT64_MAX};
    struct complaints complaints = {.count = 0};
    struct form form;
    memset(inputs, 0, INPUTS_MAX * sizeof *inputs);
    *data_size = 0;
    if (!type->canary_query || (type->input != INPUT_NONE && (!type->canary_input || !data))) {
        return KILN_UNSUPPORTED;
    }
    memset(params, 0, JOB_PARAMS_MAX);
    form_init(&form, type->fields, params, &complaints);
    set_query(&form, type->canary_query);
    for (size_t i = 0; i < job_type_inputs(type); i++) {
        size_t at = *data_size;
        *data_size += type->canary_input(data + at, CANARY_DATA_MAX - at, &inputs[i], params);
        inputs[i].offset += at;
    }
    /* form_finish is left out: what the client must give (arrays) was stored directly. */
    if (complaints.count == 0) {
        type->check(params, inputs, *data_size ? data : NULL, type->canary_format, &unlimited,
                    &complaints);
    }
    if (complaints.count > 0) {
        log_error("the canary of %s is refused: %s: %s", type->name, complaints.rows[0].field,
                  complaints.rows[0].reason);
        return KILN_INTERNAL;
    }
    return type->plan(params, inputs, type->canary_format, plan);
}
