/*
 * validate.c: walks a program as the kernel would, with types for values (validate.h).
 */
#include "compute/expression/validate.h"

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#define NOTHING EXPRESSION_TYPE_COUNT

/* When an array can be read: inputs at once, others after the stage that writes them. */
enum state { STATE_EMPTY, STATE_WRITING, STATE_WRITTEN };

struct walk {
    const struct expression_program *program;
    const struct expression_stage *stage;
    size_t arrays;
    uint8_t state[EXPRESSION_ARRAYS];
    int64_t elements;                         /* of the stage's space */
    uint8_t registers[EXPRESSION_REGISTERS];  /* types; NOTHING: not written */
    bool accessed[EXPRESSION_STAGE_ACCESSES]; /* written in this stage */
    unsigned reductions;
    uint64_t cost;
};

static int64_t product(const int64_t *shape, int dims) {
    int64_t elements = 1;
    for (int i = 0; i < dims; i++) {
        if (shape[i] < 0 || shape[i] > EXPRESSION_ELEMENTS) {
            return -1;
        }
        if (shape[i] == 0) {
            elements = 0;
        }
    }
    for (int i = 0; elements > 0 && i < dims; i++) {
        if (shape[i] > EXPRESSION_ELEMENTS / elements) {
            return -1;
        }
        elements *= shape[i];
    }
    return elements;
}

static const char *head_check(struct walk *walk) {
    const struct expression_program *program = walk->program;
    walk->arrays = (size_t)program->inputs + program->outputs + program->temporaries;
    if (program->schema != EXPRESSION_SCHEMA) {
        return "another version of the form";
    }
    if (program->inputs > EXPRESSION_INPUTS || program->outputs > EXPRESSION_OUTPUTS ||
        program->temporaries > EXPRESSION_TEMPORARIES ||
        program->constants > EXPRESSION_CONSTANTS || program->stages > EXPRESSION_STAGES ||
        program->accesses > EXPRESSION_ACCESSES ||
        program->instructions > EXPRESSION_INSTRUCTIONS) {
        return "too many of something";
    }
    for (size_t i = 0; i < walk->arrays; i++) {
        const struct expression_array *array = &program->array[i];
        if (array->type >= EXPRESSION_TYPE_COUNT || array->dims > EXPRESSION_DIMS ||
            array->elements < 0 || array->elements > EXPRESSION_ELEMENTS ||
            product(array->shape, array->dims) < 0) {
            return "an array";
        }
        if (i >= program->inputs && product(array->shape, array->dims) != array->elements) {
            return "an array of another size than its shape";
        }
        walk->state[i] = i < program->inputs ? STATE_WRITTEN : STATE_EMPTY;
    }
    for (size_t i = 0; i < program->constants; i++) {
        if (program->constant_type[i] >= EXPRESSION_TYPE_COUNT) {
            return "a constant's type";
        }
    }
    return NULL;
}

static const char *access_check(const struct walk *walk, const struct expression_access *access) {
    int64_t reach = 0, grown;
    if (access->array >= walk->arrays) {
        return "an access to no array";
    }
    for (int i = 0; i < walk->stage->dims; i++) {
        if (access->strides[i] < 0 ||
            (walk->elements > 0 &&
             (__builtin_mul_overflow(access->strides[i], walk->stage->shape[i] - 1, &grown) ||
              __builtin_add_overflow(reach, grown, &reach)))) {
            return "a stride";
        }
    }
    if (walk->elements > 0 && reach >= walk->program->array[access->array].elements) {
        return "an access outside its array";
    }
    return NULL;
}

/* Whether a result is walked in order, all of it, over the kept dimensions. */
static bool access_fills(const struct walk *walk, const struct expression_access *access) {
    const struct expression_stage *stage = walk->stage;
    int64_t step = 1;
    for (int i = stage->dims - 1; i >= 0; i--) {
        bool kept = i < stage->kept;
        if (stage->shape[i] != 1 && access->strides[i] != (kept ? step : 0)) {
            return false;
        }
        step *= kept ? stage->shape[i] : 1;
    }
    return step == walk->program->array[access->array].elements;
}

static const char *stage_check(struct walk *walk, const struct expression_stage *stage) {
    const struct expression_program *program = walk->program;
    walk->stage = stage;
    if (stage->dims > EXPRESSION_DIMS || stage->kept > stage->dims ||
        (walk->elements = product(stage->shape, stage->dims)) < 0) {
        return "a space";
    }
    if (stage->accesses > EXPRESSION_STAGE_ACCESSES ||
        stage->first_access + stage->accesses > program->accesses || stage->instructions == 0 ||
        stage->first_instruction + stage->instructions > program->instructions) {
        return "a stage's ranges";
    }
    for (size_t i = 0; i < stage->accesses; i++) {
        const char *why = access_check(walk, &program->access[stage->first_access + i]);
        if (why != NULL) {
            return why;
        }
    }
    memset(walk->registers, NOTHING, sizeof walk->registers);
    memset(walk->accessed, 0, sizeof walk->accessed);
    walk->reductions = 0;
    return NULL;
}

/* The type that a slot has when it is read; NOTHING where it cannot be. */
static uint8_t slot_type(const struct walk *walk, unsigned slot) {
    const struct expression_program *program = walk->program;
    if (slot < EXPRESSION_REGISTERS) {
        return walk->registers[slot];
    }
    if (slot >= EXPRESSION_CONSTANT) {
        slot -= EXPRESSION_CONSTANT;
        return slot < program->constants ? program->constant_type[slot] : NOTHING;
    }
    slot -= EXPRESSION_ACCESS;
    if (slot >= walk->stage->accesses) {
        return NOTHING;
    }
    unsigned array = program->access[walk->stage->first_access + slot].array;
    bool readable = walk->state[array] == STATE_WRITTEN || walk->accessed[slot];
    return readable ? program->array[array].type : NOTHING;
}

static const char *operands_check(const struct walk *walk,
                                  const struct expression_instruction *code) {
    const struct expression_op_row *row = expression_op_row(code->op);
    const uint8_t slots[] = {code->a, code->b, code->c};
    if ((row->types >> code->type & 1) == 0) {
        return "an operation of another type";
    }
    for (int i = 0; i < row->operands; i++) {
        uint8_t wanted = code->op == EXPRESSION_CAST              ? code->from
                         : code->op == EXPRESSION_WHERE && i == 0 ? (uint8_t)EXPRESSION_BOOL
                                                                  : code->type;
        if (slot_type(walk, slots[i]) != wanted) {
            return "an operand that is not there, or of another type";
        }
        if (code->to == slots[i] &&
            (code->to >= EXPRESSION_REGISTERS ||
             expression_type_bytes(wanted) != expression_type_bytes(row->result == EXPRESSION_SAME
                                                                        ? code->type
                                                                        : row->result))) {
            return "a result in place of an operand of another width";
        }
    }
    return NULL;
}

static const char *result_check(struct walk *walk, const struct expression_instruction *code) {
    const struct expression_program *program = walk->program;
    const struct expression_op_row *row = expression_op_row(code->op);
    uint8_t type = row->result == EXPRESSION_SAME ? code->type : row->result;
    bool reduces = code->op >= EXPRESSION_REDUCTION_FIRST;
    if (code->to < EXPRESSION_REGISTERS) {
        walk->registers[code->to] = type;
        return reduces ? "a reduction to a register" : NULL;
    }
    unsigned slot = code->to - EXPRESSION_ACCESS;
    if (code->to >= EXPRESSION_CONSTANT || slot >= walk->stage->accesses) {
        return "a result that goes nowhere";
    }
    const struct expression_access *access = &program->access[walk->stage->first_access + slot];
    if (walk->state[access->array] != STATE_EMPTY || program->array[access->array].type != type ||
        !access_fills(walk, access)) {
        return "a result that does not fit its array";
    }
    if (!reduces && walk->stage->kept != walk->stage->dims) {
        return "a result among reductions";
    }
    walk->state[access->array] = STATE_WRITING;
    walk->accessed[slot] = !reduces;
    return NULL;
}

static const char *instruction_check(struct walk *walk, const struct expression_instruction *code) {
    if (code->op >= EXPRESSION_OP_COUNT || code->type >= EXPRESSION_TYPE_COUNT ||
        code->from >= EXPRESSION_TYPE_COUNT) {
        return "an operation";
    }
    bool reduces = code->op >= EXPRESSION_REDUCTION_FIRST;
    if ((!reduces && walk->reductions > 0) ||
        (reduces && ++walk->reductions > EXPRESSION_STAGE_REDUCTIONS)) {
        return "reductions that are too many or not last";
    }
    if (code->op == EXPRESSION_INDEX && walk->stage->dims > 1) {
        return "places in several dimensions";
    }
    const char *why = operands_check(walk, code);
    return why != NULL ? why : result_check(walk, code);
}

/* A stage's stores and its reductions do not mix: its last instruction tells which it has. */
static const char *stage_walk(struct walk *walk, const struct expression_stage *stage) {
    const struct expression_program *program = walk->program;
    const char *why = stage_check(walk, stage);
    for (size_t i = 0; why == NULL && i < stage->instructions; i++) {
        why = instruction_check(walk, &program->instruction[stage->first_instruction + i]);
    }
    if (why != NULL) {
        return why;
    }
    bool stores = false;
    for (size_t i = 0; i < stage->accesses; i++) {
        stores = stores || walk->accessed[i];
    }
    if ((stores && walk->reductions > 0) || (walk->reductions == 0 && stage->kept != stage->dims)) {
        return "a stage that both stores and reduces, or neither";
    }
    for (size_t i = 0; i < walk->arrays; i++) {
        walk->state[i] = walk->state[i] == STATE_WRITING ? STATE_WRITTEN : walk->state[i];
    }
    walk->cost += (uint64_t)walk->elements * stage->instructions;
    return NULL;
}

const char *expression_validate(const struct expression_program *program) {
    struct walk walk = {.program = program};
    const char *why = head_check(&walk);
    for (size_t i = 0; why == NULL && i < program->stages; i++) {
        why = stage_walk(&walk, &program->stage[i]);
    }
    for (size_t i = 0; why == NULL && i < walk.arrays; i++) {
        if (walk.state[i] != STATE_WRITTEN) {
            return "an array that nothing writes";
        }
    }
    return why == NULL && walk.cost != program->cost ? "another cost than it says" : why;
}
