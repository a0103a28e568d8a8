/*
 * stream.h: one slot's queue on a device, as the launchers see it.
 *
 * A launcher takes scratch with stream_scratch, enqueues with stream_launch and returns the first
 * status that is not KILN_OK; the text of an error is kept by the stream. Launchers that enqueue
 * long chains of launches ask stream_cancelled in between. Kernels that run long read
 * stream_stop_flag (a word of host memory, mapped) and end early when it is not 0; they may tell
 * their progress through stream_progress_word beside it.
 *
 * Threads: the slot's only.
 */
#ifndef KILN_KERNELS_CUDA_DEVICE_STREAM_H
#define KILN_KERNELS_CUDA_DEVICE_STREAM_H

#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/stream_memory.h"

#define SPANS_MAX 12

/** A stretch of device work between two events. */
struct span {
    enum phase phase;
    int start, stop; /* events */
};

/** What one kernel keeps with a stream, by its kept_row; NULL where that says 0. */
struct kept {
    void *state;
    void *memory; /* of the device */
};

struct stream {
    struct device *device;
    CUstream handle;
    struct stream_memory scratch, host;
    CUevent events[2 * SPANS_MAX];
    int event_count; /* recorded in this job */
    struct span spans[SPANS_MAX];
    int span_count;
    bool open;          /* the last span has no stop yet */
    bool busy;          /* work was enqueued and not waited for */
    bool active;        /* between begin and finish: counted in the device */
    int phase;          /* enum phase, or -1 */
    uint64_t range;     /* the profiler's range of the phase */
    uint64_t encode_ns; /* when PHASE_ENCODE began, 0: never */
    struct control *control;
    struct control *mapped; /* host memory that kernels see: they read cancel, write progress */
    CUdeviceptr mapped_address;
    enum kiln_status fault; /* sticky: KILN_OK or KILN_DEVICE_FAULT */
    char error[256];
    struct kept kept[KERNEL_COUNT];
    CUdeviceptr kept_memory; /* all of it */
    uint32_t holds; /* kernels whose kept_row.release is due after the job: bit KERNEL_… */
};

/** Shape of a launch. */
struct shape {
    unsigned grid_x, grid_y;
    unsigned warps;   /* a block is 32 × warps threads, (32, warps) */
    bool cooperative; /* all blocks run at once and may wait for each other */
};

enum kiln_status stream_create(struct device *device, struct stream **stream);
void stream_destroy(struct stream *stream);
enum kiln_status stream_begin(struct stream *stream, struct control *control);
bool stream_rest(struct stream *stream, bool idle);
enum kiln_status stream_phase(struct stream *stream, enum phase phase);
const void *stream_upload(struct stream *stream, const void *host, size_t size);
void *stream_reserve(struct stream *stream, size_t size);
void *stream_host(struct stream *stream, size_t size);
void *stream_result(struct stream *stream, void *host, size_t size);
void *stream_mapped(struct stream *stream, void *host, size_t size);
enum kiln_status stream_download(struct stream *stream, void *host, const void *device,
                                 size_t size);
enum kiln_status stream_run(struct stream *stream, enum kernel_id id, const void *args);
enum kiln_status stream_wait(struct stream *stream);
enum kiln_status stream_finish(struct stream *stream, struct timing *timing);
const char *stream_error(struct stream *stream);

/** What kernel `id` keeps with the stream. */
static inline struct kept stream_kept(const struct stream *stream, enum kernel_id id) {
    return stream->kept[id];
}
/** What kernel `id` keeps with the stream's device: all streams' at once. */
static inline void *device_kept(const struct device *device, enum kernel_id id) {
    return device->kept[id];
}
/** Has the kernel's kept_row.release called once the device has done this job's work. */
static inline void stream_hold(struct stream *stream, enum kernel_id id) {
    stream->holds |= UINT32_C(1) << id;
}

/** Keeps the error's text and returns its status; KILN_OK for success. */
enum kiln_status stream_check(struct stream *stream, CUresult result, const char *what);
/** True once the job is cancelled; kernels are told as well, and their progress is passed on. */
bool stream_cancelled(struct stream *stream);
/** Device scratch set to zero (in stream order); NULL where memory ran out. */
void *stream_zeroed(struct stream *stream, size_t size);
/** Device address of the word that is not 0 once kernels should end. */
static inline const volatile uint32_t *stream_stop_flag(const struct stream *stream) {
    return (const volatile uint32_t *)(uintptr_t)(stream->mapped_address +
                                                  offsetof(struct control, cancel));
}
/** Device address of the word that kernels may store their progress to, in 1/CONTROL_FULL. */
static inline volatile uint32_t *stream_progress_word(const struct stream *stream) {
    return (volatile uint32_t *)(uintptr_t)(stream->mapped_address +
                                            offsetof(struct control, progress));
}
/** Enqueues function `index` of kernel `id` with one argument, a struct passed by value. */
enum kiln_status stream_launch(struct stream *stream, enum kernel_id id, int index,
                               const struct shape *shape, void *argument, const char *what);
/** Blocks of `warps` warps of a function that the whole device holds at once, at least 1. */
unsigned stream_resident(const struct stream *stream, enum kernel_id id, int index, int warps);

#endif
