/*
 * offload.c: a list of loads of each kind, and the threads that take them.
 */
#include "server/core/offload.h"

#include <pthread.h>
#include <stdlib.h>

struct queue {
    struct offload_task *first, **last;
};

struct thread {
    struct offload *offload;
    bool brief; /* takes short bodies only */
    pthread_t id;
};

struct offload {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct queue queues[OFFLOAD_KINDS];
    uint64_t number; /* of the load that came last */
    bool stop;
    int count;
    struct thread threads[OFFLOAD_THREADS];
};

/* The kind whose turn it is, OFFLOAD_KINDS for none: bodies in their order, then copies. */
static int kind_choose_locked(const struct offload *offload, bool brief) {
    const struct offload_task *body = offload->queues[OFFLOAD_BODY].first;
    const struct offload_task *large = brief ? NULL : offload->queues[OFFLOAD_LONG].first;
    if (body != NULL && (large == NULL || body->number < large->number)) {
        return OFFLOAD_BODY;
    }
    if (large != NULL) {
        return OFFLOAD_LONG;
    }
    return !brief && offload->queues[OFFLOAD_COPY].first != NULL ? OFFLOAD_COPY : OFFLOAD_KINDS;
}

static struct offload_task *load_take_locked(struct offload *offload, bool brief) {
    int kind = kind_choose_locked(offload, brief);
    if (kind == OFFLOAD_KINDS) {
        return NULL;
    }
    struct queue *queue = &offload->queues[kind];
    struct offload_task *load = queue->first;
    queue->first = load->next;
    queue->last = load->next == NULL ? &queue->first : queue->last;
    load->next = NULL;
    return load;
}

static void *offload_run(void *argument) {
    const struct thread *thread = argument;
    struct offload *offload = thread->offload;
    pthread_mutex_lock(&offload->lock);
    for (;;) {
        struct offload_task *load = load_take_locked(offload, thread->brief);
        if (load == NULL && offload->stop) {
            break;
        }
        if (load == NULL) {
            pthread_cond_wait(&offload->ready, &offload->lock);
            continue;
        }
        pthread_mutex_unlock(&offload->lock);
        load->run(load);
        pthread_mutex_lock(&offload->lock);
    }
    pthread_mutex_unlock(&offload->lock);
    return NULL;
}

enum kiln_status offload_create(struct offload **out) {
    struct offload *offload = calloc(1, sizeof *offload);
    if (offload == NULL) {
        return KILN_NO_MEMORY;
    }
    for (int kind = 0; kind < OFFLOAD_KINDS; kind++) {
        offload->queues[kind].last = &offload->queues[kind].first;
    }
    pthread_mutex_init(&offload->lock, NULL);
    pthread_cond_init(&offload->ready, NULL);
    for (; offload->count < OFFLOAD_THREADS; offload->count++) {
        struct thread *thread = &offload->threads[offload->count];
        *thread = (struct thread){.offload = offload, .brief = offload->count == 0};
        if (pthread_create(&thread->id, NULL, offload_run, thread) != 0) {
            break;
        }
    }
    if (offload->count < OFFLOAD_THREADS) {
        offload_destroy(offload);
        return KILN_NO_MEMORY;
    }
    *out = offload;
    return KILN_OK;
}

void offload_stop(struct offload *offload) {
    if (offload == NULL) {
        return;
    }
    pthread_mutex_lock(&offload->lock);
    offload->stop = true;
    pthread_cond_broadcast(&offload->ready);
    pthread_mutex_unlock(&offload->lock);
    for (; offload->count > 0; offload->count--) {
        pthread_join(offload->threads[offload->count - 1].id, NULL);
    }
}

void offload_destroy(struct offload *offload) {
    if (offload == NULL) {
        return;
    }
    offload_stop(offload);
    pthread_cond_destroy(&offload->ready);
    pthread_mutex_destroy(&offload->lock);
    free(offload);
}

bool offload_push(struct offload *offload, enum offload_kind kind, struct offload_task *load) {
    struct queue *queue = &offload->queues[kind];
    load->next = NULL;
    pthread_mutex_lock(&offload->lock);
    bool taken = !offload->stop;
    if (taken) {
        load->number = ++offload->number;
        *queue->last = load;
        queue->last = &load->next;
        /* one alone might wake the thread that does not take this kind */
        pthread_cond_broadcast(&offload->ready);
    }
    pthread_mutex_unlock(&offload->lock);
    return taken;
}
