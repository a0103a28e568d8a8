/*
 * test_job_id.c: names of jobs: the generator against its published vectors, the form of a UUIDv7,
 * every text that differs from one by a byte or a length.
 */
#include "compute/core/job_id.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* RFC 8439, appendix A.1, test vectors #1 and #2 (a key of zeros); and, for the order of the key,
   the first bytes of a key that ends in 1, by OpenSSL (openssl enc -chacha20 -K 00…01 -iv 00…). */
static void the_generator_is_chacha20(void **state) {
    (void)state;
    static const uint8_t zeros[64] = {
        0x76, 0xb8, 0xe0, 0xad, 0xa0, 0xf1, 0x3d, 0x90, 0x40, 0x5d, 0x6a, 0xe5, 0x53,
        0x86, 0xbd, 0x28, 0xbd, 0xd2, 0x19, 0xb8, 0xa0, 0x8d, 0xed, 0x1a, 0xa8, 0x36,
        0xef, 0xcc, 0x8b, 0x77, 0x0d, 0xc7, 0xda, 0x41, 0x59, 0x7c, 0x51, 0x57, 0x48,
        0x8d, 0x77, 0x24, 0xe0, 0x3f, 0xb8, 0xd8, 0x4a, 0x37, 0x6a, 0x43, 0xb8, 0xf4,
        0x15, 0x18, 0xa1, 0x1c, 0xc3, 0x87, 0xb6, 0x69, 0xb2, 0xee, 0x65, 0x86};
    static const uint8_t last_bit[8] = {0x45, 0x40, 0xf0, 0x5a, 0x9f, 0x1f, 0xb2, 0x96};
    uint32_t key[JOB_IDS_KEY] = {0}, out[16];
    job_ids_block(key, 0, out);
    assert_memory_equal(out, zeros, sizeof zeros);
    static const uint8_t second[8] = {0x9f, 0x07, 0xe7, 0xbe, 0x55, 0x51, 0x38, 0x7a}; /* #2 */
    job_ids_block(key, 1, out);
    assert_memory_equal(out, second, sizeof second);
    key[7] = 0x01000000; /* byte 31 is 1 */
    job_ids_block(key, 0, out);
    assert_memory_equal(out, last_bit, sizeof last_bit);
}

static void ids_have_the_form_of_the_standard(void **state) {
    (void)state;
    struct job_ids ids;
    char text[JOB_ID_TEXT];
    assert_true(job_ids_init(&ids));
    for (int i = 0; i < 1000; i++) {
        struct job_id id = job_ids_next(&ids, 0x017f22e279b0), back;
        assert_false(job_id_empty(&id));
        job_id_print(&id, text);
        assert_int_equal(strlen(text), 36);
        assert_memory_equal(text, "017f22e2-79b0-7", 15); /* the RFC's own example's time */
        assert_non_null(strchr("89ab", text[19]));
        assert_true(job_id_parse(text, 36, &back));
        assert_true(job_id_equal(&id, &back));
    }
}

static int text_order(const void *one, const void *other) {
    return strcmp(one, other);
}

/* 74 bits that are as often 0 as 1, no id twice, none like one of another start. */
static void ids_are_random_and_never_equal(void **state) {
    (void)state;
    enum { COUNT = 20000 };
    static char texts[COUNT][JOB_ID_TEXT];
    struct job_ids ids[2];
    int ones[128] = {0};
    assert_true(job_ids_init(&ids[0]) && job_ids_init(&ids[1]));
    for (int i = 0; i < COUNT; i++) {
        struct job_id id = job_ids_next(&ids[i % 2], 1);
        job_id_print(&id, texts[i]);
        for (int bit = 0; bit < 128; bit++) {
            ones[bit] += id.bytes[bit / 8] >> (7 - bit % 8) & 1;
        }
    }
    for (int bit = 52; bit < 128; bit++) {
        if (bit == 64 || bit == 65) {
            assert_int_equal(ones[bit], bit == 64 ? COUNT : 0); /* the variant */
        } else {
            assert_in_range(ones[bit], COUNT / 2 - 600, COUNT / 2 + 600); /* 8 sigma */
        }
    }
    qsort(texts, COUNT, sizeof texts[0], text_order);
    for (int i = 1; i < COUNT; i++) {
        assert_string_not_equal(texts[i - 1], texts[i]);
    }
}

/* The text's order is that of time, and a clock that is set back changes nothing of that. */
static void ids_sort_by_time(void **state) {
    (void)state;
    static const uint64_t clock[] = {5, 6, 1000, 7, 0, 1001, 1u << 31, UINT64_C(1) << 47, 3};
    struct job_ids ids;
    char before[JOB_ID_TEXT] = "", text[JOB_ID_TEXT];
    uint64_t most = 0;
    assert_true(job_ids_init(&ids));
    for (size_t i = 0; i < sizeof clock / sizeof clock[0]; i++) {
        struct job_id id = job_ids_next(&ids, clock[i]);
        most = clock[i] > most ? clock[i] : most;
        uint64_t said = 0;
        for (int byte = 0; byte < 6; byte++) {
            said = said << 8 | id.bytes[byte];
        }
        assert_true(said == most);
        job_id_print(&id, text);
        assert_true(strncmp(before, text, 13) <= 0);
        memcpy(before, text, sizeof text);
    }
    assert_true(job_ids_now() > UINT64_C(1700000000000));
}

/* What was handed out, and the keys before this one, are not left in memory. */
static void the_generator_forgets(void **state) {
    (void)state;
    struct job_ids ids;
    assert_true(job_ids_init(&ids));
    uint32_t first[JOB_IDS_KEY];
    memcpy(first, ids.key, sizeof first);
    for (int i = 0; i < 50; i++) {
        struct job_id id = job_ids_next(&ids, 1);
        const uint8_t *memory = (const uint8_t *)&ids;
        for (size_t at = 0; at + 7 <= sizeof ids; at++) {
            assert_memory_not_equal(memory + at, id.bytes + 9, 7);
        }
        assert_memory_not_equal(ids.key, first, sizeof first);
    }
}

/* Every byte at every place, every length. */
static void only_ids_are_read(void **state) {
    (void)state;
    static const char good[] = "0198a1b2-c3d4-7e5f-8a6b-7c8d9e0f1a2b";
    char text[sizeof good + 3];
    struct job_id id, kept = {{1}};
    assert_true(job_id_parse(good, 36, &id));
    for (size_t size = 0; size < sizeof text; size++) {
        snprintf(text, sizeof text, "%saa", good);
        id = kept;
        assert_int_equal(job_id_parse(text, size, &id), size == 36);
        assert_int_equal(job_id_equal(&id, &kept), size != 36);
    }
    for (size_t at = 0; at < 36; at++) {
        for (int byte = 0; byte < 256; byte++) {
            memcpy(text, good, sizeof good);
            text[at] = (char)byte;
            const char *allowed = at == 8 || at == 13 || at == 18 || at == 23 ? "-"
                                  : at == 14                                  ? "7"
                                  : at == 19                                  ? "89ab"
                                                                              : "0123456789abcdef";
            bool right = byte != 0 && strchr(allowed, byte) != NULL;
            id = kept;
            assert_int_equal(job_id_parse(text, 36, &id), right);
            if (right) {
                char back[JOB_ID_TEXT];
                job_id_print(&id, back);
                assert_string_equal(back, text);
            } else {
                assert_true(job_id_equal(&id, &kept)); /* nothing is written */
            }
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_generator_is_chacha20),
        cmocka_unit_test(ids_have_the_form_of_the_standard),
        cmocka_unit_test(ids_are_random_and_never_equal),
        cmocka_unit_test(ids_sort_by_time),
        cmocka_unit_test(the_generator_forgets),
        cmocka_unit_test(only_ids_are_read),
    };
    return cmocka_run_group_tests_name("job_id", tests, NULL, NULL);
}
