/* test_load_answer.c: kiln-bench's reader of answers, whole and in pieces, and of Server-Timing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "bench/load/answer.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static struct load_answer answer;

/* Feeds pieces of `step` bytes; returns how many bytes were taken. */
static size_t feed(const char *text, size_t size, size_t step, bool bodyless) {
    size_t at = 0;
    answer_begin(&answer, bodyless);
    while (at < size && answer.state != ANSWER_DONE && answer.state != ANSWER_BROKEN) {
        size_t piece = size - at < step ? size - at : step;
        char *copy = malloc(piece); /* so that a sanitizer sees reads past it */
        assert_non_null(copy);
        memcpy(copy, text + at, piece);
        at += answer_feed(&answer, copy, piece);
        free(copy);
    }
    return at;
}

struct example {
    const char *text;
    bool bodyless;
    enum answer_state state;
    int status;
    size_t body, left; /* `left`: bytes behind the answer */
    bool closing;
};

#define OK "HTTP/1.1 200 OK\r\n"

static const struct example examples[] = {
    {OK "Content-Length: 5\r\n\r\nhello", false, ANSWER_DONE, 200, 5, 0, false},
    {OK "content-length:\t5 \r\nConnection: close\r\n\r\nhello", false, ANSWER_DONE, 200, 5, 0,
     true},
    {OK "Content-Length: 5\r\n\r\nhelloHTTP", false, ANSWER_DONE, 200, 5, 4, false},
    {OK "Content-Length: 0\r\n\r\n", false, ANSWER_DONE, 200, 0, 0, false},
    {OK "Content-Length: 5\r\n\r\n", true, ANSWER_DONE, 200, 0, 0, false},
    {OK "Content-Length: 6\r\n\r\nhello", false, ANSWER_LENGTH, 200, 5, 0, false},
    {"HTTP/1.0 200 OK\r\nContent-Length: 2\r\n\r\nab", false, ANSWER_DONE, 200, 2, 0, true},
    {"HTTP/1.1 304 Not Modified\r\nContent-Length: 99\r\n\r\n", false, ANSWER_DONE, 304, 0, 0,
     false},
    {"HTTP/1.1 204 \r\n\r\n", false, ANSWER_DONE, 204, 0, 0, false},
    {"HTTP/1.1 503\r\nContent-Length: 1\r\n\r\nx", false, ANSWER_DONE, 503, 1, 0, false},
    {"HTTP/1.1 100 Continue\r\n\r\n" OK "Content-Length: 1\r\n\r\nx", false, ANSWER_DONE, 200, 1, 0,
     false},
    {OK "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nA;x=\"y\"\r\n0123456789\r\n0\r\n\r\n",
     false, ANSWER_DONE, 200, 15, 0, false},
    {OK "Transfer-Encoding: chunked\r\n\r\n0\r\nTrailer: 1\r\n\r\n", false, ANSWER_DONE, 200, 0, 0,
     false},
    {OK "\r\nuntil the end", false, ANSWER_UNTIL_CLOSE, 200, 13, 0, true},
    /* Nothing that can be read in two ways. */
    {OK "Transfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n", false, ANSWER_BROKEN, 200, 0, 0,
     false},
    {OK "Transfer-Encoding: gzip\r\n\r\n", false, ANSWER_BROKEN, 200, 0, 0, false},
    {OK "Content-Length: 1\r\nContent-Length: 2\r\n\r\n", false, ANSWER_BROKEN, 200, 0, 0, false},
    {OK "Content-Length: -1\r\n\r\n", false, ANSWER_BROKEN, 200, 0, 0, false},
    {OK "Content-Length: 1x\r\n\r\n", false, ANSWER_BROKEN, 200, 0, 0, false},
    {OK "Content-Length:\r\n\r\n", false, ANSWER_BROKEN, 200, 0, 0, false},
    {OK "Content-Length: 1234567890123456789\r\n\r\n", false, ANSWER_BROKEN, 200, 0, 0, false},
    {OK "Transfer-Encoding: chunked\r\n\r\nxyz\r\n", false, ANSWER_BROKEN, 200, 0, 4, false},
    {OK "Transfer-Encoding: chunked\r\n\r\n2\r\nabc", false, ANSWER_BROKEN, 200, 2, 0, false},
    {OK "Transfer-Encoding: chunked\r\n\r\n1234567890123456\r\n", false, ANSWER_BROKEN, 200, 0, 3,
     false},
    {"HTTP/2 200 OK\r\n\r\n", false, ANSWER_BROKEN, 0, 0, 0, false},
    {"HTTP/1.1 20 OK\r\n\r\n", false, ANSWER_BROKEN, 0, 0, 0, false},
    {"HTTP/1.1 101 Switching Protocols\r\n\r\n", false, ANSWER_BROKEN, 0, 0, 0, false},
    {"\r\n\r\n", false, ANSWER_BROKEN, 0, 0, 0, false},
};

static void test_examples(void **unused) {
    (void)unused;
    for (size_t i = 0; i < sizeof examples / sizeof *examples; i++) {
        const struct example *example = &examples[i];
        size_t size = strlen(example->text);
        for (size_t step = 1; step <= size; step++) {
            size_t used = feed(example->text, size, step, example->bodyless);
            if (answer.state != example->state || answer.status != example->status ||
                answer.body != example->body || used != size - example->left ||
                answer.closing != example->closing) {
                fail_msg("example %zu in pieces of %zu: state %d, status %d, body %llu, used %zu",
                         i, step, answer.state, answer.status, (unsigned long long)answer.body,
                         used);
            }
        }
    }
}

static void test_close(void **unused) {
    (void)unused;
    feed(OK "\r\nab", sizeof(OK "\r\nab") - 1, 3, false);
    assert_true(answer_close(&answer));
    assert_int_equal(answer.state, ANSWER_DONE);
    feed(OK "Content-Length: 3\r\n\r\nab", sizeof(OK "Content-Length: 3\r\n\r\nab") - 1, 3, false);
    assert_false(answer_close(&answer));
    answer_begin(&answer, false);
    assert_false(answer_close(&answer));
}

static void test_head_bound(void **unused) {
    static char text[ANSWER_HEAD_MAX + 100];
    (void)unused;
    memset(text, 'x', sizeof text);
    memcpy(text, OK "Name: ", sizeof(OK "Name: ") - 1);
    size_t used = feed(text, sizeof text, 1000, false);
    assert_int_equal(answer.state, ANSWER_BROKEN);
    assert_true(used <= ANSWER_HEAD_MAX);
    /* A NUL hides what is behind it. */
    static const char nul[] = OK "A: \0\r\nContent-Length: 1\r\n\r\nx";
    feed(nul, sizeof nul - 1, 7, false);
    assert_int_equal(answer.state, ANSWER_BROKEN);
}

static void test_headers(void **unused) {
    static const char text[] =
        OK "ETag:  \"a b\" \r\nX-ETag: 1\r\nEmpty:\r\nContent-Length: 0\r\n\r\n";
    char value[16], small[4];
    (void)unused;
    feed(text, sizeof text - 1, sizeof text, false);
    assert_int_equal(answer.state, ANSWER_DONE);
    assert_true(answer_header(&answer, "etag", value, sizeof value));
    assert_string_equal(value, "\"a b\"");
    assert_true(answer_header(&answer, "Empty", value, sizeof value));
    assert_string_equal(value, "");
    assert_false(answer_header(&answer, "Tag", value, sizeof value));
    assert_false(answer_header(&answer, "ETag", small, sizeof small));
}

static void test_timing(void **unused) {
    static const char text[] =
        "queue;dur=0.012, kernel; desc=\"a, \\\"b\\\"; c\" ;dur=1.5,cache;desc=hit,"
        " download;DUR=\"2\" , bad;dur=x;dur=-1,"
        "averyveryveryverylongnameindeed;dur=1,total;dur=3e0";
    static const struct timing_entry wanted[] = {
        {"queue", 0.012}, {"kernel", 1.5}, {"download", 2}, {"bad", 0}, {"total", 3}};
    struct timing_entry entry;
    const char *cursor = text;
    (void)unused;
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++) {
        assert_true(timing_next(&cursor, &entry));
        assert_string_equal(entry.name, wanted[i].name);
        assert_true(fabs(entry.ms - wanted[i].ms) < 1e-12);
    }
    assert_false(timing_next(&cursor, &entry));
    cursor = "";
    assert_false(timing_next(&cursor, &entry));
    cursor = " ,;dur=1, ,a;dur=nan,b;dur=\"unclosed";
    while (timing_next(&cursor, &entry)) {
        assert_string_equal(entry.name, "b");
    }
}

/* Random damage must end in a state, inside the buffers. */
static void test_damage(void **unused) {
    uint64_t state = 1;
    (void)unused;
    for (int round = 0; round < 20000; round++) {
        const struct example *example =
            &examples[(size_t)round % (sizeof examples / sizeof *examples)];
        char text[256];
        size_t size = strlen(example->text);
        memcpy(text, example->text, size);
        for (int i = 0; i < 3; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            text[(state >> 33) % size] = (char)(state >> 24);
        }
        size_t used = feed(text, size, 1 + (state >> 40) % size, false);
        assert_true(used <= size);
        assert_true(used == size || answer.state == ANSWER_DONE || answer.state == ANSWER_BROKEN);
        assert_true(answer.head_size <= ANSWER_HEAD_MAX);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_examples),   cmocka_unit_test(test_close),
        cmocka_unit_test(test_head_bound), cmocka_unit_test(test_headers),
        cmocka_unit_test(test_timing),     cmocka_unit_test(test_damage),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
