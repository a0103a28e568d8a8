/*
 * slot.c: one slot of a worker: a thread with a stream.
 *
 * All slots wait in recv() on the one job socket; the kernel gives each packet to one of them.
 * task.c runs what it holds. Serving a command allocates nothing.
 *
 * Thread: one per slot. A stream belongs to its slot.
 */
#include "compute/core/log.h"
#include "compute/jobs/canary.h"
#include "compute/worker/private.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long a slot looks for the next command before it sleeps. */
#define LOOK_NS UINT64_C(200000)
/* How long a slot waits for a job before it lets go of memory. */
#define REST_MS 2000

/* Slots use the same arena block one after the other, ordered by the front: an answer, then the
   next command. ThreadSanitizer sees one process only and has to be told. */
#ifdef __SANITIZE_THREAD__
#include <sanitizer/tsan_interface.h>
#define ORDER_ACQUIRE(worker) __tsan_acquire(worker)
#define ORDER_RELEASE(worker) __tsan_release(worker)
#else
#define ORDER_ACQUIRE(worker) ((void)(worker))
#define ORDER_RELEASE(worker) ((void)(worker))
#endif

/* Runs one kind's canary into memory of our own. */
static enum kiln_status canary_run(const struct worker *worker, struct stream *stream,
                                   const struct job_type *type, uint8_t *data, char *why,
                                   size_t why_size) {
    struct control control = {0};
    _Alignas(16) uint8_t params[JOB_PARAMS_MAX];
    struct timing timing = {0};
    struct input inputs[INPUTS_MAX];
    struct plan plan;
    size_t size = 0;
    enum kiln_status status = canary_prepare(type, params, inputs, data, &size, &plan);
    if (status != KILN_OK) {
        snprintf(why, why_size, "the canary of %s is unsound", type->name);
        return status == KILN_UNSUPPORTED ? KILN_OK : status; /* it has none */
    }
    if ((plan.kernels & ~worker->backend->kernels) != 0) {
        return KILN_OK; /* no such job comes here */
    }
    uint64_t capacity = (plan.result_bytes / ARENA_PAGE + 1) * ARENA_PAGE;
    struct task task = {
        .backend = worker->backend,
        .stream = stream,
        .pool = worker->pool,
        .params = params,
        .input = inputs,
        .data = size ? data : NULL,
        .format = type->canary_format,
        .result = aligned_alloc(ARENA_PAGE, capacity),
        .capacity = capacity,
        .device_name = worker->options->device,
        .timing = &timing,
        .started_ns = clock_ns(),
    };
    status = task.result ? task_run(&task, type, &control) : KILN_NO_MEMORY;
    snprintf(why, why_size, "warm-up of %s failed: %s", type->name,
             task.detail[0] ? task.detail : status_row(status)->title);
    free(task.result);
    return status;
}

/* Makes every kernel, pool and code path of this stream warm. A kind that this device does not
   support stays cold; anything else that fails makes the device unfit. */
static enum kiln_status warm_up(const struct worker *worker, struct stream *stream, char *why,
                                size_t why_size) {
    uint8_t *data = aligned_alloc(ARENA_PAGE, CANARY_DATA_MAX);
    enum kiln_status status = data ? KILN_OK : KILN_NO_MEMORY;
    for (size_t i = 0; status == KILN_OK && job_types[i]; i++) {
        status = canary_run(worker, stream, job_types[i], data, why, why_size);
        if (status == KILN_UNSUPPORTED) {
            log_warning("%s", why);
            status = KILN_OK;
        }
    }
    free(data);
    return status;
}

/* Tells the main thread that this slot is warm, or why not. */
static void report_warm(struct worker *worker, enum kiln_status status, const char *why) {
    pthread_mutex_lock(&worker->lock);
    if (status != KILN_OK && worker->status == KILN_OK) {
        worker->status = status;
        snprintf(worker->why, sizeof worker->why, "%s", why);
    }
    worker->warm++;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
}

/* For a slot that has memory to give back: waits until there is a packet or none has come for a
   while, and gives it back then. 0: nothing is left to give back, and no packet was taken. */
static ssize_t packet_await(struct worker *worker, struct stream *stream,
                            struct command commands[GROUP_MAX], bool *taken) {
    struct pollfd socket = {.fd = worker->options->job_fd, .events = POLLIN};
    uint64_t until = clock_ns() + REST_MS * UINT64_C(1000000);
    *taken = true;
    for (;;) {
        uint64_t now = clock_ns();
        int ready = poll(&socket, 1, now < until ? (int)((until - now) / 1000000) + 1 : 0);
        if (ready > 0) {
            ssize_t size = recv(socket.fd, commands, GROUP_MAX * sizeof *commands, MSG_DONTWAIT);
            if (size >= 0 || errno != EAGAIN) { /* else another slot was faster */
                return size;
            }
        }
        if (clock_ns() < until) {
            continue;
        }
        if (!worker->backend->rest(stream, true)) {
            *taken = false;
            return 0;
        }
        until = clock_ns() + REST_MS * UINT64_C(1000000);
    }
}

/* Waits for a packet. After a job one slot at a time looks for the next command for a moment:
   waking a thread that sleeps takes longer than a small job. Other slots sleep in recv() meanwhile;
   one that is woken for a packet that is gone sleeps on. */
static ssize_t packet_wait(struct worker *worker, struct stream *stream,
                           struct command commands[GROUP_MAX], bool warm, bool fat) {
    size_t room = GROUP_MAX * sizeof *commands;
    int fd = worker->options->job_fd;
    ssize_t size = -1;
    if (warm && worker->looks && !atomic_exchange(&worker->looking, true)) {
        uint64_t until = clock_ns() + LOOK_NS;
        do {
            size = recv(fd, commands, room, MSG_DONTWAIT);
        } while (size < 0 && errno == EAGAIN && clock_ns() < until);
        bool nothing = size < 0 && errno == EAGAIN;
        atomic_store(&worker->looking, false);
        if (!nothing) {
            return size;
        }
    }
    if (fat) {
        bool taken;
        size = packet_await(worker, stream, commands, &taken);
        if (taken) {
            return size;
        }
    }
    return recv(fd, commands, room, 0);
}

/* Sends the answers in one packet; false if the front is gone. */
static bool answers_send(const struct worker *worker, struct stream *stream,
                         const struct answer *answers, size_t count) {
    bool short_of_memory = false;
    for (size_t i = 0; i < count; i++) {
        short_of_memory = short_of_memory || answers[i].status == KILN_NO_MEMORY;
    }
    if (short_of_memory) {
        /* What it took before there was no more goes back at once: others need it. */
        struct timing ignored = {0};
        worker->backend->begin(stream, NULL);
        worker->backend->finish(stream, &ignored);
    }
    return send(worker->options->job_fd, answers, count * sizeof *answers, MSG_NOSIGNAL) >= 0;
}

static void answers_log(const struct command *commands, const struct answer *answers,
                        size_t count) {
    for (size_t i = 0; i < count && log_level_get() >= LOG_LEVEL_DEBUG; i++) {
        char id[JOB_ID_TEXT];
        job_id_print(&commands[i].id, id);
        log_about(LOG_LEVEL_DEBUG, &commands[i].trace, "job %s ends: %s", id,
                  status_row((enum kiln_status)answers[i].status)->slug);
    }
}

static void serve(struct worker *worker, struct stream *stream) {
    struct command commands[GROUP_MAX];
    struct answer answers[GROUP_MAX];
    bool fat = false; /* has memory to give back */
    for (bool warm = false;; warm = true) {
        ssize_t size = packet_wait(worker, stream, commands, warm, fat);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        fat = false;
        if (size <= 0) {
            return; /* the front is gone or lets us go */
        }
        size_t count = commands_unpack(commands, (size_t)size);
        if (count == 0) {
            log_error("invalid packet of %zd bytes from the front: ignored", size);
            continue;
        }
        ORDER_ACQUIRE(worker);
        count = commands_run(worker, stream, commands, count, answers);
        ORDER_RELEASE(worker);
        answers_log(commands, answers, count);
        if (!answers_send(worker, stream, answers, count)) {
            return;
        }
        if (answers[count - 1].status == KILN_DEVICE_FAULT) {
            log_about(LOG_LEVEL_ERROR, &commands[count - 1].trace, "device fault: %s",
                      answers[count - 1].detail);
            _exit(WORKER_EXIT_DEVICE_FAULT);
        }
        fat = worker->backend->rest(stream, false);
    }
}

void *worker_slot(void *argument) {
    struct worker *worker = argument;
    struct stream *stream = NULL;
    char why[sizeof worker->why] = "a stream could not be made";
    enum kiln_status status = worker->backend->stream_create(worker->device, &stream);
    if (status == KILN_OK) {
        status = warm_up(worker, stream, why, sizeof why);
    }
    report_warm(worker, status, why);
    if (status == KILN_OK) {
        serve(worker, stream);
    }
    if (stream) {
        worker->backend->stream_destroy(stream);
    }
    pthread_mutex_lock(&worker->lock);
    worker->finished++;
    pthread_cond_broadcast(&worker->changed);
    pthread_mutex_unlock(&worker->lock);
    return NULL;
}
