/*
 * schedule.c: what is kept where, and in which stage (schedule.h). stage.c writes a stage.
 */
#include "compute/expression/stage.h"

#include <string.h>

/* Whether an operand comes from memory: arrays, reductions, and what is repeated. */
static bool operand_loads(const struct graph *graph, uint16_t operand, uint8_t space) {
    const struct value *value = &graph->values[operand];
    return value->op == VALUE_INPUT || value_reduces(value) || value->shape != space;
}

/* The shape that a value is computed over. */
static uint8_t value_space(const struct graph *graph, const struct value *value) {
    return value_reduces(value) ? graph->values[value->operands[0]].shape : value->shape;
}

bool value_reduces(const struct value *value) {
    return value->op >= EXPRESSION_REDUCTION_FIRST && value->op < EXPRESSION_OP_COUNT;
}

bool value_loads(const struct graph *graph, uint16_t operand, uint8_t space) {
    return graph->values[operand].op != VALUE_CONSTANT && operand_loads(graph, operand, space);
}

/* Operands have smaller numbers than what they are for. */
static void needed_find(struct schedule *schedule, const struct results *results) {
    const struct graph *graph = schedule->graph;
    for (size_t i = 0; i < results->count; i++) {
        schedule->needed[results->values[i]] = true;
    }
    for (size_t i = graph->value_count; i-- > 0;) {
        const struct value *value = &graph->values[i];
        for (int k = 0; schedule->needed[i] && k < 3 && value->operands[k] != NO_VALUE; k++) {
            uint16_t operand = value->operands[k];
            uint8_t op = graph->values[operand].op;
            schedule->needed[operand] = true;
            if (op != VALUE_INPUT && value_loads(graph, operand, value_space(graph, value))) {
                schedule->kept[operand] = true;
            }
        }
    }
}

static void levels_find(struct schedule *schedule) {
    const struct graph *graph = schedule->graph;
    for (size_t i = 0; i < graph->value_count; i++) {
        const struct value *value = &graph->values[i];
        uint16_t level = 0;
        for (int k = 0; schedule->needed[i] && k < 3 && value->operands[k] != NO_VALUE; k++) {
            uint16_t operand = value->operands[k];
            bool later = graph->values[operand].op != VALUE_INPUT &&
                         value_loads(graph, operand, value_space(graph, value));
            uint16_t from = (uint16_t)(schedule->level[operand] + later);
            level = from > level ? from : level;
        }
        schedule->level[i] = level;
    }
}

static uint16_t array_add(struct schedule *schedule, uint16_t value) {
    struct expression_program *program = schedule->program;
    const struct shape *shape = value_shape(schedule->graph, value);
    size_t number = (size_t)program->inputs + program->outputs + program->temporaries;
    struct expression_array *array = &program->array[number];
    array->type = schedule->graph->values[value].type;
    array->dims = (uint8_t)shape->dims;
    array->elements = shape_elements(shape);
    memcpy(array->shape, shape->n, (size_t)shape->dims * sizeof shape->n[0]);
    return (uint16_t)number;
}

static void sink_add(struct schedule *schedule, uint16_t value, uint16_t array) {
    const struct value *row = &schedule->graph->values[value];
    struct sink *sink = &schedule->sinks[schedule->sink_count++];
    bool first = schedule->array[value] == NO_ARRAY;
    bool computed = row->op < EXPRESSION_OP_COUNT;
    sink->value = value;
    sink->array = array;
    sink->reduces = value_reduces(row) && first;
    /* A second copy of a reduction is read from the first. */
    sink->level = (uint16_t)(schedule->level[value] + (value_reduces(row) && !first));
    if (computed && first) {
        schedule->array[value] = array;
    }
}

/* Results first, so that what is kept anyway is kept there. */
static void sinks_find(struct schedule *schedule, const struct results *results) {
    struct graph *graph = schedule->graph;
    for (size_t i = 0; i < results->count; i++) {
        uint16_t array = array_add(schedule, results->values[i]);
        schedule->program->outputs++;
        sink_add(schedule, results->values[i], array);
    }
    for (size_t i = 0; i < graph->value_count; i++) {
        bool keep = schedule->kept[i] || value_reduces(&graph->values[i]);
        if (!schedule->needed[i] || !keep || schedule->array[i] != NO_ARRAY) {
            continue;
        }
        if (schedule->program->temporaries == EXPRESSION_TEMPORARIES) {
            graph_fail(graph, 1, "the text has more than %d intermediate arrays",
                       EXPRESSION_TEMPORARIES);
            return;
        }
        uint16_t array = array_add(schedule, (uint16_t)i);
        schedule->program->temporaries++;
        sink_add(schedule, (uint16_t)i, array);
    }
}

static bool sink_joins(const struct schedule *schedule, const struct sink *first,
                       const struct sink *sink) {
    const struct value *a = &schedule->graph->values[first->value];
    const struct value *b = &schedule->graph->values[sink->value];
    if (sink->done || first->reduces != sink->reduces || first->level != sink->level) {
        return false;
    }
    if (!first->reduces) {
        return a->shape == b->shape;
    }
    return value_space(schedule->graph, a) == value_space(schedule->graph, b) && a->axes == b->axes;
}

/* Stages in the order of their levels, each of all sinks that can share it. */
static void stages_write(struct schedule *schedule) {
    uint16_t last = 0;
    for (size_t i = 0; i < schedule->sink_count; i++) {
        last = schedule->sinks[i].level > last ? schedule->sinks[i].level : last;
    }
    for (uint16_t level = 0; level <= last; level++) {
        for (size_t i = 0; i < schedule->sink_count && !schedule->graph->failed; i++) {
            const struct sink *first = &schedule->sinks[i];
            struct sink *together[EXPRESSION_STAGE_SINKS];
            size_t count = 0;
            size_t most = first->reduces ? EXPRESSION_STAGE_REDUCTIONS : EXPRESSION_STAGE_SINKS;
            if (first->done || first->level != level) {
                continue;
            }
            for (size_t k = i; k < schedule->sink_count && count < most; k++) {
                if (sink_joins(schedule, first, &schedule->sinks[k])) {
                    together[count++] = &schedule->sinks[k];
                }
            }
            for (size_t k = 0; k < count; k++) {
                together[k]->done = true;
            }
            schedule->space = first->reduces ? value_space(schedule->graph,
                                                           &schedule->graph->values[first->value])
                                             : schedule->graph->values[first->value].shape;
            schedule->axes = first->reduces ? schedule->graph->values[first->value].axes : 0;
            stage_write(schedule, together, count);
        }
    }
}

static void inputs_write(struct schedule *schedule) {
    const struct graph *graph = schedule->graph;
    for (size_t i = 0; i < graph->input_count; i++) {
        const struct expression_input *input = &graph->inputs[i];
        struct expression_array *array = &schedule->program->array[i];
        array->type = (uint8_t)input->type;
        array->dims = (uint8_t)input->dims;
        array->elements = 1;
        for (int k = 0; k < input->dims; k++) {
            array->shape[k] = input->shape[k];
            int64_t stride = input->shape[k] > 1 ? input->strides[k] : 0;
            array->elements += (input->shape[k] - 1) * stride;
        }
        for (int k = 0; k < input->dims; k++) {
            array->elements = input->shape[k] == 0 ? 0 : array->elements;
        }
    }
    schedule->program->inputs = (uint16_t)graph->input_count;
}

void schedule_run(struct schedule *schedule, struct graph *graph, const struct results *results,
                  struct expression_program *program) {
    memset(schedule, 0, sizeof *schedule);
    memset(program, 0, sizeof *program);
    memset(schedule->array, 0xff, sizeof schedule->array);
    schedule->graph = graph;
    schedule->program = program;
    program->schema = EXPRESSION_SCHEMA;
    inputs_write(schedule);
    needed_find(schedule, results);
    levels_find(schedule);
    sinks_find(schedule, results);
    if (!graph->failed) {
        stages_write(schedule);
    }
}
