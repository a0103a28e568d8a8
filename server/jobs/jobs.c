/*
 * jobs.c: one list out of those that are prepared and those that are submitted.
 */
#include "server/jobs/jobs.h"

#include "server/core/offload.h"
#include "server/jobs/result_reuse.h"

#include <stdlib.h>

enum kiln_status jobs_create(const struct jobs_options *options, struct jobs **out) {
    struct jobs *jobs = calloc(1, sizeof *jobs);
    *out = jobs;
    if (jobs == NULL) {
        return KILN_NO_MEMORY;
    }
    jobs->options = *options;
    preparing_init(&jobs->preparing);
    return result_reuse_create(options->cache_bytes, &jobs->reuse);
}

enum kiln_status jobs_open(struct jobs *jobs, struct executor *executor, const char *variants) {
    jobs->executor = executor;
    jobs->variants = variants;
    return offload_create(&jobs->offload);
}

void jobs_stop(struct jobs *jobs) {
    if (jobs != NULL) {
        offload_stop(jobs->offload);
    }
}

void jobs_destroy(struct jobs *jobs) {
    if (jobs != NULL) {
        offload_destroy(jobs->offload);
        result_reuse_destroy(jobs->reuse);
        preparing_finish(&jobs->preparing);
        free(jobs);
    }
}

bool jobs_enter(struct jobs *jobs) {
    return jobs->executor->type->enter(jobs->executor);
}

void jobs_leave(struct jobs *jobs) {
    jobs->executor->type->leave(jobs->executor);
}

struct listing {
    void (*each)(const struct job_view *view, void *context);
    void *context;
    struct job_view *early; /* those that were being prepared when the list was begun */
    size_t early_count, moved;
};

/* One that waits or runs. It may have been prepared a moment ago. */
static void submitted_see(const struct job_view *view, void *context) {
    struct listing *listing = context;
    for (size_t i = 0; i < listing->early_count; i++) {
        if (job_id_equal(&listing->early[i].id, &view->id)) {
            listing->early[i].id = (struct job_id){{0}};
            listing->moved++;
        }
    }
    listing->each(view, listing->context);
}

/* Those that are being prepared and have not been submitted since, where the others leave room. */
static void early_see(const struct listing *listing, size_t seen) {
    for (size_t i = 0; i < listing->early_count && seen < DISPATCH_JOBS_MAX; i++) {
        if (!job_id_empty(&listing->early[i].id)) {
            listing->each(&listing->early[i], listing->context);
            seen++;
        }
    }
}

/* A job goes from the offload's thread to the executor, so they are asked in this order. */
enum kiln_status jobs_list(struct jobs *jobs, const struct job_filter *filter,
                           void (*each)(const struct job_view *view, void *context), void *context,
                           size_t *total) {
    struct job_view *early = calloc(DISPATCH_JOBS_MAX, sizeof *early);
    struct listing listing = {.each = each, .context = context, .early = early};
    if (early == NULL) {
        return KILN_NO_MEMORY;
    }
    size_t prepared = preparing_list(&jobs->preparing, filter, early, DISPATCH_JOBS_MAX);
    listing.early_count = prepared < DISPATCH_JOBS_MAX ? prepared : DISPATCH_JOBS_MAX;
    enum kiln_status status =
        jobs->executor->type->list(jobs->executor, filter, submitted_see, &listing, total);
    if (status == KILN_OK) {
        early_see(&listing, *total);
        *total += prepared - listing.moved;
    }
    free(early);
    return status;
}

bool jobs_find(struct jobs *jobs, const struct job_id *id, struct job_view *view) {
    return preparing_job(&jobs->preparing, id, view) ||
           jobs->executor->type->find(jobs->executor, id, view);
}

bool jobs_cancel(struct jobs *jobs, const struct job_id *id) {
    return preparing_revoke(&jobs->preparing, id) ||
           jobs->executor->type->cancel(jobs->executor, id) == KILN_OK;
}
