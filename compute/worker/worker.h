/*
 * worker.h: the process that owns one device.
 *
 * `kilnd worker <device> …` is started by the front only. It maps the arena, opens the device
 * (loading the backend's module where that is one), pins the arena, makes a stream and a thread for
 * each slot, warms up every kernel by running every job kind's canary, reports ready and serves
 * commands until its sockets close. It exits 0 then, and non-zero after a sticky device error.
 */
#ifndef KILN_COMPUTE_WORKER_WORKER_H
#define KILN_COMPUTE_WORKER_WORKER_H

#include <stddef.h>
#include <stdint.h>

struct worker_options {
    const char *device; /* "cpu:0", "cuda:1" */
    int job_fd, control_fd, arena_fd;
    size_t arena_size;
    int slots;
    int threads;           /* CPU pool threads, 0 for one a core */
    uint64_t device_bytes; /* memory that all slots together may take, 0 for all there is */
};

/** Runs the worker on this process's main thread; returns the exit code. */
int worker_run(const struct worker_options *options);

/** `kilnd probe`: writes to standard output one JSON object
    {"cuda":[…],"cpu":[…],"kernels":{"cpu":["mandelbrot",…]},"why":{"cuda":"…"}} with the devices of
    every backend, the kernels of each that could be loaded, and the reason where there are no
    devices. Returns the exit code. */
int worker_probe(void);

/** The backend of a device name's prefix ("cuda:0" → cuda), loading its module when needed; NULL
    with the reason in `why`. `index` receives the number. */
struct backend;
const struct backend *backend_find(const char *device, int *index, char *why, size_t why_size);

#endif
