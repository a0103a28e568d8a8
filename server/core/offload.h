/*
 * offload.h: threads for what would keep an event loop: reading large bodies, and copying large
 * results into the cache.
 *
 * A load is a part of what it works on. Somebody waits for a body and nobody for a copy, so copies
 * are taken when no body waits. One thread takes nothing but short bodies, so that these never wait
 * for long ones; the others take both as they come. The number of bodies is bounded by that of
 * connections; who pushes copies bounds them.
 *
 * Threads: push from any; the others the main thread.
 */
#ifndef KILN_SERVER_CORE_OFFLOAD_H
#define KILN_SERVER_CORE_OFFLOAD_H

#include "compute/core/status.h"

#include <stdbool.h>
#include <stdint.h>

#define OFFLOAD_THREADS 3
/* Reading 64 KiB of text takes 1 ms on a slow core, hashing an image of 64 KiB a tenth of that. */
#define OFFLOAD_BODY_MIN   (16u << 10) /* bytes; less text is read where it arrives */
#define OFFLOAD_IMAGE_EASE 8u          /* as many bytes of an image count as one of text */
#define OFFLOAD_LONG_MIN   (1u << 20)  /* bytes; from here on texts are OFFLOAD_LONG */
#define OFFLOAD_COPY_MIN   (64u << 10) /* smaller results are copied where they were sent */

enum offload_kind {
    OFFLOAD_BODY, /* that is read in some milliseconds */
    OFFLOAD_LONG, /* a body that takes longer */
    OFFLOAD_COPY,
    OFFLOAD_KINDS
};

struct offload_task {
    struct offload_task *next;
    uint64_t number; /* the offload's: order of arrival */
    void (*run)(
        struct offload_task *load); /* on a offload's thread; the load is its own from then on */
};

struct offload;

enum kiln_status offload_create(struct offload **offload);
/** Works off what is queued, then joins the threads: what is pushed later is not taken. NULL is
    allowed. */
void offload_stop(struct offload *offload);
/** Stops, and frees. Nobody may push any more. NULL is allowed. */
void offload_destroy(struct offload *offload);
/** Queues a load; false, and it stays the caller's, once stopped. */
bool offload_push(struct offload *offload, enum offload_kind kind, struct offload_task *load);

#endif
