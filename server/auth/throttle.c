/*
 * throttle.c: sets of places, chosen by a hash that clients cannot foresee.
 *
 * Only refused requests take the lock.
 */
#include "server/auth/throttle.h"

#include "server/auth/rate_limit.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/random.h>
#include <xxhash.h>

#define SETS   1024u
#define PLACES 4u

struct place {
    struct address address;
    struct bucket bucket; /* full at 0: never used */
};

struct auth_throttle {
    pthread_mutex_t lock;
    uint64_t step_ns, burst, seed;
    struct place places[SETS][PLACES];
};

struct auth_throttle *auth_throttle_create(uint64_t a_minute) {
    struct auth_throttle *strangers = calloc(1, sizeof *strangers);
    if (strangers == NULL) {
        return NULL;
    }
    strangers->burst = a_minute;
    strangers->step_ns = a_minute > 0 ? bucket_step((double)a_minute / 60) : 0;
    if (getrandom(&strangers->seed, sizeof strangers->seed, 0) != sizeof strangers->seed) {
        strangers->seed = (uint64_t)(uintptr_t)strangers; /* still not known outside */
    }
    pthread_mutex_init(&strangers->lock, NULL);
    return strangers;
}

void auth_throttle_destroy(struct auth_throttle *strangers) {
    if (strangers != NULL) {
        pthread_mutex_destroy(&strangers->lock);
        free(strangers);
    }
}

static uint64_t full_at(const struct place *place) {
    return atomic_load_explicit(&place->bucket.full_ns, memory_order_relaxed);
}

/* The address's place, or the one that it takes over, with a full bucket. */
static struct place *place_take(struct auth_throttle *strangers, struct address address) {
    uint64_t hash = XXH3_64bits_withSeed(&address, sizeof address, strangers->seed);
    struct place *set = strangers->places[hash % SETS], *oldest = set;
    for (size_t i = 0; i < PLACES; i++) {
        bool used = full_at(&set[i]) > 0;
        if (used && set[i].address.words[0] == address.words[0] &&
            set[i].address.words[1] == address.words[1]) {
            return &set[i];
        }
        oldest = full_at(&set[i]) < full_at(oldest) ? &set[i] : oldest;
    }
    oldest->address = address;
    atomic_store_explicit(&oldest->bucket.full_ns, 0, memory_order_relaxed);
    return oldest;
}

bool auth_throttle_pass(struct auth_throttle *strangers, struct address address, uint64_t now_ns,
                        uint64_t *wait_s) {
    struct quota quota = {.wait_s = 0};
    bool passes = true;
    if (strangers->burst > 0) {
        pthread_mutex_lock(&strangers->lock);
        struct place *place = place_take(strangers, address);
        passes = bucket_take(&place->bucket, strangers->step_ns, strangers->burst, now_ns, &quota);
        pthread_mutex_unlock(&strangers->lock);
    }
    *wait_s = quota.wait_s;
    return passes;
}
