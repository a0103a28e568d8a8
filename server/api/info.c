/*
 * info.c: JSON about the daemon.
 */
#include "server/api/info.h"

#include "compute/submission/submission.h"
#include "server/api/gauges.h"
#include "server/http/problem.h"
#include "server/http/reply.h"
#include "server/jobs/dispatcher.h"
#include "server/jobs/ledger.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define JSON_MEDIA    "application/json"
#define METRICS_MEDIA "text/plain; version=0.0.4; charset=utf-8"
#define YAML_MEDIA    "application/yaml"

/* embed.S */
extern const char openapi_yaml[], openapi_yaml_end[], openapi_json[], openapi_json_end[];

static void member_print(struct text *text, const char *name, const char *value) {
    text_format(text, "\"%s\":", name);
    text_json_string(text, value, strlen(value));
}

static double uptime(const struct http_request *request) {
    return (double)(clock_ns() - request->service->started_ns) / 1e9;
}

static void health_print(struct http_request *request, struct text *text) {
    text_string(text, "{\"status\":\"ok\",");
    member_print(text, "version", KILN_VERSION);
    text_format(text, ",\"uptime_seconds\":%.3f}\n", uptime(request));
}

enum MHD_Result info_health(struct http_request *request) {
    return reply_print(request, MHD_HTTP_OK, JSON_MEDIA, health_print);
}

static void ready_print(struct http_request *request, struct text *text) {
    bool now;
    ledger_ready(request->service->ledger, &now);
    text_format(text, "{\"status\":\"ready\",\"store\":\"%s\",\"durable\":%s}\n",
                now ? "ready" : "starting",
                ledger_durable(request->service->ledger) ? "true" : "false");
}

enum MHD_Result info_ready(struct http_request *request) {
    char why[256] = "";
    struct dispatch *dispatch = dispatcher_enter(request->service->dispatcher);
    bool ready = dispatch != NULL && dispatch_ready(dispatch, why, sizeof why);
    if (dispatch != NULL) {
        dispatcher_leave(request->service->dispatcher);
    }
    if (dispatch == NULL || atomic_load(&request->service->draining)) {
        return problem_reply(request, KILN_DRAINING, "The daemon is shutting down.");
    }
    if (!ready) {
        return problem_reply(request, KILN_NO_DEVICE, "%s", why);
    }
    bool now;
    if (!ledger_ready(request->service->ledger, &now)) {
        return problem_reply(request, KILN_STORE, "The store of jobs has not been opened yet.");
    }
    return reply_print(request, MHD_HTTP_OK, JSON_MEDIA, ready_print);
}

static enum MHD_Result document_reply(struct http_request *request, const char *media,
                                      const char *text, const char *end) {
    struct MHD_Response *response = response_constant(text, (size_t)(end - text));
    response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-cache");
    return reply_send(request, MHD_HTTP_OK, media, response);
}

enum MHD_Result info_openapi_yaml(struct http_request *request) {
    return document_reply(request, YAML_MEDIA, openapi_yaml, openapi_yaml_end);
}

enum MHD_Result info_openapi_json(struct http_request *request) {
    return document_reply(request, JSON_MEDIA, openapi_json, openapi_json_end);
}

/* A text being printed, and whether a comma is due. */
struct list {
    struct text *text;
    bool any;
};

static void device_print(const struct device_view *view, void *context) {
    struct list *list = context;
    struct text *text = list->text;
    text_string(text, list->any ? ",\n{" : "{");
    list->any = true;
    member_print(text, "name", view->name);
    text_string(text, ",");
    member_print(text, "state", device_state_name(view->state));
    if (view->reason[0] != '\0') {
        text_string(text, ",");
        member_print(text, "reason", view->reason);
    }
    text_string(text, ",\"kernels\":");
    kernels_print(view->kernels, text);
    text_format(text, ",\"slots\":%d,\"running\":%d", view->slots, view->running);
    if (view->pid > 0) {
        text_format(text, ",\"pid\":%d", view->pid);
    }
    text_format(text,
                ",\"jobs_done\":%" PRIu64 ",\"jobs_failed\":%" PRIu64 ",\"respawns\":%" PRIu64
                ",\"busy_seconds\":%.6f,\"age_seconds\":%.3f,\"description\":",
                view->jobs_done, view->jobs_failed, view->respawns, view->busy_s, view->age_s);
    text_string(text, view->description[0] != '\0' ? view->description : "{}");
    text_string(text, "}");
}

static void devices_print(struct http_request *request, struct text *text) {
    struct list list = {text, false};
    struct dispatch *dispatch = dispatcher_enter(request->service->dispatcher);
    text_string(text, "{\"devices\":[");
    if (dispatch != NULL) {
        dispatch_devices(dispatch, device_print, &list);
        dispatcher_leave(request->service->dispatcher);
    }
    text_string(text, "]}\n");
}

enum MHD_Result info_devices(struct http_request *request) {
    return reply_print(request, MHD_HTTP_OK, JSON_MEDIA, devices_print);
}

static void formats_print(struct text *text, const enum format *formats) {
    text_string(text, "[");
    for (const enum format *row = formats; *row != FORMAT_NONE; row++) {
        text_format(text, "%s{\"name\":\"%s\",\"media\":\"%s\"}", row > formats ? "," : "",
                    format_row(*row)->name, format_row(*row)->media);
    }
    text_string(text, "]");
}

static void media_print(const char *media, void *context) {
    struct list *list = context;
    text_format(list->text, "%s\"%s\"", list->any ? "," : "", media);
    list->any = true;
}

static void paths_print(struct text *text, const struct job_path *paths) {
    text_string(text, ",\"paths\":[");
    for (const struct job_path *path = paths; path != NULL && path->pattern != NULL; path++) {
        text_string(text, path > paths ? ",{" : "{");
        member_print(text, "pattern", path->pattern);
        if (path->format != FORMAT_NONE) {
            text_format(text, ",\"format\":\"%s\"", format_row(path->format)->name);
        }
        text_string(text, ",\"reserved\":[");
        for (const char *const *name = path->reserved; name != NULL && *name != NULL; name++) {
            text_format(text, "%s\"%s\"", name > path->reserved ? "," : "", *name);
        }
        text_string(text, "]}");
    }
    text_string(text, "]");
}

static void type_print(struct text *text, const struct job_type *type) {
    static const char *const inputs[] = {"none", "image", "series"};
    struct list accepts = {text, false};
    text_string(text, "{");
    member_print(text, "name", type->name);
    text_string(text, ",");
    member_print(text, "title", type->title);
    text_format(text, ",\"route\":\"/v1/%s\",\"methods\":[%s\"POST\",\"OPTIONS\"]", type->name,
                type->get ? "\"GET\",\"HEAD\"," : "");
    text_format(text, ",\"input\":\"%s\",\"accepts\":[", inputs[type->input]);
    submission_media_list(type, media_print, &accepts);
    text_string(text, "],\"formats\":");
    formats_print(text, type->formats);
    text_string(text, ",\n\"fields\":");
    fields_describe(type->fields, text);
    paths_print(text, type->paths);
    text_string(text, "}");
}

static void types_print(struct http_request *request, struct text *text) {
    (void)request;
    text_string(text, "{\"jobs\":[");
    for (size_t i = 0; job_types[i] != NULL; i++) {
        text_string(text, i > 0 ? ",\n" : "");
        type_print(text, job_types[i]);
    }
    text_string(text,
                "],\n\"common\":[{\"name\":\"format\",\"type\":\"string\",\"required\":false,"
                "\"help\":\"Name of the result's format; wins over the Accept header.\"},"
                "{\"name\":\"device\",\"type\":\"string\",\"required\":false,"
                "\"help\":\"Device that is to run the job, such as cuda:0; any if not given.\"}]"
                "}\n");
}

enum MHD_Result info_types(struct http_request *request) {
    return reply_print(request, MHD_HTTP_OK, JSON_MEDIA, types_print);
}

enum MHD_Result info_metrics(struct http_request *request) {
    return reply_print(request, MHD_HTTP_OK, METRICS_MEDIA, gauges_print);
}
