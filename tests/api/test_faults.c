/*
 * test_faults.c: each allocation of a request, in the front and in the worker, fails once.
 *
 * kilnd runs with the allocator of tests/faults/ before the C library's. Each kind of request is
 * made once for every allocation that it needs, and that one fails. Then: no crash, a problem
 * document where there is an answer, the same request right afterwards is answered as ever, and
 * what is allocated at the end is what was at the beginning.
 */
#include "tests/api/lib_acceptance.h"
#include "tests/api/lib_daemon.h"
#include "tests/faults/control.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define JSON    "application/json"
#define ROUNDS  400 /* no request needs as many allocations */
#define LIVE_MS 5000

static struct daemon daemon_;
static struct fault_block *blocks;
static int seen[3]; /* answers while something failed */
enum { SEEN_RIGHT, SEEN_PROBLEM, SEEN_CUT };
static char port_path[64];
static char path[] = "/tmp/kiln-faults-XXXXXX";

static const struct request requests[] = {
    {.path = "/v1/mandelbrot?width=40&height=30"},
    {.path = "/v1/mandelbrot?width=40&height=30&format=npy"},
    {.path = "/v1/mandelbrot?width=40&height=30&shade=true&compression=small"},
    {.path = "/v1/mandelbrot?width=40&widht=3"},
    {.path = "/v1/mandelbrot/tiles/2/1/1.png"},
    {.path = "/v1/mandelbrot", .type = JSON, .body = "{\"width\":20,\"height\":10}"},
    {.path = "/v1/mandelbrot",
     .type = "application/x-www-form-urlencoded",
     .body = "width=20&height=10"},
    {.path = "/v1/mandelbrot",
     .type = "multipart/form-data; boundary=b",
     .body = "--b\r\nContent-Disposition: form-data; name=\"width\"\r\n\r\n9\r\n--b--"},
    {.path = "/v1/laplacian", .type = "application/octet-stream", .body = "P2\n2 1\n255\n1 2\n"},
    {.path = "/v1/laplacian?format=npy", .type = JSON, .body = "{\"image\":\"UDIKMSAxCjI1NQox\"}"},
    {.path = "/v1/jacobi?iterations=5",
     .type = "application/octet-stream",
     .body = "P2\n2 1\n255\n1 2\n"},
    {.path = "/v1/jacobi?iterations=50&method=exact",
     .type = "application/octet-stream",
     .body = "P2\n2 2\n255\n1 2 3 4\n"},
    {.path = "/v1/lombscargle",
     .type = JSON,
     .body = "{\"t\":[1,2,3.5,4],\"y\":[1,2,4,1],\"fields\":\"peaks\"}"},
    {.path = "/v1/lombscargle?format=csv", .type = "text/csv", .body = "1,2\n2,3\n3,4.5\n4,5\n"},
    {.path = "/v1/lombscargle?format=png",
     .type = JSON,
     .body = "{\"t\":[1,2,3.5,4],\"y\":[1,2,4,1]}"},
    {.path = "/v1/jobs"},
    {.path = "/v1/jobs/types"},
    {.path = "/v1/devices"},
    {.path = "/metrics"},
    {.path = "/openapi.yaml"},
    {.path = "/"},
    {.path = "/problems"},
    {.path = "/nothing"},
};
#define REQUESTS (sizeof requests / sizeof requests[0])

static int setup(void **state) {
    size_t size = FAULT_ROLES * sizeof *blocks;
    int fd = mkstemp(path);
    (void)state;
    assert_true(fd >= 0 && ftruncate(fd, (off_t)size) == 0);
    blocks = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    assert_true(blocks != MAP_FAILED);
    close(fd);
    setenv("KILN_FAULTS", path, 1);
    setenv("LD_PRELOAD", getenv("KILN_ALLOCATOR"), 1);
    daemon_start(&daemon_, NULL);
    unsetenv("LD_PRELOAD"); /* for this program's own children it would count nothing */
    return 0;
}

static int teardown(void **state) {
    (void)state;
    unlink(path);
    return daemon_stop(&daemon_);
}

/* On a connection of its own, so that accepting it is part of what fails. */
static void ask(const struct request *request, struct answer *answer) {
    struct session *session = session_create(&daemon_);
    session_ask(session, request, answer);
    session_destroy(session);
}

static bool alive(void) {
    return kill(daemon_.pid, 0) == 0;
}

/* What an answer may be while an allocation fails: none, the right one, or a problem. */
static void assert_clear(const struct answer *answer, int right, const char *what) {
    char type[64] = "";
    bool problem = answer_header(answer, "Content-Type", type, sizeof type) &&
                   strcmp(type, "application/problem+json") == 0;
    bool server_fault = answer->status == 500 || answer->status == 503 || answer->status == 507;
    if (answer->status != 0 && answer->status != right && !(server_fault && problem)) {
        fail_msg("%s: %d %s: %.300s", what, answer->status, type, answer->body);
    }
    seen[answer->status == right ? SEEN_RIGHT : answer->status != 0 ? SEEN_PROBLEM : SEEN_CUT]++;
}

/* Fails each allocation of one request in one process; returns how many there were. */
static int each_fails(const struct request *request, enum fault_role role, int right) {
    char what[200];
    int n = 1;
    for (; n < ROUNDS; n++) {
        struct answer answer;
        uint64_t failed = atomic_load(&blocks[role].failed);
        atomic_store(&blocks[role].countdown, n);
        ask(request, &answer);
        atomic_store(&blocks[role].countdown, 0);
        bool hit = atomic_load(&blocks[role].failed) > failed;
        snprintf(what, sizeof what, "%s, allocation %d of the %s", request->path, n,
                 role == FAULT_FRONT ? "front" : "worker");
        if (!alive()) {
            fail_msg("%s: the daemon died", what);
        }
        assert_clear(&answer, right, what);
        answer_free(&answer);
        ask(request, &answer);
        if (answer.status != right) {
            fail_msg("%s: the next request got %d: %.300s", what, answer.status, answer.body);
        }
        answer_free(&answer);
        if (!hit) {
            break;
        }
    }
    assert_true(n < ROUNDS);
    return n - 1;
}

static int round_run(enum fault_role role) {
    int total = 0;
    for (size_t i = 0; i < REQUESTS; i++) {
        struct answer answer;
        ask(&requests[i], &answer);
        int right = answer.status;
        answer_free(&answer);
        assert_true(right == 200 || right == 404 || right == 422);
        total += each_fails(&requests[i], role, right);
    }
    return total;
}

static int descriptors_count(void) {
    char folder[64];
    int count = 0;
    snprintf(folder, sizeof folder, "/proc/%d/fd", (int)daemon_.pid);
    DIR *directory = opendir(folder);
    assert_non_null(directory);
    while (readdir(directory) != NULL) {
        count++;
    }
    closedir(directory);
    return count;
}

/* Waits until nothing more than before is allocated: connections end a moment after the answer. */
static void assert_nothing_held(const int64_t *live, int descriptors) {
    int64_t now[FAULT_ROLES] = {0};
    int open_now = 0;
    for (int i = 0; i < LIVE_MS / 10; i++) {
        for (int role = 0; role < FAULT_ROLES; role++) {
            now[role] = atomic_load(&blocks[role].live);
        }
        open_now = descriptors_count();
        if (now[0] <= live[0] && now[1] <= live[1] && open_now <= descriptors) {
            print_message("  front %+lld blocks, worker %+lld, descriptors %+d\n",
                          (long long)(now[0] - live[0]), (long long)(now[1] - live[1]),
                          open_now - descriptors);
            return;
        }
        sleep_s(0.01);
    }
    fail_msg("held: front %lld of %lld, worker %lld of %lld, descriptors %d of %d",
             (long long)now[0], (long long)live[0], (long long)now[1], (long long)live[1], open_now,
             descriptors);
}

static void allocations(void **state) {
    int64_t live[FAULT_ROLES];
    (void)state;
    struct session *session = session_create(&daemon_);
    pid_t worker = worker_pid(session);
    int counts[FAULT_ROLES];
    for (int role = 0; role < FAULT_ROLES; role++) { /* pools and tables reach their size */
        round_run((enum fault_role)role);
    }
    sleep_s(0.3);
    int descriptors = descriptors_count();
    for (int role = 0; role < FAULT_ROLES; role++) {
        live[role] = atomic_load(&blocks[role].live);
    }
    memset(seen, 0, sizeof seen);
    for (int role = 0; role < FAULT_ROLES; role++) {
        counts[role] = round_run((enum fault_role)role);
    }
    acceptance_print(
        true, "each malloc and driver call failed once", "no crash, next request fine",
        "%zu kinds of requests: %d allocations of the front, %d of the worker; answered "
        "right %d, with a problem %d, cut off %d; the next one always right",
        REQUESTS, counts[FAULT_FRONT], counts[FAULT_WORKER], seen[SEEN_RIGHT], seen[SEEN_PROBLEM],
        seen[SEEN_CUT]);
    assert_true(counts[FAULT_FRONT] > 0);
    assert_nothing_held(live, descriptors);
    assert_int_equal(worker_pid(session), worker);
    assert_true(metric_get(session, "kiln_active_requests") == 1);
    session_destroy(session);
}

/* Starts kilnd with this allocation failing; true if it became ready. It ends with 0 then, else
   with a code of its own and never by a signal. */
static bool start_with(enum fault_role role, int n) {
    const char *const arguments[] = {"--listen", "127.0.0.1:0", "--port-file", port_path,
                                     "--device", "cpu",         "--threads",   "1",
                                     "--arena",  "64M",         NULL};
    struct daemon daemon = {0};
    bool ready = false;
    unlink(port_path);
    setenv("LD_PRELOAD", getenv("KILN_ALLOCATOR"), 1);
    atomic_store(&blocks[role].countdown, n);
    daemon_spawn(&daemon, arguments);
    unsetenv("LD_PRELOAD");
    double end = now_s() + 30;
    while (!ready && daemon_alive(&daemon) && now_s() < end) {
        sleep_s(0.005);
        ready = daemon_ready(&daemon, port_path);
    }
    atomic_store(&blocks[role].countdown, 0);
    bool lives = daemon_alive(&daemon);
    if (lives) {
        daemon_signal(&daemon, SIGTERM);
    }
    int code = daemon_wait(&daemon);
    if (lives != ready || code < 0 || (lives && code != 0)) {
        fail_msg("allocation %d of the %s at the start: ready %d, exit code %d", n,
                 role == FAULT_FRONT ? "front" : "worker", ready, code);
    }
    return ready;
}

/* Every seventh allocation of a start fails; each of them with KILN_SOAK set. */
static void start(void **state) {
    int stride = acceptance_is_long() ? 1 : 7;
    (void)state;
    snprintf(port_path, sizeof port_path, "%s.port", path);
    for (int role = 0; role < FAULT_ROLES; role++) {
        int tried = 0, ready = 0;
        uint64_t failed;
        int n = 1;
        do {
            failed = atomic_load(&blocks[role].failed);
            ready += start_with((enum fault_role)role, n);
            n += stride;
            tried++;
        } while (atomic_load(&blocks[role].failed) > failed && n < 5000);
        acceptance_print(n < 5000 && ready > 0, "each malloc and driver call failed once",
                         "no crash, next request fine",
                         "%d starts with an allocation of the %s failing, %d of them ready all the "
                         "same, the others ended with a code",
                         tried, role == FAULT_FRONT ? "front" : "worker", ready);
        assert_true(n < 5000 && ready > 0);
    }
    unlink(port_path);
}

int main(void) {
    if (getenv("KILN_ALLOCATOR") == NULL) {
        puts("KILN_ALLOCATOR does not say where the failing allocator is");
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(allocations), cmocka_unit_test(start)};
    return cmocka_run_group_tests_name("api.faults", tests, setup, teardown);
}
