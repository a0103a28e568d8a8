/*
 * test_progress.c: jobs that wait or run are listed, tell how far they are, and can be cancelled.
 *
 * The jobs here are far too long to end by themselves, so nothing depends on how fast they are.
 */
#include "tests/api/lib_daemon.h"

#include <cjson/cJSON.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SWEEPS   "10000000000"
#define PATIENCE 60.0 /* seconds; only a daemon that is broken needs them */

static const char *const flags[] = {"--max-iterations", "1000000000000", "--slots", "1", NULL};

/* One client in a thread of its own. */
struct client {
    pthread_t thread;
    const struct daemon *daemon;
    const char *header; /* "X-Request-Id: …", or NULL */
    struct answer answer;
};

static void *client_run(void *argument) {
    char bytes[32 + 32 * 32] = {0};
    struct client *client = argument;
    size_t head = (size_t)snprintf(bytes, sizeof bytes, "P5\n32 32\n255\n");
    const struct request request = {
        .path = "/v1/jacobi?format=npy&method=sweeps&iterations=" SWEEPS,
        .type = "application/octet-stream",
        .body = bytes,
        .size = head + 32 * 32,
        .headers = {client->header},
    };
    struct session *session = session_create(client->daemon);
    session_ask(session, &request, &client->answer);
    session_destroy(session);
    return NULL;
}

static void client_start_as(struct client *client, const struct daemon *daemon,
                            const char *header) {
    *client = (struct client){.daemon = daemon, .header = header};
    assert_int_equal(pthread_create(&client->thread, NULL, client_run, client), 0);
}

static void client_start(struct client *client, const struct daemon *daemon) {
    client_start_as(client, daemon, NULL);
}

static cJSON *document_get(struct session *session, const char *path) {
    struct answer answer;
    session_get(session, path, &answer);
    assert_status(&answer, 200);
    assert_header(&answer, "Content-Type", "application/json");
    assert_header(&answer, "Cache-Control", "no-store");
    cJSON *document = cJSON_Parse(answer.body);
    assert_non_null(document);
    answer_free(&answer);
    return document;
}

static double number_of(const cJSON *object, const char *name) {
    const cJSON *member = cJSON_GetObjectItemCaseSensitive(object, name);
    assert_true(cJSON_IsNumber(member));
    return member->valuedouble;
}

static const char *text_of(const cJSON *object, const char *name) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(object, name));
    assert_non_null(text);
    return text;
}

/* Waits until so many jobs are listed, the first of them running if there are any. */
static cJSON *list_wait(struct session *session, int count) {
    double end = now_s() + PATIENCE;
    for (;;) {
        cJSON *document = document_get(session, "/v1/jobs");
        const cJSON *jobs = cJSON_GetObjectItemCaseSensitive(document, "jobs");
        assert_true(cJSON_IsArray(jobs));
        assert_true((int)number_of(document, "total") == cJSON_GetArraySize(jobs));
        const cJSON *first = cJSON_GetArrayItem(jobs, 0);
        if (cJSON_GetArraySize(jobs) == count &&
            (count == 0 || strcmp(text_of(first, "state"), "running") == 0)) {
            return document;
        }
        cJSON_Delete(document);
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
}

static void path_of(const cJSON *document, int index, char *path, size_t size) {
    const cJSON *jobs = cJSON_GetObjectItemCaseSensitive(document, "jobs");
    const char *id = text_of(cJSON_GetArrayItem(jobs, index), "id");
    assert_int_equal(strlen(id), 36);
    assert_int_equal(id[14], '7'); /* the version of its UUID */
    snprintf(path, size, "/v1/jobs/%s", id);
}

static void delete_expect(struct session *session, const char *path, int status) {
    const struct request request = {.method = "DELETE", .path = path};
    struct answer answer;
    session_ask(session, &request, &answer);
    assert_status(&answer, status);
    answer_free(&answer);
}

/* The client whose job was cancelled is told so. */
static void client_expect_revoked(struct client *client, const char *path) {
    char job[64];
    pthread_join(client->thread, NULL);
    assert_status(&client->answer, 409);
    assert_header(&client->answer, "Content-Type", "application/problem+json");
    assert_non_null(strstr(client->answer.body, "/problems/revoked"));
    snprintf(job, sizeof job, "\"job\":\"%s\"", strrchr(path, '/') + 1);
    assert_non_null(strstr(client->answer.body, job));
    answer_free(&client->answer);
}

/* Progress of the running job rises several times and never falls. */
static void progress_watch(struct session *session, const char *path) {
    double last = 0, running = 0, end = now_s() + PATIENCE;
    for (int risen = 0; risen < 4;) {
        cJSON *job = document_get(session, path);
        double progress = number_of(job, "progress"), seconds = number_of(job, "running_seconds");
        assert_string_equal(text_of(job, "id"), strrchr(path, '/') + 1);
        assert_string_equal(text_of(job, "type"), "jacobi");
        assert_string_equal(text_of(job, "state"), "running");
        assert_true(progress >= last && progress < 1);
        assert_true(seconds >= running && seconds <= number_of(job, "age_seconds") + 0.001);
        assert_true(number_of(job, "attempt") == 0);
        assert_true(number_of(job, "cost") > 1e12);
        assert_non_null(strchr(text_of(job, "device"), ':'));
        cJSON_Delete(job);
        risen += progress > last;
        last = progress;
        running = seconds;
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
}

static void progress_rises_and_jobs_are_cancelled(void **state) {
    (void)state;
    struct daemon daemon;
    struct client clients[2];
    struct answer answer;
    char running[64], waiting[64];
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    cJSON_Delete(list_wait(session, 0));
    client_start(&clients[0], &daemon);
    cJSON *list = list_wait(session, 1);
    path_of(list, 0, running, sizeof running);
    cJSON_Delete(list);
    client_start(&clients[1], &daemon);
    list = list_wait(session, 2);
    path_of(list, 1, waiting, sizeof waiting);
    cJSON_Delete(list);

    cJSON *job = document_get(session, waiting);
    assert_string_equal(text_of(job, "state"), "queued");
    assert_true(number_of(job, "progress") == 0 && number_of(job, "running_seconds") == 0);
    assert_true(cJSON_IsNull(cJSON_GetObjectItemCaseSensitive(job, "device")));
    cJSON_Delete(job);
    progress_watch(session, running);

    delete_expect(session, waiting, 204);
    client_expect_revoked(&clients[1], waiting);
    delete_expect(session, running, 204);
    client_expect_revoked(&clients[0], running);
    cJSON_Delete(list_wait(session, 0));
    delete_expect(session, running, 404);
    session_get(session, running, &answer);
    assert_status(&answer, 404);
    answer_free(&answer);
    assert_true(metric_get(session, "kiln_jobs_cancelled_total") == 2);
    assert_true(metric_get(session, "kiln_jobs_failed_total") == 0);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

static void connection_limit_of_no_job(void **state) {
    (void)state;
    static const char *const paths[] = {
        "/v1/jobs/00000000-0000-0000-0000-000000000000",
        "/v1/jobs/0198a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b",
        "/v1/jobs/0198A1B2-C3D4-7E5F-8A6B-7C8D9E0F1A2B",
        "/v1/jobs/0198a1b2-c3d4-4e5f-8a6b-7c8d9e0f1a2b",
        "/v1/jobs/0198a1b2c3d47e5f8a6b7c8d9e0f1a2b",
        "/v1/jobs/%7b0198a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b%7d",
        "/v1/jobs/0000000000000001",
        "/v1/jobs/1",
        "/v1/jobs/typess",
    };
    struct daemon daemon;
    struct answer answer;
    daemon_start(&daemon, NULL);
    struct session *session = session_create(&daemon);
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        session_get(session, paths[i], &answer);
        assert_status(&answer, 404);
        assert_non_null(strstr(answer.body, "/problems/not-found"));
        answer_free(&answer);
        delete_expect(session, paths[i], 404);
    }
    const struct request post = {.path = "/v1/jobs/0198a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b",
                                 .type = "application/json",
                                 .body = "{}"};
    session_ask(session, &post, &answer);
    assert_status(&answer, 405);
    assert_header(&answer, "Allow", "GET, HEAD, DELETE, OPTIONS");
    answer_free(&answer);
    delete_expect(session, "/v1/jobs/types", 405);
    delete_expect(session, "/v1/jobs", 405);
    session_get(session, "/v1/jobs/types", &answer);
    assert_status(&answer, 200);
    assert_non_null(strstr(answer.body, "\"fields\""));
    answer_free(&answer);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* How many jobs a query lists; the first one's path where there is one. */
static int jobs_of(struct session *session, const char *query, char *path, size_t size) {
    char address[256];
    snprintf(address, sizeof address, "/v1/jobs%s", query);
    cJSON *document = document_get(session, address);
    int count = cJSON_GetArraySize(cJSON_GetObjectItemCaseSensitive(document, "jobs"));
    assert_true((int)number_of(document, "total") == count);
    if (count > 0) {
        path_of(document, 0, path, size);
    }
    cJSON_Delete(document);
    return count;
}

static void jobs_are_asked_for_by_what_they_are(void **state) {
    (void)state;
    struct daemon daemon;
    struct client clients[2];
    struct answer answer;
    char running[64], waiting[64], path[64];
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    client_start_as(&clients[0], &daemon, "X-Request-Id: alice/1");
    cJSON *list = list_wait(session, 1);
    path_of(list, 0, running, sizeof running);
    const cJSON *first = cJSON_GetArrayItem(cJSON_GetObjectItemCaseSensitive(list, "jobs"), 0);
    assert_string_equal(text_of(first, "request_id"), "alice/1");
    cJSON_Delete(list);
    client_start_as(&clients[1], &daemon, "X-Request-Id: bob");
    list = list_wait(session, 2);
    path_of(list, 1, waiting, sizeof waiting);
    cJSON_Delete(list);
    const struct {
        const char *query;
        int count;
        const char *first;
    } rows[] = {{"?", 2, running},
                {"?state=running", 1, running},
                {"?state=queued", 1, waiting},
                {"?type=jacobi", 2, running},
                {"?type=mandelbrot", 0, ""},
                {"?request_id=bob", 1, waiting},
                {"?request_id=alice/1", 1, running},
                {"?request_id=alice%2f1&state=running", 1, running},
                {"?request_id=alice/1&state=queued", 0, ""},
                {"?request_id=nobody", 0, ""},
                {"?type=jacobi&state=queued&request_id=bob", 1, waiting}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        path[0] = '\0';
        assert_int_equal(jobs_of(session, rows[i].query, path, sizeof path), rows[i].count);
        assert_string_equal(path, rows[i].first);
    }
    static const struct {
        const char *query, *field;
        int status;
    } wrong[] = {{"?state=done", "state", 422},
                 {"?state=", "state", 422},
                 {"?state=running&state=running", "state", 422},
                 {"?type=jacobi,mandelbrot", "type", 422},
                 {"?type=", "type", 422},
                 {"?request_id=", "request_id", 422},
                 {"?request_id=a%20b", "request_id", 422},
                 {"?device=cpu", "device", 422},
                 {"?limit=3&State=running", "State", 422},
                 {"?state=%zz", "escape", 400}};
    for (size_t i = 0; i < sizeof wrong / sizeof wrong[0]; i++) {
        char address[64], field[32];
        snprintf(address, sizeof address, "/v1/jobs%s", wrong[i].query);
        snprintf(field, sizeof field, wrong[i].status == 422 ? "\"field\":\"%s\"" : "%s",
                 wrong[i].field);
        session_get(session, address, &answer);
        assert_status(&answer, wrong[i].status);
        assert_header(&answer, "Content-Type", "application/problem+json");
        assert_non_null(strstr(answer.body, field));
        answer_free(&answer);
    }
    delete_expect(session, waiting, 204);
    client_expect_revoked(&clients[1], waiting);
    delete_expect(session, running, 204);
    client_expect_revoked(&clients[0], running);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* A client finds the job that its request waits for by the id that it has given it, also where
   another request has brought that job. */
static void requests_that_share_a_job_find_it(void **state) {
    (void)state;
    static const char *const shared[] = {
        "--max-iterations", "1000000000000", "--slots", "1", "--cache-bytes", "8M", NULL};
    struct daemon daemon;
    struct client clients[2];
    char path[64] = "", other[64] = "";
    double end = now_s() + PATIENCE;
    daemon_start(&daemon, shared);
    struct session *session = session_create(&daemon);
    client_start_as(&clients[0], &daemon, "X-Request-Id: first");
    cJSON_Delete(list_wait(session, 1));
    client_start_as(&clients[1], &daemon, "X-Request-Id: second");
    while (jobs_of(session, "?request_id=second", other, sizeof other) == 0) {
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
    assert_int_equal(jobs_of(session, "?request_id=first", path, sizeof path), 1);
    assert_string_equal(path, other);
    assert_int_equal(jobs_of(session, "?request_id=third", path, sizeof path), 0);
    delete_expect(session, other, 204);
    for (int i = 0; i < 2; i++) {
        pthread_join(clients[i].thread, NULL);
        assert_status(&clients[i].answer, 409);
        answer_free(&clients[i].answer);
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* What was noted before a restart names no job after it. */
static void ids_do_not_come_again(void **state) {
    (void)state;
    char before[64] = "", after[64];
    for (int round = 0; round < 2; round++) {
        struct daemon daemon;
        struct client client;
        daemon_start(&daemon, flags);
        struct session *session = session_create(&daemon);
        client_start(&client, &daemon);
        cJSON *list = list_wait(session, 1);
        path_of(list, 0, after, sizeof after);
        cJSON_Delete(list);
        if (round > 0) {
            assert_true(strcmp(before, after) < 0); /* in the order of time */
            delete_expect(session, before, 404);
            cJSON_Delete(list_wait(session, 1));
        }
        delete_expect(session, after, 204);
        client_expect_revoked(&client, after);
        memcpy(before, after, sizeof before);
        session_destroy(session);
        assert_int_equal(daemon_stop(&daemon), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(progress_rises_and_jobs_are_cancelled),
        cmocka_unit_test(connection_limit_of_no_job),
        cmocka_unit_test(jobs_are_asked_for_by_what_they_are),
        cmocka_unit_test(requests_that_share_a_job_find_it),
        cmocka_unit_test(ids_do_not_come_again),
    };
    return cmocka_run_group_tests_name("api.progress", tests, NULL, NULL);
}
