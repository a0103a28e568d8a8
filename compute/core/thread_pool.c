/*
 * thread_pool.c: a list of running jobs under one mutex, chunks claimed without it.
 *
 * A job lives on its caller's stack. Helpers join it under the mutex, which counts them in
 * `helpers`; the caller takes the job off the list when all chunks are claimed and waits until the
 * last helper has left, so that no helper touches a job that is gone.
 */
#include "compute/core/thread_pool.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* Rounds of looking around before sleeping: about 20 µs. */
#define SPINS 1000

#define SPARE_PROCESSORS 4

struct run {
    struct run *next;
    thread_pool_function *function;
    void *context;
    size_t chunks;
    atomic_size_t claimed;
    atomic_int helpers; /* inside now; raised under the mutex only */
    int slots;          /* handed out so far, the caller's included; under the mutex */
};

struct thread_pool {
    pthread_mutex_t mutex;
    pthread_cond_t work; /* a job came or the pool ends */
    pthread_cond_t left; /* the last helper left a job */
    struct run *runs;
    atomic_uint tickets; /* rises with every job: what idle helpers look at */
    bool ending;
    int sleeping;
    int width;
    int helpers;
    pthread_t threads[];
};

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void run_chunks(struct run *run, int slot) {
    for (;;) {
        size_t chunk = atomic_fetch_add_explicit(&run->claimed, 1, memory_order_relaxed);
        if (chunk >= run->chunks) {
            return;
        }
        run->function(run->context, chunk, slot);
    }
}

static bool run_open(struct run *run) {
    return atomic_load_explicit(&run->claimed, memory_order_relaxed) < run->chunks;
}

/* A job with chunks left, or NULL. Under the mutex. */
static struct run *find_open(struct thread_pool *pool) {
    struct run *run = pool->runs;
    while (run != NULL && !run_open(run)) {
        run = run->next;
    }
    return run;
}

/* Joins the job, works until no chunk is left and leaves. Called and returns under the mutex. */
static void help(struct thread_pool *pool, struct run *run) {
    int slot = run->slots++;
    atomic_fetch_add_explicit(&run->helpers, 1, memory_order_relaxed);
    pthread_mutex_unlock(&pool->mutex);
    run_chunks(run, slot);
    pthread_mutex_lock(&pool->mutex);
    /* After this the caller may return at any moment: the job is not touched again. */
    if (atomic_fetch_sub_explicit(&run->helpers, 1, memory_order_release) == 1) {
        pthread_cond_broadcast(&pool->left);
    }
}

/* Looks for a new job for a while without the mutex. */
static void look_around(struct thread_pool *pool, unsigned ticket) {
    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&pool->tickets, memory_order_acquire) != ticket) {
            return;
        }
        relax();
    }
}

static void *helper_main(void *argument) {
    struct thread_pool *pool = argument;
    pthread_mutex_lock(&pool->mutex);
    while (!pool->ending) {
        struct run *run = find_open(pool);
        if (run != NULL) {
            help(pool, run);
            continue;
        }
        unsigned ticket = atomic_load_explicit(&pool->tickets, memory_order_relaxed);
        pthread_mutex_unlock(&pool->mutex);
        look_around(pool, ticket);
        pthread_mutex_lock(&pool->mutex);
        if (atomic_load_explicit(&pool->tickets, memory_order_relaxed) != ticket || pool->ending) {
            continue;
        }
        pool->sleeping++;
        pthread_cond_wait(&pool->work, &pool->mutex);
        pool->sleeping--;
    }
    pthread_mutex_unlock(&pool->mutex);
    return NULL;
}

static void run_publish(struct thread_pool *pool, struct run *run) {
    pthread_mutex_lock(&pool->mutex);
    run->next = pool->runs;
    pool->runs = run;
    atomic_fetch_add_explicit(&pool->tickets, 1, memory_order_release);
    size_t wanted = run->chunks - 1;
    for (int i = 0; i < pool->sleeping && (size_t)i < wanted; i++) {
        pthread_cond_signal(&pool->work);
    }
    pthread_mutex_unlock(&pool->mutex);
}

/* Takes the job off the list, so that no helper joins any more, and waits for those inside. */
static void run_close(struct thread_pool *pool, struct run *run) {
    pthread_mutex_lock(&pool->mutex);
    struct run **link = &pool->runs;
    while (*link != run) {
        link = &(*link)->next;
    }
    *link = run->next;
    pthread_mutex_unlock(&pool->mutex);

    for (int i = 0; i < SPINS; i++) {
        if (atomic_load_explicit(&run->helpers, memory_order_acquire) == 0) {
            return;
        }
        relax();
    }
    pthread_mutex_lock(&pool->mutex);
    while (atomic_load_explicit(&run->helpers, memory_order_acquire) != 0) {
        pthread_cond_wait(&pool->left, &pool->mutex);
    }
    pthread_mutex_unlock(&pool->mutex);
}

void thread_pool_run(struct thread_pool *pool, thread_pool_function *function, void *context,
                     size_t chunks) {
    if (chunks <= 1 || pool->helpers == 0) {
        for (size_t chunk = 0; chunk < chunks; chunk++) {
            function(context, chunk, 0);
        }
        return;
    }
    struct run run = {.function = function, .context = context, .chunks = chunks, .slots = 1};
    run_publish(pool, &run);
    run_chunks(&run, 0);
    run_close(pool, &run);
}

/* Helpers leave signals to the threads that expect them. */
static int start_helpers(struct thread_pool *pool) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int started = 0;
    while (started < pool->width - 1 &&
           pthread_create(&pool->threads[started], NULL, helper_main, pool) == 0) {
        started++;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return started;
}

enum kiln_status thread_pool_create(int width, struct thread_pool **out) {
    if (width < 1) {
        width = 1;
    }
    struct thread_pool *pool =
        calloc(1, sizeof *pool + (size_t)(width - 1) * sizeof pool->threads[0]);
    if (pool == NULL) {
        return KILN_NO_MEMORY;
    }
    pthread_mutex_init(&pool->mutex, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->left, NULL);
    pool->width = width;
    pool->helpers = start_helpers(pool);
    *out = pool;
    return KILN_OK;
}

void thread_pool_destroy(struct thread_pool *pool) {
    if (pool == NULL) {
        return;
    }
    pthread_mutex_lock(&pool->mutex);
    pool->ending = true;
    atomic_fetch_add_explicit(&pool->tickets, 1, memory_order_release);
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->mutex);
    for (int i = 0; i < pool->helpers; i++) {
        pthread_join(pool->threads[i], NULL);
    }
    pthread_cond_destroy(&pool->left);
    pthread_cond_destroy(&pool->work);
    pthread_mutex_destroy(&pool->mutex);
    free(pool);
}

int thread_pool_width(const struct thread_pool *pool) {
    return pool->helpers + 1;
}

/* Processors that the container's quota is worth, or `most`. */
static int quota_processors(int most) {
    FILE *file = fopen("/sys/fs/cgroup/cpu.max", "re");
    long long quota, period;
    if (file == NULL) {
        return most;
    }
    bool read = fscanf(file, "%lld %lld", &quota, &period) == 2;
    fclose(file);
    if (!read || quota <= 0 || period <= 0 || quota / period >= most) {
        return most;
    }
    int whole = (int)((quota + period - 1) / period);
    return whole < 1 ? 1 : whole;
}

int thread_pool_processors(void) {
    cpu_set_t set;
    int count = 1;
    if (sched_getaffinity(0, sizeof set, &set) == 0) {
        count = CPU_COUNT(&set);
    }
    return quota_processors(count < 1 ? 1 : count);
}

bool thread_pool_spares(void) {
    return thread_pool_processors() >= SPARE_PROCESSORS;
}
