/*
 * job_submit.c: headers, address and body of a request to a job record.
 */
#include "server/api/job_submit.h"

#include "compute/codecs/signature.h"
#include "compute/core/text.h"
#include "compute/submission/submission.h"
#include "server/api/job_answer.h"
#include "server/api/job_kept.h"
#include "server/http/authorization.h"
#include "server/http/problem.h"
#include "server/jobs/record.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

struct listing {
    struct text text;
    bool any;
};

static void listing_add(const char *item, void *context) {
    struct listing *listing = context;
    text_string(&listing->text, listing->any ? ", " : "");
    text_string(&listing->text, item);
    listing->any = true;
}

enum kiln_status job_media_check(struct http_request *request) {
    const struct job_type *type = request->match.route->type;
    const char *media = request_header(request, MHD_HTTP_HEADER_CONTENT_TYPE);
    const char *coding = request_header(request, MHD_HTTP_HEADER_CONTENT_ENCODING);
    char bytes[384];
    struct listing listing = {.any = false};
    if (coding != NULL && strcasecmp(coding, "identity") != 0) {
        return request_fault(request, KILN_MEDIA_TYPE,
                             "The body has the content coding \"%.40s\"; none is taken.", coding);
    }
    if (submission_media_known(type, media)) {
        return KILN_OK;
    }
    const char *known = type->input == INPUT_SERIES ? signature_of_media(media) : NULL;
    if (known != NULL) {
        return request_fault(request, KILN_MEDIA_TYPE, "The body is %s.", known);
    }
    text_init(&listing.text, bytes, sizeof bytes);
    submission_media_list(type, listing_add, &listing);
    return request_fault(request, KILN_MEDIA_TYPE, "%s%.80s%s; %s takes %s.",
                         media != NULL ? "The body is \"" : "The body has no Content-Type",
                         media != NULL ? media : "", media != NULL ? "\"" : "",
                         request->match.route->pattern, bytes);
}

/* ---- what the headers wish ---- */

enum { LIST_ACCEPT, LIST_TAGS, LIST_CACHE, LISTS };

static void directive_read(struct job_order *order, const char *text, size_t size) {
    if (size == 8 && strncasecmp(text, "no-cache", size) == 0) {
        order->find = false;
    } else if (size == 8 && strncasecmp(text, "no-store", size) == 0) {
        order->find = order->keep = false;
    } else if (size > 8 && strncasecmp(text, "max-age=", 8) == 0) {
        char *end;
        errno = 0;
        unsigned long long seconds = strtoull(text + 8, &end, 10);
        if (end == text + size && errno == 0 && seconds < UINT64_MAX / 1000000000) {
            order->age_ns = seconds * UINT64_C(1000000000);
            order->find = order->find && seconds > 0; /* 0 demands a run of its own */
        }
    }
}

/* Cache-Control: `no-cache` wants a new run, `no-store` wants one that is not kept either,
   `max-age` limits the age of what is taken. */
static void cache_control_read(struct job_order *order, const char *text) {
    while (*text != '\0') {
        text += strspn(text, " \t,");
        size_t size = strcspn(text, " \t,");
        directive_read(order, text, size);
        text += size;
    }
}

/* ---- the record ---- */

static void record_ended(struct job_record *record) {
    request_resume(record->context);
}

/* The body's block moves. False if memory ran out. */
static bool record_make(struct http_request *request, bool check) {
    const struct route *route = request->match.route;
    char accept[1024], tags[1024], cache[256], id[REQUEST_ID_MAX + 1];
    struct header_list lists[LISTS] = {
        [LIST_ACCEPT] = {MHD_HTTP_HEADER_ACCEPT, accept, sizeof accept, false},
        [LIST_TAGS] = {MHD_HTTP_HEADER_IF_NONE_MATCH, tags, sizeof tags, false},
        [LIST_CACHE] = {MHD_HTTP_HEADER_CACHE_CONTROL, cache, sizeof cache, false},
    };
    bool reads = (request->method & (METHOD_GET | METHOD_HEAD)) != 0;
    request_lists(request, lists, LISTS);
    tracing_id_print(&request->tracing, id);
    struct job_order order = {
        .type = route->type,
        .path = route->path,
        .captures = request->match.captures,
        .query = request->url.query,
        .media = request_header(request, MHD_HTTP_HEADER_CONTENT_TYPE),
        .body = request->body,
        .body_size = request->body_size,
        .accept = lists[LIST_ACCEPT].any ? accept : NULL,
        .tags = lists[LIST_TAGS].any && !check ? tags : NULL,
        .address = reads && !check ? request->target : NULL,
        .find = !check,
        .keep = !check,
        .check = check,
        .age_ns = UINT64_MAX,
        .holder = *request_holder(request),
        .owner = authorization_owner(request),
        .trace = request->tracing.trace,
        .request_id = id,
        .watch_fd = client_fd(request->client),
        .ended = record_ended,
        .context = request,
    };
    if (check) {
        job_kept_order(request, &order);
    } else {
        cache_control_read(&order, cache);
    }
    request->record = job_record_create(request->service->jobs, &order);
    if (request->record == NULL) {
        return false;
    }
    request->body = (struct block){0, 0};
    return true;
}

enum MHD_Result job_submit(struct http_request *request) {
    struct jobs *jobs = request->service->jobs;
    if (request->stage == STAGE_AWAY) {
        return request->kept != NULL ? job_kept_checked(request) : job_answer(request);
    }
    bool keeps = job_kept_wanted(request);
    if (keeps && job_kept_begin(request) != KILN_OK) {
        return problem_send(request);
    }
    if (!record_make(request, keeps)) {
        return problem_reply(request, KILN_NO_MEMORY, "There is no memory for this request now.");
    }
    if (job_record_begin(request->record)) {
        return keeps ? job_kept_checked(request) : job_answer(request);
    }
    if (!jobs_enter(jobs)) {
        return problem_reply(request, KILN_DRAINING, "The daemon is shutting down.");
    }
    request_suspend(request);
    job_record_run(request->record);
    jobs_leave(jobs);
    return MHD_YES;
}
