/*
 * cross_site.c: whose page sent a request, and whether it may (cross_site.h).
 */
#include "server/http/cross_site.h"

#include "server/http/cors.h"
#include "server/http/origin.h"
#include "server/http/request/request.h"

#include <string.h>
#include <strings.h>

#define ORIGIN_MAX 300 /* scheme, a name of the DNS, a port */

static bool is_word(const struct sent *sent, const char *word) {
    return sent->size == strlen(word) && strncasecmp(sent->text, word, sent->size) == 0;
}

/* Whether the operator lets pages of this origin in. */
static bool origin_allowed(const struct http_request *request, const char *origin, size_t size) {
    const struct cors *cors = request->service->cors;
    char text[ORIGIN_MAX];
    if (cors == NULL || size >= sizeof text) {
        return false;
    }
    memcpy(text, origin, size);
    text[size] = '\0';
    return cors_allows(cors, text);
}

static bool origin_fits(const struct http_request *request, const char *origin, size_t size) {
    return origin_is_host(origin, size, request->framing.host) ||
           origin_allowed(request, origin, size);
}

static enum kiln_status refuse(struct http_request *request, const char *origin, size_t size) {
    bool known = size > 0 && size < 120;
    return request_fault(request, KILN_CROSS_SITE,
                         "A web page of another site%s%.*s%s sent this request. Without keys this "
                         "daemon answers its own pages only, and those of origins that "
                         "--cors-origin names.",
                         known ? " (" : "", known ? (int)size : 0, origin != NULL ? origin : "",
                         known ? ")" : "");
}

/* A request that changes nothing, as the browser sees it. */
static bool is_read(const struct http_request *request) {
    return (request->method & (METHOD_GET | METHOD_HEAD)) != 0;
}

enum kiln_status cross_site_check(struct http_request *request) {
    const struct framing *framing = &request->framing;
    const struct sent *site = &framing->fetch_site, *origin = &framing->origin;
    const struct sent *referer = &framing->referer;
    bool open = request->match.route->scope == SCOPE_OPEN;
    if ((site->count == 0 && origin->count == 0) || request->service->access != NULL ||
        (open && is_read(request))) {
        return KILN_OK;
    }
    if (site->count == 1 && (is_word(site, "same-origin") || is_word(site, "none"))) {
        return KILN_OK;
    }
    if (origin->count > 0) {
        bool fits = origin->count == 1 && origin_fits(request, origin->text, origin->size);
        return fits ? KILN_OK : refuse(request, origin->text, origin->size);
    }
    size_t size = referer->count == 1 ? origin_size(referer->text, referer->size) : 0;
    bool reads = is_read(request);
    if (reads && site->count == 1 && is_word(site, "same-site")) {
        return KILN_OK;
    }
    if (reads && (size > 0 ? origin_allowed(request, referer->text, size)
                           : origin_allowed(request, "", 0))) {
        return KILN_OK;
    }
    return refuse(request, referer->text, size);
}

const char *cross_site_policy(const struct service *service) {
    /* who may ask at all has been decided by then; a listed page shows pictures as well */
    return service->cors != NULL ? "cross-origin" : "same-site";
}
