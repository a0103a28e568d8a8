/*
 * sites.c: whose page sent a request, and whether it may (sites.h).
 */
#include "server/sites.h"

#include "server/cors.h"
#include "server/exchange.h"
#include "server/origin.h"

#include <string.h>
#include <strings.h>

#define ORIGIN_MAX 300 /* scheme, a name of the DNS, a port */

static bool is_word(const struct sent *sent, const char *word) {
    return sent->size == strlen(word) && strncasecmp(sent->text, word, sent->size) == 0;
}

/* Whether the operator lets pages of this origin in. */
static bool origin_allowed(const struct exchange *exchange, const char *origin, size_t size) {
    const struct cors *cors = exchange->service->cors;
    char text[ORIGIN_MAX];
    if (cors == NULL || size >= sizeof text) {
        return false;
    }
    memcpy(text, origin, size);
    text[size] = '\0';
    return cors_allows(cors, text);
}

static bool origin_fits(const struct exchange *exchange, const char *origin, size_t size) {
    return origin_is_host(origin, size, exchange->framing.host) ||
           origin_allowed(exchange, origin, size);
}

static enum kiln_status refuse(struct exchange *exchange, const char *origin, size_t size) {
    bool known = size > 0 && size < 120;
    return exchange_fault(exchange, KILN_CROSS_SITE,
                          "A web page of another site%s%.*s%s sent this request. Without keys this "
                          "daemon answers its own pages only, and those of origins that "
                          "--cors-origin names.",
                          known ? " (" : "", known ? (int)size : 0, origin != NULL ? origin : "",
                          known ? ")" : "");
}

/* A request that changes nothing, as the browser sees it. */
static bool is_read(const struct exchange *exchange) {
    return (exchange->method & (METHOD_GET | METHOD_HEAD)) != 0;
}

enum kiln_status sites_check(struct exchange *exchange) {
    const struct framing *framing = &exchange->framing;
    const struct sent *site = &framing->fetch_site, *origin = &framing->origin;
    const struct sent *referer = &framing->referer;
    bool open = exchange->match.route->scope == SCOPE_OPEN;
    if ((site->count == 0 && origin->count == 0) || exchange->service->access != NULL ||
        (open && is_read(exchange))) {
        return KILN_OK;
    }
    if (site->count == 1 && (is_word(site, "same-origin") || is_word(site, "none"))) {
        return KILN_OK;
    }
    if (origin->count > 0) {
        bool fits = origin->count == 1 && origin_fits(exchange, origin->text, origin->size);
        return fits ? KILN_OK : refuse(exchange, origin->text, origin->size);
    }
    size_t size = referer->count == 1 ? origin_size(referer->text, referer->size) : 0;
    bool reads = is_read(exchange);
    if (reads && site->count == 1 && is_word(site, "same-site")) {
        return KILN_OK;
    }
    if (reads && (size > 0 ? origin_allowed(exchange, referer->text, size)
                           : origin_allowed(exchange, "", 0))) {
        return KILN_OK;
    }
    return refuse(exchange, referer->text, size);
}

const char *sites_policy(const struct service *service) {
    /* who may ask at all has been decided by then; a listed page shows pictures as well */
    return service->cors != NULL ? "cross-origin" : "same-site";
}
