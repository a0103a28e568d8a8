/*
 * stream.h: one slot of the CPU device, as the kernels see it.
 *
 * A kernel is a function `<name>_launch(stream, args)` that returns when the work is done. It may
 * take scratch memory from the stream, spread work over the device's pool and must look at
 * stream_cancelled every few milliseconds.
 *
 * Threads: a stream belongs to one thread at a time; stream_cancelled may be called from the pool.
 */
#ifndef KILN_KERNELS_CPU_DEVICE_STREAM_H
#define KILN_KERNELS_CPU_DEVICE_STREAM_H

#include "compute/core/thread_pool.h"
#include "kernels/backend.h"
#include "kernels/cpu/device/isa.h"
#include "kernels/cpu/device/memory.h"

#include <stdbool.h>

struct plans;

struct device {
    struct thread_pool *pool;
    enum isa isa;
    struct memory_account account;
    struct plans *plans; /* of transforms */
};

struct stream {
    struct device *device;
    struct thread_pool *pool; /* the device's */
    enum isa isa;
    struct control *control; /* NULL: none */
    struct memory scratch, pinned;
    int phase;              /* enum phase, -1: none open */
    uint64_t phase_started; /* CLOCK_MONOTONIC, ns */
    uint64_t spent[PHASE_COUNT];
    char error[160];
};

/** True once the job should stop. */
static inline bool stream_cancelled(const struct stream *stream) {
    return stream->control != NULL &&
           atomic_load_explicit(&stream->control->cancel, memory_order_relaxed) != 0;
}

/** Scratch for a kernel, valid until the stream's next begin; NULL with the error text set. */
void *stream_take(struct stream *stream, size_t size);
/** Sets the stream's error text and returns the status. */
enum kiln_status stream_fail(struct stream *stream, enum kiln_status status, const char *format,
                             ...) __attribute__((format(printf, 3, 4)));

/* The stream's part of cpu_backend (stream.c). */
enum kiln_status cpu_stream_create(struct device *device, struct stream **stream);
void cpu_stream_destroy(struct stream *stream);
enum kiln_status cpu_stream_begin(struct stream *stream, struct control *control);
bool cpu_stream_rest(struct stream *stream, bool idle);
enum kiln_status cpu_stream_phase(struct stream *stream, enum phase phase);
const void *cpu_stream_upload(struct stream *stream, const void *host, size_t size);
void *cpu_stream_reserve(struct stream *stream, size_t size);
void *cpu_stream_host(struct stream *stream, size_t size);
void *cpu_stream_result(struct stream *stream, void *host, size_t size);
enum kiln_status cpu_stream_download(struct stream *stream, void *host, const void *device,
                                     size_t size);
void *cpu_stream_mapped(struct stream *stream, void *host, size_t size);
enum kiln_status cpu_stream_launch(struct stream *stream, enum kernel_id id, const void *args);
enum kiln_status cpu_stream_wait(struct stream *stream);
enum kiln_status cpu_stream_finish(struct stream *stream, struct timing *timing);
const char *cpu_stream_error(struct stream *stream);

/* The device's self-description (describe.c). */
enum kiln_status cpu_enumerate(struct text *json, char *why, size_t why_size);
enum kiln_status cpu_describe(struct device *device, struct text *json);
/** Bytes of memory that this process may have: the host's, or its control group's limit; 0 if
    neither is known. */
uint64_t cpu_memory_total(void);

/* The kernels that the CPU has: one file each; args as in kernels/<name>.h. */
#define CPU_KERNELS(X)                                                                             \
    X(MANDELBROT, mandelbrot)                                                                      \
    X(COLORIZE, colorize)                                                                          \
    X(JACOBI, jacobi)                                                                              \
    X(SPECTRAL, spectral)                                                                          \
    X(LAPLACIAN, laplacian)                                                                        \
    X(LOMBSCARGLE, lombscargle)                                                                    \
    X(EXPRESSION, expression)
#define X(symbol, name) enum kiln_status name##_launch(struct stream *, const void *);
CPU_KERNELS(X)
#undef X

#endif
