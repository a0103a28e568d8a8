/*
 * supervise.c: one device's worker process.
 *
 *              respawn_ns        NOTICE_READY       canary is back
 *     WAITING ───────────▶ WARMING ────────▶ TESTING ────────────▶ SERVING
 *        ▲                    │                 │                     │
 *        │ its end is certain │    killed: silence, deadline, device fault, failed canary,
 *        │ (pidfd), back-off  ▼                 ▼    closed socket    ▼
 *        └───────────────── DYING ◀─────────────┴─────────────────────┘
 *
 * A process that ends by itself goes through DYING in one step. NONE is for devices that are not
 * chosen or not there. Only after the pidfd has said that the process is gone do its jobs go back
 * to the queue and its blocks become free: until then it, or the device on its behalf, may write to
 * them. Answers that it had sent before it died still count.
 *
 * Deaths come closer together than a minute without a job done between: after the fifth the device
 * is `broken`: its jobs fail instead of waiting, and it is tried again every 30 s. Deaths by a job
 * that ends a second worker as well, running alone there, do not count.
 *
 * The state is a supervisor's (state/supervisor.h); a kill is anybody's under the lock, all else is
 * done here.
 */
#include "compute/dispatch/workers/supervise.h"

#include "compute/core/log.h"
#include "compute/dispatch/workers/answer.h"
#include "compute/dispatch/workers/canary.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#define ANSWER_BATCH  8
#define DEATHS_MAX    5
#define DEATHS_WINDOW (60 * SECOND)
#define HEALTHY_TIME  (10 * SECOND) /* of service, after which earlier deaths are forgotten */
#define BROKEN_RETRY  (30 * SECOND)
#define STOP_TIME     SECOND       /* to end by itself */
#define KILL_TIME     (5 * SECOND) /* to end after SIGKILL */

static const uint64_t back_off[DEATHS_MAX] = {0, 100 * MS, 500 * MS, 2 * SECOND, 5 * SECOND};

/* ---- starting ---- */

/* Did it die with a suspect, which ran alone? Both workers that the job ended had answered a canary
   before, and where there are two devices, both died with it: the job is the cause, and neither
   death is held against a device. Else one bad client could take the devices from everybody. */
static bool is_victim_locked(struct workers *workers, const struct supervisor *supervisor) {
    for (int i = 0; i < PLACES_MAX; i++) {
        const struct job *job = supervisor->flight.place[i].job;
        if (job != NULL && job->attempt > 0) {
            struct supervisor *first = &workers->queue->supervisors[job->suspect];
            first->deaths -= first->deaths > 0;
            return true;
        }
    }
    return false;
}

/* When to try again after a death, and whether to give up for now. `counts`: the device may be to
   blame; `how` tells the death. A device that has never worked is tried twice: the first failure
   may have been want of memory. */
static void plan_respawn_locked(struct supervisor *supervisor, uint64_t now, bool counts,
                                const char *how) {
    bool healthy = supervisor->ready_ns && now > supervisor->ready_ns + HEALTHY_TIME;
    if (healthy || now > supervisor->window_ns + DEATHS_WINDOW) {
        supervisor->deaths = 0;
    }
    if (supervisor->deaths == 0) {
        supervisor->window_ns = now;
    }
    supervisor->deaths += counts;
    supervisor->phase = WORKER_WAITING;
    supervisor->ready_ns = 0;
    bool told = supervisor->reason[0] != '\0'; /* by the worker, or by us who killed it */
    if (!told) {
        snprintf(supervisor->reason, sizeof supervisor->reason, "its worker %s", how);
    }
    if (supervisor->broken || supervisor->deaths >= DEATHS_MAX ||
        (supervisor->failed && !supervisor->served && supervisor->deaths > 1)) {
        if (supervisor->deaths >= DEATHS_MAX) {
            char last[sizeof supervisor->reason];
            memcpy(last, supervisor->reason, sizeof last);
            snprintf(supervisor->reason, sizeof supervisor->reason,
                     "its worker died %d times within a minute; at last it %s%s%.160s",
                     supervisor->deaths, how, told ? ": " : "", told ? last : "");
        }
        supervisor->broken = true;
        supervisor->deaths = 0;
        supervisor->respawn_ns = now + BROKEN_RETRY;
        log_error("%s is not available: %s", supervisor->name, supervisor->reason);
        return;
    }
    supervisor->respawn_ns = now + back_off[supervisor->deaths ? supervisor->deaths - 1 : 0];
}

static void start_failed(struct workers *workers, struct supervisor *supervisor, const char *why) {
    struct job_list finished = {0};
    run_queue_lock(workers->queue);
    log_error("%s: %s", supervisor->name, why);
    snprintf(supervisor->reason, sizeof supervisor->reason, "%s", why);
    plan_respawn_locked(supervisor, clock_ns(), true, why);
    run_queue_hurry(workers->queue, supervisor->respawn_ns);
    workers->events->unavailable(workers->context, &finished);
    run_queue_unlock(workers->queue);
    run_queue_complete(workers->queue, &finished);
}

/* The worker's own blocks, which outlive it. Under the lock: what jobs may have depends on them. */
static bool blocks_take_locked(struct workers *workers, struct supervisor *supervisor) {
    struct arena *arena = workers->queue->arena;
    struct block *control = &supervisor->control;
    if (control->size == 0 &&
        arena_take(arena, PLACES_MAX * sizeof(struct control), control) != KILN_OK) {
        return false;
    }
    supervisor->flight.control = arena_at(arena, control->offset);
    return canary_reserve_locked(workers, supervisor) == KILN_OK;
}

/* What the spawner is to start. */
static enum kiln_status process_start(struct workers *workers, const struct supervisor *supervisor,
                                      struct spawned *spawned, char *why, size_t why_size) {
    const struct arena *arena = workers->queue->arena;
    struct spawner_request request = {.slots = workers->slots,
                                      .threads = workers->threads,
                                      .arena_size = arena_size(arena),
                                      .device_bytes = workers->device_bytes};
    snprintf(request.device, sizeof request.device, "%s", supervisor->name);
    return spawn_worker(&workers->spawner, request, arena_fd(arena), spawned, why, why_size);
}

void supervise_start(struct workers *workers, struct supervisor *supervisor) {
    struct spawned spawned;
    char why[160] = "there is no room in the arena for its own blocks";
    run_queue_lock(workers->queue);
    supervisor->blameless = supervisor->failed = supervisor->astray = false;
    bool room = blocks_take_locked(workers, supervisor);
    run_queue_unlock(workers->queue);
    if (!room || process_start(workers, supervisor, &spawned, why, sizeof why) != KILN_OK) {
        start_failed(workers, supervisor, why);
        return;
    }
    run_queue_lock(workers->queue);
    supervisor->process++;
    supervisor->pid = spawned.pid;
    supervisor->pidfd = spawned.pidfd;
    supervisor->job_fd = spawned.job_fd;
    supervisor->control_fd = spawned.control_fd;
    supervisor->phase = WORKER_WARMING;
    supervisor->started_ns = supervisor->notice_ns = clock_ns();
    supervisor->respawns += supervisor->window_ns != 0; /* something has died before */
    if (!workers->events->started(workers->context, supervisor)) {
        supervisor_kill(supervisor, "its sockets cannot be watched");
    }
    run_queue_unlock(workers->queue);
}

/* ---- answers ---- */

/* The answers of one packet; false if they make no sense. */
static bool packet_take_locked(struct workers *workers, struct supervisor *supervisor,
                               const struct answer *answers, size_t size,
                               struct job_list *finished) {
    bool good = size % sizeof *answers == 0;
    for (size_t i = 0; good && i < size / sizeof *answers; i++) {
        good = answer_take_locked(workers, supervisor, &answers[i], finished);
    }
    return good;
}

/* Takes what is there, in one system call for up to ANSWER_BATCH packets. False at the end of the
   file or of sense, or when nothing was there. */
static bool answers_take(struct workers *workers, struct supervisor *supervisor, bool *ended) {
    struct answer answers[ANSWER_BATCH][GROUP_MAX];
    struct iovec parts[ANSWER_BATCH];
    struct mmsghdr messages[ANSWER_BATCH];
    struct job_list finished = {0};
    *ended = false;
    memset(messages, 0, sizeof messages);
    for (int i = 0; i < ANSWER_BATCH; i++) {
        parts[i] = (struct iovec){answers[i], sizeof answers[i]};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
    }
    int count = recvmmsg(supervisor->job_fd, messages, ANSWER_BATCH, MSG_DONTWAIT, NULL);
    if (count <= 0) {
        *ended = count < 0 && errno != EAGAIN && errno != EINTR;
        return false;
    }
    run_queue_lock(workers->queue);
    for (int i = 0; i < count && !*ended; i++) {
        *ended = messages[i].msg_len == 0;
        if (!*ended &&
            !packet_take_locked(workers, supervisor, answers[i], messages[i].msg_len, &finished)) {
            supervisor_kill(supervisor, "it sent an answer that makes no sense");
            supervisor->astray = *ended = true;
        }
    }
    workers->events->read(workers->context);
    run_queue_unlock(workers->queue);
    run_queue_complete(workers->queue, &finished);
    return !*ended;
}

/* A socket of the worker has closed: no more events from it, and the process has to go. Most likely
   it is ending already, and how it ends will be the reason. */
static void on_closed(struct workers *workers, struct supervisor *supervisor, int fd) {
    workers->events->closed(workers->context, fd);
    run_queue_lock(workers->queue);
    supervisor_kill(supervisor, "");
    run_queue_unlock(workers->queue);
}

void supervise_on_jobs(struct workers *workers, struct supervisor *supervisor) {
    bool ended;
    if (supervisor->job_fd < 0 || supervisor->astray) {
        return;
    }
    answers_take(workers, supervisor, &ended);
    if (ended) {
        on_closed(workers, supervisor, supervisor->job_fd);
    }
}

/* ---- notices ---- */

static void notice_take_locked(struct workers *workers, struct supervisor *supervisor,
                               const struct notice *notice, const char *text) {
    uint64_t now = clock_ns();
    supervisor->notice_ns = now;
    if (notice->kind == NOTICE_FAILED) {
        char reason[sizeof supervisor->reason];
        snprintf(reason, sizeof reason, "%.*s", (int)notice->size, text);
        supervisor->failed = true;
        supervisor_kill(supervisor, reason);
        return;
    }
    supervisor_describe(supervisor, text, notice->size, workers->device_bytes);
    if (notice->kind == NOTICE_READY && supervisor->phase == WORKER_WARMING) {
        uint32_t slots = notice->slots;
        supervisor->flight.slots = slots < 1 ? 1 : slots > SLOTS_MAX ? SLOTS_MAX : (int)slots;
        uint32_t gather = workers->gather > 0 ? (uint32_t)workers->gather : notice->gather;
        supervisor->flight.gather = gather < 1 ? 1 : gather > GROUP_MAX ? GROUP_MAX : (int)gather;
        supervisor->kernels = notice->kernels;
        supervisor->phase = WORKER_TESTING;
        canary_send_locked(workers, supervisor, now);
    }
}

void supervise_on_control(struct workers *workers, struct supervisor *supervisor) {
    char text[NOTICE_TEXT_MAX];
    struct notice notice;
    struct iovec parts[] = {{&notice, sizeof notice}, {text, sizeof text}};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (supervisor->control_fd < 0) {
        return;
    }
    ssize_t size = recvmsg(supervisor->control_fd, &message, MSG_DONTWAIT);
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) {
        return;
    }
    if (size <= 0) {
        on_closed(workers, supervisor, supervisor->control_fd);
        return;
    }
    run_queue_lock(workers->queue);
    if ((size_t)size < sizeof notice || notice.magic != COMMAND_MAGIC ||
        notice.size != (size_t)size - sizeof notice) {
        supervisor_kill(supervisor, "it sent a notice that makes no sense");
    } else {
        notice_take_locked(workers, supervisor, &notice, text);
    }
    run_queue_unlock(workers->queue);
}

/* ---- ending ---- */

static void close_locked(int *fd) {
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

void supervise_on_death(struct workers *workers, struct supervisor *supervisor) {
    struct job_list finished = {0};
    char how[64];
    bool ended = false;
    const struct spawned process = {.pid = supervisor->pid, .pidfd = supervisor->pidfd};
    if (supervisor->pidfd < 0 || !spawn_ended(&workers->spawner, &process, how, sizeof how)) {
        return;
    }
    while (supervisor->job_fd >= 0 && !supervisor->astray &&
           answers_take(workers, supervisor, &ended)) {
    }
    run_queue_lock(workers->queue);
    log_write(workers->queue->stopping ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING, "%s: worker %ld %s",
              supervisor->name, (long)supervisor->pid, how);
    supervisor_close_jobs(supervisor);
    close_locked(&supervisor->control_fd);
    close_locked(&supervisor->pidfd);
    supervisor->pid = 0;
    if (workers->queue->stopping) {
        supervisor->phase = WORKER_NONE;
    } else {
        bool counts = !supervisor->blameless && !is_victim_locked(workers, supervisor);
        plan_respawn_locked(supervisor, clock_ns(), counts, how);
        run_queue_hurry(workers->queue, supervisor->respawn_ns);
    }
    workers->events->lost(workers->context, supervisor, how, &finished);
    run_queue_unlock(workers->queue);
    run_queue_complete(workers->queue, &finished);
}

/* Reaps whatever has ended, until nothing is left or `until`; true if nothing is left. */
static bool wait_all(struct workers *workers, uint64_t until) {
    for (;;) {
        struct pollfd ends[DEVICES_MAX];
        nfds_t count = 0;
        for (int i = 0; i < workers->queue->count; i++) {
            supervise_on_death(workers, &workers->queue->supervisors[i]);
            if (workers->queue->supervisors[i].pidfd >= 0) {
                ends[count++] =
                    (struct pollfd){.fd = workers->queue->supervisors[i].pidfd, .events = POLLIN};
            }
        }
        uint64_t now = clock_ns();
        if (count == 0 || now >= until) {
            return count == 0;
        }
        poll(ends, count, (int)((until - now) / MS) + 1);
    }
}

/* A process that not even SIGKILL ends: its jobs end, and the books are closed without it. */
static void abandon(struct workers *workers, struct supervisor *supervisor) {
    struct job_list finished = {0};
    if (supervisor->pidfd < 0) {
        return;
    }
    run_queue_lock(workers->queue);
    log_error("%s: worker %ld cannot be ended", supervisor->name, (long)supervisor->pid);
    workers->events->stuck(workers->context, supervisor, &finished);
    close_locked(&supervisor->pidfd);
    run_queue_unlock(workers->queue);
    run_queue_complete(workers->queue, &finished);
}

void supervise_stop(struct workers *workers) {
    for (int i = 0; i < workers->queue->count; i++) {
        supervise_on_jobs(workers, &workers->queue->supervisors[i]);
    }
    run_queue_lock(workers->queue);
    for (int i = 0; i < workers->queue->count; i++) {
        struct supervisor *supervisor = &workers->queue->supervisors[i];
        supervisor->phase = supervisor->pidfd >= 0 ? WORKER_DYING : WORKER_NONE;
        supervisor_close_jobs(supervisor);
        close_locked(&supervisor->control_fd);
    }
    run_queue_unlock(workers->queue);
    if (wait_all(workers, clock_ns() + STOP_TIME)) {
        return;
    }
    for (int i = 0; i < workers->queue->count; i++) {
        if (workers->queue->supervisors[i].pidfd >= 0) {
            program_signal(workers->queue->supervisors[i].pidfd, SIGKILL);
        }
    }
    if (!wait_all(workers, clock_ns() + KILL_TIME)) {
        for (int i = 0; i < workers->queue->count; i++) {
            abandon(workers, &workers->queue->supervisors[i]);
        }
    }
}

void supervise_spawner_gone(void *context) {
    struct workers *workers = context;
    struct job_list finished = {0};
    run_queue_lock(workers->queue);
    for (int i = 0; i < workers->queue->count; i++) {
        struct supervisor *supervisor = &workers->queue->supervisors[i];
        supervisor_kill(supervisor, "");
        snprintf(supervisor->reason, sizeof supervisor->reason, "%s",
                 "the process that starts workers has ended");
        supervisor->broken = true;
    }
    workers->events->unavailable(workers->context, &finished);
    run_queue_unlock(workers->queue);
    run_queue_complete(workers->queue, &finished);
    workers->events->spawner_lost(workers->context);
}
