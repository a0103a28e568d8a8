/*
 * expression_run.h: one launch of `expression`, as its files share it.
 *
 * A stage is cut into tasks for the device's pool. A task walks its part of the space in blocks
 * that stay in the first cache: every instruction runs over a whole block before the next one does.
 * Operands come straight from their arrays where those are contiguous, and results go straight
 * there; what is strided, broadcast or constant is first brought into a block of the thread's own.
 *
 * Threads: run and stage are constant while a stage runs; a `worker` belongs to one thread.
 */
#ifndef KILN_KERNELS_CPU_EXPRESSION_EXPRESSION_RUN_H
#define KILN_KERNELS_CPU_EXPRESSION_EXPRESSION_RUN_H

#include "kernels/cpu/device/stream.h"
#include "kernels/cpu/expression/expression_simd.h"
#include "kernels/expression.h"

#include <stdbool.h>

#define SLOT_BYTES ((size_t)4096)
#define SLOT_PITCH (SLOT_BYTES + 128) /* so that no two have the same low address bits */
#define SLOTS      256

enum view_kind {
    VIEW_LINEAR, /* in the order of the space, without a gap */
    VIEW_SCALAR, /* one element for all */
    VIEW_STRIDED,
};

/** An access of the stage, in the order in which its space is walked. */
struct view {
    enum view_kind kind;
    unsigned width; /* bytes */
    char *base;
    int64_t strides[EXPRESSION_DIMS];
};

struct run {
    struct stream *stream;
    const struct expression_program *program;
    const struct expression_simd *simd;
    char *base[EXPRESSION_ARRAYS];
    char *blocks;          /* of all threads */
    size_t places;         /* of one thread, at most */
    bool *ready;           /* one a thread */
    _Atomic uint64_t done; /* of the program's cost */
};

/** A stage as it is walked. */
struct stage {
    struct run *run;
    const struct expression_stage *row;
    const struct expression_instruction *code;
    size_t maps;       /* instructions before the reductions */
    size_t reductions; /* behind them */
    int dims;
    int64_t shape[EXPRESSION_DIMS];
    size_t elements, block; /* of the space; that fit into a block */
    struct view views[EXPRESSION_STAGE_ACCESSES];
    uint16_t place[SLOTS]; /* number of the slot's block + 1; 0: it has none */
    size_t places;
    bool *ready; /* of each thread: its constants are in their blocks */
};

/** Operands of one block, by slot. */
struct worker {
    const struct stage *stage;
    char *blocks;
    void *at[SLOTS];
};

/** Describes a stage; `turned` walks the reduced dimensions first. True where that is all: the
    space has elements. */
bool stage_init(struct stage *stage, struct run *run, size_t number, bool turned);
/** Finds the blocks of a thread, and fills the constants into them once a stage. */
void worker_init(struct worker *worker, const struct stage *stage, int slot);
/** Runs all but the reductions over `count` ≤ block elements from `start` on. */
void worker_block(struct worker *worker, size_t start, size_t count);
/** Tells the stream that so many elements of a stage are done. */
void run_advance(struct run *run, const struct stage *stage, size_t elements);

/** A stage that reduces (expression_reduce.c). Errors: KILN_NO_MEMORY. */
enum kiln_status stage_reduce(struct run *run, size_t number);

#endif
