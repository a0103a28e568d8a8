/*
 * service.c: the shared state of one daemon.
 */
#include "server/core/service.h"

#include <string.h>

enum kiln_status service_init(struct service *service, const struct options *options) {
    memset(service, 0, sizeof *service);
    service->options = options;
    service->limits = (struct limits){
        .max_body = options->max_body,
        .max_pixels = options->max_pixels,
        .max_iterations = options->max_iterations,
        .max_samples = options->max_samples,
        .max_frequencies = options->max_frequencies,
        .arena = options->arena,
    };
    service->started_ns = clock_ns();
    return arena_create((size_t)options->arena, &service->arena);
}

void service_finish(struct service *service) {
    arena_destroy(service->arena);
    service->arena = NULL;
}
