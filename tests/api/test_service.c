/*
 * test_service.c: under a service manager: sockets that are passed on, and signs of life.
 */
#include "tests/api/lib_keys.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define REQUEST "GET /v1/devices HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
#define WAITED  "GET /v1/mandelbrot?width=8&height=8&format=npy HTTP/1.0\r\n\r\n"

static char folder[] = "/tmp/kiln-service-XXXXXX";
static char local_path[64], port_file[64], log_file[64];

static int setup(void **state) {
    (void)state;
    assert_non_null(mkdtemp(folder));
    snprintf(local_path, sizeof local_path, "%s/socket", folder);
    snprintf(port_file, sizeof port_file, "%s/port", folder);
    snprintf(log_file, sizeof log_file, "%s/log", folder);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    unlink(local_path);
    unlink(port_file);
    unlink(log_file);
    rmdir(folder);
    return 0;
}

union address {
    struct sockaddr any;
    struct sockaddr_in v4;
    struct sockaddr_in6 v6;
    struct sockaddr_un local;
};

/* A socket as a manager would make it; -1 where this machine has no such addresses. */
static int socket_make(int domain, int type, bool listens, uint32_t v4, union address *address,
                       socklen_t *size) {
    memset(address, 0, sizeof *address);
    address->any.sa_family = (sa_family_t)domain;
    *size = domain == AF_INET    ? sizeof address->v4
            : domain == AF_INET6 ? sizeof address->v6
                                 : sizeof address->local;
    if (domain == AF_INET) {
        address->v4.sin_addr.s_addr = htonl(v4);
    } else if (domain == AF_INET6) {
        address->v6.sin6_addr = in6addr_loopback;
    } else {
        unlink(local_path);
        snprintf(address->local.sun_path, sizeof address->local.sun_path, "%s", local_path);
    }
    int fd = socket(domain, type | SOCK_CLOEXEC, 0);
    if (fd < 0 || bind(fd, &address->any, *size) != 0) {
        assert_int_equal(domain, AF_INET6);
        close(fd);
        return -1;
    }
    assert_true(!listens || listen(fd, 16) == 0);
    assert_int_equal(getsockname(fd, &address->any, size), 0);
    return fd;
}

/* Runs the daemon with `fd` as descriptor 3, said to be `count` of them for process `whose` (0: its
   own). */
static pid_t launch(int fd, const char *count, pid_t whose, const char *const *flags) {
    const char *device = getenv("KILN_TEST_DEVICE");
    const char *arguments[16] = {"kilnd",    "--device",    device != NULL ? device : "cpu",
                                 "--listen", "127.0.0.1:0", "--port-file",
                                 port_file};
    for (size_t i = 0; flags != NULL && flags[i] != NULL; i++) {
        arguments[7 + i] = flags[i];
    }
    unlink(port_file);
    pid_t pid = fork();
    if (pid == 0) {
        daemon_tie();
        char text[32];
        int log = open(log_file, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(log, STDOUT_FILENO);
        dup2(log, STDERR_FILENO);
        dup2(fd, 3);
        fcntl(3, F_SETFD, 0); /* it may have been 3 before */
        if (strcmp(count, "2") == 0) {
            dup2(3, 4);
        }
        snprintf(text, sizeof text, "%ld", (long)(whose != 0 ? whose : getpid()));
        setenv("LISTEN_PID", text, 1);
        setenv("LISTEN_FDS", count, 1);
        setenv("LISTEN_FDNAMES", "kilnd.socket", 1);
        execv(getenv("KILND"), (char *const *)(uintptr_t)arguments);
        _exit(127);
    }
    assert_true(pid > 0);
    return pid;
}

static int exit_of(pid_t pid) {
    int status;
    assert_true(waitpid(pid, &status, 0) == pid);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

static bool logged(const char *text) {
    char bytes[8192] = "";
    FILE *file = fopen(log_file, "r");
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes - 1, file);
    fclose(file);
    bytes[size] = '\0';
    return strstr(bytes, text) != NULL;
}

static int reach(const union address *address, socklen_t size) {
    int fd = socket(address->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(connect(fd, &address->any, size), 0);
    return fd;
}

static void read_all(int fd, const char *request, char *out, size_t capacity) {
    bool closed;
    raw_exchange(fd, request, strlen(request), out, capacity, 60, &closed);
    assert_true(closed);
    close(fd);
}

/* What a child of the daemon was given. */
static void children_check(pid_t parent) {
    char path[64], bytes[65536];
    int children = 0;
    DIR *all = opendir("/proc");
    assert_non_null(all);
    for (struct dirent *entry = readdir(all); entry != NULL; entry = readdir(all)) {
        int pid = atoi(entry->d_name), its = 0;
        snprintf(path, sizeof path, "/proc/%d/stat", pid);
        FILE *file = pid > 0 ? fopen(path, "r") : NULL;
        bool child =
            file != NULL && fscanf(file, "%*d (%*[^)]) %*c %d", &its) == 1 && its == parent;
        if (file != NULL) {
            fclose(file);
        }
        if (!child) {
            continue;
        }
        snprintf(path, sizeof path, "/proc/%d/environ", pid);
        file = fopen(path, "r");
        if (file == NULL) {
            continue;
        }
        size_t size = fread(bytes, 1, sizeof bytes - 1, file);
        fclose(file);
        for (size_t i = 0; i < size; i += strlen(bytes + i) + 1) {
            bytes[size] = '\0';
            assert_int_not_equal(strncmp(bytes + i, "LISTEN_", 7), 0);
            assert_int_not_equal(strncmp(bytes + i, "NOTIFY_SOCKET", 13), 0);
            assert_int_not_equal(strncmp(bytes + i, "WATCHDOG_", 9), 0);
        }
        children++;
    }
    closedir(all);
    assert_true(children > 0);
}

static void sockets_that_are_passed_are_served_on(void **state) {
    (void)state;
    static const int domains[] = {AF_INET, AF_INET6, AF_UNIX};
    static const char *const places[] = {
        "on http://127.0.0.1:", "on http://[::1]:", "on unix:/tmp"};
    for (size_t i = 0; i < sizeof domains / sizeof domains[0]; i++) {
        union address address;
        socklen_t size;
        char out[65536];
        int fd = socket_make(domains[i], SOCK_STREAM, true, INADDR_LOOPBACK, &address, &size);
        if (fd < 0) {
            print_message("no IPv6 here\n");
            continue;
        }
        /* a client that comes before the daemon does */
        int early = reach(&address, size);
        assert_int_equal(send(early, REQUEST, strlen(REQUEST), MSG_NOSIGNAL), strlen(REQUEST));
        static const char *const flags[] = {"--http-threads", "2", NULL};
        pid_t pid = launch(fd, "1", 0, flags);
        read_all(early, "", out, sizeof out);
        assert_non_null(strstr(out, "HTTP/1.1 200 OK\r\n"));
        for (double end = now_s() + 60; !logged(places[i]); sleep_s(0.01)) {
            assert_true(now_s() < end);
        }
        for (double end = now_s() + 60; strstr(out, "\"ready\"") == NULL; sleep_s(0.01)) {
            assert_true(now_s() < end);
            read_all(reach(&address, size), REQUEST, out, sizeof out);
        }
        read_all(reach(&address, size), WAITED, out, sizeof out);
        assert_non_null(strstr(out, "200 OK\r\n"));
        assert_non_null(strstr(out, "\r\n\r\n\x93NUMPY"));
        children_check(pid);
        assert_int_equal(kill(pid, SIGTERM), 0);
        assert_int_equal(exit_of(pid), 0);
        /* the manager's socket is as it was: the next one waits in it */
        int late = reach(&address, size);
        close(late);
        close(fd);
    }
}

static void odd_sockets_are_refused(void **state) {
    (void)state;
    static const char *const leave[] = {"--allow-open", NULL};
    union address address;
    socklen_t size;
    struct {
        int type;
        bool listens;
        uint32_t v4;
        const char *count, *says;
    } rows[] = {
        {SOCK_STREAM, true, INADDR_ANY, "1", "without a key"},
        {SOCK_STREAM, true, INADDR_LOOPBACK, "2", "LISTEN_FDS says 2"},
        {SOCK_STREAM, true, INADDR_LOOPBACK, "many", "LISTEN_FDS says -1"},
        {SOCK_STREAM, false, INADDR_LOOPBACK, "1", "does not listen"},
        {SOCK_DGRAM, false, INADDR_LOOPBACK, "1", "not a stream socket"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int fd = socket_make(AF_INET, rows[i].type, rows[i].listens, rows[i].v4, &address, &size);
        assert_int_equal(exit_of(launch(fd, rows[i].count, 0, NULL)), 1);
        if (!logged(rows[i].says)) {
            fail_msg("the log does not say \"%s\"", rows[i].says);
        }
        close(fd);
    }
    int null = open("/dev/null", O_RDONLY);
    assert_int_equal(exit_of(launch(null, "1", 0, NULL)), 1);
    close(null);
    /* with leave, any address will do */
    char out[65536];
    int fd = socket_make(AF_INET, SOCK_STREAM, true, INADDR_ANY, &address, &size);
    pid_t pid = launch(fd, "1", 0, leave);
    address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    read_all(reach(&address, size), REQUEST, out, sizeof out);
    assert_non_null(strstr(out, "HTTP/1.1 200 OK\r\n"));
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(exit_of(pid), 0);
    close(fd);
}

/* Variables of another process mean nothing: it binds its own. */
static void sockets_of_others_are_left_alone(void **state) {
    (void)state;
    union address address;
    socklen_t size;
    struct daemon daemon = {.port = 0};
    int fd = socket_make(AF_INET, SOCK_STREAM, true, INADDR_LOOPBACK, &address, &size);
    pid_t pid = launch(fd, "1", getpid(), NULL);
    for (double end = now_s() + 60; !daemon_ready(&daemon, port_file); sleep_s(0.01)) {
        assert_true(now_s() < end);
    }
    assert_int_not_equal(daemon.port, ntohs(address.v4.sin_port));
    assert_int_equal(kill(pid, SIGTERM), 0);
    assert_int_equal(exit_of(pid), 0);
    close(fd);
}

/* ---- signs of life ---- */

/* A manager's socket, and the variables for the daemon that is started next. */
static int manager_open(const char *watchdog_us) {
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s", local_path);
    unlink(local_path);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof address), 0);
    setenv("NOTIFY_SOCKET", local_path, 1);
    setenv("WATCHDOG_USEC", watchdog_us, 1);
    return fd;
}

static void manager_forget(void) {
    unsetenv("NOTIFY_SOCKET");
    unsetenv("WATCHDOG_USEC");
    unsetenv("WATCHDOG_PID");
}

/* Signs of life within so many seconds, at most `most`. */
static int signs_count(int fd, double seconds, int most) {
    int signs = 0;
    for (double end = now_s() + seconds, left; signs < most && (left = end - now_s()) > 0;) {
        char said[512] = "";
        struct pollfd polled = {.fd = fd, .events = POLLIN};
        if (poll(&polled, 1, (int)(left * 1e3) + 1) == 1) {
            assert_true(recv(fd, said, sizeof said - 1, 0) > 0);
            signs += strcmp(said, "WATCHDOG=1") == 0;
        }
    }
    return signs;
}

/* A thread of the daemon by its name; `skip` so many. */
static pid_t thread_find(pid_t pid, const char *name) {
    char path[96], found[32];
    pid_t thread = 0;
    snprintf(path, sizeof path, "/proc/%d/task", (int)pid);
    DIR *all = opendir(path);
    assert_non_null(all);
    for (struct dirent *entry = readdir(all); entry != NULL; entry = readdir(all)) {
        snprintf(path, sizeof path, "/proc/%d/task/%.20s/comm", (int)pid, entry->d_name);
        FILE *file = fopen(path, "r");
        if (file != NULL && fscanf(file, "%31s", found) == 1 && strcmp(found, name) == 0) {
            thread = atoi(entry->d_name);
        }
        if (file != NULL) {
            fclose(file);
        }
    }
    closedir(all);
    return thread;
}

/* Does the kernel hold this thread for a tracer? Not every sandbox that has ptrace does. */
static bool thread_held(pid_t pid, pid_t thread) {
    char path[96], state = '?';
    snprintf(path, sizeof path, "/proc/%d/task/%d/stat", (int)pid, (int)thread);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        bool read = fscanf(file, "%*d (%*[^)]) %c", &state) == 1;
        fclose(file);
        return read && state == 't';
    }
    return false;
}

/* A loop that is stuck, here because it is being traced, ends the signs; and they come back. */
static void signs_end_where_a_loop_is_stuck(void **state) {
    (void)state;
    static const char *const flags[] = {"--http-threads", "2", NULL};
    static const char *const names[] = {"front", "http"};
    struct daemon daemon;
    int manager = manager_open("400000");
    daemon_start(&daemon, flags);
    manager_forget();
    children_check(daemon.pid);
    assert_int_equal(signs_count(manager, 30, 5), 5);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        pid_t thread = thread_find(daemon.pid, names[i]);
        assert_true(thread > 0);
        if (ptrace(PTRACE_SEIZE, thread, NULL, NULL) != 0) {
            print_message("threads cannot be stopped here: %s\n", strerror(errno));
            break;
        }
        int status;
        assert_int_equal(ptrace(PTRACE_INTERRUPT, thread, NULL, NULL), 0);
        assert_int_equal(waitpid(thread, &status, __WALL), thread);
        if (!WIFSTOPPED(status) || !thread_held(daemon.pid, thread)) {
            print_message("threads that are traced are not stopped here\n");
            ptrace(PTRACE_DETACH, thread, NULL, NULL);
            break;
        }
        /* a turn that was made before may still be told */
        assert_true(signs_count(manager, 1, 3) < 3);
        assert_int_equal(signs_count(manager, 1, 1), 0);
        assert_int_equal(ptrace(PTRACE_DETACH, thread, NULL, NULL), 0);
        assert_int_equal(signs_count(manager, 30, 3), 3);
    }
    assert_int_equal(daemon_stop(&daemon), 0);
    close(manager);
}

static void signs_are_for_who_is_watched(void **state) {
    (void)state;
    static const char *const periods[] = {"0", "-400000", "400000x", "400000"};
    for (size_t i = 0; i < sizeof periods / sizeof periods[0]; i++) {
        struct daemon daemon;
        int manager = manager_open(periods[i]);
        if (i == 3) {
            setenv("WATCHDOG_PID", "1", 1); /* another process */
        }
        daemon_start(&daemon, NULL);
        manager_forget();
        assert_int_equal(signs_count(manager, 0.7, 1), 0);
        assert_int_equal(daemon_stop(&daemon), 0);
        close(manager);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sockets_that_are_passed_are_served_on),
        cmocka_unit_test(odd_sockets_are_refused),
        cmocka_unit_test(sockets_of_others_are_left_alone),
        cmocka_unit_test(signs_end_where_a_loop_is_stuck),
        cmocka_unit_test(signs_are_for_who_is_watched),
    };
    return cmocka_run_group_tests_name("api.service", tests, setup, teardown);
}
