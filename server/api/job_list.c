/*
 * job_list.c: /v1/jobs and /v1/jobs/{id}.
 *
 * A client that waits for a job knows the id of its request before any answer: it has sent it. So
 * it finds its job by `request_id`, also where it shares another's. With keys, ids of requests are
 * told to, and asked by, the requests' own key and `admin` only.
 */
#include "server/api/job_list.h"

#include "compute/codecs/pairs.h"
#include "server/api/job_kept.h"
#include "server/api/kept_private.h"
#include "server/http/authorization.h"
#include "server/http/problem.h"
#include "server/http/reply.h"
#include "server/jobs/jobs.h"
#include "server/jobs/ledger.h"

#include <string.h>

#define JSON_MEDIA "application/json"

#define PAGE 100 /* kept jobs of one answer */

/* A text being printed, and whether a comma is due. */
struct list {
    struct text *text;
    struct http_request *request;
    bool any;
    size_t kept; /* live jobs that are left out here: they are kept, too */
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
    if (ledger_has(list->request->service->ledger, &view->id)) {
        list->kept++;
        return; /* among the kept ones, for whom they concern */
    }
    text_string(list->text, list->any ? ",\n" : "");
    list->any = true;
    view_print(list->request, list->text, view);
}

/* ---- what is asked for ---- */

/* Of the states those of the store are kept jobs' alone but for the first two, "preparing" is
   others'. */
static void state_read(struct kept_request *asked, const char *value, struct complaints *wrong) {
    int state = 0;
    while (state < STORE_STATES && strcmp(value, store_state_name(state)) != 0) {
        state++;
    }
    bool preparing = strcmp(value, "preparing") == 0;
    asked->live.state = preparing                ? JOBS_PREPARING
                        : state == STORE_QUEUED  ? JOBS_QUEUED
                        : state == STORE_RUNNING ? JOBS_RUNNING
                                                 : JOBS_ALL;
    asked->no_live = asked->no_live || (state > STORE_RUNNING && state < STORE_STATES);
    asked->no_kept = asked->no_kept || preparing;
    asked->call.filter.states = state < STORE_STATES ? 1u << state : 0;
    if (state == STORE_STATES && !preparing) {
        complaints_add(wrong, "state",
                       "is preparing, queued, running, succeeded, failed, cancelled or expired, "
                       "not \"%.40s\"",
                       value);
    }
}

static void type_read(struct kept_request *asked, const char *value, struct complaints *wrong) {
    asked->live.type = job_type_find(value);
    asked->call.filter.type = value;
    if (asked->live.type == NULL) {
        complaints_add(wrong, "type", "there is no kind of job \"%.40s\" (/v1/jobs/types has all)",
                       value);
    }
}

static void request_read(struct kept_request *asked, const char *value, struct complaints *wrong) {
    asked->live.request_id = value;
    asked->no_kept = true;
    if (!request_id_valid(value, strlen(value))) {
        complaints_add(wrong, "request_id",
                       "is an X-Request-Id: 1 to %d letters, digits and -._~+/=:@", REQUEST_ID_MAX);
    }
}

static void label_read(struct kept_request *asked, const char *value, struct complaints *wrong) {
    asked->call.filter.label = value;
    asked->no_live = true;
    if (value[0] == '\0' || strlen(value) > STORE_NAME_MAX) {
        complaints_add(wrong, "label", "is a Kiln-Label: 1 to %d characters", STORE_NAME_MAX);
    }
}

static void cursor_read(struct kept_request *asked, const char *value, struct complaints *wrong) {
    asked->no_live = true; /* they were on the first page */
    if (!job_id_parse(value, strlen(value), &asked->call.filter.after)) {
        complaints_add(wrong, "cursor", "is the `next` of the page before");
    }
}

static const struct {
    const char *name;
    void (*read)(struct kept_request *asked, const char *value, struct complaints *wrong);
} parameters[] = {{"state", state_read},
                  {"type", type_read},
                  {"request_id", request_read},
                  {"label", label_read},
                  {"cursor", cursor_read}};
#define PARAMETERS (sizeof parameters / sizeof parameters[0])

static void pair_read(struct kept_request *asked, unsigned *seen, const char *name,
                      const char *value, struct complaints *wrong) {
    size_t i = 0;
    while (i < PARAMETERS && strcmp(parameters[i].name, name) != 0) {
        i++;
    }
    if (i == PARAMETERS) {
        complaints_add(wrong, name,
                       "is unknown; there are state, type, label, cursor and request_id");
    } else if ((*seen & 1u << i) != 0) {
        complaints_add(wrong, name, "is given twice");
    } else {
        *seen |= 1u << i;
        parameters[i].read(asked, value, wrong);
    }
}

/* The values stay in the request's own text. */
static enum kiln_status filter_read(struct http_request *request, struct kept_request *asked,
                                    struct complaints *wrong) {
    char *at = request->url.query, *end = at != NULL ? at + strlen(at) : NULL;
    char *name, *value;
    unsigned seen = 0;
    bool broken = false;
    asked->live.owner = owner_asked(request);
    asked->call.filter.owner = asked->call.owner;
    asked->call.filter.short_rows = true;
    asked->call.filter.limit = PAGE;
    while (at != NULL && !broken && pair_next(&at, end, &name, &value, &broken)) {
        if (!broken) {
            pair_read(asked, &seen, name, value, wrong);
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

static void kept_list(struct list *list) {
    struct store_answer rows = list->request->kept->call.rows; /* may be printed again */
    struct store_job job;
    while (list->request->kept->call.status == KILN_OK && store_answer_job(&rows, &job)) {
        text_string(list->text, list->any ? ",\n" : "");
        list->any = true;
        kept_print(list->request, &job, list->text);
    }
}

static void list_print(struct http_request *request, struct text *text) {
    struct jobs *jobs = request->service->jobs;
    const struct kept_request *asked = request->kept;
    struct list list = {.text = text, .request = request};
    size_t total = 0;
    text_string(text, "{\"jobs\":[");
    if (!asked->no_live && jobs_enter(jobs)) {
        if (jobs_list(jobs, &asked->live, element_print, &list, &total) != KILN_OK) {
            text->full = true; /* no memory: there is no answer to give */
        }
        jobs_leave(jobs);
    }
    if (!asked->no_kept) {
        kept_list(&list);
    }
    text_format(text, "],\"total\":%zu", total - list.kept);
    if (!asked->no_kept && asked->call.status == KILN_OK && asked->call.rows.page.more) {
        char id[JOB_ID_TEXT];
        job_id_print(&asked->call.rows.page.next, id);
        text_format(text, ",\"next\":\"%s\"", id);
    }
    text_string(text, "}\n");
}

/* Where the store does not answer, those that wait at their connections are told all the same. */
static enum MHD_Result list_answer(struct http_request *request) {
    const struct kept_request *asked = request->kept;
    if (asked->call.status != KILN_OK && asked->no_live && !asked->no_kept) {
        return kept_problem(request, asked->call.status);
    }
    return reply_print(request, MHD_HTTP_OK, JSON_MEDIA, list_print);
}

enum MHD_Result job_list_all(struct http_request *request) {
    struct complaints wrong;
    wrong.count = 0;
    if (request->kept != NULL) {
        return list_answer(request);
    }
    struct kept_request *asked = kept_make(request, LEDGER_LIST);
    if (asked == NULL) {
        return problem_reply(request, KILN_NO_MEMORY, "There is no memory for this request now.");
    }
    if (filter_read(request, asked, &wrong) != KILN_OK) {
        request->complaints = &wrong;
        enum MHD_Result sent = problem_send(request);
        request->complaints = NULL;
        return sent;
    }
    return asked->no_kept ? list_answer(request) : kept_ask(request);
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
    if (!job_id_parse(name, strlen(name), &id) || ledger_has(request->service->ledger, &id) ||
        !jobs_find(jobs, &id, view)) {
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
    if (request->kept != NULL) {
        return job_kept_one(request);
    }
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
        return job_kept_one(request);
    default:
        return request->method == METHOD_DELETE
                   ? reply_send(request, MHD_HTTP_NO_CONTENT, NULL, response_constant("", 0))
                   : view_reply(request, &view);
    }
}
