/*
 * test_life.c: what happens when something ends: the daemon, a worker, a client, a deadline, room
 * in the queue.
 */
#include "tests/api/lib_decode.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS 32

#define PICTURE_MAX (32 + 32 * 32)

/* A 32 × 32 picture for jobs whose length is their number of sweeps; returns its size. */
static size_t picture(char bytes[PICTURE_MAX]) {
    size_t head = (size_t)snprintf(bytes, PICTURE_MAX, "P5\n32 32\n255\n");
    for (unsigned i = 0; i < 32 * 32; i++) {
        bytes[head + i] = (char)(i * 37u);
    }
    return head + 32 * 32;
}

static void sweeps_ask(struct session *session, long sweeps, struct answer *answer) {
    char path[96], bytes[PICTURE_MAX];
    size_t size = picture(bytes);
    snprintf(path, sizeof path, "/v1/jacobi?format=npy&iterations=%ld", sweeps);
    const struct request request = {
        .path = path, .type = "application/octet-stream", .body = bytes, .size = size};
    session_ask(session, &request, answer);
}

/* Sweeps that take about `seconds` on this machine. */
static long sweeps_of(struct session *session, double seconds) {
    long sweeps = 20000;
    for (;;) {
        struct answer answer;
        double began = now_s();
        sweeps_ask(session, sweeps, &answer);
        double took = now_s() - began;
        assert_status(&answer, 200);
        answer_free(&answer);
        if (took > 0.1) {
            return (long)((double)sweeps * seconds / took);
        }
        sweeps *= 4;
    }
}

static const char *const long_flags[] = {"--max-iterations", "1000000000000", "--drain-timeout",
                                         "120", NULL};

/* One client in a thread of its own. */
struct client {
    pthread_t thread;
    const struct daemon *daemon;
    long sweeps;
    struct answer answer;
};

static void *client_run(void *argument) {
    struct client *client = argument;
    struct session *session = session_create(client->daemon);
    sweeps_ask(session, client->sweeps, &client->answer);
    session_destroy(session);
    return NULL;
}

static void connections_start(struct client *clients, size_t count, const struct daemon *daemon,
                              long sweeps) {
    for (size_t i = 0; i < count; i++) {
        clients[i] = (struct client){.daemon = daemon, .sweeps = sweeps};
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_run, &clients[i]), 0);
    }
}

static void metric_wait(struct session *session, const char *name, double least) {
    double end = now_s() + 60;
    while (metric_get(session, name) < least) {
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
}

static void draining_wait(struct session *session) {
    double end = now_s() + 20;
    int status = 200;
    while (status == 200 && now_s() < end) {
        struct answer answer;
        session_get(session, "/readyz", &answer);
        status = answer.status;
        answer_free(&answer);
    }
    assert_int_equal(status, 503);
}

static void refused_check(const struct answer *answer) {
    char value[16];
    assert_status(answer, 503);
    assert_true(answer_header(answer, "Retry-After", value, sizeof value));
    assert_header(answer, "Content-Type", "application/problem+json");
    assert_non_null(strstr(answer->body, "/problems/draining"));
}

/* On a connection of its own, which ends with the answer. */
static void draining_expect(const struct daemon *daemon, const char *path, int status) {
    struct session *session = session_create(daemon);
    struct answer answer;
    session_get(session, path, &answer);
    assert_status(&answer, status);
    assert_header(&answer, "Connection", "close");
    if (status == 503) {
        refused_check(&answer);
    }
    answer_free(&answer);
    session_destroy(session);
}

/* A body is refused before it is read. */
static void draining_post(const struct daemon *daemon) {
    static const char head[] = "POST /v1/jacobi HTTP/1.1\r\nHost: localhost\r\n"
                               "Content-Type: image/png\r\nContent-Length: 1000000\r\n\r\n";
    char out[4096];
    bool closed;
    int fd = raw_open(daemon);
    raw_exchange(fd, head, sizeof head - 1, out, sizeof out, 20, &closed);
    close(fd);
    assert_true(closed);
    assert_memory_equal(out, "HTTP/1.1 503 ", 13);
    assert_non_null(strstr(out, "Retry-After:"));
}

/* SIGTERM while jobs run and wait: all of them are answered, then the daemon ends with 0. */
static void drain(void **state) {
    (void)state;
    struct client clients[6];
    struct daemon daemon;
    daemon_start(&daemon, long_flags);
    struct session *session = session_create(&daemon);
    long sweeps = sweeps_of(session, 0.4);
    double before = metric_get(session, "kiln_jobs_submitted_total");
    connections_start(clients, 6, &daemon, sweeps);
    metric_wait(session, "kiln_jobs_submitted_total", before + 6);
    daemon_signal(&daemon, SIGTERM);
    draining_wait(session);
    session_destroy(session);
    for (size_t i = 0; i < 6; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_status(&clients[i].answer, 200);
        npy_data(&clients[i].answer, "<f4", "(32, 32)");
        assert_int_equal(clients[i].answer.size, clients[0].answer.size);
        assert_memory_equal(clients[i].answer.body, clients[0].answer.body, clients[0].answer.size);
    }
    for (size_t i = 0; i < 6; i++) {
        answer_free(&clients[i].answer);
    }
    assert_int_equal(daemon_wait(&daemon), 0);
}

/* While a job runs, probes are answered, on connections old and new; new jobs are not taken. The
   job is cancelled then, so that nothing here depends on how fast it is. */
static void drain_probes(void **state) {
    char id[37], path[64];
    struct client client;
    struct daemon daemon;
    struct answer answer;
    (void)state;
    daemon_start(&daemon, long_flags);
    struct session *session = session_create(&daemon);
    long sweeps = sweeps_of(session, 300);
    double before = metric_get(session, "kiln_jobs_submitted_total");
    connections_start(&client, 1, &daemon, sweeps);
    metric_wait(session, "kiln_jobs_submitted_total", before + 1);
    daemon_signal(&daemon, SIGTERM);
    draining_wait(session);
    session_destroy(session);
    draining_expect(&daemon, "/readyz", 503);
    draining_expect(&daemon, "/healthz", 200);
    draining_expect(&daemon, "/v1/mandelbrot?width=8&height=8", 503);
    draining_post(&daemon);
    session = session_create(&daemon);
    session_get(session, "/v1/jobs", &answer);
    assert_status(&answer, 200);
    const char *found = strstr(answer.body, "\"id\":\"");
    assert_non_null(found);
    snprintf(id, sizeof id, "%.36s", found + 6);
    snprintf(path, sizeof path, "/v1/jobs/%s", id);
    answer_free(&answer);
    session_ask(session, &(struct request){.method = "DELETE", .path = path}, &answer);
    assert_status(&answer, 204);
    answer_free(&answer);
    session_destroy(session);
    pthread_join(client.thread, NULL);
    assert_status(&client.answer, 409);
    answer_free(&client.answer);
    assert_int_equal(daemon_wait(&daemon), 0);
}

/* A job that outlasts --drain-timeout is answered 503, and the daemon still ends with 0. */
static void drain_timeout(void **state) {
    (void)state;
    static const char *const flags[] = {"--max-iterations", "1000000000000", "--drain-timeout",
                                        "0.3", NULL};
    struct client client;
    struct daemon daemon;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    long sweeps = sweeps_of(session, 60);
    double before = metric_get(session, "kiln_jobs_submitted_total");
    connections_start(&client, 1, &daemon, sweeps);
    metric_wait(session, "kiln_jobs_submitted_total", before + 1);
    double began = now_s();
    daemon_signal(&daemon, SIGTERM);
    pthread_join(client.thread, NULL);
    assert_status(&client.answer, 503);
    answer_free(&client.answer);
    session_destroy(session);
    assert_int_equal(daemon_wait(&daemon), 0);
    assert_true(now_s() - began < 30);
}

/* An answer that nobody reads ends with --drain-timeout: the daemon used to wait for it after that
   once more. */
static void drain_unread(void **state) {
    static const char request[] = "GET /v1/mandelbrot?width=2000&height=2000&max_iter=2&format=raw "
                                  "HTTP/1.1\r\nHost: localhost\r\n\r\n";
    static const char *const flags[] = {"--drain-timeout", "1", NULL};
    struct daemon daemon;
    int small = 4096;
    (void)state;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    double before = metric_get(session, "kiln_jobs_completed_total");
    int fd = raw_open(&daemon);
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    assert_int_equal(send(fd, request, sizeof request - 1, MSG_NOSIGNAL), sizeof request - 1);
    metric_wait(session, "kiln_jobs_completed_total", before + 1);
    session_destroy(session);
    double began = now_s();
    daemon_signal(&daemon, SIGTERM);
    assert_int_equal(daemon_wait(&daemon), 0);
    double took = now_s() - began;
    close(fd);
    print_message("  ended after %.2f s with an answer unread\n", took);
    assert_true(took < 5); /* it was 6 */
}

/* A second signal does not wait. */
static void second_signal(void **state) {
    (void)state;
    struct client client;
    struct daemon daemon;
    daemon_start(&daemon, long_flags);
    struct session *session = session_create(&daemon);
    long sweeps = sweeps_of(session, 120);
    double before = metric_get(session, "kiln_jobs_submitted_total");
    connections_start(&client, 1, &daemon, sweeps);
    metric_wait(session, "kiln_jobs_submitted_total", before + 1);
    session_destroy(session);
    daemon_signal(&daemon, SIGTERM);
    sleep_s(0.3);
    daemon_signal(&daemon, SIGTERM);
    assert_int_equal(daemon_wait(&daemon), -SIGTERM);
    pthread_join(client.thread, NULL);
    assert_int_equal(client.answer.status, 0);
    answer_free(&client.answer);
}

/* Load for the death of a worker: every client compares every answer with what it must be. */
struct offload_task {
    pthread_t thread;
    const struct daemon *daemon;
    char path[160];
    char *expected;
    size_t size;
    const atomic_bool *stop;
    unsigned right, wrong;
};

static void *load_run(void *argument) {
    struct offload_task *load = argument;
    struct session *session = session_create(load->daemon);
    while (!atomic_load(load->stop)) {
        struct answer answer;
        session_get(session, load->path, &answer);
        bool right = answer.status == 200 && answer.size == load->size &&
                     memcmp(answer.body, load->expected, load->size) == 0;
        if (!right && load->wrong == 0) {
            print_message("  %s: %d %.300s\n", load->path, answer.status,
                          answer.status == 200 ? "other bytes" : answer.body);
        }
        load->right += right;
        load->wrong += !right;
        answer_free(&answer);
    }
    session_destroy(session);
    return NULL;
}

static void load_prepare(struct offload_task *load, struct session *session,
                         const struct daemon *daemon, size_t index, const atomic_bool *stop) {
    struct answer answer;
    *load = (struct offload_task){.daemon = daemon, .stop = stop};
    snprintf(load->path, sizeof load->path,
             "/v1/mandelbrot?format=raw&field=count&precision=fp64&width=%zu&height=64&"
             "max_iter=20000&xmin=-0.75&xmax=-0.74&ymin=0.1&ymax=%.3f",
             64 + index, 0.11 + 0.001 * (double)index);
    session_get(session, load->path, &answer);
    assert_status(&answer, 200);
    load->expected = answer.body;
    load->size = answer.size;
    answer.body = NULL;
    answer_free(&answer);
}

/* Kills the worker and returns the seconds until another one is ready. */
static double worker_kill(struct session *session) {
    pid_t pid = worker_pid(session), other;
    assert_true(pid > 0);
    double began = now_s();
    assert_int_equal(kill(pid, SIGKILL), 0);
    do {
        sleep_s(0.001);
        other = worker_pid(session);
        assert_true(now_s() - began < 60);
    } while (other == 0 || other == pid);
    return now_s() - began;
}

static void worker_death(void **state) {
    (void)state;
    static struct offload_task loads[CLIENTS];
    struct daemon daemon;
    atomic_bool stop = false;
    unsigned right = 0, wrong = 0;
    double worst = 0;
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    for (size_t i = 0; i < CLIENTS; i++) {
        load_prepare(&loads[i], session, &daemon, i, &stop);
    }
    for (size_t i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_create(&loads[i].thread, NULL, load_run, &loads[i]), 0);
    }
    for (int round = 0; round < 3; round++) {
        sleep_s(0.5);
        double took = worker_kill(session);
        worst = took > worst ? took : worst;
        print_message("  worker killed under %d connections: ready again after %.3f s\n", CLIENTS,
                      took);
    }
    sleep_s(0.3);
    atomic_store(&stop, true);
    for (size_t i = 0; i < CLIENTS; i++) {
        pthread_join(loads[i].thread, NULL);
        assert_true(loads[i].right > 0);
        right += loads[i].right;
        wrong += loads[i].wrong;
        free(loads[i].expected);
    }
    print_message("  %u right answers, %u wrong or failed\n", right, wrong);
    assert_int_equal(wrong, 0);
    assert_true(worst < 30); /* a bound for any machine; the figure above is the measure */
    assert_true(metric_get(session, "kiln_jobs_retried_total") >= 1);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* A client that hangs up has its job cancelled, running or waiting. */
static void client_gone(void **state) {
    (void)state;
    static const char *const flags[] = {"--max-iterations", "1000000000000", "--slots", "1", NULL};
    struct daemon daemon;
    struct answer answer;
    char head[256];
    char out[16], bytes[PICTURE_MAX];
    size_t size = picture(bytes);
    bool closed;
    int fds[2];
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    long sweeps = sweeps_of(session, 100);
    double before = metric_get(session, "kiln_jobs_cancelled_total");
    double submitted = metric_get(session, "kiln_jobs_submitted_total");
    int length = snprintf(head, sizeof head,
                          "POST /v1/jacobi?iterations=%ld HTTP/1.1\r\nHost: x\r\n"
                          "Content-Type: application/octet-stream\r\nContent-Length: %zu\r\n\r\n",
                          sweeps, size);
    for (int i = 0; i < 2; i++) {
        fds[i] = raw_open(&daemon);
        raw_exchange(fds[i], head, (size_t)length, out, sizeof out, 0, &closed);
        raw_exchange(fds[i], bytes, size, out, sizeof out, 0, &closed);
        metric_wait(session, "kiln_jobs_submitted_total", submitted + i + 1);
    }
    close(fds[1]);
    close(fds[0]);
    metric_wait(session, "kiln_jobs_cancelled_total", before + 2);
    double began = now_s();
    sweeps_ask(session, 10, &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    assert_true(now_s() - began < 50);
    assert_true(metric_get(session, "kiln_queue_jobs") == 0);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* One job runs, one waits, the others are refused with a time to come back. */
static void queue_full(void **state) {
    (void)state;
    static const char *const flags[] = {
        "--max-iterations", "1000000000000", "--slots", "1", "--queue", "1", NULL};
    struct client clients[2];
    struct daemon daemon;
    struct answer answer;
    char value[16];
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    long sweeps = sweeps_of(session, 1.5);
    double before = metric_get(session, "kiln_jobs_submitted_total");
    connections_start(&clients[0], 1, &daemon, sweeps);
    metric_wait(session, "kiln_jobs_submitted_total", before + 1);
    while (metric_get(session, "kiln_queue_jobs") > 0) {
        sleep_s(0.001); /* behind a canary */
    }
    connections_start(&clients[1], 1, &daemon, sweeps);
    metric_wait(session, "kiln_queue_jobs", 1);
    double began = now_s();
    sweeps_ask(session, 10, &answer);
    assert_status(&answer, 503);
    assert_non_null(strstr(answer.body, "/problems/busy"));
    assert_true(answer_header(&answer, "Retry-After", value, sizeof value));
    assert_true(atoi(value) >= 1);
    print_message("  refused after %.1f ms\n", (now_s() - began) * 1e3);
    answer_free(&answer);
    /* what needs no device is still answered */
    session_get(session, "/readyz", &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    for (size_t i = 0; i < 2; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_status(&clients[i].answer, 200);
        answer_free(&clients[i].answer);
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* A job past its deadline is answered 504, and the daemon goes on. */
static void deadline(void **state) {
    (void)state;
    static const char *const flags[] = {"--max-iterations", "1000000000000", "--deadline", "1",
                                        NULL};
    struct daemon daemon;
    struct answer answer;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    double began = now_s();
    sweeps_ask(session, 1000000000000, &answer); /* hours, on any machine */
    double took = now_s() - began;
    assert_status(&answer, 504);
    assert_non_null(strstr(answer.body, "/problems/deadline"));
    answer_free(&answer);
    print_message("  answered after %.2f s\n", took);
    assert_true(took >= 0.9 && took < 30);
    double end = now_s() + 30;
    do {
        sleep_s(0.01);
        sweeps_ask(session, 10, &answer);
        took = answer.status;
        answer_free(&answer);
    } while (took != 200 && now_s() < end);
    assert_true(took == 200);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(drain),         cmocka_unit_test(drain_timeout),
        cmocka_unit_test(drain_probes),  cmocka_unit_test(drain_unread),
        cmocka_unit_test(second_signal), cmocka_unit_test(worker_death),
        cmocka_unit_test(client_gone),   cmocka_unit_test(queue_full),
        cmocka_unit_test(deadline),
    };
    return cmocka_run_group_tests_name("api.life", tests, NULL, NULL);
}
