/*
 * url.c: splitting and percent-decoding of request targets.
 */
#include "server/http/url.h"

#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

static int hex_value(char c) {
    if (c >= '0' && c <= '9') {
        return c - '0';
    }
    c |= 0x20;
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool url_decode(char *text, size_t size, bool plus, size_t *decoded) {
    size_t out = 0;
    for (size_t i = 0; i < size; i++) {
        unsigned char c = (unsigned char)text[i];
        if (c == '%') {
            int high = i + 2 < size ? hex_value(text[i + 1]) : -1;
            int low = i + 2 < size ? hex_value(text[i + 2]) : -1;
            if (high < 0 || low < 0) {
                return false;
            }
            c = (unsigned char)(high << 4 | low);
            i += 2;
        } else if (plus && c == '+') {
            c = ' ';
        }
        if (c == 0 || c == 0x7f || (c < 0x20 && c != '\t' && c != '\n' && c != '\r')) {
            return false;
        }
        text[out++] = (char)c;
    }
    text[out] = '\0';
    *decoded = out;
    return true;
}

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
        if (!url_decode(at, size, false, &size)) {
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

bool url_next_pair(char **cursor, char *end, char **name, char **value, bool *broken) {
    *broken = false;
    while (*cursor < end && **cursor == '&') {
        (*cursor)++;
    }
    if (*cursor >= end) {
        return false;
    }
    char *start = *cursor;
    char *stop = memchr(start, '&', (size_t)(end - start));
    stop = stop != NULL ? stop : end;
    *cursor = stop < end ? stop + 1 : end;
    char *equals = memchr(start, '=', (size_t)(stop - start));
    char *tail = equals != NULL ? equals + 1 : stop;
    size_t size;
    *name = start;
    *value = tail;
    /* the value first: the name's NUL takes the place of '=', the value's that of '&' */
    *broken = !url_decode(tail, (size_t)(stop - tail), true, &size) ||
              !url_decode(start, (size_t)((equals != NULL ? equals : stop) - start), true, &size);
    return true;
}
