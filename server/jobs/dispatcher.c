/*
 * service.c: the shared state of one daemon.
 */
#include "server/core/service.h"

#include "compute/codecs/json.h"
#include "compute/worker/device_kind.h"
#include "server/jobs/result_reuse.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

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
    pthread_rwlock_init(&service->gate, NULL);
    preparing_init(&service->preparing);
    enum kiln_status status = arena_create((size_t)options->arena, &service->arena);
    return status == KILN_OK ? result_reuse_create(options->cache_bytes, &service->reuse) : status;
}

static bool kinds_have(const char *kinds, const char *kind, size_t size) {
    while (*kinds != '\0') {
        size_t length = strcspn(kinds, ",");
        if (length == size && memcmp(kinds, kind, size) == 0) {
            return true;
        }
        kinds += length + (kinds[length] == ',');
    }
    return false;
}

/* Collects the kinds ("cpu", "cuda") of the devices that are in use: the part of a device's name
   before the colon. */
static void kind_collect(const struct device_view *view, void *context) {
    struct service *service = context;
    size_t size = strcspn(view->name, ":");
    size_t used = strlen(service->kinds);
    if (view->state == DEVICE_UNAVAILABLE || view->state == DEVICE_OFF ||
        kinds_have(service->kinds, view->name, size) || used + size + 2 > sizeof service->kinds) {
        return;
    }
    const struct device_kind *kind = device_kind_find(view->name, NULL);
    service->spins = service->spins || (kind != NULL && kind->spins);
    snprintf(service->kinds + used, sizeof service->kinds - used, "%s%.*s", used > 0 ? "," : "",
             (int)size, view->name);
}

static bool variants_have(const char *variants, const char *variant) {
    size_t size = strlen(variant);
    for (; *variants != '\0'; variants += strcspn(variants, ",")) {
        variants += *variants == ',';
        if (strncmp(variants, variant, size) == 0 && strchr(",", variants[size]) != NULL) {
            return true;
        }
    }
    return false;
}

/* Collects what a device's arithmetic depends on: its kind, and the instruction set of a processor
   ("cpu avx2") or the model of another ("cuda NVIDIA H200"). */
static void variant_collect(const struct device_view *view, void *context) {
    struct service *service = context;
    struct json_value description;
    char variant[96], model[64] = "";
    size_t used = strlen(service->variants), size = strcspn(view->name, ":");
    if (view->state == DEVICE_UNAVAILABLE || view->state == DEVICE_OFF) {
        return;
    }
    json_value_make(view->description, strlen(view->description), &description);
    struct json_value simd = json_member(&description, "simd");
    struct json_value name = json_member(&description, "name");
    json_string(simd.type == JSON_STRING ? &simd : &name, model, sizeof model);
    model[strcspn(model, ",")] = '\0';
    snprintf(variant, sizeof variant, "%.*s %s", (int)size, view->name, model);
    if (!variants_have(service->variants, variant) &&
        used + strlen(variant) + 2 <= sizeof service->variants) {
        snprintf(service->variants + used, sizeof service->variants - used, "%s%s",
                 used > 0 ? "," : "", variant);
    }
}

/* Ends the daemon as its operator would: whoever looks after it starts it anew. */
static void on_lost(void *context) {
    struct service *service = context;
    atomic_store(&service->crippled, true);
    if (!atomic_load(&service->draining)) {
        kill(getpid(), SIGTERM);
    }
}

enum kiln_status service_open(struct service *service) {
    const struct options *options = service->options;
    const struct dispatch_options wanted = {
        .program = "/proc/self/exe",
        .devices = options->device,
        .slots = (int)options->slots,
        .gather = (int)options->gather,
        .threads = (int)options->threads,
        .queue = (int)options->queue,
        .deadline_s = options->deadline,
        .device_bytes = options->device_memory,
        .arena = service->arena,
        .lost = on_lost,
        .lost_context = service,
        .driven = true, /* by the first event loop */
    };
    enum kiln_status status = dispatch_create(&wanted, &service->dispatch);
    if (status == KILN_OK) {
        dispatch_devices(service->dispatch, kind_collect, service);
        dispatch_devices(service->dispatch, variant_collect, service);
    }
    return status;
}

struct dispatch *service_enter(struct service *service) {
    pthread_rwlock_rdlock(&service->gate);
    if (service->dispatch == NULL) {
        pthread_rwlock_unlock(&service->gate);
        return NULL;
    }
    return service->dispatch;
}

void service_leave(struct service *service) {
    pthread_rwlock_unlock(&service->gate);
}

void service_close(struct service *service) {
    pthread_rwlock_wrlock(&service->gate);
    struct dispatch *dispatch = service->dispatch;
    service->dispatch = NULL;
    pthread_rwlock_unlock(&service->gate);
    if (dispatch != NULL) {
        dispatch_destroy(dispatch);
    }
}

void service_finish(struct service *service) {
    result_reuse_destroy(service->reuse);
    service->reuse = NULL;
    arena_destroy(service->arena);
    service->arena = NULL;
    preparing_finish(&service->preparing);
    pthread_rwlock_destroy(&service->gate);
}
