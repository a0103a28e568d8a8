/* test_order.c: the sorted set against a sorted array, over random insertions and removals. */
#include "compute/schedule/order.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define NODES 400

static struct order_node nodes[NODES];

static int by_order(const void *a, const void *b) {
    const struct order_node *one = *(struct order_node *const *)a;
    const struct order_node *other = *(struct order_node *const *)b;
    return order_before(one, other) ? -1 : 1;
}

/* Depth, and that no node stands above one of a higher priority. */
static int depth(const struct order_node *node) {
    int deepest = 0;
    for (int side = 0; node != NULL && side < 2; side++) {
        const struct order_node *child = node->child[side];
        if (child != NULL) {
            assert_ptr_equal(child->parent, node);
            assert_true(child->priority <= node->priority);
            int below = depth(child);
            deepest = below > deepest ? below : deepest;
        }
    }
    return node != NULL ? deepest + 1 : 0;
}

static void same_as_sorted(const struct order *order) {
    struct order_node *sorted[NODES];
    size_t count = 0, seen = 0;
    for (size_t i = 0; i < NODES; i++) {
        if (order_contains(&nodes[i])) {
            sorted[count++] = &nodes[i];
        }
    }
    qsort(sorted, count, sizeof *sorted, by_order);
    for (struct order_node *node = order_first(order); node != NULL; node = order_next(node)) {
        assert_true(seen < count);
        assert_ptr_equal(node, sorted[seen++]);
    }
    assert_int_equal(seen, count);
}

static void random_changes(void **state) {
    (void)state;
    struct order order = {0};
    uint32_t seed = 7;
    memset(nodes, 0, sizeof nodes);
    for (int round = 0; round < 20000; round++) {
        seed = seed * 1664525u + 1013904223u;
        struct order_node *node = &nodes[(seed >> 8) % NODES];
        if (order_contains(node)) {
            order_remove(&order, node);
            assert_false(order_contains(node));
            order_remove(&order, node); /* does nothing */
        } else {
            order_insert(&order, node, (double)((seed >> 20) % 50), (uint64_t)round);
        }
        if (round % 97 == 0) {
            same_as_sorted(&order);
            depth(order.root);
        }
    }
}

/* Ascending keys, the worst for a plain tree. */
static void balanced(void **state) {
    (void)state;
    struct order order = {0};
    memset(nodes, 0, sizeof nodes);
    for (size_t i = 0; i < NODES; i++) {
        order_insert(&order, &nodes[i], (double)i, 0);
    }
    assert_in_range(depth(order.root), 9, 40);
    for (size_t i = 0; i < NODES; i++) {
        assert_ptr_equal(order_first(&order), &nodes[i]);
        order_remove(&order, &nodes[i]);
    }
    assert_null(order.root);
    assert_null(order_first(&order));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_changes),
        cmocka_unit_test(balanced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
