/*
 * laplacian.c: the five-point Laplacian of kernels/laplacian.h, in chunks of rows.
 */
#include "kernels/laplacian.h"
#include "kernels/cpu/device/stream.h"
#include "kernels/cpu/laplacian/laplacian_simd.h"

#include <string.h>

#define CHUNK_CELLS ((size_t)32768)

static const struct laplacian_simd *const tables[ISA_COUNT] = {
#define X(isa) [ISA_##isa] = &laplacian_##isa##_f32,
    KILN_CPU_ISAS(X)
#undef X
};

struct laplacian_call {
    struct stream *stream;
    const struct laplacian_args *args;
    const struct laplacian_simd *simd;
    size_t row_size; /* bytes */
    size_t rows;     /* of all planes */
    size_t chunk;    /* rows */
    const char *zero;
};

static void row_run(const struct laplacian_call *job, size_t row) {
    const struct laplacian_args *args = job->args;
    size_t height = (size_t)args->height, width = (size_t)args->width;
    const char *x = (const char *)args->x + row * job->row_size;
    void *b = (char *)args->b + row * job->row_size;
    const void *up = row % height ? x - job->row_size : job->zero;
    const void *down = (row + 1) % height ? x + job->row_size : job->zero;
    if (args->real)
        job->simd->row_real(b, up, (const void *)x, down, width);
    else
        job->simd->row_int(b, up, (const void *)x, down, width);
}

static void chunk_run(void *context, size_t chunk, int slot) {
    (void)slot;
    const struct laplacian_call *job = context;
    size_t end = (chunk + 1) * job->chunk < job->rows ? (chunk + 1) * job->chunk : job->rows;
    for (size_t row = chunk * job->chunk; row < end && !stream_cancelled(job->stream); row++)
        row_run(job, row);
}

enum kiln_status laplacian_launch(struct stream *stream, const void *arguments) {
    const struct laplacian_args *args = arguments;
    size_t width = (size_t)args->width;
    struct laplacian_call job = {
        .stream = stream,
        .args = args,
        .simd = tables[stream->isa],
        .row_size = width * (args->real ? sizeof(double) : sizeof(int32_t)),
        .rows = (size_t)args->height * (size_t)args->planes,
        .chunk = width < CHUNK_CELLS ? CHUNK_CELLS / width : 1,
    };
    char *zero = stream_take(stream, job.row_size);
    if (!zero)
        return KILN_NO_MEMORY;
    memset(zero, 0, job.row_size);
    job.zero = zero;
    thread_pool_run(stream->pool, chunk_run, &job, (job.rows + job.chunk - 1) / job.chunk);
    return stream_cancelled(stream) ? KILN_CANCELLED : KILN_OK;
}
