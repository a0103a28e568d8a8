/*
 * stream.c: a slot of the CPU: two memory pools, the clock of the phases, and the kernels' table.
 *
 * Everything is synchronous on the calling thread: launch returns when the work is done, addresses
 * on the device are ordinary pointers and nothing is copied unless a caller downloads elsewhere.
 */
#include "kernels/cpu/device/stream.h"

#include <assert.h>
#include <malloc.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static enum kiln_status (*const kernels[KERNEL_COUNT])(struct stream *, const void *) = {
#define X(symbol, name) [KERNEL_##symbol] = name##_launch,
    CPU_KERNELS(X)
#undef X
};

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

enum kiln_status cpu_stream_create(struct device *device, struct stream **out) {
    struct stream *stream = calloc(1, sizeof *stream);
    if (stream == NULL) {
        return KILN_NO_MEMORY;
    }
    stream->device = device;
    stream->pool = device->pool;
    stream->isa = device->isa;
    stream->phase = -1;
    memory_init(&stream->scratch, &device->account);
    memory_init(&stream->pinned, &device->account);
    *out = stream;
    return KILN_OK;
}

void cpu_stream_destroy(struct stream *stream) {
    if (stream == NULL) {
        return;
    }
    memory_finish(&stream->pinned);
    memory_finish(&stream->scratch);
    free(stream);
}

enum kiln_status stream_fail(struct stream *stream, enum kiln_status status, const char *format,
                             ...) {
    va_list list;
    va_start(list, format);
    vsnprintf(stream->error, sizeof stream->error, format, list);
    va_end(list);
    return status;
}

enum kiln_status cpu_stream_begin(struct stream *stream, struct control *control) {
    stream->control = control;
    stream->phase = -1;
    stream->error[0] = '\0';
    memset(stream->spent, 0, sizeof stream->spent);
    memory_reset(&stream->scratch);
    memory_reset(&stream->pinned);
    return KILN_OK;
}

bool cpu_stream_rest(struct stream *stream, bool idle) {
    struct memory *const pools[] = {&stream->scratch, &stream->pinned};
    size_t held = stream->scratch.held + stream->pinned.held;
    uint64_t all = atomic_load_explicit(&stream->device->account.held, memory_order_relaxed);
    uint64_t limit = stream->device->account.limit;
    bool large = held > MEMORY_KEEP || (limit > 0 && all > limit / MEMORY_SHARE);
    for (int i = 0; i < 2; i++) {
        if ((idle || large) && held > MEMORY_IDLE) {
            memory_finish(pools[i]);
        } else {
            memory_reset(pools[i]);
        }
    }
    if (idle) {
        malloc_trim(0); /* what decoders and small pools have left behind */
    }
    return !idle && stream->scratch.held + stream->pinned.held > MEMORY_IDLE;
}

static void phase_close(struct stream *stream, uint64_t now) {
    if (stream->phase >= 0) {
        stream->spent[stream->phase] += now - stream->phase_started;
    }
    stream->phase = -1;
}

enum kiln_status cpu_stream_phase(struct stream *stream, enum phase phase) {
    assert(phase >= 0 && phase < PHASE_COUNT);
    uint64_t now = now_ns();
    phase_close(stream, now);
    stream->phase = (int)phase;
    stream->phase_started = now;
    return KILN_OK;
}

enum kiln_status cpu_stream_finish(struct stream *stream, struct timing *timing) {
    phase_close(stream, now_ns());
    timing->upload += 1e-6 * (double)stream->spent[PHASE_UPLOAD];
    timing->kernel += 1e-6 * (double)stream->spent[PHASE_KERNEL];
    timing->download += 1e-6 * (double)stream->spent[PHASE_DOWNLOAD];
    timing->encode += 1e-6 * (double)stream->spent[PHASE_ENCODE];
    memset(stream->spent, 0, sizeof stream->spent);
    if (stream->control != NULL && !stream->error[0] && !stream_cancelled(stream)) {
        control_raise(stream->control, CONTROL_FULL);
    }
    stream->control = NULL;
    return KILN_OK;
}

static void *take(struct stream *stream, struct memory *memory, size_t size) {
    void *piece = memory_take(memory, size);
    if (piece == NULL) {
        stream_fail(stream, KILN_NO_MEMORY, "no memory for %zu bytes of scratch", size);
    }
    return piece;
}

void *stream_take(struct stream *stream, size_t size) {
    return take(stream, &stream->scratch, size);
}

const void *cpu_stream_upload(struct stream *stream, const void *host, size_t size) {
    (void)stream;
    (void)size;
    return host;
}

void *cpu_stream_reserve(struct stream *stream, size_t size) {
    return take(stream, &stream->scratch, size);
}

void *cpu_stream_host(struct stream *stream, size_t size) {
    return take(stream, &stream->pinned, size);
}

void *cpu_stream_result(struct stream *stream, void *host, size_t size) {
    (void)stream;
    (void)size;
    return host;
}

enum kiln_status cpu_stream_download(struct stream *stream, void *host, const void *device,
                                     size_t size) {
    (void)stream;
    if (host != device) {
        memcpy(host, device, size);
    }
    return KILN_OK;
}

void *cpu_stream_mapped(struct stream *stream, void *host, size_t size) {
    (void)stream;
    (void)size;
    return host;
}

enum kiln_status cpu_stream_launch(struct stream *stream, enum kernel_id id, const void *args) {
    if ((unsigned)id >= KERNEL_COUNT || kernels[id] == NULL) {
        return stream_fail(stream, KILN_UNSUPPORTED, "the CPU has no such kernel");
    }
    if (stream_cancelled(stream)) {
        return stream_fail(stream, KILN_CANCELLED, "cancelled");
    }
    enum kiln_status status = kernels[id](stream, args);
    if (status == KILN_CANCELLED) {
        stream_fail(stream, status, "cancelled");
    }
    return status;
}

enum kiln_status cpu_stream_wait(struct stream *stream) {
    (void)stream;
    return KILN_OK;
}

const char *cpu_stream_error(struct stream *stream) {
    return stream->error;
}
