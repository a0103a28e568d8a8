/*
 * spawner.c: starting programs for the front, which may not.
 *
 * Requests come from the process that an intruder would reach first, so every field is checked as
 * if from outside, and the answer to what makes no sense is to end: the front then ends too, and
 * whoever looks after the daemon starts it anew.
 *
 * Thread: the process has only one, because a worker dies with the thread that started it.
 */
#include "compute/worker/spawner.h"

#include "compute/core/log.h"
#include "compute/worker/capabilities.h"
#include "compute/worker/program.h"
#include "compute/worker/sandbox.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROGRAM      "/proc/self/exe" /* this one, even if its file has been replaced */
#define CHILDREN_MAX 64
#define FDS_MAX      3

enum { JOB_FD = PROGRAM_FD, CONTROL_FD, ARENA_FD };

static void fds_close(int *fds) {
    for (int i = 0; i < FDS_MAX; i++) {
        if (fds[i] >= 0) {
            close(fds[i]);
        }
        fds[i] = -1;
    }
}

/* ---- requests and replies ---- */

/* Moves what came along with a packet to where nothing else is put. False if it was cut off. */
static bool fds_take(struct msghdr *message, int *fds) {
    int count = 0;
    bool whole = !(message->msg_flags & (MSG_CTRUNC | MSG_TRUNC));
    for (struct cmsghdr *part = CMSG_FIRSTHDR(message); part != NULL;
         part = CMSG_NXTHDR(message, part)) {
        if (part->cmsg_level != SOL_SOCKET || part->cmsg_type != SCM_RIGHTS) {
            continue;
        }
        size_t got = (part->cmsg_len - CMSG_LEN(0)) / sizeof(int);
        for (size_t i = 0; i < got; i++) {
            int fd;
            memcpy(&fd, CMSG_DATA(part) + i * sizeof fd, sizeof fd);
            if (count < FDS_MAX) {
                fds[count] = fcntl(fd, F_DUPFD_CLOEXEC, PROGRAM_HIGH_FD);
                whole = whole && fds[count] >= 0;
                count++;
            }
            close(fd);
        }
    }
    return whole;
}

/* Waits for the next request. 1: there is one, its descriptors in `fds` (-1: none); 0: the front is
   gone; -1: it makes no sense. */
static int request_take(int socket, struct spawner_request *request, int *fds) {
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(FDS_MAX * sizeof(int))];
    } control;
    struct iovec part = {request, sizeof *request};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    ssize_t size;
    for (int i = 0; i < FDS_MAX; i++) {
        fds[i] = -1;
    }
    do {
        size = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    } while (size < 0 && errno == EINTR);
    if (size <= 0) {
        return 0;
    }
    bool sound = fds_take(&message, fds) && (size_t)size == sizeof *request &&
                 request->magic == SPAWNER_MAGIC;
    return sound ? 1 : -1;
}

static bool reply_send(int socket, const struct spawner_reply *reply, int pidfd) {
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof pidfd)];
    } control;
    struct iovec part = {(void *)(uintptr_t)reply, sizeof *reply};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};
    if (pidfd >= 0) {
        memset(&control, 0, sizeof control);
        message.msg_control = &control;
        message.msg_controllen = sizeof control;
        control.head.cmsg_level = SOL_SOCKET;
        control.head.cmsg_type = SCM_RIGHTS;
        control.head.cmsg_len = CMSG_LEN(sizeof pidfd);
        memcpy(CMSG_DATA(&control.head), &pidfd, sizeof pidfd);
    }
    return sendmsg(socket, &message, MSG_NOSIGNAL) == (ssize_t)sizeof *reply;
}

/* ---- starting ---- */

/* "cpu:0": a kind in small letters, a number. */
static bool device_sound(const char *device, size_t size) {
    size_t length = strnlen(device, size), i = 0;
    while (i < length && islower((unsigned char)device[i])) {
        i++;
    }
    return length < size && i > 0 && device[i] == ':' && i + 1 < length &&
           strspn(device + i + 1, "0123456789") == length - i - 1;
}

static int start_worker(const struct spawner_request *request, const int *fds, pid_t *pid) {
    char job[16], control[16], arena[16], size[32], slots[16], threads[16], memory[32];
    if (!device_sound(request->device, sizeof request->device) || request->slots < 0 ||
        request->threads < 0 || fds[ARENA_FD - JOB_FD] < 0) {
        return EINVAL;
    }
    snprintf(job, sizeof job, "%d", JOB_FD);
    snprintf(control, sizeof control, "%d", CONTROL_FD);
    snprintf(arena, sizeof arena, "%d", ARENA_FD);
    snprintf(size, sizeof size, "%llu", (unsigned long long)request->arena_size);
    snprintf(slots, sizeof slots, "%d", request->slots);
    snprintf(threads, sizeof threads, "%d", request->threads);
    snprintf(memory, sizeof memory, "%llu", (unsigned long long)request->device_bytes);
    const char *const arguments[] = {
        "kilnd", "worker",     request->device, "--job-fd",       job,    "--control-fd",
        control, "--arena-fd", arena,           "--arena-size",   size,   "--slots",
        slots,   "--threads",  threads,         "--device-bytes", memory, NULL,
    };
    return program_start(pid, PROGRAM, arguments, fds, FDS_MAX, -1);
}

static int start_probe(const int *fds, pid_t *pid) {
    static const char *const arguments[] = {"kilnd", "probe", NULL};
    return fds[0] < 0 ? EINVAL : program_start(pid, PROGRAM, arguments, NULL, 0, fds[0]);
}

static int start_store(const struct spawner_request *request, const int *fds, pid_t *pid) {
    char size[32], boot[32], bytes[32], jobs[32];
    const char *directory = getenv(STORE_DIRECTORY_VARIABLE);
    if (fds[0] < 0 || fds[1] < 0 || request->boot < 0 || request->store_bytes < 0 ||
        request->store_jobs < 0) {
        return EINVAL;
    }
    snprintf(size, sizeof size, "%llu", (unsigned long long)request->arena_size);
    snprintf(boot, sizeof boot, "%lld", (long long)request->boot);
    snprintf(bytes, sizeof bytes, "%lld", (long long)request->store_bytes);
    snprintf(jobs, sizeof jobs, "%lld", (long long)request->store_jobs);
    const char *const arguments[] = {
        "kilnd",  "store",       "--arena-size",
        size,     "--state-dir", directory != NULL ? directory : "",
        "--boot", boot,          "--store-bytes",
        bytes,    "--jobs",      jobs,
        NULL,
    };
    return program_start(pid, PROGRAM, arguments, fds, 2, -1);
}

/* ---- ending ---- */

/* Fills the reply with the end of a child; its `pid` stays 0 where it lives. */
static void reap(pid_t pid, bool at_once, struct spawner_reply *reply, int *children) {
    siginfo_t info = {0};
    if (pid <= 0 || waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0) {
        reply->error = ECHILD; /* not ours, and so not to be killed either */
        return;
    }
    if (at_once && info.si_pid == 0) {
        kill(pid, SIGKILL);
    }
    info.si_pid = 0;
    while (waitid(P_PID, (id_t)pid, &info, WEXITED | (at_once ? 0 : WNOHANG)) != 0 &&
           errno == EINTR) {
    }
    reply->pid = info.si_pid;
    reply->code = info.si_code;
    reply->status = info.si_status;
    *children -= info.si_pid != 0;
}

/* ---- living ---- */

/* Does what is asked; returns a pidfd where a child was started, else -1. */
static int request_do(const struct spawner_request *request, const int *fds,
                      struct spawner_reply *reply, int *children) {
    pid_t pid = 0;
    int pidfd = -1;
    if (request->task == SPAWNER_REAP || request->task == SPAWNER_END) {
        reap((pid_t)request->pid, request->task == SPAWNER_END, reply, children);
        return -1;
    }
    if (*children == CHILDREN_MAX) {
        reply->error = EAGAIN;
        return -1;
    }
    reply->error = request->task == SPAWNER_WORKER  ? start_worker(request, fds, &pid)
                   : request->task == SPAWNER_PROBE ? start_probe(fds, &pid)
                   : request->task == SPAWNER_STORE ? start_store(request, fds, &pid)
                                                    : ENOSYS;
    if (reply->error != 0) {
        return -1;
    }
    ++*children;
    pidfd = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
    if (pidfd < 0) {
        int error = errno;
        reap(pid, true, reply, children);
        *reply = (struct spawner_reply){.magic = SPAWNER_MAGIC, .error = error};
    } else {
        reply->pid = pid;
    }
    return pidfd;
}

/* Ready for the first request: out of the way of signals to the group, and confined. */
static int prepare(void) {
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE};
    char parent[16];
    for (size_t i = 0; i < sizeof ignored / sizeof *ignored; i++) {
        signal(ignored[i], SIG_IGN);
    }
    snprintf(parent, sizeof parent, "%ld", (long)getpid());
    int socket = fcntl(SPAWNER_FD, F_DUPFD_CLOEXEC, PROGRAM_HIGH_FD);
    close(SPAWNER_FD);
    if (socket >= 0 && setenv("KILN_PARENT_PID", parent, 1) != 0) {
        close(socket);
        return -1;
    }
    return socket;
}

int spawner_run(void) {
    struct spawner_request request;
    int fds[FDS_MAX], children = 0, state = 0;
    log_init(log_level_environment(), "spawner");
    capabilities_drop(); /* its children inherit none */
    int socket = prepare();
    if (socket < 0) {
        fprintf(stderr, "kilnd spawner: started by kilnd only\n");
        return EXIT_FAILURE;
    }
    sandbox_enter(SANDBOX_SPAWNER);
    while ((state = request_take(socket, &request, fds)) > 0) {
        struct spawner_reply reply = {.magic = SPAWNER_MAGIC};
        int pidfd = request_do(&request, fds, &reply, &children);
        fds_close(fds);
        bool sent = reply_send(socket, &reply, pidfd);
        if (pidfd >= 0) {
            close(pidfd);
        }
        if (!sent) {
            break; /* the front is gone */
        }
    }
    if (state < 0) {
        log_error("spawner: invalid request from the front");
    }
    return state < 0 ? EXIT_FAILURE : EXIT_SUCCESS;
}
