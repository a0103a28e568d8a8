/*
 * expression_block.c: a stage's accesses, and the walk over a block of its space.
 */
#include "kernels/cpu/expression/expression_run.h"

#include <string.h>

/* The loop of an instruction; NULL for INDEX. */
static expression_loop *instruction_loop(const struct expression_simd *simd,
                                         const struct expression_instruction *instruction) {
    if (instruction->op < EXPRESSION_CAST) {
        return simd->map[instruction->op][instruction->type];
    }
    return instruction->op == EXPRESSION_CAST ? simd->cast[instruction->from][instruction->type]
                                              : NULL;
}

static void view_init(struct view *view, const struct stage *stage,
                      const struct expression_access *access, bool turned) {
    int kept = stage->row->kept, dims = stage->dims;
    bool linear = true, scalar = true;
    int64_t wanted = 1;
    view->width = expression_type_bytes(stage->run->program->array[access->array].type);
    view->base = stage->run->base[access->array];
    for (int i = dims - 1; i >= 0; i--) {
        view->strides[i] = access->strides[turned ? (i + kept) % dims : i];
        linear = linear && (view->strides[i] == wanted || stage->shape[i] == 1);
        scalar = scalar && (view->strides[i] == 0 || stage->shape[i] == 1);
        wanted *= stage->shape[i];
    }
    view->kind = linear ? VIEW_LINEAR : scalar ? VIEW_SCALAR : VIEW_STRIDED;
}

/* A slot gets a block unless it is an array that can be used where it lies. */
static void place_take(struct stage *stage, unsigned slot) {
    if (slot >= EXPRESSION_ACCESS && slot < EXPRESSION_CONSTANT) {
        size_t access = slot - EXPRESSION_ACCESS;
        if (stage->views[access].kind == VIEW_LINEAR) {
            return;
        }
    }
    if (stage->place[slot] == 0) {
        stage->place[slot] = (uint16_t)++stage->places;
    }
}

/* The widest element decides how many fit into a block. */
static void places_take(struct stage *stage) {
    unsigned widest = 1;
    for (size_t i = 0; i < stage->maps + stage->reductions; i++) {
        const struct expression_instruction *code = &stage->code[i];
        const uint8_t operands[] = {code->a, code->b, code->c};
        const uint8_t types[] = {code->type, code->op == EXPRESSION_CAST ? code->from : code->type};
        for (int k = 0; k < 2; k++) {
            unsigned width = expression_type_bytes(types[k]);
            widest = width > widest ? width : widest;
        }
        if (i < stage->maps) {
            place_take(stage, code->to);
        }
        for (int k = 0; k < expression_op_row(code->op)->operands; k++) {
            place_take(stage, operands[k]);
        }
    }
    stage->block = SLOT_BYTES / widest;
}

bool stage_init(struct stage *stage, struct run *run, size_t number, bool turned) {
    const struct expression_program *program = run->program;
    const struct expression_stage *row = &program->stage[number];
    memset(stage, 0, sizeof *stage);
    stage->run = run;
    stage->row = row;
    stage->code = &program->instruction[row->first_instruction];
    stage->dims = row->dims;
    stage->elements = 1;
    for (int i = 0; i < row->dims; i++) {
        stage->shape[i] = row->shape[turned ? (i + row->kept) % row->dims : i];
        stage->elements *= (size_t)stage->shape[i];
    }
    stage->maps = row->instructions;
    while (stage->maps > 0 && stage->code[stage->maps - 1].op >= EXPRESSION_REDUCTION_FIRST) {
        stage->maps--;
    }
    stage->reductions = row->instructions - stage->maps;
    for (size_t i = 0; i < row->accesses; i++) {
        view_init(&stage->views[i], stage, &program->access[row->first_access + i], turned);
    }
    places_take(stage);
    stage->ready = run->ready;
    memset(stage->ready, 0, (size_t)thread_pool_width(run->stream->pool));
    return stage->elements > 0;
}

void worker_init(struct worker *worker, const struct stage *stage, int slot) {
    const struct run *run = stage->run;
    const struct expression_program *program = run->program;
    size_t count = stage->elements < stage->block ? stage->elements : stage->block;
    bool ready = stage->ready[slot];
    memset(worker, 0, sizeof *worker);
    worker->stage = stage;
    worker->blocks = run->blocks + (size_t)slot * run->places * SLOT_PITCH;
    for (unsigned i = 0; i < SLOTS; i++) {
        if (stage->place[i] == 0) {
            continue;
        }
        worker->at[i] = worker->blocks + (size_t)(stage->place[i] - 1) * SLOT_PITCH;
        if (!ready && i >= EXPRESSION_CONSTANT) {
            unsigned number = i - EXPRESSION_CONSTANT;
            run->simd->gather(worker->at[i], &program->constant[number], 0,
                              expression_type_bytes(program->constant_type[number]), count);
        } else if (!ready && i >= EXPRESSION_ACCESS &&
                   stage->views[i - EXPRESSION_ACCESS].kind == VIEW_SCALAR) {
            const struct view *view = &stage->views[i - EXPRESSION_ACCESS];
            run->simd->gather(worker->at[i], view->base, 0, view->width, count);
        }
    }
    stage->ready[slot] = true;
}

/* Brings `count` elements from `start` on together: in runs of the last dimension. Where they lie
   together already, tells where. */
static void *view_gather(const struct view *view, const struct stage *stage, size_t start,
                         size_t count, void *block) {
    int64_t place[EXPRESSION_DIMS], offset = 0, rest = (int64_t)start;
    int last = stage->dims - 1;
    for (int i = last; i >= 0; i--) {
        place[i] = rest % stage->shape[i];
        rest /= stage->shape[i];
        offset += place[i] * view->strides[i];
    }
    int64_t row = stage->shape[last], stride = view->strides[last];
    if (stride == 1 && row - place[last] >= (int64_t)count) {
        return view->base + offset * (int64_t)view->width;
    }
    for (size_t done = 0; done < count;) {
        size_t n = (size_t)(row - place[last]);
        n = n < count - done ? n : count - done;
        stage->run->simd->gather((char *)block + done * view->width,
                                 view->base + offset * (int64_t)view->width, stride, view->width,
                                 n);
        done += n;
        offset -= place[last] * stride;
        place[last] = 0;
        for (int i = last - 1; i >= 0; i--) {
            offset += view->strides[i];
            if (++place[i] < stage->shape[i]) {
                break;
            }
            offset -= place[i] * view->strides[i];
            place[i] = 0;
        }
    }
    return block;
}

static void operands_find(struct worker *worker, size_t start, size_t count) {
    const struct stage *stage = worker->stage;
    for (unsigned i = 0; i < stage->row->accesses; i++) {
        const struct view *view = &stage->views[i];
        unsigned slot = EXPRESSION_ACCESS + i;
        if (view->kind == VIEW_LINEAR) {
            worker->at[slot] = view->base + start * view->width;
        } else if (view->kind == VIEW_STRIDED && stage->place[slot] != 0) {
            char *block = worker->blocks + (size_t)(stage->place[slot] - 1) * SLOT_PITCH;
            worker->at[slot] = view_gather(view, stage, start, count, block);
        }
    }
}

void worker_block(struct worker *worker, size_t start, size_t count) {
    const struct stage *stage = worker->stage;
    const struct expression_simd *simd = stage->run->simd;
    operands_find(worker, start, count);
    for (size_t i = 0; i < stage->maps; i++) {
        const struct expression_instruction *code = &stage->code[i];
        expression_loop *loop = instruction_loop(simd, code);
        if (loop != NULL) {
            loop(worker->at[code->to], worker->at[code->a], worker->at[code->b],
                 worker->at[code->c], count);
        } else {
            int64_t *to = worker->at[code->to];
            for (size_t k = 0; k < count; k++) {
                to[k] = (int64_t)(start + k);
            }
        }
    }
}
