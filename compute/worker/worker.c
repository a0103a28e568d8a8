/*
 * worker.c: life of a worker process: starting, warming up, signs of life, ending.
 *
 * The main thread opens the device, starts one thread per slot (slot.c), waits until all are
 * warm, and then only speaks on the control socket: NOTICE_READY, and NOTICE_ALIVE about every
 * second. When that socket closes the front is gone or wants us gone, and the process ends: in
 * order when all slots are idle, at once otherwise.
 *
 * Signals of a terminal reach the whole process group; the front decides what they mean, so a
 * worker ignores them. Should the front die, so does the spawner, and with it, by the kernel's
 * hand, the worker (PR_SET_PDEATHSIG).
 */
#include "compute/worker/worker.h"
#include "compute/core/log.h"
#include "compute/core/thread_pool.h"
#include "compute/worker/device_kind.h"
#include "compute/worker/private.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#define ALIVE_MS   1000
#define GOODBYE_MS 300 /* for idle slots to end by themselves; the front waits longer than that */

/* Ties our life to the spawner's, and so to the front's; false if it has died already. */
static bool tie_to_parent(void) {
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        signal(ignored[i], SIG_IGN);
    }
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) != 0) {
        return false;
    }
    /* It may have died before the line above; its id was given to us by itself. */
    const char *parent = getenv("KILN_PARENT_PID");
    return !parent || strtol(parent, NULL, 10) == (long)getppid();
}

/* Threads for the host's share of the jobs. More than eight on one picture gain nothing. */
static struct thread_pool *pool_start(void) {
    struct thread_pool *pool = NULL;
    int width = thread_pool_processors();
    if (width > 1 && thread_pool_create(width < 8 ? width : 8, &pool) != KILN_OK) {
        log_warning("the thread pool could not be started: each job runs on one thread");
    }
    return pool;
}

/* Sends one notice with `size` bytes of text. A front that does not read now misses a sign of
   life; it never blocks us. */
static bool notice_send(const struct worker *worker, enum notice_kind kind, const char *text,
                        size_t size) {
    struct notice notice = {
        .magic = COMMAND_MAGIC,
        .kind = kind,
        .slots = (uint32_t)worker->slots,
        .gather = worker->backend ? (uint32_t)worker->backend->gather : 1,
        .kernels = worker->backend ? worker->backend->kernels : 0,
        .size = (uint32_t)size,
    };
    struct iovec parts[] = {{&notice, sizeof notice}, {(void *)(uintptr_t)text, size}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    int flags = MSG_NOSIGNAL | (kind == NOTICE_ALIVE ? MSG_DONTWAIT : 0);
    return sendmsg(worker->options->control_fd, &message, flags) >= 0 || errno == EAGAIN;
}

static void device_describe(const struct worker *worker, char *buffer) {
    struct text text;
    text_init(&text, buffer, NOTICE_TEXT_MAX);
    if (worker->backend->describe(worker->device, &text) != KILN_OK || text.full) {
        text_init(&text, buffer, NOTICE_TEXT_MAX);
        text_string(&text, "{}");
    }
}

/* A notice with the device's description as it is now, or was when it could last be read. */
static bool notice_describe(const struct worker *worker, enum notice_kind kind, char *buffer) {
    if (!worker->shut) {
        device_describe(worker, buffer);
    }
    return notice_send(worker, kind, buffer, strlen(buffer));
}

/* Opens the device and makes the arena known to it; `why` on failure. */
static enum kiln_status device_open(struct worker *worker) {
    const struct worker_options *options = worker->options;
    const struct device_options wanted = {.threads = options->threads,
                                          .max_bytes = options->device_bytes};
    int index = 0;
    char *why = worker->why;
    worker->arena = arena_attach(options->arena_fd, options->arena_size);
    if (!worker->arena) {
        snprintf(why, sizeof worker->why, "the arena could not be mapped: %s", strerror(errno));
        return KILN_INTERNAL;
    }
    worker->backend = backend_find(options->device, &index, why, sizeof worker->why);
    if (!worker->backend) {
        return KILN_NO_DEVICE;
    }
    enum kiln_status status =
        worker->backend->open(index, &wanted, &worker->device, why, sizeof worker->why);
    if (status != KILN_OK) {
        return status;
    }
    status = worker->backend->pin(worker->device, worker->arena, options->arena_size);
    if (status == KILN_DEVICE_FAULT) {
        snprintf(why, sizeof worker->why, "the device failed while the arena was pinned");
        return status;
    }
    if (status != KILN_OK) {
        /* Transfers work from unpinned memory too, only slower. */
        log_warning("the arena could not be pinned (%s): transfers will be slower",
                    status_row(status)->title);
    }
    return KILN_OK;
}

static double seconds_since(uint64_t began) {
    return (double)(clock_ns() - began) * 1e-9;
}

/* Starts the slots and waits until all are warm. `started` counts the threads to be joined. */
static enum kiln_status slots_start(struct worker *worker, pthread_t *threads, int *started) {
    pthread_mutex_lock(&worker->lock);
    for (*started = 0; *started < worker->slots; ++*started) {
        if (pthread_create(&threads[*started], NULL, worker_slot, worker) != 0) {
            worker->status = KILN_NO_MEMORY;
            snprintf(worker->why, sizeof worker->why, "a slot's thread could not be started");
            break;
        }
    }
    while (worker->warm < *started) {
        pthread_cond_wait(&worker->changed, &worker->lock);
    }
    enum kiln_status status = worker->status;
    pthread_mutex_unlock(&worker->lock);
    return status;
}

/* True once the control socket has closed. Nothing is ever sent to us on it. */
static bool front_is_gone(const struct worker *worker) {
    char byte;
    ssize_t size = recv(worker->options->control_fd, &byte, 1, MSG_DONTWAIT);
    return size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR);
}

static void speak_until_closed(const struct worker *worker, char *buffer) {
    struct pollfd control = {.fd = worker->options->control_fd, .events = POLLIN};
    for (;;) {
        int count = poll(&control, 1, ALIVE_MS);
        if (count > 0 && front_is_gone(worker)) {
            return;
        }
        if (count == 0 && !notice_describe(worker, NOTICE_ALIVE, buffer)) {
            return;
        }
    }
}

/* Waits a moment for the slots to end (their socket is closed too); true if all did. */
static bool slots_finish(struct worker *worker, pthread_t *threads, int started) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += GOODBYE_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&worker->lock);
    int error = 0;
    while (worker->finished < started && error == 0) {
        error = pthread_cond_timedwait(&worker->changed, &worker->lock, &until);
    }
    bool all = worker->finished == started;
    pthread_mutex_unlock(&worker->lock);
    for (int i = 0; all && i < started; i++) {
        pthread_join(threads[i], NULL);
    }
    return all;
}

int worker_run(const struct worker_options *options) {
    static char buffer[NOTICE_TEXT_MAX];
    pthread_t threads[WORKER_SLOTS_MAX];
    int started = 0;
    struct worker worker = {.options = options, .slots = options->slots};
    uint64_t began = clock_ns();
    log_init(log_level_environment(), options->device);
    if (!tie_to_parent()) {
        return WORKER_EXIT_FAILED;
    }
    const struct device_kind *kind = device_kind_find(options->device, NULL);
    if (kind == NULL) {
        log_error("there is no kind of device called \"%s\"", options->device);
        return WORKER_EXIT_FAILED;
    }
    sandbox_enter(kind->sandbox);
    if (worker.slots <= 0) {
        worker.slots = kind->slots(thread_pool_processors());
    }
    if (worker.slots > WORKER_SLOTS_MAX) {
        worker.slots = WORKER_SLOTS_MAX;
    }
    pthread_mutex_init(&worker.lock, NULL);
    pthread_cond_init(&worker.changed, NULL);
    enum kiln_status status = device_open(&worker);
    double opened = seconds_since(began);
    if (status == KILN_OK) {
        worker.looks = kind->spins && thread_pool_spares();
        worker.pool = pool_start();
        status = slots_start(&worker, threads, &started);
    }
    if (status != KILN_OK) {
        notice_send(&worker, NOTICE_FAILED, worker.why, strlen(worker.why));
        /* Other slots may be serving already: there is no one to join them for. */
        _exit(status == KILN_DEVICE_FAULT ? WORKER_EXIT_DEVICE_FAULT : WORKER_EXIT_FAILED);
    }
    log_info("ready with %d slots after %.2f s, %.2f s of them for the device and the arena",
             worker.slots, seconds_since(began), opened);
    if (kind->shuts && !sandbox_files_closed()) { /* before the first job: it may take us over */
        device_describe(&worker, buffer);
        worker.shut = sandbox_enter(SANDBOX_SHUT) == SANDBOX_ON;
    }
    if (notice_describe(&worker, NOTICE_READY, buffer)) {
        speak_until_closed(&worker, buffer);
    }
    if (!slots_finish(&worker, threads, started)) {
        _exit(WORKER_EXIT_OK); /* a job is running whose result nobody wants any more */
    }
    thread_pool_destroy(worker.pool);
    worker.backend->close(worker.device);
    pthread_cond_destroy(&worker.changed);
    pthread_mutex_destroy(&worker.lock);
    return WORKER_EXIT_OK;
}
