/*
 * access.c: the one check that every request passes, and what it adds to answers.
 */
#include "server/auth/access.h"

#include "compute/core/log.h"
#include "server/auth/throttle.h"
#include "server/http/reply.h"
#include "server/http/request.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum refusal {
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
    struct auth_throttle *strangers;
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
        access->strangers = auth_throttle_create(guesses);
    }
    if (access == NULL || access->strangers == NULL ||
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
        auth_throttle_destroy(access->strangers);
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

struct headers {
    const char *value;
    int count;
};

static enum MHD_Result header_see(void *context, enum MHD_ValueKind kind, const char *name,
                                  const char *value) {
    struct headers *headers = context;
    (void)kind;
    if (strcasecmp(name, MHD_HTTP_HEADER_AUTHORIZATION) == 0) {
        headers->value = value;
        headers->count++;
    }
    return MHD_YES;
}

static enum kiln_status refuse(struct http_request *request, enum refusal refusal,
                               enum kiln_status status, const char *detail) {
    atomic_fetch_add(&request->service->access->refusals[refusal], 1);
    return request_fault(request, status, "%s", detail);
}

/* Any one of these is enough. */
static unsigned scopes_wanted(const struct http_request *request) {
    unsigned scope = request->match.route->scope;
    return request->method == METHOD_DELETE && scope != SCOPE_OPEN ? SCOPE_COMPUTE | SCOPE_ADMIN
                                                                   : scope;
}

/* An unknown key, or one of too many: then the connection ends too, so that each guess takes one.
 */
static enum kiln_status stranger_refuse(struct http_request *request, const char *detail) {
    struct address address = address_of(NULL);
    if (request->client != NULL) {
        address = client_address(request->client);
    }
    if (auth_throttle_pass(request->service->access->strangers, address, request->started_ns,
                           &request->pass.quota.wait_s)) {
        return refuse(request, REFUSED_UNKNOWN, KILN_UNAUTHORIZED, detail);
    }
    request->close = true;
    return refuse(request, REFUSED_GUESSING, KILN_LIMITED,
                  "Too many unknown keys from this address.");
}

static enum kiln_status grant_find(struct http_request *request) {
    struct headers headers = {NULL, 0};
    const char *token;
    size_t size;
    MHD_get_connection_values(request->connection, MHD_HEADER_KIND, header_see, &headers);
    if (headers.count == 0) {
        return refuse(request, REFUSED_MISSING, KILN_UNAUTHORIZED,
                      "This address needs a key: send \"Authorization: Bearer …\".");
    }
    if (headers.count > 1 || headers.value == NULL || !bearer_read(headers.value, &token, &size)) {
        return stranger_refuse(request,
                               "The Authorization header is not one \"Bearer\" and a key.");
    }
    request->pass.grant = keyring_find(request->service->access->keyring, token, size);
    if (request->pass.grant == NULL) {
        return stranger_refuse(request, "This daemon does not know the key.");
    }
    return KILN_OK;
}

enum kiln_status access_check(struct http_request *request) {
    struct pass *pass = &request->pass;
    if (request->service->access == NULL || request->match.route->scope == SCOPE_OPEN) {
        return KILN_OK;
    }
    enum kiln_status status = grant_find(request);
    if (status != KILN_OK) {
        return status;
    }
    const struct key *key = &pass->grant->key;
    struct meter *meter = pass->grant->meter;
    if (key->rate > 0 && !bucket_take(&meter->bucket, pass->grant->step_ns, key->burst,
                                      request->started_ns, &pass->quota)) {
        return refuse(request, REFUSED_RATE, KILN_LIMITED,
                      "The rate limit of this key is reached.");
    }
    unsigned wanted = scopes_wanted(request);
    if ((key->scopes & wanted) == 0) {
        char scopes[32], detail[96];
        scopes_print(wanted, scopes, sizeof scopes);
        snprintf(detail, sizeof detail, "This needs a key with the scope %s.",
                 wanted == (SCOPE_COMPUTE | SCOPE_ADMIN) ? "compute or admin" : scopes);
        return refuse(request, REFUSED_SCOPE, KILN_FORBIDDEN, detail);
    }
    if (key->concurrency > 0 && !running_enter(&meter->running, key->concurrency)) {
        return refuse(request, REFUSED_RUNNING, KILN_LIMITED,
                      "The concurrency limit of this key is reached.");
    }
    pass->running = key->concurrency > 0;
    return KILN_OK;
}

void access_end(struct http_request *request) {
    struct pass *pass = &request->pass;
    if (pass->running) {
        running_leave(&pass->grant->meter->running);
    }
    grant_release(pass->grant);
    *pass = (struct pass){.grant = NULL};
}

uint32_t access_owner(const struct http_request *request) {
    return request->pass.grant != NULL ? request->pass.grant->meter->owner : 0;
}

bool access_allows(const struct http_request *request, unsigned scope) {
    const struct grant *grant = request->pass.grant;
    return request->service->access == NULL || (grant != NULL && (grant->key.scopes & scope) != 0);
}

/* ---- answers ---- */

bool access_tells(const struct http_request *request) {
    return request->pass.grant != NULL && request->pass.grant->policy[0] != '\0';
}

static void limits_headers(const struct pass *pass, struct MHD_Response *response) {
    const struct grant *grant = pass->grant;
    char bytes[128] = "";
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    if (grant->key.rate > 0) {
        text_format(&text, "\"rate\";r=%" PRIu64 ";t=%" PRIu64, pass->quota.left,
                    pass->quota.full_s);
    }
    if (grant->key.concurrency > 0) {
        uint64_t running = atomic_load_explicit(&grant->meter->running, memory_order_relaxed);
        text_format(&text, "%s\"concurrency\";r=%" PRIu64, grant->key.rate > 0 ? ", " : "",
                    running < grant->key.concurrency ? grant->key.concurrency - running : 0);
    }
    reply_header(response, "RateLimit-Policy", "%s", grant->policy);
    reply_header(response, "RateLimit", "%.*s", (int)text.size, bytes);
}

static void refusal_headers(const struct http_request *request, int http,
                            struct MHD_Response *response) {
    uint64_t wait = request->pass.quota.wait_s;
    bool sent = request_header(request, MHD_HTTP_HEADER_AUTHORIZATION) != NULL;
    char scopes[32];
    switch (http) {
    case MHD_HTTP_UNAUTHORIZED:
        reply_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE, "Bearer realm=\"kiln\"%s",
                     sent ? ", error=\"invalid_token\"" : "");
        break;
    case MHD_HTTP_FORBIDDEN:
        scopes_print(scopes_wanted(request) & ~request->pass.grant->key.scopes, scopes,
                     sizeof scopes);
        for (char *comma = scopes; (comma = strchr(comma, ',')) != NULL;) {
            *comma = ' ';
        }
        reply_header(response, MHD_HTTP_HEADER_WWW_AUTHENTICATE,
                     "Bearer realm=\"kiln\", error=\"insufficient_scope\", scope=\"%s\"", scopes);
        break;
    case MHD_HTTP_TOO_MANY_REQUESTS:
        reply_header(response, MHD_HTTP_HEADER_RETRY_AFTER, "%" PRIu64, wait > 0 ? wait : 1);
        break;
    default:
        break;
    }
}

void access_headers(const struct http_request *request, int http, struct MHD_Response *response) {
    if (request->service->access == NULL) {
        return;
    }
    if (access_tells(request)) {
        limits_headers(&request->pass, response);
    }
    refusal_headers(request, http, response);
}

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
