/*
 * module.c: the CUDA backend as one table: what a worker finds in this module (kernels/backend.h).
 *
 * The only file that knows both the device and all of its kernels.
 */
#include "kernels/cuda/device/stream.h"

/* Not there yet: its place in the table is NULL. */
extern const struct kernel_row expression_row __attribute__((weak));

static kernel_table kernels = {
#define X(symbol, name, args) [KERNEL_##symbol] = &name##_row,
    KILN_KERNELS(X)
#undef X
};

static enum kiln_status module_open(int index, const struct device_options *options,
                                    struct device **device, char *why, size_t why_size) {
    return device_open(kernels, index, options, device, why, why_size);
}

extern __attribute__((visibility("default"))) const struct backend kiln_backend;

const struct backend kiln_backend = {
    .abi = BACKEND_ABI,
    .name = "cuda",
    .kernels = KERNELS_ALL & ~KERNEL_BIT(EXPRESSION),
    .gather = GROUP_MAX,
    .enumerate = device_enumerate,
    .open = module_open,
    .close = device_close,
    .describe = device_describe,
    .pin = device_pin,
    .stream_create = stream_create,
    .stream_destroy = stream_destroy,
    .begin = stream_begin,
    .rest = stream_rest,
    .phase = stream_phase,
    .upload = stream_upload,
    .reserve = stream_reserve,
    .host = stream_host,
    .result = stream_result,
    .download = stream_download,
    .mapped = stream_mapped,
    .launch = stream_run,
    .wait = stream_wait,
    .finish = stream_finish,
    .error = stream_error,
};
