/*
 * order.h: a sorted set whose nodes lie in what they sort, for the least first, the next one, and
 * removal from anywhere.
 *
 * Threads: none of its own; the owner's lock. Memory: the owner's nodes, nothing else. Insertion
 * and removal O(log n) expected, first O(log n), next O(1) amortised.
 */
#ifndef KILN_COMPUTE_SCHEDULE_ORDER_H
#define KILN_COMPUTE_SCHEDULE_ORDER_H

#include <stdbool.h>
#include <stdint.h>

struct order_node {
    struct order_node *parent, *child[2];
    double key;
    uint64_t tie;      /* between equal keys */
    uint32_t priority; /* of the heap; 0: in no set */
};

/** All zero: an empty set. */
struct order {
    struct order_node *root;
    uint32_t seed;
};

/** `node` is in no set (all zero, or removed). `key` is no NaN; pairs (key, tie) are distinct. */
void order_insert(struct order *order, struct order_node *node, double key, uint64_t tie);
/** Nothing happens to a node that is in no set. */
void order_remove(struct order *order, struct order_node *node);
/** The least node, or NULL. */
struct order_node *order_first(const struct order *order);
/** The one after `node`, or NULL. */
struct order_node *order_next(const struct order_node *node);

static inline bool order_contains(const struct order_node *node) {
    return node->priority != 0;
}

static inline bool order_before(const struct order_node *one, const struct order_node *other) {
    return one->key != other->key ? one->key < other->key : one->tie < other->tie;
}

#endif
