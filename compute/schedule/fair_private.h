/*
 * fair_private.h: what fair_queue.c and fair_view.c share.
 */
#ifndef KILN_COMPUTE_SCHEDULE_FAIR_PRIVATE_H
#define KILN_COMPUTE_SCHEDULE_FAIR_PRIVATE_H

#include "compute/schedule/fair_queue.h"

/* The waiting jobs of an account in a lane; in its class's order of starts while there are any. */
struct fair_line {
    struct order_node node;
    struct fair_account *account;
    struct fair_job *head, *tail;
};

/* A key in a class. In use from its first push until it has neither jobs nor debt and another one
   needs its place. */
struct fair_account {
    uint64_t key;
    double weight;
    double start;   /* virtual time at which it has had its share; finish tag while nothing waits */
    double seconds; /* of what waits */
    double pushed;  /* seconds of all that was ever pushed */
    uint64_t pushes;
    size_t waiting, running;
    struct fair_account *chain; /* of its hash, or of free ones */
    struct order_node idle;     /* by `start`, while it has no jobs */
    enum fair_class class;
    bool used;
};

struct fair_level {
    double weight, start, now; /* `now`: virtual time among the keys of this class */
    double seconds;            /* of what waits */
    size_t waiting;
    struct order *lanes; /* lines by their accounts' starts */
    struct order idle;
};

struct fair_queue {
    struct fair_level class[FAIR_CLASSES];
    double now; /* virtual time among classes */
    struct order clock;
    uint64_t ties;
    int lanes;
    size_t capacity, buckets; /* buckets is a power of two */
    struct fair_account **table, *free, *accounts;
    struct fair_line *lines; /* [account][lane] */
    struct order *orders;    /* [class][lane] */
};

struct fair_account *fair_account_find(const struct fair_queue *queue, enum fair_class class,
                                       uint64_t key);
struct fair_line *fair_line_of(const struct fair_queue *queue, const struct fair_account *account,
                               int lane);

#endif
