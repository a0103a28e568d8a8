/*
 * test_gather.c: small requests that had to wait and were computed together (--gather): each gets
 * the answer that it gets alone.
 *
 * One slot, held by a longer job while several clients ask at once. What is gathered depends on
 * when they come, so there are rounds until something was; answers are compared in all of them.
 */
#include "tests/api/lib_daemon.h"

#include <cjson/cJSON.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CLIENTS = 8, ROUNDS = 200, SAMPLES = 60 };

static struct daemon daemon_;
static struct session *session;

static int setup(void **state) {
    static const char *const flags[] = {"--slots", "1", "--gather", "8", NULL};
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

struct client {
    pthread_t thread;
    struct request request;
    char path[256], body[8192];
    struct answer alone, together;
};

static void *client_run(void *argument) {
    struct client *client = argument;
    struct session *own = session_create(&daemon_);
    session_ask(own, &client->request, &client->together);
    session_destroy(own);
    return NULL;
}

static void *holder_run(void *argument) {
    static const struct request request = {
        .path = "/v1/mandelbrot?width=1200&height=1200&max_iter=20000&xmin=-0.7440&xmax=-0.7430"
                "&ymin=0.1313&ymax=0.1323&format=npy&precision=fp64"};
    struct session *own = session_create(&daemon_);
    struct answer answer;
    (void)argument;
    session_ask(own, &request, &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    session_destroy(own);
    return NULL;
}

/* The gathered jobs of all devices. */
static double gathered(void) {
    const char *device = getenv("KILN_TEST_DEVICE");
    char name[96];
    snprintf(name, sizeof name, "kiln_device_gathered_jobs_total{device=\"%s\"}",
             device == NULL || strcmp(device, "cpu") == 0 ? "cpu:0" : device);
    return metric_get(session, name);
}

static void same_bytes(const struct client *client) {
    assert_int_equal(client->together.size, client->alone.size);
    assert_memory_equal(client->together.body, client->alone.body, client->alone.size);
}

static double number(const cJSON *object, const char *name) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsNumber(item));
    return item->valuedouble;
}

/* Sums may be added up in another order. */
static void same_peaks(const struct client *client) {
    cJSON *alone = cJSON_Parse(client->alone.body), *together = cJSON_Parse(client->together.body);
    assert_non_null(alone);
    assert_non_null(together);
    assert_true(number(alone, "samples") == number(together, "samples"));
    assert_true(number(alone, "baseline") == number(together, "baseline"));
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(alone, "method")),
                        cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(together, "method")));
    const cJSON *timing = cJSON_GetObjectItemCaseSensitive(together, "timing");
    assert_true(number(timing, "kernel") > 0);
    const cJSON *one = cJSON_GetObjectItemCaseSensitive(alone, "peaks");
    const cJSON *other = cJSON_GetObjectItemCaseSensitive(together, "peaks");
    assert_int_equal(cJSON_GetArraySize(one), 3);
    assert_int_equal(cJSON_GetArraySize(other), 3);
    for (int i = 0; i < 3; i++) {
        const cJSON *a = cJSON_GetArrayItem(one, i), *b = cJSON_GetArrayItem(other, i);
        assert_true(number(a, "index") == number(b, "index"));
        assert_true(fabs(number(a, "power") - number(b, "power")) < 1e-9);
        assert_true(fabs(number(a, "frequency") / number(b, "frequency") - 1) < 1e-7);
    }
    cJSON_Delete(together);
    cJSON_Delete(alone);
}

static void pictures_make(struct client *client, int i, const char *rest) {
    snprintf(client->path, sizeof client->path,
             "/v1/mandelbrot?width=100&height=80&max_iter=300&xmin=-2.%d&%s", i, rest);
    client->request = (struct request){.path = client->path};
}

static void tiles_make(struct client *client, int i) {
    snprintf(client->path, sizeof client->path, "/v1/mandelbrot/tiles/4/%d/7.png", i);
    client->request = (struct request){.path = client->path};
}

static void png_make(struct client *client, int i) {
    pictures_make(client, i, "format=png");
}

static void npy_make(struct client *client, int i) {
    pictures_make(client, i, "format=npy&field=count");
}

/* Sines of different periods and lengths, on one grid. */
static void curve_make(struct client *client, int i) {
    size_t used = 0;
    for (int k = 0; k < SAMPLES - i; k++) {
        double t = k * 0.7 + 0.3 * sin(k), y = sin(t * (0.9 + 0.2 * i)) + 0.3 * cos(5.1 * t);
        used +=
            (size_t)snprintf(client->body + used, sizeof client->body - used, "%.9g,%.9g\n", t, y);
    }
    snprintf(client->path, sizeof client->path,
             "/v1/lombscargle?f0=0.01&df=0.001&nf=900&fields=peaks&peaks=3&format=json");
    client->request =
        (struct request){.path = client->path, .type = "text/csv", .body = client->body};
}

static void round_run(struct client *clients, void (*compare)(const struct client *)) {
    pthread_t holder;
    assert_int_equal(pthread_create(&holder, NULL, holder_run, NULL), 0);
    for (double until = now_s() + 20; metric_get(session, "kiln_running_jobs") < 1;) {
        assert_true(now_s() < until);
        if (pthread_tryjoin_np(holder, NULL) == 0) { /* too fast to be seen */
            assert_int_equal(pthread_create(&holder, NULL, holder_run, NULL), 0);
        }
    }
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_run, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_status(&clients[i].together, 200);
        compare(&clients[i]);
        answer_free(&clients[i].together);
    }
    pthread_join(holder, NULL);
}

static void check(void (*make)(struct client *, int), void (*compare)(const struct client *)) {
    static struct client clients[CLIENTS];
    memset(clients, 0, sizeof clients);
    for (int i = 0; i < CLIENTS; i++) {
        make(&clients[i], i);
        session_ask(session, &clients[i].request, &clients[i].alone);
        assert_status(&clients[i].alone, 200);
    }
    double before = gathered();
    int rounds = 0;
    do {
        round_run(clients, compare);
    } while (++rounds < ROUNDS && gathered() < before + 2);
    print_message("gathered %g of %d after %d rounds\n", gathered() - before, rounds * CLIENTS,
                  rounds);
    for (int i = 0; i < CLIENTS; i++) {
        answer_free(&clients[i].alone);
    }
}

/* What a device does not encode itself is never computed together. */
static bool encodes(void) {
    const char *device = getenv("KILN_TEST_DEVICE");
    return device != NULL && strncmp(device, "cuda", 4) == 0;
}

static void pngs(void **state) {
    double before = gathered();
    (void)state;
    if (encodes()) {
        check(png_make, same_bytes);
        assert_true(gathered() >= before + 2);
        return;
    }
    static struct client clients[CLIENTS];
    for (int i = 0; i < CLIENTS; i++) {
        png_make(&clients[i], i);
        session_ask(session, &clients[i].request, &clients[i].alone);
    }
    round_run(clients, same_bytes);
    for (int i = 0; i < CLIENTS; i++) {
        answer_free(&clients[i].alone);
    }
    assert_true(gathered() == before);
}

static void tiles(void **state) {
    (void)state;
    if (encodes()) {
        check(tiles_make, same_bytes);
        assert_true(gathered() >= 2);
    }
}

static void arrays(void **state) {
    double before = gathered();
    (void)state;
    check(npy_make, same_bytes);
    assert_true(gathered() >= before + 2);
}

static void light_curves(void **state) {
    double before = gathered();
    (void)state;
    check(curve_make, same_peaks);
    assert_true(gathered() >= before + 2);
}

/* One that cannot be computed fails by itself. */
static void a_bad_one_fails_alone(void **state) {
    static struct client clients[CLIENTS];
    (void)state;
    for (int i = 0; i < CLIENTS; i++) {
        curve_make(&clients[i], i);
        if (i == 3) {
            strcpy(clients[i].body, "1,2\n3,nan\n4,5\n6,7\n");
        }
        session_ask(session, &clients[i].request, &clients[i].alone);
        assert_true(clients[i].alone.status == (i == 3 ? 400 : 200) ||
                    clients[i].alone.status == 422);
    }
    pthread_t holder;
    assert_int_equal(pthread_create(&holder, NULL, holder_run, NULL), 0);
    for (int i = 0; i < CLIENTS; i++) {
        assert_int_equal(pthread_create(&clients[i].thread, NULL, client_run, &clients[i]), 0);
    }
    for (int i = 0; i < CLIENTS; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_int_equal(clients[i].together.status, clients[i].alone.status);
        if (i != 3) {
            same_peaks(&clients[i]);
        }
        answer_free(&clients[i].together);
        answer_free(&clients[i].alone);
    }
    pthread_join(holder, NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pngs),
        cmocka_unit_test(tiles),
        cmocka_unit_test(arrays),
        cmocka_unit_test(light_curves),
        cmocka_unit_test(a_bad_one_fails_alone),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
