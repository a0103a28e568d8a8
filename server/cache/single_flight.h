/*
 * single_flight.h: requests for the same result while one of them runs the job.
 *
 * The first one leads: its job goes to the dispatcher. The others follow: they wait for the
 * leader's end. A leader whose client hung up leads on while there is one follower whose client is
 * still there; a leader whose deadline passed hands over to the oldest follower that has time left.
 *
 * Threads: any; one lock, under which nothing is called that takes another. The dispatcher may call
 * single_flight_deserted and single_flight_has under its own. Ownership: waiters are the callers',
 * and must stay until the flight has ended.
 */
#ifndef KILN_SERVER_CACHE_SINGLE_FLIGHT_H
#define KILN_SERVER_CACHE_SINGLE_FLIGHT_H

#include "server/cache/result.h"

#define SINGLE_FLIGHT_BUCKETS 1024

struct waiter {
    struct digest key;
    const char *request_id; /* of the request; lives as long as the waiter */
    uint32_t owner;         /* of the request */
    int fd;                 /* the client's socket; -1: cannot hang up */
    uint64_t until_ns;      /* its own deadline, clock_ns */

    struct waiter *chain;        /* leaders in a bucket */
    struct waiter *first, *last; /* leaders: who follows, oldest first */
    struct waiter *next;         /* followers */
};

struct single_flight {
    pthread_mutex_t lock;
    struct waiter *buckets[SINGLE_FLIGHT_BUCKETS];
};

void single_flight_init(struct single_flight *flights);
void single_flight_finish(struct single_flight *flights);

/** True: it leads now. False: it follows, and another thread may take it at any moment. */
bool single_flight_enter(struct single_flight *flights, struct waiter *waiter);
/** Ends the flight; returns its followers, linked by `next`. */
struct waiter *single_flight_end(struct single_flight *flights, struct waiter *leader);
/** The leader's time is over. The oldest follower with time left at `now_ns` leads now and is
    returned (NULL: the flight has ended); those before it, whose time is over too, come in
    `late`. */
struct waiter *single_flight_pass(struct single_flight *flights, struct waiter *leader,
                                  uint64_t now_ns, struct waiter **late);
/** Looks whether any client is still there. True: none is, and nobody can join any more. Else `*fd`
    is a socket of one who is. */
bool single_flight_deserted(struct single_flight *flights, struct waiter *leader, int *fd);
/** Whether a follower is the request of this id, and of this owner (0: anybody's). */
bool single_flight_has(struct single_flight *flights, const struct waiter *leader,
                       const char *request_id, uint32_t owner);

#endif
