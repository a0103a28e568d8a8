/*
 * routes.c: the table of addresses.
 */
#include "server/routes.h"

#include "compute/jobs/job.h"
#include "server/api/info.h"
#include "server/api/job_kept.h"
#include "server/api/job_list.h"
#include "server/api/job_submit.h"
#include "server/api/pages.h"
#include "server/http/request/router.h"

#include <assert.h>
#include <stdio.h>

static const struct route fixed[] = {
    {"/", METHOD_GET, page_index, NULL, NULL, SCOPE_OPEN},
    {"/healthz", METHOD_GET, info_health, NULL, NULL, SCOPE_OPEN},
    {"/readyz", METHOD_GET, info_ready, NULL, NULL, SCOPE_OPEN},
    {"/metrics", METHOD_GET, info_metrics, NULL, NULL, SCOPE_READ},
    {"/openapi.yaml", METHOD_GET, info_openapi_yaml, NULL, NULL, SCOPE_OPEN},
    {"/openapi.json", METHOD_GET, info_openapi_json, NULL, NULL, SCOPE_OPEN},
    {"/v1/devices", METHOD_GET, info_devices, NULL, NULL, SCOPE_READ},
    {"/v1/jobs", METHOD_GET, job_list_all, NULL, NULL, SCOPE_READ},
    {"/v1/jobs/types", METHOD_GET, info_types, NULL, NULL,
     SCOPE_READ}, /* before the pattern that takes it */
    {"/v1/jobs/{id}", METHOD_GET | METHOD_DELETE, job_list_one, NULL, NULL, SCOPE_READ},
    {"/v1/jobs/{id}/result", METHOD_GET, job_kept_result, NULL, NULL, SCOPE_READ},
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

void routes_init(void) {
    route_count = 0;
    for (size_t i = 0; i < sizeof fixed / sizeof fixed[0]; i++) {
        route_add(fixed[i]);
    }
    for (size_t i = 0; job_types[i] != NULL; i++) {
        const struct job_type *type = job_types[i];
        char *pattern = job_patterns[i];
        snprintf(pattern, sizeof job_patterns[i], "/v1/%s", type->name);
        route_add((struct route){pattern, METHOD_POST | (type->get ? METHOD_GET : 0), job_submit,
                                 type, NULL, SCOPE_COMPUTE});
        for (const struct job_path *path = type->paths; path != NULL && path->pattern != NULL;
             path++) {
            route_add(
                (struct route){path->pattern, METHOD_GET, job_submit, type, path, SCOPE_COMPUTE});
        }
    }
    route_add(unmatched);
    router_init(routes, route_count);
}
