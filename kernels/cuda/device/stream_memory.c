/*
 * stream_memory.c: growing bump allocators (pool.h).
 *
 * Thread: the stream's; the device's count of bytes is shared by all streams and atomic.
 */
#include "kernels/cuda/device/stream_memory.h"
#include "kernels/cuda/device/device.h"
#include "kernels/cuda/device/driver.h"

#define CHUNK_GRAIN ((size_t)2 << 20) /* the driver's own grain */

static bool round_up(size_t size, size_t grain, size_t *rounded) {
    *rounded = (size + grain - 1) / grain * grain;
    return size <= SIZE_MAX - grain;
}

/* Counts device memory against the limit of all streams together. */
static bool account_take(struct stream_memory *pool, size_t size) {
    struct device *device = pool->device;
    if (pool->host) {
        return true;
    }
    uint64_t most = device->max_bytes > 0 ? device->max_bytes : device->total_bytes;
    uint64_t before = atomic_fetch_add(&device->used, size);
    if (before + size > most) {
        atomic_fetch_sub(&device->used, size);
        return false;
    }
    return true;
}

/* The last chunk becomes the one that is cut from. */
static CUresult chunk_add(struct stream_memory *pool, size_t size) {
    if (pool->count == STREAM_MEMORY_CHUNKS || size > SIZE_MAX / 4 || !account_take(pool, size)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    CUresult result;
    CUdeviceptr address = 0;
    void *host = NULL;
    if (pool->host) {
        result = driver.cuMemHostAlloc(&host, size, CU_MEMHOSTALLOC_PORTABLE);
    } else {
        result = driver.cuMemAlloc(&address, size);
        host = (void *)(uintptr_t)address;
    }
    if (result != CUDA_SUCCESS) {
        if (!pool->host) {
            atomic_fetch_sub(&pool->device->used, size);
        }
        /* A size that no machine has is an invalid value to some drivers. */
        return result == CUDA_ERROR_INVALID_VALUE ? CUDA_ERROR_OUT_OF_MEMORY : result;
    }
    pool->current = pool->count;
    pool->chunks[pool->count++] = (struct chunk){.base = host, .size = size};
    pool->used = 0;
    return CUDA_SUCCESS;
}

static void chunks_free(struct stream_memory *pool) {
    while (pool->count > 0) {
        struct chunk *chunk = &pool->chunks[--pool->count];
        if (pool->host) {
            driver.cuMemFreeHost(chunk->base);
        } else {
            driver.cuMemFree((CUdeviceptr)(uintptr_t)chunk->base);
            atomic_fetch_sub(&pool->device->used, chunk->size);
        }
    }
    pool->current = 0;
    pool->used = 0;
}

CUresult stream_memory_init(struct stream_memory *pool, struct device *device, bool host,
                            size_t smallest) {
    *pool = (struct stream_memory){.device = device, .host = host, .smallest = smallest};
    pool->pressure = atomic_load(&device->pressure);
    return chunk_add(pool, smallest);
}

void stream_memory_finish(struct stream_memory *pool) {
    if (pool != NULL && pool->device != NULL) {
        chunks_free(pool);
        pool->device = NULL;
    }
}

void *stream_memory_take(struct stream_memory *pool, size_t size) {
    size_t need, chunk_size;
    pool->result = CUDA_ERROR_OUT_OF_MEMORY;
    if (!round_up(size > 0 ? size : 1, STREAM_MEMORY_ALIGN, &need) ||
        !round_up(need, CHUNK_GRAIN, &chunk_size)) {
        return NULL;
    }
    while (pool->current + 1 < pool->count &&
           need > pool->chunks[pool->current].size - pool->used) {
        pool->current++;
        pool->used = 0;
    }
    if (pool->count == 0 || need > pool->chunks[pool->current].size - pool->used) {
        pool->result = chunk_add(pool, chunk_size > pool->smallest ? chunk_size : pool->smallest);
        if (pool->result != CUDA_SUCCESS) {
            /* The others give back what they do not use at their next job. */
            atomic_fetch_add(&pool->device->pressure, 1);
            pool->ran_short = true;
            return NULL;
        }
    }
    uint8_t *address = pool->chunks[pool->current].base + pool->used;
    pool->used += need;
    pool->taken += need;
    pool->most = pool->taken > pool->most ? pool->taken : pool->most;
    pool->result = CUDA_SUCCESS;
    return address;
}

struct stream_memory_mark stream_memory_mark(const struct stream_memory *pool) {
    return (struct stream_memory_mark){pool->current, pool->used, pool->taken};
}

void stream_memory_release(struct stream_memory *pool, struct stream_memory_mark mark) {
    pool->current = mark.current;
    pool->used = mark.used;
    pool->taken = mark.taken;
}

/* One chunk of so many bytes instead of all; none where there is not even that, and the next take
   tries again, with what it needs. */
static void stream_memory_remake(struct stream_memory *pool, size_t size) {
    chunks_free(pool);
    pool->most = 0;
    size = size < pool->smallest ? pool->smallest : size;
    if (!round_up(size, CHUNK_GRAIN, &size) || chunk_add(pool, size) != CUDA_SUCCESS) {
        pool->count = pool->current = 0;
    }
}

void stream_memory_rewind(struct stream_memory *pool) {
    uint32_t pressure = atomic_load(&pool->device->pressure);
    bool asked = pool->ran_short || pressure != pool->pressure;
    bool more = pool->count > 1 || (pool->count == 1 && pool->chunks[0].size > pool->smallest);
    pool->pressure = pressure;
    pool->ran_short = false;
    if (asked && more) {
        stream_memory_remake(pool, pool->smallest);
    } else if (pool->count == 0 || pool->count == STREAM_MEMORY_CHUNKS) {
        stream_memory_remake(pool, pool->most);
    }
    pool->current = 0;
    pool->used = 0;
    pool->taken = 0;
}

void stream_memory_join(struct stream_memory *pool) {
    if (pool->count > 1) {
        stream_memory_remake(pool, pool->most);
        pool->taken = 0;
    }
}
