/*
 * spectral.c: the closed form of the Jacobi iteration, spread over the pool.
 *
 * Three rounds over the array, each by batches of lines:
 *   rows:     sine transform of every row of B into `field` (double)
 *   columns:  transform down, multiply each mode, transform back, while the batch is in cache
 *   rows:     transform back and store as the elements wanted
 * A transform of length n applied twice multiplies by (n+1)/2; the modes' factors take that out.
 */
#include "kernels/cpu/device/plans.h"
#include "kernels/cpu/device/stream.h"
#include "kernels/cpu/spectral/spectral_simd.h"

struct solve {
    struct spectral_job job;
    const struct spectral_simd *simd;
    const struct stream *stream;
    size_t batches; /* of columns, in one plane */
    bool back;      /* rows: second pass */
    char *work;     /* one part for each thread */
    size_t part;
};

static void rows_chunk(void *context, size_t chunk, int slot) {
    struct solve *solve = context;
    if (!stream_cancelled(solve->stream)) {
        solve->simd->rows(&solve->job, chunk, solve->back,
                          solve->work + solve->part * (size_t)slot);
    }
}

static void columns_chunk(void *context, size_t chunk, int slot) {
    struct solve *solve = context;
    if (!stream_cancelled(solve->stream)) {
        solve->simd->columns(&solve->job, chunk / solve->batches, chunk % solve->batches,
                             solve->work + solve->part * (size_t)slot);
    }
}

static void solve_run(struct solve *solve, struct thread_pool *pool) {
    const struct spectral_args *args = solve->job.args;
    size_t rows = (size_t)args->planes * (size_t)args->height;
    size_t row_batches = (rows + solve->simd->lines - 1) / solve->simd->lines;
    solve->batches = ((size_t)args->width + solve->simd->lines - 1) / solve->simd->lines;
    thread_pool_run(pool, rows_chunk, solve, row_batches);
    thread_pool_run(pool, columns_chunk, solve, solve->batches * (size_t)args->planes);
    solve->back = true;
    thread_pool_run(pool, rows_chunk, solve, row_batches);
}

static enum kiln_status scratch_take(struct solve *solve, struct stream *stream) {
    const struct spectral_args *args = solve->job.args;
    size_t across = solve->simd->plan_work(solve->job.across);
    size_t down = solve->simd->plan_work(solve->job.down);
    size_t cells = (size_t)args->planes * (size_t)args->height * (size_t)args->width;
    solve->part = ((across > down ? across : down) + 255) / 256 * 256;
    solve->work = stream_take(stream, solve->part * (size_t)thread_pool_width(stream->pool));
    solve->job.field = stream_take(stream, cells * sizeof *solve->job.field);
    return solve->work != NULL && solve->job.field != NULL ? KILN_OK : KILN_NO_MEMORY;
}

enum kiln_status spectral_launch(struct stream *stream, const void *arguments) {
    const struct spectral_args *args = arguments;
    struct plans *plans = stream->device->plans;
    const struct spectral_simd *simd = spectral_simd_of(stream->isa);
    struct solve solve = {
        .job = {.args = args,
                .across = plans_take(plans, &simd->plans, (size_t)args->width),
                .down = plans_take(plans, &simd->plans, (size_t)args->height)},
        .simd = simd,
        .stream = stream,
    };
    enum kiln_status status = KILN_NO_MEMORY;
    if (solve.job.across == NULL || solve.job.down == NULL) {
        stream_fail(stream, status, "no memory for a transform of %d × %d", args->width,
                    args->height);
        goto out;
    }
    if ((status = scratch_take(&solve, stream)) != KILN_OK) {
        goto out;
    }
    solve_run(&solve, stream->pool);
    status = stream_cancelled(stream) ? KILN_CANCELLED : KILN_OK;
out:
    plans_give(plans, solve.job.across);
    plans_give(plans, solve.job.down);
    return status;
}

const struct spectral_simd *spectral_simd_of(enum isa isa) {
    static const struct spectral_simd *const tables[ISA_COUNT] = {
#define X(isa) [ISA_##isa] = &spectral_##isa##_f64,
        KILN_CPU_ISAS(X)
#undef X
    };
    return tables[isa];
}
