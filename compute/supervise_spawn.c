/*
 * supervise_spawn.c: child processes of the front: workers and the probe.
 *
 * posix_spawn, because the front has threads and a large mapping: nothing of either is copied. A
 * child keeps standard output and error and the descriptors it is given, as 3, 4 and 5; all others
 * are closed. Its process id is only used through a pidfd, so that it can never mean another one.
 *
 * Threads: workers are started by the dispatcher's thread only, because a worker dies with the
 * thread that started it; the probe runs on the caller's.
 */
#include "compute/dispatch_private.h"
#include "compute/log.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;

enum { JOB_FD = 3, CONTROL_FD, ARENA_FD };

/* Descriptors are moved up here first, so that putting one in its place cannot hit another. */
#define HIGH_FD 64

#define ENVIRONMENT_MAX 1024

void pidfd_kill(int pidfd, int signal) {
    syscall(SYS_pidfd_send_signal, pidfd, signal, NULL, 0);
}

static void close_fd(int *fd) {
    if (*fd >= 0) {
        close(*fd);
    }
    *fd = -1;
}

/* The environment with what a worker needs to know of the front. */
static void environment_make(const char *environment[ENVIRONMENT_MAX], char *level, char *front,
                             size_t size) {
    static const char *const levels[] = {"error", "warning", "info", "debug"};
    size_t count = 0;
    snprintf(level, size, "KILN_LOG_LEVEL=%s", levels[log_level_get()]);
    snprintf(front, size, "KILN_FRONT_PID=%ld", (long)getpid());
    environment[count++] = level;
    environment[count++] = front;
    for (char **entry = environ; entry && *entry && count < ENVIRONMENT_MAX - 1; entry++) {
        if (strncmp(*entry, "KILN_LOG_LEVEL=", 15) != 0 &&
            strncmp(*entry, "KILN_FRONT_PID=", 15) != 0) {
            environment[count++] = *entry;
        }
    }
    environment[count] = NULL;
}

/* Starts the program with `fds` (ended by -1) as 3, 4, …, and `out` as standard output unless -1.
   The descriptors lie above HIGH_FD. 0 or an errno. */
static int spawn(pid_t *pid, const char *program, const char *const *arguments, const int *fds,
                 int out) {
    const char *environment[ENVIRONMENT_MAX];
    char level[40], front[40];
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    sigemptyset(&none);
    sigfillset(&all);
    environment_make(environment, level, front, sizeof level);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (out >= 0) {
        posix_spawn_file_actions_adddup2(&actions, out, STDOUT_FILENO);
    }
    int next = JOB_FD;
    for (; *fds >= 0; fds++) {
        posix_spawn_file_actions_adddup2(&actions, *fds, next++);
    }
    posix_spawn_file_actions_addclosefrom_np(&actions, next);
    int error =
        posix_spawn(pid, program, &actions, &attributes, (char *const *)(uintptr_t)arguments,
                    (char *const *)(uintptr_t)environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

/* A packet socket pair whose far end is fit for spawn(); close-on-exec. */
static bool pair_make(int *near, int *far) {
    int fds[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, fds) != 0) {
        return false;
    }
    *near = fds[0];
    *far = fcntl(fds[1], F_DUPFD_CLOEXEC, HIGH_FD);
    close(fds[1]);
    return *far >= 0;
}

/* Ends and reaps a child that has no pidfd (and is not reaped yet, so its id is its own). */
static void child_reap(pid_t pid) {
    kill(pid, SIGKILL);
    while (waitpid(pid, NULL, 0) < 0 && errno == EINTR) {
    }
}

static int worker_spawn(const struct dispatch *dispatch, const char *device, const int *fds,
                        pid_t *pid) {
    char job[16], control[16], arena[16], size[32], slots[16], threads[16], memory[32];
    snprintf(job, sizeof job, "%d", JOB_FD);
    snprintf(control, sizeof control, "%d", CONTROL_FD);
    snprintf(arena, sizeof arena, "%d", ARENA_FD);
    snprintf(size, sizeof size, "%zu", arena_size(dispatch->arena));
    snprintf(slots, sizeof slots, "%d", dispatch->slots);
    snprintf(threads, sizeof threads, "%d", dispatch->threads);
    snprintf(memory, sizeof memory, "%llu", (unsigned long long)dispatch->device_bytes);
    const char *const arguments[] = {
        "kilnd", "worker",     device,  "--job-fd",       job,    "--control-fd",
        control, "--arena-fd", arena,   "--arena-size",   size,   "--slots",
        slots,   "--threads",  threads, "--device-bytes", memory, NULL,
    };
    return spawn(pid, dispatch->program, arguments, fds, -1);
}

enum kiln_status spawn_worker(const struct dispatch *dispatch, const char *device,
                              struct spawned *spawned, char *why, size_t why_size) {
    enum kiln_status status = KILN_INTERNAL;
    int far_job = -1, far_control = -1, arena = -1, error = 0;
    *spawned = (struct spawned){.pidfd = -1, .job_fd = -1, .control_fd = -1};
    arena = fcntl(arena_fd(dispatch->arena), F_DUPFD_CLOEXEC, HIGH_FD);
    if (arena < 0 || !pair_make(&spawned->job_fd, &far_job) ||
        !pair_make(&spawned->control_fd, &far_control)) {
        error = errno;
        goto out;
    }
    const int fds[] = {far_job, far_control, arena, -1};
    error = worker_spawn(dispatch, device, fds, &spawned->pid);
    if (error != 0) {
        goto out;
    }
    spawned->pidfd = (int)syscall(SYS_pidfd_open, spawned->pid, 0); /* close-on-exec by itself */
    if (spawned->pidfd < 0) {
        error = errno;
        child_reap(spawned->pid);
        goto out;
    }
    status = KILN_OK;
out:
    close_fd(&far_control);
    close_fd(&far_job);
    close_fd(&arena);
    if (status != KILN_OK) {
        snprintf(why, why_size, "its worker could not be started: %s", strerror(error));
        close_fd(&spawned->control_fd);
        close_fd(&spawned->job_fd);
    }
    return status;
}

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

enum kiln_status spawn_probe(const char *program, int timeout_ms, char *output, size_t capacity,
                             size_t *size) {
    const char *const arguments[] = {"kilnd", "probe", NULL};
    const int none[] = {-1};
    int fds[2];
    pid_t pid;
    output[0] = '\0';
    if (pipe2(fds, O_CLOEXEC) != 0) {
        return KILN_INTERNAL;
    }
    int far = fcntl(fds[1], F_DUPFD_CLOEXEC, HIGH_FD);
    close_fd(&fds[1]);
    int error = far < 0 ? errno : spawn(&pid, program, arguments, none, far);
    close_fd(&far);
    if (error != 0) {
        log_error("the probe could not be started: %s", strerror(error));
        close_fd(&fds[0]);
        return KILN_INTERNAL;
    }
    bool whole = output_read(fds[0], timeout_ms, output, capacity, size);
    close_fd(&fds[0]);
    child_reap(pid);
    return whole ? KILN_OK : KILN_DEADLINE;
}
