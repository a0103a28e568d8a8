/*
 * device.h: one opened GPU, and what a kernel file offers to it.
 *
 * A kernel is a row: its machine code, the names of its device functions, a launcher in C and what
 * it keeps between jobs. All functions are loaded and measured when the device is opened. The table
 * of rows comes from above (kernels/cuda/module.c): nothing here knows any of them.
 *
 * Threads: opened and closed by one; constant in between except the atomic counters.
 */
#ifndef KILN_KERNELS_CUDA_DEVICE_DEVICE_H
#define KILN_KERNELS_CUDA_DEVICE_DEVICE_H

#include "kernels/backend.h"
#include "kernels/cuda/device/driver.h"

#define FUNCTIONS_MAX 24
#define WARPS_MAX     32
#define PINS_MAX      8

/** One __global__ function of a kernel. */
struct function_row {
    const char *name;
    int warps;           /* most warps a block */
    int shared_per_warp; /* bytes of dynamic shared memory */
};

/** What a kernel keeps beside its code, with the device and with each stream; only its own files
    know what lies in it (stream_kept and device_kept in stream.h). Memory is made with the device
   or the stream, is zero at first and freed with it: a job finds it there. */
struct kept_row {
    size_t device_size;   /* host bytes with the device; 0: none */
    size_t stream_size;   /* host bytes with a stream */
    size_t stream_memory; /* device bytes with a stream */
    /** Where there is a device_size: once the device's properties are read, and when it is closed:
        no stream is left then, and the context is current. NULL: nothing is to be done. */
    void (*device_init)(struct device *device);
    void (*device_finish)(struct device *device);
    /** For who has called stream_hold: the device has done all work of the stream's job. */
    void (*release)(struct stream *stream);
};

/** One kernel; the launcher enqueues it and returns as stream functions do (stream.h). */
struct kernel_row {
    const void *image; /* fat binary */
    const struct function_row *functions;
    int count;
    enum kiln_status (*launch)(struct stream *stream, const void *args);
    struct kept_row kept;
};

/** Rows by enum kernel_id; NULL for kernels that there are none of. */
typedef const struct kernel_row *const kernel_table[KERNEL_COUNT];

#define X(symbol, name, args) extern const struct kernel_row name##_row;
KILN_KERNELS(X)
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
    const struct kernel_row *const *kernels; /* a kernel_table */
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
    void *kept[KERNEL_COUNT]; /* of the kernels, by kept_row.device_size; NULL: nothing */
    struct pin pins[PINS_MAX];
    int pin_count;
    _Atomic uint64_t used;     /* bytes of all pools on the device */
    _Atomic int active;        /* streams between begin and finish */
    _Atomic uint32_t pressure; /* times a pool ran out of memory */
};

/** As the functions of these names in kernels/backend.h; the table of kernels is constant. */
enum kiln_status device_enumerate(struct text *json, char *why, size_t why_size);
enum kiln_status device_open(kernel_table kernels, int index, const struct device_options *options,
                             struct device **device, char *why, size_t why_size);
void device_close(struct device *device);
enum kiln_status device_pin(struct device *device, void *base, size_t size);
enum kiln_status device_describe(struct device *device, struct text *json);

#endif
