/*
 * loop.h: the dispatcher's event loop: one epoll set over the workers' descriptors, and its clocks.
 *
 * Thread: the dispatcher's: its own, or that of an event loop which turns this one; loop_timeout
 * and the constants on any.
 */
#ifndef KILN_COMPUTE_DISPATCH_LOOP_H
#define KILN_COMPUTE_DISPATCH_LOOP_H

#include "compute/dispatch/timers.h"
#include "compute/dispatch/workers/workers.h"

#include <pthread.h>

struct loop {
    struct run_queue *queue;
    struct workers *workers;
    struct timers *timers;
    int epoll_fd;
    pthread_t thread;
};

/** `loop` is zeroed but for queue, workers and timers; the queue and the spawner are there. Errors:
    KILN_INTERNAL. */
enum kiln_status loop_init(struct loop *loop);
void loop_finish(struct loop *loop);
/** A thread that turns it until the queue is stopping; false if there can be none. */
bool loop_start(struct loop *loop);
/** Waits for that thread's end. */
void loop_join(struct loop *loop);
/** Watches a worker's descriptors; false if that cannot be. */
bool loop_watch(struct loop *loop, const struct supervisor *supervisor);
void loop_unwatch(struct loop *loop, int fd);
/** Milliseconds after which a turn is due anyway; -1: the queue is stopping. */
int loop_timeout(const struct loop *loop);
/** Takes what has happened, waiting at most `timeout` ms for the first of it; false: nothing. */
bool loop_turn(struct loop *loop, int timeout);

#endif
