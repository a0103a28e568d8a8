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
 * Thread: the dispatcher's, except supervisor_kill_locked (any, under the lock).
 */
#include "compute/codecs/json.h"
#include "compute/core/log.h"
#include "compute/dispatch/private.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
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

enum device_state supervisor_state(const struct supervisor *supervisor) {
    if (!supervisor->chosen) {
        return supervisor->present ? DEVICE_OFF : DEVICE_UNAVAILABLE;
    }
    if (!supervisor->present || supervisor->broken) {
        return DEVICE_UNAVAILABLE;
    }
    if (supervisor->phase == WORKER_SERVING) {
        return DEVICE_READY;
    }
    return supervisor->served ? DEVICE_RESTARTING : DEVICE_STARTING;
}

void supervisor_kill_locked(struct supervisor *supervisor, const char *reason) {
    if (supervisor->phase != WORKER_WARMING && supervisor->phase != WORKER_TESTING &&
        supervisor->phase != WORKER_SERVING) {
        return;
    }
    log_write(*reason ? LOG_LEVEL_WARNING : LOG_LEVEL_DEBUG, "%s: worker %ld is replaced: %s",
              supervisor->name, (long)supervisor->pid, reason);
    snprintf(supervisor->reason, sizeof supervisor->reason, "%s", reason);
    supervisor->phase = WORKER_DYING;
    supervisor->dying_ns = clock_ns();
    pidfd_kill(supervisor->pidfd, SIGKILL);
}

void supervisor_serve_locked(struct dispatch *dispatch, struct supervisor *supervisor) {
    uint64_t now = clock_ns();
    supervisor->phase = WORKER_SERVING;
    supervisor->served = true;
    supervisor->broken = false;
    supervisor->ready_ns = now;
    supervisor->reason[0] = '\0';
    log_info("%s is ready after %.2f s (worker %ld, %d slots)", supervisor->name,
             (double)(now - supervisor->started_ns) * 1e-9, (long)supervisor->pid,
             supervisor->slots);
    queue_pump_locked(dispatch);
}

/* ---- starting ---- */

/* Did it die with a suspect, which ran alone? Both workers that the job ended had answered a canary
   before, and where there are two devices, both died with it: the job is the cause, and neither
   death is held against a device. Else one bad client could take the devices from everybody. */
static bool is_victim_locked(struct dispatch *dispatch, const struct supervisor *supervisor) {
    for (int i = 0; i < PLACES_MAX; i++) {
        const struct job *job = supervisor->place[i].job;
        if (job && job->attempt > 0) {
            struct supervisor *first = &dispatch->supervisors[job->suspect];
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

static void start_failed(struct dispatch *dispatch, struct supervisor *supervisor,
                         const char *why) {
    struct job_list finished = {0};
    pthread_mutex_lock(&dispatch->lock);
    log_error("%s: %s", supervisor->name, why);
    snprintf(supervisor->reason, sizeof supervisor->reason, "%s", why);
    plan_respawn_locked(supervisor, clock_ns(), true, why);
    dispatch_hurry_locked(dispatch, supervisor->respawn_ns);
    queue_reject_locked(dispatch, &finished);
    pthread_mutex_unlock(&dispatch->lock);
    dispatch_complete(dispatch, &finished);
}

/* The worker's own blocks, which outlive it. Under the lock: what jobs may have depends on them. */
static bool blocks_take_locked(struct dispatch *dispatch, struct supervisor *supervisor) {
    return (supervisor->control.size > 0 ||
            arena_take(dispatch->arena, PLACES_MAX * sizeof(struct control),
                       &supervisor->control) == KILN_OK) &&
           canary_reserve_locked(dispatch, supervisor) == KILN_OK;
}

void supervisor_start(struct dispatch *dispatch, struct supervisor *supervisor) {
    struct spawned spawned;
    char why[160] = "there is no room in the arena for its own blocks";
    pthread_mutex_lock(&dispatch->lock);
    supervisor->blameless = supervisor->failed = false;
    bool room = blocks_take_locked(dispatch, supervisor);
    pthread_mutex_unlock(&dispatch->lock);
    if (!room || spawn_worker(dispatch, supervisor->name, &spawned, why, sizeof why) != KILN_OK) {
        start_failed(dispatch, supervisor, why);
        return;
    }
    pthread_mutex_lock(&dispatch->lock);
    supervisor->pid = spawned.pid;
    supervisor->pidfd = spawned.pidfd;
    supervisor->job_fd = spawned.job_fd;
    supervisor->control_fd = spawned.control_fd;
    supervisor->phase = WORKER_WARMING;
    supervisor->started_ns = supervisor->notice_ns = clock_ns();
    supervisor->respawns += supervisor->window_ns != 0; /* something has died before */
    bool heard = dispatch_listen(dispatch, supervisor) == KILN_OK;
    if (!heard) {
        supervisor_kill_locked(supervisor, "its sockets cannot be watched");
    }
    pthread_mutex_unlock(&dispatch->lock);
}

/* ---- answers ---- */

/* The answers of one packet; false if they make no sense. */
static bool packet_take_locked(struct dispatch *dispatch, struct supervisor *supervisor,
                               const struct answer *answers, size_t size,
                               struct job_list *finished) {
    bool good = size % sizeof *answers == 0;
    for (size_t i = 0; good && i < size / sizeof *answers; i++) {
        good = queue_answer_locked(dispatch, supervisor, &answers[i], finished);
    }
    return good;
}

/* Takes what is there, in one system call for up to ANSWER_BATCH packets. False at the end of the
   file or when nothing was there. */
static bool answers_take(struct dispatch *dispatch, struct supervisor *supervisor, bool *ended) {
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
    pthread_mutex_lock(&dispatch->lock);
    for (int i = 0; i < count && !*ended; i++) {
        *ended = messages[i].msg_len == 0;
        if (!*ended &&
            !packet_take_locked(dispatch, supervisor, answers[i], messages[i].msg_len, &finished)) {
            supervisor_kill_locked(supervisor, "it sent an answer that makes no sense");
        }
    }
    queue_pump_locked(dispatch);
    pthread_mutex_unlock(&dispatch->lock);
    dispatch_complete(dispatch, &finished);
    return !*ended;
}

/* A socket of the worker has closed: no more events from it, and the process has to go. Most likely
   it is ending already, and how it ends will be the reason. */
static void on_closed(struct dispatch *dispatch, struct supervisor *supervisor, int fd) {
    epoll_ctl(dispatch->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
    pthread_mutex_lock(&dispatch->lock);
    supervisor_kill_locked(supervisor, "");
    pthread_mutex_unlock(&dispatch->lock);
}

void supervisor_on_jobs(struct dispatch *dispatch, struct supervisor *supervisor) {
    bool ended;
    if (supervisor->job_fd < 0) {
        return;
    }
    answers_take(dispatch, supervisor, &ended);
    if (ended) {
        on_closed(dispatch, supervisor, supervisor->job_fd);
    }
}

/* ---- notices ---- */

/* Takes a description only if it is one JSON object: it is copied into answers as it is. */
static bool describe_locked(struct supervisor *supervisor, const char *text, size_t size) {
    struct json_value value;
    char why[96];
    if (size < NOTICE_TEXT_MAX && json_check(text, size, &value, why, sizeof why) == KILN_OK &&
        value.type == JSON_OBJECT) {
        memcpy(supervisor->description, text, size);
        supervisor->description[size] = '\0';
        supervisor->described_ns = clock_ns();
        return true;
    }
    return false;
}

static void notice_take_locked(struct dispatch *dispatch, struct supervisor *supervisor,
                               const struct notice *notice, const char *text) {
    uint64_t now = clock_ns();
    supervisor->notice_ns = now;
    if (notice->kind == NOTICE_FAILED) {
        char reason[sizeof supervisor->reason];
        snprintf(reason, sizeof reason, "%.*s", (int)notice->size, text);
        supervisor->failed = true;
        supervisor_kill_locked(supervisor, reason);
        return;
    }
    if (describe_locked(supervisor, text, notice->size)) {
        memory_learn_locked(dispatch, supervisor);
    }
    if (notice->kind == NOTICE_READY && supervisor->phase == WORKER_WARMING) {
        uint32_t slots = notice->slots;
        supervisor->slots = slots < 1 ? 1 : slots > SLOTS_MAX ? SLOTS_MAX : (int)slots;
        uint32_t gather = dispatch->gather > 0 ? (uint32_t)dispatch->gather : notice->gather;
        supervisor->gather = gather < 1 ? 1 : gather > GROUP_MAX ? GROUP_MAX : (int)gather;
        supervisor->kernels = notice->kernels;
        supervisor->phase = WORKER_TESTING;
        canary_send_locked(dispatch, supervisor, now);
    }
}

void supervisor_on_control(struct dispatch *dispatch, struct supervisor *supervisor) {
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
        on_closed(dispatch, supervisor, supervisor->control_fd);
        return;
    }
    pthread_mutex_lock(&dispatch->lock);
    if ((size_t)size < sizeof notice || notice.magic != COMMAND_MAGIC ||
        notice.size != (size_t)size - sizeof notice) {
        supervisor_kill_locked(supervisor, "it sent a notice that makes no sense");
    } else {
        notice_take_locked(dispatch, supervisor, &notice, text);
    }
    pthread_mutex_unlock(&dispatch->lock);
}

/* ---- ending ---- */

static void close_locked(int *fd) {
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

void supervisor_on_death(struct dispatch *dispatch, struct supervisor *supervisor) {
    struct job_list finished = {0};
    char how[64];
    bool ended = false;
    const struct spawned process = {.pid = supervisor->pid, .pidfd = supervisor->pidfd};
    if (supervisor->pidfd < 0 || !spawn_ended(dispatch, &process, how, sizeof how)) {
        return;
    }
    while (supervisor->job_fd >= 0 && answers_take(dispatch, supervisor, &ended)) {
    }
    pthread_mutex_lock(&dispatch->lock);
    log_write(dispatch->stopping ? LOG_LEVEL_DEBUG : LOG_LEVEL_WARNING, "%s: worker %ld %s",
              supervisor->name, (long)supervisor->pid, how);
    close_locked(&supervisor->job_fd);
    close_locked(&supervisor->control_fd);
    close_locked(&supervisor->pidfd);
    supervisor->pid = 0;
    if (dispatch->stopping) {
        supervisor->phase = WORKER_NONE;
    } else {
        bool counts = !supervisor->blameless && !is_victim_locked(dispatch, supervisor);
        plan_respawn_locked(supervisor, clock_ns(), counts, how);
        dispatch_hurry_locked(dispatch, supervisor->respawn_ns);
    }
    queue_lose_locked(dispatch, supervisor, how, &finished);
    queue_reject_locked(dispatch, &finished);
    queue_pump_locked(dispatch);
    pthread_mutex_unlock(&dispatch->lock);
    dispatch_complete(dispatch, &finished);
}

/* Reaps whatever has ended, until nothing is left or `until`; true if nothing is left. */
static bool wait_all(struct dispatch *dispatch, uint64_t until) {
    for (;;) {
        struct pollfd ends[DEVICES_MAX];
        nfds_t count = 0;
        for (int i = 0; i < dispatch->count; i++) {
            supervisor_on_death(dispatch, &dispatch->supervisors[i]);
            if (dispatch->supervisors[i].pidfd >= 0) {
                ends[count++] =
                    (struct pollfd){.fd = dispatch->supervisors[i].pidfd, .events = POLLIN};
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
static void abandon(struct dispatch *dispatch, struct supervisor *supervisor) {
    struct job_list finished = {0};
    if (supervisor->pidfd < 0) {
        return;
    }
    pthread_mutex_lock(&dispatch->lock);
    log_error("%s: worker %ld cannot be ended", supervisor->name, (long)supervisor->pid);
    queue_orphan_locked(dispatch, supervisor, UINT64_MAX, &finished);
    queue_lose_locked(dispatch, supervisor, "cannot be ended", &finished);
    close_locked(&supervisor->pidfd);
    pthread_mutex_unlock(&dispatch->lock);
    dispatch_complete(dispatch, &finished);
}

void supervisors_stop(struct dispatch *dispatch) {
    for (int i = 0; i < dispatch->count; i++) {
        supervisor_on_jobs(dispatch, &dispatch->supervisors[i]);
    }
    pthread_mutex_lock(&dispatch->lock);
    for (int i = 0; i < dispatch->count; i++) {
        struct supervisor *supervisor = &dispatch->supervisors[i];
        supervisor->phase = supervisor->pidfd >= 0 ? WORKER_DYING : WORKER_NONE;
        close_locked(&supervisor->job_fd);
        close_locked(&supervisor->control_fd);
    }
    pthread_mutex_unlock(&dispatch->lock);
    if (wait_all(dispatch, clock_ns() + STOP_TIME)) {
        return;
    }
    for (int i = 0; i < dispatch->count; i++) {
        if (dispatch->supervisors[i].pidfd >= 0) {
            pidfd_kill(dispatch->supervisors[i].pidfd, SIGKILL);
        }
    }
    if (!wait_all(dispatch, clock_ns() + KILL_TIME)) {
        for (int i = 0; i < dispatch->count; i++) {
            abandon(dispatch, &dispatch->supervisors[i]);
        }
    }
}
