/*
 * access.c: the one check that every request passes, and what is counted of it.
 */
#include "server/auth/access.h"

#include "compute/core/log.h"
#include "server/auth/throttle.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum refusal_reason {
    REFUSED_MISSING,
    REFUSED_UNKNOWN,
    REFUSED_SCOPE,
    REFUSED_RATE,
    REFUSED_RUNNING,
    REFUSED_GUESSING
};
static const char *const refusal_names[] = {"missing", "unknown",     "scope",
                                            "rate",    "concurrency", "guessing"};
#define REFUSALS (sizeof refusal_names / sizeof refusal_names[0])

struct access {
    struct keyring *keyring;
    struct auth_throttle *throttle;
    _Atomic uint64_t refusals[REFUSALS];
    /* as of the last load, for metrics on any thread */
    _Atomic uint64_t keys, loaded, refused;
};

static void count(struct access *access) {
    uint64_t keys, loaded, refused;
    keyring_count(access->keyring, &keys, &loaded, &refused);
    atomic_store(&access->keys, keys);
    atomic_store(&access->loaded, loaded);
    atomic_store(&access->refused, refused);
}

struct access *access_create(const char *path, uint64_t guesses, char *why, size_t why_size) {
    char reason[256] = "no memory";
    struct access *access = calloc(1, sizeof *access);
    if (access != NULL) {
        access->throttle = auth_throttle_create(guesses);
    }
    if (access == NULL || access->throttle == NULL ||
        (access->keyring = keyring_create(path, reason, sizeof reason)) == NULL) {
        snprintf(why, why_size, "--keys %.200s: %s", path, reason);
        access_destroy(access);
        return NULL;
    }
    count(access);
    return access;
}

void access_destroy(struct access *access) {
    if (access != NULL) {
        keyring_destroy(access->keyring);
        auth_throttle_destroy(access->throttle);
        free(access);
    }
}

void access_reload(struct access *access) {
    char why[256];
    bool good = keyring_reload(access->keyring, why, sizeof why);
    count(access);
    if (good) {
        log_info("keys: loaded again, %" PRIu64 " now", atomic_load(&access->keys));
    } else {
        log_error("keys: not loaded again, the %" PRIu64 " from before stay: %s",
                  atomic_load(&access->keys), why);
    }
}

/* ---- the check ---- */

static enum kiln_status refuse(struct access *access, enum refusal_reason reason,
                               enum kiln_status status, struct refusal *refusal,
                               const char *detail) {
    atomic_fetch_add(&access->refusals[reason], 1);
    snprintf(refusal->detail, sizeof refusal->detail, "%s", detail);
    return status;
}

/* An unknown key, or one of too many: then the connection ends too, so that each guess takes one.
 */
static enum kiln_status unknown_refuse(struct access *access, const struct credentials *sent,
                                       struct pass *pass, struct refusal *refusal,
                                       const char *detail) {
    if (auth_throttle_pass(access->throttle, sent->address, sent->now_ns, &pass->quota.wait_s)) {
        return refuse(access, REFUSED_UNKNOWN, KILN_UNAUTHORIZED, refusal, detail);
    }
    refusal->close = true;
    return refuse(access, REFUSED_GUESSING, KILN_LIMITED, refusal,
                  "Too many unknown keys from this address.");
}

static enum kiln_status grant_find(struct access *access, const struct credentials *sent,
                                   struct pass *pass, struct refusal *refusal) {
    const char *token;
    size_t size;
    if (sent->count == 0) {
        return refuse(access, REFUSED_MISSING, KILN_UNAUTHORIZED, refusal,
                      "This address needs a key: send \"Authorization: Bearer …\".");
    }
    if (sent->count > 1 || sent->value == NULL || !bearer_read(sent->value, &token, &size)) {
        return unknown_refuse(access, sent, pass, refusal,
                              "The Authorization header is not one \"Bearer\" and a key.");
    }
    pass->grant = keyring_find(access->keyring, token, size);
    if (pass->grant == NULL) {
        return unknown_refuse(access, sent, pass, refusal, "This daemon does not know the key.");
    }
    return KILN_OK;
}

enum kiln_status access_check(struct access *access, const struct credentials *sent,
                              unsigned wanted, struct pass *pass, struct refusal *refusal) {
    enum kiln_status status = grant_find(access, sent, pass, refusal);
    if (status != KILN_OK) {
        return status;
    }
    const struct key *key = &pass->grant->key;
    struct meter *meter = pass->grant->meter;
    if (key->rate > 0 && !bucket_take(&meter->bucket, pass->grant->step_ns, key->burst,
                                      sent->now_ns, &pass->quota)) {
        return refuse(access, REFUSED_RATE, KILN_LIMITED, refusal,
                      "The rate limit of this key is reached.");
    }
    if ((key->scopes & wanted) == 0) {
        char scopes[32], detail[96];
        scopes_print(wanted, scopes, sizeof scopes);
        snprintf(detail, sizeof detail, "This needs a key with the scope %s.",
                 wanted == (SCOPE_COMPUTE | SCOPE_ADMIN) ? "compute or admin" : scopes);
        return refuse(access, REFUSED_SCOPE, KILN_FORBIDDEN, refusal, detail);
    }
    if (key->concurrency > 0 && !running_enter(&meter->running, key->concurrency)) {
        return refuse(access, REFUSED_RUNNING, KILN_LIMITED, refusal,
                      "The concurrency limit of this key is reached.");
    }
    pass->running = key->concurrency > 0;
    return KILN_OK;
}

void pass_end(struct pass *pass) {
    if (pass->running) {
        running_leave(&pass->grant->meter->running);
    }
    grant_release(pass->grant);
    *pass = (struct pass){.grant = NULL};
}

uint32_t pass_owner(const struct pass *pass) {
    return pass->grant != NULL ? pass->grant->meter->owner : 0;
}

bool pass_limited(const struct pass *pass) {
    return pass->grant != NULL && pass->grant->policy[0] != '\0';
}

bool access_allows(const struct access *access, const struct pass *pass, unsigned scope) {
    return access == NULL || (pass->grant != NULL && (pass->grant->key.scopes & scope) != 0);
}

/* ---- metrics ---- */

void access_print(struct access *access, struct text *text) {
    if (access == NULL) {
        return;
    }
    text_format(text,
                "# HELP kiln_keys API keys in use.\n# TYPE kiln_keys gauge\nkiln_keys %" PRIu64
                "\n# HELP kiln_key_loads_total Times that the key file was read.\n"
                "# TYPE kiln_key_loads_total counter\n"
                "kiln_key_loads_total{result=\"used\"} %" PRIu64
                "\nkiln_key_loads_total{result=\"refused\"} %" PRIu64
                "\n# HELP kiln_access_refused_total Requests refused, by reason.\n"
                "# TYPE kiln_access_refused_total counter\n",
                atomic_load(&access->keys), atomic_load(&access->loaded),
                atomic_load(&access->refused));
    for (size_t i = 0; i < REFUSALS; i++) {
        text_format(text, "kiln_access_refused_total{reason=\"%s\"} %" PRIu64 "\n",
                    refusal_names[i], atomic_load(&access->refusals[i]));
    }
}
