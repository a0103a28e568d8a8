/*
 * test_access.c: who is let in, in which order it is refused, and what a pass says, from values
 * alone.
 */
#include "server/auth/access.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define SECOND  UINT64_C(1000000000)
#define START   (7 * SECOND)
#define GUESSES 3 /* unknown keys an address may send in a minute */

static char path[] = "/tmp/kiln-access-XXXXXX";
static struct access *tried;

/* One key a scope, and one with limits. */
static const struct {
    const char *id, *token, *limits;
    unsigned scopes;
} rows[] = {
    {"reader", "reader-token", "", SCOPE_READ},
    {"worker", "worker-token", "", SCOPE_READ | SCOPE_COMPUTE},
    {"admin", "admin-token", "", SCOPE_ADMIN},
    {"slow", "slow-token", " rate=1 burst=2", SCOPE_READ},
    {"one", "one-token", " concurrency=1", SCOPE_READ},
};

static int setup(void **state) {
    char line[KEY_LINE_MAX], why[256];
    int fd = mkstemp(path);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    (void)state;
    for (size_t i = 0; file != NULL && i < sizeof rows / sizeof rows[0]; i++) {
        struct key key = {.scopes = rows[i].scopes};
        snprintf(key.id, sizeof key.id, "%s", rows[i].id);
        key_hash(rows[i].token, strlen(rows[i].token), key.hash);
        if (!key_print(&key, line, sizeof line)) {
            return -1;
        }
        fprintf(file, "%s%s\n", line, rows[i].limits);
    }
    if (file == NULL || fclose(file) != 0) {
        return -1;
    }
    tried = access_create(path, GUESSES, why, sizeof why);
    return tried != NULL ? 0 : -1;
}

static int teardown(void **state) {
    (void)state;
    access_destroy(tried);
    return unlink(path);
}

static struct credentials sent(const char *value, uint64_t address, uint64_t now_ns) {
    return (struct credentials){.value = value,
                                .count = value != NULL ? 1 : 0,
                                .address = {{address, 4}},
                                .now_ns = now_ns};
}

/* One request; its pass is ended unless it is wanted. */
static enum kiln_status ask(const char *value, uint64_t address, uint64_t now_ns, unsigned wanted,
                            struct refusal *refusal, struct pass *kept) {
    struct credentials credentials = sent(value, address, now_ns);
    struct pass pass = {.grant = NULL};
    *refusal = (struct refusal){.close = false};
    enum kiln_status status = access_check(tried, &credentials, wanted, &pass, refusal);
    assert_true((status == KILN_OK) == (refusal->detail[0] == '\0'));
    if (kept != NULL) {
        *kept = pass;
    } else {
        pass_end(&pass);
    }
    return status;
}

static void scopes_decide(void **state) {
    struct refusal refusal;
    struct pass pass;
    (void)state;
    assert_int_equal(ask("Bearer reader-token", 1, START, SCOPE_READ, &refusal, NULL), KILN_OK);
    assert_int_equal(ask("Bearer reader-token", 1, START, SCOPE_COMPUTE, &refusal, NULL),
                     KILN_FORBIDDEN);
    assert_string_equal(refusal.detail, "This needs a key with the scope compute.");
    /* any one of several is enough */
    unsigned either = SCOPE_COMPUTE | SCOPE_ADMIN;
    assert_int_equal(ask("Bearer admin-token", 1, START, either, &refusal, NULL), KILN_OK);
    assert_int_equal(ask("Bearer worker-token", 1, START, either, &refusal, &pass), KILN_OK);
    assert_string_equal(pass.grant->key.id, "worker");
    assert_int_not_equal(pass_owner(&pass), 0);
    assert_false(pass_limited(&pass));
    assert_true(access_allows(tried, &pass, SCOPE_COMPUTE));
    assert_false(access_allows(tried, &pass, SCOPE_ADMIN));
    assert_true(access_allows(NULL, &pass, SCOPE_ADMIN)); /* without keys */
    pass_end(&pass);
    assert_int_equal(pass_owner(&pass), 0);
    assert_false(access_allows(tried, &pass, SCOPE_READ));
    pass_end(&pass); /* a second time does nothing */
}

static void unknown_keys_are_slowed(void **state) {
    struct refusal refusal;
    struct pass pass;
    (void)state;
    /* none at all is no guess */
    for (int i = 0; i < 2 * GUESSES; i++) {
        assert_int_equal(ask(NULL, 2, START, SCOPE_READ, &refusal, NULL), KILN_UNAUTHORIZED);
        assert_false(refusal.close);
    }
    assert_int_equal(ask("Bearer nobody", 2, START, SCOPE_READ, &refusal, NULL), KILN_UNAUTHORIZED);
    assert_int_equal(ask("Basic nobody", 2, START, SCOPE_READ, &refusal, NULL), KILN_UNAUTHORIZED);
    struct credentials twice = sent("Bearer reader-token", 2, START);
    twice.count = 2;
    pass = (struct pass){.grant = NULL};
    assert_int_equal(access_check(tried, &twice, SCOPE_READ, &pass, &refusal), KILN_UNAUTHORIZED);
    assert_int_equal(ask("Bearer nobody", 2, START, SCOPE_READ, &refusal, &pass), KILN_LIMITED);
    assert_true(refusal.close);
    assert_int_equal(pass.quota.wait_s, 60 / GUESSES);
    assert_null(pass.grant);
    /* known keys of the same address and unknown ones of another are not */
    assert_int_equal(ask("Bearer reader-token", 2, START, SCOPE_READ, &refusal, NULL), KILN_OK);
    assert_int_equal(ask("Bearer nobody", 3, START, SCOPE_READ, &refusal, NULL), KILN_UNAUTHORIZED);
}

static void limits_hold(void **state) {
    struct refusal refusal;
    struct pass pass;
    (void)state;
    assert_int_equal(ask("Bearer slow-token", 4, START, SCOPE_READ, &refusal, &pass), KILN_OK);
    assert_true(pass_limited(&pass));
    assert_int_equal(pass.quota.left, 1);
    pass_end(&pass);
    assert_int_equal(ask("Bearer slow-token", 4, START, SCOPE_READ, &refusal, NULL), KILN_OK);
    assert_int_equal(ask("Bearer slow-token", 4, START, SCOPE_READ, &refusal, &pass), KILN_LIMITED);
    assert_int_equal(pass.quota.wait_s, 1);
    assert_false(refusal.close);
    pass_end(&pass);
    /* the rate comes before the scope */
    assert_int_equal(ask("Bearer slow-token", 4, START, SCOPE_ADMIN, &refusal, NULL), KILN_LIMITED);
    assert_int_equal(ask("Bearer slow-token", 4, START + SECOND, SCOPE_READ, &refusal, NULL),
                     KILN_OK);
    assert_int_equal(ask("Bearer one-token", 4, START, SCOPE_READ, &refusal, &pass), KILN_OK);
    assert_int_equal(ask("Bearer one-token", 4, START, SCOPE_READ, &refusal, NULL), KILN_LIMITED);
    pass_end(&pass);
    assert_int_equal(ask("Bearer one-token", 4, START, SCOPE_READ, &refusal, NULL), KILN_OK);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scopes_decide),
        cmocka_unit_test(unknown_keys_are_slowed),
        cmocka_unit_test(limits_hold),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
