/*
 * worker_slot.c: one slot of a worker: a thread with a stream.
 *
 * All slots wait in recv() on the one job socket; the kernel gives each packet to one of them. A
 * command comes from the front, which has validated it; it is checked here again, against the
 * arena's size and the kind's table, so that a wrong number ends in an answer and not in a wild
 * write. Serving a command allocates nothing.
 *
 * Thread: one per slot. A stream belongs to its slot.
 */
#include "compute/log.h"
#include "compute/worker_canary.h"
#include "compute/worker_private.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* How long a slot looks for the next command before it sleeps. */
#define LOOK_NS UINT64_C(200000)

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

/* Does [offset, offset + size) lie in a space of `total` bytes? */
static bool lies_within(uint64_t offset, uint64_t size, uint64_t total) {
    return offset <= total && size <= total - offset;
}

static bool has_format(const struct job_type *type, enum format format) {
    for (const enum format *known = type->formats; *known != FORMAT_NONE; known++) {
        if (*known == format) {
            return true;
        }
    }
    return false;
}

static const struct job_type *type_at(int32_t wanted) {
    for (int32_t i = 0; job_types[i]; i++) {
        if (i == wanted) {
            return job_types[i];
        }
    }
    return NULL;
}

/* The kind of a command whose numbers are all sound, or NULL. */
static const struct job_type *command_check(const struct worker *worker,
                                            const struct command *command) {
    uint64_t total = worker->options->arena_size;
    const struct job_type *type = type_at(command->type);
    bool sound =
        type && command->magic == COMMAND_MAGIC && has_format(type, (enum format)command->format) &&
        command->data_offset % ARENA_PAGE == 0 && command->result_offset % ARENA_PAGE == 0 &&
        lies_within(command->data_offset, command->data_size, total) &&
        lies_within(command->result_offset, command->result_size, total) &&
        command->result_size > 0 && command->control_offset % _Alignof(struct control) == 0 &&
        lies_within(command->control_offset, sizeof(struct control), total) &&
        command->input.kind == (int32_t)type->input &&
        lies_within(command->input.offset, command->input.size, command->data_size);
    return sound ? type : NULL;
}

/* Runs a task between begin and finish. Every failure has a detail afterwards. */
static enum kiln_status task_run(struct task *task, const struct job_type *type,
                                 struct control *control) {
    const struct backend *backend = task->backend;
    enum kiln_status status = backend->begin(task->stream, control);
    if (status == KILN_OK) {
        status = type->run(task);
        enum kiln_status end = backend->finish(task->stream, task->timing);
        /* A sticky error is the device's last word, whatever the job made of it. */
        status = status == KILN_OK || end == KILN_DEVICE_FAULT ? end : status;
    }
    if ((unsigned)status >= KILN_STATUS_COUNT) {
        status = KILN_INTERNAL;
    }
    if (status == KILN_OK && task->size > task->capacity) {
        status = KILN_INTERNAL;
        snprintf(task->detail, sizeof task->detail, "the result outgrew its declared bound");
    }
    if (status != KILN_OK && task->detail[0] == '\0') {
        const char *error = backend->error(task->stream);
        snprintf(task->detail, sizeof task->detail, "%s",
                 error && *error ? error : status_row(status)->title);
    }
    return status;
}

static void command_run(const struct worker *worker, struct stream *stream,
                        const struct command *command, struct answer *answer) {
    const struct job_type *type = command_check(worker, command);
    memset(answer, 0, sizeof *answer);
    answer->magic = COMMAND_MAGIC;
    answer->id = command->id;
    if (!type) {
        answer->status = KILN_INTERNAL;
        snprintf(answer->detail, sizeof answer->detail, "the worker got an unsound command");
        return;
    }
    answer->timing.queue = (double)(command->started_ns - command->submitted_ns) * 1e-6;
    struct task task = {
        .backend = worker->backend,
        .stream = stream,
        .pool = worker->pool,
        .params = command->params,
        .input = &command->input,
        .data = command->data_size ? worker->arena + command->data_offset : NULL,
        .format = (enum format)command->format,
        .result = worker->arena + command->result_offset,
        .capacity = command->result_size,
        .device_name = worker->options->device,
        .id = command->id,
        .timing = &answer->timing,
        .started_ns = command->submitted_ns,
    };
    struct control *control = (struct control *)(void *)(worker->arena + command->control_offset);
    answer->status = task_run(&task, type, control);
    answer->result_size = answer->status == KILN_OK ? task.size : 0;
    answer->timing.total = (double)(clock_ns() - command->submitted_ns) * 1e-6;
    memcpy(answer->detail, task.detail, sizeof answer->detail);
    answer->detail[sizeof answer->detail - 1] = '\0';
}

/* Runs one kind's canary into memory of our own. */
static enum kiln_status canary_run(const struct worker *worker, struct stream *stream,
                                   const struct job_type *type, uint8_t *data, char *why,
                                   size_t why_size) {
    struct control control = {0};
    _Alignas(16) uint8_t params[JOB_PARAMS_MAX];
    struct timing timing = {0};
    struct input input;
    struct plan plan;
    size_t size = 0;
    enum kiln_status status = canary_prepare(type, params, &input, data, &size, &plan);
    if (status != KILN_OK) {
        snprintf(why, why_size, "the canary of %s is unsound", type->name);
        return status == KILN_UNSUPPORTED ? KILN_OK : status; /* it has none */
    }
    uint64_t capacity = (plan.result_bytes / ARENA_PAGE + 1) * ARENA_PAGE;
    struct task task = {
        .backend = worker->backend,
        .stream = stream,
        .pool = worker->pool,
        .params = params,
        .input = &input,
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

/* Waits for a packet. After a job one slot at a time looks for the next command for a moment:
   waking a thread that sleeps takes longer than a small job. Other slots sleep in recv() meanwhile;
   one that is woken for a packet that is gone sleeps on. */
static ssize_t command_wait(struct worker *worker, struct command *command, bool warm) {
    int fd = worker->options->job_fd;
    ssize_t size = -1;
    if (warm && worker->looks && !atomic_exchange(&worker->looking, true)) {
        uint64_t until = clock_ns() + LOOK_NS;
        do {
            size = recv(fd, command, sizeof *command, MSG_DONTWAIT);
        } while (size < 0 && errno == EAGAIN && clock_ns() < until);
        bool nothing = size < 0 && errno == EAGAIN;
        atomic_store(&worker->looking, false);
        if (!nothing) {
            return size;
        }
    }
    return recv(fd, command, sizeof *command, 0);
}

static void serve(struct worker *worker, struct stream *stream) {
    struct command command;
    struct answer answer;
    for (bool warm = false;; warm = true) {
        ssize_t size = command_wait(worker, &command, warm);
        if (size < 0 && errno == EINTR) {
            continue;
        }
        if (size <= 0) {
            return; /* the front is gone or lets us go */
        }
        if ((size_t)size != sizeof command) {
            log_error("a command of %zd bytes was ignored", size);
            continue;
        }
        ORDER_ACQUIRE(worker);
        command_run(worker, stream, &command, &answer);
        ORDER_RELEASE(worker);
        log_about(LOG_LEVEL_DEBUG, &command.trace, "job %016" PRIx64 " ends: %s", command.id,
                  status_row((enum kiln_status)answer.status)->slug);
        if (answer.status == KILN_NO_MEMORY) {
            /* What it took before there was no more goes back at once: others need it. */
            worker->backend->begin(stream, NULL);
        }
        if (send(worker->options->job_fd, &answer, sizeof answer, MSG_NOSIGNAL) < 0) {
            return;
        }
        if (answer.status == KILN_DEVICE_FAULT) {
            log_about(LOG_LEVEL_ERROR, &command.trace, "device fault: %s", answer.detail);
            _exit(WORKER_EXIT_DEVICE_FAULT);
        }
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
