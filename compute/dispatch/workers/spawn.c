/*
 * spawn.c: child processes, as the front has them: through the spawner (compute/worker/spawner.h).
 *
 * The front asks and waits for the reply: the spawner needs a millisecond or two, most of it for
 * the kernel to start a program, and does nothing else meanwhile. A spawner that is silent for
 * ASK_TIME or has ended is lost, and with it every worker and every way to start one: the
 * devices are taken out, and the dispatcher's owner is told to end the daemon (`gone`).
 *
 * A process id is only used through a pidfd, which comes with the reply, so that it can never mean
 * another process. That a worker has ended is believed to the kernel (its pidfd), how it ended is
 * asked of the spawner.
 */
#include "compute/dispatch/workers/spawn.h"

#include "compute/core/log.h"
#include "compute/dispatch/state/supervisor.h"
#include "compute/worker/program.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ASK_TIME_MS 5000
#define END_TIME_MS 1000 /* for the spawner to end by itself */

static void close_fd(int *fd) {
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* A packet socket pair, close-on-exec. */
static bool pair_make(int *near, int *far) {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
        return false;
    }
    *near = fds[0];
    *far = fds[1];
    return true;
}

/* ---- the spawner ---- */

enum kiln_status spawner_start(struct spawner *spawner, const char *program) {
    const char *const arguments[] = {"kilnd", "spawner", NULL};
    int near = -1, far = -1, high = -1;
    pid_t pid = 0;
    spawner->socket = spawner->pidfd = -1;
    if (!pair_make(&near, &far) || (high = fcntl(far, F_DUPFD_CLOEXEC, PROGRAM_HIGH_FD)) < 0) {
        goto out;
    }
    errno = program_start(&pid, program, arguments, &high, 1, -1);
    if (errno != 0) {
        goto out;
    }
    spawner->pid = pid;
    spawner->socket = near;
    near = -1;
    spawner->pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
    if (spawner->pidfd < 0) {
        int error = errno;
        spawner_stop(spawner);
        errno = error;
    }
out:
    if (spawner->socket < 0) {
        log_error("the spawner could not be started: %s", strerror(errno));
    }
    close_fd(&high);
    close_fd(&far);
    close_fd(&near);
    return spawner->socket >= 0 ? KILN_OK : KILN_INTERNAL;
}

void spawner_stop(struct spawner *spawner) {
    siginfo_t info;
    close_fd(&spawner->socket); /* asks it to end */
    if (spawner->pid <= 0) {
        return;
    }
    struct pollfd end = {.fd = spawner->pidfd, .events = POLLIN};
    if (spawner->pidfd >= 0 && poll(&end, 1, END_TIME_MS) <= 0) {
        program_signal(spawner->pidfd, SIGKILL);
    }
    waitid(P_PID, (id_t)spawner->pid, &info, WEXITED);
    close_fd(&spawner->pidfd);
    spawner->pid = 0;
}

/* Everything hangs on it: no device can be used any more, and there is no way back. */
static void spawner_lose(struct spawner *spawner, const char *how) {
    if (spawner->lost) {
        return;
    }
    log_error("the process that starts workers %s: the daemon has to end", how);
    spawner->lost = true;
    program_signal(spawner->pidfd, SIGKILL); /* should it still be there: all workers die with it */
    spawner->gone(spawner->context);
}

void spawner_on_event(struct spawner *spawner) {
    spawner_lose(spawner, "has ended"); /* it never speaks unasked */
}

/* ---- asking ---- */

static bool request_send(int socket, const struct spawner_request *request, const int *fds,
                         size_t count) {
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(3 * sizeof(int))];
    } control;
    struct iovec part = {(void *)(uintptr_t)request, sizeof *request};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (count > 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = CMSG_SPACE(count * sizeof *fds);
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(count * sizeof *fds);
        memcpy(CMSG_DATA(&control.head), fds, count * sizeof *fds);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL | MSG_DONTWAIT) == (ssize_t)sizeof *request;
}

/* The reply and its pidfd (-1: none). */
static bool reply_take(int socket, struct spawner_reply *reply, int *pidfd) {
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {reply, sizeof *reply};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct pollfd answer = {.fd = socket, .events = POLLIN};
    uint64_t until = clock_ns() + ASK_TIME_MS * MS;
    int ready;
    *pidfd = -1;
    do {
        uint64_t now = clock_ns();
        ready = now < until ? poll(&answer, 1, (int)((until - now) / MS) + 1) : 0;
    } while (ready < 0 && errno == EINTR);
    if (ready <= 0 ||
        recvmsg(socket, &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT) != (ssize_t)sizeof *reply) {
        return false;
    }
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head != NULL && head->cmsg_type == SCM_RIGHTS &&
        head->cmsg_len == CMSG_LEN(sizeof *pidfd)) {
        memcpy(pidfd, CMSG_DATA(head), sizeof *pidfd);
    }
    return reply->magic == SPAWNER_MAGIC;
}

/* One request and its reply. 0 or an errno; ESRCH: the spawner is lost. */
static int ask(struct spawner *spawner, struct spawner_request *request, const int *fds,
               size_t count, struct spawner_reply *reply, int *pidfd) {
    *pidfd = -1;
    if (spawner->lost) {
        return ESRCH;
    }
    request->magic = SPAWNER_MAGIC;
    if (!request_send(spawner->socket, request, fds, count) ||
        !reply_take(spawner->socket, reply, pidfd)) {
        spawner_lose(spawner, "does not answer");
        return ESRCH;
    }
    return reply->error;
}

/* A child whose pidfd did not come (we have no room for descriptors) cannot be watched: it goes. */
static int start(struct spawner *spawner, struct spawner_request *request, const int *fds,
                 size_t count, struct spawned *spawned) {
    struct spawner_reply reply;
    int none, error = ask(spawner, request, fds, count, &reply, &spawned->pidfd);
    if (error != 0) {
        return error;
    }
    spawned->pid = (pid_t)reply.pid;
    if (spawned->pidfd < 0) {
        struct spawner_request end = {.task = SPAWNER_END, .pid = reply.pid};
        ask(spawner, &end, NULL, 0, &reply, &none);
        return EMFILE;
    }
    return 0;
}

enum kiln_status spawn_worker(struct spawner *spawner, struct spawner_request request, int arena_fd,
                              struct spawned *spawned, char *why, size_t why_size) {
    int far_job = -1, far_control = -1, error = 0;
    *spawned = (struct spawned){.pidfd = -1, .job_fd = -1, .control_fd = -1};
    request.task = SPAWNER_WORKER;
    if (!pair_make(&spawned->job_fd, &far_job) || !pair_make(&spawned->control_fd, &far_control)) {
        error = errno;
    } else {
        const int fds[] = {far_job, far_control, arena_fd};
        error = start(spawner, &request, fds, sizeof fds / sizeof *fds, spawned);
    }
    close_fd(&far_control);
    close_fd(&far_job);
    if (error != 0) {
        snprintf(why, why_size, "its worker could not be started: %s", strerror(error));
        close_fd(&spawned->control_fd);
        close_fd(&spawned->job_fd);
    }
    return error == 0 ? KILN_OK : KILN_INTERNAL;
}

enum kiln_status spawn_store(struct spawner *spawner, struct spawner_request request, int arena_fd,
                             struct spawned *spawned) {
    int far = -1, none, error = 0;
    if (spawned->pid > 0) {
        struct spawner_request end = {.task = SPAWNER_END, .pid = spawned->pid};
        struct spawner_reply reply;
        ask(spawner, &end, NULL, 0, &reply, &none);
        close_fd(&spawned->pidfd);
    }
    *spawned = (struct spawned){.pidfd = -1, .job_fd = -1, .control_fd = -1};
    request.task = SPAWNER_STORE;
    if (!pair_make(&spawned->job_fd, &far)) {
        error = errno;
    } else {
        const int fds[] = {far, arena_fd};
        error = start(spawner, &request, fds, sizeof fds / sizeof *fds, spawned);
    }
    close_fd(&far);
    if (error != 0) {
        log_error("the store could not be started: %s", strerror(error));
        close_fd(&spawned->job_fd);
    }
    return error == 0 ? KILN_OK : KILN_INTERNAL;
}

bool spawn_ended(struct spawner *spawner, const struct spawned *spawned, char *how, size_t size) {
    struct pollfd end = {.fd = spawned->pidfd, .events = POLLIN};
    struct spawner_request request = {.task = SPAWNER_REAP, .pid = spawned->pid};
    struct spawner_reply reply;
    int none;
    if (poll(&end, 1, 0) <= 0) {
        return false;
    }
    if (ask(spawner, &request, NULL, 0, &reply, &none) != 0 || reply.pid == 0) {
        snprintf(how, size, "is gone");
        return true;
    }
    snprintf(how, size, reply.code == CLD_EXITED ? "ended with code %d" : "was killed by signal %d",
             reply.status);
    return true;
}

/* ---- the probe ---- */

/* Reads until the end of the output; false when that takes too long or is too much. */
static bool output_read(int fd, int timeout_ms, char *output, size_t capacity, size_t *size) {
    uint64_t until = clock_ns() + (uint64_t)timeout_ms * MS;
    for (*size = 0; *size < capacity - 1;) {
        uint64_t now = clock_ns();
        struct pollfd pipe_end = {.fd = fd, .events = POLLIN};
        int ready = now < until ? poll(&pipe_end, 1, (int)((until - now) / MS) + 1) : 0;
        if (ready < 0 && errno == EINTR) {
            continue;
        }
        if (ready <= 0) {
            return false;
        }
        ssize_t count = read(fd, output + *size, capacity - 1 - *size);
        if (count < 0) {
            return false;
        }
        if (count == 0) {
            output[*size] = '\0';
            return true;
        }
        *size += (size_t)count;
    }
    return false;
}

enum kiln_status spawn_probe(struct spawner *spawner, int timeout_ms, char *output, size_t capacity,
                             size_t *size) {
    struct spawner_request request = {.task = SPAWNER_PROBE};
    struct spawned spawned = {.pidfd = -1};
    struct spawner_reply reply;
    int fds[2], none;
    output[0] = '\0';
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return KILN_INTERNAL;
    }
    int error = start(spawner, &request, &fds[1], 1, &spawned);
    close_fd(&fds[1]);
    if (error != 0) {
        log_error("the probe could not be started: %s", strerror(error));
        close_fd(&fds[0]);
        return KILN_INTERNAL;
    }
    bool whole = output_read(fds[0], timeout_ms, output, capacity, size);
    close_fd(&fds[0]);
    close_fd(&spawned.pidfd);
    request = (struct spawner_request){.task = SPAWNER_END, .pid = spawned.pid};
    ask(spawner, &request, NULL, 0, &reply, &none);
    return whole ? KILN_OK : KILN_DEADLINE;
}
