/*
 * stream_memory.h: memory of one stream that is handed out by the job and kept for the next.
 *
 * Taking moves a mark through the chunks; only growth asks the driver, so a job like the ones
 * before it never allocates. Nothing is given back one by one: stream_memory_rewind makes
 * everything free. Several chunks are joined into one when the device is idle (stream_memory_join)
 * and not before, because the driver frees memory only when all streams have stopped.
 *
 * Threads: the stream's. Ownership: the pool owns its chunks; what it hands out is valid until the
 * next rewind.
 */
#ifndef KILN_KERNELS_CUDA_DEVICE_STREAM_MEMORY_H
#define KILN_KERNELS_CUDA_DEVICE_STREAM_MEMORY_H

#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STREAM_MEMORY_CHUNKS 64
#define STREAM_MEMORY_ALIGN  256

struct device;

/** One allocation of the driver. Device addresses are kept as pointers: host and device share one
    address space. */
struct chunk {
    uint8_t *base;
    size_t size;
};

struct stream_memory {
    struct device *device;
    bool host;       /* page-locked host memory rather than device memory */
    size_t smallest; /* bytes of the first chunk */
    struct chunk chunks[STREAM_MEMORY_CHUNKS];
    int count;
    int current;       /* the chunk that is cut from; those after it are free */
    size_t used;       /* bytes of it */
    size_t taken;      /* bytes since the last rewind, with alignment */
    size_t most;       /* the most that `taken` has been since the chunks were made */
    uint32_t pressure; /* the device's pressure that this pool has answered */
    bool ran_short;    /* since the last rewind: what it has is of no use to its job */
    CUresult result;   /* of the last allocation */
};

/** Makes the first chunk. The device's context is current. */
CUresult stream_memory_init(struct stream_memory *pool, struct device *device, bool host,
                            size_t smallest);
void stream_memory_finish(struct stream_memory *pool);

/** `size` bytes (0 counts as 1), aligned to STREAM_MEMORY_ALIGN; NULL where memory ran out
   (pool->result tells why). */
void *stream_memory_take(struct stream_memory *pool, size_t size);

/** A place to come back to: what is taken after it can be made free at once. */
struct stream_memory_mark {
    int current;
    size_t used, taken;
};
struct stream_memory_mark stream_memory_mark(const struct stream_memory *pool);
/** Makes what was taken since `mark` free for what is taken next. With device memory that is only
    used by work of one stream, nothing need be waited for. */
void stream_memory_release(struct stream_memory *pool, struct stream_memory_mark mark);

/** Makes everything free; nothing of the device may still use it. Gives back what exceeds the first
    size after this or another stream ran out of memory; else it asks nothing of the driver. */
void stream_memory_rewind(struct stream_memory *pool);
/** Makes one chunk of several, as large as jobs have needed. Between jobs; stops all streams for a
    moment. */
void stream_memory_join(struct stream_memory *pool);

#endif
