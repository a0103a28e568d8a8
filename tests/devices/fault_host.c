/*
 * fault_host.c: what a worker's process can do wrong by itself. Slot thread of a worker.
 */
#include "compute/worker/command.h"
#include "kernels/mandelbrot.h"
#include "tests/devices/fault.h"

#include <fcntl.h>
#include <math.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define BLOCK      ((size_t)1 << 20)
#define HOST_SPARE ((rlim_t)256 << 20) /* host memory that may be taken */
#define MOST       ((size_t)64 << 30)  /* device memory that is asked for at once */

static enum kiln_status store(void) {
    volatile uintptr_t nowhere = (uintptr_t)1 << 40 | 64; /* not a constant to the compiler */
    *(volatile uint64_t *)nowhere = 1;                    /* nothing is ever mapped there */
    return KILN_INTERNAL;
}

static enum kiln_status spin(void) {
    for (volatile uint64_t turns = 0;; turns = turns + 1) {
    }
    return KILN_INTERNAL;
}

/* One small launch after the other; each looks at the cancel word. */
static enum kiln_status polite(struct task *task) {
    int32_t count;
    const struct mandelbrot_args args = {.width = 1,
                                         .height = 1,
                                         .views = 1,
                                         .view = {{.dx = 1, .dy = -1}},
                                         .max_iter = 1,
                                         .escape_radius = 2,
                                         .fp64 = 1,
                                         .count = &count};
    enum kiln_status status = KILN_OK;
    while (status == KILN_OK) {
        status = task->backend->launch(task->stream, KERNEL_MANDELBROT, &args);
        usleep(1000);
    }
    return status;
}

static enum kiln_status device_memory(struct task *task) {
    size_t size = MOST;
    uint64_t taken = 0;
    while (size >= BLOCK) { /* what is left is taken in ever smaller pieces */
        if (task->backend->reserve(task->stream, size)) {
            taken += size;
        } else {
            size /= 2;
        }
    }
    snprintf(task->detail, sizeof task->detail, "no memory after %.1f MB", (double)taken * 1e-6);
    return KILN_NO_MEMORY;
}

static rlim_t address_space(void) {
    unsigned long pages = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%lu", &pages) != 1) {
        abort();
    }
    fclose(file);
    return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static enum kiln_status host_memory(struct task *task) {
    struct block_of {
        struct block_of *next;
    } *list = NULL, *one;
    struct rlimit before;
    uint64_t taken = 0;
    getrlimit(RLIMIT_AS, &before);
    setrlimit(RLIMIT_AS, &(struct rlimit){address_space() + HOST_SPARE, before.rlim_max});
    while ((one = malloc(BLOCK)) != NULL) {
        memset(one, 1, BLOCK);
        one->next = list;
        list = one;
        taken += BLOCK;
    }
    usleep(100000); /* others find nothing meanwhile */
    while (list) {
        one = list->next;
        free(list);
        list = one;
    }
    setrlimit(RLIMIT_AS, &before);
    snprintf(task->detail, sizeof task->detail, "no memory after %.1f MB", (double)taken * 1e-6);
    return KILN_NO_MEMORY;
}

/* To every packet socket of this process: the one for jobs and the one for notices. */
static void send_everywhere(const void *bytes, size_t size, int first, int last) {
    for (int fd = first; fd <= last; fd++) {
        int type = 0;
        socklen_t length = sizeof type;
        if (getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &length) == 0 && type == SOCK_SEQPACKET) {
            send(fd, bytes, size, MSG_NOSIGNAL);
        }
    }
}

/* An answer for the job itself, with a result that cannot be. What it has to name stands in the
   command, of which the parameters are a part. */
static enum kiln_status forge(struct task *task) {
    const struct command *command =
        (const void *)((const char *)task->params - offsetof(struct command, params));
    const struct answer answer = {.magic = COMMAND_MAGIC,
                                  .status = KILN_OK,
                                  .id = task->id,
                                  .place = command->place,
                                  .generation = command->generation,
                                  .result_size = task->capacity + ((uint64_t)1 << 40),
                                  .gathered = 1};
    send_everywhere(&answer, sizeof answer, 3, 3); /* the first one is for jobs */
    return KILN_OK;
}

/* Files and folders that every user may read; tells the last one that opens. */
static enum kiln_status open_files(struct task *task) {
    static const char *const paths[] = {"/etc/passwd",
                                        "/etc/hostname",
                                        "/proc/1/cmdline",
                                        "/",
                                        "/proc",
                                        "/etc",
                                        "/proc/self/root/etc/passwd",
                                        "/proc/version",
                                        "/usr/bin/env",
                                        "/dev/null"};
    const char *opened = "none";
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        int fd = open(paths[i], O_RDONLY | O_CLOEXEC);
        if (fd >= 0) {
            close(fd);
            opened = paths[i];
        }
    }
    snprintf(task->detail, sizeof task->detail, "opened: %s", opened);
    return KILN_UNSUPPORTED;
}

enum kiln_status fault_host(struct task *task, enum fault_what what) {
    static const char nonsense[] = "no packet of the protocol";
    switch (what) {
    case FAULT_STORE:
        return store();
    case FAULT_TRAP:
        raise(SIGILL);
        break;
    case FAULT_MISALIGNED:
        raise(SIGBUS);
        break;
    case FAULT_SPIN:
        return spin();
    case FAULT_POLITE:
        return polite(task);
    case FAULT_DEVICE_MEMORY:
        return device_memory(task);
    case FAULT_HOST_MEMORY:
        return host_memory(task);
    case FAULT_KILL:
        kill(getpid(), SIGKILL);
        break;
    case FAULT_STOP:
        kill(getpid(), SIGSTOP);
        break;
    case FAULT_EXIT:
        _exit(0);
    case FAULT_LIE:
        task->size = task->capacity + 1;
        return KILN_OK;
    case FAULT_FORGE:
        return forge(task);
    case FAULT_TIMES:
        task->timing->upload = 1e300;
        task->timing->kernel = INFINITY;
        task->timing->download = NAN;
        task->timing->encode = 1e19;
        return KILN_OK;
    case FAULT_OPEN:
        return open_files(task);
    case FAULT_GARBAGE:
        send_everywhere(nonsense, sizeof nonsense, 3, 64);
        break;
    default:
        snprintf(task->detail, sizeof task->detail, "an illegal address was met");
        return KILN_DEVICE_FAULT;
    }
    return KILN_OK;
}
