/*
 * test_overload.c: more work than there is, and clients that are slow on purpose.
 *
 * Figures are printed beside their targets; what fails the test is a wrong answer, one without
 * Retry-After, or none at all. KILN_SOAK=1 is the long form: 1000 slow clients, longer stretches.
 */
#include "tests/api/lib_acceptance.h"
#include "tests/api/lib_decode.h"

#include <errno.h>
#include <math.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLIENTS_MAX 256
#define TIMES_MAX   65536

/* ---- one job that takes a while ---- */

static char body[32 + 32 * 32];
static size_t body_size;

static void body_make(void) {
    size_t head = (size_t)snprintf(body, sizeof body, "P5\n32 32\n255\n");
    for (unsigned i = 0; i < 32 * 32; i++) {
        body[head + i] = (char)(i * 37u);
    }
    body_size = head + 32 * 32;
}

static void job_ask(struct session *session, long sweeps, struct answer *answer) {
    char path[96];
    snprintf(path, sizeof path, "/v1/jacobi?format=npy&iterations=%ld", sweeps);
    const struct request request = {
        .path = path, .type = "application/octet-stream", .body = body, .size = body_size};
    session_ask(session, &request, answer);
}

/* Sweeps that take about `seconds`, and their result. */
static long job_calibrate(struct session *session, double seconds, struct answer *expected) {
    for (long sweeps = 1000;; sweeps *= 2) {
        double took = 1e9;
        for (int i = 0; i < 3; i++) {
            double began = now_s();
            job_ask(session, sweeps, expected);
            took = fmin(took, now_s() - began);
            assert_status(expected, 200);
            if (i < 2 || took < seconds) {
                answer_free(expected);
            }
        }
        if (took >= seconds) {
            return sweeps;
        }
    }
}

/* ---- many clients ---- */

struct crowd {
    const struct daemon *daemon;
    const struct answer *expected;
    long sweeps;
    double rate; /* of all together, 1/s; 0: each asks again at once */
    double began, seconds;
    int count;
    unsigned once; /* each asks once only */
};

struct client {
    pthread_t thread;
    const struct crowd *crowd;
    int index;
    unsigned right, refused, wrong, times_count;
    double *times; /* of refusals */
};

static void client_take(struct client *client, const struct answer *answer, double took) {
    const struct answer *expected = client->crowd->expected;
    char value[16];
    if (answer->status == 200) {
        bool right = answer->size == expected->size &&
                     memcmp(answer->body, expected->body, expected->size) == 0;
        client->right += right;
        client->wrong += !right;
        return;
    }
    bool refused = (answer->status == 503 || answer->status == 429) &&
                   answer_header(answer, "Retry-After", value, sizeof value) && atoi(value) >= 1;
    if (!refused && client->wrong == 0) {
        print_message("  %d %.200s\n", answer->status, answer->body);
    }
    client->refused += refused;
    client->wrong += !refused;
    if (refused && client->times_count < TIMES_MAX / 16) {
        client->times[client->times_count++] = took;
    }
}

static void *client_run(void *argument) {
    struct client *client = argument;
    const struct crowd *crowd = client->crowd;
    struct session *session = session_create(crowd->daemon);
    double end = crowd->began + crowd->seconds;
    for (unsigned turn = 0; now_s() < end && (turn == 0 || !crowd->once); turn++) {
        struct answer answer;
        double due = crowd->began;
        if (crowd->rate > 0) {
            due += (client->index + (double)turn * crowd->count) / crowd->rate;
        }
        double now = now_s();
        if (due > now) {
            sleep_s(fmin(due - now, end - now));
        }
        double asked = now_s();
        job_ask(session, crowd->sweeps, &answer);
        client_take(client, &answer, now_s() - asked);
        answer_free(&answer);
    }
    session_destroy(session);
    return NULL;
}

static int ascending(const void *one, const void *other) {
    double a = *(const double *)one, b = *(const double *)other;
    return (a > b) - (a < b);
}

static double percentile(double *times, size_t count, double share) {
    qsort(times, count, sizeof *times, ascending);
    return count > 0 ? times[(size_t)((double)(count - 1) * share)] : 0;
}

struct sums {
    unsigned right, refused, wrong;
    double seconds, p99, slowest; /* of refusals */
};

static void crowd_start(struct crowd *crowd, struct client *clients) {
    crowd->began = now_s();
    for (int i = 0; i < crowd->count; i++) {
        clients[i] = (struct client){.crowd = crowd, .index = i};
        clients[i].times = malloc(TIMES_MAX / 16 * sizeof(double));
        assert_non_null(clients[i].times);
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_run, &clients[i]), 0);
    }
}

static struct sums crowd_join(struct crowd *crowd, struct client *clients) {
    struct sums sums = {0};
    size_t count = 0;
    double *times = malloc((size_t)crowd->count * (TIMES_MAX / 16) * sizeof *times);
    assert_non_null(times);
    for (int i = 0; i < crowd->count; i++) {
        pthread_join(clients[i].thread, NULL);
        sums.right += clients[i].right;
        sums.refused += clients[i].refused;
        sums.wrong += clients[i].wrong;
        memcpy(times + count, clients[i].times, clients[i].times_count * sizeof *times);
        count += clients[i].times_count;
        free(clients[i].times);
    }
    sums.seconds = now_s() - crowd->began;
    sums.p99 = percentile(times, count, 0.99);
    sums.slowest = percentile(times, count, 1);
    free(times);
    return sums;
}

/* As many requests as the devices can do, then four times as many: they do as many as before, the
   others are told soon to come back later. */
struct pair {
    double peak, asked, good; /* 1/s */
    struct sums sums;
};

static struct pair pair_run(struct crowd crowd, struct client *clients) {
    struct pair pair = {0};
    crowd.count = 8;
    crowd_start(&crowd, clients);
    struct sums peak = crowd_join(&crowd, clients);
    assert_int_equal(peak.wrong + peak.refused, 0);
    pair.peak = peak.right / peak.seconds;
    crowd.rate = 4 * pair.peak;
    crowd.count = 128;
    crowd_start(&crowd, clients);
    pair.sums = crowd_join(&crowd, clients);
    assert_int_equal(pair.sums.wrong, 0);
    assert_true(pair.sums.right > 0 && pair.sums.refused > 0);
    pair.good = pair.sums.right / pair.sums.seconds;
    pair.asked = (pair.sums.right + pair.sums.refused) / pair.sums.seconds;
    return pair;
}

static int pair_order(const void *one, const void *other) {
    const struct pair *a = one, *b = other;
    return (a->good * b->peak > b->good * a->peak) - (a->good * b->peak < b->good * a->peak);
}

/* The middle one of three pairs, since others may use the machine as well. */
static void overload(void **state) {
    static const char *const flags[] = {"--max-iterations", "1000000000000", "--queue", "16", NULL};
    static struct client clients[CLIENTS_MAX];
    struct pair pairs[3];
    struct daemon daemon;
    struct answer expected, after;
    int count = acceptance_is_long() ? 3 : 1;
    (void)state;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    long sweeps = job_calibrate(session, 0.02, &expected);
    const struct crowd crowd = {.daemon = &daemon,
                                .expected = &expected,
                                .sweeps = sweeps,
                                .seconds = acceptance_is_long() ? 5 : 1.5};
    for (int i = 0; i < count; i++) {
        pairs[i] = pair_run(crowd, clients);
        print_message("  pair %d: %.0f %% of peak\n", i, 100 * pairs[i].good / pairs[i].peak);
    }
    qsort(pairs, (size_t)count, sizeof *pairs, pair_order);
    const struct pair *pair = &pairs[count / 2];
    acceptance_print(pair->good >= 0.9 * pair->peak && pair->sums.p99 < 0.05, "4× overload",
                     "goodput ≥ 90 % of peak, the rest 429/503 in < 50 ms",
                     "peak %.0f jobs/s; asked for %.0f/s: %.0f/s done, %.0f %% of peak (the middle "
                     "one of %d); %u refused with 503, p99 %.1f ms, slowest %.1f ms; %u others",
                     pair->peak, pair->asked, pair->good, 100 * pair->good / pair->peak, count,
                     pair->sums.refused, pair->sums.p99 * 1e3, pair->sums.slowest * 1e3,
                     pair->sums.wrong);
    job_ask(session, sweeps, &after);
    assert_status(&after, 200);
    answer_free(&after);
    answer_free(&expected);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* SIGTERM with 200 requests in flight: each has its result, and the daemon ends with 0. */
static void drain(void **state) {
    static const char *const flags[] = {"--max-iterations", "1000000000000", "--drain-timeout",
                                        "120", NULL};
    static struct client clients[CLIENTS_MAX];
    struct daemon daemon;
    struct answer expected;
    (void)state;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    long sweeps = job_calibrate(session, 0.02, &expected);
    double before = metric_get(session, "kiln_jobs_submitted_total");
    struct crowd crowd = {.daemon = &daemon,
                          .expected = &expected,
                          .sweeps = sweeps,
                          .seconds = 60,
                          .count = 200,
                          .once = 1};
    /* Long enough that few are done before the last one has come. */
    sweeps = crowd.sweeps *= 2;
    struct answer longer;
    job_ask(session, sweeps, &longer);
    assert_status(&longer, 200);
    crowd.expected = &longer;
    before += 1;
    crowd_start(&crowd, clients);
    double end = now_s() + 60;
    while (metric_get(session, "kiln_jobs_submitted_total") < before + 200) {
        assert_true(now_s() < end);
        sleep_s(0.002);
    }
    double done = metric_get(session, "kiln_jobs_completed_total");
    double flying = before + 200 - done; /* as long as every job before was completed */
    daemon_signal(&daemon, SIGTERM);
    session_destroy(session);
    struct sums sums = crowd_join(&crowd, clients);
    assert_int_equal(daemon_wait(&daemon), 0);
    acceptance_print(sums.right == 200 && flying >= 190, "SIGTERM with 200 in flight",
                     "200 answered, exit 0", "%.0f in flight: %u of 200 answered, exit code 0",
                     flying, sums.right);
    assert_int_equal(sums.right, 200);
    answer_free(&longer);
    answer_free(&expected);
}

/* ---- slow clients ---- */

enum slowness { SLOW_HEADER, SLOW_BODY, SLOW_READ };

static int slow_open(const struct daemon *daemon, enum slowness kind) {
    static const char *const starts[] = {
        [SLOW_HEADER] = "GET /v1/devices HTTP/1.1\r\nHost: x\r\nX-Slow: ",
        [SLOW_BODY] = "POST /v1/jacobi HTTP/1.1\r\nHost: x\r\nContent-Type: "
                      "application/octet-stream\r\nContent-Length: 100000\r\n\r\nP5\n",
        [SLOW_READ] = "GET /v1/mandelbrot?format=raw&width=1024&height=1024&max_iter=2 HTTP/1.1\r\n"
                      "Host: x\r\n\r\n",
    };
    int fd = raw_open(daemon), small = 4096;
    if (kind == SLOW_READ) {
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    }
    size_t size = strlen(starts[kind]);
    assert_int_equal(send(fd, starts[kind], size, MSG_NOSIGNAL), size);
    return fd;
}

struct slow {
    const struct daemon *daemon;
    int *fds;
    size_t count;
    atomic_bool stop;
    pthread_t thread;
};

static enum slowness slowness_of(size_t index) {
    return index % 10 == 0 ? SLOW_READ : index % 2 == 0 ? SLOW_HEADER : SLOW_BODY;
}

/* Two bytes a second from each that sends, at a time of its own; nothing from those that do not
   read. */
static void *slow_run(void *argument) {
    struct slow *slow = argument;
    while (!atomic_load(&slow->stop)) {
        for (size_t i = 0; i < slow->count; i++) {
            if (slowness_of(i) != SLOW_READ) {
                ssize_t sent = send(slow->fds[i], "x", 1, MSG_NOSIGNAL | MSG_DONTWAIT);
                (void)sent; /* who was cut stays so */
            }
            if (i % 10 == 9) {
                sleep_s(5.0 / (double)slow->count);
            }
        }
    }
    return NULL;
}

struct good {
    pthread_t thread;
    const struct daemon *daemon;
    const atomic_bool *stop;
    double *times;
    size_t count;
    unsigned wrong;
};

static void *good_run(void *argument) {
    struct good *good = argument;
    struct session *session = session_create(good->daemon);
    while (!atomic_load(good->stop)) {
        struct answer answer;
        double began = now_s();
        session_get(session, "/v1/mandelbrot?format=raw&width=64&height=64&max_iter=200", &answer);
        if (good->count < TIMES_MAX) {
            good->times[good->count++] = now_s() - began;
        }
        good->wrong += answer.status != 200 || answer.size != 64 * 64 * 4;
        answer_free(&answer);
        sleep_s(0.001);
    }
    session_destroy(session);
    return NULL;
}

static void good_start(struct good *goods, const struct daemon *daemon, const atomic_bool *stop) {
    for (int i = 0; i < 4; i++) {
        goods[i] = (struct good){.daemon = daemon, .stop = stop};
        goods[i].times = malloc(TIMES_MAX * sizeof(double));
        assert_non_null(goods[i].times);
        assert_int_equal(pthread_create(&goods[i].thread, NULL, good_run, &goods[i]), 0);
    }
}

/* 99 % of the good clients' times; none may have had another answer. */
static double good_join(struct good *goods) {
    double *times = malloc(4 * TIMES_MAX * sizeof *times);
    size_t count = 0;
    assert_non_null(times);
    for (int i = 0; i < 4; i++) {
        pthread_join(goods[i].thread, NULL);
        memcpy(times + count, goods[i].times, goods[i].count * sizeof *times);
        count += goods[i].count;
        free(goods[i].times);
        assert_int_equal(goods[i].wrong, 0);
    }
    assert_true(count > 0);
    double p99 = percentile(times, count, 0.99);
    free(times);
    return p99;
}

/* Until the slow readers' pictures are made: what they cost is no matter of slowness. */
static void idle_wait(struct session *session) {
    double end = now_s() + 10;
    while (metric_get(session, "kiln_queue_jobs") + metric_get(session, "kiln_running_jobs") > 0) {
        assert_true(now_s() < end);
        sleep_s(0.01);
    }
}

/* Seconds until only our own connections are left. */
static double cut_wait(struct session *session) {
    double began = now_s();
    while (metric_get(session, "kiln_connections") > 5) {
        assert_true(now_s() - began < 90);
        sleep_s(0.05);
    }
    return now_s() - began;
}

static void slow_clients(void **state) {
    const char *const flags[] = {"--idle-timeout", acceptance_is_long() ? "12" : "2", NULL};
    struct good goods[4];
    struct daemon daemon;
    struct slow slow = {.daemon = &daemon, .count = acceptance_is_long() ? 1000 : 100};
    atomic_bool stop = false;
    (void)state;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    good_start(goods, &daemon, &stop);
    sleep_s(acceptance_is_long() ? 10 : 1.5);
    atomic_store(&stop, true);
    double alone = good_join(goods);
    slow.fds = malloc(slow.count * sizeof *slow.fds);
    assert_non_null(slow.fds);
    double began = now_s();
    for (size_t i = 0; i < slow.count; i++) {
        slow.fds[i] = slow_open(&daemon, slowness_of(i));
    }
    idle_wait(session);
    atomic_store(&stop, false);
    assert_int_equal(pthread_create(&slow.thread, NULL, slow_run, &slow), 0);
    good_start(goods, &daemon, &stop);
    cut_wait(session);
    double took = now_s() - began;
    atomic_store(&stop, true);
    atomic_store(&slow.stop, true);
    pthread_join(slow.thread, NULL);
    double beside = good_join(goods);
    acceptance_print(
        took < 30 && beside < 2 * alone, "1000 slow clients (header, body, read)",
        "good clients' p99 < 2×, all cut within 30 s",
        "%zu slow clients: all cut after %.1f s; the good ones' p99 %.2f ms alone, %.2f "
        "ms beside them",
        slow.count, took, alone * 1e3, beside * 1e3);
    assert_true(took < 60);
    for (size_t i = 0; i < slow.count; i++) {
        close(slow.fds[i]);
    }
    free(slow.fds);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overload),
        cmocka_unit_test(drain),
        cmocka_unit_test(slow_clients),
    };
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    body_make();
    return cmocka_run_group_tests_name("api.overload", tests, NULL, NULL);
}
