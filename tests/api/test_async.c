/*
 * test_async.c: jobs that outlive their connection: Prefer: respond-async and what is asked of them
 * later, idempotency, owners, ranges, and what is left after kill -9 of the daemon.
 *
 * Nothing here depends on how fast jobs are: long ones are far too long to end by themselves, short
 * ones are waited for with Prefer: wait.
 */
#include "tests/api/lib_daemon.h"
#include "tests/api/lib_keys.h"

#include <cjson/cJSON.h>
#include <dirent.h>
#include <ftw.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATIENCE 60.0
#define PICTURE  "/v1/mandelbrot?width=64&height=48&max_iter=50"
#define ENDLESS  "10000000000" /* sweeps */
#define ASYNC    "Prefer: respond-async"

static const char *const flags[] = {"--max-iterations", "1000000000000", "--slots", "1",
                                    "--deadline",       "3600",          NULL};

static void ask(struct session *session, const char *method, const char *path, const char *first,
                const char *second, struct answer *answer) {
    const struct request request = {.method = method, .path = path, .headers = {first, second}};
    session_ask(session, &request, answer);
}

static void expect(struct session *session, const char *method, const char *path,
                   const char *header, int status) {
    struct answer answer;
    ask(session, method, path, header, NULL, &answer);
    assert_status(&answer, status);
    answer_free(&answer);
}

/* Sends a job to be kept; `path` receives its address. */
static void keep(struct session *session, const char *target, const char *header, char path[128]) {
    struct answer answer;
    ask(session, NULL, target, ASYNC, header, &answer);
    assert_status(&answer, 202);
    assert_true(answer_header(&answer, "Location", path, 128));
    assert_header(&answer, "Preference-Applied", "respond-async");
    assert_header(&answer, "Cache-Control", "no-store");
    answer_free(&answer);
}

/* The same for one of so many sweeps. */
static void sweeps_keep(struct session *session, const char *iterations, char path[128]) {
    char bytes[32 + 32 * 32] = {0};
    struct answer answer;
    size_t head = (size_t)snprintf(bytes, sizeof bytes, "P5\n32 32\n255\n");
    char target[128];
    snprintf(target, sizeof target, "/v1/jacobi?format=npy&method=sweeps&iterations=%s",
             iterations);
    const struct request request = {.path = target,
                                    .type = "application/octet-stream",
                                    .body = bytes,
                                    .size = head + 32 * 32,
                                    .headers = {ASYNC}};
    session_ask(session, &request, &answer);
    assert_status(&answer, 202);
    assert_true(answer_header(&answer, "Location", path, 128));
    answer_free(&answer);
}

/* The job once it has ended. */
static cJSON *end_wait(struct session *session, const char *path) {
    double end = now_s() + PATIENCE;
    for (;;) {
        struct answer answer;
        ask(session, NULL, path, "Prefer: wait=10", NULL, &answer);
        assert_status(&answer, 200);
        cJSON *job = cJSON_Parse(answer.body);
        const char *state = cJSON_GetStringValue(cJSON_GetObjectItem(job, "state"));
        answer_free(&answer);
        assert_non_null(state);
        if (strcmp(state, "queued") != 0 && strcmp(state, "running") != 0) {
            return job;
        }
        cJSON_Delete(job);
        assert_true(now_s() < end);
    }
}

static void state_expect(struct session *session, const char *path, const char *state) {
    cJSON *job = end_wait(session, path);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(job, "state")), state);
    cJSON_Delete(job);
}

/* Waits until the job is in this state, which is not its last one. */
static void state_wait(struct session *session, const char *path, const char *state) {
    double end = now_s() + PATIENCE;
    char wanted[64];
    snprintf(wanted, sizeof wanted, "\"state\":\"%s\"", state);
    for (bool there = false; !there;) {
        struct answer answer;
        session_get(session, path, &answer);
        assert_status(&answer, 200);
        there = strstr(answer.body, wanted) != NULL;
        answer_free(&answer);
        assert_true(there || now_s() < end);
        sleep_s(0.005);
    }
}

static void result_path(const char *path, char out[160]) {
    snprintf(out, 160, "%.127s/result", path);
}

static void result_is_that_of_a_request_which_waits(void **state) {
    (void)state;
    struct daemon daemon;
    struct answer answer, plain;
    char path[128], result[160], etag[96], digest[96], job_tag[32], header[128];
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    keep(session, PICTURE, "Kiln-Label: night-17", path);
    cJSON *job = end_wait(session, path);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(job, "state")), "succeeded");
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(job, "label")), "night-17");
    assert_true(cJSON_IsFalse(cJSON_GetObjectItem(job, "durable")));
    cJSON_Delete(job);

    session_get(session, PICTURE, &plain);
    assert_status(&plain, 200);
    result_path(path, result);
    session_get(session, result, &answer);
    assert_status(&answer, 200);
    assert_header(&answer, "Content-Type", "image/png");
    assert_header(&answer, "Accept-Ranges", "bytes");
    assert_true(answer.size == plain.size && memcmp(answer.body, plain.body, plain.size) == 0);
    assert_true(answer_header(&answer, "ETag", etag, sizeof etag) && strlen(etag) == 66);
    assert_true(answer_header(&answer, "Repr-Digest", digest, sizeof digest));
    assert_int_equal(strncmp(digest, "sha-256=:", 9), 0);
    answer_free(&answer);
    snprintf(header, sizeof header, "If-None-Match: %s", etag);
    expect(session, NULL, result, header, 304);

    ask(session, "HEAD", result, NULL, NULL, &answer);
    assert_status(&answer, 200);
    assert_int_equal(answer.size, 0);
    answer_free(&answer);

    session_get(session, path, &answer);
    assert_true(answer_header(&answer, "ETag", job_tag, sizeof job_tag));
    answer_free(&answer);
    snprintf(header, sizeof header, "If-None-Match: %s", job_tag);
    expect(session, NULL, path, header, 304);

    ask(session, NULL, PICTURE, "Prefer: respond-async, wait=30", NULL, &answer);
    assert_status(&answer, 200);
    assert_true(answer.size == plain.size && memcmp(answer.body, plain.body, plain.size) == 0);
    answer_free(&answer);
    answer_free(&plain);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

static const struct {
    const char *range;
    int status;
    size_t from, to; /* of 16 + …: bytes of the result, `to` 0: its end */
} ranges[] = {
    {"bytes=0-0", 206, 0, 1},
    {"bytes=5-9", 206, 5, 10},
    {"bytes=10-", 206, 10, 0},
    {"bytes=-7", 206, SIZE_MAX, 7},
    {"bytes=0-99999999999", 206, 0, 0},
    {"bytes=-99999999999", 206, 0, 0},
    {"bytes=99999999-", 416, 0, 0},
    {"bytes=-0", 416, 0, 0},
    {"bytes=9-5", 200, 0, 0},
    {"bytes=0-1,4-5", 200, 0, 0},
    {"bytes=a-b", 200, 0, 0},
    {"items=0-1", 200, 0, 0},
    {"bytes=", 200, 0, 0},
    {"bytes=1-2x", 200, 0, 0},
    {"bytes=99999999999999999999999-", 416, 0, 0},
};

/* `target`: a small result, which lies in the database, or a large one, which is a file. */
static void ranges_expect(struct session *session, const char *target) {
    struct answer whole, answer;
    char path[128], result[160], header[128], etag[96];
    keep(session, target, NULL, path);
    state_expect(session, path, "succeeded");
    result_path(path, result);
    session_get(session, result, &whole);
    assert_status(&whole, 200);
    assert_true(answer_header(&whole, "ETag", etag, sizeof etag));
    for (size_t i = 0; i < sizeof ranges / sizeof *ranges; i++) {
        snprintf(header, sizeof header, "Range: %s", ranges[i].range);
        ask(session, NULL, result, header, NULL, &answer);
        assert_status(&answer, ranges[i].status);
        size_t from = ranges[i].from, to = ranges[i].to;
        if (from == SIZE_MAX) {
            from = whole.size - to;
            to = 0;
        }
        to = to == 0 ? whole.size : to;
        if (ranges[i].status != 416) {
            assert_int_equal(answer.size, to - from);
            assert_memory_equal(answer.body, whole.body + from, to - from);
        }
        snprintf(header, sizeof header, "bytes */%zu", whole.size);
        if (ranges[i].status == 416) {
            assert_header(&answer, "Content-Range", header);
        }
        answer_free(&answer);
    }
    snprintf(header, sizeof header, "If-Range: %s", etag);
    ask(session, NULL, result, "Range: bytes=0-1", header, &answer);
    assert_status(&answer, 206);
    answer_free(&answer);
    ask(session, NULL, result, "Range: bytes=0-1", "If-Range: \"other\"", &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    answer_free(&whole);
}

static void parts_of_results(void **state) {
    (void)state;
    struct daemon daemon;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    ranges_expect(session, PICTURE);
    ranges_expect(session, "/v1/mandelbrot?width=300&height=200&max_iter=50&format=npy");
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

static void inputs_are_kept_as_they_were_sent(void **state) {
    (void)state;
    struct daemon daemon;
    struct answer answer, plain;
    char path[128], result[160], picture[32 + 64 * 64];
    size_t head = (size_t)snprintf(picture, sizeof picture, "P5\n64 64\n255\n");
    for (size_t i = 0; i < 64 * 64; i++) {
        picture[head + i] = (char)(i * i >> 5);
    }
    struct request request = {.path = "/v1/laplacian?format=npy",
                              .type = "application/octet-stream",
                              .body = picture,
                              .size = head + 64 * 64};
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    session_ask(session, &request, &plain);
    assert_status(&plain, 200);
    request.headers[0] = ASYNC;
    session_ask(session, &request, &answer);
    assert_status(&answer, 202);
    assert_true(answer_header(&answer, "Location", path, sizeof path));
    answer_free(&answer);
    state_expect(session, path, "succeeded");
    result_path(path, result);
    session_get(session, result, &answer);
    assert_true(answer.size == plain.size && memcmp(answer.body, plain.body, plain.size) == 0);
    answer_free(&answer);
    answer_free(&plain);
    keep(session, "/v1/mandelbrot/tiles/3/2/3.png", NULL, path);
    state_expect(session, path, "succeeded");
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

static void jobs_are_cancelled_and_forgotten(void **state) {
    (void)state;
    struct daemon daemon;
    struct answer answer;
    char running[128], waiting[128], done[128], result[160];
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    keep(session, PICTURE, NULL, done);
    state_expect(session, done, "succeeded");
    sweeps_keep(session, ENDLESS, running);
    state_wait(session, running, "running");
    result_path(running, result);
    session_get(session, result, &answer);
    assert_status(&answer, 409);
    assert_non_null(strstr(answer.body, "/problems/not-finished"));
    answer_free(&answer);
    sweeps_keep(session, ENDLESS, waiting);
    expect(session, "DELETE", waiting, NULL, 204);
    state_expect(session, waiting, "cancelled");
    expect(session, "DELETE", running, NULL, 204);
    state_expect(session, running, "cancelled");
    session_get(session, result, &answer);
    assert_status(&answer, 409);
    assert_non_null(strstr(answer.body, "/problems/job-failed"));
    answer_free(&answer);
    expect(session, "DELETE", running, NULL, 204);

    result_path(done, result);
    expect(session, NULL, result, NULL, 200);
    expect(session, "DELETE", done, NULL, 204);
    expect(session, NULL, result, NULL, 410);
    expect(session, "DELETE", done, NULL, 204);
    expect(session, NULL, done, NULL, 200);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* The deadline is one of runs: who waited behind another job for all of it has lost nothing. The
   problem of a job that fails is that of a request which waits. */
static void deadlines_are_of_runs(void **state) {
    (void)state;
    static const char *const short_flags[] = {
        "--max-iterations", "1000000000000", "--slots", "1", "--deadline", "2", NULL};
    struct daemon daemon;
    struct answer answer;
    char running[128], next[128], waiting[128], result[160];
    daemon_start(&daemon, short_flags);
    struct session *session = session_create(&daemon);
    sweeps_keep(session, ENDLESS, running);
    state_wait(session, running, "running");
    sweeps_keep(session, ENDLESS, next);
    sleep_s(0.01); /* ids tell the order, and a millisecond of theirs is shared */
    sweeps_keep(session, "1", waiting); /* behind two whole deadlines */
    state_expect(session, waiting, "succeeded");
    state_expect(session, next, "failed");
    state_expect(session, running, "failed");
    result_path(running, result);
    session_get(session, result, &answer);
    assert_status(&answer, 409);
    assert_non_null(strstr(answer.body, "\"error\":{\"type\":\"/problems/deadline\""));
    answer_free(&answer);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

static void what_is_wrong_is_said_at_once(void **state) {
    (void)state;
    static const struct {
        const char *path, *header;
        int status;
    } rows[] = {
        {"/v1/mandelbrot?width=0", NULL, 422},    {"/v1/mandelbrot?nothing=1", NULL, 422},
        {"/v1/mandelbrot?format=bmp", NULL, 406}, {PICTURE, "Idempotency-Key: bare", 400},
        {PICTURE, "Idempotency-Key: \"\"", 400},  {PICTURE, "Idempotency-Key: \"open", 400},
        {PICTURE, "Kiln-Label: two words", 400},  {PICTURE, "Kiln-Retain: soon", 400},
        {PICTURE, "Kiln-Expires: -1", 400},
    };
    struct daemon daemon;
    struct answer answer;
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        ask(session, NULL, rows[i].path, ASYNC, rows[i].header, &answer);
        assert_status(&answer, rows[i].status);
        answer_free(&answer);
    }
    expect(session, NULL, "/v1/jobs/0198a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b/result", NULL, 404);
    expect(session, NULL, "/v1/jobs/1/result", NULL, 404);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

static cJSON *list_get(struct session *session, const char *query) {
    char path[256];
    struct answer answer;
    snprintf(path, sizeof path, "/v1/jobs%.200s", query);
    session_get(session, path, &answer);
    assert_status(&answer, 200);
    cJSON *list = cJSON_Parse(answer.body);
    assert_non_null(list);
    answer_free(&answer);
    return list;
}

static int list_count(struct session *session, const char *query) {
    cJSON *list = list_get(session, query);
    int count = cJSON_GetArraySize(cJSON_GetObjectItem(list, "jobs"));
    cJSON_Delete(list);
    return count;
}

/* Every job once over pages, the newest first (ids of one millisecond in any order); filters by
   state, kind and label. */
static void kept_jobs_are_listed(void **state) {
    (void)state;
    enum { JOBS = 230 };
    static char paths[JOBS][128];
    struct daemon daemon;
    char query[64] = "", last[64] = "~";
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    for (int i = 0; i < JOBS; i++) {
        keep(session, "/v1/mandelbrot?width=8&height=8", i % 10 == 0 ? "Kiln-Label: tenth" : NULL,
             paths[i]);
    }
    for (int i = 0; i < JOBS; i++) {
        state_expect(session, paths[i], "succeeded");
    }
    int seen = 0, pages = 0;
    for (bool more = true; more; pages++) {
        cJSON *list = list_get(session, query), *job;
        cJSON_ArrayForEach(job, cJSON_GetObjectItem(list, "jobs")) {
            const char *id = cJSON_GetStringValue(cJSON_GetObjectItem(job, "id"));
            assert_non_null(id);
            assert_true(strcmp(id, last) < 0);
            snprintf(last, sizeof last, "%s", id);
            for (int i = 0; i < JOBS; i++) {
                seen += strcmp(paths[i] + strlen("/v1/jobs/"), id) == 0;
            }
        }
        const char *next = cJSON_GetStringValue(cJSON_GetObjectItem(list, "next"));
        more = next != NULL;
        snprintf(query, sizeof query, "?cursor=%.36s", more ? next : "");
        cJSON_Delete(list);
    }
    assert_int_equal(seen, JOBS);
    assert_true(pages > 1);
    assert_int_equal(list_count(session, "?label=tenth"), JOBS / 10);
    assert_int_equal(list_count(session, "?label=tenth&state=failed"), 0);
    assert_int_equal(list_count(session, "?label=tenth&state=succeeded&type=mandelbrot"),
                     JOBS / 10);
    assert_int_equal(list_count(session, "?type=jacobi"), 0);
    expect(session, NULL, "/v1/jobs?cursor=1", NULL, 422);
    expect(session, NULL, "/v1/jobs?state=lost", NULL, 422);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* ---- one key, many clients ---- */

struct racer {
    pthread_t thread;
    const struct daemon *daemon;
    char path[128];
    bool replayed;
};

static void *racer_run(void *argument) {
    struct racer *racer = argument;
    struct session *session = session_create(racer->daemon);
    struct answer answer;
    char value[16];
    ask(session, NULL, PICTURE, ASYNC, "Idempotency-Key: \"the \\\"one\\\"\"", &answer);
    assert_status(&answer, 202);
    assert_true(answer_header(&answer, "Location", racer->path, sizeof racer->path));
    racer->replayed = answer_header(&answer, "Idempotency-Replayed", value, sizeof value);
    answer_free(&answer);
    session_destroy(session);
    return NULL;
}

static void one_key_is_one_job(void **state) {
    (void)state;
    struct racer racers[32];
    struct daemon daemon;
    struct answer answer;
    int first = 0;
    daemon_start(&daemon, flags);
    for (size_t i = 0; i < 32; i++) {
        racers[i].daemon = &daemon;
        assert_int_equal(pthread_create(&racers[i].thread, NULL, racer_run, &racers[i]), 0);
    }
    for (size_t i = 0; i < 32; i++) {
        pthread_join(racers[i].thread, NULL);
        assert_string_equal(racers[i].path, racers[0].path);
        first += !racers[i].replayed;
    }
    assert_int_equal(first, 1);
    struct session *session = session_create(&daemon);
    ask(session, NULL, "/v1/mandelbrot?width=65", ASYNC, "Idempotency-Key: \"the \\\"one\\\"\"",
        &answer);
    assert_status(&answer, 422);
    assert_non_null(strstr(answer.body, "/problems/idempotency-mismatch"));
    answer_free(&answer);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* ---- owners ---- */

static void owners_see_their_own(void **state) {
    (void)state;
    struct keyfolder folder;
    struct secret one, other, admin;
    struct daemon daemon;
    char path[128], result[160];
    keyfolder_make(&folder);
    secret_make(&one, "--id one --scopes read,compute");
    secret_make(&other, "--id other --scopes read,compute");
    secret_make(&admin, "--id admin --scopes read,admin");
    const struct secret *const all[] = {&one, &other, &admin};
    secrets_write(&folder, all, 3, "");
    const char *const keyed[] = {"--keys", folder.keys, NULL};
    daemon_start(&daemon, keyed);
    struct session *session = session_create(&daemon);
    keep(session, PICTURE, one.header, path);
    result_path(path, result);
    session_header(session, one.header);
    state_expect(session, path, "succeeded");
    session_header(session, other.header);
    expect(session, NULL, path, NULL, 404);
    expect(session, NULL, result, NULL, 404);
    expect(session, "DELETE", path, NULL, 404);
    assert_int_equal(list_count(session, ""), 0);
    session_header(session, admin.header);
    expect(session, NULL, path, NULL, 200);
    assert_int_equal(list_count(session, ""), 1);
    session_header(session, one.header);
    expect(session, NULL, result, NULL, 200);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
    keyfolder_remove(&folder);
}

/* ---- kill -9 ---- */

static int entry_remove(const char *path, const struct stat *status, int kind, struct FTW *walk) {
    (void)status, (void)kind, (void)walk;
    return remove(path);
}

#define LIVES 5
#define KEPT  20 /* jobs of a life */

/* Every job that was acknowledged is there in the next life, ends once, and has its result. The
   first one never ends and keeps the only slot, so that all others are unfinished at each kill. */
static void nothing_acknowledged_is_lost(void **state) {
    (void)state;
    static char paths[LIVES * KEPT][128];
    char folder[] = "/tmp/kiln-async-XXXXXX", target[160], result[160];
    struct daemon daemon;
    size_t count = 0;
    assert_non_null(mkdtemp(folder));
    char endless[128];
    const char *const durable[] = {"--state-dir", folder, "--slots",          "1",
                                   "--deadline",  "3600", "--max-iterations", "1000000000000",
                                   NULL};
    for (int life = 0; life < LIVES; life++) {
        daemon_start(&daemon, durable);
        struct session *session = session_create(&daemon);
        if (life == 0) {
            sweeps_keep(session, ENDLESS, endless);
        }
        state_wait(session, endless, "running");
        for (int i = 0; i < KEPT; i++) {
            snprintf(target, sizeof target, "/v1/mandelbrot?width=%zu&height=400&max_iter=2000",
                     300 + count);
            keep(session, target, NULL, paths[count++]);
        }
        session_destroy(session);
        daemon_signal(&daemon, SIGKILL);
        assert_int_equal(daemon_wait(&daemon), -SIGKILL);
    }
    daemon_start(&daemon, durable);
    struct session *session = session_create(&daemon);
    state_wait(session, endless, "running");
    expect(session, "DELETE", endless, NULL, 204);
    cJSON *first = end_wait(session, endless);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(first, "state")), "cancelled");
    assert_true(cJSON_GetObjectItem(first, "attempt")->valuedouble == LIVES + 1);
    cJSON_Delete(first);
    for (size_t i = 0; i < count; i++) {
        struct answer answer;
        cJSON *job = end_wait(session, paths[i]);
        assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(job, "state")), "succeeded");
        assert_true(cJSON_IsTrue(cJSON_GetObjectItem(job, "durable")));
        cJSON_Delete(job);
        result_path(paths[i], result);
        session_get(session, result, &answer);
        assert_status(&answer, 200);
        assert_memory_equal(answer.body, "\x89PNG", 4);
        answer_free(&answer);
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
    nftw(folder, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
}

static pid_t parent_of(pid_t pid) {
    char path[64];
    int parent = 0;
    snprintf(path, sizeof path, "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "r");
    if (file != NULL) {
        if (fscanf(file, "%*d (%*[^)]) %*c %d", &parent) != 1) {
            parent = 0;
        }
        fclose(file);
    }
    return parent;
}

/* The process of the store, which the spawner, the daemon's child, has started; 0 for none. */
static pid_t store_find(const struct daemon *daemon) {
    DIR *folder = opendir("/proc");
    struct dirent *entry;
    pid_t found = 0;
    assert_non_null(folder);
    while (found == 0 && (entry = readdir(folder)) != NULL) {
        pid_t pid = (pid_t)atoi(entry->d_name);
        char path[64], line[64] = "";
        snprintf(path, sizeof path, "/proc/%d/cmdline", (int)pid);
        FILE *file = pid > 0 ? fopen(path, "r") : NULL;
        if (file != NULL) {
            size_t size = fread(line, 1, sizeof line - 1, file);
            fclose(file);
            bool store = size > 12 && memcmp(line, "kilnd\0store", 12) == 0;
            found = store && parent_of(parent_of(pid)) == daemon->pid ? pid : 0;
        }
    }
    closedir(folder);
    return found;
}

/* Its store is started again, and those who come meanwhile find it, or are told when to return. */
static void store_is_started_again(void **state) {
    (void)state;
    char folder[] = "/tmp/kiln-async-XXXXXX", endless[128], path[128];
    struct daemon daemon;
    assert_non_null(mkdtemp(folder));
    const char *const durable[] = {"--state-dir",      folder,          "--slots", "2",
                                   "--max-iterations", "1000000000000", NULL};
    daemon_start(&daemon, durable);
    struct session *session = session_create(&daemon);
    sweeps_keep(session, ENDLESS, endless);
    state_wait(session, endless, "running");
    for (int i = 0; i < 3; i++) {
        pid_t before = store_find(&daemon), after = 0;
        assert_true(before > 0 && kill(before, SIGKILL) == 0);
        expect(session, NULL, PICTURE, NULL, 200); /* does not need it */
        double end = now_s() + PATIENCE;
        for (int status = 0; status != 202;) {
            struct answer answer;
            ask(session, NULL, PICTURE, ASYNC, NULL, &answer);
            status = answer.status;
            assert_true(status == 202 || status == 503);
            assert_true(status == 503 || answer_header(&answer, "Location", path, sizeof path));
            answer_free(&answer);
            after = store_find(&daemon);
            assert_true(now_s() < end);
            sleep_s(status == 503 ? 0.02 : 0);
        }
        assert_true(after != before && after > 0);
    }
    state_wait(session, endless, "running"); /* the same run goes on */
    expect(session, "DELETE", endless, NULL, 204);
    cJSON *job = end_wait(session, endless);
    assert_string_equal(cJSON_GetStringValue(cJSON_GetObjectItem(job, "state")), "cancelled");
    assert_true(cJSON_GetObjectItem(job, "attempt")->valuedouble == 1);
    cJSON_Delete(job);
    state_expect(session, path, "succeeded");
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
    nftw(folder, entry_remove, 8, FTW_DEPTH | FTW_PHYS);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(result_is_that_of_a_request_which_waits),
        cmocka_unit_test(parts_of_results),
        cmocka_unit_test(inputs_are_kept_as_they_were_sent),
        cmocka_unit_test(jobs_are_cancelled_and_forgotten),
        cmocka_unit_test(deadlines_are_of_runs),
        cmocka_unit_test(what_is_wrong_is_said_at_once),
        cmocka_unit_test(kept_jobs_are_listed),
        cmocka_unit_test(one_key_is_one_job),
        cmocka_unit_test(owners_see_their_own),
        cmocka_unit_test(nothing_acknowledged_is_lost),
        cmocka_unit_test(store_is_started_again),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
