/*
 * job_list.c: /v1/jobs and /v1/jobs/{id}.
 *
 * A client that waits for a job knows the id of its request before any answer: it has sent it. So
 * it finds its job by `request_id`, also where it shares another's. With keys, ids of requests are
 * told to, and asked by, the requests' own key and `admin` only.
 */
#include "server/api/job_list.h"

#include "compute/codecs/pairs.h"
#include "server/http/authorization.h"
#include "server/http/problem.h"
#include "server/http/reply.h"
#include "server/jobs/jobs.h"

#include <string.h>

#define JSON_MEDIA "application/json"

/* A text being printed, and whether a comma is due. */
struct list {
    struct text *text;
    const struct http_request *request;
    bool any;
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
    return authorization_allows(request, SCOPE_ADMIN) ? 0 : authorization_owner(request);
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

static void element_print(const struct job_view *view, void *context) {
    struct list *list = context;
    text_string(list->text, list->any ? ",\n" : "");
    list->any = true;
    view_print(list->request, list->text, view);
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
static enum kiln_status filter_read(struct http_request *request, struct job_filter *filter,
                                    struct complaints *wrong) {
    char *at = request->url.query, *end = at != NULL ? at + strlen(at) : NULL;
    char *name, *value;
    unsigned seen = 0;
    bool broken = false;
    *filter = (struct job_filter){.owner = owner_asked(request)};
    while (at != NULL && !broken && pair_next(&at, end, &name, &value, &broken)) {
        if (!broken) {
            pair_read(filter, &seen, name, value, wrong);
        }
    }
    if (broken) {
        wrong->count = 0;
        return request_fault(request, KILN_MALFORMED,
                             "The query has a broken escape, a NUL or a control character.");
    }
    if (wrong->count > 0) {
        return request_fault(request, KILN_INVALID, "%zu parameter%s cannot be used.", wrong->count,
                             wrong->count == 1 ? "" : "s");
    }
    return KILN_OK;
}

/* The printer may be called again with more room, when the query has been taken apart already. */
static _Thread_local struct job_filter asked;

static void list_print(struct http_request *request, struct text *text) {
    struct jobs *jobs = request->service->jobs;
    struct list list = {.text = text, .request = request};
    size_t total = 0;
    text_string(text, "{\"jobs\":[");
    if (jobs_enter(jobs)) {
        if (jobs_list(jobs, &asked, element_print, &list, &total) != KILN_OK) {
            text->full = true; /* no memory: there is no answer to give */
        }
        jobs_leave(jobs);
    }
    text_format(text, "],\"total\":%zu}\n", total);
}

enum MHD_Result job_list_all(struct http_request *request) {
    struct complaints wrong;
    wrong.count = 0;
    if (filter_read(request, &asked, &wrong) != KILN_OK) {
        request->complaints = &wrong;
        enum MHD_Result sent = problem_send(request);
        request->complaints = NULL;
        return sent;
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
    struct MHD_Response *response = response_copy(bytes, text.size);
    response_header(response, MHD_HTTP_HEADER_CACHE_CONTROL, "no-store");
    return reply_send(request, MHD_HTTP_OK, JSON_MEDIA, response);
}

/* What there is to say against it; KILN_OK with a view of the job, which is cancelled if that is
   asked for. */
static enum kiln_status job_take(struct http_request *request, struct job_view *view) {
    struct jobs *jobs = request->service->jobs;
    const char *name = request->match.captures[0];
    struct job_id id;
    if (!job_id_parse(name, strlen(name), &id) || !jobs_find(jobs, &id, view)) {
        return KILN_NOT_FOUND;
    }
    if (request->method != METHOD_DELETE) {
        return KILN_OK;
    }
    if (!authorization_allows(request, SCOPE_ADMIN) &&
        view->owner != authorization_owner(request)) {
        return KILN_FORBIDDEN;
    }
    return jobs_cancel(jobs, &id) ? KILN_OK : KILN_NOT_FOUND; /* it may have ended just now */
}

enum MHD_Result job_list_one(struct http_request *request) {
    struct job_view view;
    if (!jobs_enter(request->service->jobs)) {
        return problem_reply(request, KILN_DRAINING, "The daemon is shutting down.");
    }
    enum kiln_status status = job_take(request, &view);
    jobs_leave(request->service->jobs);
    switch (status) {
    case KILN_FORBIDDEN:
        return problem_reply(request, status,
                             "The job is another key's: to cancel it takes the scope admin.");
    case KILN_NOT_FOUND:
        return problem_reply(request, status, "No job with this id is waiting or running.");
    default:
        return request->method == METHOD_DELETE
                   ? reply_send(request, MHD_HTTP_NO_CONTENT, NULL, response_constant("", 0))
                   : view_reply(request, &view);
    }
}
