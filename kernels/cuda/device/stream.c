/*
 * stream.c: one slot's queue on a device: phases, copies, launches, waiting (stream.h).
 *
 * Device time is measured by events at the phases' borders; the span that a wait ends is closed
 * before waiting, so that the host's wake-up is not counted. Waiting first spins, because most jobs
 * take less than a wake-up, and then sleeps for a small part of what the job has taken so far: that
 * adds a few per cent to a long job, costs no core and sees a cancelled client soon.
 *
 * Thread: the slot's.
 */
#include "kernels/cuda/device/stream.h"
#include "kernels/cuda/device/kept.h"
#include "kernels/cuda/device/range.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>

#define SCRATCH_BYTES ((size_t)64 << 20) /* at first, but no more than */
#define SCRATCH_SHARE 64                 /* such a part of what there is, for there are several */
#define SCRATCH_LEAST ((size_t)2 << 20)
#define HOST_BYTES    ((size_t)16 << 20)
#define SPIN_NS       500000u
#define SLEEP_MIN_NS  20000u
#define SLEEP_MAX_NS  2000000u

static uint64_t now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

enum kiln_status stream_check(struct stream *stream, CUresult result, const char *what) {
    enum kiln_status status = driver_status(result);
    if (status != KILN_OK) {
        char text[192];
        driver_explain(result, text, sizeof text);
        snprintf(stream->error, sizeof stream->error, "%s: %s", what, text);
    }
    if (status == KILN_DEVICE_FAULT) {
        stream->fault = status;
    }
    return status;
}

static void mapped_reset(struct stream *stream) {
    atomic_store(&stream->mapped->cancel, 0);
    atomic_store(&stream->mapped->progress, 0);
}

static enum kiln_status mapped_create(struct stream *stream) {
    void *host = NULL;
    CUresult result = driver.cuMemHostAlloc(&host, sizeof *stream->mapped,
                                            CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
    if (result == CUDA_SUCCESS) {
        stream->mapped = host;
        mapped_reset(stream);
        result = driver.cuMemHostGetDevicePointer(&stream->mapped_address, host, 0);
    }
    return stream_check(stream, result, "mapped host memory");
}

static size_t scratch_bytes(const struct device *device) {
    uint64_t most = device->max_bytes > 0 ? device->max_bytes : device->total_bytes;
    uint64_t share = most / SCRATCH_SHARE;
    return share > SCRATCH_BYTES   ? SCRATCH_BYTES
           : share > SCRATCH_LEAST ? (size_t)share / SCRATCH_LEAST * SCRATCH_LEAST
                                   : SCRATCH_LEAST;
}

enum kiln_status stream_create(struct device *device, struct stream **stream) {
    struct stream *made = calloc(1, sizeof *made);
    if (made == NULL) {
        return KILN_NO_MEMORY;
    }
    made->device = device;
    made->phase = -1;
    enum kiln_status status =
        stream_check(made, driver.cuCtxSetCurrent(device->context), "context");
    if (status == KILN_OK) {
        status = stream_check(made, driver.cuStreamCreate(&made->handle, CU_STREAM_NON_BLOCKING),
                              "stream");
    }
    for (int i = 0; status == KILN_OK && i < 2 * SPANS_MAX; i++) {
        status =
            stream_check(made, driver.cuEventCreate(&made->events[i], CU_EVENT_DEFAULT), "event");
    }
    if (status == KILN_OK) {
        status = mapped_create(made);
    }
    if (status == KILN_OK) {
        status = kept_stream_init(made);
    }
    if (status == KILN_OK) {
        status = stream_check(
            made, stream_memory_init(&made->scratch, device, false, scratch_bytes(device)),
            "device memory");
    }
    if (status == KILN_OK) {
        status = stream_check(made, stream_memory_init(&made->host, device, true, HOST_BYTES),
                              "page-locked memory");
    }
    if (status != KILN_OK) {
        stream_destroy(made);
        made = NULL;
    }
    *stream = made;
    return status;
}

void stream_destroy(struct stream *stream) {
    if (stream == NULL) {
        return;
    }
    driver.cuCtxSetCurrent(stream->device->context);
    if (stream->active) {
        atomic_fetch_sub(&stream->device->active, 1);
    }
    stream_memory_finish(&stream->host);
    stream_memory_finish(&stream->scratch);
    kept_stream_finish(stream);
    if (stream->mapped != NULL) {
        driver.cuMemFreeHost(stream->mapped);
    }
    for (int i = 0; i < 2 * SPANS_MAX; i++) {
        if (stream->events[i]) {
            driver.cuEventDestroy(stream->events[i]);
        }
    }
    if (stream->handle) {
        driver.cuStreamDestroy(stream->handle);
    }
    free(stream);
}

bool stream_cancelled(struct stream *stream) {
    struct control *control = stream->control;
    if (control == NULL) {
        return false;
    }
    control_raise(control, atomic_load_explicit(&stream->mapped->progress, memory_order_relaxed));
    if (atomic_load_explicit(&control->cancel, memory_order_relaxed) == 0) {
        return false;
    }
    atomic_store(&stream->mapped->cancel, 1);
    return true;
}

/* Waits until everything that was enqueued is done. */
static enum kiln_status drain(struct stream *stream) {
    uint64_t start = now_ns();
    CUresult result;
    while ((result = driver.cuStreamQuery(stream->handle)) == CUDA_ERROR_NOT_READY) {
        stream_cancelled(stream);
        uint64_t elapsed = now_ns() - start;
        if (elapsed < SPIN_NS) {
            continue;
        }
        uint64_t pause = elapsed / 32;
        pause = pause < SLEEP_MIN_NS ? SLEEP_MIN_NS : pause > SLEEP_MAX_NS ? SLEEP_MAX_NS : pause;
        /* The default slack of 50 µs would more than double the shortest of these sleeps. */
        prctl(PR_SET_TIMERSLACK, 1000ul, 0ul, 0ul, 0ul);
        nanosleep(&(struct timespec){.tv_nsec = (long)pause}, NULL);
    }
    stream->busy = false;
    return stream_check(stream, result, "device");
}

static enum kiln_status event_record(struct stream *stream, int *event) {
    *event = stream->event_count;
    stream->busy = true;
    return stream_check(stream,
                        driver.cuEventRecord(stream->events[stream->event_count++], stream->handle),
                        "event");
}

static enum kiln_status span_close(struct stream *stream) {
    if (!stream->open) {
        return KILN_OK;
    }
    stream->open = false;
    return event_record(stream, &stream->spans[stream->span_count - 1].stop);
}

/* Opens a span of the current phase before device work, unless one is open. A span that follows
   another at once starts at its stop. */
static enum kiln_status span_open(struct stream *stream, bool adjacent) {
    if (stream->open || stream->phase < 0 || stream->span_count == SPANS_MAX) {
        return KILN_OK;
    }
    struct span *span = &stream->spans[stream->span_count];
    span->phase = (enum phase)stream->phase;
    enum kiln_status status = KILN_OK;
    if (adjacent && stream->span_count > 0) {
        span->start = span[-1].stop;
    } else {
        status = event_record(stream, &span->start);
    }
    if (status == KILN_OK) {
        stream->span_count++;
        stream->open = true;
    }
    return status;
}

static void range_end(struct stream *stream) {
    if (stream->phase >= 0) {
        range_stop(stream->range);
    }
    stream->phase = -1;
}

static void active_set(struct stream *stream, bool active) {
    if (active != stream->active) {
        stream->active = active;
        atomic_fetch_add(&stream->device->active, active ? 1 : -1);
    }
}

enum kiln_status stream_begin(struct stream *stream, struct control *control) {
    if (stream->fault != KILN_OK) {
        return stream->fault;
    }
    stream->error[0] = '\0';
    stream->event_count = 0;
    stream->span_count = 0;
    stream->open = false;
    stream->phase = -1;
    stream->encode_ns = 0;
    stream->control = NULL; /* what is drained belongs to the job before */
    enum kiln_status status =
        stream_check(stream, driver.cuCtxSetCurrent(stream->device->context), "context");
    if (status == KILN_OK && stream->busy) {
        status = drain(stream);
    }
    if (status == KILN_OK) {
        active_set(stream, true);
        kept_release(stream);
        mapped_reset(stream);
        stream->control = control;
        stream_memory_rewind(&stream->scratch);
        stream_memory_rewind(&stream->host);
    }
    return status;
}

/* Freeing waits for all streams, so it waits until none has a job. */
bool stream_rest(struct stream *stream, bool idle) {
    bool several = stream->scratch.count > 1 || stream->host.count > 1;
    if (stream->fault != KILN_OK || !several) {
        return false;
    }
    if (!idle || atomic_load(&stream->device->active) > 0 ||
        stream_check(stream, driver.cuCtxSetCurrent(stream->device->context), "context") !=
            KILN_OK) {
        return stream->fault == KILN_OK;
    }
    stream_memory_join(&stream->scratch);
    stream_memory_join(&stream->host);
    return false;
}

static void encode_start(struct stream *stream) {
    if (stream->encode_ns == 0) {
        stream->encode_ns = now_ns();
    }
}

enum kiln_status stream_phase(struct stream *stream, enum phase phase) {
    static const char *const names[PHASE_COUNT] = {"kiln upload", "kiln kernel", "kiln download",
                                                   "kiln encode"};
    if (stream->fault != KILN_OK) {
        return stream->fault;
    }
    bool adjacent = stream->open;
    enum kiln_status status = span_close(stream);
    range_end(stream);
    stream->phase = (int)phase;
    stream->range = range_start(names[phase]);
    if (phase == PHASE_ENCODE && !adjacent) { /* the host's part, unless the device is at work */
        encode_start(stream);
        return status;
    }
    return status == KILN_OK ? span_open(stream, adjacent) : status;
}

static void *take(struct stream *stream, struct stream_memory *pool, size_t size,
                  const char *what) {
    void *address = stream->fault == KILN_OK ? stream_memory_take(pool, size) : NULL;
    if (address == NULL && stream->fault == KILN_OK) {
        stream_check(stream, pool->result, what);
    }
    return address;
}

void *stream_reserve(struct stream *stream, size_t size) {
    return take(stream, &stream->scratch, size, "device memory");
}

void *stream_host(struct stream *stream, size_t size) {
    return take(stream, &stream->host, size, "page-locked memory");
}

void *stream_result(struct stream *stream, void *host, size_t size) {
    (void)host;
    return stream_reserve(stream, size);
}

void *stream_zeroed(struct stream *stream, size_t size) {
    void *address = stream_reserve(stream, size);
    if (address != NULL) {
        CUresult result =
            driver.cuMemsetD8Async((CUdeviceptr)(uintptr_t)address, 0, size, stream->handle);
        stream->busy = true;
        address = stream_check(stream, result, "clearing memory") == KILN_OK ? address : NULL;
    }
    return address;
}

const void *stream_upload(struct stream *stream, const void *host, size_t size) {
    void *address = stream_reserve(stream, size);
    if (address == NULL || size == 0) {
        return address;
    }
    enum kiln_status status = span_open(stream, false);
    if (status == KILN_OK) {
        stream->busy = true;
        status = stream_check(
            stream,
            driver.cuMemcpyHtoDAsync((CUdeviceptr)(uintptr_t)address, host, size, stream->handle),
            "upload");
    }
    return status == KILN_OK ? address : NULL;
}

enum kiln_status stream_download(struct stream *stream, void *host, const void *device,
                                 size_t size) {
    enum kiln_status status = stream->fault;
    if (status != KILN_OK || size == 0) {
        return status;
    }
    if (stream_cancelled(stream)) {
        return KILN_CANCELLED;
    }
    status = span_open(stream, false);
    if (status == KILN_OK) {
        stream->busy = true;
        status = stream_check(
            stream,
            driver.cuMemcpyDtoHAsync(host, (CUdeviceptr)(uintptr_t)device, size, stream->handle),
            "download");
    }
    return status;
}

enum kiln_status stream_run(struct stream *stream, enum kernel_id id, const void *args) {
    if (stream->fault != KILN_OK) {
        return stream->fault;
    }
    if ((unsigned)id >= KERNEL_COUNT || stream->device->kernels[id] == NULL) {
        return KILN_UNSUPPORTED;
    }
    if (stream_cancelled(stream)) {
        return KILN_CANCELLED;
    }
    enum kiln_status status = span_open(stream, false);
    return status == KILN_OK ? stream->device->kernels[id]->launch(stream, args) : status;
}

unsigned stream_resident(const struct stream *stream, enum kernel_id id, int index, int warps) {
    unsigned blocks = stream->device->functions[id][index].resident[warps];
    return (blocks > 0 ? blocks : 1) * (unsigned)stream->device->multiprocessors;
}

enum kiln_status stream_launch(struct stream *stream, enum kernel_id id, int index,
                               const struct shape *shape, void *argument, const char *what) {
    const struct function *function = &stream->device->functions[id][index];
    void *arguments[] = {argument};
    unsigned shared = shape->warps * (unsigned)function->shared_per_warp;
    CUresult result;
    stream->busy = true;
    if (shape->cooperative) {
        result =
            driver.cuLaunchCooperativeKernel(function->handle, shape->grid_x, shape->grid_y, 1, 32,
                                             shape->warps, 1, shared, stream->handle, arguments);
    } else {
        result = driver.cuLaunchKernel(function->handle, shape->grid_x, shape->grid_y, 1, 32,
                                       shape->warps, 1, shared, stream->handle, arguments, NULL);
    }
    return stream_check(stream, result, what);
}

enum kiln_status stream_wait(struct stream *stream) {
    if (stream->fault != KILN_OK) {
        return stream->fault;
    }
    enum kiln_status status = span_close(stream);
    if (status == KILN_OK && stream->busy) {
        status = drain(stream);
    }
    if (stream->phase == PHASE_ENCODE) {
        encode_start(stream);
    }
    return status == KILN_OK && stream_cancelled(stream) ? KILN_CANCELLED : status;
}

/* Adds the spans' lengths to the phases of `timing`. */
static enum kiln_status spans_add(struct stream *stream, struct timing *timing) {
    double *const sums[] = {[PHASE_UPLOAD] = &timing->upload,
                            [PHASE_KERNEL] = &timing->kernel,
                            [PHASE_DOWNLOAD] = &timing->download,
                            [PHASE_ENCODE] = &timing->encode};
    enum kiln_status status = KILN_OK;
    for (int i = 0; status == KILN_OK && i < stream->span_count; i++) {
        const struct span *span = &stream->spans[i];
        float milliseconds = 0;
        status = stream_check(stream,
                              driver.event_elapsed(&milliseconds, stream->events[span->start],
                                                   stream->events[span->stop]),
                              "event");
        *sums[span->phase] += (double)milliseconds;
    }
    return status;
}

enum kiln_status stream_finish(struct stream *stream, struct timing *timing) {
    if (stream->encode_ns != 0) {
        timing->encode += (double)(now_ns() - stream->encode_ns) * 1e-6;
    }
    range_end(stream);
    enum kiln_status status = stream->fault;
    if (status == KILN_OK) {
        status = span_close(stream);
    }
    if (status == KILN_OK && stream->busy) {
        if (stream->error[0]) {
            atomic_store(&stream->mapped->cancel,
                         1); /* the job failed: nobody wants what kernels compute */
        }
        status = drain(stream);
    }
    if (status == KILN_OK) {
        kept_release(stream);
        status = spans_add(stream, timing);
    }
    /* Phases may start anew, with the memory of this job, without another begin. */
    stream->event_count = stream->span_count = 0;
    stream->open = false;
    stream->encode_ns = 0;
    if (status == KILN_OK && !stream->error[0] && stream->control != NULL &&
        !stream_cancelled(stream)) {
        control_raise(stream->control, CONTROL_FULL);
    }
    stream->control = NULL;
    active_set(stream, false);
    return status;
}

const char *stream_error(struct stream *stream) {
    return stream->error;
}
