/*
 * lookup_cache.c: one table per thread, one row per hash value: a new address displaces the old
 * one.
 */
#include "server/cache/lookup_cache.h"

#include <pthread.h>
#include <stdlib.h>

#define ROWS 4096

static pthread_key_t key;
static bool made;

bool lookup_cache_init(void) {
    made = made || pthread_key_create(&key, free) == 0;
    return made;
}

struct lookup_row *lookup_cache_row(const struct digest *request) {
    struct lookup_row *rows = made ? pthread_getspecific(key) : NULL;
    if (rows == NULL && made) {
        rows = calloc(ROWS, sizeof *rows);
        if (rows != NULL && pthread_setspecific(key, rows) != 0) {
            free(rows);
            rows = NULL;
        }
    }
    return rows != NULL ? &rows[request->low % ROWS] : NULL;
}
