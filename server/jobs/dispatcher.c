/*
 * dispatcher.c: the gate before the dispatch, and what is known of its devices.
 */
#include "server/jobs/dispatcher.h"

#include "compute/codecs/json.h"
#include "compute/core/words.h"
#include "compute/worker/device_kind.h"
#include "server/jobs/ledger.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- devices ---- */

/* Collects the kinds ("cpu", "cuda") of the devices that are in use: the part of a device's name
   before the colon. */
static void kind_collect(const struct device_view *view, void *context) {
    struct dispatcher *dispatcher = context;
    char name[DEVICE_NAME_MAX];
    size_t size = strcspn(view->name, ":");
    size_t used = strlen(dispatcher->kinds);
    if (view->state == DEVICE_UNAVAILABLE || view->state == DEVICE_OFF || size >= sizeof name ||
        used + size + 2 > sizeof dispatcher->kinds) {
        return;
    }
    snprintf(name, sizeof name, "%.*s", (int)size, view->name);
    if (words_have(dispatcher->kinds, used, name)) {
        return;
    }
    const struct device_kind *kind = device_kind_find(view->name, NULL);
    dispatcher->spins = dispatcher->spins || (kind != NULL && kind->spins);
    snprintf(dispatcher->kinds + used, sizeof dispatcher->kinds - used, "%s%s", used > 0 ? "," : "",
             name);
}

/* Collects what a device's arithmetic depends on: its kind, and the instruction set of a processor
   ("cpu avx2") or the model of another ("cuda NVIDIA H200"). */
static void variant_collect(const struct device_view *view, void *context) {
    struct dispatcher *dispatcher = context;
    struct json_value description;
    char variant[96], model[64] = "";
    size_t used = strlen(dispatcher->variants), size = strcspn(view->name, ":");
    if (view->state == DEVICE_UNAVAILABLE || view->state == DEVICE_OFF) {
        return;
    }
    json_value_make(view->description, strlen(view->description), &description);
    struct json_value simd = json_member(&description, "simd");
    struct json_value name = json_member(&description, "name");
    json_string(simd.type == JSON_STRING ? &simd : &name, model, sizeof model);
    model[strcspn(model, ",")] = '\0';
    snprintf(variant, sizeof variant, "%.*s%s%s", (int)size, view->name, *model != '\0' ? " " : "",
             model);
    if (!words_have(dispatcher->variants, used, variant) &&
        used + strlen(variant) + 2 <= sizeof dispatcher->variants) {
        snprintf(dispatcher->variants + used, sizeof dispatcher->variants - used, "%s%s",
                 used > 0 ? "," : "", variant);
    }
}

/* ---- the executor's calls ---- */

static struct dispatcher *dispatcher_of(struct executor *executor) {
    return (struct dispatcher *)(void *)((char *)executor - offsetof(struct dispatcher, executor));
}

static bool enter(struct executor *executor) {
    return dispatcher_enter(dispatcher_of(executor)) != NULL;
}

static void leave(struct executor *executor) {
    dispatcher_leave(dispatcher_of(executor));
}

static struct job_id id(struct executor *executor) {
    return dispatch_id(dispatcher_of(executor)->dispatch);
}

static enum kiln_status submit(struct executor *executor, struct job *job) {
    return dispatch_submit(dispatcher_of(executor)->dispatch, job);
}

static enum kiln_status cancel(struct executor *executor, const struct job_id *job) {
    return dispatch_cancel(dispatcher_of(executor)->dispatch, job);
}

static bool find(struct executor *executor, const struct job_id *job, struct job_view *view) {
    return dispatch_job(dispatcher_of(executor)->dispatch, job, view);
}

static enum kiln_status list(struct executor *executor, const struct job_filter *filter,
                             void (*each)(const struct job_view *view, void *context),
                             void *context, size_t *total) {
    return dispatch_jobs(dispatcher_of(executor)->dispatch, filter, each, context, total);
}

static bool knows_device(struct executor *executor, const char *name) {
    return dispatch_knows(dispatcher_of(executor)->dispatch, name);
}

static const struct executor_type dispatcher_type = {
    .enter = enter,
    .leave = leave,
    .id = id,
    .submit = submit,
    .cancel = cancel,
    .find = find,
    .list = list,
    .knows_device = knows_device,
};

/* ---- its life ---- */

enum kiln_status dispatcher_create(const struct dispatch_options *options,
                                   struct dispatcher **out) {
    struct dispatcher *dispatcher = aligned_alloc(_Alignof(struct dispatcher), sizeof *dispatcher);
    *out = NULL;
    if (dispatcher == NULL) {
        return KILN_NO_MEMORY;
    }
    memset(dispatcher, 0, sizeof *dispatcher);
    enum kiln_status status = dispatch_create(options, &dispatcher->dispatch);
    if (status != KILN_OK) {
        free(dispatcher);
        return status;
    }
    dispatcher->executor.type = &dispatcher_type;
    dispatch_devices(dispatcher->dispatch, kind_collect, dispatcher);
    dispatch_devices(dispatcher->dispatch, variant_collect, dispatcher);
    *out = dispatcher;
    return KILN_OK;
}

struct dispatch *dispatcher_enter(struct dispatcher *dispatcher) {
    return gate_enter(&dispatcher->gate) ? dispatcher->dispatch : NULL;
}

void dispatcher_leave(struct dispatcher *dispatcher) {
    gate_leave(&dispatcher->gate);
}

void dispatcher_close(struct dispatcher *dispatcher) {
    if (dispatcher != NULL && gate_close(&dispatcher->gate)) {
        dispatch_destroy(dispatcher->dispatch);
    }
}

void dispatcher_destroy(struct dispatcher *dispatcher) {
    if (dispatcher != NULL) {
        dispatcher_close(dispatcher);
        free(dispatcher);
    }
}

/* The ledger has no way of its own to the process that starts others. */
static bool store_start(struct dispatcher *dispatcher) {
    struct ledger *ledger = atomic_load(&dispatcher->ledger);
    int64_t boot, bytes, jobs;
    int socket = -1;
    if (ledger == NULL || ledger_wants(ledger, &boot, &bytes, &jobs) != 0) {
        return false;
    }
    dispatch_store(dispatcher->dispatch, boot, bytes, jobs, &socket);
    ledger_connect(ledger, socket);
    return true;
}

bool dispatcher_turn(void *context) {
    struct dispatcher *dispatcher = context;
    struct dispatch *dispatch = dispatcher_enter(dispatcher);
    if (dispatch == NULL) {
        return false;
    }
    bool any = dispatch_turn(dispatch);
    any = store_start(dispatcher) || any;
    dispatcher_leave(dispatcher);
    return any;
}

int dispatcher_timeout(void *context) {
    struct dispatcher *dispatcher = context;
    struct dispatch *dispatch = dispatcher_enter(dispatcher);
    if (dispatch == NULL) {
        return -1;
    }
    int timeout = dispatch_timeout(dispatch);
    struct ledger *ledger = atomic_load(&dispatcher->ledger);
    int64_t none;
    int store = ledger != NULL ? ledger_wants(ledger, &none, &none, &none) : -1;
    dispatcher_leave(dispatcher);
    return store >= 0 && store < timeout ? store : timeout;
}
