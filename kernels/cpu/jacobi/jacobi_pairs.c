/*
 * jacobi_pairs.c: pairs of sweeps of `jacobi`, several at a time in the caches, shared out among
 * threads.
 *
 * A batch is several pairs that follow each other down the plane one group apart: step u of a batch
 * is group u - p of its pair p. The steps of a batch are cut into bands. A band waits for the band
 * above it in the same batch and, near its end, for the first steps of the band below it in
 * the batch before: nothing is computed twice, every byte is the same whatever the number of bands,
 * and a thread may be almost a band ahead of its neighbour before it has to wait.
 *
 * Threads take bands under a mutex. A band is taken only when all that it waits for inside is
 * finished or in the hands of a thread that is at work, so that one thread alone also gets through.
 * Planes that fit the caches of all cores have a band for each thread, which keeps coming back to
 * its own; larger ones have many bands, and batches follow each other down the plane.
 */
#include "kernels/cpu/jacobi/jacobi_grid.h"

#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>

#define DEEP_MOST   8                   /* pairs of a batch */
#define DEEP_LEAST  2                   /* where more would leave threads without a band */
#define BAND_MORE   4                   /* steps of a band beyond the pairs of a batch, at least */
#define CORE_BYTES  ((size_t)768 << 10) /* of X and B that a core's own cache holds */
#define BANDS_MOST  64
#define SPINS_STEAL 1000 /* about 20 µs before a thread leaves its band */
#define SPINS_SLEEP 4000 /* before it sleeps: the other has lost its processor */

struct band {
    _Alignas(64) atomic_ullong steps; /* made, over all batches */
    uint64_t next;                    /* batch */
    bool busy;                        /* a thread makes batch `next` */
    size_t first, end;                /* steps of a batch */
};

struct run {
    const struct jacobi_grid *grid;
    size_t plane;
    uint64_t pairs, batches;
    struct jacobi_progress progress;
    size_t planes;                  /* that share the progress */
    atomic_ullong *parts;           /* bands done of all batches and planes */
    char *carry;                    /* for each batch under way, two rows a pair */
    size_t carry_size, carry_count; /* bytes of one, batches */
    size_t deep;                    /* pairs of a batch */
    size_t steps;                   /* of a batch */
    size_t band_count;
    bool staying;          /* threads keep to their bands */
    int workers;           /* at work */
    pthread_mutex_t mutex; /* guards bands (but for steps) and workers */
    pthread_cond_t changed;
    pthread_cond_t stepped;
    int sleeping;             /* until `changed` */
    atomic_int step_sleepers; /* until `stepped` */
    atomic_uint changes;
    struct band bands[BANDS_MOST];
};

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static bool steps_made(const struct run *run, const struct band *band, uint64_t wanted) {
    return atomic_load_explicit(&band->steps, memory_order_acquire) >= wanted ||
           stream_cancelled(run->grid->stream);
}

/* Waits until the band, which another thread is at, has made so many steps, or cancellation. */
static void steps_wait(struct run *run, const struct band *band, uint64_t wanted) {
    for (unsigned i = 0; i < SPINS_SLEEP; i++) {
        if (steps_made(run, band, wanted)) {
            return;
        }
        relax();
    }
    pthread_mutex_lock(&run->mutex);
    atomic_fetch_add(&run->step_sleepers, 1);
    atomic_thread_fence(memory_order_seq_cst); /* before the look at the steps */
    while (!steps_made(run, band, wanted)) {
        pthread_cond_wait(&run->stepped, &run->mutex);
    }
    atomic_fetch_sub(&run->step_sleepers, 1);
    pthread_mutex_unlock(&run->mutex);
}

static void steps_tell(struct run *run, struct band *band, uint64_t steps) {
    atomic_store_explicit(&band->steps, steps, memory_order_release);
    if (run->band_count == 1) {
        return;
    }
    atomic_thread_fence(memory_order_seq_cst); /* before the look at the sleepers */
    if (atomic_load_explicit(&run->step_sleepers, memory_order_relaxed) == 0) {
        return;
    }
    pthread_mutex_lock(&run->mutex);
    pthread_cond_broadcast(&run->stepped);
    pthread_mutex_unlock(&run->mutex);
}

static void group_run(const struct run *run, uint64_t batch, size_t pair, size_t index) {
    const struct jacobi_grid *grid = run->grid;
    ptrdiff_t row = (ptrdiff_t)(index * grid->simd->rows) - JACOBI_ABOVE;
    struct jacobi_group group = {
        .x = jacobi_row(grid, grid->x, run->plane, row),
        .b = jacobi_row(grid, grid->b, run->plane, row),
        .carry = run->carry + batch % run->carry_count * run->carry_size +
                 pair * (run->carry_size / run->deep),
        .mask = grid->mask,
        .row = row,
        .height = (ptrdiff_t)grid->height,
        .stride = grid->stride / grid->element,
        .vectors = grid->vectors,
    };
    size_t outside = grid->vectors * grid->simd->lanes - grid->width;
    group.whole = outside < grid->vectors ? grid->vectors - outside : 0;
    grid->simd->pair[grid->fused](&group);
}

static void progress_tell(const struct run *run) {
    uint64_t done = atomic_fetch_add_explicit(run->parts, 1, memory_order_relaxed) + 1;
    double share =
        (double)done / ((double)run->planes * (double)run->batches * (double)run->band_count);
    control_advance(run->grid->stream->control,
                    run->progress.sweeps + (uint64_t)(share * 2 * (double)run->pairs),
                    run->progress.all);
}

/* The band's steps of a batch; false when cancelled. */
static bool band_run(struct run *run, size_t index, uint64_t batch) {
    struct band *band = &run->bands[index];
    uint64_t left = run->pairs - batch * run->deep;
    size_t pairs = left < run->deep ? (size_t)left : run->deep;
    for (size_t u = band->first; u < band->end; u++) {
        size_t behind = u + run->deep + 1 < run->steps ? u + run->deep + 1 : run->steps;
        if (batch > 0 && behind > band->end) {
            steps_wait(run, band + 1, (batch - 1) * run->steps + behind);
        }
        if (stream_cancelled(run->grid->stream)) {
            return false;
        }
        for (size_t p = 0; p < pairs && p <= u; p++) {
            if (u - p < run->grid->groups) {
                group_run(run, batch, p, u - p);
            }
        }
        steps_tell(run, band, batch * run->steps + u + 1);
    }
    progress_tell(run);
    return true;
}

/* True where nothing that the band waits for is without a thread. */
static bool band_ready(const struct run *run, size_t index) {
    const struct band *band = &run->bands[index];
    uint64_t batch = band->next;
    if (band->busy || batch >= run->batches) {
        return false;
    }
    if (index > 0 && band[-1].next <= batch) {
        return false;
    }
    if (index == 0 && batch >= run->carry_count &&
        run->bands[run->band_count - 1].next <= batch - run->carry_count) {
        return false; /* its carry is still in use */
    }
    if (index + 1 == run->band_count || batch == 0 || band[1].next >= batch) {
        return true;
    }
    return band[1].next == batch - 1 && band[1].busy;
}

/* A band for a thread that made `last` before, or band_count. */
static size_t band_choose(const struct run *run, size_t last, unsigned waited) {
    if (run->staying && run->workers >= (int)run->band_count && waited < SPINS_STEAL) {
        return band_ready(run, last) ? last : run->band_count;
    }
    if (!run->staying && last + 1 < run->band_count && band_ready(run, last + 1)) {
        return last + 1;
    }
    for (size_t i = run->band_count; i-- > 0;) { /* the oldest batch first */
        if (band_ready(run, i)) {
            return i;
        }
    }
    return run->band_count;
}

static bool all_taken(const struct run *run) {
    const struct band *end = &run->bands[run->band_count - 1];
    return end->next + (end->busy ? 1 : 0) >= run->batches;
}

static void tell_change(struct run *run) {
    atomic_fetch_add_explicit(&run->changes, 1, memory_order_relaxed);
    if (run->sleeping > 0) {
        pthread_cond_broadcast(&run->changed);
    }
}

/* Waits for a change, for a while awake. Called and returns under the mutex. */
static void change_wait(struct run *run, unsigned *waited) {
    unsigned seen = atomic_load_explicit(&run->changes, memory_order_relaxed);
    if (*waited >= SPINS_SLEEP) {
        run->sleeping++;
        pthread_cond_wait(&run->changed, &run->mutex);
        run->sleeping--;
        return;
    }
    pthread_mutex_unlock(&run->mutex);
    for (unsigned i = 0; i < SPINS_STEAL; i++, ++*waited) {
        if (atomic_load_explicit(&run->changes, memory_order_relaxed) != seen) {
            break;
        }
        relax();
    }
    pthread_mutex_lock(&run->mutex);
}

static void work(void *context, size_t chunk, int slot) {
    (void)chunk;
    (void)slot;
    struct run *run = context;
    unsigned waited = 0;
    bool going = true;
    pthread_mutex_lock(&run->mutex);
    size_t last = (size_t)run->workers++ % run->band_count;
    while (going && !all_taken(run)) {
        size_t index = band_choose(run, last, waited);
        if (index == run->band_count) {
            change_wait(run, &waited);
            going = !stream_cancelled(run->grid->stream);
            continue;
        }
        struct band *band = &run->bands[index];
        band->busy = true;
        tell_change(run);
        pthread_mutex_unlock(&run->mutex);
        going = band_run(run, index, band->next);
        pthread_mutex_lock(&run->mutex);
        if (going) {
            band->busy = false;
            band->next++;
        }
        last = index;
        waited = 0;
        tell_change(run);
    }
    tell_change(run);
    pthread_cond_broadcast(&run->stepped); /* cancelled */
    pthread_mutex_unlock(&run->mutex);
}

/* Bands of about the same number of steps. */
static void bands_cut(struct run *run, size_t wanted) {
    size_t most = run->steps / (run->deep + BAND_MORE);
    most = most < BANDS_MOST ? most : BANDS_MOST;
    run->band_count = wanted < most ? wanted : most;
    if (run->band_count == 0) {
        run->band_count = 1;
    }
    for (size_t i = 0; i < run->band_count; i++) {
        struct band *band = &run->bands[i];
        atomic_init(&band->steps, 0);
        band->next = 0;
        band->busy = false;
        band->first = run->steps * i / run->band_count;
        band->end = run->steps * (i + 1) / run->band_count;
    }
}

static enum kiln_status run_init(struct run *run, const struct jacobi_grid *grid, uint64_t pairs,
                                 struct jacobi_progress progress, atomic_ullong *parts) {
    *run = (struct run){.grid = grid, .pairs = pairs, .progress = progress, .parts = parts};
    run->deep = DEEP_MOST;
    while (run->deep > DEEP_LEAST &&
           grid->groups / (run->deep + BAND_MORE) < (size_t)grid->threads) {
        run->deep /= 2;
    }
    run->batches = (pairs + run->deep - 1) / run->deep;
    run->planes = grid->planes;
    run->steps = grid->groups + run->deep - 1;
    run->carry_size = run->deep * 2 * grid->vectors * grid->simd->lanes * grid->element;
    run->carry_count = (size_t)grid->threads + 1;
    run->carry = stream_take(grid->stream, run->carry_count * run->carry_size);
    return run->carry != NULL ? KILN_OK : KILN_NO_MEMORY;
}

/* One plane by all threads. */
static void plane_run(struct run *run) {
    const struct jacobi_grid *grid = run->grid;
    size_t threads = (size_t)grid->threads;
    run->staying = 2 * grid->plane <= threads * CORE_BYTES;
    bands_cut(run, run->staying ? threads : 8 * threads);
    run->workers = run->sleeping = 0;
    pthread_cond_init(&run->stepped, NULL);
    pthread_mutex_init(&run->mutex, NULL);
    pthread_cond_init(&run->changed, NULL);
    thread_pool_run(grid->stream->pool, work, run,
                    threads < run->band_count ? threads : run->band_count);
    pthread_cond_destroy(&run->stepped);
    pthread_cond_destroy(&run->changed);
    pthread_mutex_destroy(&run->mutex);
}

/* One plane by the thread that took it. */
struct whole {
    struct run *runs; /* one for each slot */
};

static void whole_run(void *context, size_t plane, int slot) {
    struct run *run = &((struct whole *)context)->runs[slot];
    run->plane = plane;
    bands_cut(run, 1);
    for (uint64_t batch = 0; batch < run->batches; batch++) {
        if (!band_run(run, 0, batch)) {
            return;
        }
    }
}

enum kiln_status jacobi_pairs(const struct jacobi_grid *grid, uint64_t pairs,
                              struct jacobi_progress progress) {
    if (pairs == 0) {
        return KILN_OK;
    }
    atomic_ullong parts = 0;
    size_t threads = (size_t)grid->threads;
    bool shared = threads > 1 && (grid->planes < threads ||
                                  (grid->planes % threads != 0 && grid->planes < 4 * threads));
    size_t count = shared ? 1 : (size_t)thread_pool_width(grid->stream->pool);
    struct run *runs = stream_take(grid->stream, count * sizeof *runs);
    if (runs == NULL) {
        return KILN_NO_MEMORY;
    }
    for (size_t i = 0; i < count; i++) {
        if (run_init(&runs[i], grid, pairs, progress, &parts) != KILN_OK) {
            return KILN_NO_MEMORY;
        }
    }
    if (!shared) {
        struct whole whole = {runs};
        thread_pool_run(grid->stream->pool, whole_run, &whole, grid->planes);
        return KILN_OK;
    }
    for (runs->plane = 0; runs->plane < grid->planes; runs->plane++) {
        plane_run(runs);
    }
    return KILN_OK;
}
