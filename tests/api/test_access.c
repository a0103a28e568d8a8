/*
 * test_access.c: keys: scopes, limits, owners, kept results, reloading, and that nothing of them is
 * logged.
 */
#include "tests/api/lib_keys.h"

#include <netinet/in.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

static struct keyfolder folder;
static struct secret reads, computes, owner, rules, unknown, slow, single;
static struct daemon shared;

static const struct secret *const all[] = {&reads, &computes, &owner, &rules, &slow, &single};
#define ALL (sizeof all / sizeof all[0])

static int setup(void **state) {
    static const char *flags[] = {"--keys",
                                  NULL,
                                  "--max-iterations",
                                  "1000000000000",
                                  "--cache-bytes",
                                  "4M",
                                  "--log-level",
                                  "debug",
                                  "--wrong-keys",
                                  "0",
                                  NULL};
    (void)state;
    keyfolder_make(&folder);
    secret_make(&reads, "--id reads --scopes read");
    secret_make(&computes, "--id computes --scopes compute");
    secret_make(&owner, "--id owner --scopes compute,read");
    secret_make(&rules, "--id rules --scopes admin,read");
    secret_make(&unknown, "--id unknown --scopes admin,read,compute");
    secret_make(&slow, "--id slow --scopes read,compute --rate 0.01 --burst 3");
    secret_make(&single, "--id single --scopes read,compute --concurrency 1");
    secrets_write(&folder, all, ALL, "");
    flags[1] = folder.keys;
    daemon_start(&shared, flags);
    return 0;
}

/* True if the daemon's log has this text. */
static bool logged(const struct daemon *daemon, const char *text) {
    char path[96], line[1024];
    bool found = false;
    snprintf(path, sizeof path, "%s/log", daemon->folder);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (!found && fgets(line, sizeof line, file) != NULL) {
        found = strstr(line, text) != NULL;
    }
    fclose(file);
    return found;
}

static int teardown(void **state) {
    (void)state;
    bool clean = logged(&shared, "kilnd"); /* the log is there at all */
    for (size_t i = 0; i < ALL; i++) {
        char hash[65];
        snprintf(hash, sizeof hash, "%.64s", strstr(all[i]->line, "sha256:") + 7);
        clean = clean && !logged(&shared, all[i]->key + 5) && !logged(&shared, hash) &&
                !logged(&shared, "Bearer");
    }
    clean = clean && !logged(&shared, unknown.key + 5);
    if (!clean) {
        print_error("the log has no line at all, or a key or its hash\n");
    }
    int code = daemon_stop(&shared);
    keyfolder_remove(&folder);
    return clean ? code : -1;
}

static struct session *session_of(const struct secret *secret) {
    struct session *session = session_create(&shared);
    session_header(session, secret != NULL ? secret->header : NULL);
    return session;
}

static void picture_ask(struct session *session, const char *path, struct answer *answer) {
    static const char picture[] = "P2\n3 3\n255\n1 2 3 4 5 6 7 8 9\n";
    const struct request request = {
        .method = "POST", .path = path, .type = "image/x-portable-graymap", .body = picture};
    session_ask(session, &request, answer);
}

static int status_of(struct session *session, const char *method, const char *path) {
    const struct request request = {.method = method, .path = path};
    struct answer answer;
    session_ask(session, &request, &answer);
    int status = answer.status;
    answer_free(&answer);
    return status;
}

/* ---- scopes ---- */

enum need { OPEN, READ, COMPUTE, CANCEL };

static const struct {
    const char *method, *path;
    enum need need;
    int granted;
} routes[] = {
    {"GET", "/", OPEN, 200},
    {"GET", "/healthz", OPEN, 200},
    {"HEAD", "/healthz", OPEN, 200},
    {"GET", "/readyz", OPEN, 200},
    {"GET", "/openapi.yaml", OPEN, 200},
    {"GET", "/problems", OPEN, 200},
    {"GET", "/problems/forbidden", OPEN, 200},
    {"GET", "/no/such/thing", OPEN, 404},
    {"OPTIONS", "/v1/jacobi", OPEN, 204},
    {"OPTIONS", "/v1/jobs", OPEN, 204},
    {"GET", "/metrics", READ, 200},
    {"GET", "/v1/devices", READ, 200},
    {"HEAD", "/v1/devices", READ, 200},
    {"PUT", "/v1/devices", READ, 405},
    {"GET", "/v1/jobs", READ, 200},
    {"GET", "/v1/jobs/types", READ, 200},
    {"GET", "/v1/jobs/0198a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b", READ, 404},
    {"DELETE", "/v1/jobs/0198a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b", CANCEL, 404},
    {"GET", "/v1/mandelbrot?width=8&height=8", COMPUTE, 200},
    {"HEAD", "/v1/mandelbrot?width=8&height=8", COMPUTE, 200},
    {"GET", "/v1/mandelbrot?width=none", COMPUTE, 422},
    {"GET", "/v1/mandelbrot/tiles/0/0/0.png", COMPUTE, 200},
    {"POST", "/v1/lombscargle", COMPUTE, 422},
    {"POST", "/v1/jacobi", COMPUTE, 422},
    {"POST", "/v1/laplacian", COMPUTE, 422},
};

static bool allowed(enum need need, const struct secret *secret) {
    bool reading = secret == &reads || secret == &owner || secret == &rules;
    bool computing = secret == &computes || secret == &owner;
    return need == OPEN || (need == READ && reading) || (need == COMPUTE && computing) ||
           (need == CANCEL && (computing || secret == &rules));
}

static void scopes_open_routes(void **state) {
    (void)state;
    static const struct secret *const keys[] = {NULL, &unknown, &reads, &computes, &owner, &rules};
    int tried = 0;
    for (size_t k = 0; k < sizeof keys / sizeof keys[0]; k++) {
        struct session *session = session_of(keys[k]);
        bool known = keys[k] != NULL && keys[k] != &unknown;
        for (size_t i = 0; i < sizeof routes / sizeof routes[0]; i++) {
            int expected = allowed(routes[i].need, keys[k]) ? routes[i].granted : known ? 403 : 401;
            int status = status_of(session, routes[i].method, routes[i].path);
            if (status != expected) {
                fail_msg("%s %s with key %zu: %d instead of %d", routes[i].method, routes[i].path,
                         k, status, expected);
            }
            tried++;
        }
        session_destroy(session);
    }
    print_message("  %d combinations of route and key\n", tried);
}

/* Bodies are not read for those who may not send them. */
static void bodies_need_keys(void **state) {
    (void)state;
    struct session *session = session_of(NULL);
    struct answer answer;
    picture_ask(session, "/v1/laplacian?format=pgm", &answer);
    assert_status(&answer, 401);
    assert_header(&answer, "Connection", "close");
    assert_header(&answer, "Content-Type", "application/problem+json");
    assert_header(&answer, "WWW-Authenticate", "Bearer realm=\"kiln\"");
    answer_free(&answer);
    session_header(session, reads.header);
    picture_ask(session, "/v1/laplacian?format=pgm", &answer);
    assert_status(&answer, 403);
    assert_header(&answer, "WWW-Authenticate",
                  "Bearer realm=\"kiln\", error=\"insufficient_scope\", scope=\"compute\"");
    answer_free(&answer);
    session_header(session, computes.header);
    picture_ask(session, "/v1/laplacian?format=pgm", &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    session_destroy(session);
}

static void keys_are_sent_once_and_whole(void **state) {
    (void)state;
    char shorter[96], longer[128], basic[96], twice[200], lower[96];
    snprintf(shorter, sizeof shorter, "%.*s", (int)strlen(owner.header) - 1, owner.header);
    snprintf(longer, sizeof longer, "%sA", owner.header);
    snprintf(basic, sizeof basic, "Authorization: Basic %s", owner.key);
    snprintf(twice, sizeof twice, "%s,Bearer %s", owner.header, owner.key);
    snprintf(lower, sizeof lower, "authorization: bearer  %s", owner.key);
    const char *const bad[] = {
        shorter, longer, basic, twice, "Authorization: Bearer", "Authorization: Bearer \xff\xfe"};
    struct session *session = session_of(NULL);
    struct answer answer;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const struct request request = {.path = "/v1/jobs", .headers = {bad[i]}};
        session_ask(session, &request, &answer);
        assert_status(&answer, 401);
        assert_null(strstr(answer.body, owner.key));
        answer_free(&answer);
    }
    const struct request doubled = {.path = "/v1/jobs", .headers = {owner.header, owner.header}};
    session_ask(session, &doubled, &answer);
    assert_status(&answer, 401);
    assert_header(&answer, "WWW-Authenticate", "Bearer realm=\"kiln\", error=\"invalid_token\"");
    answer_free(&answer);
    const struct request good = {.path = "/v1/jobs", .headers = {lower}};
    session_ask(session, &good, &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    session_destroy(session);
}

/* What one key has had computed is not another's who may not compute. */
static void kept_results_need_the_scope(void **state) {
    (void)state;
    static const char path[] = "/v1/mandelbrot?width=33&height=21&max_iter=77";
    struct session *session = session_of(&computes);
    struct answer answer;
    char etag[64], line[96], found[64];
    session_get(session, path, &answer);
    assert_status(&answer, 200);
    assert_header(&answer, "Cache-Control", "private, max-age=86400");
    assert_false(answer_header(&answer, "RateLimit", found, sizeof found));
    assert_true(answer_header(&answer, "ETag", etag, sizeof etag));
    snprintf(line, sizeof line, "If-None-Match: %s", etag);
    answer_free(&answer);
    const struct request unchanged = {.path = path, .headers = {line}};
    const struct secret *const others[] = {NULL, &unknown, &reads, &rules};
    for (size_t i = 0; i < 4; i++) {
        session_header(session, others[i] != NULL ? others[i]->header : NULL);
        session_get(session, path, &answer);
        assert_status(&answer, i < 2 ? 401 : 403);
        assert_false(answer_header(&answer, "ETag", found, sizeof found));
        answer_free(&answer);
        session_ask(session, &unchanged, &answer);
        assert_status(&answer, i < 2 ? 401 : 403);
        answer_free(&answer);
    }
    /* with it, another key has the same bytes, and its own limits with them */
    session_header(session, single.header);
    session_get(session, path, &answer);
    assert_status(&answer, 200);
    assert_header(&answer, "Cache-Status", "kiln; hit");
    assert_header(&answer, "RateLimit", "\"concurrency\";r=0");
    answer_free(&answer);
    session_header(session, computes.header);
    session_get(session, path, &answer);
    assert_header(&answer, "Cache-Status", "kiln; hit");
    assert_false(answer_header(&answer, "RateLimit", found, sizeof found));
    answer_free(&answer);
    session_ask(session, &unchanged, &answer);
    assert_status(&answer, 304);
    answer_free(&answer);
    session_destroy(session);
}

/* ---- limits ---- */

static void rates_hold(void **state) {
    (void)state;
    struct session *session = session_of(&slow);
    struct answer answer;
    char value[128];
    for (int i = 2; i >= 0; i--) {
        session_get(session, i == 1 ? "/v1/mandelbrot?width=4&height=4" : "/v1/jobs", &answer);
        assert_status(&answer, 200);
        assert_header(&answer, "RateLimit-Policy", "\"rate\";q=3;w=300");
        snprintf(value, sizeof value, "\"rate\";r=%d;t=%d", i, 100 * (3 - i));
        assert_header(&answer, "RateLimit", value);
        answer_free(&answer);
    }
    session_get(session, "/v1/mandelbrot?width=4&height=4", &answer);
    assert_status(&answer, 429);
    assert_header(&answer, "RateLimit-Policy", "\"rate\";q=3;w=300");
    assert_true(answer_header(&answer, "Retry-After", value, sizeof value));
    assert_in_range(atoi(value), 60, 100);
    assert_non_null(strstr(answer.body, "/problems/rate-limited"));
    answer_free(&answer);
    assert_int_equal(status_of(session, "GET", "/healthz"), 200); /* open to all */
    session_header(session, owner.header);
    assert_int_equal(status_of(session, "GET", "/v1/jobs"), 200); /* others have their own */
    session_destroy(session);
}

/* A job that runs until it is cancelled. */
struct long_job {
    pthread_t thread;
    const struct secret *secret;
    const char *path;
    struct answer answer;
};

static void *long_run(void *argument) {
    struct long_job *job = argument;
    struct session *session = session_of(job->secret);
    picture_ask(session, job->path, &job->answer);
    session_destroy(session);
    return NULL;
}

static void long_start(struct long_job *job, const struct secret *secret, const char *path) {
    *job = (struct long_job){.secret = secret, .path = path};
    assert_int_equal(pthread_create(&job->thread, NULL, long_run, job), 0);
}

/* Number of the first job that runs or waits and is not `but`, once there is one. */
static void job_find(struct session *reader, const char *but, char id[37]) {
    double end = now_s() + 30;
    for (;;) {
        struct answer answer;
        session_get(reader, "/v1/jobs", &answer);
        assert_status(&answer, 200);
        const char *at = strstr(answer.body, "\"id\":\"");
        while (at != NULL && strncmp(at + 6, but, 36) == 0) {
            at = strstr(at + 6, "\"id\":\"");
        }
        bool found = at != NULL;
        if (found) {
            memcpy(id, at + 6, 36);
            id[36] = '\0';
        }
        answer_free(&answer);
        if (found) {
            return;
        }
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
}

#define ENDLESS "/v1/jacobi?format=npy&method=sweeps&iterations=1000000000000"

static void one_request_in_hand_at_a_time(void **state) {
    (void)state;
    struct long_job job;
    struct answer answer;
    char id[37], path[64];
    struct session *reader = session_of(&rules), *session = session_of(&single);
    long_start(&job, &single, ENDLESS);
    job_find(reader, "", id);
    session_get(session, "/v1/mandelbrot?width=4&height=4", &answer);
    assert_status(&answer, 429);
    assert_header(&answer, "Retry-After", "1");
    assert_header(&answer, "RateLimit-Policy", "\"concurrency\";q=1;qu=\"concurrent-requests\"");
    assert_header(&answer, "RateLimit", "\"concurrency\";r=0");
    answer_free(&answer);
    snprintf(path, sizeof path, "/v1/jobs/%s", id);
    assert_int_equal(status_of(reader, "DELETE", path), 204);
    pthread_join(job.thread, NULL);
    assert_status(&job.answer, 409);
    answer_free(&job.answer);
    double end = now_s() + 10; /* the answer has left before the request has ended */
    while (status_of(session, "GET", "/v1/jobs") != 200) {
        assert_true(now_s() < end);
    }
    session_destroy(reader);
    session_destroy(session);
}

/* A client that leaves takes its place with it. */
static void places_come_back(void **state) {
    (void)state;
    char request[512], out[64], id[37];
    bool closed;
    struct session *reader = session_of(&reads), *session = session_of(&single);
    int fd = raw_open(&shared);
    int size = snprintf(request, sizeof request,
                        "POST " ENDLESS " HTTP/1.1\r\nHost: x\r\n%s\r\n"
                        "Content-Type: image/x-portable-graymap\r\nContent-Length: 17\r\n\r\n"
                        "P2\n2 2\n9\n1 2 3 4\n",
                        single.header);
    assert_int_equal(send(fd, request, (size_t)size, MSG_NOSIGNAL), size);
    job_find(reader, "", id);
    assert_int_equal(status_of(session, "GET", "/v1/jobs"), 429);
    raw_exchange(fd, "", 0, out, sizeof out, 0, &closed);
    close(fd);
    double end = now_s() + 30;
    while (status_of(session, "GET", "/v1/jobs") != 200) {
        assert_true(now_s() < end);
        sleep_s(0.01);
    }
    session_destroy(reader);
    session_destroy(session);
}

/* ---- owners ---- */

/* The id of the request behind a job is told to its own key and to admin, and asked by them. */
static void requests_are_private(struct session *reader, const char *path) {
    struct answer answer;
    char query[192];
    struct session *ruler = session_of(&rules);
    session_get(reader, path, &answer);
    assert_non_null(strstr(answer.body, "\"request_id\":null"));
    answer_free(&answer);
    session_get(ruler, path, &answer);
    const char *id = strstr(answer.body, "\"request_id\":\"");
    assert_non_null(id);
    id += strlen("\"request_id\":\"");
    snprintf(query, sizeof query, "/v1/jobs?request_id=%.*s", (int)strcspn(id, "\""), id);
    answer_free(&answer);
    session_get(ruler, query, &answer);
    assert_non_null(strstr(answer.body, "\"total\":1"));
    answer_free(&answer);
    session_get(reader, query, &answer);
    assert_non_null(strstr(answer.body, "\"total\":0"));
    answer_free(&answer);
    session_destroy(ruler);
}

static void jobs_are_cancelled_by_their_owners(void **state) {
    (void)state;
    struct long_job job;
    struct answer answer;
    char id[37], path[64];
    struct session *reader = session_of(&reads), *session = session_of(&computes);
    const struct request cancel = {.method = "DELETE", .path = path};
    for (int round = 0; round < 2; round++) {
        long_start(&job, &owner, ENDLESS);
        job_find(reader, "", id);
        snprintf(path, sizeof path, "/v1/jobs/%s", id);
        session_header(session, computes.header);
        session_ask(session, &cancel, &answer);
        assert_status(&answer, 403);
        assert_header(&answer, "WWW-Authenticate",
                      "Bearer realm=\"kiln\", error=\"insufficient_scope\", scope=\"admin\"");
        answer_free(&answer);
        assert_int_equal(status_of(reader, "DELETE", path), 403);
        assert_int_equal(status_of(reader, "GET", path), 200); /* still there */
        requests_are_private(reader, path);
        session_header(session, round == 0 ? owner.header : rules.header);
        session_ask(session, &cancel, &answer);
        assert_status(&answer, 204);
        answer_free(&answer);
        pthread_join(job.thread, NULL);
        assert_status(&job.answer, 409);
        answer_free(&job.answer);
    }
    session_destroy(reader);
    session_destroy(session);
}

/* Two keys share one job: the owner's DELETE ends it for the owner alone. */
static void who_shares_a_job_keeps_it(void **state) {
    (void)state;
    struct long_job first, second;
    char id[37], next[37], path[64];
    struct session *ruler = session_of(&rules), *session = session_of(&owner);
    double shared_before = metric_get(ruler, "kiln_cache_requests_total{result=\"shared\"}");
    long_start(&first, &owner, ENDLESS "&offset=1");
    job_find(ruler, "", id);
    long_start(&second, &computes, ENDLESS "&offset=1");
    double end = now_s() + 30;
    while (metric_get(ruler, "kiln_cache_requests_total{result=\"shared\"}") <= shared_before) {
        assert_true(now_s() < end);
    }
    snprintf(path, sizeof path, "/v1/jobs/%s", id);
    assert_int_equal(status_of(session, "DELETE", path), 204);
    pthread_join(first.thread, NULL);
    assert_status(&first.answer, 409);
    answer_free(&first.answer);
    job_find(ruler, id, next); /* it goes on under another number, as the other's */
    snprintf(path, sizeof path, "/v1/jobs/%s", next);
    assert_int_equal(status_of(session, "DELETE", path), 403);
    session_header(session, computes.header);
    assert_int_equal(status_of(session, "DELETE", path), 204);
    pthread_join(second.thread, NULL);
    assert_status(&second.answer, 409);
    answer_free(&second.answer);
    session_destroy(ruler);
    session_destroy(session);
}

/* ---- reloading ---- */

static void loads_wait(struct session *session, const char *name, double least) {
    double end = now_s() + 20;
    while (metric_get(session, name) < least) {
        assert_true(now_s() < end);
        sleep_s(0.005);
    }
}

static void keys_are_loaded_again(void **state) {
    (void)state;
    static const char used[] = "kiln_key_loads_total{result=\"used\"}";
    static const char refused[] = "kiln_key_loads_total{result=\"refused\"}";
    const struct secret *const others[] = {&unknown, &computes, &rules, &slow, &single, &owner};
    struct session *ruler = session_of(&rules), *session = session_of(&reads);
    double good = metric_get(ruler, used), bad = metric_get(ruler, refused);
    assert_true(good >= 1);
    /* a broken file changes nothing */
    secrets_write(&folder, others, 6, "broken sha256:12 read\n");
    daemon_signal(&shared, SIGHUP);
    loads_wait(ruler, refused, bad + 1);
    assert_int_equal(status_of(session, "GET", "/v1/jobs"), 200);
    session_header(session, unknown.header);
    assert_int_equal(status_of(session, "GET", "/v1/jobs"), 401);
    assert_true(logged(&shared, "line 9: after the id"));
    /* nor does one that was cut in the middle of its last line, or is empty */
    struct stat status;
    secrets_write(&folder, others, 6, "");
    assert_int_equal(stat(folder.keys, &status), 0);
    const off_t cuts[] = {status.st_size - 1, status.st_size - 12, 0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(truncate(folder.keys, cuts[i]), 0);
        daemon_signal(&shared, SIGHUP);
        loads_wait(ruler, refused, bad + 2 + i);
        assert_int_equal(status_of(session, "GET", "/v1/jobs"), 401);
        session_header(session, reads.header);
        assert_int_equal(status_of(session, "GET", "/v1/jobs"), 200);
        session_header(session, unknown.header);
        const char *const check[] = {"key", "check", folder.keys, NULL};
        assert_int_equal(daemon_run(check), 1);
    }
    assert_true(logged(&shared, "has no end"));
    assert_true(logged(&shared, "no key in it"));
    /* a good one everything: reads goes, unknown comes */
    secrets_write(&folder, others, 6, "");
    daemon_signal(&shared, SIGHUP);
    loads_wait(ruler, used, good + 1);
    assert_int_equal(status_of(session, "GET", "/v1/jobs"), 200);
    session_header(session, reads.header);
    assert_int_equal(status_of(session, "GET", "/v1/jobs"), 401);
    /* limits go on where they were */
    session_header(session, slow.header);
    assert_int_equal(status_of(session, "GET", "/v1/jobs"), 429);
    secrets_write(&folder, all, ALL, "");
    daemon_signal(&shared, SIGHUP);
    loads_wait(ruler, used, good + 2);
    session_destroy(session);
    session_destroy(ruler);
}

/* Many reloads under load: nobody who has a key is refused, nothing grows. */
static void *ask_run(void *argument) {
    int *wrong = argument;
    struct session *session = session_of(&owner);
    for (int i = 0; i < 400; i++) {
        *wrong += status_of(session, "GET", "/v1/mandelbrot?width=4&height=4") != 200;
    }
    session_destroy(session);
    return NULL;
}

static void reloads_disturb_nobody(void **state) {
    (void)state;
    pthread_t threads[3];
    int wrong[3] = {0};
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, ask_run, &wrong[i]), 0);
    }
    for (int i = 0; i < 60; i++) {
        daemon_signal(&shared, SIGHUP);
        sleep_s(0.003);
    }
    for (int i = 0; i < 3; i++) {
        pthread_join(threads[i], NULL);
        assert_int_equal(wrong[i], 0);
    }
}

/* Status of a request with this key from this address of the loopback. */
static int status_from(const struct daemon *daemon, uint32_t source, const char *header) {
    struct sockaddr_in here = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(source)};
    struct sockaddr_in there = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)daemon->port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char request[512], out[4096];
    bool closed;
    int status = 0;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&here, sizeof here), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&there, sizeof there), 0);
    int size =
        snprintf(request, sizeof request,
                 "GET /v1/jobs HTTP/1.1\r\nHost: a\r\n%s\r\nConnection: close\r\n\r\n", header);
    raw_exchange(fd, request, (size_t)size, out, sizeof out, 10, &closed);
    assert_true(closed);
    close(fd);
    sscanf(out, "HTTP/1.1 %d", &status);
    return status;
}

/* Unknown keys are slowed by address; whoever has a right one never notices. */
static void guessing_is_slowed(void **state) {
    (void)state;
    const char *flags[] = {"--keys", folder.keys, "--wrong-keys", "1", NULL};
    struct daemon daemon;
    struct answer answer;
    char value[64];
    daemon_start(&daemon, flags);
    struct session *guesser = session_create(&daemon), *friend = session_create(&daemon);
    session_header(friend, reads.header);
    session_header(guesser, unknown.header);
    assert_int_equal(status_of(guesser, "GET", "/v1/jobs"), 401);
    static const char *const wrong[] = {"Authorization: Basic YTpi", "Authorization: Bearer x"};
    for (int i = 0; i < 4; i++) { /* the next is let pass after a minute */
        session_header(guesser, i < 2 ? unknown.header : wrong[i - 2]);
        session_get(guesser, "/v1/jobs", &answer);
        assert_status(&answer, 429);
        assert_true(answer_header(&answer, "Retry-After", value, sizeof value));
        assert_true(strtol(value, NULL, 10) >= 1 && strtol(value, NULL, 10) <= 60);
        assert_header(&answer, "Connection", "close");
        assert_false(answer_header(&answer, "RateLimit", value, sizeof value));
        assert_false(answer_header(&answer, "WWW-Authenticate", value, sizeof value));
        assert_non_null(strstr(answer.body, "/problems/rate-limited"));
        answer_free(&answer);
        assert_int_equal(status_of(friend, "GET", "/v1/jobs"), 200);
    }
    /* with a body that was announced and is not read */
    const struct request posted = {
        .path = "/v1/mandelbrot", .type = "application/json", .body = "{}"};
    session_ask(guesser, &posted, &answer);
    assert_status(&answer, 429);
    answer_free(&answer);
    session_header(guesser, NULL);
    assert_int_equal(status_of(guesser, "GET", "/v1/jobs"), 401); /* no key is no guess */
    assert_int_equal(status_of(guesser, "GET", "/healthz"), 200);
    session_header(guesser, reads.header);
    assert_int_equal(status_of(guesser, "GET", "/v1/jobs"), 200);
    /* another address begins anew */
    assert_int_equal(status_from(&daemon, INADDR_LOOPBACK + 1, unknown.header), 401);
    assert_int_equal(status_from(&daemon, INADDR_LOOPBACK + 1, unknown.header), 429);
    assert_int_equal(status_from(&daemon, INADDR_LOOPBACK + 1, reads.header), 200);
    assert_true(metric_get(friend, "kiln_access_refused_total{reason=\"guessing\"}") == 6);
    assert_true(metric_get(friend, "kiln_access_refused_total{reason=\"unknown\"}") == 2);
    session_destroy(friend);
    session_destroy(guesser);
    assert_int_equal(daemon_stop(&daemon), 0);
}

static void tools_refuse_nonsense(void **state) {
    (void)state;
    const char *const bad[][6] = {
        {"key", NULL},
        {"key", "new", "--scopes", "write", NULL},
        {"key", "new", "--scopes", NULL},
        {"key", "new", "--id", "a b", NULL},
        {"key", "new", "--rate", "fast", NULL},
        {"key", "new", "--burst", "3", NULL},
        {"key", "new", "--colour", "red", NULL},
        {"key", "check", NULL},
        {"key", "check", "/no/such/file", NULL},
        {"--keys", "/no/such/file", "--device", "cpu", NULL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_not_equal(daemon_run(bad[i]), 0);
    }
    const char *const good[] = {"key", "check", folder.keys, NULL};
    assert_int_equal(daemon_run(good), 0);
    secrets_write(&folder, all, ALL, "x\n");
    assert_int_not_equal(daemon_run(good), 0);
    secrets_write(&folder, all, ALL, "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes_open_routes),
        cmocka_unit_test(bodies_need_keys),
        cmocka_unit_test(keys_are_sent_once_and_whole),
        cmocka_unit_test(kept_results_need_the_scope),
        cmocka_unit_test(rates_hold),
        cmocka_unit_test(one_request_in_hand_at_a_time),
        cmocka_unit_test(places_come_back),
        cmocka_unit_test(jobs_are_cancelled_by_their_owners),
        cmocka_unit_test(who_shares_a_job_keeps_it),
        cmocka_unit_test(keys_are_loaded_again),
        cmocka_unit_test(reloads_disturb_nobody),
        cmocka_unit_test(guessing_is_slowed),
        cmocka_unit_test(tools_refuse_nonsense),
    };
    return cmocka_run_group_tests_name("api.access", tests, setup, teardown);
}
