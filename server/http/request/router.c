/*
 * router.c: addresses against the patterns of a table.
 */
#include "server/http/request/router.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

static const char *const method_names[METHODS_COUNT] = {"GET",    "HEAD",    "POST",
                                                        "DELETE", "OPTIONS", "other"};

const char *method_name(enum method method) {
    for (int i = 0; i < METHODS_COUNT; i++) {
        if (method == (enum method)(1 << i)) {
            return method_names[i];
        }
    }
    return method_names[METHODS_COUNT - 1];
}

enum method method_by_name(const char *name) {
    for (int i = 0; i + 1 < METHODS_COUNT; i++) {
        if (strcmp(method_names[i], name) == 0) {
            return (enum method)(1 << i);
        }
    }
    return METHOD_OTHER;
}

static const struct route *routes;
static size_t route_count;

void router_init(const struct route *rows, size_t count) {
    assert(count > 0 && count <= ROUTES_MAX);
    routes = rows;
    route_count = count;
}

/* Compares segment by segment; {…} takes any segment that is not empty. */
static bool pattern_match(const char *pattern, const struct url *url, struct match *match) {
    size_t captures = 0, segment = 0;
    const char *at = pattern + 1;
    while (*at != '\0') {
        size_t size = strcspn(at, "/");
        if (segment == url->segment_count) {
            return false;
        }
        const char *text = url->segments[segment++];
        if (at[0] == '{') {
            if (text[0] == '\0' || captures == CAPTURES_MAX) {
                return false;
            }
            match->captures[captures++] = text;
        } else if (strlen(text) != size || memcmp(text, at, size) != 0) {
            return false;
        }
        at += size + (at[size] == '/');
    }
    match->captures[captures] = NULL;
    return segment == url->segment_count;
}

enum kiln_status router_match(const struct url *url, struct match *match) {
    for (size_t i = 0; i + 1 < route_count; i++) {
        if (!url->all && pattern_match(routes[i].pattern, url, match)) {
            match->route = &routes[i];
            return KILN_OK;
        }
    }
    match->route = &routes[route_count - 1];
    match->captures[0] = NULL;
    return KILN_NOT_FOUND;
}

void route_allow(const struct route *route, char *out, size_t size) {
    snprintf(out, size, "%s%s%sOPTIONS", route->methods & METHOD_GET ? "GET, HEAD, " : "",
             route->methods & METHOD_POST ? "POST, " : "",
             route->methods & METHOD_DELETE ? "DELETE, " : "");
}

const struct route *route_at(size_t index) {
    return index < route_count ? &routes[index] : NULL;
}

size_t route_index(const struct route *route) {
    return route != NULL ? (size_t)(route - routes) : route_count - 1;
}
