/*
 * test_trace.c: traceparent, tracestate and request ids: the cases that the W3C's own suite for
 * Trace Context asks of a server, by header value; and what reading them costs.
 */
#include "compute/core/timing.h"
#include "compute/core/trace.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define TRACE_TEXT "12345678901234567890123456789012"
#define SPAN_TEXT  "1234567890123456"
#define LONG_64    "abcdefghijklmnopqrstuvwxyz0123456789_-*/abcdefghijklmnopqrstuvwx"
#define LONG_256   LONG_64 LONG_64 LONG_64 LONG_64

static bool parent_taken(const char *text, struct traceparent *parent) {
    size_t size = strlen(text);
    char *exact = malloc(size > 0 ? size : 1); /* so that a step past its end is seen */
    assert_non_null(exact);
    memcpy(exact, text, size);
    bool taken = traceparent_read(exact, size, parent);
    free(exact);
    return taken;
}

static const char *const good_parents[] = {
    "00-" TRACE_TEXT "-" SPAN_TEXT "-00",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-02",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-ff",
    "00-00000000000000000000000000000001-0000000000000001-01",
    "00-abcdef0123456789abcdef0123456789-fedcba9876543210-01",
    " 00-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "\t00-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-01 ",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-01\t",
    "\t 00-" TRACE_TEXT "-" SPAN_TEXT "-01 \t",
    /* a version to come: its first fields, whatever follows behind a dash */
    "cc-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "cc-" TRACE_TEXT "-" SPAN_TEXT "-01-",
    "cc-" TRACE_TEXT "-" SPAN_TEXT "-01-what-the-future-will-be-like",
    "01-" TRACE_TEXT "-" SPAN_TEXT "-01-" SPAN_TEXT,
    "fe-" TRACE_TEXT "-" SPAN_TEXT "-01-\xff",
};

static const char *const bad_parents[] = {
    "",
    " ",
    "foo",
    "00-" TRACE_TEXT "-" SPAN_TEXT,
    "00-" TRACE_TEXT "-" SPAN_TEXT "-",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-0",
    /* version 00 says no more than this */
    "00-" TRACE_TEXT "-" SPAN_TEXT "-01.",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-01-",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-01-what-the-future-will-be-like",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-01,00-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "cc-" TRACE_TEXT "-" SPAN_TEXT "-01.what-the-future-will-not-be-like",
    "cc-" TRACE_TEXT "-" SPAN_TEXT "-0",
    "cc-" TRACE_TEXT "-" SPAN_TEXT "-011",
    /* version */
    "ff-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "ff-" TRACE_TEXT "-" SPAN_TEXT "-01-what-the-future-will-be-like",
    ".0-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "0.-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "CC-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "FF-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "000-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "0000-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "0-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "-" TRACE_TEXT "-" SPAN_TEXT "-01",
    "00" TRACE_TEXT SPAN_TEXT "01",
    "00_" TRACE_TEXT "_" SPAN_TEXT "_01",
    "00 -" TRACE_TEXT "-" SPAN_TEXT "-01",
    /* trace id */
    "00-00000000000000000000000000000000-" SPAN_TEXT "-01",
    "cc-00000000000000000000000000000000-" SPAN_TEXT "-01",
    "00-.2345678901234567890123456789012-" SPAN_TEXT "-01",
    "00-1234567890123456789012345678901.-" SPAN_TEXT "-01",
    "00-" TRACE_TEXT "3-" SPAN_TEXT "-01",
    "00-1234567890123456789012345678901-" SPAN_TEXT "-01",
    "00-ABCDEF0123456789abcdef0123456789-" SPAN_TEXT "-01",
    "00-abcdef0123456789abcdef012345678G-" SPAN_TEXT "-01",
    "00-0x345678901234567890123456789012-" SPAN_TEXT "-01",
    /* parent id */
    "00-" TRACE_TEXT "-0000000000000000-01",
    "00-" TRACE_TEXT "-.234567890123456-01",
    "00-" TRACE_TEXT "-123456789012345.-01",
    "00-" TRACE_TEXT "-12345678901234567-01",
    "00-" TRACE_TEXT "-123456789012345-01",
    "00-" TRACE_TEXT "-123456789012345F-01",
    /* flags */
    "00-" TRACE_TEXT "-" SPAN_TEXT "-.0",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-0.",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-0A",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-001",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-1",
    "00-" TRACE_TEXT "-" SPAN_TEXT "-\x80\x80",
};

static void parents_are_read_strictly(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good_parents / sizeof good_parents[0]; i++) {
        struct traceparent parent;
        if (!parent_taken(good_parents[i], &parent)) {
            fail_msg("refused: \"%s\"", good_parents[i]);
        }
        assert_int_equal(parent.flags & ~TRACE_FLAGS_KNOWN, 0);
    }
    for (size_t i = 0; i < sizeof bad_parents / sizeof bad_parents[0]; i++) {
        struct traceparent parent, before;
        memset(&parent, 0x5a, sizeof parent);
        before = parent;
        if (parent_taken(bad_parents[i], &parent)) {
            fail_msg("taken: \"%s\"", bad_parents[i]);
        }
        assert_memory_equal(&parent, &before, sizeof parent);
    }
    /* a NUL is a character like others */
    char text[] = "00-" TRACE_TEXT "-" SPAN_TEXT "-01";
    for (size_t i = 0; i + 1 < sizeof text; i++) {
        struct traceparent parent;
        char kept = text[i];
        text[i] = '\0';
        assert_false(traceparent_read(text, sizeof text - 1, &parent));
        text[i] = kept;
    }
}

static void parents_say_what_they_said(void **state) {
    (void)state;
    struct traceparent parent;
    assert_true(parent_taken("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff", &parent));
    assert_int_equal(parent.id[0], 0x0a);
    assert_int_equal(parent.id[15], 0x9c);
    assert_int_equal(parent.parent[0], 0xb7);
    assert_int_equal(parent.parent[7], 0x31);
    assert_int_equal(parent.flags, TRACE_SAMPLED | TRACE_RANDOM); /* the others mean nothing yet */
    assert_true(parent_taken("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-ff", &parent));
    assert_int_equal(parent.flags, TRACE_SAMPLED);
    struct trace trace;
    char text[TRACEPARENT_TEXT];
    memcpy(trace.id, parent.id, sizeof trace.id);
    memcpy(trace.span, parent.parent, sizeof trace.span);
    traceparent_print(&trace, 1, text);
    assert_string_equal(text, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01");
    char id[TRACE_ID_TEXT], span[TRACE_SPAN_TEXT];
    trace_id_print(&trace, id);
    trace_span_print(&trace, span);
    assert_string_equal(id, "0af7651916cd43dd8448eb211c80319c");
    assert_string_equal(span, "b7ad6b7169203331");
}

static const char *const good_states[] = {
    "foo=1",
    "foo=1,bar=2",
    "foo=1 , bar=2",
    "foo=1,\tbar=2",
    " foo=1\t",
    "foo=1,",
    ",foo=1",
    "foo=1,,,bar=2",
    "foo=1,foo=1",
    "foo=1,foo=2",
    "0tenant@vendor=1",
    "a0_-*/@=1",
    LONG_256 "=1",
    "foo=" LONG_256,
    "foo= !\"#$%&'()*+-./0123456789:;<>?@ABC[\\]^_`abc{|}~",
    "bar01=01,bar02=02,bar03=03,bar04=04,bar05=05,bar06=06,bar07=07,bar08=08,bar09=09,bar10=10,"
    "bar11=11,bar12=12,bar13=13,bar14=14,bar15=15,bar16=16,bar17=17,bar18=18,bar19=19,bar20=20,"
    "bar21=21,bar22=22,bar23=23,bar24=24,bar25=25,bar26=26,bar27=27,bar28=28,bar29=29,bar30=30,"
    "bar31=31,bar32=32",
};

static const char *const bad_states[] = {
    "",
    " ",
    ",",
    "foo",
    "foo=",
    "=1",
    "foo =1",
    "foo= ",
    "foo=1=2",
    "FOO=1",
    "foo.bar=1",
    "@foo=1",
    "_foo=1",
    "foo=\t1",
    "foo=1\x7f",
    "foo=\xc3\xa4",
    "foo=1,bar",
    LONG_256 "z=1",
    "foo=" LONG_256 "z",
    /* 33 */
    "bar01=01,bar02=02,bar03=03,bar04=04,bar05=05,bar06=06,bar07=07,bar08=08,bar09=09,bar10=10,"
    "bar11=11,bar12=12,bar13=13,bar14=14,bar15=15,bar16=16,bar17=17,bar18=18,bar19=19,bar20=20,"
    "bar21=21,bar22=22,bar23=23,bar24=24,bar25=25,bar26=26,bar27=27,bar28=28,bar29=29,bar30=30,"
    "bar31=31,bar32=32,bar33=33",
    /* more than 512 bytes */
    "a=" LONG_64 LONG_64 LONG_64 ",b=" LONG_64 LONG_64 LONG_64 ",c=" LONG_64 LONG_64 LONG_64,
};

static void states_are_lists(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good_states / sizeof good_states[0]; i++) {
        if (!tracestate_valid(good_states[i], strlen(good_states[i]))) {
            fail_msg("refused: \"%s\"", good_states[i]);
        }
    }
    for (size_t i = 0; i < sizeof bad_states / sizeof bad_states[0]; i++) {
        if (tracestate_valid(bad_states[i], strlen(bad_states[i]))) {
            fail_msg("taken: \"%s\"", bad_states[i]);
        }
    }
    assert_false(tracestate_valid("foo=1\0,bar=2", 12));
}

static void request_ids_are_words(void **state) {
    (void)state;
    static const char *const good[] = {"a", "0", "3f1c2b1a-7d51-4c7e-9a7e-0b9f2f1e8d11",
                                       "Root=1-67891233-abcdef012345678912345678",
                                       "a.b_c~d+e/f=g:h@i-j"};
    static const char *const bad[] = {"",     " ",        "a b", "a,b",    "a;b",   "\"a\"",
                                      "a\tb", "\xc3\xa4", "{}",  "a\r\nb", LONG_256};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        assert_true(request_id_valid(good[i], strlen(good[i])));
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_false(request_id_valid(bad[i], strlen(bad[i])));
    }
    char text[REQUEST_ID_MAX + 1];
    memset(text, 'x', sizeof text);
    assert_true(request_id_valid(text, REQUEST_ID_MAX));
    assert_false(request_id_valid(text, REQUEST_ID_MAX + 1));
    text[3] = '\0';
    assert_false(request_id_valid(text, REQUEST_ID_MAX));
}

/* ---- ids that are made ---- */

#define THREADS 4
#define EACH    20000

static void *spans_make(void *argument) {
    struct trace *traces = argument;
    for (int i = 0; i < EACH; i++) {
        trace_begin(&traces[i]);
    }
    return NULL;
}

static int trace_compare(const void *one, const void *other) {
    return memcmp(one, other, sizeof(struct trace));
}

static int span_compare(const void *one, const void *other) {
    return memcmp(((const struct trace *)one)->span, ((const struct trace *)other)->span,
                  TRACE_SPAN_SIZE);
}

static void ids_are_never_the_same(void **state) {
    (void)state;
    static struct trace traces[THREADS * EACH];
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, spans_make, &traces[(size_t)i * EACH]),
                         0);
    }
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    qsort(traces, THREADS * EACH, sizeof traces[0], trace_compare);
    for (int i = 0; i < THREADS * EACH; i++) {
        assert_false(trace_empty(&traces[i]));
        assert_true(i == 0 || memcmp(traces[i].id, traces[i - 1].id, TRACE_ID_SIZE) != 0);
    }
    qsort(traces, THREADS * EACH, sizeof traces[0], span_compare);
    for (int i = 1; i < THREADS * EACH; i++) {
        assert_true(memcmp(traces[i].span, traces[i - 1].span, TRACE_SPAN_SIZE) != 0);
    }
}

/* What a request pays; printed, for there is no bound that every machine keeps. */
static void costs_are_shown(void **state) {
    (void)state;
    enum { ROUNDS = 200000 };
    char text[] = "00-" TRACE_TEXT "-" SPAN_TEXT "-01", out[TRACEPARENT_TEXT];
    struct traceparent parent;
    struct trace trace;
    unsigned sum = 0;
    uint64_t start = clock_ns();
    for (int i = 0; i < ROUNDS; i++) {
        text[3] = (char)('1' + (i & 7));
        sum += traceparent_read(text, sizeof text - 1, &parent);
    }
    uint64_t read = clock_ns();
    for (int i = 0; i < ROUNDS; i++) {
        trace_begin(&trace);
        sum += trace.span[0];
    }
    uint64_t begun = clock_ns();
    for (int i = 0; i < ROUNDS; i++) {
        trace.span[0] = (uint8_t)i;
        traceparent_print(&trace, 1, out);
        sum += (unsigned char)out[36];
    }
    uint64_t printed = clock_ns();
    print_message("read %.1f ns, begin %.1f ns, print %.1f ns (%u)\n",
                  (double)(read - start) / ROUNDS, (double)(begun - read) / ROUNDS,
                  (double)(printed - begun) / ROUNDS, sum);
    assert_true(sum > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(parents_are_read_strictly), cmocka_unit_test(parents_say_what_they_said),
        cmocka_unit_test(states_are_lists),          cmocka_unit_test(request_ids_are_words),
        cmocka_unit_test(ids_are_never_the_same),    cmocka_unit_test(costs_are_shown),
    };
    return cmocka_run_group_tests_name("trace", tests, NULL, NULL);
}
