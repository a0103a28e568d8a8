/*
 * connection_limit.c: open addressing with a hash that clients cannot foresee; removal closes the
 * gap, so that the table never fills up with ghosts.
 */
#include "server/http/connections/connection_limit.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <xxhash.h>

struct row {
    struct address address;
    uint64_t count; /* 0: an empty row */
};

struct connection_limit {
    pthread_mutex_t lock;
    uint64_t total, each;
    uint64_t open, refused_total, refused_each;
    uint64_t seed;
    size_t mask;
    struct row rows[]; /* at least twice as many as connections */
};

struct connection_limit *connection_limit_create(uint64_t total, uint64_t each) {
    size_t size = 16;
    while (size < 2 * total) {
        size *= 2;
    }
    struct connection_limit *addresses = calloc(1, sizeof *addresses + size * sizeof(struct row));
    if (addresses == NULL) {
        return NULL;
    }
    addresses->total = total;
    addresses->each = each;
    addresses->mask = size - 1;
    if (getrandom(&addresses->seed, sizeof addresses->seed, 0) != sizeof addresses->seed) {
        addresses->seed = (uint64_t)(uintptr_t)addresses; /* still not known outside */
    }
    pthread_mutex_init(&addresses->lock, NULL);
    return addresses;
}

void connection_limit_destroy(struct connection_limit *addresses) {
    if (addresses != NULL) {
        pthread_mutex_destroy(&addresses->lock);
        free(addresses);
    }
}

static size_t row_first(const struct connection_limit *addresses, struct address address) {
    return (size_t)XXH3_64bits_withSeed(&address, sizeof address, addresses->seed) &
           addresses->mask;
}

/* The row of this address, or the empty one where it would go. */
static struct row *row_find(struct connection_limit *addresses, struct address address) {
    size_t at = row_first(addresses, address);
    while (addresses->rows[at].count > 0 &&
           memcmp(&addresses->rows[at].address, &address, sizeof address) != 0) {
        at = (at + 1) & addresses->mask;
    }
    return &addresses->rows[at];
}

bool connection_limit_take(struct connection_limit *addresses, struct address address) {
    pthread_mutex_lock(&addresses->lock);
    bool good = addresses->open < addresses->total;
    addresses->refused_total += !good;
    if (good) {
        struct row *row = row_find(addresses, address);
        good = addresses->each == 0 || row->count < addresses->each;
        addresses->refused_each += !good;
        if (good) {
            row->address = address;
            row->count++;
            addresses->open++;
        }
    }
    pthread_mutex_unlock(&addresses->lock);
    return good;
}

/* Empties a row, moving back those behind it that would not be found past the gap. */
static void row_remove(struct connection_limit *addresses, size_t gap) {
    struct row *rows = addresses->rows;
    size_t mask = addresses->mask;
    for (size_t at = (gap + 1) & mask; rows[at].count > 0; at = (at + 1) & mask) {
        size_t home = row_first(addresses, rows[at].address);
        if (((at - home) & mask) >= ((at - gap) & mask)) {
            rows[gap] = rows[at];
            gap = at;
        }
    }
    rows[gap].count = 0;
}

void connection_limit_give(struct connection_limit *addresses, struct address address) {
    pthread_mutex_lock(&addresses->lock);
    struct row *row = row_find(addresses, address);
    if (row->count > 0) {
        addresses->open--;
        if (row->count > 1) {
            row->count--;
        } else {
            row_remove(addresses, (size_t)(row - addresses->rows));
        }
    }
    pthread_mutex_unlock(&addresses->lock);
}

uint64_t connection_limit_most(const struct connection_limit *addresses) {
    return addresses->total;
}

void connection_limit_count(struct connection_limit *addresses, uint64_t *open, uint64_t *total,
                            uint64_t *each) {
    pthread_mutex_lock(&addresses->lock);
    *open = addresses->open;
    *total = addresses->refused_total;
    *each = addresses->refused_each;
    pthread_mutex_unlock(&addresses->lock);
}
