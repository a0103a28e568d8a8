/*
 * test_arrays.c: broken NPY, PGM, PPM and PAM files through HTTP.
 *
 * First those that are broken by construction: every place of a good file filled with what must not
 * stand there, and every length too short. Each must be refused with a problem. Then mutations of
 * good files, of which those that are refused count. In a build with sanitizers their reports fail
 * the run (scripts/test.sh). KILN_SOAK=1 asks for ten times as many mutations.
 */
#include "tests/api/lib_acceptance.h"
#include "tests/api/lib_forge.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ROW      "1000 bad NPY/PGM"
#define TARGET   "4xx, no UBSan report"
#define ANY      "application/octet-stream"
#define IMAGE    "/v1/laplacian?format=npy"
#define CURVE    "/v1/lombscargle?fields=peaks"
#define COUNT(a) (sizeof(a) / sizeof(a)[0])

static struct daemon daemon_;
static struct session *session;
static struct watch watch;

static int setup(void **state) {
    (void)state;
    daemon_start(&daemon_, NULL);
    session = session_create(&daemon_);
    watch_start(&watch, session, &daemon_, IMAGE, ANY);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    session_destroy(session);
    return daemon_stop(&daemon_);
}

/* ---- NPY ---- */

static void npy_head(struct bytes *npy, unsigned version, const char *dictionary) {
    size_t size = strlen(dictionary);
    bytes_put(npy, "\x93NUMPY", 6);
    bytes_put(npy, (uint8_t[]){(uint8_t)version, 0, (uint8_t)size, (uint8_t)(size >> 8), 0, 0},
              version == 1 ? 4 : 6);
    bytes_text(npy, dictionary);
}

static void npy_make(struct bytes *npy, const char *dictionary, size_t data) {
    *npy = (struct bytes){0};
    npy_head(npy, 1, dictionary);
    bytes_fill(npy, 0, data);
}

static void npy_try(const char *dictionary, enum forge_wanted wanted) {
    struct bytes npy;
    char name[96];
    npy_make(&npy, dictionary, 64);
    snprintf(name, sizeof name, "NPY %.80s", dictionary);
    watch_ask(&watch, name, &npy, wanted);
    bytes_free(&npy);
}

static const char *const types[] = {
    "'|O'",
    "'<O8'",
    "'<c8'",
    "'<c16'",
    "'>c16'",
    "'<f16'",
    "'|V8'",
    "'<U4'",
    "'|S4'",
    "'<M8'",
    "'<M8[ns]'",
    "'<m8[s]'",
    "'<f3'",
    "'<i5'",
    "'<f0'",
    "'<f9'",
    "'<f1'",
    "'<u3'",
    "'f'",
    "'<'",
    "''",
    "' '",
    "'x4'",
    "'<<f4'",
    "'<f-4'",
    "'<f44'",
    "'<f4 '",
    "' <f4'",
    "'<f4\\n'",
    "'<\xc3\xa9'",
    "'b2'",
    "'|f8'",
    "'|i4'",
    "'|u2'",
    "'O'",
    "4",
    "None",
    "True",
    "['<f4']",
    "('<f4',)",
    "('<f4', (2,))",
    "{'a': '<f4'}",
    "[('a', '<f4')]",
    "[('a', '<f4', (2, 2))]",
    "'<f4",
    "<f4'",
    "<f4",
    "b'<f4'",
    "r'<f4'",
    "'<f4' '<f4'",
    "__import__('os')",
    "'\\x3cf4'",
    "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'",
    "'float32'",
    "'int'",
    "'=f4",
    "'@f4'",
    "'!f4'",
    "'<F4'",
    "'<I4'",
    "'<g8'",
    "'<l4'",

};

static const char *const shapes[] = {
    "()",
    "(4,)",
    "(2)",
    "[2, 2]",
    "{2, 2}",
    "(2; 2)",
    "(2, 2",
    "2, 2)",
    "(2 2)",
    "(2,, 2)",
    "(, 2)",
    "(2, 2,,)",
    "(-1, 2)",
    "(2, -1)",
    "(-2, -2)",
    "(+2, 2)",
    "(2.0, 2)",
    "(2e0, 2)",
    "(0x2, 2)",
    "(2_0, 2)",
    "('2', 2)",
    "(True, 2)",
    "(None, 2)",
    "(2, None)",
    "(2, [2])",
    "((2, 2),)",
    "(2, 2, 5)",
    "(2, 2, 0)",
    "(0, 2)",
    "(2, 0)",
    "(0, 0)",
    "(0, 4294967296)",
    "(2, 2, 1, 1)",
    "(1, 1, 1, 1, 1)",
    "(1, 1, 1, 1, 1, 1, 1, 1, 1, 1)",
    "(4294967296, 4294967296)",
    "(4294967295, 4294967295)",
    "(65536, 65536, 4)",
    "(2147483648, 1)",
    "(1, 2147483648)",
    "(4294967296, 1)",
    "(9223372036854775807, 1)",
    "(9223372036854775808, 2)",
    "(18446744073709551615, 1)",
    "(18446744073709551616, 1)",
    "(4611686018427387904, 4)",
    "(2305843009213693952, 2, 4)",
    "(1, 18446744073709551615)",
    "(99999999999999999999999999999, 1)",
    "(2, 99999999999999999999999999999)",
    "(1000000, 1000000)",
    "(8193, 8192)",
    "(5, 5)",
    "(100, 100)",
    "2",
    "None",
    "'(2, 2)'",
    "",
    "(2, 2) + (2,)",
    "(2*1, 2)",
    "(2, 2,",
    "(",
    ")",
    "(2,2)(2,2)",

    "(L, 2)",
    "(2LL, 2)",
};

static const char *const orders[] = {
    "None",    "0",       "1",        "true", "false",    "''", "'False'", "Falsee", "Fals",
    "(False)", "[False]", "not True", "",     "TrueTrue", "-1", "FALSE",   "b'C'",   "'C'"};

static const char *const dictionaries[] = {
    "",
    " ",
    "\n",
    "{",
    "}",
    "{}",
    "[]",
    "()",
    "None",
    "0",
    "''",
    "{{}}",
    "{,}",
    "{:}",
    "{'descr'}",
    "{'descr': }",
    "{'descr': '<f4'}",
    "{'shape': (2, 2)}",
    "{'fortran_order': False}",
    "{'descr': '<f4', 'fortran_order': False}",
    "{'descr': '<f4', 'shape': (2, 2)}",
    "{'fortran_order': False, 'shape': (2, 2)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), 'more': 1}",
    "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
    "{'descr': '<f4', 'fortran_order': False, 'fortran_order': True, 'shape': (2, 2)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2), 'shape': (2, 2)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)",
    "'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
    "{'descr': '<f4' 'fortran_order': False 'shape': (2, 2)}",
    "{'descr' '<f4', 'fortran_order': False, 'shape': (2, 2)}",
    "{'descr'= '<f4', 'fortran_order': False, 'shape': (2, 2)}",
    "{'descr':: '<f4', 'fortran_order': False, 'shape': (2, 2)}",
    "{'descr': '<f4',, 'fortran_order': False, 'shape': (2, 2)}",
    "{,'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
    "{descr: '<f4', 'fortran_order': False, 'shape': (2, 2)}",
    "{'DESCR': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
    "{'descr ': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
    "{b'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
    "{1: '<f4', 'fortran_order': False, 'shape': (2, 2)}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} x",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}{}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)} # end",
    "# {'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
    "x{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}",
    "dict(descr='<f4', fortran_order=False, shape=(2, 2))",
    "__import__('os').system('true')",
    "{'descr': '<f4', **{}}",
    "{'''descr''': '<f4'}",
    "{'descr",
    "{'descr': '",
    "{'descr': '<f4', '",
    "\xff\xfe\xfd",
    "{\"descr': '<f4'}",
    "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 2)}\v",
};

static void npy_words(void) {
    char text[256];
    for (size_t i = 0; i < COUNT(types); i++) {
        snprintf(text, sizeof text, "{'descr': %s, 'fortran_order': False, 'shape': (2, 2)}",
                 types[i]);
        npy_try(text, FORGE_REFUSED);
    }
    for (size_t i = 0; i < COUNT(shapes); i++) {
        snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': %s}",
                 shapes[i]);
        npy_try(text, FORGE_REFUSED);
    }
    for (size_t i = 0; i < COUNT(orders); i++) {
        snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': %s, 'shape': (2, 2)}",
                 orders[i]);
        npy_try(text, FORGE_REFUSED);
    }
    for (size_t i = 0; i < COUNT(dictionaries); i++) {
        npy_try(dictionaries[i], FORGE_REFUSED);
    }
}

#define GOOD_NPY "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 2), }          \n"

/* Versions, lengths and magics that there are not; a file that ends early; numbers that are none.
 */
static void npy_bytes(void) {
    static const char *const bad[] = {"\0\0\xc0\x7f", "\0\0\x80\x7f", "\0\0\x80\xff",
                                      "\1\0\x80\x7f"};
    struct bytes npy;
    char name[64];
    npy_make(&npy, GOOD_NPY, 24);
    watch_ask(&watch, "good NPY", &npy, FORGE_TAKEN);
    for (size_t size = 1; size < npy.size; size++) {
        snprintf(name, sizeof name, "NPY ends after %zu bytes", size);
        watch_ask(&watch, name, &(struct bytes){npy.at, size, 0}, FORGE_REFUSED);
    }
    for (size_t byte = 0; byte < 10; byte++) {
        for (unsigned value = 0; value < 256; value += byte == 6 ? 1 : 15) {
            uint8_t old = npy.at[byte];
            /* a head that ends in its blanks is a shorter one */
            bool wrong = byte == 6 ? value < 1 || value > 3 : byte != 8 && value != old;
            npy.at[byte] = (uint8_t)value;
            snprintf(name, sizeof name, "NPY, byte %zu is %u", byte, value);
            watch_ask(&watch, name, &npy, wrong ? FORGE_REFUSED : FORGE_EITHER);
            npy.at[byte] = old;
        }
    }
    for (size_t i = 0; i < 4 * 6; i++) {
        size_t at = npy.size - 24 + i / 4 * 4;
        memcpy(npy.at + at, bad[i % 4], 4);
        watch_ask(&watch, "NPY with a value that is no number", &npy, FORGE_REFUSED);
        memset(npy.at + at, 0, 4);
    }
    bytes_free(&npy);
    for (unsigned version = 2; version < 4; version++) { /* lengths of four bytes */
        static const uint32_t lengths[] = {0,       1,          16,         0xffff,    0x10000,
                                           1 << 24, 0x7fffffff, 0x80000000, 0xffffffff};
        for (size_t i = 0; i < COUNT(lengths); i++) {
            npy_head(&npy, version, GOOD_NPY);
            bytes_fill(&npy, 0, 24);
            for (size_t k = 0; k < 4; k++) {
                npy.at[8 + k] = (uint8_t)(lengths[i] >> 8 * k);
            }
            watch_ask(&watch, "NPY with a wrong length of its header", &npy, FORGE_REFUSED);
            bytes_free(&npy);
        }
    }
}

/* The same words as light curves: two or three rows of numbers. */
static void npy_curves(void) {
    static const char *const curves[] = {"()",
                                         "(4,)",
                                         "(1, 4)",
                                         "(4, 4)",
                                         "(2, 0)",
                                         "(3, 0)",
                                         "(2, 2, 2)",
                                         "(2, -1)",
                                         "(2, 1000)",
                                         "(2, 99999999999)",
                                         "(3, 4611686018427387904)",
                                         "(0, 4)",
                                         "(5, 2)",
                                         "(2, 18446744073709551615)"};
    char text[256];
    watch.path = CURVE;
    for (size_t i = 0; i < COUNT(types); i++) {
        snprintf(text, sizeof text, "{'descr': %s, 'fortran_order': False, 'shape': (2, 4)}",
                 types[i]);
        npy_try(text, FORGE_REFUSED);
    }
    for (size_t i = 0; i < COUNT(curves); i++) {
        snprintf(text, sizeof text, "{'descr': '<f4', 'fortran_order': False, 'shape': %s}",
                 curves[i]);
        npy_try(text, FORGE_REFUSED);
    }
    watch.path = IMAGE;
}

/* ---- PGM, PPM, PAM ---- */

static const char *const numbers[] = {"0",
                                      "-1",
                                      "+2",
                                      "2.0",
                                      "2e0",
                                      "0x2",
                                      "x",
                                      "''",
                                      "\"2\"",
                                      "2_",
                                      "65536",
                                      "4294967295",
                                      "4294967296",
                                      "4294967298",
                                      "18446744073709551615",
                                      "18446744073709551618",
                                      "99999999999999999999999999999999999999",
                                      "",
                                      "\xd9\xa2",
                                      "2,",
                                      "1/2",
                                      "nan"};

/* Each number of the head of each kind replaced. */
static void pgm_numbers(void) {
    static const char kinds[] = "2356";
    char name[96];
    for (size_t k = 0; k < 4; k++) {
        for (size_t place = 0; place < 3; place++) {
            for (size_t i = 0; i < COUNT(numbers); i++) {
                const char *good[] = {"2", "2", "9"};
                struct bytes pgm = {0};
                good[place] = numbers[i];
                bytes_fill(&pgm, 'P', 1);
                bytes_fill(&pgm, kinds[k], 1);
                for (size_t n = 0; n < 3; n++) {
                    bytes_text(&pgm, "\n");
                    bytes_text(&pgm, good[n]);
                }
                bytes_text(&pgm, "\n");
                bytes_text(&pgm, kinds[k] < '5' ? "1 2 3" : "\1\2\3");
                snprintf(name, sizeof name, "P%c, number %zu is %s", kinds[k], place, numbers[i]);
                watch_ask(&watch, name, &pgm, FORGE_REFUSED);
                bytes_free(&pgm);
            }
        }
    }
    for (int magic = 0; magic < 128; magic++) {
        struct bytes pgm = {0};
        bool known = magic == '2' || magic == '3' || magic == '5' || magic == '6';
        bytes_fill(&pgm, 'P', 1);
        bytes_fill(&pgm, magic, 1);
        bytes_text(&pgm, "\n1 1\n9\n1 1 1 1");
        snprintf(name, sizeof name, "P and %d", magic);
        watch_ask(&watch, name, &pgm, known ? FORGE_EITHER : FORGE_REFUSED);
        bytes_free(&pgm);
    }
}

/* Samples of text that are none. */
static void pgm_samples(void) {
    static const char *const words[] = {"-1",       "256", "65536", "x",  "1.5",
                                        "1e1",      "0x1", "+1",    "#",  "99999999999999999999",
                                        "\xd9\xa1", "1,",  "'1'",   "nan"};
    char text[96], name[96];
    for (size_t i = 0; i < COUNT(words); i++) {
        for (int place = 0; place < 4; place++) {
            struct bytes pgm = {0};
            const char *good[] = {"1", "2", "3", "255"};
            good[place] = words[i];
            snprintf(text, sizeof text, "P2\n2 2\n255\n%s %s %s %s", good[0], good[1], good[2],
                     good[3]);
            bytes_text(&pgm, text);
            snprintf(name, sizeof name, "P2 with the sample %s", words[i]);
            watch_ask(&watch, name, &pgm, FORGE_REFUSED);
            bytes_free(&pgm);
        }
    }
    for (int top = 1; top < 255; top += 7) { /* binary samples above the greatest */
        struct bytes pgm = {0};
        snprintf(text, sizeof text, "P5\n1 1\n%d\n", top);
        bytes_text(&pgm, text);
        bytes_fill(&pgm, top + 1, 1);
        watch_ask(&watch, "P5 with a sample above maxval", &pgm, FORGE_REFUSED);
        bytes_free(&pgm);
    }
}

static const char *const lines[] = {"",
                                    "WIDTH 1\nWIDTH 1\n",
                                    "DEPTH 0\n",
                                    "DEPTH 5\n",
                                    "DEPTH -1\n",
                                    "WIDTH 0\n",
                                    "WIDTH -1\n",
                                    "WIDTH 4294967297\n",
                                    "HEIGHT x\n",
                                    "HEIGHT\n",
                                    "MAXVAL 0\n",
                                    "MAXVAL 65536\n",
                                    "MAXVAL 99999999999999999999\n",
                                    "NOTHING 1\n",
                                    "width 1\n",
                                    "WIDTH 1 1\n",
                                    "WIDTH\t\n",
                                    "ENDHDR\n",
                                    "TUPLTYPE\n"};

/* PAM heads with one line in place of another, and with one more. */
static void pam_lines(void) {
    static const char *const good[] = {"WIDTH 1\n", "HEIGHT 1\n", "DEPTH 1\n", "MAXVAL 255\n"};
    char name[96];
    for (size_t i = 0; i < COUNT(lines); i++) {
        for (size_t place = 0; place < 4; place++) {
            struct bytes pam = {0};
            bytes_text(&pam, "P7\n");
            for (size_t n = 0; n < 4; n++) {
                bytes_text(&pam, n == place ? lines[i] : good[n]);
            }
            bytes_text(&pam, "ENDHDR\na");
            snprintf(name, sizeof name, "PAM, line %zu is %.60s", place, lines[i]);
            watch_ask(&watch, name, &pam, FORGE_REFUSED);
            bytes_free(&pam);
        }
    }
}

#define SEEDS 7
static void seed_make(size_t number, struct bytes *seed) {
    static const struct {
        const char *head;
        size_t data;
    } seeds[SEEDS] = {
        {"P5\n# c\n3 2\n255\n", 6},
        {"P6 2 2 255\n", 12},
        {"P5 2 2 65535\n", 8},
        {"P2\n3 2\n255\n0 1 2\n3 4 255\n", 0},
        {"P3 1 1 9 1 2 3", 0},
        {"P7\nWIDTH 2\nHEIGHT 1\nDEPTH 4\nMAXVAL 255\nTUPLTYPE RGB_ALPHA\nENDHDR\n", 8},
        {NULL, 24}};
    *seed = (struct bytes){0};
    if (seeds[number].head == NULL) {
        npy_make(seed, GOOD_NPY, seeds[number].data);
        return;
    }
    bytes_text(seed, seeds[number].head);
    bytes_fill(seed, 9, seeds[number].data);
}

static void ends(void) {
    for (size_t i = 0; i < SEEDS; i++) {
        struct bytes seed;
        char name[64];
        seed_make(i, &seed);
        watch_ask(&watch, "good", &seed, FORGE_TAKEN);
        /* the last bytes of a text may be a blank or a digit that is not missed */
        for (size_t size = 1; size + (i == 3 || i == 4 ? 3 : 0) < seed.size; size++) {
            snprintf(name, sizeof name, "seed %zu ends after %zu bytes", i, size);
            watch_ask(&watch, name, &(struct bytes){seed.at, size, 0}, FORGE_REFUSED);
        }
        bytes_free(&seed);
    }
}

/* ---- all of it ---- */

static void by_construction(void **state) {
    (void)state;
    npy_words();
    npy_bytes();
    npy_curves();
    pgm_numbers();
    pgm_samples();
    pam_lines();
    ends();
    print_message("  %zu by construction, %zu refused\n", watch.asked, watch.refused);
    watch_assert_fine(&watch);
}

static void mutated(void **state) {
    size_t before = watch.refused, wanted = acceptance_is_long() ? 10000 : 1000;
    (void)state;
    for (uint64_t i = 0; watch.refused < before + wanted; i++) {
        struct bytes seed;
        char name[64];
        seed_make(i % SEEDS, &seed);
        forge_mutate(&seed, i);
        snprintf(name, sizeof name, "mutation %llu", (unsigned long long)i);
        watch_ask(&watch, name, &seed, FORGE_EITHER);
        bytes_free(&seed);
        assert_true(i < 20 * wanted);
        if (i % 500 == 0) {
            watch_assert_fine(&watch); /* the next request is */
        }
    }
    acceptance_print(watch.wrong == 0, ROW, TARGET,
                     "%zu files, %zu refused with 4xx, %zu taken, %zu others; next request fine%s",
                     watch.asked, watch.refused, watch.taken, watch.wrong,
                     acceptance_is_sanitized() ? "; with sanitizers" : "");
    watch_assert_fine(&watch);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(by_construction),
        cmocka_unit_test(mutated),
    };
    return cmocka_run_group_tests_name("api.arrays", tests, setup, teardown);
}
