/*
 * device.h: one opened GPU, and what a kernel file offers to it.
 *
 * A kernel is a row: its machine code, the names of its device functions and a launcher in C. All
 * functions are loaded and measured when the device is opened.
 *
 * Threads: opened and closed by one; constant in between except the atomic counters.
 */
#ifndef KILN_KERNELS_CUDA_DEVICE_DEVICE_H
#define KILN_KERNELS_CUDA_DEVICE_DEVICE_H

#include "kernels/backend.h"
#include "kernels/cuda/device/driver.h"
#include "kernels/cuda/spectral/sines.h"

#define FUNCTIONS_MAX 24
#define WARPS_MAX     32
#define PINS_MAX      8

/** One __global__ function of a kernel. */
struct function_row {
    const char *name;
    int warps;           /* most warps a block */
    int shared_per_warp; /* bytes of dynamic shared memory */
};

/** One kernel; the launcher enqueues it and returns as stream functions do (stream.h). */
struct kernel_row {
    const void *image; /* fat binary */
    const struct function_row *functions;
    int count;
    enum kiln_status (*launch)(struct stream *stream, const void *args);
};

#define X(symbol, name, args) extern const struct kernel_row name##_row;
KILN_KERNELS(X)
KILN_KERNELS_OFFERED(X)
#undef X

/** A loaded function. */
struct function {
    CUfunction handle;
    int shared_per_warp;
    uint8_t
        resident[WARPS_MAX + 1]; /* blocks of so many warps that fit a multiprocessor, 0: none */
};

/** Page-locked host memory. */
struct pin {
    uint8_t *base;
    size_t size;
    CUdeviceptr address; /* 0: kernels cannot reach it */
};

struct device {
    int index;
    CUdevice handle;
    CUcontext context; /* the primary one */
    char name[96];
    char pci[24];
    int multiprocessors;
    uint64_t total_bytes;
    uint64_t max_bytes; /* limit of all streams' pools together, 0 for none */
    CUmodule modules[KERNEL_COUNT];
    struct function functions[KERNEL_COUNT][FUNCTIONS_MAX];
    struct sines sines;
    struct pin pins[PINS_MAX];
    int pin_count;
    _Atomic uint64_t used;     /* bytes of all pools on the device */
    _Atomic int active;        /* streams between begin and finish */
    _Atomic uint32_t pressure; /* times a pool ran out of memory */
};

/** The rows of kernels.h, by enum kernel_id. */
extern const struct kernel_row *const kernel_rows[KERNEL_COUNT];

enum kiln_status device_describe(struct device *device, struct text *json);

#endif
