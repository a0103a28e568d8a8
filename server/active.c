/*
 * active.c: /v1/jobs and /v1/jobs/{id}.
 */
#include "server/active.h"

#include "server/problem.h"
#include "server/reply.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define JSON_MEDIA "application/json"
#define ID_DIGITS  16

/* A text being printed, and whether a comma is due. */
struct list {
    struct text *text;
    bool any;
};

static void view_print(struct text *text, const struct job_view *view) {
    text_format(text,
                "{\"id\":\"%016" PRIx64 "\",\"type\":\"%s\",\"state\":\"%s\",\"device\":", view->id,
                view->type,
                view->preparing ? "preparing"
                : view->running ? "running"
                                : "queued");
    if (view->device[0] != '\0') {
        text_json_string(text, view->device, strlen(view->device));
    } else {
        text_string(text, "null");
    }
    text_format(text, ",\"attempt\":%d,\"age_seconds\":%.3f,\"running_seconds\":%.3f,\"progress\":",
                view->attempt, view->age_s, view->running_s);
    text_double(text, view->progress);
    text_string(text, ",\"cost\":");
    text_double(text, view->cost);
    text_string(text, "}");
}

static void element_print(const struct job_view *view, void *context) {
    struct list *list = context;
    text_string(list->text, list->any ? ",\n" : "");
    list->any = true;
    view_print(list->text, view);
}

/* Those that are being read, where the others have left room; returns how many there are. */
static size_t preparing_print(struct exchange *exchange, struct list *list, size_t printed) {
    struct preparing *preparing = &exchange->service->preparing;
    size_t room = printed < DISPATCH_JOBS_MAX ? DISPATCH_JOBS_MAX - printed : 0;
    struct job_view *views = calloc(room + 1, sizeof *views);
    if (views == NULL) {
        list->text->full = true; /* no memory: there is no answer to give */
        return 0;
    }
    size_t count = preparing_list(preparing, views, room);
    for (size_t i = 0; i < count && i < room; i++) {
        element_print(&views[i], list);
    }
    free(views);
    return count;
}

static void list_print(struct exchange *exchange, struct text *text) {
    struct list list = {text, false};
    struct dispatch *dispatch = service_enter(exchange->service);
    size_t total = 0;
    text_string(text, "{\"jobs\":[");
    if (dispatch != NULL) {
        if (dispatch_jobs(dispatch, element_print, &list, &total) != KILN_OK) {
            text->full = true; /* no memory: there is no answer to give */
        }
        service_leave(exchange->service);
    }
    total += preparing_print(exchange, &list, total);
    text_format(text, "],\"total\":%zu}\n", total);
}

enum MHD_Result active_list(struct exchange *exchange) {
    return reply_print(exchange, MHD_HTTP_OK, JSON_MEDIA, list_print);
}

/* The number in the address, or 0, which no job has. */
static uint64_t id_read(const char *text) {
    if (strlen(text) != ID_DIGITS || strspn(text, "0123456789abcdef") != ID_DIGITS) {
        return 0;
    }
    return strtoull(text, NULL, 16);
}

static enum MHD_Result view_reply(struct exchange *exchange, const struct job_view *view) {
    char bytes[512];
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    view_print(&text, view);
    text_string(&text, "\n");
    struct MHD_Response *response = reply_copy(bytes, text.size);
    reply_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    return reply_send(exchange, MHD_HTTP_OK, JSON_MEDIA, response);
}

enum MHD_Result active_job(struct exchange *exchange) {
    uint64_t id = id_read(exchange->match.captures[0]);
    bool cancel = exchange->method == METHOD_DELETE;
    struct job_view view;
    struct dispatch *dispatch = service_enter(exchange->service);
    if (dispatch == NULL) {
        return problem_reply(exchange, KILN_DRAINING, "The daemon is shutting down.");
    }
    struct preparing *preparing = &exchange->service->preparing;
    bool early = id != 0 && preparing_job(preparing, id, &view);
    bool found = early || (id != 0 && dispatch_job(dispatch, id, &view));
    bool foreign = found && cancel && !access_allows(exchange, SCOPE_ADMIN) &&
                   view.owner != access_owner(exchange);
    if (cancel && found && !foreign) {
        /* it may have been submitted, or have ended, just now */
        found =
            (early && preparing_revoke(preparing, id)) || dispatch_cancel(dispatch, id) == KILN_OK;
    }
    service_leave(exchange->service);
    if (foreign) {
        return problem_reply(exchange, KILN_FORBIDDEN,
                             "The job is another key's: to cancel it takes the scope admin.");
    }
    if (!found) {
        return problem_reply(exchange, KILN_NOT_FOUND,
                             "No job of this number is waiting or running.");
    }
    return cancel ? reply_send(exchange, MHD_HTTP_NO_CONTENT, NULL, reply_constant("", 0))
                  : view_reply(exchange, &view);
}
