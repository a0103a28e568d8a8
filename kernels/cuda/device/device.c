/*
 * device.c: NVIDIA GPUs through the driver's interface: enumerate, open, close, pin.
 *
 * Opening retains the primary context, loads every module and measures every function's residency,
 * so that a job finds nothing left to do. Worker and probe, their main threads.
 */
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/kept.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int attribute(CUdevice handle, CUdevice_attribute which) {
    int value = 0;
    return driver.cuDeviceGetAttribute(&value, which, handle) == CUDA_SUCCESS ? value : 0;
}

static enum kiln_status explain(CUresult result, const char *what, char *why, size_t why_size) {
    enum kiln_status status = driver_status(result);
    if (status != KILN_OK) {
        char text[192];
        driver_explain(result, text, sizeof text);
        snprintf(why, why_size, "%s: %s", what, text);
    }
    return status == KILN_DEVICE_FAULT ? KILN_NO_DEVICE : status;
}

static void enumerate_one(struct text *json, int index) {
    CUdevice handle;
    char name[96] = "";
    size_t total = 0;
    if (driver.cuDeviceGet(&handle, index) != CUDA_SUCCESS ||
        driver.cuDeviceGetName(name, sizeof name, handle) != CUDA_SUCCESS) {
        snprintf(name, sizeof name, "NVIDIA GPU that does not answer");
        handle = -1;
    }
    text_string(json, "{\"name\":");
    text_json_string(json, name, strlen(name));
    text_format(json, ",\"index\":%d", index);
    if (handle >= 0) {
        driver.cuDeviceTotalMem(&total, handle);
        text_format(json, ",\"compute_capability\":\"%d.%d\",\"memory\":{\"total\":%zu}",
                    attribute(handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR),
                    attribute(handle, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR), total);
    }
    text_string(json, "}");
}

enum kiln_status device_enumerate(struct text *json, char *why, size_t why_size) {
    int count = 0;
    enum kiln_status status = driver_load(why, why_size);
    if (status == KILN_OK) {
        status = explain(driver.cuDeviceGetCount(&count), "counting GPUs", why, why_size);
    }
    text_string(json, "[");
    for (int i = 0; status == KILN_OK && i < count; i++) {
        text_string(json, i > 0 ? "," : "");
        enumerate_one(json, i);
    }
    text_string(json, "]");
    return status;
}

/* The longest part of opening. A driver that is too old for the code is the likely failure. */
static enum kiln_status module_load(struct device *device, enum kernel_id id, char *why,
                                    size_t why_size) {
    CUresult result = driver.cuModuleLoadData(&device->modules[id], device->kernels[id]->image);
    if (result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
        result == CUDA_ERROR_INVALID_IMAGE || result == CUDA_ERROR_INVALID_SOURCE) {
        snprintf(why, why_size,
                 "this build of kiln (CUDA %d.%d) has no code that %s with its driver (CUDA %d.%d) "
                 "can run: a newer driver, or compute capability 8.0 or higher, is needed",
                 CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10, device->name, driver.version / 1000,
                 driver.version % 1000 / 10);
        return KILN_NO_DEVICE;
    }
    return explain(result, "loading kernels", why, why_size);
}

static enum kiln_status function_load(CUmodule module, const struct function_row *row,
                                      struct function *function, char *why, size_t why_size) {
    int shared = row->warps * row->shared_per_warp;
    function->shared_per_warp = row->shared_per_warp;
    CUresult result = driver.cuModuleGetFunction(&function->handle, module, row->name);
    if (result == CUDA_SUCCESS && shared > 0) {
        /* A device with less shared memory runs fewer warps. */
        while ((result = driver.cuFuncSetAttribute(function->handle,
                                                   CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                   shared)) == CUDA_ERROR_INVALID_VALUE &&
               shared > row->shared_per_warp) {
            shared -= row->shared_per_warp;
        }
    }
    for (int warps = 1;
         result == CUDA_SUCCESS && warps <= row->warps && warps * row->shared_per_warp <= shared;
         warps++) {
        int blocks = 0;
        result = driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
            &blocks, function->handle, 32 * warps, (size_t)(warps * row->shared_per_warp));
        function->resident[warps] = (uint8_t)blocks;
    }
    return explain(result, row->name, why, why_size);
}

static enum kiln_status kernels_load(struct device *device, char *why, size_t why_size) {
    enum kiln_status status = KILN_OK;
    for (int id = 0; status == KILN_OK && id < KERNEL_COUNT; id++) {
        const struct kernel_row *row = device->kernels[id];
        if (row == NULL) {
            continue;
        }
        status = module_load(device, (enum kernel_id)id, why, why_size);
        for (int i = 0; status == KILN_OK && i < row->count; i++) {
            status = function_load(device->modules[id], &row->functions[i],
                                   &device->functions[id][i], why, why_size);
        }
    }
    return status;
}

/* `number`: that the driver gives the GPU. */
static enum kiln_status facts_read(struct device *device, int number, char *why, size_t why_size) {
    size_t total = 0;
    CUresult result = driver.cuDeviceGet(&device->handle, number);
    if (result != CUDA_SUCCESS) {
        snprintf(why, why_size, "there is no GPU %d", device->index);
        return KILN_NO_DEVICE;
    }
    result = driver.cuDeviceGetName(device->name, sizeof device->name, device->handle);
    if (result == CUDA_SUCCESS) {
        result = driver.cuDeviceTotalMem(&total, device->handle);
    }
    if (result == CUDA_SUCCESS) {
        result = driver.cuDeviceGetPCIBusId(device->pci, sizeof device->pci, device->handle);
    }
    device->total_bytes = total;
    if (result == CUDA_SUCCESS) {
        result = driver.cuDeviceGetAttribute(
            &device->multiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device->handle);
    }
    return explain(result, "asking the GPU for its properties", why, why_size);
}

void device_close(struct device *device) {
    if (device == NULL) {
        return;
    }
    if (device->context) {
        driver.cuCtxSetCurrent(device->context);
        while (device->pin_count > 0) {
            driver.cuMemHostUnregister(device->pins[--device->pin_count].base);
        }
        kept_device_finish(device);
        for (int id = 0; id < KERNEL_COUNT; id++) {
            if (device->modules[id]) {
                driver.cuModuleUnload(device->modules[id]);
            }
        }
        driver.cuCtxSetCurrent(NULL);
        driver.cuDevicePrimaryCtxRelease(device->handle);
    }
    free(device);
}

enum kiln_status device_open(kernel_table kernels, int index, const struct device_options *options,
                             struct device **device, char *why, size_t why_size) {
    *device = NULL;
    int number = driver_narrow(index);
    enum kiln_status status = driver_load(why, why_size);
    if (status != KILN_OK) {
        return status;
    }
    struct device *made = calloc(1, sizeof *made);
    if (made == NULL) {
        snprintf(why, why_size, "out of memory");
        return KILN_NO_MEMORY;
    }
    made->kernels = kernels;
    made->index = index;
    made->max_bytes = options != NULL ? options->max_bytes : 0;
    status = facts_read(made, number, why, why_size);
    if (status == KILN_OK) {
        status = explain(driver.cuDevicePrimaryCtxRetain(&made->context, made->handle),
                         "making a context", why, why_size);
    }
    if (status == KILN_OK) {
        status = explain(driver.cuCtxSetCurrent(made->context), "making a context", why, why_size);
    }
    if (status == KILN_OK) {
        status = kept_device_init(made, why, why_size);
    }
    if (status == KILN_OK) {
        status = kernels_load(made, why, why_size);
    }
    if (status != KILN_OK) {
        device_close(made);
        return status;
    }
    *device = made;
    return KILN_OK;
}

enum kiln_status device_pin(struct device *device, void *base, size_t size) {
    if (device->pin_count == PINS_MAX) {
        return KILN_NO_MEMORY;
    }
    CUresult result = driver.cuCtxSetCurrent(device->context);
    if (result == CUDA_SUCCESS) {
        result = driver.cuMemHostRegister(
            base, size, CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    }
    if (result == CUDA_SUCCESS) {
        struct pin *made = &device->pins[device->pin_count++];
        *made = (struct pin){.base = base, .size = size};
        if (driver.cuMemHostGetDevicePointer(&made->address, base, 0) != CUDA_SUCCESS) {
            made->address = 0;
        }
    }
    return result == CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED ? KILN_OK : driver_status(result);
}
