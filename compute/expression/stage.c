/*
 * stage.c: writes one stage: accesses, instructions, registers, and the loop's dimensions.
 */
#include "compute/expression/stage.h"

#include <string.h>

static struct expression_stage *stage_here(struct schedule *schedule) {
    return &schedule->program->stage[schedule->program->stages];
}

static uint8_t fail(struct schedule *schedule, const char *what, int most) {
    graph_fail(schedule->graph, 1, "the text needs more than %d %s; split it", most, what);
    return 0;
}

/* Strides of an operand's own dimensions: an input's, or those of a C-contiguous array. */
static void strides_find(const struct schedule *schedule, uint16_t operand,
                         int64_t strides[EXPRESSION_DIMS]) {
    const struct graph *graph = schedule->graph;
    const struct shape *shape = value_shape(graph, operand);
    const struct value *value = &graph->values[operand];
    int64_t step = 1;
    for (int i = shape->dims - 1; i >= 0; i--) {
        strides[i] = value->op == VALUE_INPUT ? graph->inputs[value->bits].strides[i] : step;
        strides[i] = shape->n[i] == 1 ? 0 : strides[i];
        step *= shape->n[i];
    }
}

/* The slot of an access to `array` that walks like `operand`, broadcast over the space. Reduced
   dimensions of a result stand still. Dimensions are the space's own here; dims_merge orders them.
 */
static uint8_t access_take(struct schedule *schedule, uint16_t array, uint16_t operand) {
    struct expression_program *program = schedule->program;
    struct expression_stage *stage = stage_here(schedule);
    const struct shape *space = &schedule->graph->shapes[schedule->space];
    const struct shape *shape = value_shape(schedule->graph, operand);
    struct expression_access access = {.array = array};
    int64_t strides[EXPRESSION_DIMS];
    strides_find(schedule, operand, strides);
    for (int i = 1; i <= shape->dims; i++) {
        access.strides[space->dims - i] = strides[shape->dims - i];
    }
    for (unsigned i = 0; i < stage->accesses; i++) {
        const struct expression_access *other = &program->access[stage->first_access + i];
        if (other->array == array &&
            memcmp(other->strides, access.strides, sizeof access.strides) == 0) {
            return (uint8_t)(EXPRESSION_ACCESS + i);
        }
    }
    if (stage->accesses == EXPRESSION_STAGE_ACCESSES || program->accesses == EXPRESSION_ACCESSES) {
        return fail(schedule, "arrays in its loops", EXPRESSION_STAGE_ACCESSES);
    }
    program->access[program->accesses++] = access;
    return (uint8_t)(EXPRESSION_ACCESS + stage->accesses++);
}

/* The same for what a reduction writes: kept dimensions in order. */
static uint8_t access_result(struct schedule *schedule, const struct sink *sink) {
    struct expression_program *program = schedule->program;
    struct expression_stage *stage = stage_here(schedule);
    const struct shape *space = &schedule->graph->shapes[schedule->space];
    struct expression_access access = {.array = sink->array};
    int64_t step = 1;
    for (int i = space->dims - 1; i >= 0; i--) {
        bool kept = (schedule->axes >> i & 1) == 0;
        access.strides[i] = kept && space->n[i] != 1 ? step : 0;
        step *= kept ? space->n[i] : 1;
    }
    if (stage->accesses == EXPRESSION_STAGE_ACCESSES || program->accesses == EXPRESSION_ACCESSES) {
        return fail(schedule, "arrays in its loops", EXPRESSION_STAGE_ACCESSES);
    }
    program->access[program->accesses++] = access;
    return (uint8_t)(EXPRESSION_ACCESS + stage->accesses++);
}

static uint8_t constant_take(struct schedule *schedule, const struct value *value) {
    struct expression_program *program = schedule->program;
    for (unsigned i = 0; i < program->constants; i++) {
        if (program->constant[i] == value->bits && program->constant_type[i] == value->type) {
            return (uint8_t)(EXPRESSION_CONSTANT + i);
        }
    }
    if (program->constants == EXPRESSION_CONSTANTS) {
        return fail(schedule, "different numbers", EXPRESSION_CONSTANTS);
    }
    program->constant[program->constants] = value->bits;
    program->constant_type[program->constants] = value->type;
    return (uint8_t)(EXPRESSION_CONSTANT + program->constants++);
}

static uint8_t register_take(struct schedule *schedule) {
    if (schedule->registers == 0) {
        return fail(schedule, "values at once", EXPRESSION_REGISTERS);
    }
    unsigned number = (unsigned)__builtin_ctzll(schedule->registers);
    schedule->registers &= schedule->registers - 1;
    return (uint8_t)number;
}

/* Where an operand is found. */
static uint8_t operand_slot(struct schedule *schedule, uint16_t operand) {
    const struct value *value = &schedule->graph->values[operand];
    if (value->op == VALUE_CONSTANT) {
        return constant_take(schedule, value);
    }
    if (value_loads(schedule->graph, operand, schedule->space)) {
        uint16_t array =
            value->op == VALUE_INPUT ? (uint16_t)value->bits : schedule->array[operand];
        return access_take(schedule, array, operand);
    }
    return schedule->slot[operand];
}

/* One use of an operand is over. */
static void operand_release(struct schedule *schedule, uint16_t operand) {
    if (schedule->inside[operand] && --schedule->uses[operand] == 0 &&
        schedule->slot[operand] < EXPRESSION_REGISTERS) {
        schedule->registers |= (uint64_t)1 << schedule->slot[operand];
    }
}

static void emit(struct schedule *schedule, struct expression_instruction instruction) {
    struct expression_program *program = schedule->program;
    if (program->instructions == EXPRESSION_INSTRUCTIONS) {
        fail(schedule, "instructions", EXPRESSION_INSTRUCTIONS);
        return;
    }
    program->instruction[program->instructions++] = instruction;
    stage_here(schedule)->instructions++;
}

/* What the stage computes: the sinks, and of their operands what does not come from memory. */
static void inside_find(struct schedule *schedule, struct sink *const *sinks, size_t count) {
    const struct graph *graph = schedule->graph;
    memset(schedule->inside, 0, sizeof schedule->inside);
    memset(schedule->uses, 0, sizeof schedule->uses);
    for (size_t i = 0; i < count; i++) {
        uint16_t value = sinks[i]->value;
        uint16_t wanted = sinks[i]->reduces ? graph->values[value].operands[0] : value;
        schedule->uses[wanted]++;
        schedule->inside[wanted] = graph->values[wanted].op < EXPRESSION_OP_COUNT &&
                                   !value_loads(graph, wanted, schedule->space);
    }
    for (size_t i = graph->value_count; i-- > 0;) {
        const struct value *value = &graph->values[i];
        for (int k = 0; schedule->inside[i] && k < 3 && value->operands[k] != NO_VALUE; k++) {
            uint16_t operand = value->operands[k];
            schedule->uses[operand]++;
            if (graph->values[operand].op < EXPRESSION_OP_COUNT &&
                !value_loads(graph, operand, schedule->space)) {
                schedule->inside[operand] = true;
            }
        }
    }
}

/* The first sink that stores a value. */
static const struct sink *sink_of(struct sink *const *sinks, size_t count, uint16_t value) {
    for (size_t i = 0; i < count; i++) {
        if (!sinks[i]->reduces && sinks[i]->value == value) {
            return sinks[i];
        }
    }
    return NULL;
}

static void value_write(struct schedule *schedule, uint16_t number, const struct sink *sink) {
    const struct graph *graph = schedule->graph;
    const struct value *value = &graph->values[number];
    const struct value *last = value;
    struct expression_instruction code = {.op = value->op, .type = value->type};
    uint8_t *const slots[] = {&code.a, &code.b, &code.c};
    for (int k = 0; k < 3 && value->operands[k] != NO_VALUE; k++) {
        *slots[k] = operand_slot(schedule, value->operands[k]);
        last = &graph->values[value->operands[k]];
    }
    /* `type` is the operands', but of a cast; the last operand of `where` has it too. */
    code.type = value->op == EXPRESSION_CAST ? value->type : last->type;
    code.from = value->op == EXPRESSION_CAST ? last->type : 0;
    bool same_width = true;
    for (int k = 0; k < 3 && value->operands[k] != NO_VALUE; k++) {
        same_width = same_width && expression_type_bytes(graph->values[value->operands[k]].type) ==
                                       expression_type_bytes(value->type);
    }
    if (sink == NULL && !same_width) { /* a block of its own, operands being of another width */
        schedule->slot[number] = register_take(schedule);
    }
    for (int k = 0; k < 3 && value->operands[k] != NO_VALUE; k++) {
        operand_release(schedule, value->operands[k]);
    }
    if (sink != NULL) {
        schedule->slot[number] = access_take(schedule, sink->array, number);
    } else if (same_width) {
        schedule->slot[number] = register_take(schedule);
    }
    code.to = schedule->slot[number];
    emit(schedule, code);
}

static void sinks_write(struct schedule *schedule, struct sink *const *sinks, size_t count) {
    const struct graph *graph = schedule->graph;
    for (size_t i = 0; i < count; i++) {
        const struct sink *sink = sinks[i];
        const struct value *value = &graph->values[sink->value];
        struct expression_instruction code = {.op = EXPRESSION_COPY, .type = value->type};
        if (sink->reduces) {
            code.op = value->op;
            code.type = graph->values[value->operands[0]].type;
            code.a = operand_slot(schedule, value->operands[0]);
            code.to = access_result(schedule, sink);
        } else if (schedule->inside[sink->value] && sink_of(sinks, count, sink->value) == sink) {
            continue; /* it was computed in its place */
        } else {
            code.a = operand_slot(schedule, sink->value);
            code.to = access_take(schedule, sink->array, sink->value);
        }
        emit(schedule, code);
    }
}

/* Orders the dimensions: kept ones, then reduced ones; leaves out those of 1 and merges neighbours
   that every access walks as one. */
static void dims_merge(struct schedule *schedule) {
    struct expression_program *program = schedule->program;
    struct expression_stage *stage = stage_here(schedule);
    const struct shape *space = &schedule->graph->shapes[schedule->space];
    struct expression_access *accesses = &program->access[stage->first_access];
    int order[EXPRESSION_DIMS], dims = 0;
    for (int reduced = 0; reduced <= 1; reduced++) {
        for (int i = 0; i < space->dims; i++) {
            if ((int)(schedule->axes >> i & 1) == reduced && space->n[i] != 1) {
                order[dims++] = i;
                stage->kept = (uint8_t)(stage->kept + !reduced);
            }
        }
    }
    for (unsigned k = 0; k < stage->accesses; k++) {
        int64_t strides[EXPRESSION_DIMS] = {0};
        for (int i = 0; i < dims; i++) {
            strides[i] = accesses[k].strides[order[i]];
        }
        memcpy(accesses[k].strides, strides, sizeof strides);
    }
    for (int i = 0; i < dims; i++) {
        stage->shape[i] = space->n[order[i]];
    }
    for (int i = dims - 2; i >= 0; i--) {
        bool one = i + 1 != stage->kept;
        for (unsigned k = 0; one && k < stage->accesses; k++) {
            one = accesses[k].strides[i] == accesses[k].strides[i + 1] * stage->shape[i + 1];
        }
        if (!one) {
            continue;
        }
        stage->shape[i] *= stage->shape[i + 1];
        stage->kept = (uint8_t)(stage->kept - (i + 1 < stage->kept));
        dims--;
        for (int m = i + 1; m < dims; m++) {
            stage->shape[m] = stage->shape[m + 1];
        }
        stage->shape[dims] = 0;
        for (unsigned k = 0; k < stage->accesses; k++) {
            int64_t *strides = accesses[k].strides;
            memmove(&strides[i], &strides[i + 1], (size_t)(dims - i) * sizeof *strides);
            strides[dims] = 0;
        }
    }
    stage->dims = (uint8_t)dims;
}

void stage_write(struct schedule *schedule, struct sink *const *sinks, size_t count) {
    struct expression_program *program = schedule->program;
    struct graph *graph = schedule->graph;
    if (program->stages == EXPRESSION_STAGES) {
        fail(schedule, "loops", EXPRESSION_STAGES);
        return;
    }
    struct expression_stage *stage = stage_here(schedule);
    stage->first_access = program->accesses;
    stage->first_instruction = program->instructions;
    schedule->registers = UINT64_MAX;
    inside_find(schedule, sinks, count);
    for (size_t i = 0; i < graph->value_count && !graph->failed; i++) {
        if (schedule->inside[i]) {
            value_write(schedule, (uint16_t)i, sink_of(sinks, count, (uint16_t)i));
        }
    }
    sinks_write(schedule, sinks, count);
    dims_merge(schedule);
    int64_t elements = shape_elements(&graph->shapes[schedule->space]);
    program->cost += (uint64_t)elements * stage->instructions;
    program->stages++;
}
