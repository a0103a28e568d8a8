/*
 * test_cache.c: what is answered without running a job: kept results, shared jobs, and what
 * happens to those who share when the first one leaves, runs out of time, or the worker dies.
 */
#include "tests/api/lib_decode.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define HIT    "kiln; hit"
#define STORED "kiln; fwd=miss; stored"
#define SHARED "kiln; fwd=miss; collapsed"

#define VIEW "/v1/mandelbrot?width=40&height=30&format=npy"
/* Far too many to end by themselves in any test. */
#define ENDLESS 100000000000L

static const char *const flags[] = {"--cache-bytes", "64M",     "--max-iterations",
                                    "1000000000000", "--slots", "2",
                                    "--queue",       "64",      NULL};

static struct daemon daemon_;
static struct session *session;

static int setup(void **state) {
    (void)state;
    daemon_start(&daemon_, flags);
    session = session_create(&daemon_);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    session_destroy(session);
    return daemon_stop(&daemon_);
}

static double submitted(void) {
    return metric_get(session, "kiln_jobs_submitted_total");
}

static void metric_wait(const char *name, double least) {
    double end = now_s() + 60;
    while (metric_get(session, name) < least) {
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
}

/* GET with a header, and what its Cache-Status must be. */
static void get(const char *path, const char *header, const char *status, struct answer *answer) {
    const struct request request = {.path = path, .headers = {header}};
    session_ask(session, &request, answer);
    assert_status(answer, 200);
    assert_header(answer, "Cache-Status", status);
}

static void assert_same(const struct answer *one, const struct answer *other) {
    char first[64], second[64];
    assert_int_equal(one->size, other->size);
    assert_memory_equal(one->body, other->body, one->size);
    assert_true(answer_header(one, "ETag", first, sizeof first));
    assert_header(other, "ETag", first);
    assert_true(answer_header(one, "Kiln-Job", second, sizeof second));
    assert_header(other, "Kiln-Job", second);
}

static void kept(void **state) {
    (void)state;
    struct answer first, answer;
    char value[256];
    double before = submitted();
    get(VIEW, NULL, STORED, &first);
    assert_false(answer_header(&first, "Age", value, sizeof value));
    /* as it was, and spelled otherwise */
    static const char *const paths[] = {VIEW, VIEW, "/v1/mandelbrot?format=npy&height=30&width=40",
                                        VIEW "&max_iter=400"};
    for (size_t i = 0; i < 4; i++) {
        get(paths[i], NULL, HIT, &answer);
        assert_same(&first, &answer);
        assert_header(&answer, "Content-Type", "application/x-npy");
        assert_header(&answer, "Cache-Control", "public, max-age=86400");
        assert_header(&answer, "Server-Timing", "cache;desc=\"hit\"");
        assert_header(&answer, "Kiln-Precision", "fp32;ulps=314573");
        assert_true(answer_header(&answer, "Age", value, sizeof value));
        assert_int_equal(strspn(value, "0123456789"), strlen(value));
        answer_free(&answer);
    }
    const struct request posted = {.path = "/v1/mandelbrot",
                                   .type = "application/json",
                                   .body = "{\"width\":40,\"height\":30,\"format\":\"npy\"}"};
    session_ask(session, &posted, &answer);
    assert_header(&answer, "Cache-Status", HIT);
    assert_same(&first, &answer);
    answer_free(&answer);
    const struct request head = {.method = "HEAD", .path = VIEW};
    session_ask(session, &head, &answer);
    assert_status(&answer, 200);
    assert_header(&answer, "Cache-Status", HIT);
    snprintf(value, sizeof value, "%zu", first.size);
    assert_header(&answer, "Content-Length", value);
    answer_free(&answer);
    assert_true(submitted() == before + 1);
    /* the client's copy is still asked about first */
    get(VIEW, "If-None-Match: \"other\"", HIT, &answer);
    answer_free(&answer);
    answer_free(&first);
}

/* Age says how long ago; an answer that is kept ready is made anew for it. */
static void grows_old(void **state) {
    (void)state;
    struct answer answer;
    char value[32];
    double end = now_s() + 30;
    get(VIEW "&max_iter=77", NULL, STORED, &answer);
    answer_free(&answer);
    do {
        sleep_s(0.1);
        get(VIEW "&max_iter=77", NULL, HIT, &answer);
        assert_true(answer_header(&answer, "Age", value, sizeof value));
        answer_free(&answer);
        assert_true(now_s() < end);
    } while (atoi(value) < 2);
    get(VIEW "&max_iter=77", "Cache-Control: max-age=600", HIT, &answer);
    answer_free(&answer);
    get(VIEW "&max_iter=77", "Cache-Control: max-age=1", "kiln; fwd=miss; stored", &answer);
    answer_free(&answer);
}

/* JSON tells the timing of the run that made it. */
static void json(void **state) {
    (void)state;
    struct answer first, answer;
    get("/v1/mandelbrot?width=41&height=30&format=json", NULL, STORED, &first);
    get("/v1/mandelbrot?width=41&height=30", "Accept: application/json", HIT, &answer);
    assert_same(&first, &answer);
    assert_header(&answer, "Vary", "Accept");
    answer_free(&answer);
    get("/v1/mandelbrot?width=41&height=30&format=json", NULL, HIT, &answer);
    char value[16];
    assert_false(answer_header(&answer, "Vary", value, sizeof value));
    answer_free(&answer);
    answer_free(&first);
}

static void directives(void **state) {
    (void)state;
    static const char *const own[] = {"Cache-Control: no-cache", "Cache-Control: max-age=0",
                                      "cache-control: foo, No-Cache"};
    struct answer answer;
    double before = submitted();
    get(VIEW "&gamma=0.5", "Cache-Control: no-store", "kiln; fwd=request", &answer);
    answer_free(&answer);
    get(VIEW "&gamma=0.5", NULL, STORED, &answer); /* it was not kept */
    answer_free(&answer);
    for (size_t i = 0; i < 3; i++) {
        get(VIEW "&gamma=0.5", own[i], "kiln; fwd=request; stored", &answer);
        answer_free(&answer);
    }
    get(VIEW "&gamma=0.5", "Cache-Control: no-transform, max-stale=5", HIT, &answer);
    answer_free(&answer);
    assert_true(submitted() == before + 5);
}

/* What failed is tried again every time. */
static void failures(void **state) {
    (void)state;
    struct answer answer;
    double entries = metric_get(session, "kiln_cache_entries"), before = submitted();
    static const char broken[] = "\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x10\0\0\0\x10\x08\0\0\0\0";
    const struct {
        struct request request;
        int status;
    } rows[] = {
        {{.path = "/v1/mandelbrot?width=0"}, 422},
        {{.path = "/v1/mandelbrot/tiles/3/9/9.png"}, 404},
        {{.path = "/v1/nothing"}, 404},
        {{.path = "/v1/mandelbrot?width=20&format=csv"}, 406},
        {{.path = "/v1/laplacian", .type = "image/png", .body = broken, .size = sizeof broken},
         400},
    };
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            char value[64];
            session_ask(session, &rows[i].request, &answer);
            assert_status(&answer, rows[i].status);
            assert_false(answer_header(&answer, "Cache-Status", value, sizeof value));
            assert_false(answer_header(&answer, "ETag", value, sizeof value));
            answer_free(&answer);
        }
    }
    assert_true(metric_get(session, "kiln_cache_entries") == entries);
    assert_true(submitted() >= before);
}

/* ---- bodies ---- */

/* A picture of 32 × 32 whose bytes depend on `seed`. */
static size_t picture_make(char bytes[1100], unsigned seed) {
    size_t head = (size_t)snprintf(bytes, 1100, "P5\n32 32\n255\n");
    for (unsigned i = 0; i < 32 * 32; i++) {
        bytes[head + i] = (char)(i * 37u + seed);
    }
    return head + 32 * 32;
}

static void bodies(void **state) {
    (void)state;
    char bytes[1100], part[1600];
    struct answer first, answer;
    size_t size = picture_make(bytes, 1);
    struct request request = {.path = "/v1/laplacian?format=npy",
                              .type = "image/x-portable-graymap",
                              .body = bytes,
                              .size = size};
    session_ask(session, &request, &first);
    assert_header(&first, "Cache-Status", STORED);
    session_ask(session, &request, &answer);
    assert_header(&answer, "Cache-Status", HIT);
    assert_same(&first, &answer);
    answer_free(&answer);
    /* the same picture within a form */
    int head = snprintf(part, sizeof part,
                        "--b\r\nContent-Disposition: form-data; name=\"image\"; filename=\"x\"\r\n"
                        "Content-Type: image/x-portable-graymap\r\n\r\n");
    memcpy(part + head, bytes, size);
    memcpy(part + head + size, "\r\n--b--\r\n", 9);
    const struct request form = {.path = "/v1/laplacian?format=npy",
                                 .type = "multipart/form-data; boundary=b",
                                 .body = part,
                                 .size = (size_t)head + size + 9};
    session_ask(session, &form, &answer);
    assert_header(&answer, "Cache-Status", HIT);
    assert_same(&first, &answer);
    answer_free(&answer);
    bytes[size - 1] ^= 1;
    session_ask(session, &request, &answer);
    assert_header(&answer, "Cache-Status", STORED);
    answer_free(&answer);
    answer_free(&first);
}

/* ---- sharing ---- */

#define CLIENTS 8

/* One client in a thread of its own, with a job as long as its sweeps. */
struct client {
    pthread_t thread;
    const struct daemon *daemon;
    long sweeps;
    struct answer answer;
    double took;
};

static void *client_run(void *argument) {
    struct client *client = argument;
    char path[96], bytes[1100];
    struct session *own = session_create(client->daemon);
    snprintf(path, sizeof path, "/v1/jacobi?format=npy&method=sweeps&iterations=%ld",
             client->sweeps);
    const struct request request = {.path = path,
                                    .type = "image/x-portable-graymap",
                                    .body = bytes,
                                    .size = picture_make(bytes, 0)};
    double began = now_s();
    session_ask(own, &request, &client->answer);
    client->took = now_s() - began;
    session_destroy(own);
    return NULL;
}

static void client_start(struct client *client, const struct daemon *daemon, long sweeps) {
    *client = (struct client){.daemon = daemon, .sweeps = sweeps};
    assert_int_equal(pthread_create(&client->thread, NULL, client_run, client), 0);
}

/* Sweeps that take about a second here, and always another number. */
static long sweeps_of_a_second(void) {
    static long sweeps;
    for (long n = 50000; sweeps == 0; n *= 4) {
        struct client client = {.daemon = &daemon_, .sweeps = n};
        client_run(&client);
        assert_status(&client.answer, 200);
        answer_free(&client.answer);
        sweeps = client.took > 0.15 ? (long)((double)n / client.took) : 0;
    }
    return ++sweeps;
}

#define SHARED_COUNT "kiln_cache_requests_total{result=\"shared\"}"

static void shared(void **state) {
    (void)state;
    struct client clients[CLIENTS];
    long sweeps = sweeps_of_a_second();
    double before = submitted(), shares = metric_get(session, SHARED_COUNT);
    int collapsed = 0, stored = 0;
    for (int i = 0; i < CLIENTS; i++) {
        client_start(&clients[i], &daemon_, sweeps);
    }
    for (int i = 0; i < CLIENTS; i++) {
        char status[64];
        pthread_join(clients[i].thread, NULL);
        assert_status(&clients[i].answer, 200);
        assert_same(&clients[0].answer, &clients[i].answer);
        assert_true(answer_header(&clients[i].answer, "Cache-Status", status, sizeof status));
        collapsed += strcmp(status, SHARED) == 0;
        stored += strcmp(status, STORED) == 0;
        if (strcmp(status, SHARED) == 0) {
            char timing[128];
            assert_true(answer_header(&clients[i].answer, "Server-Timing", timing, sizeof timing));
            assert_int_equal(strncmp(timing, "cache;desc=\"shared\", total;dur=", 31), 0);
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        answer_free(&clients[i].answer);
    }
    assert_int_equal(stored, 1);
    assert_int_equal(collapsed, CLIENTS - 1); /* a second is enough for all to come */
    assert_true(submitted() == before + 1);
    assert_true(metric_get(session, SHARED_COUNT) == shares + CLIENTS - 1);
}

/* A plain connection that has asked and does not read. */
static int ask_raw(long sweeps) {
    char head[256], bytes[1100], out[16];
    bool closed;
    size_t size = picture_make(bytes, 0);
    int length = snprintf(head, sizeof head,
                          "POST /v1/jacobi?format=npy&method=sweeps&iterations=%ld HTTP/1.1\r\n"
                          "Host: x\r\nContent-Type: image/x-portable-graymap\r\n"
                          "Content-Length: %zu\r\n\r\n",
                          sweeps, size);
    int fd = raw_open(&daemon_);
    raw_exchange(fd, head, (size_t)length, out, sizeof out, 0, &closed);
    raw_exchange(fd, bytes, size, out, sizeof out, 0, &closed);
    return fd;
}

/* Who brought the job leaves, and some of the others do; the job goes on for the last one. */
static void leaver(void **state) {
    (void)state;
    struct client client;
    int fds[3];
    long sweeps = 2 * sweeps_of_a_second();
    double before = submitted(), shares = metric_get(session, SHARED_COUNT);
    double cancelled = metric_get(session, "kiln_jobs_cancelled_total");
    for (int i = 0; i < 3; i++) {
        fds[i] = ask_raw(sweeps);
        metric_wait("kiln_jobs_submitted_total", before + 1);
        metric_wait(SHARED_COUNT, shares + i);
    }
    client_start(&client, &daemon_, sweeps);
    metric_wait(SHARED_COUNT, shares + 3);
    for (int i = 0; i < 3; i++) {
        close(fds[i]);
    }
    pthread_join(client.thread, NULL);
    assert_status(&client.answer, 200);
    assert_header(&client.answer, "Cache-Status", SHARED);
    answer_free(&client.answer);
    assert_true(submitted() == before + 1);
    assert_true(metric_get(session, "kiln_jobs_cancelled_total") == cancelled);
}

/* When all have left, the job ends; who asks afterwards gets one of their own. */
static void all_leave(void **state) {
    (void)state;
    double shares = metric_get(session, SHARED_COUNT), before = submitted();
    double cancelled = metric_get(session, "kiln_jobs_cancelled_total");
    for (int round = 0; round < 2; round++) {
        int one = ask_raw(ENDLESS);
        metric_wait("kiln_jobs_submitted_total", before + round + 1);
        int other = ask_raw(ENDLESS);
        metric_wait(SHARED_COUNT, shares + round + 1);
        close(one);
        close(other);
        metric_wait("kiln_jobs_cancelled_total", cancelled + round + 1);
    }
    assert_true(submitted() == before + 2);
}

/* DELETE takes it away from all who wait for it. */
static void revoked(void **state) {
    (void)state;
    struct client clients[3];
    struct answer answer;
    double shares = metric_get(session, SHARED_COUNT);
    char path[64] = "";
    for (int i = 0; i < 3; i++) {
        client_start(&clients[i], &daemon_, ENDLESS + 1);
    }
    metric_wait(SHARED_COUNT, shares + 2);
    session_get(session, "/v1/jobs", &answer);
    const char *id = strstr(answer.body, "\"id\":\"");
    assert_non_null(id);
    snprintf(path, sizeof path, "/v1/jobs/%.36s", id + 6);
    answer_free(&answer);
    const struct request request = {.method = "DELETE", .path = path};
    session_ask(session, &request, &answer);
    assert_status(&answer, 204);
    answer_free(&answer);
    for (int i = 0; i < 3; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_status(&clients[i].answer, 409);
        answer_free(&clients[i].answer);
    }
}

/* The worker dies under them: all get the right bytes from the second run. */
static void worker_killed(void **state) {
    (void)state;
    struct client clients[CLIENTS];
    long sweeps = 2 * sweeps_of_a_second() + 1;
    double shares = metric_get(session, SHARED_COUNT), before = submitted();
    double retried = metric_get(session, "kiln_jobs_retried_total");
    for (int i = 0; i < CLIENTS; i++) {
        client_start(&clients[i], &daemon_, sweeps);
    }
    metric_wait(SHARED_COUNT, shares + CLIENTS - 1);
    pid_t worker = worker_pid(session);
    assert_true(worker > 0);
    kill(worker, SIGKILL);
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_status(&clients[i].answer, 200);
        assert_same(&clients[0].answer, &clients[i].answer);
    }
    assert_true(submitted() == before + 1);
    assert_true(metric_get(session, "kiln_jobs_retried_total") == retried + 1);
    /* kept results need no worker: they are served while it comes back */
    struct client again = {.daemon = &daemon_, .sweeps = sweeps};
    kill(worker_pid(session), SIGKILL);
    client_run(&again);
    assert_header(&again.answer, "Cache-Status", HIT);
    assert_same(&clients[0].answer, &again.answer);
    answer_free(&again.answer);
    for (int i = 0; i < CLIENTS; i++) {
        answer_free(&clients[i].answer);
    }
}

/* ---- daemons of their own ---- */

#define DEADLINE 2.0

/* Each has its own deadline: the first one's end does not end the second one's time. */
static void deadlines(void **state) {
    (void)state;
    static const char *const short_flags[] = {
        "--cache-bytes", "64M", "--max-iterations", "1000000000000", "--deadline", "2", NULL};
    struct client first, second;
    struct daemon other;
    struct session *before = session;
    daemon_start(&other, short_flags);
    session = session_create(&other);
    client_start(&first, &other, ENDLESS);
    metric_wait("kiln_jobs_submitted_total", 1);
    sleep_s(DEADLINE / 2);
    client_start(&second, &other, ENDLESS);
    metric_wait(SHARED_COUNT, 1);
    pthread_join(first.thread, NULL);
    pthread_join(second.thread, NULL);
    assert_status(&first.answer, 504);
    assert_status(&second.answer, 504);
    assert_true(first.took >= DEADLINE - 0.01);
    assert_true(second.took >= DEADLINE - 0.01); /* not when the first one's had passed */
    assert_true(metric_get(session, "kiln_jobs_submitted_total") == 2);
    answer_free(&first.answer);
    answer_free(&second.answer);
    session_destroy(session);
    session = before;
    assert_int_equal(daemon_stop(&other), 0);
}

/* A small cache under many results stays small, and blocks of the arena come back. */
static void bounded(void **state) {
    (void)state;
    static const char *const small_flags[] = {"--cache-bytes", "1M", NULL};
    struct daemon other;
    struct session *before = session;
    struct answer answer;
    daemon_start(&other, small_flags);
    session = session_create(&other);
    double used = metric_get(session, "kiln_arena_used_bytes");
    for (int i = 0; i < 800; i++) { /* each twice: a full cache wants to be asked again */
        char path[96];
        snprintf(path, sizeof path, "/v1/mandelbrot?width=64&height=32&format=npy&max_iter=%d",
                 100 + i / 2);
        session_get(session, path, &answer);
        assert_status(&answer, 200);
        answer_free(&answer);
    }
    assert_true(metric_get(session, "kiln_cache_used_bytes") <= 1 << 20);
    assert_true(metric_get(session, "kiln_cache_evicted_total") >= 100);
    assert_true(metric_get(session, "kiln_cache_entries") >= 32);
    double end = now_s() + 30;
    while (metric_get(session, "kiln_arena_used_bytes") > used) {
        assert_true(now_s() < end);
        sleep_s(0.05); /* a canary */
    }
    session_destroy(session);
    session = before;
    assert_int_equal(daemon_stop(&other), 0);
}

/* Without a cache every request runs its job. */
static void switched_off(void **state) {
    (void)state;
    static const char *const off_flags[] = {"--cache-bytes", "0", NULL};
    struct daemon other;
    struct session *before = session;
    struct answer answer;
    char value[64];
    daemon_start(&other, off_flags);
    session = session_create(&other);
    for (int i = 0; i < 3; i++) {
        session_get(session, VIEW, &answer);
        assert_status(&answer, 200);
        assert_false(answer_header(&answer, "Cache-Status", value, sizeof value));
        assert_true(answer_header(&answer, "ETag", value, sizeof value));
        answer_free(&answer);
    }
    assert_true(submitted() == 3);
    session_destroy(session);
    session = before;
    assert_int_equal(daemon_stop(&other), 0);
}

/* Large results are kept from the second asking on; they move into the cache's own memory, and the
   job's block goes back, while requests go on. */
static void large_ones_move(void **state) {
    (void)state;
    static const char path[] = "/v1/mandelbrot?width=1200&height=1000&max_iter=40&format=npy";
    struct answer first, answer;
    double used = metric_get(session, "kiln_cache_used_bytes");
    get(path, NULL, "kiln; fwd=miss", &first);
    assert_true(first.size >= 4800000);
    answer_free(&first);
    get(path, NULL, STORED, &first);
    for (int i = 0; i < 4; i++) { /* found at once, wherever it lies by now */
        get(path, NULL, HIT, &answer);
        assert_same(&first, &answer);
        answer_free(&answer);
    }
    metric_wait("kiln_cache_used_bytes", used + 4800000);
    for (double end = now_s() + 60; metric_get(session, "kiln_arena_used_bytes") > 1000000;) {
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
    get(path, NULL, HIT, &answer);
    assert_same(&first, &answer);
    answer_free(&answer);
    answer_free(&first);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kept),
        cmocka_unit_test(grows_old),
        cmocka_unit_test(json),
        cmocka_unit_test(directives),
        cmocka_unit_test(failures),
        cmocka_unit_test(bodies),
        cmocka_unit_test(shared),
        cmocka_unit_test(leaver),
        cmocka_unit_test(all_leave),
        cmocka_unit_test(revoked),
        cmocka_unit_test(worker_killed),
        cmocka_unit_test(deadlines),
        cmocka_unit_test(large_ones_move),
        cmocka_unit_test(bounded),
        cmocka_unit_test(switched_off),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
