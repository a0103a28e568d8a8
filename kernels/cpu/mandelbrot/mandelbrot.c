/*
 * mandelbrot.c: sets up the escape counts of kernels/mandelbrot.h and spreads them over the pool.
 *
 * Threads share one counter of samples instead of fixed bands, so that none is left with the
 * expensive part of the picture. The stepping itself is in mandelbrot_simd.c.
 */
#include "kernels/cpu/device/stream.h"
#include "kernels/cpu/mandelbrot/mandelbrot_simd.h"

#include <math.h>

/* Below this many steps (an upper bound, capped per sample) a helper is not worth waking. */
#define STEPS_PER_THREAD ((double)(1 << 19))

static const struct mandelbrot_simd *const tables[ISA_COUNT][2] = {
#define X(isa) [ISA_##isa] = {&mandelbrot_##isa##_f32, &mandelbrot_##isa##_f64},
    KILN_CPU_ISAS(X)
#undef X
};

/* The escape test may be left out for some steps where a |z| beyond the radius R can only grow:
   |z²+c| >= |z|² - |c| > |z| with a margin far above rounding. |c| > R escapes at the first step,
   which is always tested; otherwise |c| <= R, and R - 1 > 1 suffices. With R near 2 that leaves the
   constants near |c| = 2. */
static int test_stride(const struct mandelbrot_args *args, const struct mandelbrot_view *view) {
    if (args->escape_radius >= 2.01) {
        return 32;
    }
    double far_x = fmax(fabs(view->x0), fabs(fma(args->width - 1, view->dx, view->x0)));
    double far_y = fmax(fabs(view->y0), fabs(fma(args->height - 1, view->dy, view->y0)));
    return hypot(far_x, far_y) < 1.99 ? 32 : 1;
}

static size_t thread_count(const struct mandelbrot_args *args, size_t samples, int width) {
    double steps = (double)samples * fmin((double)args->max_iter, 1 << 20);
    double threads = fmin(steps / STEPS_PER_THREAD, (double)samples / 128);
    if (threads <= 1) {
        return 1;
    }
    return threads < width ? (size_t)threads : (size_t)width;
}

static void work(void *context, size_t chunk, int slot) {
    (void)chunk;
    (void)slot;
    struct mandelbrot_job *job = ((void **)context)[0];
    const struct mandelbrot_simd *simd = ((void **)context)[1];
    simd->work(job);
}

static void picture_run(struct stream *stream, const struct mandelbrot_args *args, int picture) {
    size_t samples = (size_t)args->width * (size_t)args->height;
    struct mandelbrot_job job = {
        .args = *args,
        .view = args->view[picture],
        .samples = samples,
        .stride = test_stride(args, &args->view[picture]),
        .control = stream->control,
    };
    job.args.count = args->count != NULL ? args->count + (size_t)picture * samples : NULL;
    job.args.smooth = args->smooth != NULL ? args->smooth + (size_t)picture * samples : NULL;
    void *context[2] = {&job, (void *)tables[stream->isa][args->fp64 ? 1 : 0]};
    thread_pool_run(stream->pool, work, context,
                    thread_count(args, samples, thread_pool_width(stream->pool)));
}

enum kiln_status mandelbrot_launch(struct stream *stream, const void *arguments) {
    const struct mandelbrot_args *args = arguments;
    for (int picture = 0; picture < args->views && !stream_cancelled(stream); picture++) {
        picture_run(stream, args, picture);
    }
    return stream_cancelled(stream) ? KILN_CANCELLED : KILN_OK;
}
