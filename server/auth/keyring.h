/*
 * keyring.h: the keys of a running daemon: finding one by what a client sent, and changing them all
 * at once.
 *
 * A ring is a constant table from hash to grant. Looking one up is a SHA-256 and a probe: no lock,
 * no allocation. A reload builds a new ring beside the old one and swaps a pointer; the old one
 * goes once no thread is inside it (each announces the ring that it looks into). Requests hold
 * their grant, so a key that has been taken away ends with the requests that it began. Limits go on
 * through a reload: a grant takes over the meter of the id.
 *
 * Threads: keyring_find and grant_* any (at most KEYRING_THREADS of them ever); the others one.
 */
#ifndef KILN_SERVER_AUTH_KEYRING_H
#define KILN_SERVER_AUTH_KEYRING_H

#include "server/auth/keys.h"
#include "server/auth/rate_limit.h"

#define KEYRING_THREADS 128 /* --http-threads is at most 64 */
#define GRANT_POLICY    96

/** What outlives a reload of the same id. */
struct meter {
    _Atomic uint32_t references;
    uint32_t owner; /* number of the id, never 0, never given again */
    struct bucket bucket;
    _Atomic uint64_t running;
};

/** One key as requests see it. Constant but for the counts. */
struct grant {
    _Atomic uint32_t references;
    struct key key;
    uint64_t step_ns;
    struct meter *meter;
    char policy[GRANT_POLICY]; /* the value of RateLimit-Policy; "" for no limits */
};

struct keyring;

/** Loads `path` (at most 255 bytes). NULL with `why`. */
struct keyring *keyring_create(const char *path, char *why, size_t why_size);
/** No thread may be inside, no grant may be held. NULL is allowed. */
void keyring_destroy(struct keyring *keyring);
/** Loads the file again. All or nothing: false with `why`, and the keys stay as they are. */
bool keyring_reload(struct keyring *keyring, char *why, size_t why_size);
/** Keys in use, reloads that worked and that did not. */
void keyring_count(struct keyring *keyring, uint64_t *keys, uint64_t *loaded, uint64_t *refused);

/** The grant of this key, held until grant_release; NULL if there is none. */
struct grant *keyring_find(struct keyring *keyring, const char *token, size_t size);
/** NULL is allowed. */
void grant_release(struct grant *grant);

#endif
