/*
 * engine.c: starting, cutting into windows, and ending the client threads.
 */
#include "bench/load/engine.h"

#include "bench/load/client.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

struct engine {
    struct common common;
    struct load_client *clients[THREADS_MAX];
    size_t count, running;
    uint64_t start; /* of the current window */
    bool drained;
};

uint64_t load_clock_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

struct engine *engine_create(const struct load *load, char *why, size_t why_size) {
    struct engine *engine = calloc(1, sizeof *engine);
    if (engine == NULL || (engine->common.sum = tally_create()) == NULL) {
        snprintf(why, why_size, "out of memory");
        free(engine);
        return NULL;
    }
    engine->common.load = *load;
    pthread_mutex_init(&engine->common.lock, NULL);
    atomic_store(&engine->common.budget, (int_least64_t)load->count);
    for (size_t i = 0; i < load->threads; i++) {
        size_t share = load->connections / load->threads + (i < load->connections % load->threads);
        engine->clients[i] = client_create(&engine->common, i, share, why, why_size);
        if (engine->clients[i] == NULL) {
            engine_destroy(engine);
            return NULL;
        }
        engine->count++;
    }
    engine->start = load_clock_ns();
    for (size_t i = 0; i < engine->count; i++) {
        if (!client_start(engine->clients[i])) {
            snprintf(why, why_size, "threads cannot be started");
            engine_destroy(engine);
            return NULL;
        }
        engine->running++;
    }
    return engine;
}

/* Tells every client that something changed and waits until each has handed over. */
static void clients_turn(struct engine *engine, struct tally *tally) {
    const struct timespec pause = {0, 20000};
    atomic_store(&engine->common.handed, 0);
    atomic_fetch_add(&engine->common.window, 1);
    for (size_t i = 0; i < engine->running; i++) {
        client_poke(engine->clients[i]);
    }
    while (atomic_load(&engine->common.handed) < engine->running) {
        nanosleep(&pause, NULL);
    }
    if (tally != NULL) {
        tally_merge(tally, engine->common.sum);
    }
    tally_reset(engine->common.sum);
}

void engine_window(struct engine *engine, struct tally *tally, double *seconds) {
    uint64_t now = load_clock_ns();
    clients_turn(engine, tally);
    *seconds += (double)(now - engine->start) / 1e9;
    engine->start = now;
}

uint64_t engine_outcomes(const struct engine *engine) {
    return atomic_load(&engine->common.outcomes);
}

bool engine_finished(const struct engine *engine) {
    return engine->common.load.count > 0 && engine_outcomes(engine) >= engine->common.load.count;
}

void engine_drain(struct engine *engine, struct tally *tally) {
    atomic_store(&engine->common.end_ns, engine->start);
    atomic_store(&engine->common.stage, STAGE_DRAIN);
    clients_turn(engine, tally);
    engine->drained = true;
}

void engine_destroy(struct engine *engine) {
    if (engine == NULL) {
        return;
    }
    if (!engine->drained && engine->running > 0) {
        engine_drain(engine, NULL);
    }
    atomic_store(&engine->common.stage, STAGE_STOP);
    for (size_t i = 0; i < engine->count; i++) {
        client_poke(engine->clients[i]);
        client_destroy(engine->clients[i]);
    }
    pthread_mutex_destroy(&engine->common.lock);
    free(engine->common.sum);
    free(engine);
}
