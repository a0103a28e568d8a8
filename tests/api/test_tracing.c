/*
 * test_tracing.c: the names of requests: X-Request-Id, traceparent and traceresponse over HTTP.
 * unit.test_trace has every case of the readers themselves.
 */
#include "tests/api/lib_daemon.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define TRACE  "0af7651916cd43dd8448eb211c80319c"
#define SPAN   "b7ad6b7169203331"
#define PARENT "traceparent: 00-" TRACE "-" SPAN "-01"
#define HEX    "0123456789abcdef"

static struct daemon shared;

static int setup(void **state) {
    (void)state;
    static const char *const flags[] = {"--cache-bytes", "4M", NULL};
    daemon_start(&shared, flags);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    return daemon_stop(&shared);
}

/* What an answer says of itself; empty where it says nothing. */
struct names {
    char id[160], trace[33], span[17], flags[3];
};

static struct names names_of(const struct answer *answer) {
    struct names names = {.id = ""};
    char response[128] = "";
    bool named = answer_header(answer, "X-Request-Id", names.id, sizeof names.id);
    assert_int_equal(answer_header(answer, "traceresponse", response, sizeof response), named);
    if (named) {
        assert_int_equal(strlen(response), 55);
        assert_memory_equal(response, "00-", 3);
        sscanf(response, "00-%32[" HEX "]-%16[" HEX "]-%2[" HEX "]", names.trace, names.span,
               names.flags);
        assert_int_equal(strlen(names.trace), 32);
        assert_int_equal(strlen(names.span), 16);
        assert_int_equal(strlen(names.flags), 2);
        assert_string_not_equal(names.trace, "00000000000000000000000000000000");
        assert_string_not_equal(names.span, "0000000000000000");
    }
    return names;
}

static struct names ask(const char *method, const char *path, const char *one, const char *two,
                        int status) {
    struct session *session = session_create(&shared);
    const struct request request = {.method = method, .path = path, .headers = {one, two}};
    struct answer answer;
    session_ask(session, &request, &answer);
    assert_status(&answer, status);
    struct names names = names_of(&answer);
    answer_free(&answer);
    session_destroy(session);
    return names;
}

static void assert_made(const struct names *names) {
    assert_string_equal(names->id, names->span);
    assert_string_equal(names->flags, "02");
    assert_string_not_equal(names->trace, TRACE);
}

static void every_answer_has_names(void **state) {
    (void)state;
    static const struct {
        const char *method, *path;
        int status;
    } rows[] = {
        {NULL, "/healthz", 200},
        {NULL, "/", 200},
        {NULL, "/metrics", 200},
        {NULL, "/openapi.yaml", 200},
        {"HEAD", "/v1/devices", 200},
        {"OPTIONS", "/v1/jobs", 204},
        {NULL, "/nothing", 404},
        {"DELETE", "/healthz", 405},
        {NULL, "/v1/mandelbrot?width=0", 422},
        {NULL, "/v1/mandelbrot?width=4&height=4&xmin=-1", 200},
        {NULL, "/v1/mandelbrot?width=%zz", 400},
    };
    struct names before = {.id = ""};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct names names = ask(rows[i].method, rows[i].path, NULL, NULL, rows[i].status);
        assert_made(&names);
        assert_string_not_equal(names.trace, before.trace);
        assert_string_not_equal(names.span, before.span);
        before = names;
        names = ask(rows[i].method, rows[i].path, PARENT, "X-Request-Id: a-1", rows[i].status);
        assert_string_equal(names.id, "a-1");
        assert_string_equal(names.trace, TRACE);
        assert_string_equal(names.flags, "01");
        assert_string_not_equal(names.span, SPAN);
        assert_string_not_equal(names.span, before.span);
    }
}

static void what_is_refused_unread_has_names_too(void **state) {
    (void)state;
    static const char request[] = "GET /healthz HTTP/1.1\r\nHost: a\r\nX-Request-Id: early\r\n"
                                  "Host: b\r\n\r\n";
    char out[2048];
    bool closed;
    int fd = raw_open(&shared);
    raw_exchange(fd, request, sizeof request - 1, out, sizeof out, 10, &closed);
    close(fd);
    assert_non_null(strstr(out, " 400 "));
    assert_non_null(strstr(out, "X-Request-Id: early\r\n"));
    assert_non_null(strstr(out, "traceresponse: 00-"));
}

static void malformed_names_are_as_if_not_sent(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"traceparent: 00-" TRACE "-" SPAN "-1", NULL},
        {"traceparent: ff-" TRACE "-" SPAN "-01", NULL},
        {"traceparent: 00-0AF7651916CD43DD8448EB211C80319C-" SPAN "-01", NULL},
        {"traceparent: 00-" TRACE "-0000000000000000-01", NULL},
        {"traceparent: 00-" TRACE "-" SPAN "-01-more", NULL},
        {"trace-parent: 00-" TRACE "-" SPAN "-01", NULL},
        {"traceparent;", NULL},
        {PARENT, PARENT}, /* which of them? */
        {PARENT, "Traceparent: 00-" TRACE "-" SPAN "-00"},
        {"tracestate: a=1", NULL},
        {"X-Request-Id: a b", NULL},
        {"X-Request-Id: \"a\"", NULL},
        {"X-Request-Id: \xc3\xa4", NULL},
        {"X-Request-Id;", NULL},
        {"X-Request-Id: a", "X-Request-Id: a"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct names names = ask(NULL, "/healthz", rows[i][0], rows[i][1], 200);
        assert_made(&names);
    }
    char longest[160] = "X-Request-Id: ";
    size_t start = strlen(longest);
    memset(longest + start, 'x', 128);
    struct names names = ask(NULL, "/healthz", longest, NULL, 200);
    assert_string_equal(names.id, longest + start);
    longest[start + 128] = 'x';
    names = ask(NULL, "/healthz", longest, NULL, 200);
    assert_made(&names);
}

static void odd_but_good_names_are_taken(void **state) {
    (void)state;
    static const char *const rows[][3] = {
        {"TrAcEpArEnT: 00-" TRACE "-" SPAN "-01", NULL, "01"},
        {"traceparent: cc-" TRACE "-" SPAN "-03-what-the-future-will-be-like", NULL, "01"},
        {"traceparent:  \t00-" TRACE "-" SPAN "-fe \t", NULL, "02"},
        {PARENT, "tracestate: a=1,b=2", "01"},
        {PARENT, "tracestate: =", "01"}, /* a broken list is dropped, the trace is not */
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct names names = ask(NULL, "/healthz", rows[i][0], rows[i][1], 200);
        assert_string_equal(names.trace, TRACE);
        assert_string_equal(names.flags, rows[i][2]);
        assert_string_equal(names.id, names.span);
    }
}

/* A kept result has one answer for all, and one of its own for each who brings a name. */
static void kept_results_are_named_on_demand(void **state) {
    (void)state;
    static const char path[] = "/v1/mandelbrot?width=16&height=16&format=png";
    struct names names = ask(NULL, path, NULL, NULL, 200);
    assert_made(&names); /* a job was run for it */
    for (int i = 0; i < 3; i++) {
        names = ask(NULL, path, NULL, NULL, 200);
        assert_string_equal(names.id, "");
        names = ask(NULL, path, "X-Request-Id: mine", NULL, 200);
        assert_string_equal(names.id, "mine");
        assert_string_equal(names.flags, "02");
        names = ask(NULL, path, PARENT, NULL, 200);
        assert_string_equal(names.trace, TRACE);
        assert_string_equal(names.id, names.span);
        names = ask(NULL, path, "traceparent: nonsense", NULL, 200);
        assert_string_equal(names.id, "");
    }
    names = ask(NULL, path, "If-None-Match: *", NULL, 304);
    assert_made(&names);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_has_names),
        cmocka_unit_test(what_is_refused_unread_has_names_too),
        cmocka_unit_test(malformed_names_are_as_if_not_sent),
        cmocka_unit_test(odd_but_good_names_are_taken),
        cmocka_unit_test(kept_results_are_named_on_demand),
    };
    return cmocka_run_group_tests_name("api.tracing", tests, setup, teardown);
}
