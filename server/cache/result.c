/*
 * result.c: counting references of results. Any thread.
 */
#include "server/cache/result.h"

#include <stdlib.h>
#include <string.h>

bool digest_equal(const struct digest *one, const struct digest *other) {
    return one->high == other->high && one->low == other->low;
}

bool digest_empty(const struct digest *digest) {
    return digest->high == 0 && digest->low == 0;
}

struct result *result_create(struct arena *arena, struct block *block, uint64_t size) {
    struct result *result = calloc(1, sizeof *result);
    if (result == NULL) {
        return NULL;
    }
    atomic_init(&result->refs, 1);
    pthread_mutex_init(&result->lock, NULL);
    result->arena = arena;
    result->block = *block;
    result->size = size;
    *block = (struct block){0, 0};
    return result;
}

struct result *result_copy(const struct result *result, struct arena *arena, struct block *block) {
    struct result *copy = result_create(arena, block, result->size);
    if (copy != NULL) {
        copy->made_ns = result->made_ns;
        copy->job = result->job;
        copy->format = result->format;
        copy->remarks = result->remarks;
        memcpy(copy->device, result->device, sizeof copy->device);
        memcpy(copy->precision, result->precision, sizeof copy->precision);
        memcpy(copy->etag, result->etag, sizeof copy->etag);
    }
    return copy;
}

struct result *result_hold(struct result *result) {
    atomic_fetch_add_explicit(&result->refs, 1, memory_order_relaxed);
    return result;
}

void result_drop(struct result *result) {
    if (result == NULL || atomic_fetch_sub_explicit(&result->refs, 1, memory_order_acq_rel) != 1) {
        return;
    }
    for (int i = 0; i < 2; i++) {
        if (result->answers[i] != NULL) {
            result->forget(result->answers[i]);
        }
    }
    arena_give(result->arena, &result->block);
    pthread_mutex_destroy(&result->lock);
    free(result);
}

const void *result_bytes(const struct result *result) {
    return arena_at(result->arena, result->block.offset);
}
