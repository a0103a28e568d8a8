/*
 * loader.c: a list of loads of each kind, and the threads that take them.
 */
#include "server/loader.h"

#include <pthread.h>
#include <stdlib.h>

struct queue {
    struct load *first, **last;
};

struct thread {
    struct loader *loader;
    bool brief; /* takes short bodies only */
    pthread_t id;
};

struct loader {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct queue queues[LOAD_KINDS];
    uint64_t number; /* of the load that came last */
    bool stop;
    int count;
    struct thread threads[LOADER_THREADS];
};

/* The kind whose turn it is, LOAD_KINDS for none: bodies in their order, then copies. */
static int kind_choose_locked(const struct loader *loader, bool brief) {
    const struct load *body = loader->queues[LOAD_BODY].first;
    const struct load *large = brief ? NULL : loader->queues[LOAD_LONG].first;
    if (body != NULL && (large == NULL || body->number < large->number)) {
        return LOAD_BODY;
    }
    if (large != NULL) {
        return LOAD_LONG;
    }
    return !brief && loader->queues[LOAD_COPY].first != NULL ? LOAD_COPY : LOAD_KINDS;
}

static struct load *load_take_locked(struct loader *loader, bool brief) {
    int kind = kind_choose_locked(loader, brief);
    if (kind == LOAD_KINDS) {
        return NULL;
    }
    struct queue *queue = &loader->queues[kind];
    struct load *load = queue->first;
    queue->first = load->next;
    queue->last = load->next == NULL ? &queue->first : queue->last;
    load->next = NULL;
    return load;
}

static void *loader_run(void *argument) {
    const struct thread *thread = argument;
    struct loader *loader = thread->loader;
    pthread_mutex_lock(&loader->lock);
    for (;;) {
        struct load *load = load_take_locked(loader, thread->brief);
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
    for (; loader->count < LOADER_THREADS; loader->count++) {
        struct thread *thread = &loader->threads[loader->count];
        *thread = (struct thread){.loader = loader, .brief = loader->count == 0};
        if (pthread_create(&thread->id, NULL, loader_run, thread) != 0) {
            break;
        }
    }
    if (loader->count < LOADER_THREADS) {
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
        pthread_join(loader->threads[loader->count - 1].id, NULL);
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
        load->number = ++loader->number;
        *queue->last = load;
        queue->last = &load->next;
        /* one alone might wake the thread that does not take this kind */
        pthread_cond_broadcast(&loader->ready);
    }
    pthread_mutex_unlock(&loader->lock);
    return taken;
}
