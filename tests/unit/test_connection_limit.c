/*
 * test_connection_limit.c: connections counted by address: limits, kinds of address, removal.
 */
#include "server/http/connections/connection_limit.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/un.h>

#include <cmocka.h>

static struct address address(const char *text) {
    struct sockaddr_in v4 = {.sin_family = AF_INET, .sin_port = htons(1)};
    struct sockaddr_in6 v6 = {.sin6_family = AF_INET6, .sin6_port = htons(2)};
    if (inet_pton(AF_INET, text, &v4.sin_addr) == 1) {
        return address_of((struct sockaddr *)&v4);
    }
    assert_int_equal(inet_pton(AF_INET6, text, &v6.sin6_addr), 1);
    return address_of((struct sockaddr *)&v6);
}

static bool same(struct address a, struct address b) {
    return memcmp(&a, &b, sizeof a) == 0;
}

static void connections_are_told_apart(void **state) {
    (void)state;
    const struct sockaddr_un local = {.sun_family = AF_UNIX};
    assert_true(same(address("10.0.0.1"), address("::ffff:10.0.0.1")));
    assert_false(same(address("10.0.0.1"), address("10.0.0.2")));
    assert_true(same(address("2001:db8:1:2::1"), address("2001:db8:1:2:ffff:ffff:ffff:ffff")));
    assert_false(same(address("2001:db8:1:2::1"), address("2001:db8:1:3::1")));
    assert_false(same(address("0.0.0.0"), address("::")));
    assert_true(same(address_of((const struct sockaddr *)&local), address_of(NULL)));
}

static void limits_hold(void **state) {
    (void)state;
    uint64_t open, total, each;
    struct connection_limit *addresses = connection_limit_create(5, 2);
    struct address a = address("10.0.0.1"), b = address("10.0.0.2"), c = address("::1");
    assert_true(connection_limit_take(addresses, a) && connection_limit_take(addresses, a));
    assert_false(connection_limit_take(addresses, a));
    assert_true(connection_limit_take(addresses, b) && connection_limit_take(addresses, b));
    assert_true(connection_limit_take(addresses, c));
    assert_false(connection_limit_take(addresses, c)); /* the sixth */
    connection_limit_count(addresses, &open, &total, &each);
    assert_int_equal(open, 5);
    assert_int_equal(total, 1);
    assert_int_equal(each, 1);
    connection_limit_give(addresses, a);
    assert_true(connection_limit_take(addresses, c));
    connection_limit_give(addresses, c);
    assert_true(connection_limit_take(addresses, a));
    connection_limit_give(addresses, address("10.9.9.9")); /* never taken: nothing to give */
    connection_limit_count(addresses, &open, &total, &each);
    assert_int_equal(open, 5);
    connection_limit_destroy(addresses);
    addresses = connection_limit_create(100, 0);
    for (int i = 0; i < 100; i++) {
        assert_true(connection_limit_take(addresses, a));
    }
    assert_false(connection_limit_take(addresses, b));
    connection_limit_destroy(addresses);
}

#define CLIENTS 300u
#define ROUNDS  60000u

/* Against plain counters, in an order without order, with a table that is nearly full. */
static void counts_survive_removals(void **state) {
    (void)state;
    static uint64_t counts[CLIENTS];
    struct connection_limit *addresses = connection_limit_create(512, 3);
    uint64_t random = 88172645463325252u, sum = 0, open, total, each;
    memset(counts, 0, sizeof counts);
    for (unsigned i = 0; i < ROUNDS; i++) {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        unsigned client = (unsigned)(random >> 33) % CLIENTS;
        struct address one = {{client, 4}};
        if ((random & 1) != 0) {
            bool expected = sum < 512 && counts[client] < 3;
            assert_int_equal(connection_limit_take(addresses, one), expected);
            counts[client] += expected;
            sum += expected;
        } else if (counts[client] > 0) {
            connection_limit_give(addresses, one);
            counts[client]--;
            sum--;
        }
    }
    connection_limit_count(addresses, &open, &total, &each);
    assert_int_equal(open, sum);
    for (unsigned i = 0; i < CLIENTS; i++) {
        for (; counts[i] > 0; counts[i]--) {
            connection_limit_give(addresses, (struct address){{i, 4}});
        }
    }
    connection_limit_count(addresses, &open, &total, &each);
    assert_int_equal(open, 0);
    connection_limit_destroy(addresses);
}

static void *many_run(void *argument) {
    struct connection_limit *addresses = argument;
    struct address one = {{7, 4}};
    for (int i = 0; i < 20000; i++) {
        if (connection_limit_take(addresses, one)) {
            connection_limit_give(addresses, one);
        }
    }
    return NULL;
}

static void loops_share_the_counts(void **state) {
    (void)state;
    pthread_t threads[4];
    uint64_t open, total, each;
    struct connection_limit *addresses = connection_limit_create(3, 2);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(pthread_create(&threads[i], NULL, many_run, addresses), 0);
    }
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
    }
    connection_limit_count(addresses, &open, &total, &each);
    assert_int_equal(open, 0);
    connection_limit_destroy(addresses);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(connections_are_told_apart),
        cmocka_unit_test(limits_hold),
        cmocka_unit_test(counts_survive_removals),
        cmocka_unit_test(loops_share_the_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
