/*
 * keyring.c: rings, grants, meters, and how a ring is let go.
 */
#include "server/auth/keyring.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PATH_SIZE 256

/* Open addressing by the hash's first bytes, which are as good as random; at most half full. */
struct ring {
    size_t mask, count;
    struct grant *slots[];
};

struct keyring {
    struct ring *_Atomic ring;
    struct ring *_Atomic inside[KEYRING_THREADS]; /* which ring each thread looks into */
    _Atomic uint64_t loaded, refused;
    uint32_t owners;
    char path[PATH_SIZE];
};

/* This thread's place in `inside` of every ring; 0 for none yet. */
static _Thread_local uint32_t place;
static _Atomic uint32_t places;

static void meter_release(struct meter *meter) {
    if (meter != NULL && atomic_fetch_sub(&meter->references, 1) == 1) {
        free(meter);
    }
}

void grant_release(struct grant *grant) {
    if (grant != NULL && atomic_fetch_sub(&grant->references, 1) == 1) {
        meter_release(grant->meter);
        free(grant);
    }
}

static size_t slot_first(const struct ring *ring, const uint8_t hash[KEY_HASH_SIZE]) {
    uint64_t word;
    memcpy(&word, hash, sizeof word);
    return (size_t)word & ring->mask;
}

static void ring_destroy(struct ring *ring) {
    for (size_t i = 0; ring != NULL && i <= ring->mask; i++) {
        grant_release(ring->slots[i]);
    }
    free(ring);
}

static void policy_print(struct grant *grant) {
    const struct key *key = &grant->key;
    size_t used = 0;
    if (key->rate > 0) {
        uint64_t window = (grant->step_ns * key->burst + 999999999) / 1000000000;
        used = (size_t)snprintf(grant->policy, sizeof grant->policy, "\"rate\";q=%llu;w=%llu",
                                (unsigned long long)key->burst, (unsigned long long)window);
    }
    if (key->concurrency > 0) {
        snprintf(grant->policy + used, sizeof grant->policy - used,
                 "%s\"concurrency\";q=%llu;qu=\"concurrent-requests\"", used > 0 ? ", " : "",
                 (unsigned long long)key->concurrency);
    }
}

/* The meter of this id in the ring before, or a new one. */
static struct meter *meter_take(struct keyring *keyring, const struct ring *before,
                                const struct key *key) {
    for (size_t i = 0; before != NULL && i <= before->mask; i++) {
        struct grant *grant = before->slots[i];
        if (grant != NULL && strcmp(grant->key.id, key->id) == 0) {
            atomic_fetch_add(&grant->meter->references, 1);
            return grant->meter;
        }
    }
    struct meter *meter = calloc(1, sizeof *meter);
    if (meter != NULL) {
        atomic_store(&meter->references, 1);
        meter->owner = ++keyring->owners;
    }
    return meter;
}

static struct grant *grant_create(struct keyring *keyring, const struct ring *before,
                                  const struct key *key) {
    struct grant *grant = calloc(1, sizeof *grant);
    struct meter *meter = grant != NULL ? meter_take(keyring, before, key) : NULL;
    if (meter == NULL) {
        free(grant);
        return NULL;
    }
    atomic_store(&grant->references, 1);
    grant->key = *key;
    grant->meter = meter;
    grant->step_ns = key->rate > 0 ? bucket_step(key->rate) : 0;
    policy_print(grant);
    return grant;
}

static struct ring *ring_create(struct keyring *keyring, const struct ring *before,
                                const struct keys *keys) {
    size_t size = 8;
    while (size < 2 * keys->count) {
        size *= 2;
    }
    struct ring *ring = calloc(1, sizeof *ring + size * sizeof ring->slots[0]);
    if (ring == NULL) {
        return NULL;
    }
    ring->mask = size - 1;
    ring->count = keys->count;
    for (size_t i = 0; i < keys->count; i++) {
        struct grant *grant = grant_create(keyring, before, &keys->rows[i]);
        if (grant == NULL) {
            ring_destroy(ring);
            return NULL;
        }
        size_t slot = slot_first(ring, grant->key.hash);
        while (ring->slots[slot] != NULL) {
            slot = (slot + 1) & ring->mask;
        }
        ring->slots[slot] = grant;
    }
    return ring;
}

/* Readers that took the pointer before it was swapped are inside for less than a microsecond. */
static void ring_retire(struct keyring *keyring, struct ring *ring) {
    for (size_t i = 0; ring != NULL && i < KEYRING_THREADS; i++) {
        while (atomic_load(&keyring->inside[i]) == ring) {
            sched_yield();
        }
    }
    ring_destroy(ring);
}

bool keyring_reload(struct keyring *keyring, char *why, size_t why_size) {
    struct keys *keys;
    struct ring *ring = NULL, *before = atomic_load(&keyring->ring);
    if (keys_load(keyring->path, &keys, why, why_size)) {
        ring = ring_create(keyring, before, keys);
        if (ring == NULL) {
            snprintf(why, why_size, "no memory");
        }
    }
    free(keys);
    if (ring == NULL) {
        atomic_fetch_add(&keyring->refused, 1);
        return false;
    }
    atomic_store(&keyring->ring, ring);
    ring_retire(keyring, before);
    atomic_fetch_add(&keyring->loaded, 1);
    return true;
}

struct keyring *keyring_create(const char *path, char *why, size_t why_size) {
    struct keyring *keyring = calloc(1, sizeof *keyring);
    if (keyring == NULL || strlen(path) >= sizeof keyring->path) {
        snprintf(why, why_size, keyring == NULL ? "no memory" : "the path is too long");
        free(keyring);
        return NULL;
    }
    strcpy(keyring->path, path);
    if (!keyring_reload(keyring, why, why_size)) {
        keyring_destroy(keyring);
        return NULL;
    }
    return keyring;
}

void keyring_destroy(struct keyring *keyring) {
    if (keyring != NULL) {
        ring_destroy(atomic_load(&keyring->ring));
        free(keyring);
    }
}

/* Announces the ring before looking into it, and makes sure that it had not been swapped out by
   then: whoever swaps it afterwards sees the announcement. */
static struct ring *ring_enter(struct keyring *keyring) {
    if (place == 0) {
        place = atomic_fetch_add(&places, 1) + 1;
    }
    if (place > KEYRING_THREADS) {
        return NULL; /* more threads than there can be loops: nobody is let in */
    }
    struct ring *ring = atomic_load(&keyring->ring);
    for (;;) {
        atomic_store(&keyring->inside[place - 1], ring);
        struct ring *now = atomic_load(&keyring->ring);
        if (now == ring) {
            return ring;
        }
        ring = now;
    }
}

static void ring_leave(struct keyring *keyring) {
    if (place <= KEYRING_THREADS) {
        atomic_store(&keyring->inside[place - 1], NULL);
    }
}

struct grant *keyring_find(struct keyring *keyring, const char *token, size_t size) {
    uint8_t hash[KEY_HASH_SIZE];
    struct grant *found = NULL;
    key_hash(token, size, hash);
    struct ring *ring = ring_enter(keyring);
    size_t slot = ring != NULL ? slot_first(ring, hash) : 0;
    while (ring != NULL && found == NULL && ring->slots[slot] != NULL) {
        if (key_hash_equal(ring->slots[slot]->key.hash, hash)) {
            found = ring->slots[slot];
            atomic_fetch_add(&found->references, 1);
        }
        slot = (slot + 1) & ring->mask;
    }
    ring_leave(keyring);
    return found;
}

void keyring_count(struct keyring *keyring, uint64_t *keys, uint64_t *loaded, uint64_t *refused) {
    *keys = atomic_load(&keyring->ring)->count; /* the one thread that could let it go asks */
    *loaded = atomic_load(&keyring->loaded);
    *refused = atomic_load(&keyring->refused);
}
