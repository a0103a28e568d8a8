/*
 * url.c: splitting of request targets.
 */
#include "server/http/request/url.h"

#include "compute/codecs/pairs.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* "http://host:1/path" → "/path"; a bare "http://host" has the empty path. */
static char *authority_skip(char *target) {
    static const char *const schemes[] = {"http://", "https://"};
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0]; i++) {
        size_t size = strlen(schemes[i]);
        if (strncasecmp(target, schemes[i], size) == 0) {
            return target + size + strcspn(target + size, "/?");
        }
    }
    return target;
}

/* Cuts `path` (without its first slash) into decoded segments. */
static enum kiln_status path_split(char *path, struct url *url, char *why, size_t why_size) {
    for (char *at = path; at != NULL;) {
        char *slash = strchr(at, '/');
        size_t size = slash != NULL ? (size_t)(slash - at) : strlen(at);
        if (url->segment_count == URL_SEGMENTS_MAX) {
            snprintf(why, why_size, "The path has more segments than any address here.");
            return KILN_NOT_FOUND;
        }
        url->segments[url->segment_count++] = at;
        if (!percent_decode(at, size, false, &size)) {
            snprintf(why, why_size, "The path has a broken escape or a control character.");
            return KILN_MALFORMED;
        }
        at = slash != NULL ? slash + 1 : NULL;
    }
    return KILN_OK;
}

enum kiln_status url_parse(char *target, struct url *url, char *why, size_t why_size) {
    memset(url, 0, sizeof *url);
    if (strcmp(target, "*") == 0) {
        url->all = true;
        return KILN_OK;
    }
    char *path = authority_skip(target);
    if (strchr(path, '#') != NULL) {
        snprintf(why, why_size, "The request target has a fragment.");
        return KILN_MALFORMED;
    }
    url->query = strchr(path, '?');
    if (url->query != NULL) {
        *url->query++ = '\0';
    }
    if (path[0] == '\0' && path != target) {
        return KILN_OK;
    }
    if (path[0] != '/') {
        snprintf(why, why_size, "The request target does not start with a slash.");
        return KILN_MALFORMED;
    }
    return path[1] == '\0' ? KILN_OK : path_split(path + 1, url, why, why_size);
}
