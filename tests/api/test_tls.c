/*
 * test_tls.c: requests over TLS, and what is refused before a request is there.
 */
#include "tests/api/lib_keys.h"

#include <curl/curl.h>
#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static struct keyfolder folder;
static struct daemon secure;

static int secure_setup(void **state) {
    (void)state;
    keyfolder_make(&folder);
    keyfolder_certify(&folder, false);
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

/* A client of this test's own, by GnuTLS: curl itself may refuse what is to be tried. So may this
   machine's rules for GnuTLS: then there is nobody to try it. */
static int handshake_to(const struct daemon *daemon, const char *priorities) {
    gnutls_certificate_credentials_t credentials;
    gnutls_session_t session;
    int fd = raw_open(daemon), error;
    assert_int_equal(gnutls_certificate_allocate_credentials(&credentials), 0);
    assert_int_equal(gnutls_init(&session, GNUTLS_CLIENT), 0);
    error = gnutls_priority_set_direct(session, priorities, NULL);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_transport_set_int(session, fd);
    gnutls_handshake_set_timeout(session, 10000);
    while (error != GNUTLS_E_NO_PRIORITIES_WERE_SET) {
        error = gnutls_handshake(session);
        if (error != GNUTLS_E_INTERRUPTED && error != GNUTLS_E_AGAIN) {
            break;
        }
    }
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(credentials);
    close(fd);
    return error;
}

static int handshake_with(const char *priorities) {
    return handshake_to(&secure, priorities);
}

static void the_server_refuses_them_too(void **state) {
    (void)state;
    assert_int_not_equal(handshake_with("NORMAL:-VERS-ALL:+VERS-TLS1.0"), 0);
    assert_int_not_equal(handshake_with("NORMAL:-VERS-ALL:+VERS-TLS1.1"), 0);
    assert_int_equal(handshake_with("NORMAL:-VERS-ALL:+VERS-TLS1.2"), 0);
    assert_int_equal(handshake_with("NORMAL:-VERS-ALL:+VERS-TLS1.3"), 0);
}

/* Whoever records a connection and has the key later must not be able to read it; what is
   encrypted must be authenticated as it is. */
static void only_ephemeral_keys_and_authenticated_ciphers(void **state) {
    (void)state;
    static const struct {
        const char *priorities;
        bool taken;
    } rows[] = {
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+RSA", false},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+RSA:-CIPHER-ALL:+AES-128-GCM", false},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-CBC:+AES-256-CBC", false},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-CBC:-MAC-ALL:+SHA1", false},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+3DES-CBC", false},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+ARCFOUR-128", false},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ANON-ECDH", false},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-128-GCM", true},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+AES-256-GCM", true},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-CIPHER-ALL:+CHACHA20-POLY1305", true},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+DHE-RSA", true},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.2:-KX-ALL:+ECDHE-RSA", true},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+AES-128-GCM", true},
        {"NORMAL:-VERS-ALL:+VERS-TLS1.3:-CIPHER-ALL:+CHACHA20-POLY1305", true},
    };
    struct keyfolder other;
    struct daemon daemon;
    keyfolder_make(&other);
    keyfolder_certify(&other, true); /* of RSA, so that static RSA would be possible */
    const char *flags[] = {"--tls-cert", other.certificate, "--tls-key", other.key, NULL};
    daemon_start(&daemon, flags);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        int error = handshake_to(&daemon, rows[i].priorities);
        if (error == GNUTLS_E_NO_PRIORITIES_WERE_SET) {
            print_message("  this machine's GnuTLS has none of %s\n", rows[i].priorities);
        } else if ((error == 0) != rows[i].taken) {
            fail_msg("%s: %s", rows[i].priorities, gnutls_strerror(error));
        }
    }
    /* and none of these with a key of an elliptic curve */
    assert_int_not_equal(handshake_with(rows[0].priorities), 0);
    assert_int_not_equal(handshake_with(rows[2].priorities), 0);
    assert_int_equal(daemon_stop(&daemon), 0);
    keyfolder_remove(&other);
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
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(requests_go_over_tls),
        cmocka_unit_test(old_protocols_are_refused),
        cmocka_unit_test(the_server_refuses_them_too),
        cmocka_unit_test(only_ephemeral_keys_and_authenticated_ciphers),
        cmocka_unit_test(early_refusals_arrive),
        cmocka_unit_test(plain_text_and_noise_are_no_handshake),
        cmocka_unit_test(hanging_up_cancels),
        cmocka_unit_test(crawling_handshakes_are_cut),
        cmocka_unit_test(half_a_pair_is_refused),
    };
    return cmocka_run_group_tests_name("api.tls", tests, secure_setup, secure_teardown);
}
