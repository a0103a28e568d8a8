/*
 * kept.c: memory of the kernels' own, for the life of the device and of each stream (kept.h).
 *
 * Device memory of all kernels is one allocation a stream, cut by their rows.
 */
#include "kernels/cuda/device/kept.h"

#include <stdio.h>
#include <stdlib.h>

static const struct kept_row *row_of(const struct device *device, int id) {
    static const struct kept_row nothing = {0};
    return device->kernels[id] != NULL ? &device->kernels[id]->kept : &nothing;
}

enum kiln_status kept_device_init(struct device *device, char *why, size_t why_size) {
    for (int id = 0; id < KERNEL_COUNT; id++) {
        const struct kept_row *row = row_of(device, id);
        if (row->device_size == 0) {
            continue;
        }
        device->kept[id] = calloc(1, row->device_size);
        if (device->kept[id] == NULL) {
            snprintf(why, why_size, "out of memory");
            return KILN_NO_MEMORY;
        }
        if (row->device_init != NULL) {
            row->device_init(device);
        }
    }
    return KILN_OK;
}

void kept_device_finish(struct device *device) {
    for (int id = 0; id < KERNEL_COUNT; id++) {
        const struct kept_row *row = row_of(device, id);
        if (device->kept[id] != NULL && row->device_finish != NULL) {
            row->device_finish(device);
        }
        free(device->kept[id]);
        device->kept[id] = NULL;
    }
}

static size_t memory_size(const struct kept_row *row) {
    return (row->stream_memory + STREAM_MEMORY_ALIGN - 1) / STREAM_MEMORY_ALIGN *
           STREAM_MEMORY_ALIGN;
}

static enum kiln_status memory_create(struct stream *stream) {
    size_t size = 0;
    for (int id = 0; id < KERNEL_COUNT; id++) {
        size += memory_size(row_of(stream->device, id));
    }
    if (size == 0) {
        return KILN_OK;
    }
    CUresult result = driver.cuMemAlloc(&stream->kept_memory, size);
    if (result == CUDA_SUCCESS) {
        stream->busy = true;
        result = driver.cuMemsetD8Async(stream->kept_memory, 0, size, stream->handle);
    }
    uint8_t *next = (uint8_t *)(uintptr_t)stream->kept_memory;
    for (int id = 0; result == CUDA_SUCCESS && id < KERNEL_COUNT; id++) {
        const struct kept_row *row = row_of(stream->device, id);
        stream->kept[id].memory = row->stream_memory > 0 ? next : NULL;
        next += memory_size(row);
    }
    return stream_check(stream, result, "device memory");
}

enum kiln_status kept_stream_init(struct stream *stream) {
    for (int id = 0; id < KERNEL_COUNT; id++) {
        size_t size = row_of(stream->device, id)->stream_size;
        stream->kept[id].state = size > 0 ? calloc(1, size) : NULL;
        if (size > 0 && stream->kept[id].state == NULL) {
            return KILN_NO_MEMORY;
        }
    }
    return memory_create(stream);
}

void kept_stream_finish(struct stream *stream) {
    if (stream->kept_memory != 0) {
        driver.cuMemFree(stream->kept_memory);
    }
    for (int id = 0; id < KERNEL_COUNT; id++) {
        free(stream->kept[id].state);
    }
}

void kept_release_all(struct stream *stream) {
    for (int id = 0; id < KERNEL_COUNT; id++) {
        if ((stream->holds >> id & 1) != 0) {
            row_of(stream->device, id)->release(stream);
        }
    }
    stream->holds = 0;
}
