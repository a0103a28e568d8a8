/*
 * loop.c: the dispatcher's event loop.
 *
 * One epoll set holds every worker's job socket, control socket and pidfd, the spawner's socket and
 * one eventfd; an answer costs one receive. Moments (deadlines, back-off, signs of life) are kept
 * as the one nearest, `sweep_ns`, which is the timeout of the wait.
 */
#include "compute/dispatch/loop.h"

#include "compute/dispatch/workers/supervise.h"

#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#define EVENTS_MAX 32

/* What a descriptor in the epoll set is: the kind in the low bits, the device above. */
enum { EVENT_JOBS, EVENT_CONTROL, EVENT_DEATH, EVENT_WAKE, EVENT_SPAWNER, EVENT_KINDS };

static bool add(struct loop *loop, int fd, int device, uint64_t kind) {
    struct epoll_event event = {.events = EPOLLIN,
                                .data.u64 = (uint64_t)device * EVENT_KINDS + kind};
    return epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event) == 0;
}

enum kiln_status loop_init(struct loop *loop) {
    loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    return loop->epoll_fd >= 0 && add(loop, loop->queue->wake_fd, 0, EVENT_WAKE) &&
                   add(loop, loop->workers->spawner.socket, 0, EVENT_SPAWNER)
               ? KILN_OK
               : KILN_INTERNAL;
}

void loop_finish(struct loop *loop) {
    if (loop->epoll_fd >= 0) {
        close(loop->epoll_fd);
    }
}

bool loop_watch(struct loop *loop, const struct supervisor *supervisor) {
    return add(loop, supervisor->job_fd, supervisor->index, EVENT_JOBS) &&
           add(loop, supervisor->control_fd, supervisor->index, EVENT_CONTROL) &&
           add(loop, supervisor->pidfd, supervisor->index, EVENT_DEATH);
}

void loop_unwatch(struct loop *loop, int fd) {
    epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void event_take(struct loop *loop, uint64_t data) {
    struct workers *workers = loop->workers;
    struct supervisor *supervisor = &loop->queue->supervisors[data / EVENT_KINDS];
    uint64_t count;
    ssize_t size;
    switch (data % EVENT_KINDS) {
    case EVENT_JOBS:
        supervise_on_jobs(workers, supervisor);
        break;
    case EVENT_CONTROL:
        supervise_on_control(workers, supervisor);
        break;
    case EVENT_DEATH:
        supervise_on_death(workers, supervisor);
        break;
    case EVENT_SPAWNER:
        loop_unwatch(loop, workers->spawner.socket);
        spawner_on_event(&workers->spawner);
        break;
    default:
        size = read(loop->queue->wake_fd, &count, sizeof count);
        (void)size;
    }
}

/* Each turn asks: so without the lock. Who moves the moment forward from another thread wakes this
   one afterwards. */
static uint64_t sweep_at(const struct loop *loop) {
    return atomic_load_explicit(&loop->queue->sweep_ns, memory_order_relaxed);
}

int loop_timeout(const struct loop *loop) {
    uint64_t now = clock_ns(), sweep = sweep_at(loop);
    uint64_t left = sweep > now ? sweep - now : 0;
    return atomic_load(&loop->queue->stopping) ? -1 : (int)((left + MS - 1) / MS); /* rounded up */
}

bool loop_turn(struct loop *loop, int timeout) {
    struct epoll_event events[EVENTS_MAX];
    int count = epoll_wait(loop->epoll_fd, events, EVENTS_MAX, timeout);
    for (int i = 0; i < count; i++) {
        event_take(loop, events[i].data.u64);
    }
    uint64_t now = clock_ns();
    if (now >= sweep_at(loop)) {
        timers_sweep(loop->timers, now);
    }
    loop->timers->awake_ns = clock_ns();
    return count > 0;
}

static void *run(void *argument) {
    struct loop *loop = argument;
    int timeout;
    while ((timeout = loop_timeout(loop)) >= 0) {
        loop_turn(loop, timeout);
    }
    return NULL;
}

/* Signals are the main thread's: this one blocks all of them. */
bool loop_start(struct loop *loop) {
    sigset_t all, before;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(&loop->thread, NULL, run, loop);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (error == 0) {
        pthread_setname_np(loop->thread, "dispatcher");
    }
    return error == 0;
}

void loop_join(struct loop *loop) {
    run_queue_wake(loop->queue);
    pthread_join(loop->thread, NULL);
}
