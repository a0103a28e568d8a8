/*
 * loader.c: a list of suspended exchanges and the threads that take them.
 */
#include "server/loader.h"

#include "server/exchange.h"

#include <pthread.h>
#include <stdlib.h>

struct loader {
    pthread_mutex_t lock;
    pthread_cond_t ready;
    struct exchange *first, **last;
    void (*work)(struct exchange *exchange);
    bool stop;
    int count;
    pthread_t threads[LOADER_THREADS];
};

static void *loader_run(void *argument) {
    struct loader *loader = argument;
    pthread_mutex_lock(&loader->lock);
    for (;;) {
        struct exchange *exchange = loader->first;
        if (exchange == NULL && loader->stop) {
            break;
        }
        if (exchange == NULL) {
            pthread_cond_wait(&loader->ready, &loader->lock);
            continue;
        }
        loader->first = exchange->next;
        if (loader->first == NULL) {
            loader->last = &loader->first;
        }
        pthread_mutex_unlock(&loader->lock);
        exchange->next = NULL;
        loader->work(exchange);
        pthread_mutex_lock(&loader->lock);
    }
    pthread_mutex_unlock(&loader->lock);
    return NULL;
}

enum kiln_status loader_create(void (*work)(struct exchange *exchange), struct loader **out) {
    struct loader *loader = calloc(1, sizeof *loader);
    if (loader == NULL) {
        return KILN_NO_MEMORY;
    }
    loader->last = &loader->first;
    loader->work = work;
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

void loader_destroy(struct loader *loader) {
    if (loader == NULL) {
        return;
    }
    pthread_mutex_lock(&loader->lock);
    loader->stop = true;
    pthread_cond_broadcast(&loader->ready);
    pthread_mutex_unlock(&loader->lock);
    for (int i = 0; i < loader->count; i++) {
        pthread_join(loader->threads[i], NULL);
    }
    pthread_cond_destroy(&loader->ready);
    pthread_mutex_destroy(&loader->lock);
    free(loader);
}

void loader_push(struct loader *loader, struct exchange *exchange) {
    exchange->next = NULL;
    pthread_mutex_lock(&loader->lock);
    *loader->last = exchange;
    loader->last = &exchange->next;
    pthread_cond_signal(&loader->ready);
    pthread_mutex_unlock(&loader->lock);
}
