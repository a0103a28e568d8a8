/*
 * colorize.c: a scalar field to RGB (kernels/colorize.h): makes the tables and spreads the rows.
 */
#include "kernels/colorize.h"
#include "kernels/cpu/device/stream.h"
#include "kernels/cpu/mandelbrot/colorize_simd.h"

#include <math.h>
#include <string.h>

#define CHUNK_SAMPLES ((size_t)16384)

static const struct colorize_simd *const tables_of[ISA_COUNT] = {
#define X(isa) [ISA_##isa] = &colorize_##isa##_f32,
    KILN_CPU_ISAS(X)
#undef X
};

struct colorize_call {
    struct stream *stream;
    const struct colorize_args *args;
    const struct colorize_simd *simd;
    struct colorize_tables tables;
    ptrdiff_t stride;
    size_t chunk; /* rows of the picture */
};

/* The thresholds are finite or, where vmax is beyond float, infinite: their bits ascend too. */
static void starts_fill(struct colorize_tables *tables) {
    uint32_t bits[256];
    memcpy(bits, tables->threshold, sizeof bits);
    tables->threshold[256] = NAN;
    tables->first = bits[1] >> COLORIZE_SHIFT;
    tables->last = bits[255] >> COLORIZE_SHIFT;
    tables->steps = 1;
    int k = 1;
    for (uint32_t entry = tables->first; entry <= tables->last; entry++) {
        while (k < 256 && bits[k] <= entry << COLORIZE_SHIFT)
            k++;
        int start = k - 1, end = start;
        while (end < 255 && bits[end + 1] >> COLORIZE_SHIFT == entry)
            end++;
        tables->start[entry - tables->first] = (uint8_t)start;
        tables->steps = end - start > tables->steps ? end - start : tables->steps;
    }
    if (tables->steps > COLORIZE_STEPS)
        tables->steps = 0;
}

static void hue_fill(struct colorize_tables *tables, int k, const uint8_t *rgb) {
    struct colorize_hue hue;
    colorize_hue_fill(&hue, rgb[0], rgb[1], rgb[2]);
    tables->value[k] = hue.value;
    tables->saturation[k] = hue.saturation;
    for (int channel = 0; channel < 3; channel++)
        tables->weight[channel][k] = hue.weight[channel];
}

static void tables_fill(struct colorize_tables *tables, const struct colorize_args *args) {
    colorize_thresholds(args, tables->threshold);
    starts_fill(tables);
    for (int k = 0; k < 256; k++) {
        const uint8_t *rgb = args->lut + 3 * k;
        tables->packed[k] = rgb[0] | (uint32_t)rgb[1] << 8 | (uint32_t)rgb[2] << 16;
        if (args->shade)
            hue_fill(tables, k, rgb);
    }
    tables->light = colorize_light_of(args);
}

static void row_run(const struct colorize_call *job, size_t row) {
    const struct colorize_args *args = job->args;
    ptrdiff_t supersample = args->supersample, apron = args->apron;
    const float *field = args->field + (apron + (ptrdiff_t)row * supersample) * job->stride + apron;
    struct colorize_run run = {
        .tables = &job->tables,
        .stride = job->stride,
        .supersample = args->supersample,
        .shade = args->shade,
        .indexed = args->indexed,
    };
    size_t bytes = args->indexed ? 1 : 3;
    for (int column = 0; column < args->width; column += run.pixels) {
        int left = args->width - column;
        run.pixels = left < COLORIZE_RUN ? left : COLORIZE_RUN;
        run.field = field + column * supersample;
        run.rgb = args->rgb + bytes * (row * (size_t)args->width + (size_t)column);
        job->simd->run(&run);
    }
}

static void chunk_run(void *context, size_t chunk, int slot) {
    (void)slot;
    const struct colorize_call *job = context;
    size_t end = (chunk + 1) * job->chunk, height = (size_t)job->args->height;
    for (size_t row = chunk * job->chunk;
         row < (end < height ? end : height) && !stream_cancelled(job->stream); row++)
        row_run(job, row);
}

enum kiln_status colorize_launch(struct stream *stream, const void *arguments) {
    const struct colorize_args *args = arguments;
    size_t columns = (size_t)args->width * (size_t)args->supersample;
    size_t row = columns * (size_t)args->supersample; /* samples of one row of the picture */
    if (args->shade && args->apron < 1)
        return stream_fail(stream, KILN_UNSUPPORTED, "shading needs an apron of one sample");
    if (args->indexed && (args->shade || args->supersample > 1))
        return stream_fail(stream, KILN_UNSUPPORTED, "an index cannot be a mean of colours");
    struct colorize_call job = {
        .stream = stream,
        .args = args,
        .simd = tables_of[stream->isa],
        .stride = (ptrdiff_t)(columns + 2 * (size_t)args->apron),
        .chunk = row < CHUNK_SAMPLES ? CHUNK_SAMPLES / row : 1,
    };
    tables_fill(&job.tables, args);
    size_t height = (size_t)args->height;
    thread_pool_run(stream->pool, chunk_run, &job, (height + job.chunk - 1) / job.chunk);
    return stream_cancelled(stream) ? KILN_CANCELLED : KILN_OK;
}
