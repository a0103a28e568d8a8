/*
 * device.c: the CPU as a device: one pool of threads, one choice of instruction set.
 *
 * Opened once by the worker's main thread. Describing reads /proc and /sys only and is safe from
 * any thread.
 */
#include "kernels/cpu/device/plans.h"
#include "kernels/cpu/device/stream.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define THREADS_MAX 1024

static void cpu_close(struct device *device) {
    if (device == NULL) {
        return;
    }
    plans_destroy(device->plans);
    thread_pool_destroy(device->pool);
    free(device);
}

static enum kiln_status cpu_open(int index, const struct device_options *options,
                                 struct device **out, char *why, size_t why_size) {
    if (index != 0) {
        snprintf(why, why_size, "there is one CPU device, cpu:0; cpu:%d was asked for", index);
        return KILN_NO_DEVICE;
    }
    struct device *device = aligned_alloc(_Alignof(struct device), sizeof *device);
    if (device == NULL) {
        snprintf(why, why_size, "out of memory");
        return KILN_NO_MEMORY;
    }
    memset(device, 0, sizeof *device);
    int threads =
        options != NULL && options->threads > 0 ? options->threads : thread_pool_processors();
    enum kiln_status status =
        thread_pool_create(threads > THREADS_MAX ? THREADS_MAX : threads, &device->pool);
    if (status != KILN_OK) {
        snprintf(why, why_size, "out of memory for the thread pool");
        free(device);
        return status;
    }
    device->isa = isa_choose();
    device->plans = plans_create();
    if (device->plans == NULL) {
        snprintf(why, why_size, "out of memory");
        cpu_close(device);
        return KILN_NO_MEMORY;
    }
    device->account.limit = cpu_memory_total();
    if (options != NULL && options->max_bytes > 0 &&
        (device->account.limit == 0 || options->max_bytes < device->account.limit)) {
        device->account.limit = options->max_bytes;
    }
    *out = device;
    return KILN_OK;
}

/* Memory of the host is what the kernels work on: nothing is to be registered. */
static enum kiln_status cpu_pin(struct device *device, void *base, size_t size) {
    (void)device;
    (void)base;
    (void)size;
    return KILN_OK;
}

const struct backend cpu_backend = {
    .abi = BACKEND_ABI,
    .name = "cpu",
#define X(symbol, name) | KERNEL_BIT(symbol)
    .kernels = 0 CPU_KERNELS(X),
#undef X
    .gather = 1,
    .enumerate = cpu_enumerate,
    .open = cpu_open,
    .close = cpu_close,
    .describe = cpu_describe,
    .pin = cpu_pin,
    .stream_create = cpu_stream_create,
    .stream_destroy = cpu_stream_destroy,
    .begin = cpu_stream_begin,
    .rest = cpu_stream_rest,
    .phase = cpu_stream_phase,
    .upload = cpu_stream_upload,
    .reserve = cpu_stream_reserve,
    .host = cpu_stream_host,
    .result = cpu_stream_result,
    .download = cpu_stream_download,
    .mapped = cpu_stream_mapped,
    .launch = cpu_stream_launch,
    .wait = cpu_stream_wait,
    .finish = cpu_stream_finish,
    .error = cpu_stream_error,
};
