/*
 * expression.c: the kernel `expression` of kernels/expression.h: stages one after the other, each
 * over the device's pool. expression_run.h tells how a stage is walked.
 */
#include "kernels/cpu/expression/expression_run.h"

#include <string.h>

#define TASK_BLOCKS 16

static const struct expression_simd *const tables[ISA_COUNT] = {
#define X(isa) [ISA_##isa] = &expression_##isa##_f32,
    KILN_CPU_ISAS(X)
#undef X
};

void run_advance(struct run *run, const struct stage *stage, size_t elements) {
    uint64_t share = (uint64_t)elements * stage->row->instructions;
    uint64_t done = atomic_fetch_add_explicit(&run->done, share, memory_order_relaxed) + share;
    control_advance(run->stream->control, done, run->program->cost + 1);
}

static void map_task(void *context, size_t task, int slot) {
    const struct stage *stage = context;
    struct run *run = stage->run;
    struct worker worker;
    size_t length = stage->block * TASK_BLOCKS, start = task * length;
    size_t end = stage->elements - start < length ? stage->elements : start + length;
    if (stream_cancelled(run->stream)) {
        return;
    }
    worker_init(&worker, stage, slot);
    for (size_t at = start; at < end; at += stage->block) {
        worker_block(&worker, at, end - at < stage->block ? end - at : stage->block);
    }
    run_advance(run, stage, end - start);
}

static void stage_map(struct run *run, size_t number) {
    struct stage stage;
    if (stage_init(&stage, run, number, false)) {
        size_t length = stage.block * TASK_BLOCKS;
        thread_pool_run(run->stream->pool, map_task, &stage,
                        stage.elements / length + (stage.elements % length != 0));
    }
}

static bool stage_reduces(const struct expression_program *program, size_t number) {
    const struct expression_stage *row = &program->stage[number];
    return program->instruction[row->first_instruction + row->instructions - 1].op >=
           EXPRESSION_REDUCTION_FIRST;
}

/* Memory for temporaries and for the blocks of all threads. */
static bool run_allocate(struct run *run) {
    const struct expression_program *program = run->program;
    size_t width = (size_t)thread_pool_width(run->stream->pool);
    size_t first = (size_t)program->inputs + program->outputs;
    for (size_t i = first; i < first + program->temporaries; i++) {
        size_t elements = (size_t)program->array[i].elements;
        run->base[i] =
            stream_take(run->stream, elements * expression_type_bytes(program->array[i].type));
        if (run->base[i] == NULL) {
            return false;
        }
    }
    run->ready = stream_take(run->stream, width * sizeof *run->ready);
    if (run->ready == NULL) {
        return false;
    }
    for (size_t i = 0; i < program->stages; i++) {
        struct stage stage;
        stage_init(&stage, run, i, false);
        run->places = stage.places > run->places ? stage.places : run->places;
    }
    run->blocks = stream_take(run->stream, width * run->places * SLOT_PITCH);
    return run->blocks != NULL;
}

enum kiln_status expression_launch(struct stream *stream, const void *arguments) {
    const struct expression_args *args = arguments;
    const struct expression_program *program = args->program;
    struct run run = {.stream = stream, .program = program, .simd = tables[stream->isa]};
    for (size_t i = 0; i < program->inputs; i++) {
        run.base[i] = (char *)(uintptr_t)args->inputs[i]; /* which no instruction writes */
    }
    for (size_t i = 0; i < program->outputs; i++) {
        run.base[program->inputs + i] = args->outputs[i];
    }
    enum kiln_status status = run_allocate(&run) ? KILN_OK : KILN_NO_MEMORY;
    for (size_t i = 0; status == KILN_OK && i < program->stages; i++) {
        if (stage_reduces(program, i)) {
            status = stage_reduce(&run, i);
        } else {
            stage_map(&run, i);
        }
        if (stream_cancelled(stream)) {
            return KILN_CANCELLED;
        }
    }
    return status;
}
