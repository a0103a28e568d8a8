/*
 * job_list.c: /v1/jobs and /v1/jobs/{id}.
 *
 * A client that waits for a job knows the id of its request before any answer: it has sent it. So
 * it finds its job by `request_id`, also where it shares another's. With keys, ids of requests are
 * told to, and asked by, the requests' own key and `admin` only.
 */
#include "server/api/job_list.h"

#include "compute/codecs/pairs.h"
#include "server/http/problem.h"
#include "server/http/reply.h"

#include <stdlib.h>
#include <string.h>

#define JSON_MEDIA "application/json"

/* A text being printed, and whether a comma is due. */
struct list {
    struct text *text;
    const struct http_request *request;
    bool any;
    struct job_view *early; /* those that were being prepared when the list was begun */
    size_t early_count, moved;
};

static void optional_print(struct text *text, const char *value) {
    if (value[0] != '\0') {
        text_json_string(text, value, strlen(value));
    } else {
        text_string(text, "null");
    }
}

/* Whose names of requests this request may know: its key's, or (0) everybody's. */
static uint32_t owner_asked(const struct http_request *request) {
    return access_allows(request, SCOPE_ADMIN) ? 0 : access_owner(request);
}

static void view_print(const struct http_request *request, struct text *text,
                       const struct job_view *view) {
    uint32_t owner = owner_asked(request);
    char id[JOB_ID_TEXT];
    job_id_print(&view->id, id);
    text_format(text, "{\"id\":\"%s\",\"type\":\"%s\",\"state\":\"%s\",\"request_id\":", id,
                view->type,
                view->preparing ? "preparing"
                : view->running ? "running"
                                : "queued");
    optional_print(text, owner == 0 || owner == view->owner ? view->request_id : "");
    text_string(text, ",\"device\":");
    optional_print(text, view->device);
    text_format(text, ",\"attempt\":%d,\"age_seconds\":%.3f,\"running_seconds\":%.3f,\"progress\":",
                view->attempt, view->age_s, view->running_s);
    text_double(text, view->progress);
    text_string(text, ",\"cost\":");
    text_double(text, view->cost);
    text_string(text, "}");
}

static void element_print(const struct job_view *view, struct list *list) {
    text_string(list->text, list->any ? ",\n" : "");
    list->any = true;
    view_print(list->request, list->text, view);
}

/* One that waits or runs. It may have been prepared a moment ago. */
static void submitted_print(const struct job_view *view, void *context) {
    struct list *list = context;
    for (size_t i = 0; i < list->early_count; i++) {
        if (job_id_equal(&list->early[i].id, &view->id)) {
            list->early[i].id = (struct job_id){{0}};
            list->moved++;
        }
    }
    element_print(view, list);
}

/* ---- what is asked for ---- */

static void state_read(struct job_filter *filter, const char *value, struct complaints *wrong) {
    filter->state = strcmp(value, "running") == 0     ? JOBS_RUNNING
                    : strcmp(value, "queued") == 0    ? JOBS_QUEUED
                    : strcmp(value, "preparing") == 0 ? JOBS_PREPARING
                                                      : JOBS_ALL;
    if (filter->state == JOBS_ALL) {
        complaints_add(wrong, "state", "is preparing, queued or running, not \"%.40s\"", value);
    }
}

static void type_read(struct job_filter *filter, const char *value, struct complaints *wrong) {
    filter->type = job_type_find(value);
    if (filter->type == NULL) {
        complaints_add(wrong, "type", "there is no kind of job \"%.40s\" (/v1/jobs/types has all)",
                       value);
    }
}

static void request_read(struct job_filter *filter, const char *value, struct complaints *wrong) {
    filter->request_id = value;
    if (!request_id_valid(value, strlen(value))) {
        complaints_add(wrong, "request_id",
                       "is an X-Request-Id: 1 to %d letters, digits and -._~+/=:@", REQUEST_ID_MAX);
    }
}

static const struct {
    const char *name;
    void (*read)(struct job_filter *filter, const char *value, struct complaints *wrong);
} parameters[] = {{"state", state_read}, {"type", type_read}, {"request_id", request_read}};
#define PARAMETERS (sizeof parameters / sizeof parameters[0])

static void pair_read(struct job_filter *filter, unsigned *seen, const char *name,
                      const char *value, struct complaints *wrong) {
    size_t i = 0;
    while (i < PARAMETERS && strcmp(parameters[i].name, name) != 0) {
        i++;
    }
    if (i == PARAMETERS) {
        complaints_add(wrong, name, "is unknown; there are state, type and request_id");
    } else if ((*seen & 1u << i) != 0) {
        complaints_add(wrong, name, "is given twice");
    } else {
        *seen |= 1u << i;
        parameters[i].read(filter, value, wrong);
    }
}

/* The values stay in the request's own text. */
static enum kiln_status filter_read(struct http_request *request, struct job_filter *filter) {
    char *at = request->url.query, *end = at != NULL ? at + strlen(at) : NULL;
    char *name, *value;
    unsigned seen = 0;
    bool broken = false;
    *filter = (struct job_filter){.owner = owner_asked(request)};
    while (at != NULL && !broken && pair_next(&at, end, &name, &value, &broken)) {
        if (!broken) {
            pair_read(filter, &seen, name, value, &request->complaints);
        }
    }
    if (broken) {
        request->complaints.count = 0;
        return request_fault(request, KILN_MALFORMED,
                             "The query has a broken escape, a NUL or a control character.");
    }
    if (request->complaints.count > 0) {
        return request_fault(request, KILN_INVALID, "%zu parameter%s cannot be used.",
                             request->complaints.count, request->complaints.count == 1 ? "" : "s");
    }
    return KILN_OK;
}

/* The printer may be called again with more room, when the query has been taken apart already. */
static _Thread_local struct job_filter asked;

/* Those that are being read and have not been submitted since, where the others have left room. */
static void early_print(struct list *list, size_t printed) {
    for (size_t i = 0; i < list->early_count && printed < DISPATCH_JOBS_MAX; i++) {
        if (!job_id_empty(&list->early[i].id)) {
            element_print(&list->early[i], list);
            printed++;
        }
    }
}

/* A job goes from the loader to the dispatcher, so they are asked in this order. */
static void list_print(struct http_request *request, struct text *text) {
    struct job_view *early = calloc(DISPATCH_JOBS_MAX, sizeof *early);
    struct list list = {.text = text, .request = request, .early = early};
    size_t total = 0, reading;
    if (early == NULL) {
        text->full = true; /* no memory: there is no answer to give */
        return;
    }
    reading = preparing_list(&request->service->preparing, &asked, early, DISPATCH_JOBS_MAX);
    list.early_count = reading < DISPATCH_JOBS_MAX ? reading : DISPATCH_JOBS_MAX;
    struct dispatch *dispatch = service_enter(request->service);
    text_string(text, "{\"jobs\":[");
    if (dispatch != NULL) {
        if (dispatch_jobs(dispatch, &asked, submitted_print, &list, &total) != KILN_OK) {
            text->full = true; /* no memory: there is no answer to give */
        }
        service_leave(request->service);
    }
    early_print(&list, total);
    total += reading - list.moved;
    free(early);
    text_format(text, "],\"total\":%zu}\n", total);
}

enum MHD_Result active_list(struct http_request *request) {
    if (filter_read(request, &asked) != KILN_OK) {
        return problem_send(request);
    }
    return reply_print(request, MHD_HTTP_OK, JSON_MEDIA, list_print);
}

/* ---- one job ---- */

static enum MHD_Result view_reply(struct http_request *request, const struct job_view *view) {
    char bytes[1024];
    struct text text;
    text_init(&text, bytes, sizeof bytes);
    view_print(request, &text, view);
    text_string(&text, "\n");
    struct MHD_Response *response = reply_copy(bytes, text.size);
    reply_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    return reply_send(request, MHD_HTTP_OK, JSON_MEDIA, response);
}

enum MHD_Result active_job(struct http_request *request) {
    const char *name = request->match.captures[0];
    struct job_id id;
    bool cancel = request->method == METHOD_DELETE;
    struct job_view view;
    struct dispatch *dispatch = service_enter(request->service);
    if (dispatch == NULL) {
        return problem_reply(request, KILN_DRAINING, "The daemon is shutting down.");
    }
    bool named = job_id_parse(name, strlen(name), &id);
    struct preparing *preparing = &request->service->preparing;
    bool early = named && preparing_job(preparing, &id, &view);
    bool found = early || (named && dispatch_job(dispatch, &id, &view));
    bool foreign = found && cancel && !access_allows(request, SCOPE_ADMIN) &&
                   view.owner != access_owner(request);
    if (cancel && found && !foreign) {
        /* it may have been submitted, or have ended, just now */
        found = (early && preparing_revoke(preparing, &id)) ||
                dispatch_cancel(dispatch, &id) == KILN_OK;
    }
    service_leave(request->service);
    if (foreign) {
        return problem_reply(request, KILN_FORBIDDEN,
                             "The job is another key's: to cancel it takes the scope admin.");
    }
    if (!found) {
        return problem_reply(request, KILN_NOT_FOUND, "No job with this id is waiting or running.");
    }
    return cancel ? reply_send(request, MHD_HTTP_NO_CONTENT, NULL, reply_constant("", 0))
                  : view_reply(request, &view);
}
