/*
 * mapped.c: page-locked host memory as the device sees it. Thread: the stream's.
 */
#include "kernels/cuda/device/stream.h"

/* What the pool holds has one address for host and device, as all that the driver allocates. */
void *stream_mapped(struct stream *stream, void *host, size_t size) {
    const struct device *device = stream->device;
    const uint8_t *at = host;
    for (int i = 0; i < device->pin_count; i++) {
        const struct pin *pin = &device->pins[i];
        if (at >= pin->base && at < pin->base + pin->size) {
            size_t offset = (size_t)(at - pin->base);
            return pin->address && size <= pin->size - offset
                       ? (void *)(uintptr_t)(pin->address + offset)
                       : NULL;
        }
    }
    for (int i = 0; i < stream->host.count; i++) {
        const struct chunk *chunk = &stream->host.chunks[i];
        if (at >= chunk->base && at < chunk->base + chunk->size) {
            return size <= chunk->size - (size_t)(at - chunk->base) ? host : NULL;
        }
    }
    return NULL;
}
