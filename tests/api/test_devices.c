/*
 * test_devices.c: broken devices and workers, through HTTP, and what others notice of them.
 *
 * The daemon is kilnd-faults, whose jobs of kind `fault` do the damage (tests/devices/). With
 * KILN_TEST_DEVICE=cuda:0 the kernels are a GPU's. KILN_SOAK=1 is the long form. Each figure is
 * printed beside its target; what fails the test is a wrong answer or a bound for any machine.
 */
#include "tests/api/lib_acceptance.h"
#include "tests/api/lib_decode.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define INNOCENTS 4
#define PATIENCE  60.0 /* seconds; no measure but the end of patience */

static bool on_gpu(void) {
    const char *device = getenv("KILN_TEST_DEVICE");
    return device != NULL && strncmp(device, "cuda", 4) == 0;
}

/* How often: in CI, in the long form, and in that of a GPU, where a new worker takes half a second
   and all of it must fit into five minutes. */
static int times(int brief, int on_cpu, int on_a_gpu) {
    return !acceptance_is_long() ? brief : on_gpu() ? on_a_gpu : on_cpu;
}

static const char *device_name(void) {
    return on_gpu() ? getenv("KILN_TEST_DEVICE") : "cpu:0";
}

/* ---- asking ---- */

/* Seeds differ, so that no two requests share one job. */
static void fault_ask(struct session *session, const char *query, struct answer *answer) {
    static atomic_uint seed;
    char path[160];
    snprintf(path, sizeof path, "/v1/fault?%s&seed=%u", query, atomic_fetch_add(&seed, 1));
    session_get(session, path, answer);
}

static int status_of(struct session *session, const char *path) {
    struct answer answer;
    session_get(session, path, &answer);
    int status = answer.status;
    answer_free(&answer);
    return status;
}

/* Asks for the fault and checks the problem's status and page. Returns the seconds. */
static double fault_expect(struct session *session, const char *query, int status,
                           const char *page) {
    struct answer answer;
    double began = now_s();
    fault_ask(session, query, &answer);
    double took = now_s() - began;
    assert_status(&answer, status);
    assert_non_null(strstr(answer.body, page));
    answer_free(&answer);
    return took;
}

/* Seconds until the daemon says that it is ready and a job proves it. */
static double ready_wait(struct session *session) {
    double began = now_s();
    while (status_of(session, "/readyz") != 200) {
        assert_true(now_s() - began < PATIENCE);
        sleep_s(0.001);
    }
    struct answer answer;
    fault_ask(session, "what=none", &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    return now_s() - began;
}

/* A device's state and reason as /v1/devices has them. */
struct look {
    char state[32], reason[256];
    pid_t pid;
    int respawns;
};

static void text_copy(const cJSON *device, const char *name, char *out, size_t size) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(device, name));
    snprintf(out, size, "%s", text != NULL ? text : "");
}

static int number_of(const cJSON *device, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(device, name);
    return item != NULL ? (int)cJSON_GetNumberValue(item) : 0;
}

static struct look device_look(struct session *session, const char *wanted) {
    struct look look = {.pid = 0};
    struct answer answer;
    char name[32];
    const cJSON *device;
    session_get(session, "/v1/devices", &answer);
    assert_status(&answer, 200);
    cJSON *document = cJSON_Parse(answer.body);
    assert_non_null(document);
    cJSON_ArrayForEach(device, cJSON_GetObjectItemCaseSensitive(document, "devices")) {
        text_copy(device, "name", name, sizeof name);
        if (strcmp(name, wanted) == 0) {
            text_copy(device, "state", look.state, sizeof look.state);
            text_copy(device, "reason", look.reason, sizeof look.reason);
            look.pid = number_of(device, "pid");
            look.respawns = number_of(device, "respawns");
        }
    }
    cJSON_Delete(document);
    answer_free(&answer);
    return look;
}

static void state_wait(struct session *session, const char *device, const char *state) {
    double end = now_s() + PATIENCE;
    while (strcmp(device_look(session, device).state, state) != 0) {
        assert_true(now_s() < end);
        sleep_s(0.01);
    }
}

/* ---- innocents: clients beside the damage, who compare every answer ---- */

struct innocent {
    pthread_t thread;
    const struct daemon *daemon;
    char path[160];
    char *expected;
    size_t size;
    atomic_bool *stop;
    unsigned right, wrong;
    double worst;
};

static void *innocent_run(void *argument) {
    struct innocent *one = argument;
    struct session *session = session_create(one->daemon);
    while (!atomic_load(one->stop)) {
        struct answer answer;
        double began = now_s();
        session_get(session, one->path, &answer);
        double took = now_s() - began;
        bool right = answer.status == 200 && answer.size == one->size &&
                     memcmp(answer.body, one->expected, one->size) == 0;
        if (!right && one->wrong == 0) {
            print_message("  %s: %d %.300s\n", one->path, answer.status,
                          answer.status == 200 ? "other bytes" : answer.body);
        }
        one->right += right;
        one->wrong += !right;
        one->worst = took > one->worst ? took : one->worst;
        answer_free(&answer);
        sleep_s(0.002);
    }
    session_destroy(session);
    return NULL;
}

static void innocents_start(struct innocent *innocents, struct session *session,
                            const struct daemon *daemon, atomic_bool *stop) {
    for (size_t i = 0; i < INNOCENTS; i++) {
        struct innocent *one = &innocents[i];
        struct answer answer;
        *one = (struct innocent){.daemon = daemon, .stop = stop};
        snprintf(one->path, sizeof one->path,
                 "/v1/mandelbrot?format=raw&field=count&precision=fp64&width=%zu&height=48&"
                 "max_iter=500",
                 64 + i);
        session_get(session, one->path, &answer);
        assert_status(&answer, 200);
        one->expected = answer.body;
        one->size = answer.size;
        answer.body = NULL;
        answer_free(&answer);
    }
    for (size_t i = 0; i < INNOCENTS; i++) {
        assert_int_equal(pthread_create(&innocents[i].thread, NULL, innocent_run, &innocents[i]),
                         0);
    }
}

static void innocents_stop(struct innocent *innocents, atomic_bool *stop) {
    unsigned right = 0, wrong = 0;
    double worst = 0;
    atomic_store(stop, true);
    for (size_t i = 0; i < INNOCENTS; i++) {
        pthread_join(innocents[i].thread, NULL);
        right += innocents[i].right;
        wrong += innocents[i].wrong;
        worst = innocents[i].worst > worst ? innocents[i].worst : worst;
        free(innocents[i].expected);
    }
    print_message("  beside them: %u right answers, %u others (target 0), slowest %.3f s\n", right,
                  wrong, worst);
    assert_true(right > 0);
    assert_int_equal(wrong, 0);
}

/* ---- tests ---- */

/* The shipped program has no such kind. */
static void shipped(void **state) {
    struct daemon daemon;
    struct answer answer;
    (void)state;
    setenv("KILND", getenv("KILND_SHIPPED"), 1);
    daemon_start(&daemon, NULL);
    setenv("KILND", getenv("KILND_FAULTS"), 1);
    struct session *session = session_create(&daemon);
    assert_int_equal(status_of(session, "/v1/fault?what=none"), 404);
    session_get(session, "/v1/jobs/types", &answer);
    assert_status(&answer, 200);
    assert_null(strstr(answer.body, "\"fault\""));
    answer_free(&answer);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

struct row {
    const char *query, *page;
    int status, count, soak, gpu;
};

/* Faults that end the worker fail their own job only, and the next worker is there soon. */
static const struct row rows[] = {
    {"what=store", "/problems/device-fault", 500, 5, 50, 50},
    {"what=trap", "/problems/device-fault", 500, 2, 20, 3},
    {"what=misaligned", "/problems/device-fault", 500, 2, 20, 3},
    {"what=report", "/problems/device-fault", 500, 2, 20, 3},
    {"what=kill", "/problems/device-fault", 500, 2, 20, 3},
    {"what=exit", "/problems/device-fault", 500, 2, 20, 3},
    {"what=lie", "/problems/internal", 500, 2, 20, 3},
    {"what=forge", "/problems/internal", 500, 2, 20, 3},
};

/* The worst of some rounds; told every ten rounds, for runs that are cut short. */
struct worst {
    int rounds;
    double answered, again;
};

static void worst_take(struct worst *worst, const char *query, double answered, double again) {
    worst->answered = answered > worst->answered ? answered : worst->answered;
    worst->again = again > worst->again ? again : worst->again;
    if (++worst->rounds % 10 == 0) {
        print_message("    %s: %d rounds, answered after at most %.3f s, ready again %.3f s\n",
                      query, worst->rounds, worst->answered, worst->again);
    }
}

static void row_ask(struct session *session, const struct row *row) {
    int count = times(row->count, row->soak, row->gpu);
    struct worst worst = {0};
    for (int round = 0; round < count; round++) {
        double took = fault_expect(session, row->query, row->status, row->page);
        worst_take(&worst, row->query, took, ready_wait(session));
    }
    acceptance_print(worst.again < 1, "out-of-bounds kernel",
                     "only that job fails, ready again < 1 s",
                     "%s ×%d: answered %d after at most %.3f s, ready again after at most %.3f s",
                     row->query, count, row->status, worst.answered, worst.again);
    assert_true(worst.again < PATIENCE / 2);
}

static void faults_beside_innocents(void **state) {
    static struct innocent innocents[INNOCENTS];
    atomic_bool stop = false;
    struct daemon daemon;
    (void)state;
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    innocents_start(innocents, session, &daemon, &stop);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        row_ask(session, &rows[i]);
    }
    innocents_stop(innocents, &stop);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* With no good job between them, too, bad jobs are answered as such and do not cost the device. */
static void faults_alone(void **state) {
    struct daemon daemon;
    (void)state;
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    int count = times(8, 50, 10);
    double began = now_s();
    for (int i = 0; i < count; i++) {
        fault_expect(session, "what=store", 500, "/problems/device-fault");
        assert_string_not_equal(device_look(session, device_name()).state, "unavailable");
    }
    print_message("  %d in a row: %.3f s each; ready after %.3f s\n", count,
                  (now_s() - began) / count, ready_wait(session));
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* A packet that makes no sense costs the worker; the job may still have its right answer. */
static void garbage(void **state) {
    struct daemon daemon;
    struct answer answer;
    (void)state;
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    int before = device_look(session, device_name()).respawns;
    fault_ask(session, "what=garbage", &answer);
    assert_true(answer.status == 200 || answer.status == 500);
    answer_free(&answer);
    ready_wait(session);
    struct look look = device_look(session, device_name());
    assert_true(look.respawns > before);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* Phases that are no times are nobody's trouble: the answer, the log and the metrics have numbers
   that can be. */
static void times_that_cannot_be(void **state) {
    static const char *const flags[] = {"--log-requests", "--log-format", "json", NULL};
    static const char *const phases[] = {"upload", "kernel", "download", "encode"};
    struct daemon daemon;
    struct answer answer;
    char value[512], name[96], path[96], line[4096];
    (void)state;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    fault_ask(session, "what=times", &answer);
    assert_status(&answer, 200);
    assert_true(answer_header(&answer, "Server-Timing", value, sizeof value));
    answer_free(&answer);
    for (int i = 0; i < 4; i++) {
        const char *at = strstr(value, phases[i]);
        assert_non_null(at);
        double ms = strtod(strstr(at, "dur=") + 4, NULL);
        assert_true(ms >= 0 && ms < 1e3 * PATIENCE);
        snprintf(name, sizeof name, "kiln_job_phase_seconds_sum{job=\"fault\",phase=\"%s\"}",
                 phases[i]);
        double sum = metric_get(session, name);
        assert_true(sum >= 0 && sum < PATIENCE);
    }
    session_destroy(session);
    snprintf(path, sizeof path, "%s/log", daemon.folder);
    FILE *file = fopen(path, "r");
    int found = 0;
    assert_non_null(file);
    while (fgets(line, sizeof line, file) != NULL) {
        const char *at = strstr(line, "\"encode_ms\":");
        if (at != NULL && strstr(line, "/v1/fault") != NULL) {
            double ms = strtod(at + 12, NULL);
            assert_true(ms >= 0 && ms < 1e3 * PATIENCE);
            found++;
        }
    }
    fclose(file);
    assert_int_equal(found, 1);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* A worker that somebody has taken over finds no file to read. Drivers of GPUs need theirs. */
static void workers_open_no_files(void **state) {
    struct daemon daemon;
    (void)state;
    if (on_gpu() || getenv("KILN_SANDBOX") != NULL) {
        print_message("  a worker on the CPU that is confined is meant: skipped\n");
        skip();
    }
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    fault_expect(session, "what=open", 422, "opened: none");
    /* its figures it reads all the same: these are of the last second */
    struct answer answer;
    sleep_s(2.2);
    session_get(session, "/v1/devices", &answer);
    assert_status(&answer, 200);
    const char *total = strstr(answer.body, "\"memory\":{\"total\":");
    assert_non_null(total);
    assert_true(strtod(total + strlen("\"memory\":{\"total\":"), NULL) > 1e6);
    answer_free(&answer);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* A kernel that never ends costs its own job 504, whether it looks at its cancel word or not. */
static void endless(void **state) {
    static const char *const flags[] = {"--deadline", "1.5", NULL};
    static const char *const queries[] = {"what=spin", "what=polite"};
    static struct innocent innocents[INNOCENTS];
    atomic_bool stop = false;
    struct daemon daemon;
    (void)state;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    innocents_start(innocents, session, &daemon, &stop);
    for (int i = 0; i < 2; i++) {
        int count = i == 0 ? times(2, 20, 20) : times(1, 5, 5);
        struct worst worst = {0};
        pid_t pid = worker_pid(session);
        for (int round = 0; round < count; round++) {
            double took = fault_expect(session, queries[i], 504, "/problems/deadline");
            assert_true(took > 1.4 && took < PATIENCE);
            worst_take(&worst, queries[i], took, ready_wait(session));
        }
        acceptance_print(worst.answered - 1.5 < 1, "endless kernel", "504 at the deadline + 1 s",
                         "%s ×%d: 504 at the deadline + %.3f s at most, ready again after at most "
                         "%.3f s",
                         queries[i], count, worst.answered - 1.5, worst.again);
        assert_true(i == 0 || worker_pid(session) == pid); /* who gives up is not replaced */
    }
    innocents_stop(innocents, &stop);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* Who takes all memory is told so; the next ones, on whatever slot, find enough. */
static void memory(void **state) {
    static const char *const limited[] = {"--device-memory", "1G", NULL};
    struct daemon daemon;
    char value[16];
    (void)state;
    daemon_start(&daemon, on_gpu() ? NULL : limited);
    struct session *session = session_create(&daemon);
    int count = times(2, 20, 6);
    double worst = 0;
    for (int round = 0; round < count; round++) {
        struct answer answer;
        double began = now_s();
        fault_ask(session, "what=device-memory", &answer);
        double took = now_s() - began;
        worst = took > worst ? took : worst;
        assert_status(&answer, 503);
        assert_non_null(strstr(answer.body, "/problems/no-memory"));
        assert_true(answer_header(&answer, "Retry-After", value, sizeof value));
        answer_free(&answer);
        for (int next = 0; next < 8; next++) {
            assert_int_equal(status_of(session, "/v1/mandelbrot?width=4000&height=4000&max_iter=2"
                                                "&format=raw"),
                             200);
        }
        if (!on_gpu() || round == 0) {
            fault_expect(session, "what=host-memory", 503, "/problems/no-memory");
            assert_int_equal(status_of(session, "/v1/mandelbrot?width=300&height=200"), 200);
        }
        fault_expect(session, "device_bytes=100000000000000", 507, "/problems/job-too-large");
    }
    acceptance_print(
        true, "allocate-all", "507/503; next fine",
        "all device memory ×%d: 503 after at most %.3f s, too large a plan: 507; the 8 "
        "next ones fine each time",
        count, worst);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* ---- signals ---- */

struct waiter {
    pthread_t thread;
    const struct daemon *daemon;
    int status;
};

static void *waiter_run(void *argument) {
    struct waiter *waiter = argument;
    struct session *session = session_create(waiter->daemon);
    struct answer answer;
    fault_ask(session, "what=none&ms=400", &answer);
    waiter->status = answer.status;
    answer_free(&answer);
    session_destroy(session);
    return NULL;
}

/* Sends a signal to the worker with jobs in flight, and holds /readyz against what is true: once it
   has said no, it says yes again only for another worker. Prints the two times; returns the second.
 */
static double signal_round(struct daemon *daemon, struct session *session, int number,
                           const char *name) {
    struct waiter waiters[6];
    pid_t old = worker_pid(session), pid = 0;
    double noticed = 0;
    bool ready;
    for (size_t i = 0; i < 6; i++) {
        waiters[i] = (struct waiter){.daemon = daemon};
        assert_int_equal(pthread_create(&waiters[i].thread, NULL, waiter_run, &waiters[i]), 0);
    }
    sleep_s(0.1);
    double began = now_s();
    assert_int_equal(kill(old, number), 0);
    do {
        ready = status_of(session, "/readyz") == 200;
        pid = worker_pid(session); /* after it: a worker that is there now was not yet before */
        noticed = !ready && noticed == 0 ? now_s() - began : noticed;
        if (noticed > 0 && ready) {
            assert_int_not_equal(pid, old);
        }
        assert_true(now_s() - began < PATIENCE);
        sleep_s(0.0005);
    } while (!ready || pid == old || pid == 0);
    double again = now_s() - began;
    for (size_t i = 0; i < 6; i++) {
        pthread_join(waiters[i].thread, NULL);
        assert_int_equal(waiters[i].status, 200);
    }
    print_message("  %s: 6 jobs in flight answered; not ready after %.3f s, ready after %.3f s\n",
                  name, noticed, again);
    assert_true(number == SIGKILL || (noticed > 0 && noticed < 8)); /* 3 s and a noisy machine */
    return again;
}

static void signals(void **state) {
    struct daemon daemon;
    (void)state;
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    int count = times(3, 20, 5);
    double worst = 0;
    for (int i = 0; i < count; i++) {
        double again = signal_round(&daemon, session, SIGKILL, "SIGKILL");
        worst = again > worst ? again : worst;
    }
    acceptance_print(worst < 1, "out-of-bounds kernel", "ready again < 1 s",
                     "worker killed ×%d with 6 jobs in flight: all answered, ready again after at "
                     "most %.3f s",
                     count, worst);
    for (int i = 0; i < times(1, 3, 1); i++) {
        signal_round(&daemon, session, SIGSTOP, "SIGSTOP");
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* ---- devices that keep failing ---- */

/* While there is such a file with a device's name behind it, that one's canaries fail. */
static char breaks[64] = "/tmp/kiln-breaks-XXXXXX";

static void breaks_set(const char *device, bool broken) {
    char path[128];
    snprintf(path, sizeof path, "%s.%s", breaks, device);
    FILE *file = broken ? fopen(path, "w") : NULL;
    assert_true(broken ? file != NULL && fclose(file) == 0 : unlink(path) == 0);
}

static void pair_start(struct daemon *daemon) {
    static const char *const flags[] = {"--device", "cuda:0,cpu", NULL};
    if (!on_gpu()) {
        setenv("KILN_MODULE_PATH", getenv("KILN_STANDIN"), 1);
    }
    daemon_start(daemon, flags);
    unsetenv("KILN_MODULE_PATH");
}

/* One of two devices fails: it is tried again with growing pauses, then taken out with the reason,
   and the other one serves all along. */
static void one_of_two(void **state) {
    struct daemon daemon;
    struct answer answer;
    (void)state;
    pair_start(&daemon);
    struct session *session = session_create(&daemon);
    state_wait(session, "cuda:0", "ready");
    state_wait(session, "cpu:0", "ready");
    breaks_set("cuda:0", true);
    double began = now_s();
    assert_int_equal(kill(device_look(session, "cuda:0").pid, SIGKILL), 0);
    struct look look;
    do {
        assert_int_equal(status_of(session, "/readyz"), 200);
        session_get(session, "/v1/mandelbrot?width=64&height=64&max_iter=50", &answer);
        assert_status(&answer, 200);
        answer_free(&answer);
        look = device_look(session, "cuda:0");
        assert_true(now_s() - began < PATIENCE);
    } while (strcmp(look.state, "unavailable") != 0);
    double took = now_s() - began;
    print_message("  cuda:0 taken out after %.2f s (pauses 0, 0.1, 0.5, 2 s): %s\n", took,
                  look.reason);
    assert_true(took > 2.6);
    assert_non_null(strstr(look.reason, "died 5 times"));
    assert_non_null(strstr(look.reason, "an illegal address was met"));
    assert_int_equal(look.respawns, 4);
    fault_expect(session, "device=cuda:0", 503, "/problems/no-device");
    fault_ask(session, "what=none", &answer);
    assert_header(&answer, "Kiln-Device", "cpu:0");
    answer_free(&answer);
    breaks_set("cuda:0", false);
    if (acceptance_is_long()) { /* it is tried again every 30 s */
        began = now_s();
        state_wait(session, "cuda:0", "ready");
        print_message("  cuda:0 is back %.1f s after its repair\n", now_s() - began);
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* The only device fails: the daemon is not ready and says why. */
static void only_one(void **state) {
    const char *device = device_name();
    struct daemon daemon;
    struct answer answer;
    (void)state;
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    breaks_set(device, true);
    assert_int_equal(kill(worker_pid(session), SIGKILL), 0);
    state_wait(session, device, "unavailable");
    session_get(session, "/readyz", &answer);
    assert_status(&answer, 503);
    assert_non_null(strstr(answer.body, device));
    answer_free(&answer);
    fault_expect(session, "what=none", 503, "/problems/no-device");
    breaks_set(device, false);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* A bad job's second attempt is made on the other device: both stay. */
static void bad_jobs_of_two(void **state) {
    static const char *const devices[] = {"cuda:0", "cpu:0"};
    struct daemon daemon;
    (void)state;
    pair_start(&daemon);
    struct session *session = session_create(&daemon);
    state_wait(session, "cuda:0", "ready");
    state_wait(session, "cpu:0", "ready");
    int first[2], second[2];
    for (int i = 0; i < 2; i++) {
        first[i] = device_look(session, devices[i]).respawns;
    }
    int rounds = times(12, 12, 6);
    for (int round = 0; round < rounds; round++) {
        fault_expect(session, "what=kill", 500, "/problems/device-fault");
        for (int i = 0; i < 2; i++) {
            assert_string_not_equal(device_look(session, devices[i]).state, "unavailable");
        }
    }
    for (int i = 0; i < 2; i++) {
        state_wait(session, devices[i], "ready");
        second[i] = device_look(session, devices[i]).respawns;
        print_message("  %s: %d workers lost to %d bad jobs\n", devices[i], second[i] - first[i],
                      rounds);
        assert_true(second[i] > first[i]);
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* ---- devices that lack kernels ---- */

/* Asks, and expects a final refusal that says these words; no header speaks of trying again. */
static void incapable_expect(struct session *session, const struct request *request,
                             const char *words) {
    struct answer answer;
    char value[32];
    session_ask(session, request, &answer);
    assert_status(&answer, 422);
    assert_non_null(strstr(answer.body, "\"/problems/incapable\""));
    if (strstr(answer.body, words) == NULL) {
        fail_msg("\"%s\" is not in %s", words, answer.body);
    }
    assert_false(answer_header(&answer, "Retry-After", value, sizeof value));
    answer_free(&answer);
}

static void get_incapable(struct session *session, const char *path, const char *words) {
    incapable_expect(session, &(struct request){.path = path}, words);
}

static void get_on(struct session *session, const char *path, const char *device) {
    struct answer answer;
    session_get(session, path, &answer);
    assert_status(&answer, 200);
    assert_header(&answer, "Kiln-Device", device);
    answer_free(&answer);
}

static void standin_start(struct daemon *daemon, const char *devices) {
    const char *const flags[] = {"--device", devices, NULL};
    setenv("KILN_MODULE_PATH", getenv("KILN_STANDIN"), 1);
    setenv("KILN_STANDIN_KERNELS", "mandelbrot,laplacian", 1);
    daemon_start(daemon, flags);
    unsetenv("KILN_STANDIN_KERNELS");
    unsetenv("KILN_MODULE_PATH");
}

static const char picture[] = "P5\n3 2\n255\nabcdef";

static struct request post(const char *path) {
    return (struct request){.path = path,
                            .type = "image/x-portable-graymap",
                            .body = picture,
                            .size = sizeof picture - 1};
}

/* A device with two kernels beside one with all but one: each job goes where it can be run. */
static void two_kernels(void **state) {
    struct daemon daemon;
    struct answer answer;
    (void)state;
    standin_start(&daemon, "cuda:0,cpu");
    struct session *session = session_create(&daemon);
    state_wait(session, "cuda:0", "ready");
    state_wait(session, "cpu:0", "ready");
    session_get(session, "/v1/devices", &answer);
    assert_non_null(strstr(answer.body, "\"kernels\":[\"mandelbrot\",\"laplacian\"]"));
    assert_non_null(strstr(answer.body, "\"kernels\":[\"mandelbrot\",\"colorize\",\"jacobi\","
                                        "\"spectral\",\"laplacian\",\"lombscargle\","
                                        "\"expression\"]"));
    answer_free(&answer);
    get_on(session, "/v1/mandelbrot?width=64&height=48&format=npy&device=cuda:0", "cuda:0");
    get_on(session, "/v1/mandelbrot?width=64&height=48", "cpu:0"); /* which is to be coloured */
    get_incapable(session, "/v1/mandelbrot?width=64&height=49&device=cuda:0",
                  "cuda:0 lacks the kernel colorize that this job needs; it can run on cpu:0");
    struct request request = post("/v1/laplacian?device=cuda");
    session_ask(session, &request, &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    request = post("/v1/jacobi?device=cuda:0");
    incapable_expect(session, &request, "lacks the kernel spectral");
    request = post("/v1/jacobi?device=cuda:0&iterations=3");
    incapable_expect(session, &request, "lacks the kernel jacobi");
    request = post("/v1/jacobi?iterations=3");
    session_ask(session, &request, &answer);
    assert_status(&answer, 200);
    assert_header(&answer, "Kiln-Device", "cpu:0");
    answer_free(&answer);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* The same device alone: ready for what it can, and clear about the rest. */
static void only_two_kernels(void **state) {
    struct daemon daemon;
    (void)state;
    standin_start(&daemon, "cuda:0");
    struct session *session = session_create(&daemon);
    assert_int_equal(status_of(session, "/readyz"), 200);
    get_on(session, "/v1/mandelbrot?width=64&height=48&format=npy", "cuda:0");
    get_incapable(session, "/v1/mandelbrot?width=64&height=48",
                  "cuda:0 lacks the kernel colorize that this job needs; no device in use can run");
    get_incapable(session, "/v1/mandelbrot?width=64&height=48&device=cpu:0",
                  "cpu:0 is not in use (--device)");
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* A device that is not there, or not chosen, never comes: nobody is told to wait for it. */
static void not_in_use(void **state) {
    struct daemon daemon;
    (void)state;
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    if (on_gpu()) {
        get_incapable(session, "/v1/mandelbrot?width=64&device=cpu", "cpu:0 is not in use");
    } else {
        /* not available, or there and not in use */
        get_incapable(session, "/v1/mandelbrot?width=64&device=cuda:0", "cuda:0 is not ");
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        /* first what the acceptance table asks for */
        cmocka_unit_test(endless),
        cmocka_unit_test(memory),
        cmocka_unit_test(faults_beside_innocents),
        cmocka_unit_test(signals),
        cmocka_unit_test(shipped),
        cmocka_unit_test(garbage),
        cmocka_unit_test(times_that_cannot_be),
        cmocka_unit_test(workers_open_no_files),
        cmocka_unit_test(faults_alone),
        cmocka_unit_test(one_of_two),
        cmocka_unit_test(only_one),
        cmocka_unit_test(bad_jobs_of_two),
        cmocka_unit_test(two_kernels),
        cmocka_unit_test(only_two_kernels),
        cmocka_unit_test(not_in_use),
    };
    const char *faults = getenv("KILND_FAULTS"), *shipped_path = getenv("KILND");
    if (faults == NULL || shipped_path == NULL || getenv("KILN_STANDIN") == NULL) {
        printf("KILND, KILND_FAULTS and KILN_STANDIN say where the programs are: skipped\n");
        return 77;
    }
    setenv("KILND_SHIPPED", shipped_path, 1);
    setenv("KILND", faults, 1);
    int fd = mkstemp(breaks);
    if (fd < 0) {
        return 1;
    }
    close(fd);
    setenv("KILN_FAULT_FILE", breaks, 1);
    int failed = cmocka_run_group_tests_name("api.devices", tests, NULL, NULL);
    unlink(breaks);
    return failed;
}
