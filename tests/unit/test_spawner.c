/*
 * test_spawner.c: what the spawner does for the front, and what it refuses a front that has been
 * taken over. This program is the spawner, and what the spawner starts, as well: by its first
 * argument.
 */
#include "compute/worker/spawner.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#define PATIENCE_MS 30000 /* no measure but the end of patience */

extern char **environ;

/* ---- what is started ---- */

/* A worker that looks at what it was given: 0 if all is as promised. */
static int worker(int count, char **arguments) {
    static const char *const wanted[] = {
        "worker",       "cpu:7", "--job-fd", "3", "--control-fd", "4", "--arena-fd",     "5",
        "--arena-size", "4096",  "--slots",  "2", "--threads",    "1", "--device-bytes", "99"};
    const char *parent = getenv("KILN_PARENT_PID");
    for (int i = 0; i < (int)(sizeof wanted / sizeof *wanted); i++) {
        if (i + 1 >= count || strcmp(arguments[i + 1], wanted[i]) != 0) {
            return 10 + i;
        }
    }
    for (int fd = 3; fd < 200; fd++) {
        if ((fcntl(fd, F_GETFD) >= 0) != (fd <= 5)) {
            return 1;
        }
    }
    if (parent == NULL || atol(parent) != (long)getppid()) {
        return 2;
    }
    return 0;
}

/* A probe that says something and stays. */
static int probe(void) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* as kilnd's */
    ssize_t written = write(STDOUT_FILENO, "here", 4);
    for (;;) {
        sleep(1);
    }
    return (int)written;
}

/* ---- the other side ---- */

struct rig {
    pid_t pid;
    int socket;
};

static void rig_open(struct rig *rig) {
    const char *const arguments[] = {"test", "spawner", NULL};
    posix_spawn_file_actions_t actions;
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    int far = fcntl(pair[1], F_DUPFD_CLOEXEC, 64);
    close(pair[1]);
    rig->socket = pair[0];
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, far, SPAWNER_FD);
    assert_int_equal(posix_spawn(&rig->pid, "/proc/self/exe", &actions, NULL,
                                 (char *const *)(uintptr_t)arguments, environ),
                     0);
    posix_spawn_file_actions_destroy(&actions);
    close(far);
}

/* Its exit code, or minus the signal. */
static int rig_end(struct rig *rig) {
    int status;
    assert_int_equal(waitpid(rig->pid, &status, 0), rig->pid);
    close(rig->socket);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static int rig_close(struct rig *rig) {
    shutdown(rig->socket, SHUT_RDWR);
    return rig_end(rig);
}

static void request_send(const struct rig *rig, const void *bytes, size_t size, const int *fds,
                         size_t count) {
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(8 * sizeof(int))];
    } control;
    struct iovec part = {(void *)(uintptr_t)bytes, size};
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
    assert_int_equal(sendmsg(rig->socket, &message, MSG_NOSIGNAL), size);
}

/* False where the spawner has ended instead. */
static bool reply_take(const struct rig *rig, struct spawner_reply *reply, int *pidfd) {
    union {
        struct cmsghdr head;
        char space[CMSG_SPACE(sizeof(int))];
    } control;
    struct iovec part = {reply, sizeof *reply};
    struct msghdr message = {.msg_iov = &part,
                             .msg_iovlen = 1,
                             .msg_control = &control,
                             .msg_controllen = sizeof control};
    struct pollfd answer = {.fd = rig->socket, .events = POLLIN};
    *pidfd = -1;
    assert_true(poll(&answer, 1, PATIENCE_MS) > 0);
    if (recvmsg(rig->socket, &message, MSG_CMSG_CLOEXEC) <= 0) {
        return false;
    }
    struct cmsghdr *head = CMSG_FIRSTHDR(&message);
    if (head != NULL) {
        memcpy(pidfd, CMSG_DATA(head), sizeof *pidfd);
    }
    assert_int_equal(reply->magic, SPAWNER_MAGIC);
    return true;
}

static struct spawner_reply ask(const struct rig *rig, struct spawner_request request,
                                const int *fds, size_t count, int *pidfd) {
    struct spawner_reply reply;
    request.magic = SPAWNER_MAGIC;
    request_send(rig, &request, sizeof request, fds, count);
    assert_true(reply_take(rig, &reply, pidfd));
    return reply;
}

static const struct spawner_request worker_request = {.task = SPAWNER_WORKER,
                                                      .device = "cpu:7",
                                                      .slots = 2,
                                                      .threads = 1,
                                                      .arena_size = 4096,
                                                      .device_bytes = 99};

/* ---- tests ---- */

static void a_worker_gets_what_it_was_promised(void **state) {
    struct rig rig;
    int pidfd, none;
    const int fds[] = {STDIN_FILENO, STDIN_FILENO, STDIN_FILENO};
    (void)state;
    rig_open(&rig);
    struct spawner_reply started = ask(&rig, worker_request, fds, 3, &pidfd);
    assert_int_equal(started.error, 0);
    assert_true(started.pid > 0 && pidfd >= 0);
    struct pollfd end = {.fd = pidfd, .events = POLLIN};
    assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
    const struct spawner_request reap = {.task = SPAWNER_REAP, .pid = started.pid};
    struct spawner_reply ended = ask(&rig, reap, NULL, 0, &none);
    assert_int_equal(ended.error, 0);
    assert_int_equal(ended.pid, started.pid);
    assert_int_equal(ended.code, CLD_EXITED);
    assert_int_equal(ended.status, 0);
    assert_int_equal(ask(&rig, reap, NULL, 0, &none).error, ECHILD); /* once only */
    close(pidfd);
    assert_int_equal(rig_close(&rig), 0);
}

static int64_t probe_start(const struct rig *rig, int *pidfd) {
    int ends[2];
    char said[4];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    struct spawner_reply started =
        ask(rig, (struct spawner_request){.task = SPAWNER_PROBE}, &ends[1], 1, pidfd);
    close(ends[1]);
    if (started.error == 0) {
        assert_int_equal(read(ends[0], said, sizeof said), 4);
        assert_memory_equal(said, "here", 4);
    } else {
        errno = started.error;
    }
    close(ends[0]);
    return started.error == 0 ? started.pid : 0;
}

static void a_child_is_reaped_when_it_has_ended(void **state) {
    struct rig rig;
    int pidfd, none;
    (void)state;
    rig_open(&rig);
    int64_t pid = probe_start(&rig, &pidfd);
    assert_true(pid > 0);
    const struct spawner_request reap = {.task = SPAWNER_REAP, .pid = pid};
    const struct spawner_request end = {.task = SPAWNER_END, .pid = pid};
    struct spawner_reply reply = ask(&rig, reap, NULL, 0, &none);
    assert_true(reply.error == 0 && reply.pid == 0); /* it lives */
    reply = ask(&rig, end, NULL, 0, &none);
    assert_true(reply.error == 0 && reply.pid == pid);
    assert_int_equal(reply.code, CLD_KILLED);
    assert_int_equal(reply.status, SIGKILL);
    close(pidfd);
    assert_int_equal(rig_close(&rig), 0);
}

static void others_are_not_touched(void **state) {
    struct rig rig;
    int none;
    (void)state;
    rig_open(&rig);
    const int64_t pids[] = {getpid(), rig.pid, 1, 0, -1, INT64_MAX};
    for (size_t i = 0; i < sizeof pids / sizeof *pids; i++) {
        const struct spawner_request end = {.task = SPAWNER_END, .pid = pids[i]};
        assert_int_equal(ask(&rig, end, NULL, 0, &none).error, ECHILD);
    }
    assert_int_equal(rig_close(&rig), 0);
}

static void odd_requests_are_refused(void **state) {
    static const char *const devices[] = {"",         "cpu",   "cpu:",    ":0",    "cpu:0x",
                                          "../cpu:0", "CPU:0", "--slots", "cpu:0 "};
    struct rig rig;
    int none;
    const int fds[] = {STDIN_FILENO, STDIN_FILENO, STDIN_FILENO};
    (void)state;
    rig_open(&rig);
    for (size_t i = 0; i < sizeof devices / sizeof *devices; i++) {
        struct spawner_request request = worker_request;
        snprintf(request.device, sizeof request.device, "%s", devices[i]);
        assert_int_equal(ask(&rig, request, fds, 3, &none).error, EINVAL);
    }
    struct spawner_request request = worker_request;
    memset(request.device, 'a', sizeof request.device); /* without an end */
    assert_int_equal(ask(&rig, request, fds, 3, &none).error, EINVAL);
    request = worker_request;
    request.slots = -1;
    assert_int_equal(ask(&rig, request, fds, 3, &none).error, EINVAL);
    assert_int_equal(ask(&rig, worker_request, fds, 2, &none).error, EINVAL);
    request = (struct spawner_request){.task = SPAWNER_PROBE};
    assert_int_equal(ask(&rig, request, NULL, 0, &none).error, EINVAL);
    request = (struct spawner_request){.task = 99};
    assert_int_equal(ask(&rig, request, NULL, 0, &none).error, ENOSYS);
    assert_int_equal(rig_close(&rig), 0);
}

/* Packets of another form end it. */
static void nonsense_ends_it(void **state) {
    static const char text[] = "GET / HTTP/1.1\r\n";
    const int fds[] = {0, 0, 0, 0, 0, 0, 0, 0};
    struct spawner_request request = worker_request; /* without its magic */
    struct spawner_reply reply;
    struct rig rig;
    int none;
    (void)state;
    for (int i = 0; i < 4; i++) {
        rig_open(&rig);
        request.magic = i == 3 ? SPAWNER_MAGIC : 0;
        request_send(&rig, i == 0 ? (const void *)text : &request,
                     i == 0   ? sizeof text
                     : i == 1 ? sizeof request - 1
                              : sizeof request,
                     fds, i == 3 ? 8 : 0);
        assert_false(reply_take(&rig, &reply, &none));
        assert_int_equal(rig_end(&rig), EXIT_FAILURE);
    }
}

/* So many children and no more; all end with it. */
static void children_are_bounded_and_end_with_it(void **state) {
    struct rig rig;
    int pidfds[100], count = 0;
    (void)state;
    rig_open(&rig);
    while (count < 100 && probe_start(&rig, &pidfds[count]) > 0) {
        count++;
    }
    assert_int_equal(count, 64);
    assert_int_equal(errno, EAGAIN);
    assert_int_equal(rig_close(&rig), 0);
    print_message("  %d children\n", count);
    for (int i = 0; i < count; i++) {
        struct pollfd end = {.fd = pidfds[i], .events = POLLIN};
        assert_int_equal(poll(&end, 1, PATIENCE_MS), 1);
        close(pidfds[i]);
    }
}

int main(int count, char **arguments) {
    if (count > 1 && strcmp(arguments[1], "spawner") == 0) {
        return spawner_run();
    }
    if (count > 1 && strcmp(arguments[1], "worker") == 0) {
        return worker(count, arguments);
    }
    if (count > 1 && strcmp(arguments[1], "probe") == 0) {
        return probe();
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_worker_gets_what_it_was_promised),
        cmocka_unit_test(a_child_is_reaped_when_it_has_ended),
        cmocka_unit_test(others_are_not_touched),
        cmocka_unit_test(odd_requests_are_refused),
        cmocka_unit_test(nonsense_ends_it),
        cmocka_unit_test(children_are_bounded_and_end_with_it),
    };
    return cmocka_run_group_tests_name("spawner", tests, NULL, NULL);
}
