/*
 * order.c: a treap. A node's place among its neighbours is its key, its height a random number, so
 * that the tree is as balanced as one of random insertions whatever the order of the keys.
 *
 * Threads: the owner's lock.
 */
#include "compute/schedule/order.h"

#include <assert.h>
#include <math.h>
#include <stddef.h>

static uint32_t priority_draw(struct order *order) {
    uint32_t x = order->seed != 0 ? order->seed : 0x9E3779B9u;
    x ^= x << 13;
    x ^= x >> 17;
    x ^= x << 5; /* never 0 for a start that is not */
    order->seed = x;
    return x;
}

/* Puts `child` where `node` hangs. */
static void node_replace(struct order *order, struct order_node *node, struct order_node *child) {
    struct order_node *parent = node->parent;
    if (parent == NULL) {
        order->root = child;
    } else {
        parent->child[parent->child[1] == node] = child;
    }
    if (child != NULL) {
        child->parent = parent;
    }
}

/* Turns the child on `side` above its parent `node`. */
static void node_rotate(struct order *order, struct order_node *node, int side) {
    struct order_node *child = node->child[side], *inner = child->child[!side];
    node_replace(order, node, child);
    child->child[!side] = node;
    node->parent = child;
    node->child[side] = inner;
    if (inner != NULL) {
        inner->parent = node;
    }
}

void order_insert(struct order *order, struct order_node *node, double key, uint64_t tie) {
    assert(!order_contains(node) && !isnan(key));
    struct order_node *parent = NULL, *at = order->root;
    int side = 0;
    *node = (struct order_node){.key = key, .tie = tie, .priority = priority_draw(order)};
    while (at != NULL) {
        parent = at;
        side = order_before(at, node);
        at = at->child[side];
    }
    node->parent = parent;
    if (parent == NULL) {
        order->root = node;
        return;
    }
    parent->child[side] = node;
    while (node->parent != NULL && node->parent->priority < node->priority) {
        node_rotate(order, node->parent, node->parent->child[1] == node);
    }
}

void order_remove(struct order *order, struct order_node *node) {
    if (!order_contains(node)) {
        return;
    }
    while (node->child[0] != NULL && node->child[1] != NULL) {
        node_rotate(order, node, node->child[1]->priority > node->child[0]->priority);
    }
    node_replace(order, node, node->child[0] != NULL ? node->child[0] : node->child[1]);
    *node = (struct order_node){.priority = 0};
}

struct order_node *order_first(const struct order *order) {
    struct order_node *node = order->root;
    while (node != NULL && node->child[0] != NULL) {
        node = node->child[0];
    }
    return node;
}

struct order_node *order_next(const struct order_node *node) {
    if (node->child[1] != NULL) {
        struct order_node *next = node->child[1];
        while (next->child[0] != NULL) {
            next = next->child[0];
        }
        return next;
    }
    const struct order_node *child = node;
    struct order_node *parent = node->parent;
    while (parent != NULL && parent->child[1] == child) {
        child = parent;
        parent = parent->parent;
    }
    return parent;
}
