/*
 * loader.c: a list of loads of each kind, and the threads that take them.
 */
#include "server/loader.h"

#include <pthread.h>
#include <stdlib.h>

struct queue {
    struct load *first, **last;
};

struct loader {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct queue queues[LOAD_KINDS];
    bool stop;
    int count;
    pthread_t threads[LOADER_THREADS];
};

static struct load *load_take_locked(struct loader *loader) {
    for (int kind = 0; kind < LOAD_KINDS; kind++) {
        struct queue *queue = &loader->queues[kind];
        struct load *load = queue->first;
        if (load != NULL) {
            queue->first = load->next;
            queue->last = load->next == NULL ? &queue->first : queue->last;
            load->next = NULL;
            return load;
        }
    }
    return NULL;
}

static void *loader_run(void *argument) {
    struct loader *loader = argument;
    pthread_mutex_lock(&loader->lock);
    for (;;) {
        struct load *load = load_take_locked(loader);
        if (load == NULL && loader->stop) {
            break;
        }
        if (load == NULL) {
            pthread_cond_wait(&loader->ready, &loader->lock);
            continue;
        }
        pthread_mutex_unlock(&loader->lock);
        load->run(load);
        pthread_mutex_lock(&loader->lock);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

enum kiln_status loader_create(struct loader **out) {
    struct loader *loader = calloc(1, sizeof *loader);
    if (loader == NULL) {
        return KILN_NO_MEMORY;
    }
    for (int kind = 0; kind < LOAD_KINDS; kind++) {
        loader->queues[kind].last = &loader->queues[kind].first;
    }
    pthread_mutex_init(&loader->lock, NULL);
    pthread_cond_init(&loader->ready, NULL);
    while (loader->count < LOADER_THREADS &&
           pthread_create(&loader->threads[loader->count], NULL, loader_run, loader) == 0) {
        loader->count++;
    }
    if (loader->count == 0) {
        loader_destroy(loader);
        return KILN_NO_MEMORY;
    }
    *out = loader;
    return KILN_OK;
}

void loader_stop(struct loader *loader) {
    if (loader == NULL) {
        return;
    }
    pthread_mutex_lock(&loader->lock);
    loader->stop = true;
    pthread_cond_broadcast(&loader->ready);
    pthread_mutex_unlock(&loader->lock);
    for (; loader->count > 0; loader->count--) {
        pthread_join(loader->threads[loader->count - 1], NULL);
    }
}

void loader_destroy(struct loader *loader) {
    if (loader == NULL) {
        return;
    }
    loader_stop(loader);
    pthread_cond_destroy(&loader->ready);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}

bool loader_push(struct loader *loader, enum load_kind kind, struct load *load) {
    struct queue *queue = &loader->queues[kind];
    load->next = NULL;
    pthread_mutex_lock(&loader->lock);
    bool taken = !loader->stop;
    if (taken) {
        *queue->last = load;
        queue->last = &load->next;
        pthread_cond_signal(&loader->ready);
    }
    pthread_mutex_unlock(&loader->lock);
    return taken;
}
