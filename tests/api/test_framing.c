/*
 * test_framing.c: requests that two readers could take for different ones, over plain sockets.
 *
 * Behind each stands a second request that must not be answered: where the first is refused, the
 * connection ends, and where it is a good one, exactly the second follows. Heads that arrive in any
 * pieces are understood; clients that stop or crawl are cut.
 */
#include "tests/api/lib_acceptance.h"
#include "tests/api/lib_daemon.h"

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

static struct daemon daemon_;

static int setup(void **state) {
    static const char *const flags[] = {"--idle-timeout", "2", NULL};
    (void)state;
    daemon_start(&daemon_, flags);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    return daemon_stop(&daemon_);
}

struct row {
    const char *name, *bytes;
    size_t size; /* 0: strlen; for those with NUL */
};
#define WITH_NUL(text) text, sizeof(text) - 1

/* The body of the library's own refusals is HTML; all others are problem documents. */
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
    {"extension with a line feed", CHUNKED "16;a\nb\r\n" BODY "\r\n0\r\n\r\n", 0},
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

/* Sends a row with the hidden request behind it and reads until the connection ends. */
static size_t row_ask(const struct row *row, char *out, size_t capacity, bool *closed) {
    char bytes[4096];
    size_t size = row->size > 0 ? row->size : strlen(row->bytes);
    assert_true(size + sizeof HIDDEN <= sizeof bytes);
    memcpy(bytes, row->bytes, size);
    memcpy(bytes + size, HIDDEN, sizeof HIDDEN - 1);
    int fd = raw_open(&daemon_);
    size_t got =
        raw_exchange(fd, bytes, size + sizeof HIDDEN - 1, out, capacity, TIMEOUT_S, closed);
    close(fd);
    return got;
}

static void refusals(void **state) {
    static char out[65536];
    int wrong = 0, problems = 0;
    size_t count = sizeof refused / sizeof refused[0];
    double worst = 0;
    (void)state;
    for (size_t i = 0; i < count; i++) {
        bool closed;
        double began = now_s();
        size_t size = row_ask(&refused[i], out, sizeof out, &closed);
        double took = now_s() - began;
        worst = took > worst ? took : worst;
        bool error = size == 0 || (strncmp(out, "HTTP/1.", 7) == 0 && strchr("45", out[9]) &&
                                   strncmp(out + 9, "500", 3) != 0);
        problems += strstr(out, "application/problem+json") != NULL;
        if (!closed || !error || memmem(out, size, HIDDEN_HAS, strlen(HIDDEN_HAS)) != NULL) {
            print_message("%s: closed %d after %.1f s: %.400s\n", refused[i].name, closed, took,
                          out);
            wrong++;
        }
    }
    acceptance_print(wrong == 0 && worst < 10, "smuggling and framing cases",
                     "0 desyncs, 0 hangs > 10 s",
                     "%zu cases, %d desynchronised or hung; slowest %.3f s; %d problem documents",
                     count, wrong, worst, problems);
    assert_int_equal(wrong, 0);
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
    {"trailer", CHUNKED "16\r\n" BODY "\r\n0\r\nContent-Length: 3\r\n\r\n", 0},
};

/* Each, and exactly one request after it. */
static void acceptances(void **state) {
    static char out[65536];
    (void)state;
    for (size_t i = 0; i < sizeof accepted / sizeof accepted[0]; i++) {
        bool closed;
        size_t size = row_ask(&accepted[i], out, sizeof out, &closed);
        const char *second = size > 20 ? memmem(out + 9, size - 9, "HTTP/1.1 200 ", 13) : NULL;
        if (!closed || strncmp(out, "HTTP/1.1 200 ", 13) != 0 || second == NULL ||
            memmem(second, (size_t)(out + size - second), HIDDEN_HAS, strlen(HIDDEN_HAS)) == NULL) {
            fail_msg("%s: closed %d: %.300s", accepted[i].name, closed, out);
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
        if (!closed || (out[0] != '\0' && strncmp(out, "HTTP/1.", 7) != 0) ||
            (out[0] != '\0' && out[9] != '4')) {
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
        cmocka_unit_test(refusals),     cmocka_unit_test(acceptances),  cmocka_unit_test(pieces),
        cmocka_unit_test(absurd_heads), cmocka_unit_test(slow_clients),
    };
    return cmocka_run_group_tests_name("api.framing", tests, setup, teardown);
}
