/*
 * router.c: the table of addresses.
 */
#include "server/http/router.h"

#include "server/api/info.h"
#include "server/api/job_list.h"
#include "server/api/job_submit.h"
#include "server/api/pages.h"

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

static const struct route fixed[] = {
    {"/", METHOD_GET, page_index, NULL, NULL, SCOPE_OPEN},
    {"/healthz", METHOD_GET, info_health, NULL, NULL, SCOPE_OPEN},
    {"/readyz", METHOD_GET, info_ready, NULL, NULL, SCOPE_OPEN},
    {"/metrics", METHOD_GET, info_metrics, NULL, NULL, SCOPE_READ},
    {"/openapi.yaml", METHOD_GET, info_openapi_yaml, NULL, NULL, SCOPE_OPEN},
    {"/openapi.json", METHOD_GET, info_openapi_json, NULL, NULL, SCOPE_OPEN},
    {"/v1/devices", METHOD_GET, info_devices, NULL, NULL, SCOPE_READ},
    {"/v1/jobs", METHOD_GET, active_list, NULL, NULL, SCOPE_READ},
    {"/v1/jobs/types", METHOD_GET, info_types, NULL, NULL,
     SCOPE_READ}, /* before the pattern that takes it */
    {"/v1/jobs/{id}", METHOD_GET | METHOD_DELETE, active_job, NULL, NULL, SCOPE_READ},
    {"/problems", METHOD_GET, page_problems, NULL, NULL, SCOPE_OPEN},
    {"/problems/{slug}", METHOD_GET, page_problem, NULL, NULL, SCOPE_OPEN},
};

/* What a request is counted under when it has no address. */
static const struct route unmatched = {"unmatched", 0, NULL, NULL, NULL, SCOPE_OPEN};

static struct route routes[ROUTES_MAX];
static size_t route_count;
static char job_patterns[ROUTES_MAX][64];

static void route_add(struct route route) {
    assert(route_count < ROUTES_MAX);
    routes[route_count++] = route;
}

void router_init(void) {
    route_count = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        route_add(fixed[i]);
    }
    for (size_t i = 0; job_types[i] != NULL; i++) {
        const struct job_type *type = job_types[i];
        char *pattern = job_patterns[i];
        snprintf(pattern, sizeof job_patterns[i], "/v1/%s", type->name);
        route_add((struct route){pattern, METHOD_POST | (type->get ? METHOD_GET : 0), jobs_handle,
                                 type, NULL, SCOPE_COMPUTE});
        for (const struct job_path *path = type->paths; path != NULL && path->pattern != NULL;
             path++) {
            route_add(
                (struct route){path->pattern, METHOD_GET, jobs_handle, type, path, SCOPE_COMPUTE});
        }
    }
    route_add(unmatched);
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
