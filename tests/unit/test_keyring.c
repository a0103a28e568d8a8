/*
 * test_keyring.c: finding keys, and changing them while others look.
 */
#include "server/auth/keyring.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char path[] = "/tmp/kiln-keyring-XXXXXX";

static int setup(void **state) {
    (void)state;
    int fd = mkstemp(path);
    return fd >= 0 && close(fd) == 0 ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    return unlink(path);
}

/* A line for the key whose text is `token`. */
static void line_write(FILE *file, const char *id, const char *token, const char *rest) {
    struct key key = {.scopes = SCOPE_READ};
    char line[KEY_LINE_MAX];
    snprintf(key.id, sizeof key.id, "%s", id);
    key_hash(token, strlen(token), key.hash);
    assert_true(key_print(&key, line, sizeof line));
    fprintf(file, "%s%s\n", line, rest);
}

static void file_write(const char *const rows[][3], size_t count) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t i = 0; i < count; i++) {
        line_write(file, rows[i][0], rows[i][1], rows[i][2]);
    }
    assert_int_equal(fclose(file), 0);
}

static struct grant *find(struct keyring *keyring, const char *token) {
    return keyring_find(keyring, token, strlen(token));
}

static void every_key_is_found_and_no_other(void **state) {
    (void)state;
    enum { MANY = 1000 };
    char why[256], id[32], token[32];
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (int i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "id%d", i);
        snprintf(token, sizeof token, "token%d", i);
        line_write(file, id, token, "");
    }
    assert_int_equal(fclose(file), 0);
    struct keyring *keyring = keyring_create(path, why, sizeof why);
    assert_non_null(keyring);
    for (int i = 0; i < 2 * MANY; i++) {
        snprintf(id, sizeof id, "id%d", i);
        snprintf(token, sizeof token, "token%d", i);
        struct grant *grant = find(keyring, token);
        assert_int_equal(grant != NULL, i < MANY);
        if (grant != NULL) {
            assert_string_equal(grant->key.id, id);
        }
        grant_release(grant);
    }
    assert_null(find(keyring, ""));
    keyring_destroy(keyring);
}

static void policies_say_the_limits(void **state) {
    (void)state;
    static const char *const rows[][3] = {{"a", "ta", ""},
                                          {"b", "tb", " rate=0.3 burst=2"},
                                          {"c", "tc", " concurrency=5"},
                                          {"d", "td", " rate=100 concurrency=1"}};
    static const char *const policies[] = {
        "", "\"rate\";q=2;w=7", "\"concurrency\";q=5;qu=\"concurrent-requests\"",
        "\"rate\";q=100;w=1, \"concurrency\";q=1;qu=\"concurrent-requests\""};
    char why[256];
    file_write(rows, 4);
    struct keyring *keyring = keyring_create(path, why, sizeof why);
    assert_non_null(keyring);
    for (int i = 0; i < 4; i++) {
        struct grant *grant = find(keyring, rows[i][1]);
        assert_non_null(grant);
        assert_string_equal(grant->policy, policies[i]);
        grant_release(grant);
    }
    keyring_destroy(keyring);
}

static void the_largest_policy_fits(void **state) {
    (void)state;
    static const char *const rows[][3] = {
        {"a", "ta", " rate=0.001 burst=1000000 concurrency=1000000"}};
    char why[256];
    file_write(rows, 1);
    struct keyring *keyring = keyring_create(path, why, sizeof why);
    assert_non_null(keyring);
    struct grant *grant = find(keyring, "ta");
    assert_string_equal(grant->policy, "\"rate\";q=1000000;w=1000000000, "
                                       "\"concurrency\";q=1000000;qu=\"concurrent-requests\"");
    grant_release(grant);
    keyring_destroy(keyring);
}

static void reloads_are_all_or_nothing(void **state) {
    (void)state;
    static const char *const before[][3] = {{"a", "one", ""}, {"b", "two", ""}};
    static const char *const broken[][3] = {{"c", "three", ""}, {"d", "four", " rate=x"}};
    static const char *const after[][3] = {{"b", "two", ""}, {"a", "five", " rate=3"}};
    char why[256];
    uint64_t keys, loaded, refused;
    file_write(before, 2);
    struct keyring *keyring = keyring_create(path, why, sizeof why);
    assert_non_null(keyring);
    struct grant *one = find(keyring, "one");
    assert_non_null(one);
    file_write(broken, 2);
    assert_false(keyring_reload(keyring, why, sizeof why));
    assert_non_null(strstr(why, "line 2"));
    assert_null(find(keyring, "three"));
    grant_release(find(keyring, "two"));
    keyring_count(keyring, &keys, &loaded, &refused);
    assert_int_equal(keys, 2);
    assert_int_equal(loaded, 1);
    assert_int_equal(refused, 1);
    file_write(after, 2);
    assert_true(keyring_reload(keyring, why, sizeof why));
    assert_null(find(keyring, "one"));
    struct grant *five = find(keyring, "five");
    assert_non_null(five);
    /* who still holds the old key is not hurt, and the id's limits and things go on */
    assert_string_equal(one->key.id, "a");
    assert_ptr_equal(one->meter, five->meter);
    assert_true(one->key.rate == 0 && five->key.rate == 3);
    grant_release(one);
    grant_release(five);
    keyring_destroy(keyring);
}

static void numbers_of_owners_never_return(void **state) {
    (void)state;
    static const char *const both[][3] = {{"a", "one", ""}, {"b", "two", ""}};
    char why[256];
    file_write(both, 2);
    struct keyring *keyring = keyring_create(path, why, sizeof why);
    assert_non_null(keyring);
    struct grant *a = find(keyring, "one"), *b = find(keyring, "two");
    uint32_t owner = a->meter->owner, other = b->meter->owner;
    assert_true(owner != 0 && other != 0 && owner != other);
    grant_release(a);
    grant_release(b);
    file_write(both + 1, 1);
    assert_true(keyring_reload(keyring, why, sizeof why));
    file_write(both, 2);
    assert_true(keyring_reload(keyring, why, sizeof why));
    a = find(keyring, "one");
    b = find(keyring, "two");
    assert_true(a->meter->owner != owner && a->meter->owner != other);
    assert_int_equal(b->meter->owner, other);
    grant_release(a);
    grant_release(b);
    keyring_destroy(keyring);
}

#define THREADS 4
#define RELOADS 200

struct looking {
    struct keyring *keyring;
    _Atomic bool stop;
    _Atomic uint64_t found, wrong;
};

/* "always" is in every file; "odd" and "even" take turns. */
static void *looking_run(void *argument) {
    static const char *const tokens[] = {"always", "odd", "even"};
    struct looking *looking = argument;
    for (unsigned i = 0; !atomic_load(&looking->stop); i++) {
        const char *token = tokens[i % 3];
        struct grant *grant = find(looking->keyring, token);
        bool right = grant != NULL ? strcmp(grant->key.id, token) == 0 : i % 3 != 0;
        atomic_fetch_add(&looking->wrong, !right);
        atomic_fetch_add(&looking->found, grant != NULL);
        grant_release(grant);
    }
    return NULL;
}

static void keys_change_while_others_look(void **state) {
    (void)state;
    static const char *const odd[][3] = {{"always", "always", ""}, {"odd", "odd", ""}};
    static const char *const even[][3] = {{"even", "even", ""}, {"always", "always", ""}};
    struct looking looking = {.stop = false};
    pthread_t threads[THREADS];
    char why[256];
    file_write(odd, 2);
    looking.keyring = keyring_create(path, why, sizeof why);
    assert_non_null(looking.keyring);
    for (int i = 0; i < THREADS; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, looking_run, &looking), 0);
    }
    for (int i = 0; i < RELOADS; i++) {
        file_write(i % 2 == 0 ? even : odd, 2);
        assert_true(keyring_reload(looking.keyring, why, sizeof why));
    }
    while (atomic_load(&looking.found) == 0) {
    }
    atomic_store(&looking.stop, true);
    for (int i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
    }
    assert_int_equal(looking.wrong, 0);
    keyring_destroy(looking.keyring);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_key_is_found_and_no_other),
        cmocka_unit_test(policies_say_the_limits),
        cmocka_unit_test(the_largest_policy_fits),
        cmocka_unit_test(reloads_are_all_or_nothing),
        cmocka_unit_test(numbers_of_owners_never_return),
        cmocka_unit_test(keys_change_while_others_look),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
