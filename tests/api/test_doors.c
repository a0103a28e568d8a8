/*
 * test_doors.c: who reaches the daemon at all: addresses to listen on, connections counted over all
 * event loops, pages of other origins, TLS.
 */
#include "tests/api/lib_keys.h"

#include <arpa/inet.h>
#include <curl/curl.h>
#include <errno.h>
#include <gnutls/gnutls.h>
#include <netinet/in.h>
#include <poll.h>
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
    static const char *const named[] = {"--hosts", "kiln.example,evil.example", NULL};
    daemon_start(&daemon, named);
    assert_int_equal(status_of(&daemon, "Evil.example:80"), 200);
    assert_int_equal(status_of(&daemon, "kiln.example"), 200);
    assert_int_equal(status_of(&daemon, "kiln"), 421);
    assert_int_equal(daemon_stop(&daemon), 0);
    static const char *const open[] = {"--hosts", "", "--allow-open", NULL};
    daemon_start(&daemon, open);
    assert_int_equal(status_of(&daemon, "evil.example"), 200);
    assert_int_equal(daemon_stop(&daemon), 0);
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
        answer_free(&answer);
        session_ask(session, &plain, &answer);
        assert_status(&answer, 200);
        assert_false(has(&answer, "Access-Control-Allow-Origin"));
        assert_header(&answer, "Vary", "Origin");
        answer_free(&answer);
        for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
            snprintf(line, sizeof line, "Origin: %s", bad[i]);
            session_ask(session, &asked, &answer);
            assert_status(&answer, 200);
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
    secrets_write(&folder, NULL, 0, "");
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
    session_ask(session, &request, &answer);
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

/* ---- TLS ---- */

static struct keyfolder folder;
static struct daemon secure;

static int secure_setup(void **state) {
    (void)state;
    keyfolder_make(&folder);
    keyfolder_certify(&folder);
    const char *flags[] = {
        "--tls-cert", folder.certificate, "--tls-key", folder.key,         "--http-threads",
        "2",          "--max-body",       "20000000",  "--max-iterations", "1000000000000",
        NULL};
    daemon_start(&secure, flags);
    return 0;
}

static int secure_teardown(void **state) {
    (void)state;
    int code = daemon_stop(&secure);
    keyfolder_remove(&folder);
    return code;
}

static void requests_go_over_tls(void **state) {
    (void)state;
    struct answer answer;
    struct session *session = session_create(&secure);
    assert_memory_equal(secure.url, "https://", 8);
    /* a megapixel up, two down, over one connection */
    enum { SIDE = 1024 };
    static char picture[64 + SIDE * SIDE];
    size_t head = (size_t)sprintf(picture, "P5\n%d %d\n255\n", SIDE, SIDE);
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        picture[head + i] = (char)(i * 31 + i / SIDE);
    }
    for (int i = 0; i < 5; i++) {
        const struct request request = {.path = "/v1/laplacian?format=pgm",
                                        .type = "image/x-portable-graymap",
                                        .body = picture,
                                        .size = head + SIDE * SIDE};
        session_ask(session, &request, &answer);
        assert_status(&answer, 200);
        assert_true(answer.size > 2 * SIDE * SIDE);
        assert_int_equal(answer.connects, i == 0);
        answer_free(&answer);
    }
    session_destroy(session);
    const char *const check[] = {"healthcheck",      "--listen",  secure.url + 8, "--tls-cert",
                                 folder.certificate, "--tls-key", folder.key,     NULL};
    assert_int_equal(daemon_run(check), 0);
    const char *const without[] = {"healthcheck", "--listen", secure.url + 8, NULL};
    assert_int_equal(daemon_run(without), 1); /* plain HTTP to it */
}

static void old_protocols_are_refused(void **state) {
    (void)state;
    static const struct {
        long most;
        int status;
    } rows[] = {{CURL_SSLVERSION_MAX_TLSv1_0, 0},
                {CURL_SSLVERSION_MAX_TLSv1_1, 0},
                {CURL_SSLVERSION_MAX_TLSv1_2, 200},
                {CURL_SSLVERSION_MAX_TLSv1_3, 200}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct answer answer;
        struct session *session = session_create(&secure);
        session_tls_max(session, rows[i].most);
        session_get(session, "/healthz", &answer);
        assert_int_equal(answer.status, rows[i].status);
        answer_free(&answer);
        session_destroy(session);
    }
}

/* A client of this test's own, by GnuTLS: curl itself may refuse what is to be tried. */
static int handshake_with(const char *priorities) {
    gnutls_certificate_credentials_t credentials;
    gnutls_session_t session;
    int fd = raw_open(&secure), error;
    assert_int_equal(gnutls_certificate_allocate_credentials(&credentials), 0);
    assert_int_equal(gnutls_init(&session, GNUTLS_CLIENT), 0);
    assert_int_equal(gnutls_priority_set_direct(session, priorities, NULL), 0);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_transport_set_int(session, fd);
    gnutls_handshake_set_timeout(session, 10000);
    do {
        error = gnutls_handshake(session);
    } while (error == GNUTLS_E_INTERRUPTED || error == GNUTLS_E_AGAIN);
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(credentials);
    close(fd);
    return error;
}

static void the_server_refuses_them_too(void **state) {
    (void)state;
    assert_int_not_equal(handshake_with("NORMAL:-VERS-ALL:+VERS-TLS1.0"), 0);
    assert_int_not_equal(handshake_with("NORMAL:-VERS-ALL:+VERS-TLS1.1"), 0);
    assert_int_equal(handshake_with("NORMAL:-VERS-ALL:+VERS-TLS1.2"), 0);
    assert_int_equal(handshake_with("NORMAL:-VERS-ALL:+VERS-TLS1.3"), 0);
}

/* An answer before the body was read reaches the client: the socket lingers under TLS as well. */
static void early_refusals_arrive(void **state) {
    (void)state;
    size_t size = 30u << 20;
    char *body = calloc(1, size);
    assert_non_null(body);
    for (int i = 0; i < 5; i++) {
        struct answer answer;
        struct session *session = session_create(&secure);
        const struct request request = {
            .path = "/v1/laplacian", .type = "image/png", .body = body, .size = size};
        session_ask(session, &request, &answer);
        assert_status(&answer, 413);
        answer_free(&answer);
        session_destroy(session);
    }
    free(body);
}

static void plain_text_and_noise_are_no_handshake(void **state) {
    (void)state;
    static const char *const texts[] = {"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "\x16\x03\x01\xff\xff",
                                        "\x16\x03\x03", "\n"};
    struct session *session = session_create(&secure);
    struct answer answer;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        char out[256];
        bool closed;
        int fd = raw_open(&secure);
        raw_exchange(fd, texts[i], strlen(texts[i]), out, sizeof out, 0.3, &closed);
        assert_null(strstr(out, "HTTP"));
        close(fd);
        session_get(session, "/healthz", &answer);
        assert_status(&answer, 200);
        answer_free(&answer);
    }
    session_destroy(session);
}

/* A client that hangs up under TLS is noticed as one without: by the kernel's word on the socket.
 */
static size_t nothing(char *bytes, size_t one, size_t size, void *context) {
    (void)bytes;
    (void)context;
    return one * size;
}

static void hanging_up_cancels(void **state) {
    (void)state;
    char url[160];
    struct session *session = session_create(&secure);
    CURL *curl = curl_easy_init();
    struct curl_slist *lines = curl_slist_append(NULL, "Content-Type: image/x-portable-graymap");
    double cancelled = metric_get(session, "kiln_jobs_cancelled_total");
    assert_true(cancelled >= 0);
    snprintf(url, sizeof url, "%s/v1/jacobi?format=npy&method=sweeps&iterations=1000000000000",
             secure.url);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_CAINFO, folder.certificate);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, lines);
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, "P2\n2 2\n9\n1 2 3 4\n");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, nothing);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, 700L);
    assert_int_equal(curl_easy_perform(curl), CURLE_OPERATION_TIMEDOUT);
    curl_easy_cleanup(curl); /* closes the connection */
    curl_slist_free_all(lines);
    double end = now_s() + 30;
    while (metric_get(session, "kiln_running_jobs") > 0) {
        assert_true(now_s() < end);
        sleep_s(0.01);
    }
    assert_true(metric_get(session, "kiln_jobs_cancelled_total") > cancelled);
    session_destroy(session);
}

/* A handshake that comes byte by byte (its first record alone would take 78 s) is cut, as a request
   line that does so is. */
static void crawling_handshakes_are_cut(void **state) {
    (void)state;
    static const char hello[] = "\x16\x03\x01\x01\x00\x01\x00\x00\xfc\x03\x03";
    const char *flags[] = {
        "--tls-cert", folder.certificate, "--tls-key", folder.key, "--idle-timeout", "1", NULL};
    struct daemon daemon;
    char out[16];
    bool closed = false;
    daemon_start(&daemon, flags);
    int fd = raw_open(&daemon);
    double end = now_s() + 30;
    for (size_t i = 0; !closed; i++) {
        raw_exchange(fd, i < sizeof hello - 1 ? hello + i : "x", 1, out, sizeof out, 0.3, &closed);
        assert_true(now_s() < end);
    }
    close(fd);
    assert_int_equal(daemon_stop(&daemon), 0);
}

static void half_a_pair_is_refused(void **state) {
    (void)state;
    const char *const bad[][8] = {
        {"--tls-cert", folder.certificate, "--listen", "127.0.0.1:0", "--device", "cpu", NULL},
        {"--tls-key", folder.key, "--listen", "127.0.0.1:0", "--device", "cpu", NULL},
        {"--tls-cert", folder.key, "--tls-key", folder.certificate, "--device", "cpu", NULL},
        {"--tls-cert", "/no/such", "--tls-key", folder.key, "--device", "cpu", NULL},
    };
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(daemon_run(bad[i]), 1);
    }
}

int main(void) {
    const struct CMUnitTest open[] = {
        cmocka_unit_test(others_are_let_in_only_when_told),
        cmocka_unit_test(names_that_it_was_not_told_are_refused),
        cmocka_unit_test(connections_are_counted_over_all_loops),
        cmocka_unit_test(counts_do_not_drift),
        cmocka_unit_test(origins_are_allowed_by_name),
        cmocka_unit_test(preflights_are_answered_without_a_key),
        cmocka_unit_test(any_origin_or_none),
    };
    const struct CMUnitTest tls[] = {
        cmocka_unit_test(requests_go_over_tls),
        cmocka_unit_test(old_protocols_are_refused),
        cmocka_unit_test(the_server_refuses_them_too),
        cmocka_unit_test(early_refusals_arrive),
        cmocka_unit_test(plain_text_and_noise_are_no_handshake),
        cmocka_unit_test(hanging_up_cancels),
        cmocka_unit_test(crawling_handshakes_are_cut),
        cmocka_unit_test(half_a_pair_is_refused),
    };
    int failed = cmocka_run_group_tests_name("api.doors", open, NULL, NULL);
    return cmocka_run_group_tests_name("api.doors.tls", tls, secure_setup, secure_teardown) +
           failed;
}
