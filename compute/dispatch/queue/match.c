/*
 * match.c: which devices can run a job at all: the wanted one, and one that has its kernels.
 *
 * What is not in use, not there or without a kernel stays so until the daemon is started anew, so
 * jobs for it are refused for good; a device that keeps failing is tried again, and its jobs may
 * come later.
 *
 * Threads: any, under the queue's lock.
 */
#include "compute/dispatch/queue/match.h"

#include "compute/core/text.h"

static bool is_used(const struct supervisor *supervisor) {
    return supervisor->chosen && supervisor->present;
}

/* "lacks the kernels mandelbrot, colorize" */
static void lack_print(const struct supervisor *supervisor, const struct job *job,
                       struct text *text) {
    uint32_t missing = job->plan.kernels & ~supervisor->kernels;
    const char *before = (missing & (missing - 1)) != 0 ? "kernels " : "kernel ";
    text_format(text, "%s lacks the ", supervisor->name);
    for (int id = 0; id < KERNEL_COUNT; id++) {
        if ((missing >> id & 1) != 0) {
            text_format(text, "%s%s", before, kernel_name(id));
            before = ", ";
        }
    }
    text_string(text, " that this job needs");
}

/* Who has what it needs, whatever device it wants. */
static void others_print(const struct run_queue *queue, const struct job *job, struct text *text) {
    const char *before = "; it can run on ";
    for (int i = 0; i < queue->count; i++) {
        const struct supervisor *one = &queue->supervisors[i];
        if (is_used(one) && (job->plan.kernels & ~one->kernels) == 0) {
            text_format(text, "%s%s", before, one->name);
            before = ", ";
        }
    }
    text_string(text, *before == ';' ? "; no device in use can run it" : "");
}

static void refusal_print(const struct run_queue *queue, const struct job *job,
                          const struct supervisor *lacking, const struct supervisor *unused,
                          struct text *text) {
    if (lacking != NULL) {
        lack_print(lacking, job, text);
    } else if (unused == NULL) {
        text_format(text, "there is no device \"%s\"", job->device);
    } else if (unused->present) {
        text_format(text, "%s is not in use (--device)", unused->name);
    } else {
        text_format(text, "%s is not available: %s", unused->name, unused->reason);
    }
    others_print(queue, job, text);
}

enum kiln_status match_admit(const struct run_queue *queue, const struct job *job, char *why,
                             size_t why_size) {
    const struct supervisor *broken = NULL, *lacking = NULL, *unused = NULL;
    for (int i = 0; i < queue->count; i++) {
        const struct supervisor *one = &queue->supervisors[i];
        if (!device_kind_matches(one->name, job->device)) {
            continue;
        }
        if (!is_used(one)) {
            unused = unused == NULL || (one->chosen && !unused->chosen) ? one : unused;
        } else if (!supervisor_matches(one, job)) {
            lacking = lacking == NULL ? one : lacking;
        } else if (!one->broken) {
            return KILN_OK;
        } else {
            broken = broken == NULL ? one : broken;
        }
    }
    struct text text;
    text_init(&text, why, why_size);
    if (broken != NULL) {
        text_format(&text, "%s is not available: %s", broken->name, broken->reason);
        return KILN_NO_DEVICE;
    }
    refusal_print(queue, job, lacking, unused, &text);
    /* Who names none and finds no device in use asked for nothing wrong. */
    return lacking != NULL || job->device[0] != '\0' ? KILN_INCAPABLE : KILN_NO_DEVICE;
}
