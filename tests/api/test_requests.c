/*
 * test_requests.c: thousands of hostile requests over plain sockets.
 *
 * One half is put together from parts that a server may trip over: methods, targets, versions,
 * header lines, bodies, line ends. The other half is good requests with a few bytes changed. Which
 * ones depends on their number alone, and no two are the same. A hundred are sent at
 * a time, each on a connection of its own; after the answers the clients say that no more will
 * come. The daemon must end each connection within ten seconds, with or without an answer, and the
 * next good request is answered by the same worker.
 *
 * In a build with sanitizers their reports fail the run (scripts/test.sh). KILN_SOAK=1: ten times
 * as many.
 */
#include "tests/api/lib_acceptance.h"
#include "tests/api/lib_forge.h"

#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROW       "thousands of raw hostile HTTP files under ASan"
#define TARGET    "0 reports, next request fine"
#define PATIENCE  10.0
#define BATCH     100        /* connections at a time */
#define SEEN_SIZE (1u << 17) /* a power of two, well above the number of requests */
#define COUNT(a)  (sizeof(a) / sizeof(a)[0])

static struct daemon daemon_;
static struct session *session;
static uint64_t *seen; /* hashes of all requests so far */

static int setup(void **state) {
    static const char *const flags[] = {
        "--max-body", "200000", "--max-pixels", "30000", "--max-iterations", "2000", NULL};
    (void)state;
    daemon_start(&daemon_, flags);
    session = session_create(&daemon_);
    seen = calloc(SEEN_SIZE, sizeof *seen);
    assert_non_null(seen);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    free(seen);
    session_destroy(session);
    return daemon_stop(&daemon_);
}

/* ---- parts ---- */

struct part {
    const char *bytes;
    size_t size;
};
#define P(text)                                                                                    \
    { text, sizeof(text) - 1 }

static const struct part methods[] = {
    P("GET"),
    P("POST"),
    P("HEAD"),
    P("PUT"),
    P("DELETE"),
    P("OPTIONS"),
    P("PATCH"),
    P("TRACE"),
    P("CONNECT"),
    P("PRI"),
    P("get"),
    P(""),
    P("G E T"),
    P("GET\0"),
    P("\xff"),
    P("GET\t"),
    P("POST\r"),
    P("M-SEARCH"),
    P(" GET"),
    P("\x16\x03\x01"),
    P("AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"),
};

static const struct part targets[] = {
    P("/"),
    P("/healthz"),
    P("/v1/devices"),
    P("/v1/mandelbrot?width=4&height=4"),
    P("/v1/mandelbrot"),
    P("/v1/laplacian"),
    P("/v1/jacobi?iterations=2"),
    P("/v1/lombscargle"),
    P("/v1/jobs"),
    P("/v1/jobs/1"),
    P("/v1/jobs/99999999999999999999"),
    P("/v1/jobs/-1"),
    P("/v1/mandelbrot/tiles/2/1/1.png"),
    P("/v1/mandelbrot/tiles/-1/1e9/x.png"),
    P("/v1/mandelbrot/tiles/99999999999/0/0@2x.png"),
    P("*"),
    P("http://x/"),
    P("http://"),
    P("https://x:99999/healthz"),
    P("x:80"),
    P("//"),
    P("///healthz"),
    P("/./healthz"),
    P("/../../etc/passwd"),
    P("/%2e%2e/%2e%2e/"),
    P("/%00"),
    P("/health%00z"),
    P("/%"),
    P("/%2"),
    P("/%zz"),
    P("/%c0%af"),
    P("/\xff"),
    P("/\0"),
    P("/ "),
    P(""),
    P("?"),
    P("#"),
    P("/#x"),
    P("/?"),
    P("/healthz?a"),
    P("/v1/mandelbrot?&&&&==&=&a=b=c"),
    P("/v1/mandelbrot?width=4&width=5"),
    P("/v1/mandelbrot?%77idth=4&height=%34"),
    P("/v1/mandelbrot?width=%"),
    P("/v1/mandelbrot?%00=1"),
    P("/v1/mandelbrot?width=\x01"),
    P("/v1/mandelbrot?width=99999999999999999999999"),
    P("/metrics"),
    P("/openapi.yaml"),
    P("/problems/../metrics"),
    P("/;a=b/healthz"),
    P("/\\healthz"),
};

static const struct part versions[] = {
    P(" HTTP/1.1"),
    P(" HTTP/1.1"),
    P(" HTTP/1.1"),
    P(" HTTP/1.1"),
    P(" HTTP/1.0"),
    P(" HTTP/0.9"),
    P(" HTTP/1.2"),
    P(" HTTP/2.0"),
    P(" HTTP/1"),
    P(" HTTP/1.1.1"),
    P(" HTTP/11"),
    P(" http/1.1"),
    P(""),
    P(" "),
    P(" HTTP/1.1 x"),
    P(" HTTP/-1.1"),
    P("\tHTTP/1.1"),
    P(" HTTP/1.1\0"),
    P(" HTTP/99999999999.1"),
    P("  HTTP/1.1"),
    P(" HTTPS/1.1"),
};

static const struct part lines[] = {
    P("Host: x"),
    P("Host: x"),
    P("Host: x"),
    P("Host:"),
    P("Host: \0"),
    P("Host: x, y"),
    P("Host: [::1"),
    P("Host: a:99999"),
    P("Host : x"),
    P(" Host: x"),
    P("Content-Length: 0"),
    P("Content-Length: 22"),
    P("Content-Length: 5"),
    P("Content-Length: -1"),
    P("Content-Length: 99999999999999999999"),
    P("Content-Length: 200001"),
    P("Content-Length: 0x5"),
    P("Content-Length: 5, 5"),
    P("Content-Length:\x0b"
      "5"),
    P("content-length: 22"),
    P("Transfer-Encoding: chunked"),
    P("Transfer-Encoding: chunked"),
    P("Transfer-Encoding: gzip, chunked"),
    P("Transfer-Encoding: identity"),
    P("Transfer-Encoding: \"chunked\""),
    P("Transfer-Encoding:\tchunked "),
    P("TE: trailers"),
    P("Content-Type: application/json"),
    P("Content-Type: application/json; charset=utf-16"),
    P("Content-Type: application/x-npy"),
    P("Content-Type: image/png"),
    P("Content-Type: text/csv"),
    P("Content-Type: application/octet-stream"),
    P("Content-Type: ;;;=\""),
    P("Content-Type: x/y"),
    P("Content-Type: multipart/form-data; boundary=b"),
    P("Content-Type: multipart/form-data"),
    P("Content-Type: multipart/form-data; boundary=\""),
    P("Content-Encoding: gzip"),
    P("Content-Type: application/x-www-form-urlencoded"),
    P("Content-Encoding: br, gzip"),
    P("Accept: image/png;q=nan"),
    P("Accept: */*;q=0"),
    P("Accept: ,,,;;;"),
    P("Accept: \xff/\xff"),
    P("Accept-Encoding: gzip;q=2, *;q=-1"),
    P("Range: bytes=0-18446744073709551615"),
    P("Range: bytes=-1,-2,-3,0-0,5-1"),
    P("If-None-Match: \"\", W/\"x\", *"),
    P("If-None-Match: \""),
    P("Prefer: respond-async; wait=-1"),
    P("Prefer: wait=99999999999999999999"),
    P("Expect: 100-continue"),
    P("Expect: x"),
    P("Connection: close, keep-alive, upgrade"),
    P("Connection: Host, Content-Length"),
    P("Upgrade: h2c"),
    P("HTTP2-Settings: AAAA"),
    P("Upgrade: websocket"),
    P("Authorization: Bearer"),
    P("Authorization: Bearer \xff\xff"),
    P("Authorization: Basic Og=="),
    P("Origin: null"),
    P("Origin: http://x\"y"),
    P("Access-Control-Request-Method: GET"),
    P("Cookie: =;=;=;\x7f"),
    P("X-Forwarded-For: 1.2.3.4"),
    P("traceparent: 00-0-0-0"),
    P("traceparent: 00-ffffffffffffffffffffffffffffffff-ffffffffffffffff-ff"),
    P("X-Request-Id: a\tb"),
    P("X: a\0b"),
    P("X\0: a"),
    P("X"),
    P(":"),
    P(": x"),
    P("(): x"),
    P("\xc3\xa9: x"),
    P("X: \x01\x02\x03"),
    P("\tfolded"),
    P("X:\xff\xfe"),
    P("Trailer: Content-Length"),
};

static const struct part bodies[] = {
    P(""),
    P(""),
    P("hello"),
    P("{\"width\":4,\"height\":4}"),
    P("{\"width\":[[[[[[[[[["),
    P("width=4&height=4"),
    P("16\r\n{\"width\":4,\"height\":4}\r\n0\r\n\r\n"),
    P("0\r\n\r\n"),
    P("-1\r\nx\r\n"),
    P("ffffffffffffffff\r\nx"),
    P("5;a=\"\r\nhello\r\n0\r\n\r\n"),
    P("5\nhello\n0\n\n"),
    P("\r\n\r\n\r\n"),
    P("5\r\nhello\r\n0\r\nHost: y\r\nContent-Length: 9\r\n\r\n"),
    P("1\r\nP\r\n1\r\n2\r\n1\r\n"),
    P("--b\r\nContent-Disposition: form-data; name=\"width\"\r\n\r\n4\r\n--b--\r\n"),
    P("--b\r\nContent-Disposition: form-data\r\n\r\n\r\n--b\r\n--b--"),
    P("--b--b--b--b"),
    P("--b\r\nContent-Disposition: form-data; name=\"image\"; filename=\"\0\"\r\n\r\nP5 1 1 9 "
      "a\r\n--b--"),
    P("P2\n2 1\n9\n1 2\n"),
    P("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR"),
    P("\x93NUMPY\x01\0\xff\xff{"),
    P("\x1f\x8b\x08\0\0\0\0\0\0\xff"),
    P("t,y\n1,2\n2,3\n3,5\n"),
    P("1e999,nan\n,\n"),
    P("\0\0\0\0\0\0\0\0"),
    P("GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n"),
    P("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
};

static const struct part ends[] = {P("\r\n"),   P("\r\n"),   P("\r\n"), P("\r\n"),
                                   P("\r\n"),   P("\r\n"),   P("\n"),   P("\r"),
                                   P("\r\r\n"), P("\0\r\n"), P(" \r\n")};

static void part_put(struct bytes *out, const struct part *parts, size_t count, uint64_t *state) {
    const struct part *part = &parts[forge_random(state) % count];
    bytes_put(out, part->bytes, part->size);
}

static void request_compose(struct bytes *out, uint64_t number) {
    uint64_t state = number * UINT64_C(0x9e6c63d0876a9a47);
    /* most of it is good, so that what is bad is reached */
    size_t method = forge_random(&state) % 4 > 0 ? 2 : COUNT(methods);
    size_t version = forge_random(&state) % 4 == 0 ? COUNT(versions) : 4;
    size_t end = forge_random(&state) % 6 == 0 ? COUNT(ends) : 6;
    out->size = 0;
    part_put(out, methods, method, &state);
    bytes_text(out, " ");
    part_put(out, targets, COUNT(targets), &state);
    part_put(out, versions, version, &state);
    part_put(out, ends, end, &state);
    if (forge_random(&state) % 8 > 0) {
        bytes_text(out, "Host: x\r\n");
    }
    for (uint64_t n = forge_random(&state) % 5; n > 0; n--) {
        part_put(out, lines, COUNT(lines), &state);
        part_put(out, ends, end, &state);
    }
    if (forge_random(&state) % 40 == 0) { /* a line, or a whole head, that is too long */
        bytes_text(out, "X-Long: ");
        bytes_fill(out, 'a', forge_random(&state) % 40000);
        bytes_text(out, "\r\n");
    }
    part_put(out, ends, end, &state);
    part_put(out, bodies, COUNT(bodies), &state);
    if (forge_random(&state) % 4 == 0) {
        bytes_text(out, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n");
    }
}

/* ---- good ones, changed ---- */

static void request_mutate(struct bytes *out, uint64_t number) {
    static const struct {
        const char *path, *type;
        struct part body;
    } seeds[] = {
        {"/v1/mandelbrot", "application/json", P("{\"width\":20,\"height\":10,\"xmin\":-2.25}")},
        {"/v1/mandelbrot", "application/x-www-form-urlencoded", P("width=20&height=10&shade=true")},
        {"/v1/mandelbrot", "multipart/form-data; boundary=b",
         P("--b\r\nContent-Disposition: form-data; name=\"width\"\r\n\r\n20\r\n--b--\r\n")},
        {"/v1/laplacian", "application/octet-stream", P("P5\n# a\n4 3\n255\nabcdefghijkl")},
        {"/v1/jacobi?iterations=3", "application/octet-stream",
         P("P2\n4 2\n99\n1 2 3 4 5 6 7 8\n")},
        {"/v1/lombscargle", "application/json",
         P("{\"t\":[1,2,3.5,4],\"y\":[1,2,4,1],\"nterms\":2}")},
        {"/v1/lombscargle", "text/csv", P("t,y,dy\n1,2,1\n2,3,1\n3.5,4,2\n4,1,1\n")},
    };
    size_t i = number % COUNT(seeds);
    char head[512];
    out->size = 0;
    if (number % 3 == 0) {
        snprintf(head, sizeof head,
                 "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nTransfer-Encoding: chunked\r\n"
                 "\r\n%zx\r\n",
                 seeds[i].path, seeds[i].type, seeds[i].body.size);
    } else {
        snprintf(head, sizeof head,
                 "POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: %s\r\nContent-Length: %zu\r\n"
                 "Accept: */*\r\n\r\n",
                 seeds[i].path, seeds[i].type, seeds[i].body.size);
    }
    bytes_text(out, head);
    bytes_put(out, seeds[i].body.bytes, seeds[i].body.size);
    bytes_text(out, number % 3 == 0 ? "\r\n0\r\n\r\n" : "");
    forge_mutate(out, number + 77777);
}

/* ---- asking ---- */

/* FNV-1a; 0 stands for an empty place. */
static uint64_t hash(const struct bytes *bytes) {
    uint64_t value = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < bytes->size; i++) {
        value = (value ^ bytes->at[i]) * UINT64_C(0x100000001b3);
    }
    return value + (value == 0);
}

static bool is_new(const struct bytes *request) {
    uint64_t value = hash(request);
    size_t at = value % SEEN_SIZE;
    for (; seen[at] != 0; at = (at + 1) % SEEN_SIZE) {
        if (seen[at] == value) {
            return false;
        }
    }
    seen[at] = value;
    return true;
}

struct sums {
    size_t asked, classes[6], hung; /* classes[0]: no answer */
    double slowest;
};

/* One connection: what was sent on it and what has come back. */
struct talk {
    int fd; /* -1: ended */
    uint64_t number;
    char out[16384];
    size_t used;
};

static void talk_start(struct talk *talk, const struct bytes *request, uint64_t number) {
    bool closed;
    char none[1];
    talk->fd = raw_open(&daemon_);
    talk->number = number;
    talk->used = 0;
    raw_exchange(talk->fd, request->at, request->size, none, sizeof none, 0, &closed);
}

/* Takes what is there; of long answers the start. */
static void talk_read(struct talk *talk) {
    char more[65536];
    ssize_t got = recv(talk->fd, more, sizeof more, MSG_DONTWAIT);
    if (got <= 0) {
        close(talk->fd);
        talk->fd = -1;
        return;
    }
    size_t room = sizeof talk->out - 1 - talk->used;
    size_t size = (size_t)got < room ? (size_t)got : room;
    memcpy(talk->out + talk->used, more, size);
    talk->used += size;
}

static void talk_judge(struct talk *talk, struct sums *sums) {
    talk->out[talk->used] = '\0';
    const char *out = talk->out;
    int status = strncmp(out, "HTTP/1.", 7) == 0 ? atoi(out + 9) : 0;
    sums->asked++;
    sums->classes[status >= 100 && status < 600 ? status / 100 : 0]++;
    if (talk->fd >= 0) {
        sums->hung++;
        print_message("  request %llu hangs\n", (unsigned long long)talk->number);
        close(talk->fd);
    }
    if ((status >= 500 && status != 501 && status != 505) || strstr(out, "HTTP/1.1 500 ") != NULL) {
        fail_msg("request %llu: %.300s", (unsigned long long)talk->number, out);
    }
}

/* Reads what has come on any connection within `seconds`; how many are open still. */
static size_t batch_read(struct talk *talks, size_t count, double seconds, bool *quiet) {
    struct pollfd polled[BATCH];
    size_t left = 0;
    for (size_t i = 0; i < count; i++) {
        polled[i] = (struct pollfd){.fd = talks[i].fd, .events = POLLIN};
    }
    *quiet = poll(polled, count, (int)(seconds * 1e3)) == 0;
    for (size_t i = 0; i < count; i++) {
        if (talks[i].fd >= 0 && polled[i].revents != 0) {
            talk_read(&talks[i]);
        }
        left += talks[i].fd >= 0;
    }
    return left;
}

/* Takes the answers, until for a while no more have come. Then it says that the clients are done,
   and each connection must end. */
static void batch_finish(struct talk *talks, size_t count, struct sums *sums) {
    bool quiet = false;
    size_t left = count;
    while (left > 0 && !quiet) {
        left = batch_read(talks, count, 0.25, &quiet);
    }
    for (size_t i = 0; i < count; i++) {
        if (talks[i].fd >= 0) {
            shutdown(talks[i].fd, SHUT_WR);
        }
    }
    double began = now_s();
    while (left > 0 && now_s() - began < PATIENCE) {
        left = batch_read(talks, count, 0.1, &quiet);
    }
    double took = now_s() - began;
    sums->slowest = took > sums->slowest ? took : sums->slowest;
    for (size_t i = 0; i < count; i++) {
        talk_judge(&talks[i], sums);
    }
}

static void next_is_fine(pid_t worker) {
    struct answer answer;
    session_get(session, "/v1/mandelbrot?width=16&height=16&format=npy", &answer);
    assert_status(&answer, 200);
    answer_free(&answer);
    assert_int_equal(worker_pid(session), worker);
}

static void run(const char *what, size_t count, void make(struct bytes *out, uint64_t number)) {
    static struct talk talks[BATCH];
    struct bytes request = {0};
    struct sums sums = {0};
    size_t batches = 0;
    uint64_t number = 0;
    pid_t worker = worker_pid(session);
    while (sums.asked < count) {
        for (size_t i = 0; i < BATCH;) {
            make(&request, ++number);
            assert_true(number < 4 * count);
            if (request.size > 0 && is_new(&request)) {
                talk_start(&talks[i++], &request, number);
            }
        }
        batch_finish(talks, BATCH, &sums);
        next_is_fine(worker);
        batches++;
    }
    bytes_free(&request);
    acceptance_print(
        sums.hung == 0, ROW, TARGET,
        "%zu distinct requests, %s: 2xx %zu, 3xx %zu, 4xx %zu, 501 and 505 %zu, cut off "
        "%zu, hung %zu, slowest hundred %.2f s; next request fine %zu of %zu times%s",
        sums.asked, what, sums.classes[2], sums.classes[3], sums.classes[4], sums.classes[5],
        sums.classes[0] + sums.classes[1], sums.hung, sums.slowest, batches, batches,
        acceptance_is_sanitized() ? "; with sanitizers" : "");
    assert_int_equal(sums.hung, 0);
}

static void composed(void **state) {
    (void)state;
    run("composed", acceptance_is_long() ? 10000 : 1000, request_compose);
}

static void mutated(void **state) {
    (void)state;
    run("mutated", acceptance_is_long() ? 10000 : 1000, request_mutate);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(composed),
        cmocka_unit_test(mutated),
    };
    return cmocka_run_group_tests_name("api.requests", tests, setup, teardown);
}
