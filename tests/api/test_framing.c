/*
 * test_framing.c: requests that two readers could take for different ones, over plain sockets.
 *
 * Behind each stands a second request that must not be answered: where the first is refused, there
 * is one problem document and the connection ends, and where it is a good one, exactly the second
 * follows. All of it holds over TLS as well. Heads and chunks that arrive in any pieces are
 * understood; clients that stop or crawl are cut.
 */
#include "tests/api/lib_acceptance.h"
#include "tests/api/lib_daemon.h"
#include "tests/api/lib_keys.h"

#include <gnutls/gnutls.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define TIMEOUT_S  10.0
#define IDLE_S     2
#define GET        "GET /healthz HTTP/1.1\r\n"
#define GOOD       GET "Host: x\r\n"
#define POST       "POST /v1/mandelbrot HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
#define CHUNKED    POST "Transfer-Encoding: chunked\r\n\r\n"
#define BODY       "{\"width\":4,\"height\":4}" /* 22 bytes */
#define HIDDEN     "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
#define HIDDEN_HAS "kiln_requests_total"

static struct daemon daemon_, secure;
static struct keyfolder folder;

static int setup(void **state) {
    static const char *const flags[] = {"--idle-timeout", "2", "--max-body", "2000000", NULL};
    (void)state;
    keyfolder_make(&folder);
    keyfolder_certify(&folder, false);
    const char *const more[] = {"--tls-cert", folder.certificate, "--tls-key", folder.key, NULL};
    daemon_start(&daemon_, flags);
    daemon_start(&secure, more);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    int code = daemon_stop(&daemon_);
    code = daemon_stop(&secure) != 0 ? 1 : code;
    keyfolder_remove(&folder);
    return code;
}

struct row {
    const char *name, *bytes;
    size_t size; /* 0: strlen; for those with NUL */
};
#define WITH_NUL(text) text, sizeof(text) - 1

static const struct row refused[] = {
    {"two lengths", POST "Content-Length: 22\r\nContent-Length: 22\r\n\r\n" BODY, 0},
    {"two lengths, other case", POST "content-length: 22\r\nCONTENT-LENGTH: 3\r\n\r\n" BODY, 0},
    {"length list", POST "Content-Length: 22, 22\r\n\r\n" BODY, 0},
    {"length, then coding", POST "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
     0},
    {"coding, then length", POST "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n",
     0},
    {"blank before the colon", POST "Content-Length : 22\r\n\r\n" BODY, 0},
    {"tab before the colon", POST "Content-Length\t: 22\r\n\r\n" BODY, 0},
    {"blank in a coding's name", POST "Transfer-Encoding : chunked\r\n\r\n0\r\n\r\n", 0},
    {"plus", POST "Content-Length: +22\r\n\r\n" BODY, 0},
    {"minus", POST "Content-Length: -22\r\n\r\n" BODY, 0},
    {"hexadecimal", POST "Content-Length: 0x16\r\n\r\n" BODY, 0},
    {"exponent", POST "Content-Length: 22e0\r\n\r\n" BODY, 0},
    {"fraction", POST "Content-Length: 22.0\r\n\r\n" BODY, 0},
    {"vertical tab",
     POST "Content-Length: \x0b"
          "22\r\n\r\n" BODY,
     0},
    {"two numbers", POST "Content-Length: 2 2\r\n\r\n" BODY, 0},
    {"empty length", POST "Content-Length:\r\n\r\n" BODY, 0},
    {"2^64", POST "Content-Length: 18446744073709551616\r\n\r\n" BODY, 0},
    {"2^64 + 22", POST "Content-Length: 18446744073709551638\r\n\r\n" BODY, 0},
    {"2^64 - 1", POST "Content-Length: 18446744073709551615\r\n\r\n" BODY, 0},
    {"2^32 + 22 zeros", POST "Content-Length: 00000000000000000000022\r\n\r\n" BODY, 0},
    {"folded length", POST "Content-Length:\r\n 22\r\n\r\n" BODY, 0},
    {"folded coding", POST "Transfer-Encoding:\r\n chunked\r\n\r\n0\r\n\r\n", 0},
    {"folded with a tab", GOOD "X-A: a\r\n\tb\r\n\r\n", 0},
    {"folded, then another", GOOD "X-A: a\r\n b\r\nX-B: c\r\n\r\n", 0},
    {"folded first line", GET " Host: x\r\nHost: x\r\n\r\n", 0},
    {"coding gzip", POST "Transfer-Encoding: gzip\r\n\r\n0\r\n\r\n", 0},
    {"coding xchunked", POST "Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 0},
    {"coding with parameter", POST "Transfer-Encoding: chunked;q=1\r\n\r\n0\r\n\r\n", 0},
    {"coding in quotes", POST "Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", 0},
    {"coding after vertical tab",
     POST "Transfer-Encoding: \x0b"
          "chunked\r\n\r\n0\r\n\r\n",
     0},
    {"chunked, chunked", POST "Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 0},
    {"chunked twice",
     POST "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0},
    {"identity, then chunked",
     POST "Transfer-Encoding: identity\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0},
    {"identity with length", POST "Transfer-Encoding: identity\r\nContent-Length: 22\r\n\r\n" BODY,
     0},
    {"empty coding", POST "Transfer-Encoding:\r\n\r\n0\r\n\r\n", 0},
    {"chunked in HTTP/1.0",
     "POST /v1/mandelbrot HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n"
     "0\r\n\r\n",
     0},
    {"chunk size negative", CHUNKED "-1\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk size 0x", CHUNKED "0x16\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk size +", CHUNKED "+16\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk size after a blank", CHUNKED " 16\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk size before a blank", CHUNKED "16 \r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk size empty", CHUNKED "\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk size of letters", CHUNKED "xyz\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk size 2^64 + 22", CHUNKED "10000000000000016\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk longer than its size", CHUNKED "15\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk without an end", CHUNKED "16\r\n" BODY "XX0\r\n\r\n", 0},
    {"chunk size of 17 digits", CHUNKED "00000000000000016\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk size 2^64 - 1", CHUNKED "ffffffffffffffff\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk size in quotes", CHUNKED "\"16\"\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk size, then a lone line feed", CHUNKED "16\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk size, then a lone carriage return", CHUNKED "16\r" BODY "\r\n0\r\n\r\n", 0},
    {"chunk size, then two carriage returns", CHUNKED "16\r\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk, then a lone line feed", CHUNKED "16\r\n" BODY "\n0\r\n\r\n", 0},
    {"chunk, then a lone carriage return", CHUNKED "16\r\n" BODY "\r0\r\n\r\n", 0},
    {"last chunk, then a lone line feed", CHUNKED "16\r\n" BODY "\r\n0\n\r\n", 0},
    {"end of a lone line feed", CHUNKED "16\r\n" BODY "\r\n0\r\n\n", 0},
    {"all line feeds alone", CHUNKED "16\n" BODY "\n0\n\n", 0},
    {"extension with a line feed", CHUNKED "16;a\nb\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"extension, then a lone line feed", CHUNKED "16;a=b\n" BODY "\r\n0\r\n\r\n", 0},
    {"extension with a carriage return", CHUNKED "16;a\rb\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"extension with NUL", WITH_NUL(CHUNKED "16;a\0b\r\n" BODY "\r\n0\r\n\r\n")},
    {"extension without a name", CHUNKED "16;\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"extension that is a value alone", CHUNKED "16;=b\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"extension without its value", CHUNKED "16;a=\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"extension with an open quote", CHUNKED "16;a=\"\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"extension after a blank", CHUNKED "16 ;a\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"extension of the last chunk with a line feed", CHUNKED "16\r\n" BODY "\r\n0;a\n\r\n", 0},
    {"trailer with NUL", WITH_NUL(CHUNKED "16\r\n" BODY "\r\n0\r\nA: a\0b\r\n\r\n")},
    {"trailer's name with NUL", WITH_NUL(CHUNKED "16\r\n" BODY "\r\n0\r\nA\0: b\r\n\r\n")},
    {"trailer that is folded", CHUNKED "16\r\n" BODY "\r\n0\r\nA: a\r\n b\r\n\r\n", 0},
    {"folded first trailer", CHUNKED "16\r\n" BODY "\r\n0\r\n A: a\r\n\r\n", 0},
    {"trailer without a name", CHUNKED "16\r\n" BODY "\r\n0\r\n: a\r\n\r\n", 0},
    {"trailer without a colon", CHUNKED "16\r\n" BODY "\r\n0\r\nA\r\n\r\n", 0},
    {"trailer with a blank before its colon", CHUNKED "16\r\n" BODY "\r\n0\r\nA : a\r\n\r\n", 0},
    {"trailer, then a lone line feed", CHUNKED "16\r\n" BODY "\r\n0\r\nA: a\n\r\n", 0},
    {"trailer with a carriage return", CHUNKED "16\r\n" BODY "\r\n0\r\nA: a\rb\r\n\r\n", 0},
    {"end after a trailer of a lone line feed", CHUNKED "16\r\n" BODY "\r\n0\r\nA: a\r\n\n", 0},
    {"two blanks after the method", "GET  /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 0},
    {"two blanks after the target", "GET /healthz  HTTP/1.1\r\nHost: x\r\n\r\n", 0},
    {"a blank after the protocol", "GET /healthz HTTP/1.1 \r\nHost: x\r\n\r\n", 0},
    {"a blank before the method", " GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n", 0},
    {"no target", "GET HTTP/1.1\r\nHost: x\r\n\r\n", 0},
    {"an empty target", "GET  HTTP/1.1\r\nHost: x\r\n\r\n", 0},
    {"fragment", "GET /healthz#x HTTP/1.1\r\nHost: x\r\n\r\n", 0},
    {"a target that is a fragment", "GET #/healthz HTTP/1.1\r\nHost: x\r\n\r\n", 0},
    {"no host", GET "\r\n", 0},
    {"two hosts", GET "Host: x\r\nHost: x\r\n\r\n", 0},
    {"host with a path", GET "Host: x/y\r\n\r\n", 0},
    {"host with user", GET "Host: a@b\r\n\r\n", 0},
    {"lone line feeds", "GET /healthz HTTP/1.1\nHost: x\n\n", 0},
    {"a lone line feed", GET "Host: x\nX-A: a\r\n\r\n", 0},
    {"a lone line feed after the request line", "GET /healthz HTTP/1.1\nHost: x\r\n\r\n", 0},
    {"a lone carriage return", GET "Host: x\rX-A: a\r\n\r\n", 0},
    {"NUL in a value", WITH_NUL(GOOD "X-A: a\0b\r\n\r\n")},
    {"NUL in a value, then another", WITH_NUL(GOOD "X-A: a\0b\r\nX-B: a\r\n\r\n")},
    {"two NULs in a value", WITH_NUL(GOOD "X-A: a\0\0b\r\n\r\n")},
    {"NUL in a length", WITH_NUL(POST "Content-Length: 22\0 3\r\n\r\n" BODY)},
    {"NUL in a name", WITH_NUL(GOOD "X\0A: a\r\n\r\n")},
    {"NUL in the target", WITH_NUL("GET /healthz\0x HTTP/1.1\r\nHost: x\r\n\r\n")},
    {"control character in a value", GOOD "X-A: a\x01z\r\n\r\n", 0},
    {"DEL in a value", GOOD "X-A: a\x7fz\r\n\r\n", 0},
    {"control character in a name", GOOD "X\x01: a\r\n\r\n", 0},
    {"a name in brackets", GOOD "(X): a\r\n\r\n", 0},
    {"no colon", GOOD "X-A\r\n\r\n", 0},
    {"no name", GOOD ": a\r\n\r\n", 0},
    {"no name, then another", GOOD ": a\r\nX-A: b\r\n\r\n", 0},
    {"HTTP/1.2", "GET /healthz HTTP/1.2\r\nHost: x\r\n\r\n", 0},
    {"HTTP/1.10", "GET /healthz HTTP/1.10\r\nHost: x\r\n\r\n", 0},
    {"HTTP/2", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 0},
    {"HTTP/0.9", "GET /healthz\r\n\r\n", 0},
    {"small letters", "GET /healthz http/1.1\r\nHost: x\r\n\r\n", 0},
    {"blank in the target", "GET /heal thz HTTP/1.1\r\nHost: x\r\n\r\n", 0},
    {"tabs for blanks", "GET\t/healthz\tHTTP/1.1\r\nHost: x\r\n\r\n", 0},
    {"TLS", WITH_NUL("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")},
    {"unknown expectation", POST "Expect: 200-ok\r\nContent-Length: 22\r\n\r\n" BODY, 0},
    {"body of a GET", GOOD "Content-Length: 5\r\n\r\nhello", 0},
    {"chunked GET", GOOD "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 0},
};

/* As raw_exchange, over TLS. */
static size_t tls_exchange(int fd, const char *bytes, size_t size, char *out, size_t capacity,
                           bool *closed) {
    gnutls_certificate_credentials_t credentials;
    gnutls_session_t session;
    size_t used = 0;
    ssize_t got = 1;
    assert_int_equal(gnutls_certificate_allocate_credentials(&credentials), 0);
    assert_int_equal(gnutls_init(&session, GNUTLS_CLIENT | GNUTLS_NO_SIGNAL), 0);
    assert_int_equal(gnutls_set_default_priority(session), 0);
    gnutls_credentials_set(session, GNUTLS_CRD_CERTIFICATE, credentials);
    gnutls_transport_set_int(session, fd);
    gnutls_handshake_set_timeout(session, 10000);
    gnutls_record_set_timeout(session, (unsigned)(TIMEOUT_S * 1e3));
    assert_int_equal(gnutls_handshake(session), 0);
    assert_int_equal(gnutls_record_send(session, bytes, size), size);
    while (used + 1 < capacity && got > 0) {
        do {
            got = gnutls_record_recv(session, out + used, capacity - 1 - used);
        } while (got == GNUTLS_E_AGAIN || got == GNUTLS_E_INTERRUPTED);
        used += got > 0 ? (size_t)got : 0;
    }
    *closed = got <= 0 && got != GNUTLS_E_TIMEDOUT;
    out[used] = '\0';
    gnutls_deinit(session);
    gnutls_certificate_free_credentials(credentials);
    return used;
}

/* Sends a row with the hidden request behind it and reads until the connection ends. */
static size_t row_ask(const struct daemon *daemon, const struct row *row, char *out,
                      size_t capacity, bool *closed) {
    char bytes[4096];
    size_t size = row->size > 0 ? row->size : strlen(row->bytes), got;
    assert_true(size + sizeof HIDDEN <= sizeof bytes);
    memcpy(bytes, row->bytes, size);
    memcpy(bytes + size, HIDDEN, sizeof HIDDEN - 1);
    size += sizeof HIDDEN - 1;
    int fd = raw_open(daemon);
    if (daemon->trust[0] != '\0') {
        got = tls_exchange(fd, bytes, size, out, capacity, closed);
    } else {
        got = raw_exchange(fd, bytes, size, out, capacity, TIMEOUT_S, closed);
    }
    close(fd);
    return got;
}

/* True if these bytes are one answer with a problem document, which ends the connection, and
   nothing else. */
static bool one_problem(const char *out, size_t size, int least, int most) {
    const char *body = memmem(out, size, "\r\n\r\n", 4);
    const char *length = strstr(out, "Content-Length: ");
    int status = size > 13 && strncmp(out, "HTTP/1.1 ", 9) == 0 ? atoi(out + 9) : 0;
    return status >= least && status <= most && body != NULL && length != NULL && length < body &&
           strtoul(length + 16, NULL, 10) == size - (size_t)(body + 4 - out) &&
           strstr(out, "Connection: close\r\n") != NULL &&
           strstr(out, "Content-Type: application/problem+json\r\n") != NULL &&
           strstr(out, "X-Request-Id: ") != NULL && body[4] == '{';
}

static void rows_refuse(const struct daemon *daemon, const char *how) {
    static char out[65536];
    int wrong = 0;
    size_t count = sizeof refused / sizeof refused[0];
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        bool closed;
        double began = now_s();
        size_t size = row_ask(daemon, &refused[i], out, sizeof out, &closed);
        double took = now_s() - began;
        worst = took > worst ? took : worst;
        if (!closed || !one_problem(out, size, 400, 499)) {
            print_message("%s: closed %d after %.1f s: %.400s\n", refused[i].name, closed, took,
                          out);
            wrong++;
        }
    }
    acceptance_print(
        wrong == 0 && worst < 10, "smuggling and framing cases", "0 desyncs, 0 hangs > 10 s",
        "%zu cases %s, %d with anything else than one problem document; slowest %.3f s", count, how,
        wrong, worst);
    assert_int_equal(wrong, 0);
}

static void refusals(void **state) {
    (void)state;
    rows_refuse(&daemon_, "in plain text");
    rows_refuse(&secure, "over TLS");
}

static const struct row accepted[] = {
    {"plain", GOOD "\r\n", 0},
    {"blank lines before", "\r\n\r\n" GOOD "\r\n", 0},
    {"no blank after the colon", GET "Host:x\r\n\r\n", 0},
    {"blanks and tabs after the colon", GET "Host: \t  x\r\n\r\n", 0},
    {"empty value", GOOD "X-A:\r\n\r\n", 0},
    {"empty value, then another", GOOD "X-A:\r\nX-B: \r\n\r\n", 0},
    {"the same name twice", GOOD "X-A: 1\r\nX-A: 2\r\n\r\n", 0},
    {"cookies", GOOD "Cookie: a=1; b=2\r\nCookie: c\r\n\r\n", 0},
    {"bytes above 127", GOOD "X-A: \xc3\xa9\xff\r\n\r\n", 0},
    {"query", "GET /healthz? HTTP/1.1\r\nHost: x\r\n\r\n", 0},
    {"whole address", "GET http://x/healthz HTTP/1.1\r\nHost: x\r\n\r\n", 0},
    {"length", POST "Content-Length: 22\r\n\r\n" BODY, 0},
    {"length 022", POST "Content-Length: 022\r\n\r\n" BODY, 0},
    {"chunks", CHUNKED "16\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunk sizes with zeros", CHUNKED "00016\r\n" BODY "\r\n000\r\n\r\n", 0},
    {"chunk extension", CHUNKED "16;a=b\r\n" BODY "\r\n0\r\n\r\n", 0},
    {"chunks of letters in both cases",
     CHUNKED "1\r\n{\r\n"
             "A\r\n\"width\":4,\r\n"
             "a\r\n\"height\":4\r\n"
             "1\r\n}\r\n0\r\n\r\n",
     0},
    {"chunk extensions of every kind",
     CHUNKED "16;a;b=c ; d = \"e;\\\"\";f=1\r\n" BODY "\r\n0;last\r\n\r\n", 0},
    {"trailer", CHUNKED "16\r\n" BODY "\r\n0\r\nContent-Length: 3\r\n\r\n", 0},
    {"trailers", CHUNKED "16\r\n" BODY "\r\n0\r\nA:\r\nHost: y\r\nB: \xc3\xa9 b\t\r\n\r\n", 0},
    {"blanks after the host", GET "Host: x \t\r\n\r\n", 0},
    {"blanks after the length", POST "Content-Length: 22  \r\n\r\n" BODY, 0},
    {"an expectation without a body", GOOD "Expect: 100-continue\r\n\r\n", 0},
    {"an expectation with an empty body", GOOD "Expect: 100-continue\r\nContent-Length: 0\r\n\r\n",
     0},
    {"a mark of a question in the query", "GET /healthz?a=?b? HTTP/1.1\r\nHost: x\r\n\r\n", 0},
};

/* Each, and exactly one request after it. */
static void rows_accept(const struct daemon *daemon) {
    static char out[65536];
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        bool closed;
        size_t size = row_ask(daemon, &accepted[i], out, sizeof out, &closed);
        const char *second = size > 20 ? memmem(out + 9, size - 9, "HTTP/1.1 200 ", 13) : NULL;
        if (!closed || strncmp(out, "HTTP/1.1 200 ", 13) != 0 || second == NULL ||
            memmem(second, (size_t)(out + size - second), HIDDEN_HAS, strlen(HIDDEN_HAS)) == NULL) {
            fail_msg("%s: closed %d: %.300s", accepted[i].name, closed, out);
        }
    }
}

static void acceptances(void **state) {
    (void)state;
    rows_accept(&daemon_);
    rows_accept(&secure);
}

/* A refusal behind a request that is a good one: both have their own answer. */
static void refusals_behind(void **state) {
    static const char *const firsts[] = {GOOD "\r\n", CHUNKED "16\r\n" BODY "\r\n0\r\n\r\n"};
    static const char *const seconds[] = {"GET  / HTTP/1.1\r\nHost: x\r\n\r\n",
                                          CHUNKED "16\n" BODY "\r\n0\r\n\r\n"};
    static char out[65536];
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        char bytes[2048];
        snprintf(bytes, sizeof bytes, "%s%s", firsts[i / 2], seconds[i % 2]);
        const struct row row = {"two", bytes, 0};
        for (int tls = 0; tls < 2; tls++) {
            bool closed;
            size_t size = row_ask(tls ? &secure : &daemon_, &row, out, sizeof out, &closed);
            const char *second = size > 20 ? memmem(out + 9, size - 9, "HTTP/1.1 400 ", 13) : NULL;
            if (!closed || strncmp(out, "HTTP/1.1 200 ", 13) != 0 || second == NULL ||
                !one_problem(second, size - (size_t)(second - out), 400, 400)) {
                fail_msg("case %zu, TLS %d: closed %d: %.600s", i, tls, closed, out);
            }
        }
    }
}

/* Puts a body into chunks of many sizes, with extensions and trailers; returns their size. */
static size_t chunks_make(const char *body, size_t size, char *out) {
    static const size_t sizes[] = {1, 2, 15, 16, 17, 255, 4096, 5, 40000, 3};
    static const char *const extensions[] = {"", ";a", "", ";name=\"a;b\"", ""};
    size_t used = 0, sent = 0;
    for (size_t i = 0; sent < size; i++) {
        size_t now = sizes[i % 10] < size - sent ? sizes[i % 10] : size - sent;
        used += (size_t)sprintf(out + used, "%0*zX%s\r\n", (int)(i % 4), now, extensions[i % 5]);
        memcpy(out + used, body + sent, now);
        used += now;
        sent += now;
        used += (size_t)sprintf(out + used, "\r\n");
    }
    return used + (size_t)sprintf(out + used, "0\r\nX-Sum: 1\r\n\r\n");
}

/* A body in chunks that arrive in pieces of every kind is the body: the result is the same as with
   a length. */
static void chunked_bodies(void **state) {
    enum { SIDE = 256 };
    static const size_t steps[] = {1000000, 16384, 1461, 97, 13};
    static char body[SIDE * SIDE + 32], bytes[4 * SIDE * SIDE], out[8 * SIDE * SIDE];
    static const char head[] = "POST /v1/laplacian?format=pgm HTTP/1.1\r\nHost: x\r\n"
                               "Content-Type: image/x-portable-graymap\r\nConnection: close\r\n";
    size_t size = (size_t)sprintf(body, "P5\n%d %d\n255\n", SIDE, SIDE);
    struct session *session = session_create(&daemon_);
    struct answer expected;
    (void)state;
    for (size_t i = 0; i < SIDE * SIDE; i++) {
        body[size++] = (char)(i * 31 + i / SIDE);
    }
    const struct request request = {.path = "/v1/laplacian?format=pgm",
                                    .type = "image/x-portable-graymap",
                                    .body = body,
                                    .size = size};
    session_ask(session, &request, &expected);
    assert_status(&expected, 200);
    size_t whole = (size_t)sprintf(bytes, "%sTransfer-Encoding: chunked\r\n\r\n", head);
    whole += chunks_make(body, size, bytes + whole);
    for (size_t i = 0; i < sizeof steps / sizeof steps[0]; i++) {
        bool closed = false;
        size_t got = 0;
        int fd = raw_open(&daemon_);
        for (size_t sent = 0; sent < whole;) {
            size_t now = steps[i] < whole - sent ? steps[i] : whole - sent;
            sent += now;
            got = raw_exchange(fd, bytes + sent - now, now, out, sizeof out,
                               sent == whole ? TIMEOUT_S : 0, &closed);
        }
        close(fd);
        const char *found = memmem(out, got, "\r\n\r\n", 4);
        if (!closed || found == NULL || strncmp(out, "HTTP/1.1 200 ", 13) != 0) {
            fail_msg("pieces of %zu: closed %d: %.300s", steps[i], closed, out);
        }
        assert_int_equal(got - (size_t)(found + 4 - out), expected.size);
        assert_memory_equal(found + 4, expected.body, expected.size);
    }
    answer_free(&expected);
    session_destroy(session);
}

/* A body in chunks that is too large is refused when its size is known, not when all of it has come
   and was thrown away; extensions and trailers have a bound of their own. */
static void chunks_without_bounds(void **state) {
    static char bytes[100000], out[4096];
    static const struct {
        const char *start, *fill;
        int status;
    } rows[] = {
        {CHUNKED "200000\r\n", "", 413},
        {CHUNKED "7fffffffffffffff\r\n", "", 413},
        {CHUNKED "1e8000\r\n", "a", 0}, /* fits, and goes on */
        {CHUNKED "16;", "a", 400},
        {CHUNKED, "1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n", 400},
        {CHUNKED, "000000000000001\r\nx\r\n", 400},
        {CHUNKED "0\r\nA: ", "a", 400},
        {CHUNKED "0\r\n", "A: a\r\n", 400},
        {CHUNKED "0\r\n", "A", 400},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t size = strlen(rows[i].start), step = strlen(rows[i].fill);
        bool closed;
        memcpy(bytes, rows[i].start, size);
        for (; step > 0 && size + step <= sizeof bytes; size += step) {
            memcpy(bytes + size, rows[i].fill, step);
        }
        int fd = raw_open(&daemon_);
        size_t got = raw_exchange(fd, bytes, size, out, sizeof out,
                                  rows[i].status > 0 ? TIMEOUT_S : 0.2, &closed);
        close(fd);
        if (rows[i].status > 0 ? !closed || !one_problem(out, got, rows[i].status, rows[i].status)
                               : closed || got > 0) {
            fail_msg("case %zu: closed %d: %.300s", i, closed, out);
        }
    }
}

/* Many parameters, long targets, large heads: each is answered, and by the daemon. */
static void large_heads(void **state) {
    static char bytes[70000], out[65536];
    static const struct {
        const char *start, *fill, *end;
        size_t size;
        int status;
    } rows[] = {
        {"GET /healthz?a=1", "&b=1", " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 8100,
         200},
        {"GET /v1/mandelbrot?a=1", "&b=1", " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
         1000, 422},
        {"GET /v1/mandelbrot?a=1", "&b=1", " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
         8100, 400}, /* more fields than are read */
        {"GET /healthz?a=1", "&b=1", " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 9000,
         414},
        {"GET /healthz?", "a", " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 24000, 414},
        {"GET /healthz?", "a", " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", 25000, 414},
        {GOOD "Connection: close\r\nX-A: ", "a", "\r\n\r\n", 20000, 200},
        {GOOD "Connection: close\r\nX-A: ", "a", "\r\n\r\n", 24300, 200},
        {GOOD "Connection: close\r\nX-A: ", "a", "\r\n\r\n", 24384, 200},
        {GOOD "Connection: close\r\nX-A: ", "a", "\r\n\r\n", 24385, 431},
        {GOOD "Connection: close\r\nX-A: ", "a", "\r\n\r\n", 65536, 431},
        {GOOD "Connection: close\r\n", "Cookie: aaaaaaa=bbbbbbbbbbbbbbbb; c=d\r\n", "\r\n", 9600,
         200},
        {GOOD "Connection: close\r\n", "X: y\r\n", "\r\n", 2000, 200},
        {GOOD "Connection: close\r\n", "X: y\r\n", "\r\n", 2600, 431},
        {GOOD "Connection: close\r\n",
         "X: "
         "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy"
         "yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n",
         "\r\n", 16000, 200},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        size_t start = strlen(rows[i].start), step = strlen(rows[i].fill), size = start;
        size_t end = strlen(rows[i].end);
        bool closed;
        memcpy(bytes, rows[i].start, start);
        for (; size + step + end <= rows[i].size; size += step) {
            memcpy(bytes + size, rows[i].fill, step);
        }
        memcpy(bytes + size, rows[i].end, end);
        int fd = raw_open(&daemon_);
        size_t got = raw_exchange(fd, bytes, size + end, out, sizeof out, TIMEOUT_S, &closed);
        close(fd);
        bool good = rows[i].status == 200 ? strncmp(out, "HTTP/1.1 200 ", 13) == 0
                                          : one_problem(out, got, rows[i].status, rows[i].status);
        if (!closed || !good) {
            fail_msg("case %zu: closed %d: %.300s", i, closed, out);
        }
    }
}

/* A head of many lines, whole and in pieces of every kind: the guard looks at where it lies. */
static void pieces(void **state) {
    static const size_t sizes[] = {1, 2, 3, 7, 100, 1460, 100000};
    static char head[24000], out[65536];
    size_t size = (size_t)snprintf(head, sizeof head, GOOD);
    (void)state;
    for (int i = 0; size < 8000; i++) {
        size += (size_t)snprintf(head + size, sizeof head - size, "X-%d:%*s%0*d\r\n", i, i % 4, "",
                                 1 + i % 50, i);
    }
    size += (size_t)snprintf(head + size, sizeof head - size, "\r\n" HIDDEN);
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
        size_t step = sizes[i];
        size_t sent = step < 7 ? size - 500 : 0; /* the last part in single bytes */
        bool closed;
        int fd = raw_open(&daemon_);
        if (sent > 0) {
            raw_exchange(fd, head, sent, out, sizeof out, 0, &closed);
        }
        for (; sent < size; sent += step) {
            size_t now = step < size - sent ? step : size - sent;
            bool last = sent + now == size;
            raw_exchange(fd, head + sent, now, out, sizeof out, last ? TIMEOUT_S : 0, &closed);
        }
        close(fd);
        const char *second = strstr(out, "HTTP/1.1 200 ");
        if (second == NULL || strstr(out, "HTTP/1.1 4") != NULL) {
            fail_msg("pieces of %zu: %.300s", step, out);
        }
    }
}

/* Heads that are too large are refused while they come, and nothing of them is kept. */
static void absurd_heads(void **state) {
    static char bytes[1 << 20], out[4096];
    static const char *const starts[] = {GOOD "X-A: ", "GET /healthz?", "", GOOD};
    static const char *const fills[] = {"a", "a", "A", "X: y\r\n"};
    (void)state;
    for (size_t i = 0; i < 4; i++) {
        size_t size = strlen(starts[i]), step = strlen(fills[i]);
        bool closed;
        memcpy(bytes, starts[i], size);
        for (; size + step <= sizeof bytes; size += step) {
            memcpy(bytes + size, fills[i], step);
        }
        int fd = raw_open(&daemon_);
        raw_exchange(fd, bytes, size, out, sizeof out, TIMEOUT_S, &closed);
        close(fd);
        if (!closed || !one_problem(out, strlen(out), 400, 431)) {
            fail_msg("case %zu: closed %d: %.200s", i, closed, out);
        }
    }
}

enum slowness { SLOW_HEAD, SLOW_BODY, SLOW_SILENT, SLOW_READER, SLOW_KINDS };

static int slow_open(enum slowness kind) {
    static const char *const starts[] = {
        [SLOW_HEAD] = GOOD "X-A: ",
        [SLOW_BODY] = POST "Content-Length: 100000\r\n\r\n{",
        [SLOW_SILENT] = "GET /hea",
        [SLOW_READER] = "GET /v1/mandelbrot?width=1500&height=1500&max_iter=2&format=npy "
                        "HTTP/1.1\r\nHost: x\r\n\r\n",
    };
    int fd = raw_open(&daemon_), small = 4096;
    if (kind == SLOW_READER) { /* so that the answer does not fit into the kernel */
        setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
    }
    assert_true(send(fd, starts[kind], strlen(starts[kind]), MSG_NOSIGNAL) > 0);
    return fd;
}

/* Clients of all kinds that crawl: all are cut within 30 s, and a good client is served. Whether
   one is cut, only the daemon can tell: it can say nothing more to a client that does not read. */
static void slow_clients(void **state) {
    enum { CLIENTS = 40 };
    int fds[CLIENTS];
    struct session *session = session_create(&daemon_);
    double began = now_s(), worst = 0, others = CLIENTS;
    (void)state;
    for (int i = 0; i < CLIENTS; i++) {
        fds[i] = slow_open((enum slowness)(i % SLOW_KINDS));
    }
    assert_true(metric_get(session, "kiln_connections") > CLIENTS / 2);
    while (others > 0 && now_s() < began + 30) {
        for (int i = 0; i < CLIENTS; i++) {
            if (i % SLOW_KINDS < SLOW_SILENT) {
                send(fds[i], "x", 1, MSG_NOSIGNAL);
            }
        }
        double asked = now_s();
        others = metric_get(session, "kiln_connections") - 1;
        worst = now_s() - asked > worst ? now_s() - asked : worst;
        sleep_s(0.05);
    }
    print_message("  %.0f of %d slow clients cut after %.1f s (idle timeout %d s); a good client "
                  "waited %.1f ms at most\n",
                  CLIENTS - others, CLIENTS, now_s() - began, IDLE_S, worst * 1e3);
    assert_true(others == 0);
    for (int i = 0; i < CLIENTS; i++) {
        close(fds[i]);
    }
    session_destroy(session);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals),
        cmocka_unit_test(acceptances),
        cmocka_unit_test(refusals_behind),
        cmocka_unit_test(chunked_bodies),
        cmocka_unit_test(chunks_without_bounds),
        cmocka_unit_test(large_heads),
        cmocka_unit_test(pieces),
        cmocka_unit_test(absurd_heads),
        cmocka_unit_test(slow_clients),
    };
    return cmocka_run_group_tests_name("api.framing", tests, setup, teardown);
}
