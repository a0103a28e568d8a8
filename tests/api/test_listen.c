/*
 * test_listen.c: who reaches the daemon at all: addresses to listen on, connections counted over
 * all event loops, pages of other origins. test_tls.c has TLS.
 */
#include "tests/api/lib_keys.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* ---- listening ---- */

static void others_are_let_in_only_when_told(void **state) {
    (void)state;
    static const char *const closed[][6] = {
        {"--listen", "0.0.0.0:0", "--device", "cpu", NULL},
        {"--listen", ":0", "--device", "cpu", NULL},
        {"--listen", "[::]:0", "--device", "cpu", NULL},
        {"--listen", "0.0.0.0:0", "--device", "cpu", "--allow-open=false", NULL},
    };
    struct daemon daemon;
    for (size_t i = 0; i < sizeof closed / sizeof closed[0]; i++) {
        assert_int_equal(daemon_run(closed[i]), 1);
    }
    static const char *const open[] = {"--listen", "0.0.0.0:0", "--allow-open", NULL};
    daemon_start(&daemon, open);
    assert_int_equal(daemon_stop(&daemon), 0);
    struct keyfolder folder;
    struct secret secret;
    keyfolder_make(&folder);
    secret_make(&secret, "--scopes read");
    const struct secret *const one = &secret;
    secrets_write(&folder, &one, 1, "");
    const char *keyed[] = {"--listen", "0.0.0.0:0", "--keys", folder.keys, NULL};
    daemon_start(&daemon, keyed);
    assert_int_equal(daemon_stop(&daemon), 0);
    keyfolder_remove(&folder);
}

/* ---- names ---- */

/* Status of a request for this host, -1 for none. */
static int status_of(const struct daemon *daemon, const char *host) {
    char request[512], answer[1024] = "";
    bool closed;
    int size = snprintf(request, sizeof request,
                        "GET /v1/devices HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host);
    int fd = raw_open(daemon), status = -1;
    raw_exchange(fd, request, (size_t)size, answer, sizeof answer, 10, &closed);
    close(fd);
    sscanf(answer, "HTTP/1.1 %d", &status);
    return status;
}

static void names_that_it_was_not_told_are_refused(void **state) {
    (void)state;
    static const char *const friends[] = {"127.0.0.1",  "127.0.0.1:80",   "[::1]:80",
                                          "localhost",  "LocalHost:8080", "a.localhost",
                                          "localhost.", "192.0.2.7:1"};
    static const char *const strangers[] = {"evil.example",           "evil.example:80",
                                            "127.0.0.1.evil.example", "localhost.evil.example",
                                            "notlocalhost",           "127.0.0.1x"};
    struct daemon daemon;
    static const char *const plain[] = {"--hosts", "", NULL};
    daemon_start(&daemon, plain);
    for (size_t i = 0; i < sizeof friends / sizeof friends[0]; i++) {
        assert_int_equal(status_of(&daemon, friends[i]), 200);
    }
    for (size_t i = 0; i < sizeof strangers / sizeof strangers[0]; i++) {
        assert_int_equal(status_of(&daemon, strangers[i]), 421);
    }
    assert_int_equal(daemon_stop(&daemon), 0);
    static const char *const named[] = {"--hosts", "other.example , kiln.example,evil.example ",
                                        NULL};
    daemon_start(&daemon, named);
    assert_int_equal(status_of(&daemon, "Evil.example:80"), 200);
    assert_int_equal(status_of(&daemon, "kiln.example"), 200);
    assert_int_equal(status_of(&daemon, "other.example"), 200);
    assert_int_equal(status_of(&daemon, "kiln"), 421);
    assert_int_equal(daemon_stop(&daemon), 0);
    daemon_start(&daemon, plain);
    char listen[64]; /* 127.0.0.1, in a form that is no address to the daemon */
    snprintf(listen, sizeof listen, "127.1:%d", daemon.port);
    const char *const check[] = {"healthcheck", "--listen", listen, NULL};
    assert_int_equal(status_of(&daemon, listen), 421);
    assert_int_equal(daemon_run(check), 0); /* its own check asks by a name that it answers to */
    assert_int_equal(daemon_stop(&daemon), 0);
    /* serving other machines is no reason to answer to names of theirs */
    static const char *const open[] = {"--hosts", "kiln", "--allow-open", NULL};
    daemon_start(&daemon, open);
    assert_int_equal(status_of(&daemon, "evil.example"), 421);
    assert_int_equal(status_of(&daemon, "kiln:8080"), 200);
    assert_int_equal(status_of(&daemon, "127.0.0.1:8080"), 200);
    assert_int_equal(daemon_stop(&daemon), 0);
    static const char *const any[] = {"--hosts", "*", "--allow-open", NULL};
    daemon_start(&daemon, any);
    assert_int_equal(status_of(&daemon, "evil.example"), 200);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* ---- pages of other sites ---- */

enum { OURS = 200, FOREIGN = 403 };

/* Status of a request with these headers; each is "" or "Name: value\r\n". */
static int site_ask(struct session *session, const char *method, const char *path,
                    const char *const headers[3], char *policy, size_t size) {
    struct request request = {.method = method, .path = path};
    struct answer answer;
    if (strcmp(method, "POST") == 0) {
        request.type = "application/x-www-form-urlencoded"; /* as a form of any page can */
        request.body = "width=8&height=8";
    }
    for (int i = 0; i < 3; i++) {
        request.headers[i] = headers[i];
    }
    session_ask(session, &request, &answer);
    if (answer.status == FOREIGN && strcmp(method, "HEAD") != 0) {
        assert_header(&answer, "Content-Type", "application/problem+json");
        assert_non_null(strstr(answer.body, "/problems/cross-site"));
        assert_non_null(strstr(answer.body, "--cors-origin"));
    }
    if (policy != NULL) {
        assert_true(answer_header(&answer, "Cross-Origin-Resource-Policy", policy, size));
    }
    int status = answer.status;
    answer_free(&answer);
    return status;
}

#define PICTURE       "/v1/mandelbrot?width=8&height=8"
#define SITE(value)   "Sec-Fetch-Site: " value
#define ORIGIN(value) "Origin: " value

static void pages_of_other_sites_start_no_jobs(void **state) {
    (void)state;
    static const char *const flags[] = {"--cache-bytes", "4M", NULL};
    struct daemon daemon;
    char own[176], other[96], upper[176], policy[32];
    daemon_start(&daemon, flags);
    snprintf(own, sizeof own, ORIGIN("%s"), daemon.url);
    snprintf(upper, sizeof upper, ORIGIN("https%s"), daemon.url + 4); /* TLS ended before */
    snprintf(other, sizeof other, ORIGIN("http://127.0.0.1:%d"), daemon.port == 1 ? 2 : 1);
    const struct {
        const char *headers[3];
        int get, post;
    } rows[] = {
        {{NULL}, OURS, OURS}, /* a program */
        {{own}, OURS, OURS},  /* a page of ours */
        {{upper}, OURS, OURS},
        {{SITE("none")}, OURS, OURS}, /* typed */
        {{SITE("same-origin"), own}, OURS, OURS},
        {{SITE("same-origin"), ORIGIN("https://proxy.example")}, OURS, OURS}, /* Host was changed */
        {{SITE("same-origin"), ORIGIN("null")}, OURS, OURS},
        {{SITE("cross-site")}, FOREIGN, FOREIGN}, /* <img> and "no-cors" */
        {{SITE("Cross-Site")}, FOREIGN, FOREIGN},
        {{SITE("nonsense")}, FOREIGN, FOREIGN},
        {{SITE("none, none")}, FOREIGN, FOREIGN},
        {{SITE("none"), SITE("cross-site")}, FOREIGN, FOREIGN},
        {{SITE("cross-site"), "Referer: https://evil.example/x"}, FOREIGN, FOREIGN},
        {{SITE("cross-site"), ORIGIN("https://evil.example")}, FOREIGN, FOREIGN},
        {{ORIGIN("https://evil.example")}, FOREIGN, FOREIGN}, /* browsers without Sec-Fetch */
        {{ORIGIN("null")}, FOREIGN, FOREIGN},
        {{ORIGIN("127.0.0.1")}, FOREIGN, FOREIGN},
        {{ORIGIN("https://127.0.0.1.evil.example")}, FOREIGN, FOREIGN},
        {{other}, FOREIGN, FOREIGN},
        {{own, ORIGIN("https://evil.example")}, FOREIGN, FOREIGN},
        {{SITE("same-site")}, OURS, FOREIGN}, /* another port: pictures, no posts */
        {{SITE("same-site"), other}, FOREIGN, FOREIGN},
        {{"Referer: https://evil.example/"}, OURS, OURS}, /* says nothing by itself */
    };
    struct session *session = session_create(&daemon);
    for (int round = 0; round < 2; round++) { /* the second finds kept results */
        for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
            double before = metric_get(session, "kiln_jobs_submitted_total");
            int got = site_ask(session, "GET", PICTURE, rows[i].headers, policy, sizeof policy);
            assert_string_equal(policy, "same-site");
            int head = site_ask(session, "HEAD", PICTURE, rows[i].headers, NULL, 0);
            int post =
                site_ask(session, "POST", "/v1/mandelbrot", rows[i].headers, policy, sizeof policy);
            assert_string_equal(policy, "same-site");
            if (got != rows[i].get || head != rows[i].get || post != rows[i].post) {
                fail_msg("row %zu: GET %d, HEAD %d, POST %d", i, got, head, post);
            }
            double after = metric_get(session, "kiln_jobs_submitted_total");
            assert_true(post == OURS || got == OURS || after == before);
        }
    }
    /* what runs nothing and tells nothing is answered: a link to a page, a probe */
    static const char *const foreign[3] = {SITE("cross-site")};
    static const char *const open[] = {"/", "/healthz", "/readyz", "/openapi.yaml",
                                       "/problems/busy"};
    for (size_t i = 0; i < sizeof open / sizeof open[0]; i++) {
        assert_int_equal(site_ask(session, "GET", open[i], foreign, NULL, 0), 200);
    }
    static const char *const told[] = {"/v1/jobs", "/v1/devices", "/metrics", "/v1/jobs/types"};
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++) {
        assert_int_equal(site_ask(session, "GET", told[i], foreign, NULL, 0), FOREIGN);
    }
    assert_int_equal(site_ask(session, "DELETE", "/v1/jobs/x", foreign, NULL, 0), FOREIGN);
    assert_int_equal(site_ask(session, "OPTIONS", "/v1/jacobi", foreign, NULL, 0), 204);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* Pages that the operator names do as they like, pictures in them included. */
static void named_origins_may_ask(void **state) {
    (void)state;
    static const char *const flags[] = {"--cors-origin", "https://a.example", NULL};
    static const char *const all[] = {"--cors-origin", "*", NULL};
    static const struct {
        const char *headers[3];
        int get, post;
    } rows[] = {
        {{SITE("cross-site"), ORIGIN("https://a.example")}, OURS, OURS},
        {{ORIGIN("https://a.example")}, OURS, OURS},
        {{SITE("cross-site"), "Referer: https://a.example/map?x"}, OURS, FOREIGN}, /* <img> */
        {{SITE("cross-site"), "Referer: https://a.example"}, OURS, FOREIGN},
        {{SITE("cross-site"), "Referer: https://a.example.evil/"}, FOREIGN, FOREIGN},
        {{SITE("cross-site"), "Referer: https://b.example/https://a.example"}, FOREIGN, FOREIGN},
        {{SITE("cross-site")}, FOREIGN, FOREIGN},
        {{SITE("cross-site"), ORIGIN("https://b.example"), "Referer: https://a.example/"},
         FOREIGN,
         FOREIGN},
    };
    struct daemon daemon;
    char policy[32];
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int get = site_ask(session, "GET", PICTURE, rows[i].headers, policy, sizeof policy);
        int post = site_ask(session, "POST", "/v1/mandelbrot", rows[i].headers, NULL, 0);
        assert_string_equal(policy, "cross-origin");
        if (get != rows[i].get || post != rows[i].post) {
            fail_msg("row %zu: GET %d, POST %d", i, get, post);
        }
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
    daemon_start(&daemon, all);
    session = session_create(&daemon);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_int_equal(site_ask(session, "GET", PICTURE, rows[i].headers, NULL, 0), 200);
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* With keys a page that knows none is refused for that, and who has one is served, wherever a
   server of its own passes a browser's headers on. */
static void with_keys_the_key_counts(void **state) {
    (void)state;
    struct keyfolder folder;
    struct secret secret;
    struct daemon daemon;
    keyfolder_make(&folder);
    secret_make(&secret, "--scopes compute");
    const struct secret *const one = &secret;
    secrets_write(&folder, &one, 1, "");
    const char *flags[] = {"--keys", folder.keys, NULL};
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    const char *without[3] = {SITE("cross-site"), ORIGIN("https://evil.example")};
    const char *with[3] = {SITE("cross-site"), ORIGIN("https://evil.example"), secret.header};
    assert_int_equal(site_ask(session, "GET", PICTURE, without, NULL, 0), 401);
    assert_int_equal(site_ask(session, "GET", PICTURE, with, NULL, 0), 200);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
    keyfolder_remove(&folder);
}

/* ---- connections ---- */

/* A connection from 127.0.0.`last`; true if the daemon answers on it. */
static bool served(const struct daemon *daemon, int last, int *kept) {
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n";
    struct sockaddr_in own = {.sin_family = AF_INET,
                              .sin_addr.s_addr = htonl(0x7f000000u | (uint32_t)last)};
    struct sockaddr_in its = {.sin_family = AF_INET,
                              .sin_port = htons((uint16_t)daemon->port),
                              .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char answer[16];
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(bind(fd, (struct sockaddr *)&own, sizeof own), 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&its, sizeof its), 0);
    bool good = send(fd, request, sizeof request - 1, MSG_NOSIGNAL) > 0 &&
                recv(fd, answer, sizeof answer, 0) > 0;
    if (good) {
        *kept = fd;
    } else {
        close(fd);
    }
    return good;
}

#define EACH  6
#define TOTAL 10

static void connections_are_counted_over_all_loops(void **state) {
    (void)state;
    static const char *const flags[] = {
        "--http-threads", "4", "--connections-per-address", "6", "--connections", "10", NULL,
    };
    struct daemon daemon;
    int fds[TOTAL], count = 0, last;
    daemon_start(&daemon, flags);
    sleep_s(0.2); /* the connection that asked whether it is ready has gone */
    for (int i = 0; i < 4 * EACH; i++) {
        if (served(&daemon, 1, &last)) {
            assert_true(count < EACH);
            fds[count++] = last;
        }
    }
    assert_int_equal(count, EACH);
    for (int i = 0; i < 4 * EACH; i++) { /* another address has what is left of all */
        if (served(&daemon, 2, &last)) {
            assert_true(count < TOTAL);
            fds[count++] = last;
        }
    }
    assert_int_equal(count, TOTAL);
    assert_false(served(&daemon, 3, &last));
    close(fds[0]);
    double end = now_s() + 20;
    while (!served(&daemon, 3, &last)) {
        assert_true(now_s() < end);
        sleep_s(0.01);
    }
    fds[0] = last;
    for (int i = 1; i < TOTAL; i++) {
        close(fds[i]);
    }
    struct session *session = session_create(&daemon);
    end = now_s() + 20;
    double open = -1;
    while (open != 2) { /* this one and 127.0.0.3 */
        struct answer answer;
        session_get(session, "/healthz", &answer);
        open = answer.status == 200 ? metric_get(session, "kiln_connections") : -1;
        answer_free(&answer);
        assert_true(now_s() < end);
    }
    assert_true(metric_get(session, "kiln_connections_refused_address_total") >= 3 * EACH);
    assert_true(metric_get(session, "kiln_connections_refused_total") >= 1);
    close(fds[0]);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* Thousands of connections later the counts are what they were. */
static void counts_do_not_drift(void **state) {
    (void)state;
    static const char *const flags[] = {"--http-threads", "3", "--connections-per-address", "8",
                                        NULL};
    struct daemon daemon;
    int fd, good = 0;
    daemon_start(&daemon, flags);
    for (int i = 0; i < 3000; i++) {
        if (served(&daemon, 1 + i % 5, &fd)) {
            close(fd);
            good++;
        }
    }
    assert_true(good > 0);
    struct session *session = session_create(&daemon);
    double end = now_s() + 20;
    while (metric_get(session, "kiln_connections") != 1) {
        assert_true(now_s() < end);
    }
    int fds[7];
    for (int i = 0; i < 7; i++) { /* the session is the eighth */
        assert_true(served(&daemon, 1, &fds[i]));
    }
    assert_false(served(&daemon, 1, &fd));
    for (int i = 0; i < 7; i++) {
        close(fds[i]);
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

/* ---- pages of other origins ---- */

static bool has(const struct answer *answer, const char *name) {
    char value[512];
    return answer_header(answer, name, value, sizeof value);
}

static void origins_are_allowed_by_name(void **state) {
    (void)state;
    static const char *const flags[] = {"--cors-origin", "https://a.example, http://localhost:3000",
                                        "--cache-bytes", "4M", NULL};
    static const char *const bad[] = {"https://a.example.",
                                      "https://b.example",
                                      "http://a.example",
                                      "https://a.example:443",
                                      "null",
                                      "https://a.example/"};
    static const char path[] = "/v1/mandelbrot?width=9&height=9&format=png";
    struct daemon daemon;
    struct answer answer;
    char line[96], value[512];
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    const struct request plain = {.path = path};
    const struct request asked = {.path = path, .headers = {line}};
    for (int round = 0; round < 3; round++) { /* the second and third are kept results */
        snprintf(line, sizeof line, "Origin: http://localhost:3000");
        session_ask(session, &asked, &answer);
        assert_status(&answer, 200);
        assert_header(&answer, "Access-Control-Allow-Origin", "http://localhost:3000");
        assert_header(&answer, "Vary", "Origin");
        assert_false(has(&answer, "Access-Control-Allow-Credentials"));
        assert_true(answer_header(&answer, "Access-Control-Expose-Headers", value, sizeof value));
        assert_non_null(strstr(value, "Server-Timing"));
        assert_non_null(strstr(value, "ETag"));
        assert_non_null(strstr(value, "RateLimit"));
        assert_non_null(strstr(value, "Repr-Digest"));
        answer_free(&answer);
        session_ask(session, &plain, &answer);
        assert_status(&answer, 200);
        assert_false(has(&answer, "Access-Control-Allow-Origin"));
        assert_header(&answer, "Vary", "Origin");
        answer_free(&answer);
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            snprintf(line, sizeof line, "Origin: %s", bad[i]);
            session_ask(session, &asked, &answer);
            assert_status(&answer, 403);
            assert_false(has(&answer, "Access-Control-Allow-Origin"));
            assert_header(&answer, "Vary", "Origin");
            answer_free(&answer);
        }
    }
    const struct request problem = {.path = "/v1/mandelbrot?width=x",
                                    .headers = {"Origin: https://a.example"}};
    session_ask(session, &problem, &answer);
    assert_status(&answer, 422);
    assert_header(&answer, "Access-Control-Allow-Origin", "https://a.example");
    answer_free(&answer);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

static void preflights_are_answered_without_a_key(void **state) {
    (void)state;
    struct keyfolder folder;
    struct daemon daemon;
    struct answer answer;
    char value[512];
    keyfolder_make(&folder);
    struct secret secret;
    const struct secret *const one = &secret;
    secret_make(&secret, "--scopes read");
    secrets_write(&folder, &one, 1, "");
    const char *flags[] = {"--cors-origin", "https://a.example", "--keys", folder.keys, NULL};
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    struct request request = {.method = "OPTIONS",
                              .path = "/v1/jacobi",
                              .headers = {"Origin: https://a.example",
                                          "Access-Control-Request-Method: POST",
                                          "Access-Control-Request-Headers: authorization"}};
    session_ask(session, &request, &answer);
    assert_status(&answer, 204);
    assert_header(&answer, "Access-Control-Allow-Origin", "https://a.example");
    assert_header(&answer, "Access-Control-Allow-Methods", "POST, OPTIONS");
    assert_header(&answer, "Vary", "Origin");
    assert_true(answer_header(&answer, "Access-Control-Allow-Headers", value, sizeof value));
    assert_non_null(strstr(value, "Authorization"));
    assert_non_null(strstr(value, "Prefer, Idempotency-Key"));
    assert_true(has(&answer, "Access-Control-Max-Age"));
    assert_false(has(&answer, "Access-Control-Allow-Credentials"));
    answer_free(&answer);
    request.headers[0] = "Origin: https://b.example";
    session_ask(session, &request, &answer);
    assert_status(&answer, 204);
    assert_false(has(&answer, "Access-Control-Allow-Origin"));
    assert_false(has(&answer, "Access-Control-Allow-Methods"));
    answer_free(&answer);
    /* the refusal itself can be read by the page */
    const struct request refused = {.path = "/v1/jobs", .headers = {"Origin: https://a.example"}};
    session_ask(session, &refused, &answer);
    assert_status(&answer, 401);
    assert_header(&answer, "Access-Control-Allow-Origin", "https://a.example");
    answer_free(&answer);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
    keyfolder_remove(&folder);
}

static void any_origin_or_none(void **state) {
    (void)state;
    static const char *const flags[] = {"--cors-origin", "*", NULL};
    static const char *const bad[] = {
        "*,https://a.example", "https://a.example,*", "a.example",          "https://",
        "https://A.example",   "https://a.example/",  "https://a.example,", "https://a.example:"};
    const struct request request = {.path = "/v1/jobs", .headers = {"Origin: https://x.example"}};
    struct daemon daemon;
    struct answer answer;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        const char *const arguments[] = {"--cors-origin", bad[i], "--listen", "127.0.0.1:0",
                                         "--device",      "cpu",  NULL};
        assert_int_equal(daemon_run(arguments), 1);
    }
    daemon_start(&daemon, flags);
    struct session *session = session_create(&daemon);
    session_ask(session, &request, &answer);
    assert_header(&answer, "Access-Control-Allow-Origin", "*");
    assert_false(has(&answer, "Access-Control-Allow-Credentials"));
    answer_free(&answer);
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
    daemon_start(&daemon, NULL); /* without the option nothing of this is there */
    session = session_create(&daemon);
    session_get(session, "/v1/jobs", &answer);
    assert_false(has(&answer, "Access-Control-Allow-Origin"));
    assert_false(has(&answer, "Vary"));
    answer_free(&answer);
    session_ask(session, &request, &answer);
    assert_status(&answer, 403);
    assert_false(has(&answer, "Access-Control-Allow-Origin"));
    assert_false(has(&answer, "Vary"));
    answer_free(&answer);
    /* pages and problems keep browsers from more than showing them */
    static const struct {
        const char *path, *policy;
    } pages[] = {{"/", "default-src 'none'; img-src 'self'; style-src"},
                 {"/problems", "default-src 'none'; img-src 'self'; style-src"},
                 {"/problems/busy", "default-src 'none'; img-src 'self'; style-src"},
                 {"/no/such", "default-src 'none'; frame-ancestors 'none'"}};
    for (size_t i = 0; i < sizeof pages / sizeof pages[0]; i++) {
        char value[256];
        session_get(session, pages[i].path, &answer);
        assert_true(answer_header(&answer, "Content-Security-Policy", value, sizeof value));
        assert_memory_equal(value, pages[i].policy, strlen(pages[i].policy));
        assert_non_null(strstr(value, "frame-ancestors 'none'"));
        assert_header(&answer, "Referrer-Policy", "no-referrer");
        assert_header(&answer, "X-Content-Type-Options", "nosniff");
        answer_free(&answer);
    }
    session_destroy(session);
    assert_int_equal(daemon_stop(&daemon), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(others_are_let_in_only_when_told),
        cmocka_unit_test(names_that_it_was_not_told_are_refused),
        cmocka_unit_test(pages_of_other_sites_start_no_jobs),
        cmocka_unit_test(named_origins_may_ask),
        cmocka_unit_test(with_keys_the_key_counts),
        cmocka_unit_test(connections_are_counted_over_all_loops),
        cmocka_unit_test(counts_do_not_drift),
        cmocka_unit_test(origins_are_allowed_by_name),
        cmocka_unit_test(preflights_are_answered_without_a_key),
        cmocka_unit_test(any_origin_or_none),
    };
    return cmocka_run_group_tests_name("api.doors", tests, NULL, NULL);
}
