/*
 * thread_pool.h: the threads that all streams of a device share.
 *
 * thread_pool_run cuts a job into chunks that the calling thread and the pool's helpers claim one
 * by one from a counter. Several threads may call at once: the helpers go where chunks are left,
 * and since every caller works on its own job it never waits for a helper to begin. A job of one
 * chunk runs inline and wakes nobody.
 *
 * A chunk must not wait for another chunk (they may all run on one thread, one after the other).
 * Helpers that find nothing to do look around for some microseconds, so that a series of short jobs
 * (the batches of an iteration) needs no system calls, and then sleep.
 */
#ifndef KILN_COMPUTE_CORE_THREAD_POOL_H
#define KILN_COMPUTE_CORE_THREAD_POOL_H

#include "compute/core/status.h"

#include <stdbool.h>
#include <stddef.h>

struct thread_pool;

/** Work on chunk `chunk`. `slot` is smaller than thread_pool_width and no two threads that work on
   the same job at the same time have the same, so that it may index scratch memory. */
typedef void thread_pool_function(void *context, size_t chunk, int slot);

/** Starts `width - 1` helpers; width ≥ 1 counts the calling thread. Fewer helpers where the system
    does not allow more. Errors: KILN_NO_MEMORY. */
enum kiln_status thread_pool_create(int width, struct thread_pool **pool);
/** Ends the helpers. No job may be running. NULL is allowed. */
void thread_pool_destroy(struct thread_pool *pool);
/** Threads that may work on one job, the caller included. */
int thread_pool_width(const struct thread_pool *pool);
/** Runs all chunks and returns when the last has ended. */
void thread_pool_run(struct thread_pool *pool, thread_pool_function *function, void *context,
                     size_t chunks);
/** Processors that this process may use: affinity, and the container's quota rounded up. */
int thread_pool_processors(void);
/** True where there are so many that a thread may look around for work instead of sleeping; on
    fewer, others need the time more. */
bool thread_pool_spares(void);

#endif
