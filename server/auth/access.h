/*
 * access.h: who may ask for what, and how often.
 *
 * Without --keys everybody may ask for everything. With it, every address but the open ones
 * (health, pages, the API's description: SCOPE_OPEN in the route table) needs a key with the scope
 * of its route. The order of refusals: no key or an unknown one 401, unknown ones
 * too often from one address 429 (throttle.h), rate 429, scope 403, concurrency 429.
 *
 * No request is known here: what one sent comes as values, what it may do goes out as its pass.
 * Neither keys nor their hashes are ever logged; refusals are counted, by reason.
 *
 * Threads: the event loops; access_create, _reload, _destroy the main thread.
 */
#ifndef KILN_SERVER_AUTH_ACCESS_H
#define KILN_SERVER_AUTH_ACCESS_H

#include "compute/core/status.h"
#include "compute/core/text.h"
#include "server/auth/keyring.h"
#include "server/core/address.h"

struct access;

/** What a request brings to be let in. */
struct credentials {
    const char *value; /* of the last Authorization header; NULL for none */
    int count;         /* of such headers */
    struct address address;
    uint64_t now_ns;
};

/** What a refusal says besides its status. */
struct refusal {
    char detail[96]; /* a sentence */
    bool close;      /* the connection is to end */
};

/** A request's leave; zeroed: none, or none needed. */
struct pass {
    struct grant *grant;
    struct quota quota; /* of its rate, if it has one; refused: `wait_s` */
    bool running;       /* counts in the meter */
};

/** `guesses`: unknown keys that an address may send in a minute; 0 for no limit. NULL with `why` if
    the file cannot be used. */
struct access *access_create(const char *path, uint64_t guesses, char *why, size_t why_size);
/** No request may be left. NULL is allowed. */
void access_destroy(struct access *access);
/** Reads the file again and logs how that went. */
void access_reload(struct access *access);

/** Lets a request in that needs a key with any of the scopes `wanted`: KILN_OK with its pass, which
    may hold a grant after a refusal too. */
enum kiln_status access_check(struct access *access, const struct credentials *sent,
                              unsigned wanted, struct pass *pass, struct refusal *refusal);
/** Whether a request with this pass may do to others' things what needs this scope; all may where
    `access` is NULL. */
bool access_allows(const struct access *access, const struct pass *pass, unsigned scope);

/** Ends a pass, which may be zeroed. */
void pass_end(struct pass *pass);
/** Number of the key's id, for what it owns; 0 without keys. */
uint32_t pass_owner(const struct pass *pass);
/** Whether the key has limits, which answers tell. */
bool pass_limited(const struct pass *pass);

/** Metrics. NULL is allowed for `access`. */
void access_print(struct access *access, struct text *text);

#endif
