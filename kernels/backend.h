/*
 * backend.h: the contract between a worker and a kind of device.
 *
 * A backend is a constant table of functions. The CPU backend is linked in; others are modules
 * (shared objects) that a worker loads and asks for `kiln_backend`. A worker opens one device and
 * makes one stream for each of its slots; a stream is used by one thread at a time and carries one
 * job at a time, in this order:
 *
 *     begin → (phase UPLOAD) upload… → (phase KERNEL) reserve, launch… → (phase DOWNLOAD) download…
 *           → wait → (phase ENCODE) host code → finish
 *
 * What a job encodes on the device may be launched in the phase ENCODE before `wait`; that device
 * time counts as encoding.
 *
 * `upload`, `launch` and `download` only enqueue; after `wait` the host may read what was
 * downloaded. Addresses from upload, reserve and result are device addresses: on the CPU they are
 * ordinary pointers and upload/result hand out the host memory itself (no copy).
 *
 * Memory: each stream owns pools (device scratch and pinned host scratch) that keep what they have
 * grown to, so that a job like the ones before it never asks the driver for memory. What upload,
 * reserve, result and host return is valid until the next `begin` or `rest`. 256-byte aligned.
 * What a pool should do about its size is done in `rest`, when nobody waits for the stream.
 *
 * Cancelling: the control block given to begin is read between steps of long work; when `cancel`
 * turns non-zero, launch or wait answers KILN_CANCELLED as soon as it can.
 *
 * Progress: the caller zeroes the block before begin. Kernels that run long raise `progress` on
 * their way (jacobi and lombscargle on every backend; mandelbrot on the CPU), and the finish of a
 * job that neither failed nor was cancelled sets it to CONTROL_FULL. The block may be NULL; it must
 * live until finish returns.
 *
 * Errors: KILN_OK, KILN_NO_MEMORY (not sticky; the stream stays usable), KILN_JOB_TOO_LARGE,
 * KILN_UNSUPPORTED, KILN_CANCELLED, or KILN_DEVICE_FAULT: the context is lost and the process must
 * be replaced. stream_error() tells the text of the last one.
 */
#ifndef KILN_KERNELS_BACKEND_H
#define KILN_KERNELS_BACKEND_H

#include "compute/core/status.h"
#include "compute/core/text.h"
#include "compute/core/timing.h"
#include "kernels/control.h"
#include "kernels/kernels.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define BACKEND_ABI 6

struct device; /* one opened device; each backend defines its own */
struct stream; /* one slot's queue and pools; likewise */

enum phase { PHASE_UPLOAD, PHASE_KERNEL, PHASE_DOWNLOAD, PHASE_ENCODE, PHASE_COUNT };

struct device_options {
    int threads; /* CPU: worker threads of the pool, 0 for one a core */
    uint64_t
        max_bytes; /* device memory that all streams together may hold, 0 for no limit of ours */
};

struct backend {
    uint32_t abi; /* BACKEND_ABI */
    const char *name;
    uint32_t kernels; /* KERNEL_BIT of each that it has; launch refuses the others. Jobs that need
                         more go to other devices, so a backend may begin with any of them */
    int gather;       /* small alike jobs that are worth a launch together, at most; 1: none are */

    /** Writes a JSON array of the devices there are: [{"name","index",…}]. On failure writes the
        reason into `why` (what is missing, in one sentence a user can act on). Starts no context.
     */
    enum kiln_status (*enumerate)(struct text *json, char *why, size_t why_size);

    /** Opens device `index` with one persistent context and every kernel loaded. */
    enum kiln_status (*open)(int index, const struct device_options *options,
                             struct device **device, char *why, size_t why_size);
    void (*close)(struct device *device);

    /** Writes one JSON object: name, memory {total,free} in bytes, clocks in MHz, temperature in °C
        and power in W where known, compute capability, driver version, and `attributes`: every
        attribute the driver knows, by name. Any thread; also while jobs run. */
    enum kiln_status (*describe)(struct device *device, struct text *json);

    /** Registers host memory for direct transfer (page-locks it). Before any stream is used. */
    enum kiln_status (*pin)(struct device *device, void *base, size_t size);

    enum kiln_status (*stream_create)(struct device *device, struct stream **stream);
    void (*stream_destroy)(struct stream *stream);

    enum kiln_status (*begin)(struct stream *stream, struct control *control);
    /** Between a finish and the next begin: puts the pools in order and gives back what is too much
        to keep. `idle`: there has been no job for a while; gives back more. True: it is worth to be
        called with `idle` later. */
    bool (*rest)(struct stream *stream, bool idle);
    /** Opens a phase (closing the one before): device event, profiler range. */
    enum kiln_status (*phase)(struct stream *stream, enum phase phase);
    /** Device copy of `size` host bytes; NULL where memory ran out. The host bytes must stay
        unchanged until wait. */
    const void *(*upload)(struct stream *stream, const void *host, size_t size);
    /** Device scratch; NULL where memory ran out. Contents are undefined. */
    void *(*reserve)(struct stream *stream, size_t size);
    /** Pinned host scratch; NULL where memory ran out. */
    void *(*host)(struct stream *stream, size_t size);
    /** Device memory that download will copy to `host`; on the CPU it is `host` itself. */
    void *(*result)(struct stream *stream, void *host, size_t size);
    enum kiln_status (*download)(struct stream *stream, void *host, const void *device,
                                 size_t size);
    /** Device address of page-locked host memory (`pin`, `host`) by which kernels write to it; NULL
        where they cannot. The host may read after `wait`. On the CPU it is `host` itself. */
    void *(*mapped)(struct stream *stream, void *host, size_t size);
    /** Runs kernel `id` with its argument struct (kernels/<name>.h); KILN_UNSUPPORTED where the
        backend does not have it. */
    enum kiln_status (*launch)(struct stream *stream, enum kernel_id id, const void *args);
    enum kiln_status (*wait)(struct stream *stream);
    /** Closes the last phase and adds upload, kernel, download (device clock) and encode (host
        clock, from the last wait on, and device clock before) to `timing`, milliseconds. Also after
       a failure. */
    enum kiln_status (*finish)(struct stream *stream, struct timing *timing);
    /** Text of the stream's last error, or "". */
    const char *(*error)(struct stream *stream);
};

/** A kernel's name, as in the list. */
static inline const char *kernel_name(int id) {
    static const char *const names[KERNEL_COUNT] = {
#define X(symbol, name, args) #name,
        KILN_KERNELS(X)
#undef X
    };
    return names[id];
}

/** The names of a set of kernels as a JSON array. */
static inline void kernels_print(uint32_t kernels, struct text *json) {
    const char *before = "[";
    for (int id = 0; id < KERNEL_COUNT; id++) {
        if ((kernels >> id & 1) != 0) {
            text_format(json, "%s\"%s\"", before, kernel_name(id));
            before = ",";
        }
    }
    text_string(json, *before == '[' ? "[]" : "]");
}

extern const struct backend cpu_backend;

/** Symbol a module exports: `const struct backend kiln_backend`. */
#define BACKEND_SYMBOL "kiln_backend"

#endif
