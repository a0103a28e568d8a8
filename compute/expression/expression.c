/*
 * expression.c: from text to program (expression.h): inputs are checked, the text is read to a
 * graph, the graph is scheduled, and what came out is validated like a stranger's.
 */
#include "compute/expression/expression.h"

#include "compute/expression/schedule.h"
#include "compute/expression/validate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct workspace {
    struct graph graph;
    struct schedule schedule;
};

static bool name_good(const char *name) {
    size_t size = strlen(name);
    for (size_t i = 0; i < size; i++) {
        char c = name[i], lower = (char)(c | 0x20);
        bool letter = (lower >= 'a' && lower <= 'z') || c == '_';
        if (!letter && (i == 0 || c < '0' || c > '9')) {
            return false;
        }
    }
    return size > 0 && size < EXPRESSION_NAME_MAX;
}

/* NULL, or what is wrong with an array. */
static const char *input_wrong(const struct expression_input *inputs, size_t number) {
    const struct expression_input *input = &inputs[number];
    int64_t reach = 1;
    if (!name_good(input->name)) {
        return "its name is not letters, digits and _ (at most 63, no digit first)";
    }
    for (size_t i = 0; i < number; i++) {
        if (strcmp(inputs[i].name, input->name) == 0) {
            return "its name stands twice";
        }
    }
    if ((unsigned)input->type >= EXPRESSION_TYPE_COUNT || input->dims < 0 ||
        input->dims > EXPRESSION_DIMS) {
        return "it has more than 8 dimensions, or no type";
    }
    for (int i = 0; i < input->dims; i++) {
        int64_t n = input->shape[i], stride = input->strides[i], grown;
        if (n < 0 || (n > 1 && stride < 0) ||
            __builtin_mul_overflow(n > 1 ? n - 1 : 0, n > 1 ? stride : 0, &grown) ||
            __builtin_add_overflow(reach, grown, &reach) || reach > EXPRESSION_ELEMENTS) {
            return "its shape or strides are too large, or negative";
        }
    }
    return NULL;
}

static enum kiln_status fail(struct expression_error *error, const char *format, const char *name,
                             const char *why) {
    error->column = 0;
    snprintf(error->text, sizeof error->text, format, name, why);
    return KILN_INVALID;
}

static enum kiln_status compile(struct workspace *work, const char *text, size_t size,
                                struct expression_program *program,
                                struct expression_names *names) {
    struct results results;
    parser_run(&work->graph, text, size, &results, names);
    if (!work->graph.failed) {
        schedule_run(&work->schedule, &work->graph, &results, program);
    }
    return work->graph.failed ? KILN_INVALID : KILN_OK;
}

enum kiln_status expression_compile(const char *text, size_t size,
                                    const struct expression_input *inputs, size_t count,
                                    struct expression_program *program,
                                    struct expression_names *names,
                                    struct expression_error *error) {
    const char *why;
    memset(error, 0, sizeof *error);
    memset(names, 0, sizeof *names);
    if (count > EXPRESSION_INPUTS) {
        return fail(error, "there are more than 16 arrays%s%s", "", "");
    }
    for (size_t i = 0; i < count; i++) {
        if ((why = input_wrong(inputs, i)) != NULL) {
            return fail(error, "array \"%.64s\": %s", inputs[i].name, why);
        }
    }
    if (size > EXPRESSION_TEXT_MAX) {
        return fail(error, "the text is longer than 4096 bytes%s%s", "", "");
    }
    struct workspace *work = calloc(1, sizeof *work);
    if (work == NULL) {
        return KILN_NO_MEMORY;
    }
    work->graph.inputs = inputs;
    work->graph.input_count = count;
    work->graph.error = error;
    enum kiln_status status = compile(work, text, size, program, names);
    free(work);
    if (status == KILN_OK && (why = expression_validate(program)) != NULL) {
        return fail(error, "the program is not sound: %s%s", why, "");
    }
    return status;
}
