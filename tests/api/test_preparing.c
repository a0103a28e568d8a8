/*
 * test_preparing.c: large and hostile bodies are bounded in pairs and time, hold up nobody, are
 * listed, and end with what ends a job.
 *
 * Where a body has to take long, the daemon is kilnd-faults: its jobs of kind `fault` are prepared
 * for as long as they are told (what=prepare), and look for their end as a parser does. They would
 * take hours; nothing here waits for them or depends on how fast anything is.
 */
#include "tests/api/lib_daemon.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PATIENCE 60.0              /* seconds; only a daemon that is broken needs them */
#define LONG     ((size_t)2 << 20) /* bytes of a body that counts as long */
#define SHORT    ((size_t)128 << 10)
#define FOREVER  "{\"what\":\"prepare\",\"ms\":1000000,\"seed\":"

/* A JSON body, filled up with blanks, that another thread sends. */
struct client {
    pthread_t thread;
    const struct daemon *daemon;
    char *body;
    struct answer answer;
};

static char *body_make(const char *start, int seed, size_t size) {
    char *body = malloc(size + 1);
    assert_non_null(body);
    memset(body, ' ', size);
    size_t used = (size_t)snprintf(body, size, "%s%d", start, seed);
    body[used] = ' ';
    body[size - 1] = '}';
    body[size] = '\0';
    return body;
}

static void ask(struct session *session, const char *path, const char *type, const char *body,
                struct answer *answer) {
    const struct request request = {.path = path, .type = type, .body = body};
    session_ask(session, &request, answer);
}

static void *client_run(void *argument) {
    struct client *client = argument;
    struct session *session = session_create(client->daemon);
    ask(session, "/v1/fault", "application/json", client->body, &client->answer);
    session_destroy(session);
    return NULL;
}

static void client_start(struct client *client, const struct daemon *daemon, int seed) {
    *client = (struct client){.daemon = daemon, .body = body_make(FOREVER, seed, LONG)};
    assert_int_equal(pthread_create(&client->thread, NULL, client_run, client), 0);
}

static void client_expect(struct client *client, int status, const char *page) {
    pthread_join(client->thread, NULL);
    assert_status(&client->answer, status);
    assert_non_null(strstr(client->answer.body, page));
    answer_free(&client->answer);
    free(client->body);
}

/* Waits until so many jobs are listed, which all are being prepared. */
static void list_wait(struct session *session, int count, char ids[][64]) {
    double end = now_s() + PATIENCE;
    for (;;) {
        struct answer answer;
        session_get(session, "/v1/jobs", &answer);
        assert_status(&answer, 200);
        cJSON *document = cJSON_Parse(answer.body);
        const cJSON *jobs = cJSON_GetObjectItemCaseSensitive(document, "jobs");
        int found = cJSON_GetArraySize(jobs);
        assert_true((int)cJSON_GetObjectItemCaseSensitive(document, "total")->valuedouble == found);
        for (int i = 0; i < found && i < count; i++) {
            const cJSON *job = cJSON_GetArrayItem(jobs, i);
            assert_string_equal(
                cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(job, "state")), "preparing");
            assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(job, "type")),
                                "fault");
            snprintf(ids[i], sizeof ids[i], "/v1/jobs/%s",
                     cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(job, "id")));
        }
        cJSON_Delete(document);
        answer_free(&answer);
        if (found == count) {
            return;
        }
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
}

static int status_of(struct session *session, const char *method, const char *path) {
    const struct request request = {.method = method, .path = path};
    struct answer answer;
    session_ask(session, &request, &answer);
    int status = answer.status;
    answer_free(&answer);
    return status;
}

/* More long bodies than there are threads: everything else goes on, and each can be ended. */
static void long_bodies_hold_up_nobody(void **state) {
    (void)state;
    enum { COUNT = 4 };
    struct daemon daemon;
    struct client clients[COUNT];
    char ids[COUNT][64];
    struct answer answer;
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    for (int i = 0; i < COUNT; i++) {
        client_start(&clients[i], &daemon, i);
    }
    list_wait(session, COUNT, ids);
    assert_int_equal(status_of(session, "GET", "/healthz"), 200);
    assert_int_equal(status_of(session, "GET", "/readyz"), 200);
    assert_int_equal(status_of(session, "GET", "/v1/mandelbrot?width=64&height=64"), 200);
    assert_int_equal(status_of(session, "GET", ids[0]), 200);
    char *body = body_make("{\"what\":\"none\",\"seed\":", 100, SHORT); /* the loader's too */
    ask(session, "/v1/fault", "application/json", body, &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    free(body);
    for (int i = 0; i < COUNT; i++) {
        assert_int_equal(status_of(session, "DELETE", ids[i]), 204);
    }
    for (int i = 0; i < COUNT; i++) {
        client_expect(&clients[i], 409, "/problems/revoked");
    }
    list_wait(session, 0, NULL);
    assert_int_equal(status_of(session, "DELETE", ids[0]), 404);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

static void connections_that_leave_end_it(void **state) {
    (void)state;
    struct daemon daemon;
    char head[160], ids[3][64], *body = body_make(FOREVER, 1, LONG);
    int size = snprintf(head, sizeof head,
                        "POST /v1/fault HTTP/1.1\r\nHost: localhost\r\n"
                        "Content-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
                        LONG);
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    int fds[3];
    for (int i = 0; i < 3; i++) { /* the third waits for a thread */
        fds[i] = raw_open(&daemon);
        assert_int_equal(write(fds[i], head, (size_t)size), size);
        for (size_t sent = 0; sent < LONG;) {
            ssize_t count = write(fds[i], body + sent, LONG - sent);
            assert_true(count > 0);
            sent += (size_t)count;
        }
    }
    list_wait(session, 3, ids);
    for (int i = 0; i < 3; i++) {
        close(fds[i]);
    }
    list_wait(session, 0, NULL);
    free(body);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

static void the_deadline_ends_it(void **state) {
    (void)state;
    static const char *const flags[] = {"--deadline", "2", NULL};
    struct daemon daemon;
    struct client client;
    daemon_start(&daemon, flags);
    client_start(&client, &daemon, 1);
    client_expect(&client, 504, "/problems/deadline");
    assert_int_equal(daemon_stop(&daemon), 0);
}

static void the_end_of_the_daemon_ends_it(void **state) {
    (void)state;
    struct daemon daemon;
    struct client clients[3];
    char ids[3][64];
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    for (int i = 0; i < 3; i++) {
        client_start(&clients[i], &daemon, i);
    }
    list_wait(session, 3, ids);
    session_destroy(session);
    daemon_signal(&daemon, SIGTERM);
    for (int i = 0; i < 3; i++) {
        client_expect(&clients[i], 503, "/problems/draining");
    }
    assert_int_equal(daemon_wait(&daemon), 0);
}

/* ---- bounds ---- */

/* "prefix" and `count` times `piece`, in which %d, if any, is the number, and `suffix`. */
static char *repeat(const char *prefix, const char *piece, int count, const char *suffix) {
    size_t room = strlen(prefix) + (size_t)count * (strlen(piece) + 12) + strlen(suffix) + 1;
    char *text = malloc(room);
    assert_non_null(text);
    size_t used = (size_t)snprintf(text, room, "%s", prefix);
    for (int i = 0; i < count; i++) {
        used += (size_t)snprintf(text + used, room - used, piece, i);
    }
    snprintf(text + used, room - used, "%s", suffix);
    return text;
}

#define PART "--b\r\nContent-Disposition: form-data; name=\"k%d\"\r\n\r\nv\r\n"
#define FILES                                                                                      \
    "--b\r\nContent-Disposition: form-data; name=\"k%d\"; filename=\"a\"\r\n"                      \
    "Content-Type: application/json\r\n\r\n"                                                       \
    "{\"a\":1,\"b\":1,\"c\":1,\"d\":1,\"e\":1,\"f\":1,\"g\":1}\r\n"

/* Just what is allowed is read to its end and judged (422); one more is refused as it stands. */
static void pairs_are_bounded(void **state) {
    (void)state;
    static const struct {
        const char *path, *type, *prefix, *piece, *suffix;
        int count, status;
        const char *says;
    } rows[] = {
        {"?", "application/x-www-form-urlencoded", "", "k%d=v&", "", 256, 422, "256 fields cannot"},
        {"?", "application/x-www-form-urlencoded", "", "k%d=v&", "", 257, 400, "more than 256"},
        {"?a=1&b=2", "application/x-www-form-urlencoded", "", "k%d=v&", "", 255, 400, "form"},
        {"?", "application/x-www-form-urlencoded", "a=1", "&", "", 900000, 422, "1 field "},
        {"?", "application/x-www-form-urlencoded", "", "k%d=v&", "", 4000000, 400, "more than 256"},
        {"?", "application/json", "{", "\"k%d\":1,", "\"z\":1}", 255, 422, "256 fields cannot"},
        {"?", "application/json", "{", "\"k%d\":1,", "\"z\":1}", 256, 400, "too many members"},
        {"?", "application/json", "{", "\"k%d\":1,", "\"z\":1}", 1000000, 400, "too many members"},
        {"?a=1", "application/json", "{", "\"k%d\":1,", "\"z\":1}", 255, 400, "more than 256"},
        {"?", "application/json", "{\"width\":[", "%d,", "1]}", 1000000, 422, "width"},
        {"?", "application/json", "{\"width\":", "1", "}", 1000000, 400, "range"},
        {"?", "application/json", "{\"width\":\"", "x", "\"}", 4000000, 422, "width"},
        {"?", "multipart/form-data; boundary=b", "", PART, "--b--\r\n", 128, 422, "128 fields"},
        {"?", "multipart/form-data; boundary=b", "", PART, "--b--\r\n", 129, 400, "more than 128"},
        {"?", "multipart/form-data; boundary=b", "", PART, "--b--\r\n", 100000, 400, "than 128"},
        {"?", "multipart/form-data; boundary=b", "", FILES, "--b--\r\n", 37, 400, "more than 256"},
    };
    struct daemon daemon;
    struct answer answer;
    char path[64];
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char *body = repeat(rows[i].prefix, rows[i].piece, rows[i].count, rows[i].suffix);
        snprintf(path, sizeof path, "/v1/mandelbrot%s", rows[i].path);
        ask(session, path, rows[i].type, body, &answer);
        print_message("%d × %.20s: %d %.160s\n", rows[i].count, rows[i].piece, answer.status,
                      answer.body);
        assert_status(&answer, rows[i].status);
        assert_non_null(strstr(answer.body, rows[i].says));
        answer_free(&answer);
        free(body);
    }
    /* queries: ampersands alone are nothing, pairs count */
    char *query = repeat("/v1/mandelbrot?width=64&height=64", "&", 100, "");
    assert_int_equal(status_of(session, "GET", query), 200);
    free(query);
    query = repeat("/v1/mandelbrot?width=64", "&a", 257, "");
    assert_int_equal(status_of(session, "GET", query), 400);
    free(query);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pairs_are_bounded),
        cmocka_unit_test(long_bodies_hold_up_nobody),
        cmocka_unit_test(connections_that_leave_end_it),
        cmocka_unit_test(the_deadline_ends_it),
        cmocka_unit_test(the_end_of_the_daemon_ends_it),
    };
    const char *faults = getenv("KILND_FAULTS");
    if (faults == NULL) {
        printf("KILND_FAULTS says where the tests' own daemon is: skipped\n");
        return 77;
    }
    setenv("KILND", faults, 1);
    return cmocka_run_group_tests_name("api.preparing", tests, NULL, NULL);
}
