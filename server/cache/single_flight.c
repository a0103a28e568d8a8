/*
 * single_flight.c: a table of leaders, each with a list of followers (single_flight.h). Any thread.
 */
#include "server/cache/single_flight.h"

#include <poll.h>
#include <stddef.h>
#include <string.h>

#define POLL_BATCH 64

void single_flight_init(struct single_flight *flights) {
    *flights = (struct single_flight){.buckets = {NULL}};
    pthread_mutex_init(&flights->lock, NULL);
}

void single_flight_finish(struct single_flight *flights) {
    pthread_mutex_destroy(&flights->lock);
}

/* Where the leader of this key hangs, or would. */
static struct waiter **place_of(struct single_flight *flights, const struct digest *key) {
    struct waiter **place = &flights->buckets[key->low % SINGLE_FLIGHT_BUCKETS];
    while (*place != NULL && !digest_equal(&(*place)->key, key)) {
        place = &(*place)->chain;
    }
    return place;
}

/* A deserted flight hangs there no more; another may have taken its place. */
static void unhang_locked(struct single_flight *flights, struct waiter *leader) {
    struct waiter **place = place_of(flights, &leader->key);
    if (*place == leader) {
        *place = leader->chain;
    }
}

bool single_flight_enter(struct single_flight *flights, struct waiter *waiter) {
    waiter->chain = waiter->first = waiter->last = waiter->next = NULL;
    pthread_mutex_lock(&flights->lock);
    struct waiter **place = place_of(flights, &waiter->key), *leader = *place;
    if (leader == NULL) {
        *place = waiter;
    } else {
        *(leader->last != NULL ? &leader->last->next : &leader->first) = waiter;
        leader->last = waiter;
    }
    pthread_mutex_unlock(&flights->lock);
    return leader == NULL;
}

struct waiter *single_flight_end(struct single_flight *flights, struct waiter *leader) {
    pthread_mutex_lock(&flights->lock);
    unhang_locked(flights, leader);
    struct waiter *followers = leader->first;
    leader->first = leader->last = NULL;
    pthread_mutex_unlock(&flights->lock);
    return followers;
}

struct waiter *single_flight_pass(struct single_flight *flights, struct waiter *leader,
                                  uint64_t now_ns, struct waiter **late) {
    struct waiter **end = late;
    pthread_mutex_lock(&flights->lock);
    struct waiter **place = place_of(flights, &leader->key);
    struct waiter *next = leader->first;
    while (next != NULL && next->until_ns <= now_ns) {
        *end = next;
        end = &next->next;
        next = next->next;
    }
    *end = NULL;
    if (next != NULL) {
        next->first = next->next;
        next->last = next->first != NULL ? leader->last : NULL;
        next->next = NULL;
    }
    if (*place == leader && next != NULL) {
        next->chain = leader->chain;
        *place = next;
    } else {
        unhang_locked(flights, leader);
    }
    leader->first = leader->last = NULL;
    pthread_mutex_unlock(&flights->lock);
    return next;
}

/* The first of up to POLL_BATCH waiters, from `*at` on, whose client is there; moves `*at` on. */
static struct waiter *present(struct waiter **at) {
    struct waiter *asked[POLL_BATCH];
    struct pollfd sockets[POLL_BATCH];
    nfds_t count = 0;
    for (; *at != NULL && count < POLL_BATCH; *at = (*at)->next) {
        if ((*at)->fd < 0) {
            return *at;
        }
        asked[count] = *at;
        sockets[count++] = (struct pollfd){.fd = (*at)->fd, .events = POLLRDHUP};
    }
    int known = poll(sockets, count, 0);
    for (nfds_t i = 0; i < count; i++) {
        if (known <= 0 || sockets[i].revents == 0) {
            return asked[i];
        }
    }
    return NULL;
}

bool single_flight_has(struct single_flight *flights, const struct waiter *leader,
                       const char *request_id, uint32_t owner) {
    bool found = false;
    pthread_mutex_lock(&flights->lock);
    for (const struct waiter *at = leader->first; at != NULL && !found; at = at->next) {
        found = (owner == 0 || at->owner == owner) && strcmp(at->request_id, request_id) == 0;
    }
    pthread_mutex_unlock(&flights->lock);
    return found;
}

bool single_flight_deserted(struct single_flight *flights, struct waiter *leader, int *fd) {
    struct waiter *found = NULL;
    pthread_mutex_lock(&flights->lock);
    /* others change the leader's list and its chain: it is read under the lock only */
    struct waiter alone = {.fd = leader->fd, .next = leader->first};
    for (struct waiter *at = &alone; at != NULL && found == NULL;) {
        found = present(&at);
    }
    if (found == NULL) {
        unhang_locked(flights, leader);
    } else {
        *fd = found->fd;
    }
    pthread_mutex_unlock(&flights->lock);
    return found == NULL;
}
