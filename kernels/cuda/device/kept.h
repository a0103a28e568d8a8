/*
 * kept.h: what kernels keep between jobs, as their rows ask for it (kept_row in device.h).
 *
 * Threads: the device's by who opens and closes it, a stream's by its own.
 */
#ifndef KILN_KERNELS_CUDA_DEVICE_KEPT_H
#define KILN_KERNELS_CUDA_DEVICE_KEPT_H

#include "kernels/cuda/device/stream.h"

/** Makes what all kernels keep with the device. KILN_NO_MEMORY with `why`; finish it then too. */
enum kiln_status kept_device_init(struct device *device, char *why, size_t why_size);
/** No stream is left; the device's context is current. */
void kept_device_finish(struct device *device);

/** Likewise with a stream, whose handle is made; the context is current. Errors as of stream
    functions. */
enum kiln_status kept_stream_init(struct stream *stream);
void kept_stream_finish(struct stream *stream);

void kept_release_all(struct stream *stream);
/** The device has done all work of the stream's job: kernels let go of what it held. */
static inline void kept_release(struct stream *stream) {
    if (stream->holds != 0) {
        kept_release_all(stream);
    }
}

#endif
