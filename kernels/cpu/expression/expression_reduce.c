/*
 * expression_reduce.c: a stage that reduces, by the fixed tree of kernels/expression.h.
 *
 * Chunks of the reduced dimensions go to tasks, and what they leave, a row of results a chunk, is
 * joined in the end. Two ways of walking give the same bytes: along the reduced dimensions, where
 * the lanes are neighbours in memory; or across the kept ones (`turned`), where each lane is a row.
 */
#include "kernels/cpu/expression/expression_run.h"

#include <math.h>
#include <string.h>

#define ACROSS        256 /* kept elements that a task takes across */
#define ACROSS_LEAST  8
#define TASK_ELEMENTS 16384
#define LANES_BYTES   (EXPRESSION_LANES * 8)

/* How one reduction is made. */
struct reduction {
    enum expression_op op, join; /* join: what puts two together */
    int type;
    unsigned width; /* bytes of an element, not of the place that argmin gives */
    uint8_t slot;   /* of what is reduced */
    bool places;    /* argmin, argmax */
    char *out;
    char *partial;          /* [chunks][kept]; `out` where there is one chunk */
    int64_t *place_partial; /* likewise, of argmin and argmax */
    char identity[8];
};

struct reduce {
    struct stage stage;
    struct reduction reductions[EXPRESSION_STAGE_REDUCTIONS];
    size_t kept, reduced, chunks;
    size_t across, blocks_across; /* turned */
    size_t rows;                  /* else: results a task */
    char *lanes;                  /* turned: of all threads */
};

struct best {
    char value[8];
    int64_t place; /* -1: none yet */
};

static expression_loop *join_loop(const struct reduce *job, const struct reduction *one) {
    return job->stage.run->simd->map[one->join][one->type];
}

static void identity_put(struct reduction *one) {
    bool least = one->op == EXPRESSION_LEAST;
    switch (one->type) {
#define X(symbol, T, low, high)                                                                    \
    case EXPRESSION_##symbol: {                                                                    \
        T value = one->op == EXPRESSION_SUM       ? (T)-0.0                                        \
                  : one->op == EXPRESSION_PRODUCT ? (T)1                                           \
                  : least                         ? (T)(high)                                      \
                                                  : (T)(low);                                                              \
        memcpy(one->identity, &value, sizeof value);                                               \
        break;                                                                                     \
    }
        X(I8, int8_t, INT8_MIN, INT8_MAX)
        X(I16, int16_t, INT16_MIN, INT16_MAX)
        X(I32, int32_t, INT32_MIN, INT32_MAX)
        X(I64, int64_t, INT64_MIN, INT64_MAX)
        X(U8, uint8_t, 0, UINT8_MAX)
        X(U16, uint16_t, 0, UINT16_MAX)
        X(U32, uint32_t, 0, UINT32_MAX)
        X(U64, uint64_t, 0, UINT64_MAX)
        X(F32, float, -INFINITY, INFINITY)
        X(F64, double, -INFINITY, INFINITY)
#undef X
    default: /* bool */
        one->identity[0] = one->op == EXPRESSION_ALL;
    }
}

/* Whether x is better than the best so far: a NaN is, once. */
#define X(symbol, T)                                                                               \
    static void best_##symbol(struct best *best, const void *from, size_t n, int64_t first,        \
                              bool greatest) {                                                     \
        const T *x = from;                                                                         \
        T held;                                                                                    \
        memcpy(&held, best->value, sizeof held);                                                   \
        for (size_t i = 0; i < n; i++) {                                                           \
            bool better = greatest ? !(x[i] <= held) : !(x[i] >= held);                            \
            if (best->place < 0 || (better && held == held)) {                                     \
                held = x[i];                                                                       \
                best->place = first + (int64_t)i;                                                  \
            }                                                                                      \
        }                                                                                          \
        memcpy(best->value, &held, sizeof held);                                                   \
    }
#define BEST_TYPES(X)                                                                              \
    X(I8, int8_t)                                                                                  \
    X(I16, int16_t)                                                                                \
    X(I32, int32_t)                                                                                \
    X(I64, int64_t)                                                                                \
    X(U8, uint8_t) X(U16, uint16_t) X(U32, uint32_t) X(U64, uint64_t) X(F32, float) X(F64, double)
BEST_TYPES(X)
#undef X

static void best_take(struct best *best, const struct reduction *one, const void *x, size_t n,
                      int64_t first) {
    static void (*const takes[EXPRESSION_TYPE_COUNT])(struct best *, const void *, size_t, int64_t,
                                                      bool) = {
#define X(symbol, T) [EXPRESSION_##symbol] = best_##symbol,
        BEST_TYPES(X)
#undef X
    };
    takes[one->type](best, x, n, first, one->op == EXPRESSION_ARGMAX);
}

/* The lanes of a row, or the best of it, on their way to one result. */
struct gathered {
    char lanes[LANES_BYTES];
    struct best best;
};

static void gathered_init(struct gathered *gathered, const struct reduction *one,
                          const struct reduce *job) {
    if (one->places) {
        gathered->best.place = -1;
        memset(gathered->best.value, 0, sizeof gathered->best.value);
    } else {
        job->stage.run->simd->gather(gathered->lanes, one->identity, 0, one->width,
                                     EXPRESSION_LANES);
    }
}

static void gathered_take(struct gathered *gathered, const struct reduction *one,
                          const struct reduce *job, const void *x, size_t n, int64_t first) {
    if (one->places) {
        best_take(&gathered->best, one, x, n, first);
    } else {
        job->stage.run->simd->lanes[one->join][one->type](gathered->lanes, x, n);
    }
}

static void gathered_put(struct gathered *gathered, const struct reduction *one,
                         const struct reduce *job, size_t at) {
    if (one->places) {
        one->place_partial[at] = gathered->best.place;
        if (one->partial != NULL) {
            memcpy(one->partial + at * one->width, gathered->best.value, one->width);
        }
        return;
    }
    for (size_t half = EXPRESSION_LANES / 2; half > 0; half /= 2) {
        join_loop(job, one)(gathered->lanes, gathered->lanes, gathered->lanes + half * one->width,
                            NULL, half);
    }
    memcpy(one->partial + at * one->width, gathered->lanes, one->width);
}

/* A chunk of one result, a block at a time. */
static void chunk_run(const struct reduce *job, struct worker *worker, size_t row, size_t chunk) {
    struct gathered gathered[EXPRESSION_STAGE_REDUCTIONS];
    size_t first = chunk * EXPRESSION_CHUNK, count = job->reduced - first;
    count = count < EXPRESSION_CHUNK ? count : EXPRESSION_CHUNK;
    for (size_t i = 0; i < job->stage.reductions; i++) {
        gathered_init(&gathered[i], &job->reductions[i], job);
    }
    for (size_t done = 0; done < count; done += job->stage.block) {
        size_t n = count - done < job->stage.block ? count - done : job->stage.block;
        worker_block(worker, row * job->reduced + first + done, n);
        for (size_t i = 0; i < job->stage.reductions; i++) {
            const struct reduction *one = &job->reductions[i];
            gathered_take(&gathered[i], one, job, worker->at[one->slot], n,
                          (int64_t)(first + done));
        }
    }
    for (size_t i = 0; i < job->stage.reductions; i++) {
        gathered_put(&gathered[i], &job->reductions[i], job, chunk * job->kept + row);
    }
}

/* Several short rows in one block. */
static void rows_run(const struct reduce *job, struct worker *worker, size_t row, size_t rows) {
    struct gathered gathered;
    worker_block(worker, row * job->reduced, rows * job->reduced);
    for (size_t i = 0; i < job->stage.reductions; i++) {
        const struct reduction *one = &job->reductions[i];
        for (size_t k = 0; k < rows; k++) {
            const char *x = (char *)worker->at[one->slot] + k * job->reduced * one->width;
            gathered_init(&gathered, one, job);
            gathered_take(&gathered, one, job, x, job->reduced, 0);
            gathered_put(&gathered, one, job, row + k);
        }
    }
}

static void along_task(void *context, size_t task, int slot) {
    const struct reduce *job = context;
    struct run *run = job->stage.run;
    struct worker worker;
    size_t tasks = job->kept / job->rows + (job->kept % job->rows != 0);
    size_t chunk = task / tasks, row = task % tasks * job->rows;
    size_t end = job->kept - row < job->rows ? job->kept : row + job->rows, from = row;
    size_t together = job->stage.block / job->reduced; /* rows that fit into a block */
    if (stream_cancelled(run->stream)) {
        return;
    }
    worker_init(&worker, &job->stage, slot);
    while (row < end) {
        if (together > 0) {
            size_t n = end - row < together ? end - row : together;
            rows_run(job, &worker, row, n);
            row += n;
        } else {
            chunk_run(job, &worker, row++, chunk);
        }
    }
    size_t left = job->reduced - chunk * EXPRESSION_CHUNK;
    run_advance(run, &job->stage,
                (end - from) * (left < EXPRESSION_CHUNK ? left : EXPRESSION_CHUNK));
}

/* Rows [row, row + rows) of the reduced dimensions, `n` elements each, into the lanes. */
static void lanes_take(const struct reduce *job, struct worker *worker, char *lanes, size_t row,
                       size_t rows, size_t n) {
    for (size_t i = 0; i < job->stage.reductions; i++) {
        const struct reduction *one = &job->reductions[i];
        char *all = lanes + i * ACROSS * LANES_BYTES;
        for (size_t k = 0; k < rows; k++) {
            char *lane = all + (row + k) % EXPRESSION_LANES * n * one->width;
            const char *x = (char *)worker->at[one->slot] + k * n * one->width;
            join_loop(job, one)(lane, lane, x, NULL, n);
        }
    }
}

static void across_task(void *context, size_t task, int slot) {
    const struct reduce *job = context;
    struct run *run = job->stage.run;
    struct worker worker;
    size_t chunk = task / job->blocks_across, first = task % job->blocks_across * job->across;
    size_t n = job->kept - first < job->across ? job->kept - first : job->across;
    size_t row = chunk * EXPRESSION_CHUNK, from = row;
    size_t end = job->reduced - row < EXPRESSION_CHUNK ? job->reduced : row + EXPRESSION_CHUNK;
    size_t together = n == job->kept ? job->stage.block / n : 1;
    char *lanes = job->lanes + (size_t)slot * job->stage.reductions * ACROSS * LANES_BYTES;
    if (stream_cancelled(run->stream)) {
        return;
    }
    worker_init(&worker, &job->stage, slot);
    for (size_t i = 0; i < job->stage.reductions; i++) {
        const struct reduction *one = &job->reductions[i];
        run->simd->gather(lanes + i * ACROSS * LANES_BYTES, one->identity, 0, one->width,
                          n * EXPRESSION_LANES);
    }
    for (; row < end; row += together) {
        size_t rows = end - row < together ? end - row : together;
        worker_block(&worker, row * job->kept + first, rows * n);
        lanes_take(job, &worker, lanes, row, rows, n);
    }
    for (size_t i = 0; i < job->stage.reductions; i++) {
        const struct reduction *one = &job->reductions[i];
        char *all = lanes + i * ACROSS * LANES_BYTES;
        for (size_t half = EXPRESSION_LANES / 2; half > 0; half /= 2) {
            join_loop(job, one)(all, all, all + half * n * one->width, NULL, half * n);
        }
        memcpy(one->partial + (chunk * job->kept + first) * one->width, all, n * one->width);
    }
    run_advance(run, &job->stage, (end - from) * n);
}

/* Chunks by neighbouring pairs; argmin and argmax in order. */
static void chunks_join(const struct reduce *job, const struct reduction *one) {
    size_t kept = job->kept, row = kept * one->width;
    if (one->places) {
        for (size_t k = 0; k < kept; k++) {
            struct best best = {.place = -1};
            int64_t place = 0;
            for (size_t c = 0; c < job->chunks; c++) {
                int64_t before = best.place;
                best_take(&best, one, one->partial + (c * kept + k) * one->width, 1, (int64_t)c);
                place = best.place != before ? one->place_partial[c * kept + k] : place;
            }
            memcpy(one->out + k * sizeof place, &place, sizeof place);
        }
        return;
    }
    for (size_t count = job->chunks; count > 1; count = (count + 1) / 2) {
        for (size_t i = 0; i < count / 2; i++) {
            join_loop(job, one)(one->partial + i * row, one->partial + 2 * i * row,
                                one->partial + (2 * i + 1) * row, NULL, kept);
        }
        if (count % 2 != 0) {
            memmove(one->partial + count / 2 * row, one->partial + (count - 1) * row, row);
        }
    }
    memcpy(one->out, one->partial, row);
}

static void reduction_init(struct reduction *one, const struct stage *stage, size_t number) {
    static const enum expression_op joins[] = {
        [EXPRESSION_SUM - EXPRESSION_REDUCTION_FIRST] = EXPRESSION_ADD,
        [EXPRESSION_PRODUCT - EXPRESSION_REDUCTION_FIRST] = EXPRESSION_MULTIPLY,
        [EXPRESSION_LEAST - EXPRESSION_REDUCTION_FIRST] = EXPRESSION_MINIMUM,
        [EXPRESSION_GREATEST - EXPRESSION_REDUCTION_FIRST] = EXPRESSION_MAXIMUM,
        [EXPRESSION_ANY - EXPRESSION_REDUCTION_FIRST] = EXPRESSION_OR,
        [EXPRESSION_ALL - EXPRESSION_REDUCTION_FIRST] = EXPRESSION_AND,
        [EXPRESSION_ARGMAX - EXPRESSION_REDUCTION_FIRST] = EXPRESSION_COPY,
    };
    const struct expression_instruction *code = &stage->code[stage->maps + number];
    const struct expression_program *program = stage->run->program;
    unsigned access = stage->row->first_access + code->to - EXPRESSION_ACCESS;
    memset(one, 0, sizeof *one);
    one->op = code->op;
    one->join = joins[code->op - EXPRESSION_REDUCTION_FIRST];
    one->type = code->type;
    one->width = expression_type_bytes(code->type);
    one->slot = code->a;
    one->places = code->op == EXPRESSION_ARGMIN || code->op == EXPRESSION_ARGMAX;
    one->out = stage->run->base[program->access[access].array];
    identity_put(one);
}

/* Where chunks leave their results. */
static bool partials_take(struct reduce *job) {
    struct stream *stream = job->stage.run->stream;
    for (size_t i = 0; i < job->stage.reductions; i++) {
        struct reduction *one = &job->reductions[i];
        if (job->chunks == 1) {
            one->partial = one->places ? NULL : one->out;
            one->place_partial = one->places ? (int64_t *)(void *)one->out : NULL;
            continue;
        }
        one->partial = stream_take(stream, job->chunks * job->kept * one->width);
        if (one->places) {
            one->place_partial = stream_take(stream, job->chunks * job->kept * sizeof(int64_t));
        }
        if (one->partial == NULL || (one->places && one->place_partial == NULL)) {
            return false;
        }
    }
    return true;
}

/* Whether most of what is read lies together across the kept dimensions. */
static bool reduce_turns(const struct run *run, size_t number, size_t kept) {
    const struct expression_stage *row = &run->program->stage[number];
    int balance = 0;
    if (kept < ACROSS_LEAST || row->kept == 0 || row->kept == row->dims) {
        return false;
    }
    for (size_t i = 0; i < row->accesses; i++) {
        const int64_t *strides = run->program->access[row->first_access + i].strides;
        balance += (strides[row->kept - 1] == 1) - (strides[row->dims - 1] == 1);
    }
    for (size_t i = 0; i < row->instructions; i++) {
        const struct expression_instruction *code =
            &run->program->instruction[row->first_instruction + i];
        if (code->op == EXPRESSION_ARGMIN || code->op == EXPRESSION_ARGMAX) {
            return false;
        }
        balance -= code->op >= EXPRESSION_REDUCTION_FIRST; /* results always lie so */
    }
    return balance > 0;
}

/* Nothing to reduce: what sums and products of nothing are. */
static void reduce_nothing(const struct reduce *job) {
    for (size_t i = 0; i < job->stage.reductions; i++) {
        const struct reduction *one = &job->reductions[i];
        if (one->op == EXPRESSION_SUM) {
            memset(one->out, 0, job->kept * one->width);
        } else if (!one->places) {
            job->stage.run->simd->gather(one->out, one->identity, 0, one->width, job->kept);
        }
    }
}

enum kiln_status stage_reduce(struct run *run, size_t number) {
    const struct expression_stage *row = &run->program->stage[number];
    struct thread_pool *pool = run->stream->pool;
    struct reduce job = {.kept = 1, .reduced = 1};
    for (int i = 0; i < row->dims; i++) {
        *(i < row->kept ? &job.kept : &job.reduced) *= (size_t)row->shape[i];
    }
    bool turned = reduce_turns(run, number, job.kept);
    bool any = stage_init(&job.stage, run, number, turned);
    for (size_t i = 0; i < job.stage.reductions; i++) {
        reduction_init(&job.reductions[i], &job.stage, i);
    }
    if (!any) {
        reduce_nothing(&job);
        return KILN_OK;
    }
    job.chunks = (job.reduced - 1) / EXPRESSION_CHUNK + 1;
    if (!partials_take(&job)) {
        return KILN_NO_MEMORY;
    }
    size_t width = (size_t)thread_pool_width(pool), tasks = 0;
    if (turned) {
        job.across = (job.kept / (2 * width) + 31) / 32 * 32;
        job.across = job.across < 32 ? 32 : job.across > ACROSS ? ACROSS : job.across;
        job.blocks_across = (job.kept - 1) / job.across + 1;
        job.lanes = stream_take(run->stream, width * job.stage.reductions * ACROSS * LANES_BYTES);
        if (job.lanes == NULL) {
            return KILN_NO_MEMORY;
        }
        tasks = job.blocks_across * job.chunks;
    } else {
        job.rows = job.reduced < TASK_ELEMENTS ? TASK_ELEMENTS / job.reduced : 1;
        job.rows = job.chunks > 1 ? 4 : job.rows;
        tasks = ((job.kept - 1) / job.rows + 1) * job.chunks;
    }
    thread_pool_run(pool, turned ? across_task : along_task, &job, tasks);
    for (size_t i = 0; job.chunks > 1 && i < job.stage.reductions; i++) {
        chunks_join(&job, &job.reductions[i]);
    }
    return KILN_OK;
}
