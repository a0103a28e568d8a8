/*
 * test_memory.c: clients that want the daemon to hold much for them, and its descriptors.
 *
 * Arenas are small, so that what would take a day and a gigabyte takes a moment. Nothing here is
 * measured: what must come about is waited for, what must not hold is asked of the metrics. Clients
 * that are to stay have PATIENT flags, so that they do on a busy machine too.
 */
#include "tests/api/lib_keys.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define PATIENCE_S 120.0
#define HEADS      72
#define MIB        (1 << 20)
#define PATIENT    "--idle-timeout", "900", "--transfer-timeout", "3600"

/* A connection from this address of the loopback, which is another client to the daemon. */
static int open_from(const struct daemon *daemon, const char *address) {
    struct sockaddr_in own = {.sin_family = AF_INET}, far = {.sin_family = AF_INET};
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), small = 4096;
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    assert_int_equal(inet_pton(AF_INET, address, &own.sin_addr), 1);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    far.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    far.sin_port = htons((uint16_t)daemon->port);
    assert_int_equal(connect(fd, (struct sockaddr *)&far, sizeof far), 0);
    return fd;
}

/* Sends what the other side takes; false once it has closed. */
static bool send_all(int fd, const char *bytes, size_t size) {
    while (size > 0) {
        ssize_t sent = send(fd, bytes, size, MSG_NOSIGNAL);
        if (sent <= 0) {
            return false;
        }
        bytes += sent;
        size -= (size_t)sent;
    }
    return true;
}

/* The head of a body of `length` bytes, with one more header line ("" for none). */
static int head_send_with(const struct daemon *daemon, const char *address, size_t length,
                          const char *header) {
    char head[512];
    int fd = open_from(daemon, address);
    int size = snprintf(head, sizeof head,
                        "POST /v1/laplacian HTTP/1.1\r\nHost: x\r\nContent-Type: "
                        "application/octet-stream\r\n%s%sContent-Length: %zu\r\n\r\nP5\n",
                        header, header[0] != '\0' ? "\r\n" : "", length);
    assert_true(send_all(fd, head, (size_t)size));
    return fd;
}

static int head_send(const struct daemon *daemon, const char *address, size_t length) {
    return head_send_with(daemon, address, length, "");
}

/* Status of the answer on a plain connection; 0 if it closes without one. */
static int status_read(int fd) {
    char bytes[65536];
    size_t size = 0;
    int status = 0;
    double end = now_s() + PATIENCE_S;
    while (size < 12 && now_s() < end) {
        struct pollfd one = {.fd = fd, .events = POLLIN};
        ssize_t got = poll(&one, 1, 100) > 0 ? recv(fd, bytes + size, sizeof bytes - size, 0) : 1;
        if (got <= 0) {
            return 0;
        }
        size += one.revents != 0 ? (size_t)got : 0;
    }
    bytes[size < sizeof bytes ? size : sizeof bytes - 1] = '\0';
    return sscanf(bytes, "HTTP/1.1 %d", &status) == 1 ? status : 0;
}

/* A small picture's Laplacian for the client of this address. */
static int small_job(const struct daemon *daemon, const char *address) {
    int fd = open_from(daemon, address);
    const char request[] = "POST /v1/laplacian?format=npy HTTP/1.1\r\nHost: x\r\nContent-Type: "
                           "application/octet-stream\r\nContent-Length: 20\r\n\r\n"
                           "P5\n3 3\n255\n123456789";
    assert_true(send_all(fd, request, sizeof request - 1));
    int status = status_read(fd);
    close(fd);
    return status;
}

static void wait_for(struct session *session, const char *metric, double least, double most) {
    double end = now_s() + PATIENCE_S, value;
    while ((value = metric_get(session, metric)) < least || value > most) {
        if (now_s() > end) {
            fail_msg("%s stays at %g", metric, value);
        }
        sleep_s(0.02);
    }
}

static void ready_check(struct session *session) {
    struct answer answer;
    session_get(session, "/readyz", &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
}

/* Whether the log has a line with all of these words. */
static bool log_has(const struct daemon *daemon, const char *one, const char *other) {
    char path[96], line[2048];
    bool found = false;
    snprintf(path, sizeof path, "%s/log", daemon->folder);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    while (!found && fgets(line, sizeof line, file) != NULL) {
        found = strstr(line, one) != NULL && strstr(line, other) != NULL;
    }
    fclose(file);
    return found;
}

/* Seven kilobytes of heads: nothing is taken for what they announce, each has a small block for
   what has come. */
static void heads_take_nothing(void **state) {
    static const char *const flags[] = {PATIENT, "--arena", "32M", "--max-body", "16M", NULL};
    struct daemon daemon;
    int fds[HEADS];
    (void)state;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    double before = metric_get(session, "kiln_arena_used_bytes");
    double blocks = metric_get(session, "kiln_arena_blocks");
    for (int i = 0; i < HEADS; i++) {
        fds[i] = head_send(&daemon, "127.0.0.1", 15 * MIB);
    }
    wait_for(session, "kiln_arena_blocks", blocks + HEADS, 1e9);
    assert_true(metric_get(session, "kiln_arena_used_bytes") - before <= HEADS * 65536.0);
    assert_int_equal(small_job(&daemon, "127.0.0.1"), 200);
    assert_int_equal(small_job(&daemon, "127.0.0.2"), 200);
    ready_check(session);
    for (int i = 0; i < HEADS; i++) {
        close(fds[i]);
    }
    wait_for(session, "kiln_arena_used_bytes", before, before);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* Clients that do send what they announce, and stop before the end. Each address has its share,
   which leaves room for the next one; the device stays ready; the log says who has the memory. */
static void nobody_takes_all(void **state) {
    enum { CLIENTS = 4, EACH = 12, SENT = 2 * MIB };
    static const char *const addresses[CLIENTS] = {"127.0.0.1", "127.0.0.2", "127.0.0.3",
                                                   "127.0.0.4"};
    static const char *const flags[] = {PATIENT, "--arena", "32M", "--max-body", "4M", NULL};
    static char bytes[SENT];
    struct daemon daemon;
    int fds[CLIENTS][EACH];
    (void)state;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    double before = metric_get(session, "kiln_arena_used_bytes");
    for (int i = 0; i < CLIENTS; i++) {
        double refused = metric_get(session, "kiln_arena_failures_total");
        for (int j = 0; j < EACH; j++) {
            fds[i][j] = head_send(&daemon, addresses[i], 3 * MIB);
            send_all(fds[i][j], bytes, SENT);
        }
        wait_for(session, "kiln_arena_failures_total", refused + 1, 1e9);
        double used = metric_get(session, "kiln_arena_used_bytes") - before;
        assert_true(used < 31.0 * MIB);
        assert_int_equal(small_job(&daemon, "127.0.0.9"), 200);
        ready_check(session);
    }
    assert_true(metric_get(session, "kiln_arena_clients") >= 2);
    /* the first one, alone, has had two thirds at most */
    assert_true(metric_get(session, "kiln_arena_client_most_bytes") <= 32.0 * MIB * 2 / 3);
    assert_true(log_has(&daemon, "memory is short", "most is held by 127.0.0.1 "));
    for (int i = 0; i < CLIENTS; i++) {
        for (int j = 0; j < EACH; j++) {
            close(fds[i][j]);
        }
    }
    wait_for(session, "kiln_arena_used_bytes", before, before);
    assert_true(log_has(&daemon, "memory is short", "--arena"));
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* With keys it is the key that has a share, not the address: two behind one proxy do not share one,
   and one key has no more from two addresses. */
static void keys_have_shares_of_their_own(void **state) {
    enum { EACH = 5, PART = 2 * MIB };
    static char bytes[PART];
    struct keyfolder folder;
    struct secret alice, bob, watch;
    struct daemon daemon;
    int fds[EACH];
    (void)state;
    keyfolder_make(&folder);
    secret_make(&alice, "--id alice --scopes compute");
    secret_make(&bob, "--id bob --scopes compute");
    secret_make(&watch, "--id watch --scopes read");
    const struct secret *const all[] = {&alice, &bob, &watch};
    secrets_write(&folder, all, 3, "");
    const char *const flags[] = {PATIENT, "--arena", "16M", "--keys", folder.keys, NULL};
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    session_header(session, watch.header);
    double before = metric_get(session, "kiln_arena_used_bytes");
    for (int i = 0; i < EACH; i++) {
        fds[i] = head_send_with(&daemon, i % 2 ? "127.0.0.2" : "127.0.0.1", PART, alice.header);
        assert_true(send_all(fds[i], bytes, PART - 100));
        wait_for(session, "kiln_arena_used_bytes", before + (i + 1.0) * PART, 1e9);
    }
    assert_int_equal(metric_get(session, "kiln_arena_clients"), 1);
    int third = head_send_with(&daemon, "127.0.0.3", PART, alice.header);
    assert_int_equal(status_read(third), 503);
    close(third);
    int other = head_send_with(&daemon, "127.0.0.1", PART, bob.header);
    assert_true(send_all(other, bytes, PART - 100));
    wait_for(session, "kiln_arena_used_bytes", before + (EACH + 1.0) * PART, 1e9);
    assert_int_equal(metric_get(session, "kiln_arena_clients"), 2);
    assert_true(log_has(&daemon, "memory is short", "most is held by alice "));
    close(other);
    for (int i = 0; i < EACH; i++) {
        close(fds[i]);
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
    keyfolder_remove(&folder);
}

/* A body that is refused for want of room is answered as such, whether it was from its head or on
   its way; a body that fits no arena is told so. */
static void refusals_are_answers(void **state) {
    enum { HELD = 5, PART = 2 * MIB };
    static const char *const flags[] = {PATIENT, "--arena", "16M", "--max-body", "64M", NULL};
    static char bytes[PART];
    struct daemon daemon;
    int fds[HELD];
    (void)state;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    double before = metric_get(session, "kiln_arena_used_bytes");
    int fd = head_send(&daemon, "127.0.0.1", 16 * MIB);
    assert_int_equal(status_read(fd), 413);
    close(fd);
    int late = head_send(&daemon, "127.0.0.1", PART);
    wait_for(session, "kiln_arena_used_bytes", before + 1, 1e9);
    for (int i = 0; i < HELD; i++) { /* ten of the sixteen: two thirds are ten and a half */
        fds[i] = head_send(&daemon, "127.0.0.1", PART);
        assert_true(send_all(fds[i], bytes, PART - 100));
        wait_for(session, "kiln_arena_used_bytes", before + (i + 1.0) * PART, 1e9);
    }
    assert_int_equal(metric_get(session, "kiln_arena_over_share_total"), 0);
    fd = head_send(&daemon, "127.0.0.1", 8 * MIB);
    assert_int_equal(status_read(fd), 503);
    close(fd);
    /* this one's head came when there was room */
    assert_true(send_all(late, bytes, PART - 3));
    assert_int_equal(status_read(late), 503);
    close(late);
    for (int i = 0; i < HELD; i++) {
        close(fds[i]);
    }
    assert_int_equal(small_job(&daemon, "127.0.0.1"), 200);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* More than enough for the general rule (512 bytes a second), and far too little for what is held:
   cut. What is small may take its time. */
static void who_holds_much_has_to_be_quick(void **state) {
    static const char *const flags[] = {
        "--arena", "64M", "--max-body", "16M", "--idle-timeout", "3", "--transfer-timeout",
        "60",      NULL};
    static char bytes[4 * MIB];
    struct daemon daemon;
    struct pollfd small = {.events = 0};
    char sink[2048];
    (void)state;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    double before = metric_get(session, "kiln_arena_used_bytes");
    /* 16 MB of answer, and half a body: both want more than 64 KiB a second */
    const char get[] =
        "GET /v1/mandelbrot?format=raw&width=2048&height=2048&max_iter=2 HTTP/1.1\r\n"
        "Host: x\r\n\r\n";
    int reader = open_from(&daemon, "127.0.0.2");
    assert_true(send_all(reader, get, sizeof get - 1));
    int writer = head_send(&daemon, "127.0.0.3", 15 * MIB);
    assert_true(send_all(writer, bytes, sizeof bytes));
    small.fd = head_send(&daemon, "127.0.0.4", 200000);
    double end = now_s() + PATIENCE_S;
    wait_for(session, "kiln_arena_clients", 2, 1e9);
    /* The writer is cut; the reader too, or by the library's own timeout where the kernel's buffers
       keep it from sending anything for so long. */
    while (metric_get(session, "kiln_arena_clients") > 0) {
        assert_true(now_s() < end);
        ssize_t ignored = send(writer, bytes, 256, MSG_NOSIGNAL | MSG_DONTWAIT);
        ignored = send(small.fd, bytes, 512, MSG_NOSIGNAL | MSG_DONTWAIT);
        ignored = recv(reader, sink, sizeof sink, MSG_DONTWAIT);
        (void)ignored;
        sleep_s(0.1);
    }
    assert_true(metric_get(session, "kiln_connections_cut_total") >= 1);
    assert_true(metric_get(session, "kiln_arena_used_bytes") <= before + 65536);
    assert_true(poll(&small, 1, 0) == 0); /* still there */
    close(small.fd);
    close(writer);
    close(reader);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* However steadily the bytes come: after a transfer-timeout it is over. */
static void a_body_ends_in_time(void **state) {
    static const char *const flags[] = {"--idle-timeout", "1", "--transfer-timeout", "3", NULL};
    static char bytes[1024];
    struct daemon daemon;
    (void)state;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    int writer = head_send(&daemon, "127.0.0.2", 60 * MIB);
    double end = now_s() + PATIENCE_S;
    while (metric_get(session, "kiln_connections_cut_total") < 1) {
        assert_true(now_s() < end);
        for (int i = 0; i < 200; i++) { /* as fast as anybody may ask */
            ssize_t ignored = send(writer, bytes, sizeof bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
            (void)ignored;
        }
        sleep_s(0.05);
    }
    close(writer);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* A result that no arena of this size can ever hold is refused at once, with figures. */
static void what_never_fits_is_refused_at_once(void **state) {
    static const char *const flags[] = {"--arena", "8M", NULL};
    struct daemon daemon;
    struct answer answer;
    (void)state;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    /* 4 bytes a pixel, just below the whole arena and above what jobs may have */
    session_get(session, "/v1/mandelbrot?format=raw&width=2048&height=1000&max_iter=2", &answer);
    assert_status(&answer, 507);
    assert_non_null(strstr(answer.body, "--arena"));
    answer_free(&answer);
    session_get(session, "/v1/mandelbrot?format=raw&width=2048&height=940&max_iter=2", &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* ---- descriptors ---- */

/* $KILND becomes a program that starts the real one with this limit of open files. */
static void limit_set(char path[64], int limit, char *real, size_t size) {
    char script[512];
    snprintf(real, size, "%s", getenv("KILND"));
    snprintf(path, 64, "/tmp/kiln-limited-XXXXXX");
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    int length = snprintf(script, sizeof script, "#!/bin/sh\nulimit -n %d\nexec \"%s\" \"$@\"\n",
                          limit, real);
    assert_int_equal(write(fd, script, (size_t)length), length);
    assert_int_equal(fchmod(fd, 0700), 0);
    close(fd);
    setenv("KILND", path, 1);
}

static void limit_unset(const char *path, const char *real) {
    setenv("KILND", real, 1);
    unlink(path);
}

/* As many connections as a flood can have, and then the worker dies: there is room for the next. */
static void a_flood_leaves_descriptors(void **state) {
    enum { FLOOD = 300 };
    static const char *const flags[] = {
        PATIENT, "--device", "cpu", "--connections", "100000", "--connections-per-address",
        "0",     NULL};
    static int fds[FLOOD];
    struct daemon daemon;
    char path[64], real[256];
    (void)state;
    limit_set(path, 160, real, sizeof real);
    daemon_start(&daemon, flags);
    limit_unset(path, real);
    struct session *session = session_create(&daemon);
    double most = metric_get(session, "kiln_connections_most");
    assert_true(most >= 16 && most < 160);
    assert_true(log_has(&daemon, "--connections 100000", "limit of open files"));
    pid_t worker = worker_pid(session);
    assert_true(worker > 0);
    for (int i = 0; i < FLOOD; i++) {
        fds[i] = raw_open(&daemon);
        send(fds[i], "GET /healthz HTTP/1.1\r\n", 23, MSG_NOSIGNAL);
    }
    wait_for(session, "kiln_connections_refused_total", FLOOD - most + 1, 1e9);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(kill(worker, SIGKILL), 0);
        wait_for(session, "kiln_device_respawns_total{device=\"cpu:0\"}", i + 1, 1e9);
        wait_for(session, "kiln_device_ready{device=\"cpu:0\"}", 1, 1);
        worker = worker_pid(session);
    }
    ready_check(session);
    assert_false(log_has(&daemon, "could not be started", ""));
    for (int i = 0; i < FLOOD; i++) {
        close(fds[i]);
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* With what `ulimit -n 64` leaves it serves a few; with less it says what is wrong and ends. */
static void few_descriptors_are_told_of(void **state) {
    struct daemon daemon;
    char path[64], real[256];
    (void)state;
    static const char *const flags[] = {"--device", "cpu", NULL};
    limit_set(path, 64, real, sizeof real);
    daemon_start(&daemon, flags);
    limit_unset(path, real);
    assert_int_equal(small_job(&daemon, "127.0.0.1"), 200);
    assert_true(log_has(&daemon, "limit of open files", "64"));
    assert_int_equal(daemon_stop(&daemon), 0);
    limit_set(path, 24, real, sizeof real);
    const char *const arguments[] = {"--listen", "127.0.0.1:0", "--device", "cpu", NULL};
    int code = daemon_run(arguments);
    limit_unset(path, real);
    assert_int_equal(code, 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(heads_take_nothing),
        cmocka_unit_test(nobody_takes_all),
        cmocka_unit_test(keys_have_shares_of_their_own),
        cmocka_unit_test(refusals_are_answers),
        cmocka_unit_test(who_holds_much_has_to_be_quick),
        cmocka_unit_test(a_body_ends_in_time),
        cmocka_unit_test(what_never_fits_is_refused_at_once),
        cmocka_unit_test(a_flood_leaves_descriptors),
        cmocka_unit_test(few_descriptors_are_told_of),
    };
    return cmocka_run_group_tests_name("api.memory", tests, NULL, NULL);
}
