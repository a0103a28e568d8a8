/*
 * test_keys.c: keys, their hash, their file, their header.
 */
#include "server/auth/keys.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#define A "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define B "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"

static void hashes_are_sha256(void **state) {
    (void)state;
    /* FIPS 180-4's examples */
    static const struct {
        const char *text, *hash;
    } rows[] = {
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct key key = {.id = "x", .scopes = SCOPE_READ};
        char line[KEY_LINE_MAX];
        key_hash(rows[i].text, strlen(rows[i].text), key.hash);
        assert_true(key_print(&key, line, sizeof line));
        assert_memory_equal(line, "x sha256:", 9);
        assert_memory_equal(line + 9, rows[i].hash, 64);
        assert_string_equal(line + 73, " read");
    }
}

static void every_bit_of_a_hash_counts(void **state) {
    (void)state;
    uint8_t a[KEY_HASH_SIZE], b[KEY_HASH_SIZE];
    key_hash("key", 3, a);
    memcpy(b, a, sizeof b);
    assert_true(key_hash_equal(a, b));
    for (size_t bit = 0; bit < 8 * KEY_HASH_SIZE; bit++) {
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_false(key_hash_equal(a, b));
        b[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
}

static void new_keys_are_tokens_and_differ(void **state) {
    (void)state;
    enum { MANY = 500 };
    static char keys[MANY][KEY_TEXT_SIZE];
    uint64_t ones = 0;
    for (int i = 0; i < MANY; i++) {
        char header[80];
        const char *token;
        size_t size;
        assert_true(key_make(keys[i]));
        assert_int_equal(strlen(keys[i]), KEY_TEXT_SIZE - 1);
        assert_memory_equal(keys[i], "kiln_", 5);
        snprintf(header, sizeof header, "Bearer %s", keys[i]);
        assert_true(bearer_read(header, &token, &size));
        assert_string_equal(token, keys[i]);
        assert_int_equal(size, KEY_TEXT_SIZE - 1);
        for (int k = 0; k < i; k++) {
            assert_string_not_equal(keys[i], keys[k]);
        }
        for (const char *c = keys[i] + 5; *c != '\0'; c++) {
            ones += *c >= 'A' && *c <= 'Z';
        }
    }
    /* 26 of 64 digits: 8734 of 21500 expected, standard deviation 72 */
    assert_in_range(ones, 8300, 9200);
}

static void headers_hold_one_key_or_none(void **state) {
    (void)state;
    static const char *const bad[] = {
        "",           "Bearer",     "Bearer ",         "Bearer  ",          "Bearera",
        "Basic YTpi", "Bearer a b", "Bearer a,b",      "Bearer a,Bearer a", "Bearer a\t",
        "Bearer =",   "Bearer a=b", "Bearer \xc3\xa4", " Bearer a",         "Bearer a "};
    const char *token;
    size_t size;
    char longest[KEY_TOKEN_MAX + 16] = "bearer ";
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        if (bearer_read(bad[i], &token, &size)) {
            fail_msg("taken: \"%s\"", bad[i]);
        }
    }
    assert_true(bearer_read("BEARER   a-._~+/Z9==", &token, &size));
    assert_string_equal(token, "a-._~+/Z9==");
    assert_int_equal(size, 11);
    memset(longest + 7, 'x', KEY_TOKEN_MAX);
    assert_true(bearer_read(longest, &token, &size));
    assert_int_equal(size, KEY_TOKEN_MAX);
    longest[7 + KEY_TOKEN_MAX] = 'x';
    assert_false(bearer_read(longest, &token, &size));
}

static struct keys *parsed(const char *text) {
    struct keys *keys;
    char why[256] = "";
    if (!keys_parse(text, strlen(text), &keys, why, sizeof why)) {
        fail_msg("%s", why);
    }
    return keys;
}

static void files_are_read(void **state) {
    (void)state;
    struct keys *keys =
        parsed("# keys\r\n\n  alice\tsha256:" A "  read,compute rate=0.5 "
               "concurrency=7\t\n\t# bob's\nbob.2_x- sha256:" B " admin burst=9 rate=20\r\n");
    assert_int_equal(keys->count, 2);
    const struct key *alice = &keys->rows[0], *bob = &keys->rows[1];
    assert_string_equal(alice->id, "alice");
    assert_int_equal(alice->hash[0], 0x01);
    assert_int_equal(alice->hash[31], 0xef);
    assert_int_equal(alice->scopes, SCOPE_READ | SCOPE_COMPUTE);
    assert_true(alice->rate == 0.5);
    assert_int_equal(alice->burst, 1);
    assert_int_equal(alice->concurrency, 7);
    assert_string_equal(bob->id, "bob.2_x-");
    assert_int_equal(bob->scopes, SCOPE_ADMIN);
    assert_true(bob->rate == 20);
    assert_int_equal(bob->burst, 9);
    assert_int_equal(bob->concurrency, 0);
    free(keys);
}

static void broken_files_are_refused_with_the_line(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"a", "line 1: after the id"},
        {"a b", "line 1: after the id"},
        {"\n\na!", "line 3: an id"},
        {"abcdefghijklmnopqrstuvwxyz0123456 sha256:" A " read", "line 1: an id"},
        {"a md5:" A " read", "after the id"},
        {"a sha256:" A "0 read", "after the id"},
        {"a sha256:0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef read",
         "after the id"},
        {"a sha256:" A, "after the hash"},
        {"a sha256:" A " write", "after the hash"},
        {"a sha256:" A " ,read", "after the hash"},
        {"a sha256:" A " read,", "after the hash"},
        {"a sha256:" A " read,read", "after the hash"},
        {"a sha256:" A " READ", "after the hash"},
        {"a sha256:" A " read speed=1", "after the scopes"},
        {"a sha256:" A " read compute", "after the scopes"},
        {"a sha256:" A " read rate", "after the scopes"},
        {"a sha256:" A " read rate=", "rate= must"},
        {"a sha256:" A " read rate=-1", "rate= must"},
        {"a sha256:" A " read rate=1e3", "rate= must"},
        {"a sha256:" A " read rate=0x10", "rate= must"},
        {"a sha256:" A " read rate=nan", "rate= must"},
        {"a sha256:" A " read rate=0.0009", "rate= must"},
        {"a sha256:" A " read rate=1000001", "rate= must"},
        {"a sha256:" A " read rate=.5", "rate= must"},
        {"a sha256:" A " read rate=1 rate=1", "rate= must"},
        {"a sha256:" A " read rate=1 burst=1.5", "burst= must"},
        {"a sha256:" A " read rate=1 burst=0", "burst= must"},
        {"a sha256:" A " read burst=1", "needs a rate"},
        {"a sha256:" A " read concurrency=99999999", "concurrency= must"},
        {"a sha256:" A " read\na sha256:" B " read\n", "the id a stands twice"},
        {"a sha256:" A " read\nb sha256:" A " read\n", "stands twice"},
        {"a sha256:" A " read\x01", "control"},
        {"a sha256:" A " read\x7f", "control"},
        {"a sha256:" A " read \r # x", "control"},
        /* empty, and cut: the limits of the last key may be gone */
        {"", "no key"},
        {"\n# none yet\n\n", "no key"},
        {"a sha256:" A " read", "line 1, the last, has no end"},
        {"b sha256:" B " read\na sha256:" A " read", "line 2, the last, has no end"},
        {"a sha256:" A " read\n# the en", "line 2, the last, has no end"},
        {"a sha256:" A " read rate=10 burst=2 concurrency=1", "line 1, the last, has no end"},
        {"a sha256:" A " read rate=10 b", "after the scopes"},
        {"a sha256:" A " read\r", "has no end"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        struct keys *keys;
        char why[256] = "";
        if (keys_parse(rows[i].text, strlen(rows[i].text), &keys, why, sizeof why)) {
            fail_msg("taken: %s", rows[i].text);
        }
        assert_null(keys);
        if (strstr(why, rows[i].why) == NULL || strstr(why, "0123456789abcdef") != NULL) {
            fail_msg("row %zu: \"%s\" instead of \"%s\"", i, why, rows[i].why);
        }
    }
}

static void files_have_limits(void **state) {
    (void)state;
    struct keys *keys;
    char why[256];
    char *text = malloc(KEYS_FILE_MAX + 2);
    size_t used = 0;
    assert_non_null(text);
    for (int i = 0; i < KEYS_MAX + 1; i++) {
        used += (size_t)sprintf(text + used, "k%d sha256:%064x read\n", i, (unsigned)i);
    }
    assert_false(keys_parse(text, used, &keys, why, sizeof why));
    assert_non_null(strstr(why, "at most 4096"));
    size_t last = used - 1;
    while (text[last - 1] != '\n') {
        last--;
    }
    assert_true(keys_parse(text, last, &keys, why, sizeof why));
    assert_int_equal(keys->count, KEYS_MAX);
    free(keys);
    memset(text, '\n', KEYS_FILE_MAX + 1);
    sprintf(text, "k sha256:%064x read", 1);
    text[strlen(text)] = '\n';
    assert_true(keys_parse(text, KEYS_FILE_MAX, &keys, why, sizeof why));
    free(keys);
    assert_false(keys_parse(text, KEYS_FILE_MAX + 1, &keys, why, sizeof why));
    size_t first = (size_t)((char *)memchr(text, '\n', 100) - text) + 1;
    for (size_t more = 0; more < 2; more++) { /* the longest comment, and one that is longer */
        memset(text + first, '#', KEY_LINE_MAX + more);
        text[first + KEY_LINE_MAX + more] = '\n';
        size_t size = first + KEY_LINE_MAX + more + 1;
        assert_int_equal(keys_parse(text, size, &keys, why, sizeof why), more == 0);
        free(keys);
    }
    assert_false(keys_parse("a\0b", 3, &keys, why, sizeof why));
    free(text);
}

static void files_that_everyone_may_write_are_refused(void **state) {
    (void)state;
    char path[] = "/tmp/kiln-keys-XXXXXX", why[256];
    struct keys *keys;
    int fd = mkstemp(path);
    assert_true(fd >= 0);
    assert_true(write(fd, "a sha256:" A " read\n", 79) == 79);
    close(fd);
    assert_true(keys_load(path, &keys, why, sizeof why));
    assert_int_equal(keys->count, 1);
    free(keys);
    assert_int_equal(chmod(path, 0606), 0);
    assert_false(keys_load(path, &keys, why, sizeof why));
    assert_non_null(strstr(why, "everyone"));
    unlink(path);
    assert_false(keys_load(path, &keys, why, sizeof why));
    assert_false(keys_load("/tmp", &keys, why, sizeof why));
    assert_non_null(strstr(why, "not a file"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hashes_are_sha256),
        cmocka_unit_test(every_bit_of_a_hash_counts),
        cmocka_unit_test(new_keys_are_tokens_and_differ),
        cmocka_unit_test(headers_hold_one_key_or_none),
        cmocka_unit_test(files_are_read),
        cmocka_unit_test(broken_files_are_refused_with_the_line),
        cmocka_unit_test(files_have_limits),
        cmocka_unit_test(files_that_everyone_may_write_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
